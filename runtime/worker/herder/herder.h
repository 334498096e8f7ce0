/* SPDX-License-Identifier: Apache-2.0 */
/* The herder: owns all state of connectors and tasks, decides what runs, answers REST. Never
 * blocks.
 * Owner: the worker's loop; every function is called there and every callback runs there.
 * Spec: org.apache.kafka.connect.runtime.Herder. */
#ifndef WORKER_HERDER_H
#define WORKER_HERDER_H

#include "base/json.h"
#include "base/loop.h"
#include "model/state.h"
#include "worker/supervisor/catalog.h"
#include "worker/worker_config.h"

struct herder;

/* How a change ended. body: what REST shows (borrowed, may be NULL). text: it shows this JSON, which
 * may be taken out of it; NULL: the body. err: set when it failed; its
 * code gives the status (rest/entities has the table). message: what the client reads when err is
 * set, never cut (a list of problems may be longer than err->text). created: the connector is new.
 * elsewhere: nothing was done: it is that worker's to do, by the URL that it advertises; "": whose
 * is not known at the moment. */
struct herder_answer {
    const struct mr_error *err;
    const char *message;
    const json_t *body;
    struct buf *text;
    bool created;
    const char *elsewhere;
};
typedef void (*herder_done)(void *arg, const struct herder_answer *answer);

struct conn_source;
struct peer;
struct source_parts;

/* loop, config, catalog: borrowed for life. open: standalone_open, distributed_open. readable: from
 * now on reads are true, where that was not so at once (herder_readable). failed: the worker can't
 * go on (a cluster's topics or its group): it is to be ended; may be NULL where that cannot be. */
struct herder_options {
    struct loop *loop;
    const struct worker_config *config;
    const struct catalog *catalog;
    struct conn_source *(*open)(const struct source_parts *parts, struct mr_error *err);
    void (*readable)(void *arg);
    void (*failed)(void *arg, const struct mr_error *err);
    void *arg;
};

/* Opens where configurations and offsets are, begins to ask Kafka for its cluster id (answers do
 * not wait for that). NULL with err. */
struct herder *herder_new(const struct herder_options *options, struct mr_error *err);
/* What waits is answered MR_ERR_CLOSED, hosts that are left are killed. */
void herder_free(struct herder **herder);
/* Take no changes any more (those that wait are answered MR_ERR_CLOSED), end every host in order,
 * all at once; then fn. */
void herder_shutdown(struct herder *herder, loop_fn fn, void *arg);
/* The connectors of the command line were put and answered: with the cluster id known, the worker
 * is ready. */
void herder_started(struct herder *herder);

/* Reads: from memory, at once. New references; NULL when the connector (or task) is unknown or has
 * no status yet. */
json_t *herder_root(struct herder *herder); /* {"version","commit","kafka_cluster_id"} */
bool herder_readable(const struct herder *herder);
bool herder_ready(const struct herder *herder); /* for /health: start-up is over */
/* For /health too: why the worker can't do its work though start-up is over, as a sentence; NULL:
 * it can. */
const char *herder_unwell(const struct herder *herder);
/* "reading connector files", … for both and for time-outs, and since when (wall clock; 0: that is
 * no matter). */
const char *herder_stage(const struct herder *herder);
int64_t herder_stage_since(const struct herder *herder);
/* Kafka does not answer: since when and why, as a sentence, or "". */
void herder_trouble(const struct herder *herder, char *out, size_t size);
json_t *herder_names(struct herder *herder);
json_t *herder_info(struct herder *herder, const char *conn);
json_t *herder_config(struct herder *herder, const char *conn);
json_t *herder_status(struct herder *herder, const char *conn);
json_t *herder_tasks(struct herder *herder, const char *conn);
json_t *herder_task_status(struct herder *herder, const char *conn, int task);
json_t *herder_plugins(struct herder *herder, bool connectors_only);
/* Topics that a connector has used: {"c": {"topics": […]}}, also of an unknown one. NULL with err,
 * MR_ERR_UNSUPPORTED: the worker keeps none. */
