/* SPDX-License-Identifier: Apache-2.0 */
/* The room's door for settings: layering as Connect does it, and the run of the mapping.
 *
 * client_conf_layer puts built-in, worker, connector and forced settings on top of each other;
 * client_conf_map turns the result into librdkafka's. Order inside: the table (client_table.c),
 * then security (client_security.c), then a look at what is left over. A left-over name is refused
 * when it is one of librdkafka's own, since some of those load libraries or run commands; otherwise
 * it is reported with the nearest name that is known. Pure but for PEM files that are read. */
#include "kafka/kafka_private.h"

#include "base/nearest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- layers ----------------------------------------------------------------------------------- */

static const struct {
    const char *worker;
    const char *override;
} prefixes[] = {
    [CLIENT_PRODUCER] = {"producer.", "producer.override."},
    [CLIENT_CONSUMER] = {"consumer.", "consumer.override."},
    [CLIENT_ADMIN] = {"admin.", "admin.override."},
};

int client_conf_layer(const struct client_conf_layers *layers, struct props *java)
{
    const char *bootstrap = props_get(layers->worker, "bootstrap.servers");
    int rc = 0;

    if (layers->built_in != NULL)
        rc = props_subset(layers->built_in, "", java);
    if (rc == 0 && layers->kind == CLIENT_ADMIN)
        rc = props_subset(layers->worker, "", java);
    if (rc == 0)
        rc = props_set(java, "bootstrap.servers", bootstrap != NULL ? bootstrap : "localhost:9092");
    if (rc == 0)
        rc = props_subset(layers->worker, prefixes[layers->kind].worker, java);
    if (rc == 0 && layers->connector != NULL)
        rc = props_subset(layers->connector, prefixes[layers->kind].override, java);
    if (rc == 0 && layers->forced != NULL)
        rc = props_subset(layers->forced, "", java);
    return rc;
}

/* --- secrets ---------------------------------------------------------------------------------- */

static const char *const secrets[] = {
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
};

bool client_conf_secret(const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++) {
        size_t n = strlen(secrets[i]);

        if (len >= n && strcmp(key + len - n, secrets[i]) == 0 &&
            (len == n || key[len - n - 1] == '.'))
            return true;
    }
    return false;
}

/* --- names that no table has ------------------------------------------------------------------ */

/* librdkafka's own names and what a Java client calls the same thing. Others are found by asking
 * the library. */
static const struct {
    const char *rdkafka;
    const char *java;
} refused[] = {
    {"metadata.broker.list", "bootstrap.servers"},
    {"sasl.mechanisms", "sasl.mechanism"},
    {"sasl.username", "sasl.jaas.config"},
    {"sasl.password", "sasl.jaas.config"},
    {"sasl.kerberos.principal", "sasl.jaas.config"},
    {"sasl.kerberos.keytab", "sasl.jaas.config"},
    {"sasl.oauthbearer.config", "sasl.jaas.config"},
    {"sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"},
    {"sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"},
    {"sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url"},
    {"sasl.oauthbearer.extensions", "sasl.jaas.config"},
    {"enable.sasl.oauthbearer.unsecure.jwt", "sasl.jaas.config"},
    {"ssl.ca.location", "ssl.truststore.type=PEM with ssl.truststore.location"},
    {"ssl.ca.pem", "ssl.truststore.type=PEM with ssl.truststore.certificates"},
    {"ssl.key.location", "ssl.keystore.type=PEM with ssl.keystore.location"},
    {"ssl.certificate.location", "ssl.keystore.type=PEM with ssl.keystore.location"},
    {"ssl.key.pem", "ssl.keystore.type=PEM with ssl.keystore.key"},
    {"ssl.certificate.pem", "ssl.keystore.type=PEM with ssl.keystore.certificate.chain"},
    {"socket.timeout.ms", "request.timeout.ms"},
    {"socket.send.buffer.bytes", "send.buffer.bytes"},
    {"socket.receive.buffer.bytes", "receive.buffer.bytes"},
    {"topic.metadata.refresh.interval.ms", "metadata.max.age.ms"},
    {"message.max.bytes", "max.request.size"},
    {"message.timeout.ms", "delivery.timeout.ms"},
    {"message.send.max.retries", "retries"},
    {"request.required.acks", "acks"},
    {"compression.codec", "compression.type"},
    {"queue.buffering.max.ms", "linger.ms"},
    {"queue.buffering.max.kbytes", "buffer.memory"},
    {"queue.buffering.max.messages", "buffer.memory"},
    {"max.in.flight", "max.in.flight.requests.per.connection"},
    {"partitioner", "partitioner.class"},
    {"fetch.wait.max.ms", "fetch.max.wait.ms"},
    {"fetch.message.max.bytes", "max.partition.fetch.bytes"},
};

