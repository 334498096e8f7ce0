/* SPDX-License-Identifier: Apache-2.0 */
/* The topics that a task's records really go to (once delivered) or come from (once converted),
 * told to control once each. Most records go where the one before went, so that is looked at first.
 * When the worker's list was emptied they are told anew.
 * Thread: the task's, but for task_topics_forget. Spec: WorkerTask.recordActiveTopic. */
#include "host/task/task_inside.h"

#include "base/log.h"
#include "base/text.h"
#include "model/topic_tracking.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task"

void task_topics_init(struct task *task)
{
    if (task->worker != NULL && task->events->topic_used != NULL &&
        topic_tracking_wanted(task->worker))
        task->topics = map_new();
}

void task_topics_deinit(struct task *task)
{
    if (task->topics != NULL)
        map_free(&task->topics, free);
}

void task_topics_forget(struct task *task)
{
    atomic_store(&task->topics_stale, true);
}

static void forget(struct task *task)
{
    map_free(&task->topics, free);
    task->topics = map_new();
    task->topic_last = NULL;
}

/* Gives a copy that lives until it is forgotten; NULL when there are too many. */
static const char *note(struct task *task, const char *topic)
{
    char *name;

    if (map_count(task->topics) >= TOPIC_TRACKING_MAX)
        return NULL;
    name = text_dup(topic);
    map_set(task->topics, topic, name);
    task->events->topic_used(task->arg, task, topic);
    if (map_count(task->topics) == TOPIC_TRACKING_MAX)
        log_warn("the task uses %d topics: REST does not list further ones", TOPIC_TRACKING_MAX);
    return name;
}

void task_topics_use(struct task *task, const char *topic)
{
    const char *known;

    if (task->topics == NULL)
        return;
    if (atomic_load_explicit(&task->topics_stale, memory_order_relaxed) &&
        atomic_exchange(&task->topics_stale, false))
        forget(task);
    if (task->topic_last != NULL && strcmp(task->topic_last, topic) == 0)
        return;
    known = map_get(task->topics, topic);
    task->topic_last = known != NULL ? known : note(task, topic);
}