json_t *herder_topics(struct herder *herder, const char *conn, struct mr_error *err);
/* Forget them, soon. MR_ERR_UNSUPPORTED: the worker keeps none, or forgets none when asked. */
int herder_reset_topics(struct herder *herder, const char *conn, struct mr_error *err);
/* A configuration judged, nothing done: the body of validate. MR_ERR_CONFIG: no class, or an
 * unknown one. done is called exactly once, perhaps before the call returns; config is copied. */
void herder_validate(struct herder *herder, const struct props *config, herder_done done,
                     void *arg);
/* Definitions of a plugin's keys. version: the one that must be installed, or "latest". NULL with
 * err: MR_ERR_NOT_FOUND, MR_ERR_CONFIG (another version). */
json_t *herder_plugin_keys(struct herder *herder, const char *plugin, const char *version,
                           struct mr_error *err);
bool herder_knows(struct herder *herder, const char *conn);

/* Loggers: {name: {"level","last_modified"}}, or one of these (NULL: unknown). */
json_t *herder_loggers(struct herder *herder);
json_t *herder_logger(struct herder *herder, const char *name);
/* Set the level of a logger and of those below it, here (body: names that changed), or on all
 * workers. false: there is no such level, and done is not called. */
bool herder_set_logger(struct herder *herder, const char *name, const char *level,
                       bool whole_cluster, herder_done done, void *arg);

/* Changes: validate, then act; done is called exactly once, perhaps before the call returns.
 * Standalone answers create and update after the connector started and its tasks were made; a
 * failed start is MR_ERR_FATAL. Deadlines are the caller's. */
struct herder_put {
    const char *conn;           /* "" is refused by validation */
    const struct props *config; /* copied */
    enum target_state initial;  /* for a new connector */
    bool no_initial;            /* none was asked for: STARTED */
    bool create_only;           /* POST: MR_ERR_EXISTS when it exists */
};
void herder_put(struct herder *herder, const struct herder_put *put, herder_done done, void *arg);
/* Merge into the configuration that is there (null removes a key), validate, then as herder_put of
 * an existing one. */
void herder_patch(struct herder *herder, const char *conn, const struct props *changes,
                  herder_done done, void *arg);
void herder_delete(struct herder *herder, const char *conn, herder_done done, void *arg);
void herder_set_target(struct herder *herder, const char *conn, enum target_state target,
                       herder_done done, void *arg);
/* Plain restart (both false): done after the connector restarted, no body. With a flag: body = the
 * state with RESTARTING, at once. */
void herder_restart(struct herder *herder, const char *conn, bool include_tasks, bool only_failed,
                    herder_done done, void *arg);
void herder_restart_task(struct herder *herder, const char *conn, int task, herder_done done,
                         void *arg);

/* Offsets of a connector: body {"offsets": […]}, in any state of it. MR_ERR_NOT_FOUND;
 * MR_ERR_FATAL: they can't be read. */
void herder_offsets(struct herder *herder, const char *conn, herder_done done, void *arg);
/* Change some ([[partition, offset], …] as in offset_entries.h, taken; nobody else has any part of
 * them), or with NULL forget all.
 * Body {"message": …}. The connector must be STOPPED; offset_changes.h has all refusals. */
void herder_change_offsets(struct herder *herder, const char *conn, json_t *entries,
                           herder_done done, void *arg);

/* Task configurations that another worker's connector made. May such a call be believed? 0, or the
 * HTTP status to answer with, and why. Headers as they came, NULL where missing. */
struct herder_claim {
    const char *signature;
    const char *algorithm;
    const void *body;
    size_t len;
};
int herder_check_claim(const struct herder *herder, const struct herder_claim *claim,
                       struct mr_error *err);
/* Copied. */
void herder_put_tasks(struct herder *herder, const char *conn, const struct props *configs,
                      size_t count, herder_done done, void *arg);

/* The same for another worker's source task that is about to start: fence those of earlier sets. */
void herder_fence(struct herder *herder, const char *conn, herder_done done, void *arg);

/* done, once all that other workers have written until now is known here, or err: why not. */
void herder_catch_up(struct herder *herder, herder_done done, void *arg);

/* HTTP to other workers; NULL where there are none. */
struct peer *herder_peer(const struct herder *herder);

#endif
