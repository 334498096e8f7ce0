/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array of tasks: a worker holds few of one connector, and they are walked far more often
 * than looked up. Called by lifecycle.c, which knows whether there is a host.
 *
 *            start                  FAILED, UNASSIGNED
 *   idle ─────────────► alive ─────────────────────────► idle (failed: until a request)
 *    ▲                    │ stop                              hostless: whatever was alive is idle
 *    └── UNASSIGNED ── stopping ── UNASSIGNED ──► gone (it leaves)
 *
 * Invariants: numbers ascend and are unique; nothing is started that is alive; a task that leaves
 * is told UNASSIGNED once. */
#define LOGGER "worker.herder"
#include "worker/herder/task_life.h"

#include "base/log.h"
#include "base/text.h"
#include "worker/supervisor/supervisor.h"

#include <stdlib.h>
#include <string.h>

static void free_task(struct task_life *task)
{
    props_deinit(&task->config);
    free(task->trace);
}

void task_life_forget(struct task_lives *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        free_task(&tasks->list[i]);
    free(tasks->list);
    tasks->list = NULL;
    tasks->count = 0;
}

/* The place of a number, or where it would stand. */
static size_t place_of(const struct task_lives *tasks, int number)
{
    size_t i = 0;

    while (i < tasks->count && tasks->list[i].number < number)
        i++;
    return i;
}

struct task_life *task_life_find(const struct task_lives *tasks, int number)
{
    size_t i = place_of(tasks, number);

    return i < tasks->count && tasks->list[i].number == number ? &tasks->list[i] : NULL;
}

static struct task_life *add(struct task_lives *tasks, int number)
{
    size_t at = place_of(tasks, number);
    struct task_life *list = realloc(tasks->list, (tasks->count + 1) * sizeof(*list));

    mr_assert(list != NULL);
    memmove(list + at + 1, list + at, (tasks->count - at) * sizeof(*list));
    list[at] = (struct task_life){.number = number, .state = STATE_UNASSIGNED, .open = true};
    props_init(&list[at].config);
    tasks->list = list;
    tasks->count++;
    return &list[at];
}

struct task_life *task_life_put(struct task_lives *tasks, int number, const struct props *config,
                                int64_t generation)
{
    struct task_life *task = task_life_find(tasks, number);
    struct props copy;

    mr_assert(props_copy(&copy, config) == 0);
    if (task == NULL)
        task = add(tasks, number);
    props_deinit(&task->config);
    task->config = copy;
    task->generation = generation;
    return task;
}

void task_life_remove(struct task_lives *tasks, int number)
{
    size_t at = place_of(tasks, number);

    if (at == tasks->count || tasks->list[at].number != number)
        return;
    free_task(&tasks->list[at]);
    tasks->count--;
    memmove(tasks->list + at, tasks->list + at + 1, (tasks->count - at) * sizeof(*tasks->list));
}

void task_life_replace(struct task_lives *tasks, const struct props *configs, size_t count)
{
    while (tasks->count > 0 && tasks->list[tasks->count - 1].number >= (int)count)
        task_life_remove(tasks, tasks->list[tasks->count - 1].number);
    for (size_t i = 0; i < count; i++)
        task_life_put(tasks, (int)i, &configs[i], 0);
}

bool task_life_same(const struct task_lives *tasks, const struct props *configs, size_t count)
{
    if (tasks->count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (tasks->list[i].number != (int)i || !props_equal(&tasks->list[i].config, &configs[i]))
            return false;
    return true;
}

bool task_life_any_alive(const struct task_lives *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->list[i].alive)
            return true;
    return false;
}

bool task_life_any_stopping(const struct task_lives *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->list[i].stop != TASK_LIFE_GOES_ON)
            return true;
    return false;
}

size_t task_life_take_open(struct task_lives *tasks, int32_t *numbers)
{
    size_t n = 0;

    for (size_t i = 0; i < tasks->count; i++) {
        struct task_life *task = &tasks->list[i];

        if (task->alive || !task->open)
            continue;
        task->open = false;
        numbers[n++] = task->number;
    }
    return n;
}

