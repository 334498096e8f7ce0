/* SPDX-License-Identifier: Apache-2.0 */
/* From what is wanted of a connector here to calls of its lifecycle. Called by connectors.c when
 * the lifecycle is ready for it; what it brings about takes its time, and whether that changed
 * meanwhile is looked at again then. Loop thread only. */
#include "worker/herder/share.h"

#include <stdlib.h>

static struct reconcile_task *tasks_of(const struct task_lives *tasks)
{
    struct reconcile_task *list = calloc(tasks->count + 1, sizeof(*list));

    mr_assert(list != NULL);
    for (size_t i = 0; i < tasks->count; i++)
        list[i] = (struct reconcile_task){tasks->list[i].number, tasks->list[i].generation};
    return list;
}

static void plan_from(const struct lifecycle *lc, const struct share *share,
                      struct reconcile_plan *plan)
{
    struct lifecycle_have have;
    struct reconcile_task *tasks;

    lifecycle_have(lc, &have);
    tasks = tasks_of(have.tasks);
    reconcile_plan(&share->want,
                   &(struct reconcile_have){.config = have.config,
                                            .serial = have.serial,
                                            .target = have.target,
                                            .object = have.object,
                                            .tasks = tasks,
                                            .task_count = have.tasks->count},
                   plan);
    free(tasks);
}

static const struct props *config_of(const struct share *share, int task)
{
    for (size_t i = 0; i < share->want.task_count; i++)
        if (share->want.tasks[i] == task)
            return share->configs[i];
    return NULL;
}

static void apply(struct lifecycle *lc, const struct share *share)
{
    lifecycle_apply(lc, &(struct lifecycle_work){.plugin = share->plugin,
                                                 .config = share->want.config,
                                                 .target = share->want.target,
                                                 .shared = true,
                                                 .object = share->want.object,
                                                 .serial = share->want.serial});
}

/* Tasks go before the rest changes, and come after. */
static void carry_out(struct lifecycle *lc, const struct share *share,
                      const struct reconcile_plan *plan)
{
    for (size_t i = 0; i < plan->drop_count; i++)
        lifecycle_share_drop(lc, plan->drop[i]);
    if (plan->act == RECONCILE_APPLY)
        apply(lc, share);
    if (plan->retarget)
        lifecycle_target(lc, share->want.target);
    if (plan->move_object)
        lifecycle_share_object(lc, share->want.object);
    for (size_t i = 0; i < plan->put_count; i++)
        lifecycle_share_put(lc, plan->put[i], config_of(share, plan->put[i]),
                            share->want.generation);
}

bool share_bring_about(struct lifecycle *lc, const struct share *share)
{
    struct reconcile_plan plan;
    bool stays = share->want.config != NULL;

    plan_from(lc, share, &plan);
    if (plan.act == RECONCILE_REMOVE)
        lifecycle_end(lc);
    else
        carry_out(lc, share, &plan);
    reconcile_plan_deinit(&plan);
    return stays;
}

void share_deinit(struct share *share)
{
    reconcile_want_deinit(&share->want);
    free(share->configs);
    share->configs = NULL;
}
