/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the lines that a file source hands over, for files and streams alike. The places of the
 * next '\n' and '\r' are remembered, so each byte is searched once for either, also in files that
 * only have one of them. */
#include "line_split.h"

#include <string.h>

static const char *find(const char *p, const char *end, char what)
{
    const char *found = p < end ? memchr(p, what, (size_t)(end - p)) : NULL;

    return found == NULL ? end : found;
}

void line_split_init(struct line_split *split, const char *data, size_t len)
{
    split->p = data;
    split->end = data + len;
    split->newline = find(data, split->end, '\n');
    split->carriage = find(data, split->end, '\r');
}

bool line_split_next(struct line_split *split, const char **line, size_t *len)
{
    const char *stop = split->newline, *next = stop + 1;

    if (split->carriage < stop) {
        if (split->carriage + 1 == split->end)
            return false;
        stop = split->carriage;
        next = stop + 1 + (stop + 1 == split->newline);
    } else if (stop == split->end) {
        return false;
    }
    *line = split->p;
    *len = (size_t)(stop - split->p);
    split->p = next;
    if (split->newline < next)
        split->newline = find(next, split->end, '\n');
    if (split->carriage < next)
        split->carriage = find(next, split->end, '\r');
    return true;
}

size_t line_split_seen(const char *data, size_t len)
{
    return len > 0 && data[len - 1] == '\r' ? len - 1 : len;
}
