/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of records and the memory under them. A batch and everything its records point to is one arena, used again and
 * again: in steady state nothing here calls malloc. Thread: one at a time (the task's). */
#ifndef HOST_RECORD_ARENA_H
#define HOST_RECORD_ARENA_H

#include "base/err.h"

#include <millrace/record.h>

/* A source partition, {key: value}; interned, immortal. */
struct mr_source_partition {
    const char *key;
    const char *value;                  /* NULL = null */
    size_t index;                       /* 0, 1, …: for tables indexed by partition */
};

/* A record with the host's own tail. */
struct record {
    struct mr_record pub;
    struct batch *batch;                /* the one it stands in */
    const struct mr_source_partition *partition;        /* sources: NULL = no offset */
    const char *offset_key;             /* interned */
    int64_t offset_next;
    const void *key_bytes;              /* converted; NULL = null */
    const void *value_bytes;
    size_t key_len;
    size_t value_len;
    bool dropped;                       /* by a converter under tolerance: counts as done */
};

struct batch {
    struct mr_batch pub;                /* first: the plugin's view */
    struct mr_arena arena;              /* pub.arena points here */
    struct batch_pool *pool;
    struct batch *next;
    size_t bytes;                       /* of arena memory handed out */
    size_t unsettled;                   /* records whose delivery report is still out */
    int64_t again_ms;                   /* what mr_again_in asked for */
    int again_fd;
    bool over;                          /* memory or budget ran out: fail the task after the call */
    struct mr_error misuse;             /* first mistake of the plugin with it: fail the task after the call; cleared
                                         * when the batch is taken */
    void *blocks;                       /* private */
    size_t record_cap;
};

struct batch_pool;

/* budget_bytes caps what all batches of the pool hold together; max_records what mr_batch_full calls full. */
struct batch_pool *batch_pool_new(const struct mr_host *host, size_t budget_bytes, size_t max_records);
void batch_pool_free(struct batch_pool **pool);
/* An empty batch, or NULL when the budget is out (wait for reports). Give it back when nothing points into it. */
struct batch *batch_pool_take(struct batch_pool *pool);
void batch_pool_give(struct batch_pool *pool, struct batch *batch);
size_t batch_pool_bytes(const struct batch_pool *pool);

struct record *batch_add(struct batch *batch, const char *topic);       /* sinks' side too; never NULL */
static inline struct record *batch_at(const struct batch *batch, size_t i)
{
    return (struct record *)(void *)(batch->pub.records + i * batch->pub.record_size);
}
/* A value whose every pointer leads into the batch's arena: copied where it does not. */
struct mr_value batch_own(struct batch *batch, struct mr_value v);

/* What the host's table needs. */
void *record_arena_more(struct mr_arena *arena, size_t size);
const struct mr_source_partition *source_partition_intern(const char *key, const char *value);

#endif
