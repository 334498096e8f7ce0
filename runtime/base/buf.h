/* SPDX-License-Identifier: Apache-2.0 */
/* A growable run of bytes with a hard cap. One owner, one thread. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"

/* data is always followed by a NUL that len does not count; NULL until the first byte. */
struct buf {
    char *data;
    size_t len;
    size_t cap; /* bytes allocated */
    size_t max; /* hard cap on len */
    /* an append did not fit or memory was short; sticky, for checking once at the end */
    bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_deinit(struct buf *b);
void buf_reset(struct buf *b); /* empty, memory kept */
/* the bytes as a malloc'ed string (never NULL unless failed); b is empty then */
char *buf_take(struct buf *b);

/* 0, MR_ERR_FULL beyond max, or MR_ERR_NOMEM; failed is set too, and nothing was appended. */
int buf_append(struct buf *b, const void *data, size_t len);
int buf_puts(struct buf *b, const char *z);
int buf_putc(struct buf *b, char c);
MR_PRINTF(2, 3)
int buf_printf(struct buf *b, const char *fmt, ...);
void buf_consume(struct buf *b, size_t len); /* drop bytes at the front */
int buf_reserve(struct buf *b, size_t len);  /* room for len more bytes behind data + len */

#endif
