/* SPDX-License-Identifier: Apache-2.0 */
/* One round of fencing: the transactional ids <group>-<connector>-<task> are taken over, so that
 * whoever had one can't commit any more, and open transactions are aborted. With the connector's
 * own admin settings. Owner: the loop; the work is done on a thread made for it.
 * Spec: KIP-618, Admin.fenceProducers; reference exactly-once 3 and 16. */
#ifndef WORKER_FENCE_ROUND_H
#define WORKER_FENCE_ROUND_H

#include "base/loop.h"
#include "base/provider.h"

struct fence_round;

struct fence_order {
    const struct props *worker;        /* copied */
    const struct props *connector;     /* copied */
    const struct providers *providers; /* of what it refers to; kept */
    const char *group;
    const char *conn;
    const int32_t *tasks; /* copied; NULL: 0 … count-1 */
    size_t count;
};

/* err NULL: all are fenced. MR_ERR_CONFIG, MR_ERR_FATAL (no right …), MR_ERR_TIMEOUT after 90 s. */
typedef void (*fence_round_done)(void *arg, const struct mr_error *err);

/* done runs once, on the loop, never inside this call; it may free the round. NULL with err: no
 * thread. */
struct fence_round *fence_round_new(struct loop *loop, const struct fence_order *order,
                                    fence_round_done done, void *arg, struct mr_error *err);
/* Before `done`: it does not run any more; what is under way may still be done. */
void fence_round_free(struct fence_round **round);

#endif
