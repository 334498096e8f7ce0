/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory that a library points to without dying of a pointer that leads nowhere. Slow: for
 * descriptors at load. */
#ifndef HOST_PEEK_H
#define HOST_PEEK_H

#include "base/err.h"

struct peek {
    int fds[2]; /* a pipe of our own */
};

int peek_init(struct peek *peek, struct mr_error *err);
void peek_deinit(struct peek *peek);

/* Copy len bytes; false when not all of them can be read (to may then hold some). */
bool peek_copy(const struct peek *peek, void *to, const void *from, size_t len);

/* A malloc'ed copy of a text that must end within max bytes (its NUL not counted). 0;
 * MR_ERR_PROTOCOL: not readable; MR_ERR_TOO_LARGE: not ended there; MR_ERR_NOMEM. */
int peek_text(const struct peek *peek, const char *from, size_t max, char **out);

#endif
