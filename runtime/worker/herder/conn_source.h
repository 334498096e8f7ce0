/* SPDX-License-Identifier: Apache-2.0 */
/* Where configurations, target states, assignments and states come from, and who carries out a
 * change: all that the herder knows of it. A standalone worker has its memory (standalone.c); a
 * cluster has the config topic, the status topic and the group (distributed.c), behind the same
 * table and above the same connectors.h. Owner: the worker's loop. */
#ifndef WORKER_CONN_SOURCE_H
#define WORKER_CONN_SOURCE_H

#include "worker/herder/connectors.h"
#include "worker/herder/herder.h"
#include "worker/store/offset_store.h"
#include "worker/worker_config.h"

/* A connector that is known, whether it runs here or not. Borrowed until the source changes.
 * plugin   NULL: its class is not installed on this worker */
struct source_conn {
    const char *name;
    const struct catalog_plugin *plugin;
    const struct props *config; /* as given */
    enum target_state target;
    size_t task_count;
};

/* How a connector or task stands, wherever it runs. Borrowed likewise; trace, version: NULL
 * none. */
struct source_state {
    enum state state;
    const char *worker_id;
    const char *trace;
    const char *version;
};

/* A valid configuration to be stored. target: of a new connector, NULL the usual one; a known one
 * keeps its own. */
struct source_put {
    const char *name;
    const struct catalog_plugin *plugin;
    const struct props *config;
    const enum target_state *target;
};

/* Whose business a change is: anybody's who has its lease, the leader's, the leader's while no
 * round is open, or that of whoever has the connector (task -1) or the task, likewise. */
enum source_deed { SOURCE_ANYBODY, SOURCE_LEADS, SOURCE_LEADS_SETTLED, SOURCE_OWNS };

/* What a source is made with. Borrowed for its life. readable: as below; failed: it can't go on,
 * the worker is to end. Neither from inside a call. */
struct source_parts {
    struct loop *loop;
    const struct worker_config *config;
    const struct catalog *catalog;
    struct supervisor *sup;
    void (*readable)(void *arg);
    void (*failed)(void *arg, const struct mr_error *err);
    void *arg;
};

/* Begins what implements it.
 *
 * run_on     once, before the first change: what is to run here is told to these
 * find       false: unknown
 * next       for (size_t i = 0; next(source, &i, &conn);), oldest first
 * task       the configuration of a task below task_count, as made by the connector, with what
 *            Connect adds
 * state      task -1: of the connector. false: none is known
 * next_task  for (int t = -1; (t = next_task(source, name, t)) >= 0;): tasks that have a state
 * who        may this be done now, and here? 0 and url NULL: yes; 0 and a URL (borrowed): there; or
 *            MR_ERR_STATE with a text for the client. NULL: everything is done here
 * put, remove, target, restart, restart_task
 *            stored, then run; done as in connectors.h. Refused (MR_ERR_CLOSED, MR_ERR_FULL,
 *            through done) before anything is stored. Standalone, a new connector whose first start
 *            fails is forgotten again: who was told that it failed finds nothing left behind
 * tasks      task configurations that another worker's connector made, for the leader to store.
 *            NULL: not taken
 * is_signed  may an internal call be believed? 0, or an HTTP status and why. NULL with `tasks`
 * logger     have every worker set a logger's level. NULL: there is no other worker
 * made       a connector made the configurations of its tasks: answered by connectors_run or
 *            connectors_keep, now or later
 * told, orphaned, share, shared
 *            as in connectors.h; NULL where nothing is shared
 * may_start  is this task, started with this generation, still to run here?
 * joined     a sink task that runs here is this member of its consumer group. NULL: nobody else
 *            need know
 * member     the newest such id of that task, "CONN-TASK", that any worker has told; NULL none.
 *            NULL with `joined`
 * fence      no producer of an earlier set of this source's tasks can commit any more once done
 *            runs. patient: it is one of ours, tried again until that is settled. NULL: there are
 *            no transactions
 * hear       done, once member knows what other workers have told until now, or soon without that.
 *            NULL with `joined`
 * sync       done, once all that is known elsewhere is known here: before may_start is asked. NULL:
 *            that is so at any time
 * readable   does it know what there is? NULL: always. Until then parts->readable is to come
 * stage      what it is still doing before it can serve, as the end of "currently …"; NULL: it
 *            serves, as does a NULL function
 * freshen    read what others have written; then 0, or MR_ERR_STATE with a text for the client
 *            while a stop of this connector (name NULL: of none) is not through everywhere, or
 *            another code. NULL: all is known here at once
 * topic_used a task here sent records to this topic, or was given some of it: kept, unless it is
 *            known
 * next_topic for (size_t i = 0; (topic = next_topic(source, name, &i)) != NULL;): the topics that a
 *            connector has used
 * forget_topics
 *            none of them is known any more, until it is used again
 * unwell     it can't do its work for now: why, as a sentence; NULL: it can, as does a NULL
 *            function
 * shutdown   connectors have ended: let go of what is held outside; then fn. NULL: nothing is
 * marks      after a restart that was asked for by parts `state` shows these as RESTARTING at
 *            once */
