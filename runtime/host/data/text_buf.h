/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows in an arena. Start with {.arena = arena}. */
#ifndef HOST_TEXT_BUF_H
#define HOST_TEXT_BUF_H

#include "base/err.h"

#include <millrace/record.h>

struct text_buf {
    struct mr_arena *arena;
    char *p;
    size_t len;
    size_t cap;
};

/* Room for len bytes more; who fills it adds to len. */
static inline char *text_buf_room(struct text_buf *t, size_t len)
{
    if (len > t->cap - t->len) {
        size_t cap = t->cap * 2 > t->len + len ? t->cap * 2 : t->len + len;
        char *p = (char *)mr_alloc(t->arena, cap);

        if (t->len > 0)
            memcpy(p, t->p, t->len);
        t->p = p;
        t->cap = cap;
    }
    return t->p + t->len;
}

static inline void text_buf_add(struct text_buf *t, const char *p, size_t len)
{
    if (len > 0)
        memcpy(text_buf_room(t, len), p, len);
    t->len += len;
}

static inline void text_buf_puts(struct text_buf *t, const char *z)
{
    text_buf_add(t, z, strlen(z));
}

#endif
