/* SPDX-License-Identifier: Apache-2.0 */
/* /connector-plugins and what lies below it. Run on the worker's loop, answered from the catalog at
 * once; but a validation may wait for what plugin code says in a process of its own, its deadline
 * ticking in call.c.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.ConnectorPluginsResource. */
#include "worker/rest/rest_private.h"

#include <string.h>

void res_plugins_list(struct call *call)
{
    bool connectors_only = router_flag(&call_exchange(call)->target, "connectorsOnly", true);

    call_reply_json(call, 200, herder_plugins(call_herder(call), connectors_only));
}

static const char *query(const struct router_target *target, const char *key, const char *fallback)
{
    for (size_t i = 0; i < target->query_count; i++)
        if (strcmp(target->query[i].key, key) == 0 && target->query[i].value[0] != '\0')
            return target->query[i].value;
    return fallback;
}

void res_plugins_config(struct call *call)
{
    const char *version = query(&call_exchange(call)->target, "version", "latest");
    struct mr_error err = {0};
    json_t *keys = herder_plugin_keys(call_herder(call), call_var(call, 0), version, &err);

    if (keys != NULL)
        call_reply_json(call, 200, keys);
    else
        call_reply_error(call, entities_status(err.code), "%s", err.text);
}

/* A name without its suffix, where something is left then. */
static size_t stem(const char *name)
{
    static const char suffix[] = "Connector";
    size_t len = strlen(name), end = sizeof(suffix) - 1;

    return len > end && strcmp(name + len - end, suffix) == 0 ? len - end : len;
}

/* Connect compares only so far: the class ends with what the path says. */
static bool is_of_type(const char *class_name, const char *type)
{
    size_t have = stem(class_name), want = stem(type);

    return have >= want && strncmp(class_name + have - want, type, want) == 0;
}

static void validated(void *arg, const struct herder_answer *answer)
{
    struct call *call = arg;

    if (call_came_back(call, answer))
        call_reply_json(call, 200, json_incref((json_t *)(uintptr_t)answer->body));
}

void res_plugins_validate(struct call *call)
{
    struct exchange *exchange = call_exchange(call);
    const char *class_name = props_get(&exchange->input.config, "connector.class");

    if (exchange->input_absent) {
        call_reply_error(call, 400, "The request body must be a JSON object");
        return;
    }
    if (class_name != NULL && !is_of_type(class_name, call_var(call, 0))) {
        call_reply_error(call, 400, "Included connector type %s does not match request type %s",
                         class_name, call_var(call, 0));
        return;
    }
    herder_validate(call_herder(call), &exchange->input.config, validated, call);
}
