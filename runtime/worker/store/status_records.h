/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the status topic: from bytes and to bytes, as the Java worker writes them. Pure.
 * Spec: org.apache.kafka.connect.storage.KafkaStatusBackingStore. */
#ifndef WORKER_STATUS_RECORDS_H
#define WORKER_STATUS_RECORDS_H

#include "base/buf.h"
#include "model/state.h"

enum status_kind {
    STATUS_CONNECTOR, /* status-connector-CONN */
    STATUS_TASK,      /* status-task-CONN-N */
    STATUS_TOPIC      /* status-topic-TOPIC:connector-CONN */
};

/* A state as one worker saw it. */
struct status {
    enum state state;
    int generation;  /* of the group, when it was written */
    char *worker_id; /* advertised host:port */
    char *trace;     /* NULL none */
    char *version;   /* of the plugin; NULL unknown */
};

struct status_record {
    enum status_kind kind;
    bool tombstone;
    char *conn;
    int task;             /* STATUS_TASK; STATUS_TOPIC: the task that used it first */
    struct status status; /* STATUS_CONNECTOR, STATUS_TASK */
    char *topic;          /* STATUS_TOPIC */
    int64_t discovered_wall_ms;
};

void status_deinit(struct status *status);
void status_copy(struct status *to, const struct status *from); /* aborts out of memory */
void status_record_deinit(struct status_record *rec);

/* Read one record; value NULL or of no bytes: a tombstone. 0, or MR_ERR_DATA: to be skipped, err
 * says why, rec is empty. */
int status_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                         struct status_record *rec, struct mr_error *err);

/* Append key and value. 0, or MR_ERR_FULL beyond a buffer's cap. A tombstone gets no value: send
 * NULL. */
int status_records_render(const struct status_record *rec, struct buf *key, struct buf *value);

#endif
