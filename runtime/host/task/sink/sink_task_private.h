/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share, and nobody else sees. Owner: the task's thread, but for what
 * is said to be under task->serve_lock. */
#ifndef HOST_SINK_TASK_PRIVATE_H
#define HOST_SINK_TASK_PRIVATE_H

#include "host/task/sink/ledger.h"
#include "host/task/stages/pipeline.h"
#include "host/task/sink/sink_ghosts.h"
#include "host/task/task_inside.h"
#include "model/task_times.h"

struct sink_emit;

enum lend { LEND_NONE, LEND_OFFERED, LEND_LENT };

/* What the plugin asked for one partition. */
struct sink_wish {
    const char *topic; /* the ledger's */
    int32_t partition;
    bool seek; /* else: hold */
    bool hold;
    int64_t offset;
};

struct sink_parts {
    struct consumer_partition *items;
    size_t count;
};

/* Of a plugin that stores offsets: see sink_places.c. */
struct sink_places {
    bool stores;
    const char *out_of_range;      /* "fail", "earliest" or "latest" */
    struct mr_partition_list list; /* what the put in hand stores */
    struct mr_partition *items;    /* of list, and of nothing else; as many as the ledger holds */
    size_t cap;
    int64_t ask_ms; /* it is to be asked anew then; INT64_MAX: it has said where it stands */
    bool told;      /* that it can't say */
    bool blind;     /* Kafka did not say what it has */
    bool stale;     /* since the last put that went well */
    bool skipped;   /* a dead letter stands behind what the batch's parts have stored */
};

struct sink_task {
    struct task *task;
    struct pipeline *pipeline;
    struct consumer *consumer; /* NULL: the group was left */
    struct sink_emit *emit;    /* NULL: the plugin has put, and emits nothing */
    bool restart;              /* in place, unless it is stopping: through the whole start */
    struct sink_ghosts ghosts;
    char member[512]; /* our id in the group, as the worker was told; "" not yet */
    struct batch_pool *pool;
    struct ledger *ledger;
    struct consumer_msg *msgs; /* max_poll of them */
    size_t max_poll;
    int64_t max_poll_interval_ms;
    struct task_times times; /* flush_timeout_ms: for commits, too */

    struct batch *held; /* to be put again; staged in the ledger; NULL none */
    int64_t put_again_ms;
    bool cut; /* the task ends, or its lease does, before a put's dead letters are delivered */
    bool empty_put;     /* put is called with nothing in hand */
    int64_t put_due_ms; /* with whatever there is by then; INT64_MAX: no such wish */
    struct sink_wish *wishes;
    size_t wish_count;
    struct sink_places places;
    struct sink_parts unclosed; /* went while the lease was lost */
    struct sink_parts unopened; /* came while it was */
    int64_t commit_due_ms;
    bool bisects;          /* a batch that fails on data is put in parts */
    bool unflushed;        /* put accepted something since the last good flush */
    bool broken;           /* flush failed for good: nothing may be committed any more */
    bool stopped_delivery; /* consumer_pause was called */
    bool read_again; /* something polled was not put: the consumer is sought before the next poll */

    struct consumer_partition *parts; /* scratch, as many as the ledger holds */
    size_t parts_cap;
    struct consumer_partition *sent; /* of the asynchronous commit that is out */
    size_t sent_count;
    size_t sent_cap;
    int64_t sent_ms;
    int64_t trouble_ms; /* when it was told that the consumer is in trouble; 0: records come */
    int64_t polled_ms;  /* when the consumer was last served */

    /* Under task->serve_lock. */
    enum lend lend;
    int64_t offered_ms; /* the consumer was not served since */
};

/* --- sink_task.c ------------------------------------------------------------------------------ */

void sink_task_fail(struct sink_task *s, const struct mr_error *err, const char *where);
void sink_task_put_nothing(struct sink_task *s); /* put is called without records */

/* --- sink_put.c ------------------------------------------------------------------------------- */

/* Put a staged batch (taken: it is done, or held to be put again). true: accepted, and the consumer
 * still stands behind the messages that were polled. */
