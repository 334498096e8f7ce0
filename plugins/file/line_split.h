/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in a run of bytes. Pure. */
#ifndef FILE_LINE_SPLIT_H
#define FILE_LINE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

struct line_split {
    const char *p; /* the next line begins here */
    const char *end;
    const char *newline; /* the next '\n' and '\r' from p on; end: none */
    const char *carriage;
};

void line_split_init(struct line_split *split, const char *data, size_t len);

/* The next line that is ended by "\n", "\r\n" or '\r'; *line of *len bytes without its end. A '\r'
 * that is the last byte ends no line yet, since '\n' may follow. false: no whole line is left;
 * split->p stands at what remains. */
bool line_split_next(struct line_split *split, const char **line, size_t *len);

/* How many of len bytes that hold no whole line need not be looked at again when more arrive. */
size_t line_split_seen(const char *data, size_t len);

#endif
