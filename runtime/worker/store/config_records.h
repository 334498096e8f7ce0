/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the config topic: from bytes and to bytes, as the Java worker writes them. Pure.
 * Spec: org.apache.kafka.connect.storage.KafkaConfigBackingStore. */
#ifndef WORKER_CONFIG_RECORDS_H
#define WORKER_CONFIG_RECORDS_H

#include "base/buf.h"
#include "base/props.h"
#include "model/state.h"

enum config_kind {
    CONFIG_CONNECTOR,   /* connector-NAME: props; tombstone = deleted */
    CONFIG_TASK,        /* task-NAME-N: props */
    CONFIG_COMMIT,      /* commit-NAME: count */
    CONFIG_TARGET,      /* target-state-NAME: target; tombstone = forgotten */
    CONFIG_TASK_COUNT,  /* tasks-fencing-NAME: count */
    CONFIG_SESSION_KEY, /* session-key: session */
    CONFIG_RESTART,     /* restart-connector-NAME: include_tasks, only_failed */
    CONFIG_LOGGER       /* logger-cluster-NAME: level */
};

/* Signs calls between workers. */
struct config_session_key {
    unsigned char key[512];
    size_t key_len;
    char algorithm[64]; /* "HmacSHA256" */
    int64_t created_wall_ms;
};

/* Which members count: see the kinds. Owner: whoever parsed or filled it. */
struct config_record {
    enum config_kind kind;
    bool tombstone;
    char *name; /* connector or logger; NULL for CONFIG_SESSION_KEY */
    int task;
    struct props props;
    int count;
    enum target_state target;
    struct config_session_key session;
    bool include_tasks;
    bool only_failed;
    char *level; /* as written: no known level, perhaps */
};

void config_record_deinit(struct config_record *rec);

/* Read one record. value NULL (or of no bytes): a tombstone. 0: rec is filled, the caller's; err
 * may hold a remark then (a field of the wrong type that has a default). Otherwise the record is to
 * be skipped, err says why, and rec is empty: MR_ERR_PROTOCOL, the value is no JSON: the config
 * offset does not move past it; MR_ERR_DATA, anything else: the config offset moves. (Java's rule;
 * all members must count alike.) */
int config_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                         struct config_record *rec, struct mr_error *err);

/* Append key and value. 0, or MR_ERR_FULL beyond a buffer's cap. A tombstone gets no value: send
 * NULL. */
int config_records_render(const struct config_record *rec, struct buf *key, struct buf *value);

#endif
