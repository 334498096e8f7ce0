/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one connector on this worker: its host, its connector object, and those of its tasks
 * that are here. A standalone worker has everything of a connector, and its tasks are what the
 * object makes of them (lifecycle_asking_run). A worker of a cluster has a share of it: perhaps the
 * object, and any of the tasks (lifecycle_share_put). Knows nothing of where configurations come
 * from and nothing of requests. Owner: the worker's loop. */
#ifndef WORKER_LIFECYCLE_H
#define WORKER_LIFECYCLE_H

#include "base/json.h"
#include "base/loop.h"
#include "model/state.h"
#include "worker/herder/task_life.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/supervisor.h"

struct lifecycle;

/* Tasks whose host died, and that do not start again now; count 0: they begin, and nobody else may
 * take their ids any more. All borrowed for the call. */
struct lifecycle_orphans {
    const char *conn;
    const struct catalog_plugin *plugin;
    const struct props *config;
    const int32_t *tasks;
    size_t count;
};

/* What all lifecycles share. Borrowed for life.
 *
 * made      the connector made the configurations of its tasks: an array of objects of text,
 *           checked. To be answered, now or later, by lifecycle_asking_run with what is to run, or
 *           by lifecycle_asking_keep
 * told      a state changed, of a task or of the connector (-1); not to call back into the
 *           lifecycle. NULL: nobody listens
 * orphaned  transactions that these may have left open nobody ends; likewise
 * moved     the lifecycle moved on by itself (a timer): ask it how it stands. Called last in
 *           whatever called it */
struct lifecycle_env {
    struct loop *loop;
    struct supervisor *sup;
    int restart_max; /* millrace.restart.max */
    void (*made)(void *arg, const char *conn, struct props *configs, size_t count);
    void (*moved)(void *arg, const char *conn);
    void (*told)(void *arg, const char *conn, int task, enum state state, const char *trace);
    void (*orphaned)(void *arg, const struct lifecycle_orphans *orphans);
    void *arg;
};

/* What is to run. All copied, but for plugin.
 *
 * shared   a share of a connector: its tasks come by lifecycle_share_put
 * object   shared: the connector object is here
 * serial   shared: of the configuration, above 0; for lifecycle_have */
struct lifecycle_work {
    const struct catalog_plugin *plugin;
    const struct props *config;
    enum target_state target;
    bool shared;
    bool object;
    uint64_t serial;
};

/* How it stands with what was asked last. ENDING takes at most the graceful timeout and a second;
 * STARTING as long as the plugin's code. */
enum lifecycle_busy { LIFECYCLE_FREE, LIFECYCLE_ENDING, LIFECYCLE_STARTING };

struct lifecycle *lifecycle_new(const char *name, const struct lifecycle_env *env);
void lifecycle_free(struct lifecycle **lc); /* has no host any more */

enum lifecycle_busy lifecycle_busy(const struct lifecycle *lc);
/* Has something ended since the last call: a start, a stop, a restart? err: filled when it failed,
 * cleared otherwise. A start whose host crashed counts as done, since the restart policy takes
 * over. */
bool lifecycle_settled(struct lifecycle *lc, struct mr_error *err);

/* Requests, never while it is ENDING (but for lifecycle_end). Each ends what runs first where it
 * must; a start that is under way is given up for a later request. */
void lifecycle_apply(struct lifecycle *lc, const struct lifecycle_work *work); /* a new one */
void lifecycle_target(struct lifecycle *lc, enum target_state target);
void lifecycle_restart(struct lifecycle *lc); /* the connector; its tasks only if they must */
void lifecycle_restart_all(struct lifecycle *lc);
/* A FAILED task is to start with the next start. */
void lifecycle_revive(struct lifecycle *lc, int task);
void lifecycle_start_revived(struct lifecycle *lc);          /* now */
void lifecycle_restart_task(struct lifecycle *lc, int task); /* the task exists */
void lifecycle_end(struct lifecycle *lc); /* stop everything; a share is this worker's no more */
/* Shown as RESTARTING until it moves; task -1: the connector. Standalone the trace stays meanwhile,
 * a share is told none. */
void lifecycle_mark_restarting(struct lifecycle *lc, int task);

/* Standalone: what is to run for the configurations that were made; copied. */
void lifecycle_asking_run(struct lifecycle *lc, const struct props *configs, size_t count);
/* A share: they were taken note of; what is here goes on. */
void lifecycle_asking_keep(struct lifecycle *lc);
/* A share: make them anew, if the connector runs here. */
void lifecycle_asking_again(struct lifecycle *lc);

/* A share grows and shrinks, by any number of calls while nothing ENDs before the first of them. A
 * task that is put is started, also when it FAILED before; with another configuration than it has,
 * it is stopped first. One that is dropped is stopped, told UNASSIGNED, and forgotten. */
void lifecycle_share_object(struct lifecycle *lc, bool object);
void lifecycle_share_put(struct lifecycle *lc, int task, const struct props *config,
                         int64_t generation);
void lifecycle_share_drop(struct lifecycle *lc, int task);
/* config, tasks: borrowed until the next call. serial 0: nothing was applied yet, or all of it was
 * ended. */
struct lifecycle_have {
    const struct props *config;
    uint64_t serial;
    bool object;
    enum target_state target;
    const struct task_lives *tasks;
};
void lifecycle_have(const struct lifecycle *lc, struct lifecycle_have *out);

/* Events of the supervisor. */
void lifecycle_on_connector(struct lifecycle *lc, enum state state, const char *trace,
                            const char *version);
void lifecycle_asking_made(struct lifecycle *lc, const json_t *configs, const char *error);
void lifecycle_on_task(struct lifecycle *lc, int task, enum state state, const char *trace);
void lifecycle_on_died(struct lifecycle *lc, const struct supervisor_death *death);
bool lifecycle_may_start(const struct lifecycle *lc, int task); /* MSG_START_CHECK */

/* Reads. Borrowed until the next call. trace: NULL none. tasks: those that are here. */
struct lifecycle_view {
    enum state state;
    const char *trace;
    const char *version;
    const struct task_lives *tasks;
};
void lifecycle_view(const struct lifecycle *lc, struct lifecycle_view *out);
bool lifecycle_hosted(const struct lifecycle *lc);

#endif