/* --- what is shown ---------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

void task_life_show(struct task_lives *tasks, struct task_life *task, enum state state,
                    const char *trace)
{
    char *copy = NULL;

    if (task->state == state && same_text(task->trace, trace))
        return;
    if (task->state != state)
        log_write_for(state == STATE_FAILED ? LOG_ERROR : LOG_INFO, LOGGER, tasks->conn,
                      task->number, "task is %s", state_name(state));
    task->state = state;
    if (trace != NULL) {
        copy = text_dup(trace);
    }
    free(task->trace);
    task->trace = copy;
    if (tasks->told != NULL)
        tasks->told(tasks->arg, task->number, state, copy);
}

void task_life_show_all(struct task_lives *tasks, enum state state, const char *trace)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (!tasks->list[i].failed)
            task_life_show(tasks, &tasks->list[i], state, trace);
}

/* --- towards the host ------------------------------------------------------------------------- */

/* A host that is spent takes no further task: it is ended, and all that was in it starts again in
 * another. */
static int start_in_host(struct task_lives *tasks, const struct task_life *task,
                         enum target_state target)
{
    if (supervisor_spent(tasks->sup, tasks->conn)) {
        supervisor_drain(tasks->sup, tasks->conn);
        return MR_ERR_CLOSED;
    }
    return supervisor_start_task(tasks->sup, tasks->conn, task->number, &task->config, target,
                                 task->generation);
}

void task_life_start(struct task_lives *tasks, struct task_life *task, enum target_state target)
{
    int rc = start_in_host(tasks, task, target);

    task->failed = false;
    task->alive = rc == 0;
    if (rc != 0 && rc != MR_ERR_CLOSED) { /* closed: `died` follows */
        task->failed = true;
        task_life_show(tasks, task, STATE_FAILED,
                       rc == MR_ERR_TOO_LARGE
                           ? "the task's configuration is too large for its process"
                           : "the task's process does not take it");
    }
}

void task_life_start_idle(struct task_lives *tasks, enum target_state target)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (!tasks->list[i].alive && !tasks->list[i].failed)
            task_life_start(tasks, &tasks->list[i], target);
}

void task_life_stop(struct task_lives *tasks, struct task_life *task, enum task_life_stop then)
{
    bool asked = task->stop != TASK_LIFE_GOES_ON;

    task->stop = then;
    if (!asked)
        supervisor_stop_task(tasks->sup, tasks->conn, task->number); /* closed: `died` follows */
}

void task_life_target(struct task_lives *tasks, enum target_state target)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->list[i].alive)
            supervisor_task_target(tasks->sup, tasks->conn, tasks->list[i].number, target);
}

/* --- events ----------------------------------------------------------------------------------- */

void task_life_draining(struct task_lives *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->list[i].stop == TASK_LIFE_AGAIN)
            tasks->list[i].stop = TASK_LIFE_GOES_ON;
}

void task_life_hostless(struct task_lives *tasks)
{
    for (size_t i = tasks->count; i > 0; i--) {
        struct task_life *task = &tasks->list[i - 1];

        task->open = task->open || task->alive;
        task->alive = false;
        if (task->stop == TASK_LIFE_AGAIN)
            task->failed = false;
        if (task->stop == TASK_LIFE_LEAVES) {
            task_life_show(tasks, task, STATE_UNASSIGNED, NULL);
            task_life_remove(tasks, task->number);
        } else {
            task->stop = TASK_LIFE_GOES_ON;
        }
    }
}

void task_life_on_state(struct task_lives *tasks, struct task_life *task, enum state state,
                        const char *trace)
{
    if (!task->alive)
        return;
    if (state == STATE_FAILED || state == STATE_UNASSIGNED)
        task->alive = false;
    task->failed = state == STATE_FAILED;
    task->open = task->open && state != STATE_RUNNING;
    if (state == STATE_UNASSIGNED && task->state == STATE_RESTARTING)
        return; /* it ended to restart: shown until it has */
    task_life_show(tasks, task, state, trace);
}