/* Whether the installed library knows a name, hidden ones and topic settings among them. Setting
 * NULL means its default: nothing is loaded or run, which a value could do. */
static bool librdkafka_has(const char *key)
{
    rd_kafka_conf_t *scratch = rd_kafka_conf_new();
    char why[256];
    bool found = rd_kafka_conf_set(scratch, key, NULL, why, sizeof(why)) != RD_KAFKA_CONF_UNKNOWN;

    rd_kafka_conf_destroy(scratch);
    return found;
}

static bool named(const char *const *names, const char *key)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, key) == 0)
            return true;
    return false;
}

static int judge_unknown(struct client_map *m, const char *key)
{
    const char *near;

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (strcmp(refused[i].rdkafka, key) == 0)
            return mr_fail(
                m->err, MR_ERR_CONFIG,
                "\"%s\" is a setting of librdkafka, not of Kafka's Java clients: use %s instead",
                key, refused[i].java);
    if (librdkafka_has(key))
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "\"%.100s\" is a setting of librdkafka, which can't be set here: remove it",
                       key);
    if (m->kind == CLIENT_ADMIN) /* gets the whole worker configuration */
        return 0;
    near = nearest_name(key, client_table_names(m->kind));
    if (near != NULL)
        client_map_remark(m, key, "unknown setting, ignored; did you mean %s?", near);
    else
        client_map_remark(m, key, "unknown setting, ignored");
    return 0;
}

static int judge_rest(struct client_map *m)
{
    static const char *const owners[] = {
        [CLIENT_PRODUCER] = "producers", [CLIENT_CONSUMER] = "consumers"};
    enum client_kind other = m->kind == CLIENT_PRODUCER ? CLIENT_CONSUMER : CLIENT_PRODUCER;

    for (size_t i = 0; i < m->java.count; i++) {
        const char *key = m->java.entries[i].key;
        int rc;

        if (named(client_table_names(m->kind), key))
            continue;
        if (named(client_table_names(CLIENT_PRODUCER), key) ||
            named(client_table_names(CLIENT_CONSUMER), key)) {
            if (m->kind != CLIENT_ADMIN)
                client_map_remark(m, key, "a setting of %s, ignored", owners[other]);
            continue;
        }
        rc = judge_unknown(m, key);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int run(struct client_map *m, const struct props *java)
{
    int rc = client_map_init(m, java);

    if (rc == 0)
        rc = judge_rest(m);
    if (rc == 0)
        rc = client_table_apply(m);
    if (rc == 0)
        rc = client_security_apply(m);
    client_map_deinit(m);
    return rc;
}

int client_conf_map(enum client_kind kind, const struct props *java, struct props *rdkafka,
                    client_conf_warn warn, void *arg, struct mr_error *err)
{
    struct client_map m = {.kind = kind, .out = rdkafka, .warn = warn, .arg = arg, .err = err};

    return run(&m, java);
}

static int check(enum client_kind kind, const struct props *java, bool *invalid,
                 struct mr_error *err)
{
    struct props unused;
    struct client_map m = {.kind = kind, .out = &unused, .err = err, .blind = true};
    int rc;

    props_init(&unused);
    rc = run(&m, java);
    props_deinit(&unused);
    *invalid = m.invalid;
    return rc;
}

int client_conf_check(enum client_kind kind, const struct props *java, struct mr_error *err)
{
    bool unused;

    return check(kind, java, &unused, err);
}

int client_conf_check_means(enum client_kind kind, const struct props *java, struct mr_error *err)
{
    struct mr_error own = {0};
    bool invalid = false;
    int rc = check(kind, java, &invalid, &own);

    return rc == 0 || invalid ? 0 : mr_fail(err, rc, "%s", own.text);
}

const struct client_conf_clash *client_conf_clash(const struct props *java)
{
    const struct client_conf_clash *clash;
    struct client_map m = {.kind = CLIENT_PRODUCER};

    mr_assert(client_map_init(&m, java) == 0);
    clash = client_translate_clash(&m);
    client_map_deinit(&m);
    return clash;
}

const char *const *client_conf_names(enum client_kind kind)
{
    return client_table_names(kind);
}
