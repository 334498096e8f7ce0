/* SPDX-License-Identifier: Apache-2.0 */
/* What of a connector is to run on this worker of a cluster, and what has to be done for it. Pure:
 * values in, values out.
 * Spec: org.apache.kafka.connect.runtime.distributed.DistributedHerder (startWork,
 * processConnectorConfigUpdates, processTaskConfigUpdatesWithIncrementalCooperative,
 * processTargetStateChanges). */
#ifndef WORKER_RECONCILE_H
#define WORKER_RECONCILE_H

#include "base/props.h"
#include "model/state.h"

/* What the config topic and the group say of one connector.
 *
 * config      NULL: there is no such connector (deleted, or never read)
 * serial      of the configuration as it was read, above 0; another one with each record, also when
 *             it says the same
 * generation  of the set of task configurations
 * task_count  of that set; 0 while it is inconsistent
 * object      the connector object is assigned here
 * tasks       assigned here, in any order, perhaps with doubles or numbers that are no task's
 * held        a new set of task configurations came, and not every worker has stopped tasks of the
 *             old one yet */
struct reconcile_input {
    const struct props *config;
    uint64_t serial;
    enum target_state target;
    int64_t generation;
    int task_count;
    bool object;
    const int32_t *tasks;
    size_t assigned;
    bool held;
};

/* What is to run. Borrows the configuration of the input; tasks: ascending, each once. */
struct reconcile_want {
    const struct props *config; /* NULL: nothing */
    uint64_t serial;
    enum target_state target;
    int64_t generation;
    bool object;
    int *tasks;
    size_t task_count;
};
void reconcile_want(const struct reconcile_input *in, struct reconcile_want *out);
void reconcile_want_deinit(struct reconcile_want *want);

struct reconcile_task {
    int number;
    int64_t generation;
};

/* What is here. serial 0: nothing. */
struct reconcile_have {
    const struct props *config;
    uint64_t serial;
    enum target_state target;
    bool object;
    const struct reconcile_task *tasks; /* ascending; FAILED ones too: they keep their place */
    size_t task_count;
};

/* CHANGE   by the other members, in their order; perhaps nothing
 * APPLY    the process is to be begun anew with the configuration; then drop and put
 * REMOVE   nothing of it stays here; the other members say nothing */
enum reconcile_act { RECONCILE_CHANGE, RECONCILE_APPLY, RECONCILE_REMOVE };

struct reconcile_plan {
    enum reconcile_act act;
    bool retarget;
    bool move_object; /* to what is wanted */
    int *drop;        /* tasks to stop and forget */
    size_t drop_count;
    int *put; /* tasks to start, or to start again with another configuration */
    size_t put_count;
};
/* A plan that was carried out leaves nothing to plan. */
void reconcile_plan(const struct reconcile_want *want, const struct reconcile_have *have,
                    struct reconcile_plan *out);
void reconcile_plan_deinit(struct reconcile_plan *plan);
bool reconcile_is_nothing(const struct reconcile_plan *plan);

#endif
