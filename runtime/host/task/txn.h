/* SPDX-License-Identifier: Apache-2.0 */
/* The transactions of a source task under exactly.once.source.support=enabled: records and their
 * offsets become visible together, or not at all. Owner: the task's thread.
 * Spec: KIP-618, ExactlyOnceWorkerSourceTask. */
#ifndef HOST_TXN_H
#define HOST_TXN_H

#include "host/task/sender.h"

/* transaction.boundary. */
enum txn_boundary {
    TXN_POLL,     /* after each batch that poll gives */
    TXN_INTERVAL, /* after the first batch that ends transaction.boundary.interval.ms later */
    TXN_CONNECTOR /* where the plugin says so */
};

struct txn {
    struct task *task;
    struct sender *sender;
    enum txn_boundary boundary;
    int64_t interval_ms;
    int64_t due_ms; /* of the next commit, by interval */
    int64_t graceful_ms;
    bool open;
    char *topic;    /* that offsets go to: the connector's own, or the worker's */
    json_t *copies; /* portions of offsets that went to the first: for the second; else NULL */
    struct producer_topic *offsets;
    struct ack_offset *portion;
    struct buf text; /* keys and values of the offsets under way */
    struct mr_error refused;
};

/* What they change of the producer's settings; a setting of the user's that can't hold is told in
 * the log. */
int txn_settings(const struct task *task, struct props *java, struct mr_error *err);

/* sender: connected, not open yet. What was opened twice is closed in between. MR_ERR_CONFIG:
 * settings that would break the promise. */
int txn_open(struct txn *t, struct task *task, struct sender *sender, struct mr_error *err);
void txn_close(struct txn *t); /* also of one that was not opened */

/* Take the transactional id over: whoever had it can't go on, its open transaction is aborted.
 * Waits as long as it takes. MR_ERR_CLOSED: the task is stopping or the lease is lost. */
int txn_init(struct txn *t, struct mr_error *err);

/* Before a record is sent to topic. */
int txn_begin(struct txn *t, const char *topic, struct mr_error *err);

/* Is a commit due now that a batch is through? */
bool txn_due(const struct txn *t, int64_t now_ms);
/* When it becomes due without another batch; INT64_MAX never. */
int64_t txn_due_ms(const struct txn *t);

/* Wait for all deliveries, add the offsets, commit. 0; MR_ERR_CLOSED: whether it was committed is
 * not known, or another has the id now: the start sequence tells; MR_ERR_TIMEOUT: the task is
 * stopping and time is over; other codes: the task has failed, or is to. */
int txn_commit(struct txn *t, struct mr_error *err);
/* Make what was sent since the last end vanish, and store its offsets all the same. As
 * txn_commit. */
int txn_discard(struct txn *t, struct mr_error *err);
/* Offsets of the last transaction that was committed, for the worker's store as well, in portions:
 * the caller's. NULL: no more. */
json_t *txn_next_copy(struct txn *t);
/* Make what is open vanish at once; else the broker does after transaction.timeout.ms, or a
 * successor that takes the id. */
void txn_abort(struct txn *t);

#endif