struct conn_source {
    void (*run_on)(struct conn_source *source, struct connectors *connectors);
    bool (*find)(const struct conn_source *source, const char *name, struct source_conn *out);
    bool (*next)(const struct conn_source *source, size_t *cursor, struct source_conn *out);
    const struct props *(*task)(const struct conn_source *source, const char *name, int task);
    bool (*state)(const struct conn_source *source, const char *name, int task,
                  struct source_state *out);
    int (*next_task)(const struct conn_source *source, const char *name, int after);
    int (*who)(const struct conn_source *source, enum source_deed deed, const char *name, int task,
               const char **url, struct mr_error *err);
    void (*put)(struct conn_source *source, const struct source_put *put, connectors_done done,
                void *arg);
    void (*remove)(struct conn_source *source, const char *name, connectors_done done, void *arg);
    void (*target)(struct conn_source *source, const char *name, enum target_state target,
                   connectors_done done, void *arg);
    void (*restart)(struct conn_source *source, const char *name,
                    const struct connectors_plan *plan, connectors_done done, void *arg);
    void (*restart_task)(struct conn_source *source, const char *name, int task,
                         connectors_done done, void *arg);
    void (*tasks)(struct conn_source *source, const char *name, const struct props *tasks,
                  size_t count, connectors_done done, void *arg);
    int (*is_signed)(const struct conn_source *source, const struct herder_claim *claim,
                     struct mr_error *err);
    void (*logger)(struct conn_source *source, const char *name, const char *level,
                   connectors_done done, void *arg);
    void (*made)(struct conn_source *source, const char *conn, struct props *configs, size_t count);
    void (*told)(struct conn_source *source, const char *conn, int task, enum state state,
                 const char *trace);
    void (*orphaned)(struct conn_source *source, const struct lifecycle_orphans *orphans);
    void (*share)(struct conn_source *source, const char *conn, struct share *out);
    void (*shared)(struct conn_source *source, const char *conn);
    bool (*may_start)(const struct conn_source *source, const char *conn, int task,
                      int64_t generation);
    void (*joined)(struct conn_source *source, const char *task, const char *member);
    const char *(*member)(const struct conn_source *source, const char *task);
    void (*hear)(struct conn_source *source, connectors_done done, void *arg);
    void (*fence)(struct conn_source *source, const char *conn, bool patient, connectors_done done,
                  void *arg);
    void (*sync)(struct conn_source *source, connectors_done done, void *arg);
    bool (*readable)(const struct conn_source *source);
    const char *(*stage)(const struct conn_source *source);
    const char *(*unwell)(const struct conn_source *source);
    void (*freshen)(struct conn_source *source, const char *name, connectors_done done, void *arg);
    void (*topic_used)(struct conn_source *source, const char *conn, int task, const char *topic);
    const char *(*next_topic)(const struct conn_source *source, const char *name, size_t *cursor);
    void (*forget_topics)(struct conn_source *source, const char *name);
    void (*shutdown)(struct conn_source *source, loop_fn fn, void *arg);
    void (*free)(struct conn_source *source);
    struct offset_store offsets; /* of hosts */
    struct peer *peer;           /* HTTP to other workers; NULL where there are none */
    bool marks;
};

#endif
