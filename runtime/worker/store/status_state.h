/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of the status topic add up to: the newest status of every connector and task,
 * and the topics each connector used. Pure; one owner thread (the worker's loop). Spec:
 * KafkaStatusBackingStore. */
#ifndef WORKER_STATUS_STATE_H
#define WORKER_STATUS_STATE_H

#include "worker/store/status_records.h"

struct status_state;

struct status_state *status_state_new(void);
void status_state_free(struct status_state **state);

/* Apply a record, whose strings may be taken. true: what readers see has changed. A task's
 * UNASSIGNED does not count against RUNNING of the same or a newer generation; a connector's
 * tombstone removes its tasks too. */
bool status_state_apply(struct status_state *state, struct status_record *rec);

/* Borrowed until the next apply; NULL none. */
const struct status *status_state_connector(const struct status_state *state, const char *conn);
const struct status *status_state_task(const struct status_state *state, const char *conn,
                                       int task);
/* Tasks with a status: for (int task = -1; (task = status_state_next_task(state, conn, task)) >=
 * 0;) */
int status_state_next_task(const struct status_state *state, const char *conn, int after);
/* Connectors that something is known of: for (size_t i = 0; (conn = status_state_next_conn(state,
 * &i)) != NULL;) */
const char *status_state_next_conn(const struct status_state *state, size_t *cursor);
/* Topics the connector used: for (size_t i = 0; (topic = status_state_next_topic(state, conn, &i))
 * != NULL;) */
const char *status_state_next_topic(const struct status_state *state, const char *conn,
                                    size_t *cursor);

bool status_state_uses(const struct status_state *state, const char *conn, const char *topic);

/* That the status of this record's key was written with; INT_MIN: there is none. */
int status_state_generation(const struct status_state *state, const struct status_record *rec);

/* May a worker write this, or would it overwrite a newer owner's? (Java's putSafe.) mine: its id
 * and generation; a tombstone has no id. */
bool status_state_may_put(const struct status_state *state, const struct status_record *mine);

#endif
