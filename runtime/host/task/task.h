/* SPDX-License-Identifier: Apache-2.0 */
/* One task: a thread that runs a source or a sink between a plugin and Kafka. Made, told and freed
 * by the host's control thread; it answers by events, which are called on the task's thread and
 * must only post.
 *
 *   NEW ─start─► STARTING ─start ok─► RUNNING ⇄ PAUSED ─stop─► STOPPING ─► STOPPED (UNASSIGNED)
 *                    └──────── error ────┴───────────────────────┴──────► FAILED
 */
#ifndef HOST_TASK_TASK_H
#define HOST_TASK_TASK_H

#include "base/json.h"
#include "host/plugin_load.h"
#include "link/black_box.h"
#include "model/state.h"

struct task;

/* The worker's answer to a question of the task, handed in by control. */
struct task_answer {
    int64_t id;
    json_t *entries; /* OFFSETS, START_CHECKED: taken; else NULL */
    bool ok;         /* START_CHECKED */
    char error[512]; /* "" none */
};

/* Called on the task's thread; each only posts a frame to the control thread. */
struct task_events {
    /* UNASSIGNED, FAILED: last. */
    void (*status)(void *arg, struct task *task, enum state state, const char *trace);
    /* Taken; gives the id. */
    int64_t (*ask_offsets)(void *arg, struct task *task, json_t *partitions);
    int64_t (*put_offsets)(void *arg, struct task *task, json_t *entries);
    int64_t (*ask_start)(void *arg, struct task *task);
    /* Records were delivered to this topic, or came from it: once each, until task_topics_forget.
     * NULL: nobody keeps that. */
    void (*topic_used)(void *arg, struct task *task, const char *topic);
    void (*member)(void *arg, struct task *task, const char *id); /* its consumer's, in its group */
    int64_t (*ask_fence)(void *arg, struct task *task); /* source tasks under exactly-once */
    /* The lease is lost, and nothing is under way any more: ask task_lease_quiet. */
    void (*quiet)(void *arg, struct task *task);
    /* The thread's last act: task_free may be called. */
    void (*ended)(void *arg, struct task *task);
};

struct task_spec {
    const char *connector;
    int number;
    const struct plugin *plugin;          /* source or sink */
    const struct props *config;           /* the task's, copied */
    const struct props *connector_config; /* copied */
    const struct props *worker;           /* borrowed for the process's life */
    const struct providers *providers;    /* the same; NULL: none */
    const json_t *plugins;                /* see plugin_places.h; borrowed for the task's life */
    enum target_state target;
    bool lease_lost; /* it begins resting */
    int64_t lease_hard_boot_ms;
    struct black_box *box;
    size_t box_slot;
    const struct task_events *events;
    void *arg;
};

/* Within `status` FAILED: the code of its failure. */
int task_failure_code(const struct task *task);

/* The thread runs when this returns. */
struct task *task_new(const struct task_spec *spec, struct mr_error *err);
/* Pause waits for the current call. */
void task_set_target(struct task *task, enum target_state target);
/* Ask it to end: the stop descriptor becomes readable, interrupt is called, blocking calls of the
 * thread return EINTR (repeated each 100 ms by task_nudge until it ended). Runs plugin code and may
 * hang in it: control calls it, and task_free, on a thread made for that. */
void task_stop(struct task *task);
void task_nudge(struct task *task);
void task_topics_forget(struct task *task); /* tell of topics anew, as they are used from now on */
/* Malloc'ed; any order of ids. */
void task_answer_take(struct task *task, struct task_answer *answer);
/* Control, each 200 ms: serves a lent consumer during a long put. */
void task_serve(struct task *task);

/* The host's lease, on which all of them run (task_lease.c). Lost: what the task does now it may
 * end (a call of the plugin, the way out of it), then it is quiet: no poll, no put, no flush, no
 * commit; records that were handed over and not delivered are taken back from the producer. Its
 * status stays. A sink leaves its group at hard_boot_ms (CLOCK_BOOTTIME), when another member may
 * be given its work; until then it keeps its place. A task that is stopped meanwhile ends without
 * sending or committing.
 * Renewed: it goes on in place; records that were taken back are sent again, in order. */
void task_lease_lost(struct task *task, int64_t hard_boot_ms);
void task_lease_renewed(struct task *task);
/* It does nothing, and will not before the lease is renewed. */
bool task_lease_quiet(struct task *task);

void task_free(struct task **task); /* after `ended`: joins */

#endif
