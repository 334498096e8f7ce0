/* SPDX-License-Identifier: Apache-2.0 */
/* A share of a connector grows and shrinks: the object comes and goes, and so do tasks, while the
 * rest runs on. Called by share.c when nothing is ending; on the worker's loop. Moves of the
 * drawing in lifecycle.c that it makes itself: UP to STARTING, for an object in a host that is
 * there, and STARTING or ASKING to UP, when the object goes. */
#include "worker/herder/lifecycle_private.h"

/* It is carried out already, in a host without it: there it is made by being told its target. */
static void take_object(struct lifecycle *lc)
{
    lc->object = true;
    lc->object_down = false;
    if (lc->target == TARGET_STOPPED) {
        lifecycle_show(lc, STATE_STOPPED, NULL);
    } else if (lc->phase == UP && !lc->host_failed) {
        lc->phase = STARTING;
        supervisor_target(lc->env->sup, lc->name, lc->target); /* closed: `died` follows */
    } else if (lc->phase == UP || lc->phase == IDLE || lc->phase == DOWN) {
        lifecycle_drain(lc, NEXT_START);
    }
}

static void give_object(struct lifecycle *lc)
{
    lifecycle_show(lc, STATE_UNASSIGNED, NULL);
    lc->object = false;
    lc->object_down = false;
    if (lc->phase != STARTING && lc->phase != ASKING)
        return;
    loop_timer_cancel(&lc->timer);
    lifecycle_tasks_alone(lc);
    lifecycle_settle(lc, NULL);
}

void lifecycle_share_object(struct lifecycle *lc, bool object)
{
    if (lc->object == object)
        return;
    if (object)
        take_object(lc);
    else
        give_object(lc);
}

/* A host for tasks, where there is none and none is about to come. */
static void need_host(struct lifecycle *lc)
{
    if (lc->phase == IDLE || lc->phase == DOWN)
        lifecycle_drain(lc, NEXT_START);
}

void lifecycle_share_put(struct lifecycle *lc, int number, const struct props *config,
                         int64_t generation)
{
    struct task_life *task = task_life_find(&lc->tasks, number);
    bool same = task != NULL && task->generation == generation && task->stop == TASK_LIFE_GOES_ON &&
                !task->failed;

    if (same)
        return;
    task = task_life_put(&lc->tasks, number, config, generation);
    task->failed = false;
    if (task->alive && lifecycle_serves(lc))
        task_life_stop(&lc->tasks, task, TASK_LIFE_AGAIN);
    else if (!lifecycle_serves(lc))
        need_host(lc);
    else if (lc->phase == UP || !lc->fresh)
        task_life_start(&lc->tasks, task, lc->target);
}

void lifecycle_share_drop(struct lifecycle *lc, int number)
{
    struct task_life *task = task_life_find(&lc->tasks, number);

    if (task == NULL)
        return;
    if (task->alive && lifecycle_serves(lc)) {
        task_life_stop(&lc->tasks, task, TASK_LIFE_LEAVES);
    } else if (task->alive) {
        task->stop = TASK_LIFE_LEAVES; /* with its host, which ends */
    } else {
        if (!task->failed)
            task_life_show(&lc->tasks, task, STATE_UNASSIGNED, NULL);
        task_life_remove(&lc->tasks, number);
    }
}
