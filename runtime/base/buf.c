/* SPDX-License-Identifier: Apache-2.0 */
/* A growable run of bytes. Grows by doubling up to the cap given at birth; the byte behind the last
 * is always NUL, so that text needs no copy. A failed append is remembered, so that a writer of
 * many pieces checks once. */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 64

void buf_init(struct buf *b, size_t max)
{
    memset(b, 0, sizeof(*b));
    b->max = max;
}

void buf_deinit(struct buf *b)
{
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data != NULL)
        b->data[0] = '\0';
}

char *buf_take(struct buf *b)
{
    char *data;

    if (b->failed || buf_reserve(b, 0) != 0)
        return NULL;
    data = b->data;
    b->data = NULL;
    b->len = b->cap = 0;
    return data;
}

int buf_reserve(struct buf *b, size_t len)
{
    size_t need;
    size_t cap = b->cap > 0 ? b->cap : BUF_FIRST;
    char *data;

    if (len > b->max - b->len) {
        b->failed = true;
        return MR_ERR_FULL;
    }
    need = b->len + len + 1;
    if (need <= b->cap)
        return 0;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    data = realloc(b->data, cap);
    if (data == NULL) {
        b->failed = true;
        return MR_ERR_NOMEM;
    }
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
    int rc = buf_reserve(b, len);

    if (rc != 0)
        return rc;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *z)
{
    return buf_append(b, z, strlen(z));
}

int buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_list again;
    int n;
    int rc;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    rc = n < 0 ? MR_ERR_NOMEM : buf_reserve(b, (size_t)n);
    if (rc == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return rc;
}

void buf_consume(struct buf *b, size_t len)
{
    mr_assert(len <= b->len);
    if (len == 0)
        return;
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}
