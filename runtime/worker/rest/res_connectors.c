/* SPDX-License-Identifier: Apache-2.0 */
/* /connectors and what lies below it, but for tasks. Run on the worker's loop: reads are answered
 * from the herder's memory at once; changes wait for the herder, their deadline ticking in call.c.
 * Spec: org.apache.kafka.connect.runtime.rest.resources.ConnectorsResource. */
#include "worker/rest/rest_private.h"

#include <string.h>

#define LOGGER "worker.rest"
#include "base/log.h"

/* --- reads ------------------------------------------------------------------------------------ */

/* What ?expand= asks for about one connector; NULL when it is to be left out (a status is asked
 * for, there is none). */
static json_t *expanded(struct herder *herder, const char *conn, const struct router_target *target)
{
    json_t *out = json_object();

    for (size_t i = 0; i < target->query_count; i++) {
        const struct router_pair *pair = &target->query[i];
        bool status = strcmp(pair->value, "status") == 0;
        json_t *part;

        if (strcmp(pair->key, "expand") != 0 || (!status && strcmp(pair->value, "info") != 0))
            continue;
        part = status ? herder_status(herder, conn) : herder_info(herder, conn);
        if (part == NULL && status) {
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, pair->value, part != NULL ? part : json_null());
    }
    return out;
}

static bool wants_expansion(const struct router_target *target)
{
    for (size_t i = 0; i < target->query_count; i++)
        if (strcmp(target->query[i].key, "expand") == 0)
            return true;
    return false;
}

void res_connectors_list(struct call *call)
{
    const struct router_target *target = &call_exchange(call)->target;
    struct herder *herder = call_herder(call);
    json_t *names = herder_names(herder);
    json_t *out;
    json_t *name;
    size_t i;

    if (!wants_expansion(target)) {
        call_reply_json(call, 200, names);
        return;
    }
    out = json_object();
    json_array_foreach(names, i, name)
    {
        json_t *one = expanded(herder, json_string_value(name), target);

        if (one != NULL)
            json_object_set_new(out, json_string_value(name), one);
    }
    json_decref(names);
    call_reply_json(call, 200, out);
}

static void reply_or_unknown(struct call *call, json_t *body)
{
    if (body != NULL)
        call_reply_json(call, 200, body);
    else
        call_reply_error(call, 404, "Connector %s not found", call_var(call, 0));
}

void res_connectors_info(struct call *call)
{
    reply_or_unknown(call, herder_info(call_herder(call), call_var(call, 0)));
}

void res_connectors_config(struct call *call)
{
    reply_or_unknown(call, herder_config(call_herder(call), call_var(call, 0)));
}

void res_connectors_status(struct call *call)
{
    json_t *status = herder_status(call_herder(call), call_var(call, 0));

    if (status != NULL)
        call_reply_json(call, 200, status);
    else
        call_reply_error(call, 404, "No status found for connector %s", call_var(call, 0));
}

/* --- configurations --------------------------------------------------------------------------- */

/* Connect takes such names too, and its users then wonder. */
static void tell_unreachable(const char *name)
{
    const char *why = router_unreachable(name);

    if (why != NULL)
        log_warn(
            "connector \"%.200s\" can't be named in the path of a request: %s. So it can't be "
            "read, changed or deleted by itself, as on a Java worker: better give it another "
            "name. To be rid of it: a standalone worker forgets it when it is started "
            "anew; a cluster does when a record with the key \"connector-%.200s\" and no value "
            "is written into its config.storage.topic",
            name, why, name);
}

static void created(void *arg, const struct herder_answer *answer)
{
    struct call *call = arg;

    if (!call_came_back(call, answer))
        return;
    tell_unreachable(call_exchange(call)->input.name);
    call_reply_written(call, call_exchange(call)->input.name, answer);
}

