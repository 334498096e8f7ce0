/* SPDX-License-Identifier: Apache-2.0 */
/* What source_task.c, source_commit.c and source_end.c share, and nobody else sees. Owner: the
 * task's thread. */
#ifndef HOST_SOURCE_TASK_PRIVATE_H
#define HOST_SOURCE_TASK_PRIVATE_H

#include "host/task/send/offset_writer.h"
#include "host/task/source/offset_copies.h"
#include "host/task/source/own_offsets.h"
#include "host/task/stages/pipeline.h"
#include "host/task/send/sender.h"
#include "host/task/send/txn.h"

struct source_task {
    struct task *task;
    struct pipeline *pipeline;
    struct batch_pool *pool;
    struct sender sender;
    struct offset_writer writer; /* without transactions */
    struct own_offsets *own;     /* the connector's own topic; NULL: it has none */
    json_t *own_entries;         /* under way there */
    struct offset_copies copies; /* of what stands there, for the worker's store */
    struct txn txn;              /* with them: sender.txn leads here */
    bool restart;                /* in place, unless it is stopping: through the whole start */
    bool torn;                   /* a transaction did not end as it was to: none is committed */
    int64_t graceful_ms;
    bool fell; /* it ends because it failed, and not because it was asked to */

    int64_t next_poll_ms;
    int again_fd; /* poll again when it is readable; -1 none */
    int64_t backoff_ms;
    uint32_t empty_polls;
    bool unsettled;        /* a dead letter was not delivered: no offset is stored any more */
    int64_t idle_since_ms; /* 0: busy, or trimmed */
};

static inline bool source_task_exactly_once(const struct source_task *s)
{
    return s->sender.txn != NULL;
}

/* --- source_task.c ---------------------------------------------------------------------------- */

/* Wait for reports, stop, commands; with polling also for what ends the wait before the next
 * poll. */
void source_task_wait(struct source_task *s, bool polling, int64_t deadline_ms);
/* The lease is lost: nothing of what was handed over leaves any more. */
void source_task_take_back(struct source_task *s);

/* --- source_commit.c -------------------------------------------------------------------------- */

/* Of the worker and of the connector's own topic. true: a flush of offset_writer is done. */
bool source_commit_take_answers(struct source_task *s);
/* For offset_writer; arg: the source_task; entries: taken. The id of the question, -1: not asked,
 * a dead letter is not delivered. */
int64_t source_commit_put_offsets(void *arg, json_t *entries);
/* For offset_copies; arg: the source_task; entries: taken. -1: the lease is lost. */
int64_t source_commit_put_copies(void *arg, json_t *entries);
/* What mr_offset_long does; arg: the source_task. The connector's own topic has the first word;
 * what it does not know, the worker may: it did before the connector had a topic of its own. */
int source_commit_read_offset(void *arg, const struct mr_source_partition *part, const char *key,
                              bool *found, int64_t *out, struct mr_error *err);
/* End the transaction with what was sent since the last end, or without it (aborts). */
void source_commit_end(struct source_task *s, bool aborts);
/* Where the plugin says so, also within a batch. true: it did. */
bool source_commit_as_told(struct source_task *s);
/* true: a transaction was ended, or is to be. */
bool source_commit_when_due(struct source_task *s, int64_t now_ms);

/* --- source_end.c ----------------------------------------------------------------------------- */

/* After the loop, before the plugin's stop. */
void source_end(struct source_task *s);

#endif
