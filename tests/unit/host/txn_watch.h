/* SPDX-License-Identifier: Apache-2.0 */
/* Which offsets of topic "in" went with transactions that were committed: librdkafka's mock cluster
 * forgets them. For one test file each, whose TEST_LINK wraps the three calls. */
#ifndef TESTS_TXN_WATCH_H
#define TESTS_TXN_WATCH_H

#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "task_rig.h"

#include <string.h>

#define WATCH_PARTITIONS 8

static struct {
    int64_t added[WATCH_PARTITIONS];
    atomic_llong committed[WATCH_PARTITIONS];
    atomic_int commits;       /* transactions */
    atomic_int offsets_again; /* calls for offsets in a row that were too short */
    atomic_int refused;       /* aborts that shall fail, without being asked for */
    char order[32];           /* how they ended: c committed, a aborted */
} txn_watch;

static inline void txn_watch_end(char how)
{
    size_t len = strlen(txn_watch.order);

    if (len + 1 < sizeof(txn_watch.order))
        txn_watch.order[len] = how;
}

static inline void txn_watch_clear(void)
{
    for (size_t i = 0; i < WATCH_PARTITIONS; i++)
        txn_watch.added[i] = txn_watch.committed[i] = -1;
    txn_watch.commits = txn_watch.offsets_again = txn_watch.refused = 0;
    memset(txn_watch.order, 0, sizeof(txn_watch.order));
}

int __real_producer_txn_offsets(struct producer *p, struct consumer *c,
                                const struct consumer_partition *parts, size_t count,
                                int64_t timeout_ms, struct mr_error *err);
int __wrap_producer_txn_offsets(struct producer *p, struct consumer *c,
                                const struct consumer_partition *parts, size_t count,
                                int64_t timeout_ms, struct mr_error *err);
int __real_producer_txn_commit(struct producer *p, int64_t timeout_ms, struct mr_error *err);
int __wrap_producer_txn_commit(struct producer *p, int64_t timeout_ms, struct mr_error *err);
int __real_producer_txn_abort(struct producer *p, int64_t timeout_ms, struct mr_error *err);
int __wrap_producer_txn_abort(struct producer *p, int64_t timeout_ms, struct mr_error *err);

int __wrap_producer_txn_offsets(struct producer *p, struct consumer *c,
                                const struct consumer_partition *parts, size_t count,
                                int64_t timeout_ms, struct mr_error *err)
{
    int rc = __real_producer_txn_offsets(p, c, parts, count, timeout_ms, err);

    txn_watch.offsets_again = rc == MR_AGAIN ? txn_watch.offsets_again + 1 : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (strcmp(parts[i].topic, "in") == 0 && parts[i].partition < WATCH_PARTITIONS)
            txn_watch.added[parts[i].partition] = parts[i].offset;
    return rc;
}

int __wrap_producer_txn_commit(struct producer *p, int64_t timeout_ms, struct mr_error *err)
{
    int rc = __real_producer_txn_commit(p, timeout_ms, err);

    for (size_t i = 0; rc == 0 && i < WATCH_PARTITIONS; i++)
        txn_watch.committed[i] = txn_watch.added[i];
    txn_watch.commits += rc == 0;
    if (rc == 0)
        txn_watch_end('c');
    return rc;
}

int __wrap_producer_txn_abort(struct producer *p, int64_t timeout_ms, struct mr_error *err)
{
    int rc;

    for (size_t i = 0; i < WATCH_PARTITIONS; i++)
        txn_watch.added[i] = txn_watch.committed[i];
    if (txn_watch.refused > 0) {
        txn_watch.refused--;
        return mr_fail(err, MR_ERR_TIMEOUT, "not to be aborted now");
    }
    rc = __real_producer_txn_abort(p, timeout_ms, err);
    if (rc == 0)
        txn_watch_end('a');
    return rc;
}

/* For rig_wait_true: of partition 0. */
static inline bool txn_committed_is(struct rig *rig, int64_t n)
{
    return txn_watch.committed[0] == n;
}

#endif
