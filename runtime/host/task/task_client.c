/* SPDX-License-Identifier: Apache-2.0 */
/* Client settings as Kafka Connect builds them: its own defaults for tasks, then the worker's
 * producer. or consumer. prefix, then the connector's override, as far as the worker's policy has
 * it. The layering itself is kafka/client_conf's. Called at a task's start. */
#include "host/task/task_client.h"

#include "base/buf.h"
#include "kafka/client_conf.h"
#include "model/conn_config.h"
#include "model/override_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_MEMORY 33554432
#define BUFFER_MIN 262144 /* one small batch must fit */

struct setting {
    const char *key;
    const char *value;
};

static int set_all(struct props *props, const struct setting *settings, size_t count)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = props_set(props, settings[i].key, settings[i].value);
    return rc;
}

/* Java's own sentence about one override. */
static void add_refusal(struct buf *out, const struct props *worker, const char *key,
                        const char *value)
{
    buf_printf(out,
               "%s[%s,%s,[],[The '%s' policy does not allow '%s' to be overridden in the "
               "connector configuration.],true]",
               out->len > 0 ? ", " : "", key, client_conf_secret(key) ? "[hidden]" : value,
               override_policy_of(worker), key);
}

/* A configuration that was stored before the worker had this policy. */
static int check_policy(const struct task_client_spec *spec, enum client_kind kind,
                        struct mr_error *err)
{
    static const char *const prefixes[] = {[CLIENT_PRODUCER] = "producer.override.",
                                           [CLIENT_CONSUMER] = "consumer.override.",
                                           [CLIENT_ADMIN] = "admin.override."};
    size_t len = strlen(prefixes[kind]);
    struct buf refusals;
    int rc = MR_OK;

    buf_init(&refusals, sizeof(err->text));
    for (size_t i = 0; i < spec->config->count; i++) {
        const struct props_entry *e = &spec->config->entries[i];

        if (strncmp(e->key, prefixes[kind], len) == 0 &&
            !override_policy_allows(spec->worker, e->key + len))
            add_refusal(&refusals, spec->worker, e->key + len,
                        e->value != NULL ? e->value : "null");
    }
    if (refusals.len > 0)
        rc = mr_fail(err, MR_ERR_CONFIG, "Client Config Overrides not allowed [%s]", refusals.data);
    buf_deinit(&refusals);
    return rc;
}

static int layer(const struct task_client_spec *spec, enum client_kind kind,
                 const struct props *built_in, struct props *java, struct mr_error *err)
{
    const struct client_conf_layers layers = {
        .kind = kind, .worker = spec->worker, .connector = spec->config, .built_in = built_in};
    int rc = check_policy(spec, kind, err);

    if (rc != MR_OK)
        return rc;
    if (client_conf_layer(&layers, java) == 0)
        return MR_OK;
    return mr_fail(err, MR_ERR_NOMEM, "out of memory for the settings of a Kafka client");
}

int64_t task_client_number(const struct props *props, const char *key, int64_t fallback,
                           int64_t min, int64_t max)
{
    const char *text = props_get(props, key);
    char *end;
    long long n;

    if (text == NULL)
        return fallback;
    errno = 0;
    n = strtoll(text, &end, 10);
    while (*end == ' ')
        end++;
    return end == text || *end != '\0' || errno != 0 || n < min || n > max ? fallback : n;
}

void task_client_id(const struct task_client_spec *spec, const char *role, char *out, size_t size)
{
    if (spec->number < 0)
        snprintf(out, size, "connector-%s-%s", role, spec->connector);
    else
        snprintf(out, size, "connector-%s-%s-%d", role, spec->connector, spec->number);
}

/* Order within a partition (promise 1): librdkafka builds the next request while one is in flight,
 * and without idempotence a request that the broker refused for now (a leader that moved) is sent
 * again behind it. Java's producer keeps order with one request in flight alone, so Connect can
 * leave idempotence off; here it is on, unless the user said otherwise or set what rules it out. */
static int keep_order(struct props *java)
{
    if (props_get(java, "enable.idempotence") != NULL)
        return 0;
    return props_set(java, "enable.idempotence",
                     client_conf_clash(java) == NULL ? "true" : "false");
}

static int producer_layers(const struct task_client_spec *spec, const char *role,
                           struct props *java, struct mr_error *err)
{
    static const struct setting settings[] = {
        {"acks", "all"},
        {"max.in.flight.requests.per.connection", "1"},
        {"max.block.ms", "9223372036854775807"},
        {"delivery.timeout.ms", "2147483647"},
    };
    struct props built_in;
    char id[512];
    int rc;

    props_init(java);
    props_init(&built_in);
    task_client_id(spec, role, id, sizeof(id));
    rc = set_all(&built_in, settings, sizeof(settings) / sizeof(settings[0]));
    if (rc == 0)
        rc = props_set(&built_in, "client.id", id);
    rc = rc == 0 ? layer(spec, CLIENT_PRODUCER, &built_in, java, err)
                 : mr_fail(err, MR_ERR_NOMEM, "out of memory for the producer's settings");
    props_deinit(&built_in);
    return rc;
}

