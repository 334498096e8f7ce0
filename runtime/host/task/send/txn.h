/* SPDX-License-Identifier: Apache-2.0 */
/* The transactions of a task: of a source under exactly.once.source.support=enabled, of a sink that
 * emits. Records and offsets become visible together, or not at all. Owner: the task's thread.
 * Spec: KIP-618, ExactlyOnceWorkerSourceTask; KIP-447. */
#ifndef HOST_TXN_H
#define HOST_TXN_H

#include "host/task/send/sender.h"

#define TXN_TIMEOUT_MS 60000 /* transaction.timeout.ms, Java's default */

/* transaction.boundary. */
enum txn_boundary {
    TXN_POLL,     /* after each batch that poll gives */
    TXN_INTERVAL, /* after the first batch that ends transaction.boundary.interval.ms later, or half
                     the transaction's timeout where that is not longer */
    TXN_CONNECTOR /* where the plugin says so */
};

struct txn;

/* What goes into a transaction behind its records: offsets. txn_begin comes first. 0, or as
 * txn_commit. */
typedef int (*txn_adder)(struct txn *t, void *arg, struct mr_error *err);

struct txn {
    struct task *task;
    struct sender *sender;
    txn_adder add_offsets;
    void *arg;
    enum txn_boundary boundary;
    int64_t interval_ms;
    int64_t due_ms; /* of the next commit, by interval */
    int64_t graceful_ms;
    bool open;
    /* Sources: */
    char *topic;    /* that offsets go to: the connector's own, or the worker's */
    json_t *copies; /* portions of offsets that went to the first: for the second; else NULL */
    struct producer_topic *handle;
    struct ack_offset *portion;
    struct buf text; /* keys and values of the offsets under way */
    struct mr_error refused;
};

/* What they change of the producer's settings; a setting of the user's that can't hold is told in
 * the log. MR_ERR_CONFIG: one that rules them out. */
int txn_settings(const struct task *task, struct props *java, struct mr_error *err);

/* sender: connected, not open yet. What was opened twice is closed in between. MR_ERR_CONFIG:
 * settings that would break the promise. */
int txn_open(struct txn *t, struct task *task, struct sender *sender, struct mr_error *err);
/* Of a sink: ends each interval_ms, with what add_offsets adds. */
int txn_open_sink(struct txn *t, struct task *task, struct sender *sender, int64_t interval_ms,
                  txn_adder add_offsets, void *arg, struct mr_error *err);
void txn_close(struct txn *t); /* also of one that was not opened */

/* Take the transactional id over: whoever had it can't go on, its open transaction is aborted.
 * Waits as long as it takes. MR_ERR_CLOSED: the task is stopping or the lease is lost. */
int txn_init(struct txn *t, struct mr_error *err);

/* Before a record is sent to topic; NULL: before offsets are added. */
int txn_begin(struct txn *t, const char *topic, struct mr_error *err);

/* Waiting within a transaction: until delivery reports come, or a moment; 0, or why no longer:
 * MR_ERR_CLOSED the lease is lost, MR_ERR_TIMEOUT the task is stopping and time is over. */
int txn_wait(struct txn *t, struct mr_error *err);

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
/* Walk the reports of all that is under way: what is aborted behind them leaves the producer fit
 * for more. 0, or as txn_wait. */
int txn_settle(struct txn *t);
/* Make what is open vanish at once; else (false) the broker does after transaction.timeout.ms, or a
 * successor that takes the id. */
bool txn_abort(struct txn *t);

/* --- txn_life.c ------------------------------------------------------------------------------- */

/* fence  the producers of earlier sets of tasks are fenced first, by the worker
 * open   connect the sender's producer, then open the transactions */
struct txn_claim {
    struct task *task;
    struct txn *txn;
    bool fence;
    int (*open)(void *arg, struct mr_error *err);
    void *arg;
};
/* Before the worker is asked whether the task is still to run: a slow task that took the id from a
 * newer one is told so by that answer. As task_begin's claim. */
bool txn_claim(const struct txn_claim *claim);

/* One life of a task after the other, in place. live: from start to stop; true: once more, as its
 * lease had ended, or (why->code) since its transaction broke, which may not happen for ever. */
void txn_lives(struct task *task, bool (*live)(struct task *task, struct mr_error *why));

/* --- txn_offsets.c ---------------------------------------------------------------------------- */

#define TXN_TEXT_MAX ((size_t)64 << 20) /* keys and values of one portion of offsets */
int txn_offsets_send(struct txn *t, void *arg, struct mr_error *err);
/* Offsets of the last transaction that was committed, for the worker's store as well, in portions:
 * the caller's. NULL: no more. */
json_t *txn_offsets_next_copy(struct txn *t);

#endif
