/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Java settings and what librdkafka makes of them, for all that is not security.
 *
 * One row a Java name: the librdkafka name, the translation (client_translate_<word>), Java's
 * range, the narrower range of librdkafka where there is one, the value that holds when the user
 * set none (Java's default where librdkafka's is another), and a note. Names that client_security.c
 * and client_tls.c see to stand here too, so that they are known. client_conf.c has the rows
 * walked; settings that no Java name stands for are put at the end. Thread: any, no state. */
#include "kafka/kafka_private.h"

#include <limits.h>

/* --- the rows --------------------------------------------------------------------------------- */

#define LONG INT64_MAX
#define INT INT_MAX
#define SECURITY(X, name) X(name, NULL, nothing, 0, 0, 0, 0, NULL, NULL)
#define NOTE_METRICS "metrics are the worker's, not a client's"

/* clang-format off */
#define COMMON_ROWS(X) \
    X("bootstrap.servers", "bootstrap.servers", bootstrap, 0, 0, 0, 0, NULL, NULL) \
    X("client.id", "client.id", text, 0, 0, 0, 0, NULL, NULL) \
    X("client.dns.lookup", "client.dns.lookup", dns, 0, 0, 0, 0, NULL, NULL) \
    X("request.timeout.ms", "socket.timeout.ms", request_timeout, 0, INT, 10, 300000, "30000", NULL) \
    X("metadata.max.age.ms", NULL, metadata_age, 0, LONG, 1000, 3600000, "300000", NULL) \
    X("send.buffer.bytes", "socket.send.buffer.bytes", idle, -1, INT, 0, 100000000, NULL, NULL) \
    X("receive.buffer.bytes", "socket.receive.buffer.bytes", idle, -1, INT, 0, 100000000, NULL, NULL) \
    X("reconnect.backoff.ms", "reconnect.backoff.ms", number, 0, LONG, 0, 3600000, "50", NULL) \
    X("reconnect.backoff.max.ms", "reconnect.backoff.max.ms", backoff_max, 0, LONG, 0, 3600000, "1000", NULL) \
    X("retry.backoff.ms", "retry.backoff.ms", number, 0, LONG, 1, 300000, "100", NULL) \
    X("retry.backoff.max.ms", "retry.backoff.max.ms", number, 0, LONG, 1, 300000, "1000", NULL) \
    X("connections.max.idle.ms", "connections.max.idle.ms", idle, INT64_MIN, LONG, 0, INT, "540000", NULL) \
    X("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.ms", number, 0, LONG, 1000, INT, \
      "10000", NULL) \
    X("socket.connection.setup.timeout.max.ms", NULL, lost, 0, LONG, 0, 0, "30000", \
      "librdkafka doesn't raise the time for connecting") \
    X("metadata.recovery.strategy", "metadata.recovery.strategy", text, 0, 0, 0, 0, NULL, NULL) \
    X("metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.rebootstrap.trigger.ms", number, 0, LONG, 0, \
      INT, NULL, NULL) \
    X("enable.metrics.push", "enable.metrics.push", bool, 0, 0, 0, 0, "false", NULL) \
    X("metric.reporters", NULL, lost, 0, 0, 0, 0, "org.apache.kafka.common.metrics.JmxReporter", NOTE_METRICS) \
    X("auto.include.jmx.reporter", NULL, nothing, 0, 0, 0, 0, NULL, NULL) \
    X("metrics.num.samples", NULL, lost, 0, 0, 0, 0, "2", NOTE_METRICS) \
    X("metrics.recording.level", NULL, lost, 0, 0, 0, 0, "INFO", NOTE_METRICS) \
    X("metrics.sample.window.ms", NULL, lost, 0, 0, 0, 0, "30000", NOTE_METRICS) \
    X("config.providers", NULL, lost, 0, 0, 0, 0, NULL, "config providers are set for the worker") \
    SECURITY(X, "security.protocol") \
    SECURITY(X, "security.providers") \
    SECURITY(X, "sasl.mechanism") \
    SECURITY(X, "sasl.jaas.config") \
    SECURITY(X, "sasl.client.callback.handler.class") \
    SECURITY(X, "sasl.login.callback.handler.class") \
    SECURITY(X, "sasl.login.class") \
    SECURITY(X, "sasl.login.connect.timeout.ms") \
    SECURITY(X, "sasl.login.read.timeout.ms") \
    SECURITY(X, "sasl.login.refresh.buffer.seconds") \
    SECURITY(X, "sasl.login.refresh.min.period.seconds") \
    SECURITY(X, "sasl.login.refresh.window.factor") \
    SECURITY(X, "sasl.login.refresh.window.jitter") \
    SECURITY(X, "sasl.login.retry.backoff.max.ms") \
    SECURITY(X, "sasl.login.retry.backoff.ms") \
    SECURITY(X, "sasl.kerberos.kinit.cmd") \
    SECURITY(X, "sasl.kerberos.min.time.before.relogin") \
    SECURITY(X, "sasl.kerberos.service.name") \
    SECURITY(X, "sasl.kerberos.ticket.renew.jitter") \
    SECURITY(X, "sasl.kerberos.ticket.renew.window.factor") \
    SECURITY(X, "sasl.oauthbearer.assertion.algorithm") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.aud") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.exp.seconds") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.iss") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.jti.include") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.nbf.seconds") \
    SECURITY(X, "sasl.oauthbearer.assertion.claim.sub") \
    SECURITY(X, "sasl.oauthbearer.assertion.file") \
    SECURITY(X, "sasl.oauthbearer.assertion.private.key.file") \
    SECURITY(X, "sasl.oauthbearer.assertion.private.key.passphrase") \
    SECURITY(X, "sasl.oauthbearer.assertion.template.file") \
    SECURITY(X, "sasl.oauthbearer.client.credentials.client.id") \
    SECURITY(X, "sasl.oauthbearer.client.credentials.client.secret") \
    SECURITY(X, "sasl.oauthbearer.clock.skew.seconds") \
    SECURITY(X, "sasl.oauthbearer.expected.audience") \
    SECURITY(X, "sasl.oauthbearer.expected.issuer") \
    SECURITY(X, "sasl.oauthbearer.header.urlencode") \
    SECURITY(X, "sasl.oauthbearer.jwks.endpoint.refresh.ms") \
    SECURITY(X, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms") \
    SECURITY(X, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") \
    SECURITY(X, "sasl.oauthbearer.jwks.endpoint.url") \
    SECURITY(X, "sasl.oauthbearer.jwt.retriever.class") \
    SECURITY(X, "sasl.oauthbearer.jwt.validator.class") \
    SECURITY(X, "sasl.oauthbearer.scope") \
    SECURITY(X, "sasl.oauthbearer.scope.claim.name") \
    SECURITY(X, "sasl.oauthbearer.sub.claim.name") \
    SECURITY(X, "sasl.oauthbearer.token.endpoint.url") \
    SECURITY(X, "ssl.cipher.suites") \
    SECURITY(X, "ssl.enabled.protocols") \
    SECURITY(X, "ssl.endpoint.identification.algorithm") \
    SECURITY(X, "ssl.engine.factory.class") \
    SECURITY(X, "ssl.key.password") \
    SECURITY(X, "ssl.keymanager.algorithm") \
    SECURITY(X, "ssl.keystore.certificate.chain") \
    SECURITY(X, "ssl.keystore.key") \
    SECURITY(X, "ssl.keystore.location") \
    SECURITY(X, "ssl.keystore.password") \
    SECURITY(X, "ssl.keystore.type") \
    SECURITY(X, "ssl.protocol") \
    SECURITY(X, "ssl.provider") \
    SECURITY(X, "ssl.secure.random.implementation") \
    SECURITY(X, "ssl.trustmanager.algorithm") \
    SECURITY(X, "ssl.truststore.certificates") \
    SECURITY(X, "ssl.truststore.location") \
    SECURITY(X, "ssl.truststore.password") \
    SECURITY(X, "ssl.truststore.type")

/* linger.ms: Java's 5 ms from 4.0 on would be most of the time a record takes here; batches form by
 * themselves while one request is under way. batch.size: librdkafka's 1 MB, since Java's 16 KiB
 * costs twice the CPU. */
#define PRODUCER_ROWS(X) \
    X("acks", "acks", acks, 0, 0, 0, 0, "all", NULL) \
    X("retries", "retries", number, 0, INT, 0, INT, "2147483647", NULL) \
    X("delivery.timeout.ms", "delivery.timeout.ms", delivery_timeout, 0, INT, 1, INT, "120000", NULL) \
    X("max.in.flight.requests.per.connection", "max.in.flight.requests.per.connection", number, 1, INT, 1, 1000000, \
      "5", NULL) \
    X("enable.idempotence", "enable.idempotence", idempotence, 0, 0, 0, 0, "true", NULL) \
    X("transactional.id", "transactional.id", text, 0, 0, 0, 0, NULL, "String must be non-empty") \
    X("transaction.timeout.ms", "transaction.timeout.ms", number, 0, INT, 1000, INT, "60000", NULL) \
    X("transaction.two.phase.commit.enable", NULL, lost, 0, 0, 0, 0, "false", \
      "librdkafka can't take part in two-phase commits") \
    X("batch.size", "batch.size", number, 0, INT, 1, INT, NULL, NULL) \
    X("linger.ms", "linger.ms", number, 0, LONG, 0, 900000, "0", NULL) \
    X("compression.type", "compression.type", compression, 0, 0, 0, 0, "none", NULL) \
    X("compression.gzip.level", "compression.level", level, -1, 9, -1, 9, NULL, "gzip") \
    X("compression.lz4.level", "compression.level", level, 1, 17, 0, 12, NULL, "lz4") \
    X("compression.zstd.level", "compression.level", level, -131072, 22, 0, 12, NULL, "zstd") \
    X("buffer.memory", NULL, buffer_memory, 0, LONG, 0, 0, "33554432", NULL) \
    X("max.block.ms", NULL, lost, 0, LONG, 0, 0, "9223372036854775807", "a full queue always slows the source down") \
    X("max.request.size", "message.max.bytes", number, 0, INT, 1000, 1000000000, "1048576", NULL) \
    X("metadata.max.idle.ms", NULL, lost, 0, LONG, 0, 0, "300000", "librdkafka keeps topics that were used") \
    X("partitioner.class", "partitioner", partitioner, 0, 0, 0, 0, "", NULL) \
    X("partitioner.ignore.keys", NULL, nothing, 0, 0, 0, 0, NULL, NULL) \
    X("partitioner.adaptive.partitioning.enable", NULL, lost, 0, 0, 0, 0, "true", \
      "librdkafka does not partition by load") \
    X("partitioner.availability.timeout.ms", NULL, lost, 0, 0, 0, 0, "0", "librdkafka does not partition by load") \
    X("interceptor.classes", NULL, lost, 0, 0, 0, 0, NULL, "Java interceptors can't run here") \
    X("key.serializer", NULL, serializer, 0, 0, 0, 0, NULL, NULL) \
    X("value.serializer", NULL, serializer, 0, 0, 0, 0, NULL, NULL)

#define CONSUMER_ROWS(X) \
    X("group.id", "group.id", text, 0, 0, 0, 0, NULL, NULL) \
    X("group.instance.id", "group.instance.id", text, 0, 0, 0, 0, NULL, "String must be non-empty") \
    X("group.protocol", NULL, group_protocol, 0, 0, 0, 0, NULL, NULL) \
    X("group.remote.assignor", NULL, lost, 0, 0, 0, 0, NULL, "only the classic protocol is spoken") \
    X("client.rack", "client.rack", text, 0, 0, 0, 0, NULL, NULL) \
    X("session.timeout.ms", "session.timeout.ms", number, 0, INT, 1, 3600000, "45000", NULL) \
    X("heartbeat.interval.ms", "heartbeat.interval.ms", heartbeat, 0, INT, 1, 3600000, "3000", NULL) \
    X("max.poll.interval.ms", "max.poll.interval.ms", max_poll, 1, INT, 1, 86400000, "300000", NULL) \
    X("max.poll.records", NULL, nothing, 1, INT, 0, 0, NULL, NULL) \
    X("partition.assignment.strategy", "partition.assignment.strategy", assignors, 0, 0, 0, 0, "RangeAssignor", NULL) \
    X("auto.offset.reset", "auto.offset.reset", reset, 0, 0, 0, 0, "latest", NULL) \
    X("isolation.level", "isolation.level", isolation, 0, 0, 0, 0, "read_uncommitted", NULL) \
    X("check.crcs", "check.crcs", bool, 0, 0, 0, 0, "true", NULL) \
    X("allow.auto.create.topics", "allow.auto.create.topics", bool, 0, 0, 0, 0, "true", NULL) \
    X("enable.auto.commit", NULL, auto_commit, 0, 0, 0, 0, NULL, NULL) \
    X("auto.commit.interval.ms", NULL, nothing, 0, INT, 0, 0, NULL, NULL) \
    X("fetch.min.bytes", "fetch.min.bytes", number, 0, INT, 1, 100000000, "1", NULL) \
    X("fetch.max.bytes", "fetch.max.bytes", fetch_max, 0, INT, 1000, 2147483135, "52428800", NULL) \
    X("max.partition.fetch.bytes", "max.partition.fetch.bytes", number, 0, INT, 1, 1000000000, "1048576", NULL) \
    X("fetch.max.wait.ms", "fetch.wait.max.ms", number, 0, INT, 0, 300000, "500", NULL) \
    X("exclude.internal.topics", NULL, lost, 0, 0, 0, 0, "true", \
      "topics of the cluster itself are read only when named") \
    X("default.api.timeout.ms", NULL, nothing, 0, INT, 0, 0, NULL, NULL) \
    X("interceptor.classes", NULL, lost, 0, 0, 0, 0, NULL, "Java interceptors can't run here") \
    X("share.acknowledgement.mode", NULL, lost, 0, 0, 0, 0, "implicit", "share groups are not used") \
    X("share.acquire.mode", NULL, lost, 0, 0, 0, 0, "batch_optimized", "share groups are not used") \
    X("key.deserializer", NULL, serializer, 0, 0, 0, 0, NULL, NULL) \
    X("value.deserializer", NULL, serializer, 0, 0, 0, 0, NULL, NULL)
/* clang-format on */

#define AS_ROW(java, rdkafka, map, min, max, lib_min, lib_max, unset, note) \
    {java, rdkafka, client_translate_##map, min, max, lib_min, lib_max, unset, note},
#define AS_NAME(java, rdkafka, map, min, max, lib_min, lib_max, unset, note) java,

static const struct client_row common_rows[] = {COMMON_ROWS(AS_ROW)};
static const struct client_row producer_rows[] = {PRODUCER_ROWS(AS_ROW)};
static const struct client_row consumer_rows[] = {CONSUMER_ROWS(AS_ROW)};

static const char *const admin_names[] = {COMMON_ROWS(AS_NAME) NULL};
static const char *const producer_names[] = {COMMON_ROWS(AS_NAME) PRODUCER_ROWS(AS_NAME) NULL};
static const char *const consumer_names[] = {COMMON_ROWS(AS_NAME) CONSUMER_ROWS(AS_NAME) NULL};

const char *const *client_table_names(enum client_kind kind)
{
    static const char *const *const names[] = {[CLIENT_PRODUCER] = producer_names,
                                               [CLIENT_CONSUMER] = consumer_names,
                                               [CLIENT_ADMIN] = admin_names};

    return names[kind];
}

/* --- settings that no Java name stands for ---------------------------------------------------- */

struct fixed {
    const char *rdkafka;
    const char *value;
};

/* Java sets TCP_NODELAY and SO_KEEPALIVE on every connection. */
static const struct fixed common_fixed[] = {
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {NULL, NULL},
};

/* sticky…: records without key stay in one partition for a while, as in Java; with linger 0
 * librdkafka would scatter them. topic.metadata…: how long a topic may be unknown before its
 * records fail; long enough for one that was just created. */
static const struct fixed producer_fixed[] = {
    {"sticky.partitioning.linger.ms", "10"},
    {"topic.metadata.propagation.max.ms", "15000"},
    {NULL, NULL},
};

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* Offsets are the owner's. queued…: a client fetches ahead up to these, whatever the number of
 * partitions; then it looks again after fetch.queue.backoff.ms. Before librdkafka 2.2 that was a
 * whole second; consumer.c helps those over it. */
static const struct fixed consumer_fixed[] = {
    {"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"},
    {"queued.min.messages", TEXT(CLIENT_QUEUED_MESSAGES)},
    {"queued.max.messages.kbytes", TEXT(CLIENT_QUEUED_KBYTES)},
    {"fetch.queue.backoff.ms", "10"},
    {NULL, NULL},
};

static int apply_fixed(struct client_map *m, const struct fixed *fixed)
{
    int rc = 0;

    for (; rc == 0 && fixed->rdkafka != NULL; fixed++)
        rc = client_map_put(m, fixed->rdkafka, fixed->rdkafka, fixed->value);
    return rc;
}

static int apply_rows(struct client_map *m, const struct client_row *rows, size_t count)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *value = client_map_get(m, rows[i].java);

        m->given = value != NULL;
        if (value == NULL && rows[i].map != client_translate_lost)
            value = rows[i].unset;
        if (value != NULL)
            rc = rows[i].map(m, &rows[i], value);
    }
    m->given = false;
    return rc;
}

int client_table_apply(struct client_map *m)
{
    int rc;

    if (client_map_get(m, "bootstrap.servers") == NULL)
        return mr_fail(
            m->err, MR_ERR_CONFIG,
            "Missing required configuration \"bootstrap.servers\" which has no default value.");
    rc = apply_rows(m, common_rows, sizeof(common_rows) / sizeof(*common_rows));
    if (rc == 0)
        rc = apply_fixed(m, common_fixed);
    if (rc == 0 && m->kind == CLIENT_PRODUCER) {
        rc = apply_rows(m, producer_rows, sizeof(producer_rows) / sizeof(*producer_rows));
        if (rc == 0)
            rc = apply_fixed(m, producer_fixed);
    }
    if (rc == 0 && m->kind == CLIENT_CONSUMER) {
        rc = apply_rows(m, consumer_rows, sizeof(consumer_rows) / sizeof(*consumer_rows));
        if (rc == 0)
            rc = apply_fixed(m, consumer_fixed);
    }
    return rc;
}
