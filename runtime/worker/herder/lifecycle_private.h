/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a lifecycle share: its state, and the moves that more than one of them makes.
 * Owner: the worker's loop. */
#ifndef WORKER_LIFECYCLE_PRIVATE_H
#define WORKER_LIFECYCLE_PRIVATE_H

#include "worker/herder/lifecycle.h"
#include "worker/supervisor/restart_policy.h"

#define LIFECYCLE_ASK_AGAIN_MS 250 /* task configurations that are not ready: the first time */

enum phase { IDLE, DUE, STARTING, ASKING, UP, DRAINING, WAITING, DOWN };
enum next { NEXT_START, NEXT_WAIT, NEXT_REST, NEXT_LEAVE, NEXT_DOWN }; /* after DRAINING */

struct lifecycle {
    char *name;
    const struct lifecycle_env *env;
    const struct catalog_plugin *plugin;
    struct props config;
    enum target_state target;
    enum phase phase;
    enum next next;
    enum state state;
    char *trace;
    char *version;
    struct task_lives tasks;
    /* A new configuration: no task's FAILED counts any more; those of a share wait for the
     * object. */
    bool fresh;
    bool stale; /* the tasks' configurations are older than the connector's: changed while paused */
    bool shared;
    bool object;      /* here; always, where nothing is shared */
    bool object_down; /* shared: it FAILED, and its host is for the tasks */
    bool gave_up;     /* the policy, over a task in a spent host: it is not asked again for that */
    bool host_failed; /* the host holds an object that FAILED in it: it can't be resumed */
    uint64_t serial;
    struct restart_policy policy;
    struct loop_timer timer; /* of DUE, WAITING, and ASKING again */
    int64_t wait_ms;         /* of NEXT_WAIT */
    int64_t ask_again_ms;
    bool settled;
    struct mr_error result;
};

/* --- lifecycle.c ------------------------------------------------------------------------------ */

/* A host takes what it is told. */
bool lifecycle_serves(const struct lifecycle *lc);
/* How it ended; err NULL: well. */
void lifecycle_settle(struct lifecycle *lc, const struct mr_error *err);
void lifecycle_show(struct lifecycle *lc, enum state state, const char *trace);
/* End whatever runs, then go on with `next`. */
void lifecycle_drain(struct lifecycle *lc, enum next next);
/* The connector itself can't run: the host serves nobody, unless tasks run in it. */
void lifecycle_fail(struct lifecycle *lc, const char *trace);
/* The host is there for the tasks alone. */
void lifecycle_tasks_alone(struct lifecycle *lc);

/* --- lifecycle_asking.c ----------------------------------------------------------------------- */

void lifecycle_asking_begin(struct lifecycle *lc);

#endif
