/* SPDX-License-Identifier: Apache-2.0 */
/* /admin/loggers: levels of this worker's loggers, and through the config topic those of all
 * workers. Run on the worker's loop, answered at once but for scope=cluster, which waits for the
 * record to be written.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.LoggingResource, KIP-495, KIP-976. */
#define LOGGER "worker.rest"
#include "base/log.h"
#include "worker/rest/rest_private.h"

#include <string.h>
#include <strings.h>

void res_loggers_list(struct call *call)
{
    call_reply_json(call, 200, herder_loggers(call_herder(call)));
}

void res_loggers_get(struct call *call)
{
    json_t *logger = herder_logger(call_herder(call), call_var(call, 0));

    if (logger != NULL)
        call_reply_json(call, 200, logger);
    else
        call_reply_error(call, 404, "Logger %s not found.", call_var(call, 0));
}

static const char *scope_of(const struct call *call)
{
    const struct router_target *target = &call_exchange(call)->target;

    for (size_t i = 0; i < target->query_count; i++)
        if (strcmp(target->query[i].key, "scope") == 0)
            return target->query[i].value;
    return "worker";
}

/* Any scope that is not known means this worker, as in Connect. */
static bool is_for_cluster(const struct call *call)
{
    return strcasecmp(scope_of(call), "cluster") == 0;
}

static void on_set(void *arg, const struct herder_answer *answer)
{
    struct call *call = arg;

    if (!call_came_back(call, answer))
        return;
    if (is_for_cluster(call))
        call_reply_empty(call, 204);
    else
        call_reply_json(call, 200, json_incref((json_t *)(uintptr_t)answer->body));
}

void res_loggers_set(struct call *call)
{
    const char *level = props_get(&call_exchange(call)->input.config, "level");
    const char *scope = scope_of(call);

    if (strcasecmp(scope, "cluster") != 0 && strcasecmp(scope, "worker") != 0)
        log_warn(
            "scope '%.100s' of a logger's level is neither worker nor cluster: worker is taken",
            scope);
    if (level == NULL)
        call_reply_error(call, 400, "Desired 'level' parameter was not specified in request.");
    else if (level[0] == '\0')
        call_reply_error(call, 400, "Illegal null or empty Level name.");
    else if (!herder_set_logger(call_herder(call), call_var(call, 0), level, is_for_cluster(call),
                                on_set, call))
        call_reply_error(call, 404, "invalid log level '%s'.", level);
}
