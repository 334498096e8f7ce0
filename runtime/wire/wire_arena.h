/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed as a whole: what one answer was decoded into. Capped. One owner, one
 * thread. */
#ifndef WIRE_WIRE_ARENA_H
#define WIRE_WIRE_ARENA_H

#include <stddef.h>

struct wire_arena_block;

struct wire_arena {
    struct wire_arena_block *blocks;
    size_t used; /* bytes given out */
    size_t max;  /* cap on used */
};

void wire_arena_init(struct wire_arena *arena, size_t max);
void wire_arena_deinit(struct wire_arena *arena);
/* count * size zeroed bytes, aligned for pointers and 64-bit numbers (size 1: not at all); NULL
 * beyond the cap, on overflow, or out of memory. */
void *wire_arena_get(struct wire_arena *arena, size_t count, size_t size);

#endif
