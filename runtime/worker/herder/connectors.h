/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors that run on this worker, and the changes asked of them: per connector one after
 * another, each answered exactly once. Local work only: where configurations and assignments come
 * from is somebody else's (standalone.c).
 * Owner: the worker's loop. */
#ifndef WORKER_CONNECTORS_H
#define WORKER_CONNECTORS_H

#include "worker/herder/share.h"

#define CONNECTORS_MAX 10000
#define CONNECTORS_QUEUED_MAX 64 /* changes that wait for one connector */

struct connectors;

/* err: NULL when it was done. Done means: for a start, that the connector runs and its tasks were
 * told to (or that its host crashed and the restart policy has taken over, or that a later request
 * has overtaken it); for a stop, that nothing runs any more. May be called before the request
 * returns. */
typedef void (*connectors_done)(void *arg, const struct mr_error *err);

/* Borrowed for life.
 *
 * made     as in lifecycle.h; answered by connectors_run or connectors_keep
 * told, orphaned
 *          as in lifecycle.h; NULL: nobody listens
 * share    of a cluster: what of this connector is to run here now? The answer is freed by
 *          share_deinit
 * shared   of a cluster: after a connectors_reshare nothing ends any more that is not wanted
 *          here */
struct connectors_options {
    struct loop *loop;
    struct supervisor *sup;
    int restart_max;
    void (*made)(void *arg, const char *conn, struct props *configs, size_t count);
    void (*told)(void *arg, const char *conn, int task, enum state state, const char *trace);
    void (*orphaned)(void *arg, const struct lifecycle_orphans *orphans);
    void (*share)(void *arg, const char *conn, struct share *out);
    void (*shared)(void *arg, const char *conn);
    void *arg;
};

struct connectors *connectors_new(const struct connectors_options *options);
/* Changes that wait are answered MR_ERR_CLOSED. */
void connectors_free(struct connectors **connectors);

/* Would a change of this connector be taken now? 0, or MR_ERR_CLOSED or MR_ERR_FULL with a text for
 * the client. */
int connectors_may_change(const struct connectors *all, const char *name, struct mr_error *err);

/* Changes, each queued behind the earlier ones of its connector. MR_ERR_FULL, MR_ERR_CLOSED
 * (shutting down) and MR_ERR_NOT_FOUND come through done. fn NULL: nobody waits. */
void connectors_apply(struct connectors *all, const char *name, const struct lifecycle_work *work,
                      connectors_done done, void *arg);
void connectors_remove(struct connectors *all, const char *name, connectors_done done, void *arg);
void connectors_target(struct connectors *all, const char *name, enum target_state target,
                       connectors_done done, void *arg);
void connectors_restart_task(struct connectors *all, const char *name, int task,
                             connectors_done done, void *arg);

/* connector, tasks: whether these are meant at all; only_failed: of those meant, only what is
 * FAILED when this is called. A plain restart is {.connector = true}, and done when the connector
 * has restarted. For any other, what is meant is marked RESTARTING and done is called before
 * anything is restarted, since Connect answers with the states as marked. */
struct connectors_plan {
    bool connector;
    bool tasks;
    bool only_failed;
};
void connectors_restart(struct connectors *all, const char *name,
                        const struct connectors_plan *plan, connectors_done done, void *arg);

void connectors_run(struct connectors *all, const char *name, const struct props *configs,
                    size_t count);

/* In place of connectors_run where the configurations were taken note of: what is here goes on. */
void connectors_keep(struct connectors *all, const char *name);
/* Have the configurations of the tasks made anew, if the connector runs here: as soon as nothing of
 * it is ending. A start that is under way does that in any case. */
void connectors_ask_again(struct connectors *all, const char *name);

bool connectors_has(const struct connectors *all, const char *name); /* anything of it is here */

/* What is wanted of a connector here may have changed: looked at as soon as nothing of it is
 * ending, then gone for. */
void connectors_reshare(struct connectors *all, const char *name);
/* Is that still to come, or something still ending? */
bool connectors_sharing(const struct connectors *all, const char *name);

/* End every host, answer every change that waits with MR_ERR_CLOSED; then fn. No change is taken
 * after that. */
void connectors_shutdown(struct connectors *all, loop_fn fn, void *arg);

/* NULL: not here. */
const struct lifecycle *connectors_find(const struct connectors *all, const char *name);
size_t connectors_hosts(const struct connectors *all); /* connectors that have a host now */
/* Is this task one that is to run here now? */
bool connectors_may_start(const struct connectors *all, const char *name, int task);

/* Events of the supervisor; struct connectors is the argument. */
void connectors_on_connector(void *arg, const char *conn, enum state state, const char *trace,
                             const char *version);
void connectors_on_configs(void *arg, const char *conn, const json_t *configs, const char *error);
void connectors_on_task(void *arg, const char *conn, int task, enum state state, const char *trace);
void connectors_on_died(void *arg, const char *conn, const struct supervisor_death *death);

#endif
