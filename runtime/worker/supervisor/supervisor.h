/* SPDX-License-Identifier: Apache-2.0 */
/* Runs connectors in host processes and tells how they fare. The herder says what is to run; this
 * room knows processes: spawn, hello, deadlines, signals, obituaries. Only this room knows that a
 * host holds exactly one connector.
 * Owner: the worker's loop. Nothing here blocks.
 *
 * The process becomes the heir of what dead hosts leave behind, and kills it: while a supervisor
 * lives it must have no children but those of spawn.h. Events may call back into the supervisor,
 * but only `died` may free it. */
#ifndef WORKER_SUPERVISOR_H
#define WORKER_SUPERVISOR_H

#include "base/loop.h"
#include "base/json.h"
#include "model/state.h"

struct catalog;
struct props;
struct providers;
struct secrets;
struct supervisor;

/* Why a host ended.
 * expected   it was asked to drain (supervisor_drain), and did or was made to
 * culprit    number of the task that would not stop (the host was killed for it), -1 none
 * text       the obituary: how it ended, the call it was in, its last words; ready for a trace */
struct supervisor_death {
    bool expected;
    int culprit;
    const char *text;
};

/* All are called on the loop. Texts and JSON are borrowed for the call. */
struct supervisor_events {
    void (*connector_status)(void *arg, const char *conn, enum state state, const char *trace,
                             const char *version);
    /* configs or error is NULL. */
    void (*task_configs)(void *arg, const char *conn, const json_t *configs, const char *error);
    void (*task_status)(void *arg, const char *conn, int task, enum state state, const char *trace);
    /* Its consumer's id in its group. */
    void (*task_member)(void *arg, const char *conn, int task, const char *member);
    void (*offsets_get)(void *arg, const char *conn, int64_t id, const json_t *partitions);
    void (*offsets_put)(void *arg, const char *conn, int64_t id, const json_t *entries);
    /* May this task, which was started with this generation, begin here? Answered by
     * supervisor_start_checked_take. */
    void (*start_check)(void *arg, const char *conn, int64_t id, int task, int64_t generation);
    /* Fence the producers of the connector's earlier generations. Answered by supervisor_fenced. */
    void (*fence)(void *arg, const char *conn, int64_t id);
    /* Records of this task went to the topic, or came from it. Once a topic and host, until
     * supervisor_forget_topics. */
    void (*topic_used)(void *arg, const char *conn, int task, const char *topic);
    /* What its configuration refers to has changed since what runs there was started. */
    void (*config_stale)(void *arg, const char *conn);
    void (*died)(void *arg, const char *conn, const struct supervisor_death *death);
};

struct supervisor_options {
    const char *exe;                   /* usually "/proc/self/exe" */
    const char *run_dir;               /* millrace.run.dir: lock files of hosts */
    const struct props *worker_props;  /* handed to hosts with WELCOME; borrowed for life */
    const struct secrets *secrets;     /* of what was resolved in these; NULL: nothing */
    const struct providers *providers; /* for names of classes; NULL: none */
    const struct catalog *catalog;     /* the same; where converters are */
    int64_t graceful_ms;               /* task.shutdown.graceful.timeout.ms */
    int64_t hello_ms;                  /* a host must say hello within this; 10 000 */
};

struct supervisor *supervisor_new(struct loop *loop, const struct supervisor_options *options,
                                  const struct supervisor_events *events, void *arg,
                                  struct mr_error *err);
void supervisor_free(struct supervisor **sup); /* hosts that are left are killed */

struct supervisor_connector {
    const char *conn;
    const char *library;    /* path of the plugin's shared object */
    const char *class_name; /* descriptor's own name in it */
    const struct props *config;
    enum target_state target;
    /* No connector object: the host holds tasks, and says nothing of the connector before its
     * target is told. */
    bool tasks_only;
};

/* Spawn a host for the connector and start the connector object in it, with the converters that its
 * configuration names, or else the worker's. It must not have a host now (supervisor_hosts).
 * Answer: connector_status, or died. */
int supervisor_start(struct supervisor *sup, const struct supervisor_connector *spec,
                     struct mr_error *err);
bool supervisor_hosts(const struct supervisor *sup, const char *conn);
/* It has a host that serves, and in which a task FAILED because the process itself has used up what
 * it may hold (too many schemas): what runs there may go on, what is to start should start in
 * another. */
bool supervisor_spent(const struct supervisor *sup, const char *conn);

/* To a connector that has a host; MR_ERR_CLOSED otherwise (its death is reported by `died`). */
int supervisor_target(struct supervisor *sup, const char *conn, enum target_state target);
int supervisor_ask_task_configs(struct supervisor *sup, const char *conn, int max);
int supervisor_start_task(struct supervisor *sup, const char *conn, int task,
                          const struct props *config, enum target_state target, int64_t generation);
int supervisor_task_target(struct supervisor *sup, const char *conn, int task,
                           enum target_state target);

/* Have its host tell of topics anew, as they are used from now on. */
int supervisor_forget_topics(struct supervisor *sup, const char *conn);

/* Stop one task: task_status UNASSIGNED within the graceful timeout. Else its siblings are drained
 * for at most a second, the host's group gets SIGTERM, then SIGKILL, and `died` names the culprit:
 * all within the graceful timeout + 1 s. */
int supervisor_stop_task(struct supervisor *sup, const char *conn, int task);

/* Stop everything of the connector and end its host: `died` with expected set, within the graceful
 * timeout + 1 s. */
int supervisor_drain(struct supervisor *sup, const char *conn);

/* Answers to offsets_get, offsets_put, start_check and fence, at once or later; entries is taken
 * (NULL with error). error: NULL none. Unknown conn or id: ignored. */
void supervisor_offsets_take(struct supervisor *sup, const char *conn, int64_t id, json_t *entries,
                             const char *error);
void supervisor_offsets_stored(struct supervisor *sup, const char *conn, int64_t id,
                               const char *error);

/* left: [text], ids that earlier lives of the task had in its group, all that the host may make
 * leave; taken, NULL none. */
void supervisor_start_checked_take(struct supervisor *sup, const char *conn, int64_t id, bool ok,
                                   json_t *left);
void supervisor_fenced(struct supervisor *sup, const char *conn, int64_t id, const char *error);

/* Hand every host, now and when it is born, its lease: two CLOCK_BOOTTIME times; 0, 0 = no lease is
 * needed (as at first). */
void supervisor_lease(struct supervisor *sup, int64_t soft_ms, int64_t hard_ms);
/* It lasts, or none is needed. What hosts asked for while it did may be of tasks that run elsewhere
 * by now. */
bool supervisor_leased(const struct supervisor *sup);

/* Levels of loggers have changed: tell every host. */
void supervisor_log_levels(struct supervisor *sup);

/* Before the first start: end hosts that an earlier worker of this run_dir left behind: wait up to
 * 3 s for their locks, then kill the holders. MR_ERR_CLOSED: cancel_fd (-1 none) became readable
 * before. Blocks; any thread. */
int supervisor_bury_orphans(const char *run_dir, int cancel_fd, struct mr_error *err);

/* For GET /millrace/… and tests: [{"conn","pid","state","stdout_dropped","silent_ms"}]. */
json_t *supervisor_describe(const struct supervisor *sup);

#endif
