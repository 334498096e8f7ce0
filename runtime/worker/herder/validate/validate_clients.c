/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of producer.override.*, consumer.override.* and admin.override.*: that they are
 * values of their types, the worker's policy, and whether the Kafka clients can be what is asked
 * of them. Called by validate.c; pure: files that settings name are read by the task's own
 * process, since a file system may hang. */
#include "kafka/client_conf.h"
#include "model/client_keys.h"
#include "model/offsets_topic.h"
#include "model/override_policy.h"
#include "base/java_order.h"
#include "worker/herder/validate/validation.h"

static const struct overrides {
    enum client_kind kind;
    enum client_keys_kind keys;
    const char *prefix;
} overrides[] = {
    {CLIENT_PRODUCER, CLIENT_KEYS_PRODUCER, "producer.override."},
    {CLIENT_CONSUMER, CLIENT_KEYS_CONSUMER, "consumer.override."},
    {CLIENT_ADMIN, CLIENT_KEYS_ADMIN, "admin.override."},
};

#define OVERRIDES (sizeof(overrides) / sizeof(overrides[0]))

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
    return dead_letters || (!validation_sink(v) && creates_topics(v)) || has_offsets_clients(v);
}

/* What can't be honoured here is refused now, and not found out by the running task; but for what
 * stands in files, and for values that no Kafka client takes: of these Connect lets the task
 * tell. */
static void check_client(struct validation *v, enum client_kind kind, const char *first)
{
    struct client_conf_layers layers = {
        .kind = kind, .worker = &v->in->worker->props, .connector = v->in->config};
    struct props java;
    struct mr_error err = {0};

    props_init(&java);
    mr_assert(client_conf_layer(&layers, &java) == 0);
    if (client_conf_check_means(kind, &java, &err) != 0)
        validation_problem(v, first, "%s", err.text);
    props_deinit(&java);
}

/* name: where it goes on behind the prefix. */
static int check_override(struct validation *v, const struct overrides *of, const char *name,
                          struct mr_error *err)
{
    const struct mr_config_key *def = client_keys_find(of->keys, name);
    const char *full = name - strlen(of->prefix);
    struct config_value value = {0};
    struct validate_key *key;

    if (def != NULL && config_def_parse(def, validation_get(v, full), &value, err) != 0)
        return MR_ERR_CONFIG;
    config_value_deinit(&value);
    key = validation_add(v, full, false);
    key->override = true;
    key->per_key = true;
    key->client = def;
    if (!override_policy_allows(&v->in->worker->props, name))
        validation_problem(v, full,
                           "The '%s' policy does not allow '%s' to be overridden in the connector "
                           "configuration.",
                           override_policy_of(&v->in->worker->props), name);
    return 0;
}

/* The first of them, where they go on behind the prefix; gives how many there are. */
static size_t names_below(const struct props *config, const char *prefix, const char **names)
{
    size_t len = strlen(prefix), count = 0;

    for (size_t i = 0; i < config->count; i++)
        if (strncmp(config->entries[i].key, prefix, len) == 0 && count++ < VALIDATION_NAMED_MAX)
            names[count - 1] = config->entries[i].key + len;
    return count;
}

/* In the order of the HashMap that Connect puts them in. */
static int check_overrides(struct validation *v, const struct overrides *of, struct mr_error *err)
{
    const char *names[VALIDATION_NAMED_MAX] = {NULL};
    size_t places[VALIDATION_NAMED_MAX];
    size_t count = names_below(v->in->config, of->prefix, names),
           looked_at = count < VALIDATION_NAMED_MAX ? count : VALIDATION_NAMED_MAX;
    int rc = java_order_of_set(names, looked_at, places);
    const char *first;

    for (size_t i = 0; rc == 0 && i < looked_at; i++)
        rc = check_override(v, of, names[places[i]], err);
    if (rc != 0 || count == 0)
        return rc;
    first = names[0] - strlen(of->prefix);
    if (count > VALIDATION_NAMED_MAX)
        validation_problem(v, first, "%zu keys below %s are more than %d", count, of->prefix,
                           VALIDATION_NAMED_MAX);
    else
        check_client(v, of->kind, first);
    return 0;
}

int validate_clients_overrides(struct validation *v, struct mr_error *err)
{
    int rc = 0;

    for (size_t o = 0; o < OVERRIDES && rc == 0; o++)
        if (uses(v, overrides[o].kind))
            rc = check_overrides(v, &overrides[o], err);
    return rc;
}
