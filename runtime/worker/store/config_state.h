/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of the config topic add up to. Pure; one owner thread (the worker's loop).
 * Spec: KafkaConfigBackingStore and ClusterConfigState; the rules are told at the top of the .c. */
#ifndef WORKER_CONFIG_STATE_H
#define WORKER_CONFIG_STATE_H

#include "base/map.h"
#include "worker/store/config_records.h"

/* One connector, also one that was deleted: what outlives a deletion stays. Read only. */
struct config_conn {
    const char *name;
    struct props *config;  /* NULL: no such connector */
    struct props *applied; /* config as it was when the tasks were committed; NULL none */
    bool has_target;
    enum target_state target; /* STARTED without a record */
    int task_count;        /* of the newest commit, 0 without; what may run: config_state_tasks */
    bool inconsistent;     /* that commit found no full set: no tasks until the owner writes one */
    bool pending_fencing;  /* the newest task-count record is not about the newest commit */
    int task_count_record; /* -1 none */
    int64_t generation;   /* commits applied, as this process saw them, -1 none; never to be sent */
    struct map *tasks;    /* private: task id → props that were committed */
    struct map *deferred; /* private: task id → props that wait for their commit */
};

struct config_state;

struct config_state *config_state_new(void);
void config_state_free(struct config_state **state);

/* What one record did. */
enum config_change_kind {
    CONFIG_NOTHING,
    CONFIG_UPDATED, /* a connector was created or its configuration written, perhaps an equal one */
    CONFIG_REMOVED, /* a connector that was there is not any more */
    CONFIG_TASKS,   /* a commit: task list and count are new */
    CONFIG_TARGETED,   /* the target state of a known connector really changed */
    CONFIG_KEYED,      /* a session key */
    CONFIG_RESTARTING, /* a restart was asked for: include_tasks, only_failed */
    CONFIG_LOGGING,    /* a logger's level: name, level */
    CONFIG_FENCED      /* a task-count record */
};
struct config_change {
    enum config_change_kind kind;
    const char *name; /* connector or logger; borrowed from the record */
    bool include_tasks;
    bool only_failed;
    const char *level;
};

/* Apply the record at an offset; its strings and props are taken, but for name and level, which out
 * may lead to. */
void config_state_apply(struct config_state *state, int64_t offset, struct config_record *rec,
                        struct config_change *out);
/* A record that is to be skipped but whose offset counts (MR_ERR_DATA of config_records_parse). */
void config_state_skip(struct config_state *state, int64_t offset);

/* Offset of the newest record that counted, plus 1; -1 none: what members compare. */
int64_t config_state_offset(const struct config_state *state);

/* The connector, also a deleted one that left something; NULL unknown. Valid until the next
 * record: one of which nothing is left is forgotten. */
const struct config_conn *config_state_find(const struct config_state *state, const char *conn);
/* The same, only when it has a configuration. */
const struct config_conn *config_state_conn(const struct config_state *state, const char *conn);
/* All connectors that have a configuration: for (size_t i = 0; (conn = config_state_next(state,
 * &i)) != NULL;) */
const struct config_conn *config_state_next(const struct config_state *state, size_t *cursor);
size_t config_state_count(const struct config_state *state);

/* Tasks that may run: the count, or 0 while inconsistent. Their ids are 0 … count-1. */
int config_state_tasks(const struct config_conn *conn);
/* The configuration of one of these, NULL without. */
const struct props *config_state_task(const struct config_conn *conn, int task);
/* The newest session key, NULL none. */
const struct config_session_key *config_state_session_key(const struct config_state *state);

#endif
