/* SPDX-License-Identifier: Apache-2.0 */
/* A lease that goes and comes back while a sink task is in one and the same poll, so that its loop
 * never finds it gone: what the group takes and gives meanwhile is heard without it. For test files
 * whose TEST_LINK wraps consumer_poll. */
#ifndef TESTS_LEASE_GAP_H
#define TESTS_LEASE_GAP_H

#include "base/clock.h"
#include "kafka/consumer.h"
#include "task_rig.h"

#define LEASE_GAP_MS 20000 /* a bound of a fault */
#define LEASE_GAP_SLICE_MS 20

static struct {
    struct rig *rig;
    atomic_bool due;     /* with the next poll */
    bool (*over)(void);  /* then there is a lease again */
    bool (*until)(void); /* and then the poll may end */
} lease_gap;

int __real_consumer_poll(struct consumer *c, struct consumer_msg *out, size_t max,
                         int64_t timeout_ms, struct mr_error *err);
int __wrap_consumer_poll(struct consumer *c, struct consumer_msg *out, size_t max,
                         int64_t timeout_ms, struct mr_error *err);

static inline void lease_gap_clear(void)
{
    lease_gap.due = false;
    lease_gap.rig = NULL;
}

/* Before the task starts: its polls are short from the first on. */
static inline void lease_gap_arm(struct rig *rig)
{
    lease_gap.rig = rig;
}

static inline void lease_gap_open(bool (*over)(void), bool (*until)(void))
{
    lease_gap.over = over;
    lease_gap.until = until;
    lease_gap.due = true;
}

int __wrap_consumer_poll(struct consumer *c, struct consumer_msg *out, size_t max,
                         int64_t timeout_ms, struct mr_error *err)
{
    int64_t end_ms = clock_ms() + LEASE_GAP_MS;
    bool lost = true;
    int n = 0;

    if (lease_gap.rig == NULL)
        return __real_consumer_poll(c, out, max, timeout_ms, err);
    if (!lease_gap.due)
        return __real_consumer_poll(
            c, out, max, timeout_ms < LEASE_GAP_SLICE_MS ? timeout_ms : LEASE_GAP_SLICE_MS, err);
    task_lease_lost(lease_gap.rig->task, INT64_MAX);
    while (n == 0 && clock_ms() < end_ms && (lost || !lease_gap.until())) {
        n = __real_consumer_poll(c, out, max, LEASE_GAP_SLICE_MS, err);
        if (lost && lease_gap.over()) {
            task_lease_renewed(lease_gap.rig->task);
            lost = false;
        }
    }
    lease_gap.due = false;
    return n;
}

#endif
