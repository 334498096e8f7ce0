/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory that are freed together.
 *
 * Each answer of a broker is decoded into one arena: its texts, and the arrays of its structs. What
 * a broker can make us take is bounded twice: counts are checked against the bytes that came
 * (codec.c), and the arena has a cap. */
#include "wire/wire_arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define BLOCK_BYTES 4096

struct wire_arena_block {
    struct wire_arena_block *next;
    size_t used;
    size_t size;
    alignas(8) unsigned char bytes[];
};

void wire_arena_init(struct wire_arena *arena, size_t max)
{
    *arena = (struct wire_arena){.max = max};
}

void wire_arena_deinit(struct wire_arena *arena)
{
    while (arena->blocks != NULL) {
        struct wire_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
    arena->used = 0;
}

static struct wire_arena_block *add_block(struct wire_arena *arena, size_t least)
{
    size_t size = least > BLOCK_BYTES ? least : BLOCK_BYTES;
    struct wire_arena_block *block = calloc(1, sizeof(*block) + size);

    if (block == NULL)
        return NULL;
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *wire_arena_get(struct wire_arena *arena, size_t count, size_t size)
{
    struct wire_arena_block *block = arena->blocks;
    size_t align = size == 1 ? 1 : 8;
    size_t pad = block != NULL ? (size_t)(-block->used) % align : 0;
    size_t len;
    void *got;

    if (size != 0 && count > (SIZE_MAX / 2) / size)
        return NULL;
    len = count * size;
    if (len > arena->max - arena->used)
        return NULL;
    if (block == NULL || block->size - block->used < pad + len) {
        block = add_block(arena, len);
        pad = 0;
    }
    if (block == NULL)
        return NULL;
    got = block->bytes + block->used + pad;
    block->used += pad + len;
    arena->used += len;
    return got;
}
