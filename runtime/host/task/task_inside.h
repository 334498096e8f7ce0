/* SPDX-License-Identifier: Apache-2.0 */
/* A task from inside: what task.c and its neighbours share with the two loops and with what sends
 * for them (source/, sink/, send/). The host sees task.h alone. */
#ifndef HOST_TASK_INSIDE_H
#define HOST_TASK_INSIDE_H

#include "base/map.h"
#include "base/queue.h"
#include "host/host_api.h"
#include "host/task/task.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define TASK_KEPT 16

struct task {
    /* Fixed from birth. */
    char *connector;
    int number;
    const struct plugin *plugin;
    struct props raw_config; /* with references, as it was given */
    struct props raw_connector_config;
    const struct props *worker;
    const struct providers *providers;
    const json_t *plugins;
    struct black_box *box;
    size_t box_slot;
    const struct task_events *events;
    void *arg;
    pthread_t thread;
    int stop_fd;           /* eventfd, written once by task_stop, never read */
    int wake_fd;           /* eventfd, written by the plugin's threads */
    int command_fd;        /* eventfd, written by control after each change below */
    struct queue *answers; /* of struct task_answer, from control */

    /* Under lock, which is held for a few instructions only. */
    pthread_mutex_t lock;
    bool stopping;
    int64_t stop_ms; /* when it was asked to stop, monotonic */
    enum target_state target;
    bool lease_lost;
    int64_t lease_hard_boot_ms;
    bool resting; /* see task_lease.c */
    /* Ends a wait of the task's own kind (the consumer); NULL none; never blocks. */
    void (*waker)(void *arg);
    void *waker_arg;

    /* call_lock is held by control while it is inside the plugin's interrupt, so that interrupt
     * never overlaps stop. */
    pthread_mutex_t call_lock;
    bool interruptible;
    atomic_bool nudgeable;    /* the thread is in a call that a signal may end */
    atomic_bool topics_stale; /* control wants to hear of them anew */

    /* serve_lock is held by control while it serves a consumer that is lent. */
    pthread_mutex_t serve_lock;
    void (*server)(void *arg);
    void *server_arg;

    /* The task's thread only. */
    struct props config; /* values: resolved anew as each life begins */
    struct props connector_config;
    struct instance inst;
    const char *slot; /* the call of plugin code that it is in, NULL none */
    bool started;     /* the plugin's start was called: stop must be */
    /* [text]: ids that earlier lives had in the group, as the worker knows them; NULL none. */
    json_t *left;
    enum state reported;
    bool failed;
    int64_t failed_ms; /* when, monotonic */
    struct mr_error failure;
    char where[256];
    struct map *topics;     /* that were told: name → a copy of it; NULL: nobody wants to know */
    const char *topic_last; /* such a copy */
    struct task_answer *kept[TASK_KEPT]; /* came while another one was waited for */
    size_t kept_count;
};

/* --- for the loops; all on the task's thread -------------------------------------------------- */

/* Wait while the target is PAUSED, claim what nobody else may hold (NULL: nothing), ask the worker
 * whether the task is still to run here, make the instance. true: go on. false: end now (stopped,
 * not ours any more, or failed). claim: also again, when the lease was lost meanwhile; false: it
 * failed, or the task is stopping or without a lease */
bool task_begin(struct task *task, bool (*claim)(void *arg), void *arg);
void task_unmake(struct task *task); /* the instance, so that it can begin again */
/* The plugin's start(); reports RUNNING. false: failed, or stopped meanwhile. */
bool task_start_plugin(struct task *task);
void task_stop_plugin(struct task *task); /* its stop(), if start was called */
/* The plugin has ended the thread: none of its code is called any more, so that `slot` stays the
 * call that it did so in. First of all in a cleanup handler of the loop. */
void task_broken_off(struct task *task);

bool task_stopping(struct task *task);
int64_t task_stop_since(struct task *task); /* monotonic; when task_stopping */
bool task_paused(struct task *task);
/* RUNNING or PAUSED, when it differs from the last. */
void task_report(struct task *task, enum state state);
/* The first failure stays. where: what follows "in " in the trace, NULL none. Logs it. */
void task_fail(struct task *task, const struct mr_error *err, const char *where);

/* Around each call of plugin code: the black box, and what the plugin did wrong in it. slot: the
 * slot's name. task_leave gives rc as the framework may act on it, with err filled when it is
 * negative; the place for task_fail is then in task->where. */
void task_enter(struct task *task, const char *slot, bool nudgeable);
int task_leave(struct task *task, const char *slot, int rc, struct mr_error *err);
void task_left(struct task *task); /* in place of task_leave, where there is nothing to judge */

/* Wait for any of fds (the stop and command descriptors are added), at most until deadline_ms
 * (monotonic, INT64_MAX = for ever). count up to 4. Changes of target, stop, answers and signals
 * end it too. */
void task_wait(struct task *task, struct pollfd *fds, size_t count, int64_t deadline_ms);
void task_drain_fd(int eventfd); /* make an eventfd unreadable */

/* The next answer, or NULL; the caller frees it with task_answer_free. */
struct task_answer *task_answer_next(struct task *task);
/* The answer to one question; other answers are kept for task_answer_next. NULL: the task is
 * stopping. */
struct task_answer *task_answer_wait(struct task *task, int64_t id);
void task_answer_free(struct task_answer *answer);

/* What control may call while the loop runs: the waker ends waits, the server keeps a lent consumer
 * alive. NULL to take them away: none of them runs any more when this returns. */
void task_set_waker(struct task *task, void (*waker)(void *arg), void *arg);
void task_set_server(struct task *task, void (*server)(void *arg), void *arg);

void task_wake_locked(struct task *task); /* end its wait; with task->lock held */

/* --- task_lease.c: the host's lease; all on the task's thread --------------------------------- */

bool task_lease_held(struct task *task);
int64_t task_lease_hard_boot_ms(struct task *task); /* when it is lost */
/* Nothing that others could see is under way: from here on only task_lease_act leads on. */
void task_lease_rest(struct task *task);
/* false: the lease is lost, and the task, if it was resting, still is. */
bool task_lease_act(struct task *task);
/* Wait for ms, awake: what is under way stays so. false: the task ends, or the lease is lost. */
bool task_lease_wait(struct task *task, int64_t ms);
/* Rest for ms, and for as long as the lease is lost after that. false: the task ends. */
bool task_lease_sleep(struct task *task, int64_t ms);
void task_lease_end(struct task *task); /* the plugin's stop is called, lease or not */

/* --- task_topics.c ---------------------------------------------------------------------------- */

void task_topics_init(struct task *task);
void task_topics_deinit(struct task *task);
/* A record was delivered to this topic, or came from it; for each record. The task's thread. */
void task_topics_use(struct task *task, const char *topic);

/* client_conf_warn: logs it. */
void task_client_warning(void *task, const char *key, const char *text);

/* --- the two loops ---------------------------------------------------------------------------- */

void source_task_run(struct task *task);
void sink_task_run(struct task *task);

#endif
