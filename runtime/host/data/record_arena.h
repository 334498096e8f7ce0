/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of records and the memory under them. A batch and everything its records point to is one
 * arena, used again and again: in steady state nothing here calls malloc. Thread: one at a time
 * (the task's). */
#ifndef HOST_RECORD_ARENA_H
#define HOST_RECORD_ARENA_H

#include "base/err.h"
#include "host/data/source_partition.h"

#include <millrace/record.h>

struct batch;
struct consumer_msg;
struct producer_header;

/* What the plugin wants of its transaction. */
enum batch_end { BATCH_GOES_ON, BATCH_COMMITS, BATCH_ABORTS };

/* A record with the host's own tail. */
struct record {
    struct mr_record pub;
    struct batch *batch;
    const struct mr_source_partition *partition; /* sources: NULL = no offset */
    const char *offset_key;                      /* interned */
    int64_t offset_next;
    /* Sinks: where it was read, whatever transforms make of pub (KIP-793). */
    const char *from_topic;
    int32_t from_partition;
    int64_t from_timestamp;
    const struct consumer_msg *from; /* sinks: its message, until it is copied out of that */
    const void *key_bytes;           /* NULL = null; sources: converted, sinks: as it was read */
    const void *value_bytes;
    size_t key_len;
    size_t value_len;
    uint32_t header_cap; /* room in pub.headers; 0: an array of the converters', full as it is */
    const struct producer_header *wire_headers; /* the same; sinks: while `from` is NULL */
    uint32_t wire_header_count;
    bool dropped; /* by tolerance: counts as done, is not sent (again) */
    bool settled; /* sources: delivered, or needs no delivery (see task/ack_window) */
    uint8_t end;  /* sources: enum batch_end, behind this record */
};

/* What mr_reject said of a record, in the order of the calls. */
struct reject {
    struct reject *next;
    size_t i;
    const char *text;
};

struct batch {
    struct mr_batch pub;   /* first: the plugin's view */
    struct mr_arena arena; /* pub.arena points here */
    struct batch_pool *pool;
    struct batch *next; /* for whoever holds it: a queue of batches */
    size_t bytes;       /* of memory handed out, records included */
    size_t unsettled;   /* records that are not settled */
    int64_t again_ms;   /* what mr_again_in asked for; -1: fd alone */
    int again_fd;       /* -1: none */
    enum batch_end end; /* behind its last record, by mr_batch_commit or mr_batch_abort */
    bool again;         /* mr_again_in or mr_again_on_fd was called */
    bool over;          /* the plugin broke a rule or the budget: fail the task after the call */
    struct reject *rejects;      /* of this call of put */
    struct reject **last_reject; /* where the next one goes */
    const char *fault;           /* which, with over; static text, or in the arena */
    /* private */
    void *blocks;      /* of the arena; the first is the current one */
    size_t record_cap; /* records that are mapped now */
    size_t record_max;
    const char *topics[16]; /* copied once per batch */
    size_t topic_count;
    const char *offset_key; /* the last one */
};

struct batch_pool;

/* budget_bytes caps what all batches of the pool hold together: batch_pool_take refuses beyond it.
 * One batch alone may hold up to the larger of BATCH_MAX_BYTES and twice the budget; then it is
 * `over`. max_records and BATCH_FULL_BYTES are what mr_batch_full calls full. Aborts out of
 * memory. */
#define BATCH_MAX_BYTES ((size_t)256 * 1024 * 1024)
#define BATCH_FULL_BYTES ((size_t)1024 * 1024)
#define BATCH_POOL_MAX 512 /* batches out at a time */
struct batch_pool *batch_pool_new(const struct mr_host *host, size_t budget_bytes,
                                  size_t max_records);
void batch_pool_free(struct batch_pool **pool); /* every batch must have been given back */
/* An empty batch, or NULL when the budget is out (wait for reports) or memory is. Give it back when
 * nothing points into it. */
struct batch *batch_pool_take(struct batch_pool *pool);
void batch_pool_give(struct batch_pool *pool, struct batch *batch);
size_t batch_pool_bytes(const struct batch_pool *pool); /* held by batches that are out */
void batch_pool_trim(struct batch_pool *pool); /* idle: give cached memory back to the system */

struct record *batch_add(struct batch *batch, const char *topic); /* sinks' side too; never NULL */
/* Topic outlives the batch. */
struct record *batch_add_borrowed(struct batch *batch, const char *topic);
void batch_clear_rejects(struct batch *batch);
void batch_remove_last(struct batch *batch);
static inline struct record *batch_at(const struct batch *batch, size_t i)
{
    return (struct record *)(void *)(batch->pub.records + i * batch->pub.record_size);
}
/* A value whose every pointer leads into the batch's arena: copied where it does not. Unknown
 * kinds, nesting beyond 1000 and what does not fit set `over` and give null. */
struct mr_value batch_own(struct batch *batch, struct mr_value v);
/* NULL and `over` when it does not fit. */
void *batch_copy(struct batch *batch, const void *data, size_t len);
bool batch_holds(const struct batch *batch, const void *p, size_t len); /* in its arena */
void batch_fault(struct batch *batch, const char *fault);               /* the first one stays */

/* What the host's table (host_api.c) points to. Never NULL, as mr_alloc promises. */
void *record_arena_more(struct mr_arena *arena, size_t size);
struct mr_record *record_arena_add(struct mr_batch *batch, const char *topic);
bool record_arena_full(const struct mr_batch *batch);
int record_arena_again(struct mr_batch *batch, int64_t ms, int fd);
void record_arena_batch_ends(struct mr_batch *batch, bool commit);
void record_arena_ends(struct mr_record *rec, bool commit);
void record_arena_key(struct mr_record *rec, struct mr_value v);
void record_arena_value(struct mr_record *rec, struct mr_value v);
void record_arena_header(struct mr_record *rec, const char *name, const struct mr_schema *schema,
                         struct mr_value v);
size_t record_arena_header_drop(struct mr_record *rec, const char *name);
void record_arena_reject(struct mr_batch *batch, size_t i, const char *text);
void record_arena_topic(struct mr_record *rec, const char *topic, size_t len);
void record_arena_offset(struct mr_record *rec, const struct mr_source_partition *part,
                         const char *key, int64_t next);

#endif
