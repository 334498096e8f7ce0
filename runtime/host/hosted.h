/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that this host runs: connectors, their tasks, and the questions that tasks have put to
 * the worker. Any number of connectors; nothing here knows that one is usual. Owner: the control
 * thread; nothing here blocks. */
#ifndef HOST_HOSTED_H
#define HOST_HOSTED_H

#include "base/json.h"
#include "base/loop.h"
#include "host/plugin_places.h"
#include "link/black_box.h"
#include "link/msg.h"
#include "model/state.h"

struct hosted;

struct hosted_options {
    struct loop *loop; /* all borrowed for the process's life */
    struct black_box *box;
    const struct props *worker;
    const struct providers *providers; /* NULL: none */
    /* Queue a frame; body is taken. A negative code: it was not queued. */
    int (*send)(void *arg, enum msg_kind kind, json_t *body);
    /* A task or connector has ended, or a task is quiet: look whether anything is left. */
    void (*ended)(void *arg);
    void *arg;
};

struct hosted *hosted_new(const struct hosted_options *options); /* aborts out of memory */
void hosted_free(struct hosted **h); /* only when nothing is left in it */

struct hosted_connector {
    const char *name;
    const char *library;
    const char *class_name;
    const json_t *plugins; /* see plugin_places.h */
    const struct props *config;
    enum target_state target;
    bool tasks_only; /* no connector object before its target is told */
};

struct hosted_task {
    const char *conn;
    int number;
    const struct props *config;
    enum target_state target;
    int64_t generation; /* the worker's number for this start: START_CHECK repeats it */
};

/* Commands of the worker. An error means that the worker broke a rule (an unknown connector, one
 * started twice). What the command leads to is answered by frames. */
int hosted_connector_start(struct hosted *h, const struct hosted_connector *spec,
                           struct mr_error *err);
int hosted_connector_target(struct hosted *h, const char *conn, enum target_state target,
                            struct mr_error *err);
int hosted_connector_task_configs(struct hosted *h, const char *conn, int max,
                                  struct mr_error *err);
/* Tell the worker of topics anew, as they are used from now on. */
int hosted_connector_forget_topics(struct hosted *h, const char *conn, struct mr_error *err);
/* A task that is still there under this number is stopped first, and this one started when it has
 * ended. */
int hosted_task_start(struct hosted *h, const struct hosted_task *spec, struct mr_error *err);
int hosted_task_target(struct hosted *h, const char *conn, int number, enum target_state target,
                       struct mr_error *err);
int hosted_task_stop(struct hosted *h, const char *conn, int number, struct mr_error *err);

/* An answer to question id: handed to the task that asked, or dropped when it is gone. entries is
 * taken. */
struct hosted_answer {
    int64_t id;
    json_t *entries;
    bool ok;
    const char *error; /* NULL none */
};
void hosted_question_answer_take(struct hosted *h, const struct hosted_answer *answer);
/* The worker is gone: every question that is open, and every further one, is answered with an
 * error. */
void hosted_worker_gone(struct hosted *h);

/* The lease of this host (task/task.h says what its tasks do). Tasks that are started while it is
 * lost wait for it. */
void hosted_lease_lost(struct hosted *h, int64_t hard_boot_ms);
void hosted_lease_renewed(struct hosted *h);
bool hosted_quiet(const struct hosted *h); /* the lease is lost, and no task does anything */

/* Ask every task to end; those that have not begun never do. */
void hosted_stop_tasks(struct hosted *h);
void hosted_end_connectors(struct hosted *h); /* let the connector threads end */
size_t hosted_task_count(const struct hosted *h);
size_t hosted_connector_count(const struct hosted *h); /* whose threads have not ended */

#endif
