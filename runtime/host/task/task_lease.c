/* SPDX-License-Identifier: Apache-2.0 */
/* The host's lease, as a task sees it. Between control, which says that the lease is lost or
 * renewed, and the task's thread, which asks before it begins anything that others could see, stand
 * three words under the task's lock.
 *
 *   ACTIVE ─task_lease_rest─► RESTING ─task_lease_act, lease held─► ACTIVE
 *                                └───── act, lease lost: stays
 *
 * Control counts a task as quiet while it is RESTING under a lost lease. No step of the thread can
 * fall between: from RESTING only act leads on, and it looks at the lease under the same lock
 * (promise 1: when all are quiet the hard end of the lease is lifted, and until it is renewed none
 * of them polls, puts, sends or commits). */
#include "base/clock.h"
#include "host/task/task_inside.h"

void task_lease_lost(struct task *task, int64_t hard_boot_ms)
{
    pthread_mutex_lock(&task->lock);
    task->lease_lost = true;
    task->lease_hard_boot_ms = hard_boot_ms;
    task_wake_locked(task);
    pthread_mutex_unlock(&task->lock);
}

void task_lease_renewed(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    task->lease_lost = false;
    task_wake_locked(task);
    pthread_mutex_unlock(&task->lock);
}

bool task_lease_quiet(struct task *task)
{
    bool quiet;

    pthread_mutex_lock(&task->lock);
    quiet = task->lease_lost && task->resting;
    pthread_mutex_unlock(&task->lock);
    return quiet;
}

bool task_lease_held(struct task *task)
{
    bool held;

    pthread_mutex_lock(&task->lock);
    held = !task->lease_lost;
    pthread_mutex_unlock(&task->lock);
    return held;
}

int64_t task_lease_hard_boot_ms(struct task *task)
{
    int64_t ms;

    pthread_mutex_lock(&task->lock);
    ms = task->lease_hard_boot_ms;
    pthread_mutex_unlock(&task->lock);
    return ms;
}

void task_lease_rest(struct task *task)
{
    bool tell;

    pthread_mutex_lock(&task->lock);
    tell = task->lease_lost && !task->resting;
    task->resting = true;
    pthread_mutex_unlock(&task->lock);
    if (tell)
        task->events->quiet(task->arg, task);
}

bool task_lease_act(struct task *task)
{
    bool held;

    pthread_mutex_lock(&task->lock);
    held = !task->lease_lost;
    task->resting = task->resting && !held;
    pthread_mutex_unlock(&task->lock);
    return held;
}

bool task_lease_wait(struct task *task, int64_t ms)
{
    int64_t until_ms = clock_in_ms(ms);
    bool goes_on;

    while ((goes_on = task_lease_held(task) && !task_stopping(task)) && clock_ms() < until_ms)
        task_wait(task, NULL, 0, until_ms);
    return goes_on;
}

bool task_lease_sleep(struct task *task, int64_t ms)
{
    int64_t until_ms = clock_in_ms(ms);

    task_lease_rest(task);
    while (!task_stopping(task) && clock_ms() < until_ms)
        task_wait(task, NULL, 0, until_ms);
    while (!task_stopping(task) && !task_lease_act(task))
        task_wait(task, NULL, 0, INT64_MAX);
    return !task_stopping(task);
}

void task_lease_end(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    task->resting = false;
    pthread_mutex_unlock(&task->lock);
}
