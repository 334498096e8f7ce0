/* SPDX-License-Identifier: Apache-2.0 */
/* One host process, from spawn to obituary: its link, its output, its deadlines, its end. Knows
 * nothing of connectors and tasks. Owner: the worker's loop. Nothing here blocks but child_free. */
#ifndef WORKER_CHILD_H
#define WORKER_CHILD_H

#include "base/json.h"
#include "base/loop.h"
#include "link/msg.h"

#include <sys/types.h>

struct child;
struct nest;

/* trace     the obituary, a sentence and some lines below it
 * line      the sentence alone
 * forced    the worker had to end it (it was not drained, or not in time; not: it was to drain
 *           before it said hello)
 * All borrowed for the call. */
struct child_death {
    const char *line;
    const char *trace;
    bool forced;
};

struct child_events {
    /* It said hello, and speaks our version: send it WELCOME first. Frames sent earlier follow by
     * themselves. */
    void (*ready)(void *arg);
    /* A frame other than HELLO, PONG and DRAINED, in a state that allows it. Its body is
     * unchecked. */
    void (*frame)(void *arg, enum msg_kind kind, const json_t *body);
    /* It is dead and reaped, with all it forked into its group; every frame it sent was delivered.
     * The child is already freed. Called once, last. */
    void (*gone)(void *arg, const struct child_death *death);
};

struct child_options {
    struct nest *nest; /* what it is forked from; outlives the child */
    const char *name;  /* for logs and ps */
    int64_t hello_ms;  /* it must say hello within this */
};

/* Spawn it. NULL with err: no descriptors. Where no process comes about for another reason, or when
 * it is called off before, `gone` says so. options are copied, events borrowed for life. */
struct child *child_new(struct loop *loop, const struct child_options *options,
                        const struct child_events *events, void *arg, struct mr_error *err);

/* Kill what is left, without events; waits for the process to end, at most a second. Not inside a
 * callback of c. */
void child_free(struct child **c);

/* Queue a frame, also before it said hello; body is taken. 0, MR_ERR_TOO_LARGE, or MR_ERR_CLOSED:
 * it is dying (a child that leaves 32 MiB unread is killed for that). */
int child_send_take(struct child *c, enum msg_kind kind, json_t *body);

/* Ask it to stop everything and exit, by DRAIN; after within_ms it is ended by force. A child that
 * has not said hello is ended at once. Asked twice, the earlier deadline counts. reason: why force
 * was needed, for the obituary ("because …"). */
void child_drain(struct child *c, int64_t within_ms, const char *reason);

/* End it by force now: SIGTERM to its group, SIGKILL CHILD_TERM_MS later. reason NULL: the one
 * given to child_drain. */
#define CHILD_TERM_MS 200
void child_end(struct child *c, const char *reason);

/* SIGKILL to its group now, and nothing of what it still says is heard: it broke a rule. The first
 * reason given to any of these stays. */
MR_PRINTF(2, 3)
void child_kill(struct child *c, const char *fmt, ...);

/* The task whose call the obituary tells, since it would not stop; -1 (the default): the most
 * telling call. */
void child_set_culprit(struct child *c, int task);

/* Append what a task is doing now, from the black box ("task 0 was in poll for 3 ms"); nothing when
 * it is in no call. */
void child_call(const struct child *c, int task, struct buf *out);

bool child_greeted(const struct child *c); /* it said hello and is not dying */
bool child_serving(const struct child *c); /* neither draining nor dying: new work can be given */
pid_t child_pid(const struct child *c);    /* 0: it is not there yet */
const char *child_state_name(const struct child *c);
uint64_t child_dropped_bytes(const struct child *c); /* of its output */
int64_t child_silent_ms(const struct child *c); /* a ping is unanswered for so long; 0: none is */

#endif
