/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink with `emits` writes, and the transactions that it goes in: records that it emitted,
 * dead letters, and the offsets of what it was made of. Owner: the task's thread. For the files of
 * the sink's loop.
 *
 *   emits ─► filling ─call went well─► sender ─► producer ┐
 *                └─ call failed: back to the mark         ├─ one transaction
 *   ledger ─► offsets of the consumer's group ────────────┘
 */
#ifndef HOST_SINK_EMIT_H
#define HOST_SINK_EMIT_H

#include "host/task/send/sender.h"
#include "host/task/sink/sink_task_private.h"
#include "host/task/send/txn.h"

struct sink_state;

/* Of the transaction. Drawn in sink_txn.c, which makes all moves. */
enum sink_txn_stage {
    SINK_TXN_GOOD,    /* what was accepted may be committed */
    SINK_TXN_TORN,    /* it must not be: aborted at the next turn */
    SINK_TXN_ABORTED, /* it is gone, and the ledger does not know yet */
    SINK_TXN_LAPSED,  /* the lease was lost, the producer is gone: the task begins anew */
};

struct sink_emit {
    struct emitter base; /* first: the plugin's view */
    struct sink_task *s;
    struct sink_state *state;
    char *group; /* of the consumer */
    struct sender sender;
    struct txn txn;
    enum sink_txn_stage stage;
    struct batch_pool *pool;
    struct batch_pool *scratches;
    struct batch *scratch; /* memory of the call of emits, and what it adds for nothing */
    struct batch *filling; /* not handed to the sender yet; NULL none */
    size_t mark;           /* of its records so many are of calls that went well */
    const char *topic;     /* of filling, that was looked at last */
    bool in_call;
    bool spilled;  /* some that this call emitted are with the sender already */
    bool dirty;    /* so are some of the batch in hand, or will be: parts of it, dead letters */
    bool accepted; /* something was, since the last commit */
    bool told_own_topic;
    /* After a call failed that had spilled: no more records a call, for so many of them. */
    size_t limit; /* 0: as many as there are */
    size_t limit_left;
    size_t uncommitted;    /* records that were accepted since the last commit or turning back */
    struct mr_error guilt; /* what a call for one record failed with so; code 0 none: this record */
    const char *guilty_topic; /* the ledger's */
    int32_t guilty_partition;
    int64_t guilty_offset;
    struct mr_error failure; /* of an emit within a call: what that fails with */
    int64_t again_ms;        /* no records before that */
    int64_t fruitless;       /* transactions turned back since the last that was committed */
    struct mr_error why;     /* the task is to begin anew; code 0: it is not, or for no fault */
};

/* --- sink_emit.c ------------------------------------------------------------------------------ */

/* What mr_emit_add, mr_state_get and mr_state_set do; base: in a sink_emit. */
struct mr_record *sink_emit_add(struct emitter *base, const char *topic);
bool sink_emit_get(struct emitter *base, struct mr_value key, struct mr_value *value);
void sink_emit_set(struct emitter *base, struct mr_value key, struct mr_value value);
/* The plugin's emits for a batch, or a part of it. What it emits is kept or forgotten with it. As
 * the slot returns; MR_ERR_CLOSED also: the transaction can't go on. */
int sink_emit_call(struct sink_emit *e, struct batch *batch, struct mr_error *err);
/* For dead_letters_spec: a letter, as a record of the transaction. */
int sink_emit_letter(void *emit, const char *topic, const struct producer_record *rec,
                     struct mr_error *err);
/* A record whose bytes stay until the transaction has ended: they are not copied. */
struct sink_emit_bytes {
    const char *topic;
    int32_t partition;
    const void *key;
    size_t key_len;
    const void *value; /* NULL: null */
    size_t value_len;
};
int sink_emit_borrowed(struct sink_emit *e, const struct sink_emit_bytes *bytes,
                       struct mr_error *err);
/* Give what was emitted to the sender. wait: until the producer has taken it. 0, or why the
 * transaction can't be committed. */
int sink_emit_hand_over(struct sink_emit *e, bool wait, struct mr_error *err);
void sink_emit_forget(struct sink_emit *e); /* what the sender does not have */

/* --- sink_txn.c ------------------------------------------------------------------------------- */

struct sink_emit *sink_txn_new(struct sink_task *s);          /* aborts out of memory */
void sink_txn_free(struct sink_emit **e);                     /* also one that is NULL */
bool sink_txn_claim(void *sink_task);                         /* as task_begin's claim */
int sink_txn_open(struct sink_emit *e, struct mr_error *err); /* with the pipeline open */
/* A setting of the connector's. MR_ERR_CONFIG. */
int sink_txn_number(const struct sink_task *s, const char *key, int64_t fallback, int64_t *out,
                    struct mr_error *err);
int sink_txn_isolate(struct props *consumer, struct mr_error *err); /* read_committed, forced */
/* Between two polls: false: the task begins anew, or its lease is lost. */
bool sink_txn_serve(struct sink_emit *e);
void sink_txn_lapse(struct sink_emit *e); /* the lease is lost: nothing leaves any more */
void sink_txn_tear(struct sink_emit *e);  /* what is open must not be committed */
void sink_txn_accept(struct sink_emit *e, size_t count); /* the batch in hand */
/* A batch was not taken; retry_ms: and not before that, 0 at once. It is read again. */
void sink_txn_reject(struct sink_emit *e, int64_t retry_ms);
/* Commit all that was accepted, with its offsets. false: it was not; while partitions go
 * sink_txn_lose must follow. */
bool sink_txn_commit(struct sink_emit *e);
bool sink_txn_unready(const struct sink_emit *e); /* for records: what comes is read again */
bool sink_txn_pending(const struct sink_emit *e); /* there is something to commit */
/* Partitions go, and what was made of their records is not committed: before they are forgotten it
 * is aborted, all of it, and nothing of it is referenced any more. */
void sink_txn_lose(struct sink_emit *e);
/* The consumer is closed: what is open vanishes. *why: why the task is to begin anew, code 0: for
 * no fault. */
void sink_txn_drop(struct sink_emit *e, struct mr_error *why);

#endif
