/* SPDX-License-Identifier: Apache-2.0 */
/* What hosted.c, hosted_connector.c, hosted_task.c and hosted_question.c share, and nobody else
 * sees. All of it belongs to the control thread. */
#ifndef HOST_HOSTED_PRIVATE_H
#define HOST_HOSTED_PRIVATE_H

#include "base/map.h"
#include "host/connector_run.h"
#include "host/hosted.h"
#include "host/task/task.h"

#include <stdatomic.h>

/* One task. launched: it has a thread. */
struct tenant {
    struct conn *conn;
    struct tenant *next;
    int number;
    size_t slot;
    struct task *task; /* NULL: waits for the library, or for its predecessor */
    struct props config;
    enum target_state target;
    int64_t generation;
    bool stopping;
    bool stop_again; /* it was asked to stop after its last status: answer when it is gone */
    bool stopper;    /* a thread is inside task_stop */
    bool over;       /* its last status was sent */
    bool ended;      /* the task's thread said so */
    struct tenant *successor; /* started when this one has ended; owned */
};

struct conn {
    struct hosted *hosted;
    char *name;
    struct props config;
    json_t *plugins;             /* see plugin_places.h */
    struct connector_run *run;   /* NULL: its thread has ended */
    const struct plugin *plugin; /* NULL: not open yet */
    char *refused; /* why it can't be opened: trace for its tasks; NULL = not refused */
    size_t slot;
    struct tenant *tenants;
    struct map *topics; /* that the worker was told of: → anything */
};

struct question {
    int64_t id;
    struct tenant *tenant;
};

struct hosted {
    struct hosted_options opt;
    struct map *conns;
    bool slot_taken[BLACK_BOX_SLOTS];
    struct question *questions;
    size_t question_count;
    size_t question_cap;
    bool worker_gone;
    bool lease_lost;
    int64_t lease_hard_boot_ms;
    atomic_llong next_id; /* any thread */
    struct loop_timer tick;
};

/* --- hosted.c --------------------------------------------------------------------------------- */

/* The connector of this name; NULL: MR_ERR_PROTOCOL. */
struct conn *hosted_find(struct hosted *h, const char *name, struct mr_error *err);
/* A place in the black box, or THREAD_GUARD_NO_SLOT: a host with more tasks than slots runs them
 * all; those without one just leave no note. */
size_t hosted_slot_take(struct hosted *h);
void hosted_slot_give(struct hosted *h, size_t slot);
/* Set a member to a plugin's text, which may be anything; NULL: nothing. */
void hosted_set_text(json_t *body, const char *key, const char *text);
int hosted_send(struct hosted *h, enum msg_kind kind, json_t *body); /* taken */
void hosted_tick_start(struct hosted *h); /* some task wants attention from now on */

/* --- hosted_task.c ---------------------------------------------------------------------------- */

void hosted_task_launch_waiting(struct conn *conn); /* the library is open, or was refused */
void hosted_task_stop_all(struct conn *conn);
void hosted_task_lease_all(struct conn *conn); /* lost or renewed, as hosted says */
bool hosted_task_quiet_all(const struct conn *conn);
void hosted_task_forget_topics(struct conn *conn); /* tasks tell of them anew */

/* --- hosted_connector.c ----------------------------------------------------------------------- */

void hosted_connector_free(void *conn); /* nothing of it runs any more */
void hosted_connector_topic(struct conn *conn, int task, const char *topic); /* a task uses it */

/* --- hosted_question.c ------------------------------------------------------------------------ */

/* Send a question (body is taken; NULL: no memory for it), or answer it with an error at once. */
void hosted_question_ask(struct tenant *t, enum msg_kind kind, int64_t id, json_t *body);
void hosted_question_forget(struct hosted *h, const struct tenant *t); /* it is gone */
void hosted_question_refuse_all(struct hosted *h);

#endif
