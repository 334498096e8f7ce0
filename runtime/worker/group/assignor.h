/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs what: the leader's duty, as a function of what it knows when a round begins and of what
 * it remembers from rounds that it led before. No clock, no I/O, no thread of its own; used on the
 * group thread.
 *
 * ASSIGNOR_EAGER     "default": everything anew, in turn. Java's results.
 * ASSIGNOR_JAVA      incremental cooperative as the Java worker does it, result for result; where
 *                    millrace.assignor says so.
 * ASSIGNOR_MILLRACE  cooperative too, and understood by Java members; it differs on purpose:
 *
 *                    - connectors, tasks, and both together are each even within one; Java looks at
 *                      each kind alone
 *
 *                    - of the choices that are even, one with the fewest tasks stopped
 *
 *                    - a task held twice goes on where it was assigned last; Java stops both
 *
 *                    - work of a member that said goodbye (leavers) moves at once; only silence
 *                      waits, and no longer than until somebody new stands in for who fell silent
 *
 *                    - no pause after a round that revoked, unless revoking does not help (four
 *                      such rounds on end)
 *
 *                    - work that is not configured is always taken away, also by a new leader
 * Spec: reference group-protocol 9 and 10, KIP-415. */
#ifndef WORKER_GROUP_ASSIGNOR_H
#define WORKER_GROUP_ASSIGNOR_H

#include "worker/group/work_list.h"

enum assignor_policy { ASSIGNOR_EAGER, ASSIGNOR_JAVA, ASSIGNOR_MILLRACE };

/* A configured connector; tasks: their number, 0 while its task configurations are inconsistent. */
struct assignor_conn {
    const char *name;
    int32_t tasks;
};

/* allocation: what it says it holds, in the order of its bytes; NULL nothing. */
struct assignor_member {
    const char *id;
    const struct work_list *allocation;
};

/* Everything borrowed for the call. Names and ids are distinct; their order does not matter.
 *
 * now_ms          of any clock that does not go back, the same one in every round
 * last_completed  generation of the last round that this member finished, -1 none
 * max_delay_ms    scheduled.rebalance.max.delay.ms
 * leavers         ids of members that have announced that they go; MILLRACE only */
struct assignor_round {
    int64_t now_ms;
    int64_t generation;
    int64_t last_completed;
    int64_t max_delay_ms;
    const struct assignor_conn *conns;
    size_t conn_count;
    const struct assignor_member *members;
    size_t member_count;
    const char *const *leavers;
    size_t leaver_count;
};

/* assigned, revoked  to be sent to the member: what is new to it (EAGER: all), what it must stop
 * owned              what it holds once it has acted: for routing */
struct assignor_share {
    char *member;
    struct work_list assigned;
    struct work_list revoked;
    struct work_list owned;
};

/* By member id; each member has a share. delay_ms: after that a round is wanted, 0 none. */
struct assignor_plan {
    struct assignor_share *shares;
    size_t count;
    int64_t delay_ms;
};

void assignor_plan_deinit(struct assignor_plan *plan);

/* What a leader remembers. */
struct assignor;

struct assignor *assignor_new(void); /* NULL out of memory */
void assignor_free(struct assignor **assignor);

/* Plan the round into *plan (overwritten). 0, or MR_ERR_NOMEM: then *plan is left alone, and what
 * was remembered is forgotten. */
int assignor_make(struct assignor *assignor, enum assignor_policy policy,
                  const struct assignor_round *round, struct assignor_plan *plan);

#endif
