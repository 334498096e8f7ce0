/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of producer.override.*, consumer.override.* and admin.override.*: the worker's policy,
 * and whether the Kafka clients can be what is asked of them. Called by validate.c; pure: files
 * that settings name are read by the task's own process, since a file system may hang. */
#include "worker/herder/validation.h"

#include "kafka/client_conf.h"
#include "model/offsets_topic.h"

static const struct {
    enum client_kind kind;
    const char *prefix;
} overrides[] = {
    {CLIENT_PRODUCER, "producer.override."},
    {CLIENT_CONSUMER, "consumer.override."},
    {CLIENT_ADMIN, "admin.override."},
};

#define OVERRIDES (sizeof(overrides) / sizeof(overrides[0]))

static bool is_allowed(const struct worker_config *worker, const char *key)
{
    static const char *const principal[] = {"sasl.jaas.config", "sasl.mechanism",
                                            "security.protocol", NULL};
    const char *const *list = principal;

    if (worker->override_policy == WORKER_OVERRIDE_ALL ||
        worker->override_policy == WORKER_OVERRIDE_NONE)
        return worker->override_policy == WORKER_OVERRIDE_ALL;
    if (worker->override_policy == WORKER_OVERRIDE_ALLOWLIST)
        list = (const char *const *)worker->override_allowlist;
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static bool creates_topics(const struct validation *v)
{
    for (size_t i = 0; i < v->in->config->count; i++)
        if (strncmp(v->in->config->entries[i].key, "topic.creation.", 15) == 0)
            return true;
    return false;
}

/* A source whose offsets topic has clients of its own; as in Java also when it is the worker's by
 * name. */
static bool has_offsets_clients(const struct validation *v)
{
    const struct props *worker = &v->in->worker->props;

    return !validation_sink(v) && v->in->worker->cluster.group_id != NULL &&
           (offsets_topic_transactions(worker) ||
            !validation_blank(validation_get(v, "offsets.storage.topic")));
}

/* Which clients a connector of this kind and configuration has. */
static bool uses(const struct validation *v, enum client_kind kind)
{
    bool dead_letters = validation_sink(v) &&
                        !validation_blank(validation_get(v, "errors.deadletterqueue.topic.name"));

    if (kind == CLIENT_PRODUCER)
        return !validation_sink(v) || dead_letters;
    if (kind == CLIENT_CONSUMER)
        return validation_sink(v) || has_offsets_clients(v);
    return dead_letters || creates_topics(v) || has_offsets_clients(v);
}

/* What can't be honoured is refused here, and not found out by the running task; but for what
 * stands in files. */
static void check_client(struct validation *v, enum client_kind kind, const char *first)
{
    struct client_conf_layers layers = {
        .kind = kind, .worker = &v->in->worker->props, .connector = v->in->config};
    struct props java;
    struct mr_error err = {0};

    props_init(&java);
    mr_assert(client_conf_layer(&layers, &java) == 0);
    if (client_conf_check(kind, &java, &err) != 0)
        validation_problem(v, first, "%s", err.text);
    props_deinit(&java);
}

void validate_clients_overrides(struct validation *v)
{
    const struct props *config = v->in->config;

    for (size_t o = 0; o < OVERRIDES; o++) {
        size_t len = strlen(overrides[o].prefix), count = 0;
        const char *first = NULL;

        if (!uses(v, overrides[o].kind))
            continue;
        for (size_t i = 0; i < config->count; i++) {
            const char *name = config->entries[i].key;

            if (strncmp(name, overrides[o].prefix, len) != 0 || count++ >= VALIDATION_NAMED_MAX)
                continue;
            first = first != NULL ? first : name;
            validation_key(v, name)->per_key = true;
            if (!is_allowed(v->in->worker, name + len))
                validation_problem(
                    v, name,
                    "The '%s' policy does not allow '%s' to be overridden in the connector "
                    "configuration.",
                    worker_config_override_name(v->in->worker->override_policy), name + len);
        }
        if (count > VALIDATION_NAMED_MAX)
            validation_problem(v, first, "%zu keys below %s are more than %d", count,
                               overrides[o].prefix, VALIDATION_NAMED_MAX);
        else if (first != NULL)
            check_client(v, overrides[o].kind, first);
    }
}
