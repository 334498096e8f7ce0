/* SPDX-License-Identifier: Apache-2.0 */
/* What lies below /connectors/{c}/tasks. Run on the worker's loop; a restart waits for the herder.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.ConnectorsResource. */
#include "worker/rest/rest_private.h"

void res_tasks_list(struct call *call)
{
    json_t *tasks = herder_tasks(call_herder(call), call_var(call, 0));

    if (tasks != NULL)
        call_reply_json(call, 200, tasks);
    else
        call_reply_error(call, 404, "Connector %s not found", call_var(call, 0));
}

void res_tasks_status(struct call *call)
{
    json_t *status = herder_task_status(call_herder(call), call_var(call, 0), call_task(call));

    if (status != NULL)
        call_reply_json(call, 200, status);
    else
        call_reply_error(call, 404, "No status found for task %s-%d", call_var(call, 0),
                         call_task(call));
}

static void restarted(void *arg, const struct herder_answer *answer)
{
    if (call_came_back(arg, answer))
        call_reply_empty(arg, 204);
}

void res_tasks_restart(struct call *call)
{
    herder_restart_task(call_herder(call), call_var(call, 0), call_task(call), restarted, call);
}
