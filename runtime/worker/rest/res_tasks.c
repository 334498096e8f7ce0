/* SPDX-License-Identifier: Apache-2.0 */
/* What lies below /connectors/{c}/tasks. Run on the worker's loop; a restart waits for the herder.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.ConnectorsResource. */
#include "worker/rest/rest_private.h"

#include <stdlib.h>
#include <string.h>

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

/* --- of another worker's connector: internal, signed ------------------------------------------ */

static void stored(void *arg, const struct herder_answer *answer)
{
    if (call_came_back(arg, answer))
        call_reply_empty(arg, 204);
}

static struct props *read_configs(const struct exchange *exchange, size_t *count,
                                  struct mr_error *err)
{
    json_t *list =
        json_parse(exchange->body != NULL ? exchange->body : "", exchange->body_len, err);
    struct props *configs = NULL;

    *count = 0;
    if (list != NULL && !json_is_array(list))
        mr_fail(err, MR_ERR_PROTOCOL, "The request body must be a JSON array of configurations");
    if (err->code == 0)
        configs = calloc(json_array_size(list) + 1, sizeof(*configs));
    if (configs == NULL)
        mr_fail(err, MR_ERR_NOMEM, "out of memory for the tasks' configurations");
    for (size_t i = 0; configs != NULL && err->code == 0 && i < json_array_size(list); i++) {
        props_init(&configs[i]);
        json_to_props(json_array_get(list, i), &configs[i], err);
        *count = i + 1;
    }
    json_decref(list);
    return configs;
}

static void put_tasks(struct call *call)
{
    struct mr_error err = {0};
    size_t count;
    struct props *configs = read_configs(call_exchange(call), &count, &err);

    if (err.code != 0)
        call_reply_error(call, 400, "%s", err.text);
    else
        herder_put_tasks(call_herder(call), call_var(call, 0), configs, count, stored, call);
    for (size_t i = 0; i < count; i++)
        props_deinit(&configs[i]);
    free(configs);
}

/* May this call be believed? false: answered. */
static bool is_signed(struct call *call)
{
    const struct exchange *exchange = call_exchange(call);
    struct herder_claim claim = {.signature = exchange->signature,
                                 .algorithm = exchange->signature_algorithm,
                                 .body = exchange->body != NULL ? exchange->body : "",
                                 .len = exchange->body_len};
    struct mr_error err = {0};
    int status = herder_check_claim(call_herder(call), &claim, &err);

    if (status != 0)
        call_reply_error(call, status, "%s", err.text);
    return status == 0;
}

void res_tasks_put(struct call *call)
{
    if (is_signed(call))
        put_tasks(call);
}

void res_tasks_fence(struct call *call)
{
    if (herder_peer(call_herder(call)) == NULL)
        call_reply_error(
            call, 500,
            "Kafka Connect in standalone mode does not support exactly-once source connectors.");
    else if (is_signed(call))
        herder_fence(call_herder(call), call_var(call, 0), stored, call);
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