static int ordered_producer(const struct task_client_spec *spec, const char *role,
                            struct props *java, struct mr_error *err)
{
    int rc = producer_layers(spec, role, java, err);

    if (rc == 0 && keep_order(java) != 0)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for the producer's settings");
    return rc;
}

int task_client_producer(const struct task_client_spec *spec, struct props *java,
                         struct mr_error *err)
{
    return ordered_producer(spec, "producer", java, err);
}

int task_client_check_transactions(const struct task_client_spec *spec, const struct props *java,
                                   struct mr_error *err)
{
    const struct client_conf_clash *clash = client_conf_clash(java);
    char name[128];

    if (clash == NULL)
        return MR_OK;
    snprintf(name, sizeof(name), "producer.override.%s", clash->key);
    return mr_fail(err, MR_ERR_CONFIG, "%s%s=%.100s: exactly-once needs %s=%s",
                   props_get(spec->config, name) != NULL ? "producer.override." : "producer.",
                   clash->key, props_get(java, clash->key), clash->key, clash->needs);
}

int task_client_change(const struct task_client_spec *spec, struct props *java,
                       struct mr_error *err)
{
    return ordered_producer(spec, "offset-producer", java, err);
}

int task_client_dead_letters(const struct task_client_spec *spec, struct props *java,
                             struct mr_error *err)
{
    int rc = producer_layers(spec, "dlq-producer", java, err);

    if (rc == 0 && props_get(java, "enable.idempotence") == NULL &&
        props_set(java, "enable.idempotence", "false") != 0)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for the producer's settings");
    return rc;
}

int task_client_admin(const struct task_client_spec *spec, const char *client_id,
                      struct props *java, struct mr_error *err)
{
    const struct setting settings[] = {{"client.id", client_id}};
    struct props built_in;
    int rc;

    props_init(java);
    props_init(&built_in);
    rc = set_all(&built_in, settings, 1);
    rc = rc == 0 ? layer(spec, CLIENT_ADMIN, &built_in, java, err)
                 : mr_fail(err, MR_ERR_NOMEM, "out of memory for an admin client's settings");
    props_deinit(&built_in);
    return rc;
}

void task_client_consumer_id(const struct task_client_spec *spec, char *out, size_t size)
{
    task_client_id(spec, "consumer", out, size);
}

int task_client_consumer(const struct task_client_spec *spec, struct props *java,
                         struct mr_error *err)
{
    static const struct setting settings[] = {
        {"enable.auto.commit", "false"},
        {"auto.offset.reset", "earliest"},
    };
    struct props built_in;
    char id[512];
    char group[1024];
    int rc;

    props_init(java);
    if (conn_config_group_id(spec->connector, spec->config, group, sizeof(group)) != 0)
        return mr_fail(err, MR_ERR_CONFIG,
                       "the name of the consumer group is longer than 1000 bytes");
    props_init(&built_in);
    task_client_consumer_id(spec, id, sizeof(id));
    rc = set_all(&built_in, settings, sizeof(settings) / sizeof(settings[0]));
    if (rc == 0)
        rc = props_set(&built_in, "client.id", id);
    if (rc == 0)
        rc = props_set(&built_in, "group.id", group);
    rc = rc == 0 ? layer(spec, CLIENT_CONSUMER, &built_in, java, err)
                 : mr_fail(err, MR_ERR_NOMEM, "out of memory for the consumer's settings");
    props_deinit(&built_in);
    return rc;
}

int task_client_offsets(const struct task_client_spec *spec, struct props *java,
                        struct mr_error *err)
{
    static const struct setting settings[] = {
        {"enable.auto.commit", "false"},
        {"auto.offset.reset", "earliest"},
        {"isolation.level", "read_committed"},
    };
    struct props built_in;
    char id[512];
    int rc;

    props_init(java);
    props_init(&built_in);
    task_client_id(spec, "consumer", id, sizeof(id));
    rc = set_all(&built_in, settings, sizeof(settings) / sizeof(settings[0]));
    if (rc == 0)
        rc = props_set(&built_in, "client.id", id);
    rc = rc == 0 ? layer(spec, CLIENT_CONSUMER, &built_in, java, err)
                 : mr_fail(err, MR_ERR_NOMEM, "out of memory for the consumer's settings");
    props_deinit(&built_in);
    props_remove(java, "group.id"); /* it is in none */
    props_remove(java, "group.instance.id");
    return rc;
}

size_t task_client_budget(const struct props *java)
{
    int64_t bytes = task_client_number(java, "buffer.memory", BUFFER_MEMORY, 0, INT64_C(1) << 40);

    return (size_t)(bytes < BUFFER_MIN ? BUFFER_MIN : bytes);
}