static void put(void *arg, const struct herder_answer *answer)
{
    struct call *call = arg;

    if (call_came_back(call, answer))
        call_reply_written(call, call_var(call, 0), answer);
}

/* The configuration's `name` must be the connector's; where it is missing it is added. False when
 * answered. */
static bool settle_name(struct call *call, struct props *config, const char *conn)
{
    const char *included = props_get(config, "name");

    if (included != NULL && strcmp(included, conn) != 0) {
        call_reply_error(
            call, 400,
            "Connector name configuration (%s) doesn't match connector name in the URL (%s)",
            included, conn);
        return false;
    }
    if (included == NULL && props_set(config, "name", conn) != 0) {
        call_reply_error(call, 500, "out of memory");
        return false;
    }
    return true;
}

void res_connectors_create(struct call *call)
{
    struct request_create *input = &call_exchange(call)->input;
    struct herder_put request = {.conn = input->name,
                                 .config = &input->config,
                                 .initial = input->initial,
                                 .no_initial = !input->has_initial,
                                 .create_only = true};

    if (!input->has_config)
        call_reply_error(
            call, 400,
            "The request body must be a JSON object with the members 'name' and 'config'");
    else if (settle_name(call, &input->config, input->name))
        herder_put(call_herder(call), &request, created, call);
}

void res_connectors_put_config(struct call *call)
{
    struct exchange *exchange = call_exchange(call);
    struct props *config = &exchange->input.config;
    struct herder_put request = {.conn = call_var(call, 0), .config = config, .no_initial = true};

    if (exchange->input_absent)
        call_reply_error(call, 400,
                         "The request body must be a JSON object: the connector's configuration");
    else if (settle_name(call, config, call_var(call, 0)))
        herder_put(call_herder(call), &request, put, call);
}

void res_connectors_patch_config(struct call *call)
{
    struct exchange *exchange = call_exchange(call);

    if (!exchange->input_absent)
        herder_patch(call_herder(call), call_var(call, 0), &exchange->input.config, put, call);
    else if (herder_knows(call_herder(call), call_var(call, 0)))
        call_reply_error(
            call, 400,
            "The request body must be a JSON object: the keys to change, null to remove one");
    else
        call_reply_error(call, 404, "Connector %s not found", call_var(call, 0));
}

/* --- life ------------------------------------------------------------------------------------- */

static void gone(void *arg, const struct herder_answer *answer)
{
    if (call_came_back(arg, answer))
        call_reply_empty(arg, 204);
}

static void accepted(void *arg, const struct herder_answer *answer)
{
    if (call_came_back(arg, answer))
        call_reply_empty(arg, 202);
}

/* The state with RESTARTING parts when a flag was given, nothing for a plain restart. */
static void restarted(void *arg, const struct herder_answer *answer)
{
    if (!call_came_back(arg, answer))
        return;
    if (answer->body != NULL)
        call_reply_json(arg, 202, json_incref((json_t *)(uintptr_t)answer->body));
    else
        call_reply_empty(arg, 204);
}

void res_connectors_delete(struct call *call)
{
    herder_delete(call_herder(call), call_var(call, 0), gone, call);
}

void res_connectors_restart(struct call *call)
{
    const struct router_target *target = &call_exchange(call)->target;
    bool include_tasks = router_flag(target, "includeTasks", false);
    bool only_failed = router_flag(target, "onlyFailed", false);

    herder_restart(call_herder(call), call_var(call, 0), include_tasks, only_failed, restarted,
                   call);
}

void res_connectors_pause(struct call *call)
{
    herder_set_target(call_herder(call), call_var(call, 0), TARGET_PAUSED, accepted, call);
}

void res_connectors_resume(struct call *call)
{
    herder_set_target(call_herder(call), call_var(call, 0), TARGET_STARTED, accepted, call);
}

void res_connectors_stop(struct call *call)
{
    herder_set_target(call_herder(call), call_var(call, 0), TARGET_STOPPED, gone, call);
}
