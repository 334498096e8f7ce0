/* SPDX-License-Identifier: Apache-2.0 */
/* InsertHeader: one header more, its value read from a text as header values are: once, at the
 * start, into memory of its own; the host copies it into each record's. On the task's thread. */
#include "half.h"
#include "transforms.h"

#include <stddef.h>
#include <stdlib.h>

#define BLOCK ((size_t)4096)

/* Memory of the value, as an arena that hands out blocks. */
struct block {
    struct block *next;
    char bytes[];
};

struct insert_header {
    const char *header;
    const struct mr_schema *schema;
    struct mr_value value;
    struct mr_arena arena;
    struct mr_host table; /* the host's, but for more memory */
    struct block *blocks;
};

static const struct mr_config_key keys[] = {
    {.name = "header",
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Name of the header.",
     .importance = MR_CFG_HIGH},
    {.name = "value.literal",
     .flags = MR_CFG_REQUIRED | MR_CFG_CHECK_NULL,
     .doc = "Its value, in the form in which header values are read from text.",
     .importance = MR_CFG_HIGH},
    {0},
};

static const char *const aliases[] = {"InsertHeader", NULL};

static void *more(struct mr_arena *arena, size_t size)
{
    struct insert_header *h =
        (struct insert_header *)(void *)((char *)arena - offsetof(struct insert_header, arena));
    size_t room = size > BLOCK ? size : BLOCK;
    struct block *block = (struct block *)malloc(sizeof(*block) + room);

    if (block == NULL)
        abort(); /* at the start of a task, and mr_alloc gives no NULL */
    block->next = h->blocks;
    h->blocks = block;
    arena->next = block->bytes + ((size + 7) & ~(size_t)7);
    arena->end = block->bytes + room;
    if (arena->next > arena->end)
        arena->next = arena->end;
    return block->bytes;
}

static int check(const struct mr_task *config, const char *key, const char *shown,
                 struct mr_error *err)
{
    if (mr_config_str(config, key) != NULL)
        return MR_OK;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value null for configuration %s: entry must be non null", shown);
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct insert_header *h = (struct insert_header *)self;
    const char *literal = mr_config_str(task, "value.literal");

    h->header = mr_config_str(task, "header");
    if (h->header == NULL || literal == NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value null for configuration %s: Value must be non-null",
                       h->header == NULL ? "header" : "value.literal");
    memcpy(&h->table, task->host,
           task->host->size < sizeof(h->table) ? task->host->size : sizeof(h->table));
    h->table.arena_more = more;
    h->arena.host = &h->table;
    return mr_value_parse(&h->arena, literal, strlen(literal), &h->schema, &h->value, err);
}

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    const struct insert_header *h = (const struct insert_header *)self;

    (void)arena;
    (void)err;
    mr_record_header(rec, h->header, h->schema, h->value);
    return MR_OK;
}

static void stop(void *self)
{
    struct insert_header *h = (struct insert_header *)self;

    while (h->blocks != NULL) {
        struct block *block = h->blocks;

        h->blocks = block->next;
        free(block);
    }
}

const struct mr_transform insert_header_plugin = MR_DESCRIPTOR(
    mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("InsertHeader"), HALF_RELEASE, .aliases = aliases,
    .keys = keys, .doc = "Adds a header", .state_size = sizeof(struct insert_header),
    .start = start, .apply = apply, .stop = stop, .check = check);