bool sink_task_put(struct sink_task *s, struct batch *batch);
void sink_task_batch_done(struct sink_task *s, struct batch *batch); /* it goes back to the pool */
/* Records of partitions that went leave the batch that waits to be put again. */
void sink_task_drop_held(struct sink_task *s, const struct consumer_partition *parts, size_t count);

/* --- sink_control.c --------------------------------------------------------------------------- */

extern const struct instance_sink sink_control_table;
/* After a slot has returned, when the consumer is ours. true: reading goes on elsewhere, what was
 * polled is stale. */
bool sink_control_apply(struct sink_task *s);
void sink_control_move(struct sink_task *s);     /* its seeks alone, and in the ledger alone */
void sink_control_seek_all(struct sink_task *s); /* to the ledger's positions */
void sink_control_open(struct sink_task *s, const struct consumer_partition *parts, size_t count);
void sink_control_close(struct sink_task *s, const struct consumer_partition *parts, size_t count,
                        bool lost);
void sink_control_catch_up(struct sink_task *s); /* on those that came and went without a lease */
void sink_control_deinit(struct sink_task *s);
/* The plugin's pre_commit, inside task_enter. parts, *count: what it allows. */
int sink_control_pre_commit(struct sink_task *s, struct consumer_partition *parts, size_t *count,
                            struct mr_error *err);

/* --- sink_places.c ---------------------------------------------------------------------------- */

int sink_places_init(struct sink_task *s, struct mr_error *err);
void sink_places_deinit(struct sink_task *s);
const char *sink_places_out_of_range(const struct sink_task *s); /* for struct consumer_events */
/* The plugin's open, in place of the plain one. */
void sink_places_open(struct sink_task *s, const struct consumer_partition *parts, size_t count);
bool sink_places_unsaid(const struct sink_task *s); /* it has to be asked, nothing is put before */
void sink_places_ask(struct sink_task *s);          /* for all partitions; between two polls */
void sink_places_stale(struct sink_task *s, const struct mr_error *err); /* put said so */
/* Before a put of these records of the batch, which is staged: what they are stored with. Dead
 * letters that wait are delivered first, else as pipeline_settle. */
int sink_places_give(struct sink_task *s, struct batch *batch, size_t from, size_t count,
                     struct mr_error *err);
void sink_places_took(struct sink_task *s); /* put went well */
/* Offsets of what was never put, since it was left out before, are stored by a put of their own. */
void sink_places_follow(struct sink_task *s);

/* --- sink_commit.c ---------------------------------------------------------------------------- */

/* In s->parts, for the whole ledger; false: the task has failed. */
bool sink_commit_room(struct sink_task *s);
void sink_commit_begin(struct sink_task *s); /* flush, then commit without waiting for the answer */
void sink_commit_take_result(struct sink_task *s); /* of that one */
/* Partitions are going: what is done in them is made durable and committed before. Inside the
 * consumer's callback. */
void sink_commit_before_leaving(struct sink_task *s, const struct consumer_partition *going,
                                size_t count);
/* When something must be over while the task stops: at tenths of the graceful time, but with
 * least_ms from now on. While it does not stop: timeout_ms from now on. */
int64_t sink_commit_due_by(struct sink_task *s, int tenths, int64_t least_ms, int64_t timeout_ms);

/* --- sink_consumer.c -------------------------------------------------------------------------- */

int sink_consumer_open(struct sink_task *s, struct mr_error *err);
/* From here on control may serve it. */
int sink_consumer_subscribe(struct sink_task *s, struct mr_error *err);
void sink_consumer_note_member(struct sink_task *s);
/* Leaving the group revokes everything: what is done is flushed and committed in there. */
void sink_consumer_close(struct sink_task *s);
/* Nothing is to be delivered while the task is paused, the lease is lost or a batch waits to be put
 * again. It holds for partitions that come meanwhile, too. */
void sink_consumer_settle(struct sink_task *s);

/* Around a call of the plugin that may take long. true: control had the consumer, and
 * sink_consumer_take_back must follow. */
void sink_consumer_offer(struct sink_task *s);
bool sink_consumer_end_offer(struct sink_task *s);
/* Positions are those after the call, so what put accepted is not read again. */
void sink_consumer_take_back(struct sink_task *s);

#endif
