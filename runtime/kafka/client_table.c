/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Java settings and what librdkafka makes of them, for all that is not security.
 *
 * One row a Java name: the librdkafka name, the function that translates the value, Java's range, the narrower range of
 * librdkafka where there is one, and the value that holds when the user set none (Java's default where librdkafka's is
 * another). Rows of client_security.c stand here too, as names only. client_conf.c walks the rows through
 * client_table_apply; settings that follow from several others are put at the end of it. Thread: any, no state. */
#include "kafka/kafka_private.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct row {
    const char *java;
    const char *rdkafka;
    int (*map)(struct client_map *m, const struct row *row, const char *value);
    int64_t min;            /* what Java takes */
    int64_t max;
    int64_t lib_min;        /* what librdkafka takes: values beyond are moved to the edge, with a remark */
    int64_t lib_max;
    const char *unset;      /* the value when the user gives none; NULL: librdkafka's own default */
    const char *note;
};

static int range_error(struct client_map *m, const struct row *row, const char *value, const char *edge, int64_t n)
{
    char why[80];

    snprintf(why, sizeof(why), "Value must be %s %lld", edge, (long long)n);
    return client_map_invalid(m, row->java, value, why);
}

static int read_number(struct client_map *m, const struct row *row, const char *value, int64_t *n)
{
    if (!client_map_long(value, n) || (row->max == INT_MAX && (*n > INT_MAX || *n < INT_MIN)))
        return client_map_invalid(m, row->java, value,
                                  row->max == INT_MAX ? "Not a number of type INT" : "Not a number of type LONG");
    if (*n < row->min)
        return range_error(m, row, value, "at least", row->min);
    if (*n > row->max)
        return range_error(m, row, value, "no more than", row->max);
    return 0;
}

static int put_number(struct client_map *m, const struct row *row, const char *rdkafka, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)n);
    return client_map_put(m, row->java, rdkafka, text);
}

static int64_t fit(struct client_map *m, const struct row *row, int64_t n)
{
    int64_t fitted = n < row->lib_min ? row->lib_min : n > row->lib_max ? row->lib_max : n;

    if (fitted != n && m->given)
        client_map_remark(m, row->java, "librdkafka takes %lld to %lld: %lld is used", (long long)row->lib_min,
                          (long long)row->lib_max, (long long)fitted);
    return fitted;
}

/* A number that another setting depends on: the user's, or the row's. */
static int64_t number_of(const struct client_map *m, const char *java, int64_t unset)
{
    const char *value = client_map_get(m, java);
    int64_t n;

    return value != NULL && client_map_long(value, &n) ? n : unset;
}

/* --- translations --------------------------------------------------------------------------------------------------- */

static int map_number(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    return rc != 0 ? rc : put_number(m, row, row->rdkafka, fit(m, row, n));
}

static int map_text(struct client_map *m, const struct row *row, const char *value)
{
    if (value[0] == '\0')
        return row->note != NULL ? client_map_invalid(m, row->java, value, row->note) : 0;
    return client_map_put(m, row->java, row->rdkafka, value);
}

static int map_bool(struct client_map *m, const struct row *row, const char *value)
{
    bool yes = strcasecmp(value, "true") == 0;

    if (!yes && strcasecmp(value, "false") != 0)
        return client_map_invalid(m, row->java, value, "Expected value to be either true or false");
    return client_map_put(m, row->java, row->rdkafka, yes ? "true" : "false");
}

/* No counterpart, nothing lost. */
static int map_nothing(struct client_map *m, const struct row *row, const char *value)
{
    (void)m, (void)row, (void)value;
    return 0;
}

/* No counterpart: said by name, unless it is the value that is in effect anyway (row->unset). */
static int map_lost(struct client_map *m, const struct row *row, const char *value)
{
    if (value[0] != '\0' && (row->unset == NULL || strcasecmp(row->unset, value) != 0))
        client_map_remark(m, row->java, "%s; ignored", row->note);
    return 0;
}

/* Done by client_security.c. */
#define map_security map_nothing

/* LISTENER://host:port,host:port → host:port,host:port */
static int map_bootstrap(struct client_map *m, const struct row *row, const char *value)
{
    const char *list = value;
    const char *item;
    size_t len;
    struct buf out;
    int rc = 0;

    buf_init(&out, 1 << 16);
    while (rc == 0 && client_map_item(&list, &item, &len)) {
        const char *scheme = memmem(item, len, "://", 3);
        size_t port = len;

        if (scheme != NULL) {
            len -= (size_t)(scheme + 3 - item);
            item = scheme + 3;
            port = len;
        }
        while (port > 0 && isdigit((unsigned char)item[port - 1]))
            port--;
        if (port == len || port < 2 || item[port - 1] != ':' || len - port > 5)
            rc = client_map_invalid(m, row->java, value, "each entry must be host:port");
        else
            buf_printf(&out, "%s%.*s", out.len > 0 ? "," : "", (int)len, item);
    }
    if (rc == 0 && out.len == 0)
        rc = client_map_invalid(m, row->java, value, "No resolvable bootstrap urls given");
    if (rc == 0 && out.failed)
        rc = client_map_invalid(m, row->java, value, "the list is too long");
    if (rc == 0)
        rc = client_map_put(m, row->java, row->rdkafka, out.data);
    buf_deinit(&out);
    return rc;
}

static int map_dns(struct client_map *m, const struct row *row, const char *value)
{
    if (strcmp(value, "use_all_dns_ips") == 0) /* what every librdkafka does unless told otherwise */
        return 0;
    if (strcmp(value, "resolve_canonical_bootstrap_servers_only") != 0)
        return client_map_invalid(m, row->java, value,
                                  "String must be one of: use_all_dns_ips, resolve_canonical_bootstrap_servers_only");
    return client_map_put(m, row->java, row->rdkafka, value);
}

/* librdkafka's own request.timeout.ms is the time a broker may take for acknowledgements. */
static int map_request_timeout(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    if (m->kind == CLIENT_PRODUCER && client_map_get(m, "transactional.id") != NULL) {
        int64_t limit = number_of(m, "transaction.timeout.ms", 60000);

        if (n > limit && limit >= row->lib_min)
            n = limit;
    }
    rc = put_number(m, row, "socket.timeout.ms", n);
    return rc != 0 || m->kind != CLIENT_PRODUCER ? rc : put_number(m, row, "request.timeout.ms", n);
}

static int map_metadata_age(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    rc = put_number(m, row, "topic.metadata.refresh.interval.ms", n);
    return rc != 0 ? rc : put_number(m, row, "metadata.max.age.ms", n * 3);
}

/* Java: reconnect.backoff.ms set alone is also the maximum; a maximum below it is lifted here, librdkafka refuses it. */
static int map_backoff_max(struct client_map *m, const struct row *row, const char *value)
{
    int64_t least = number_of(m, "reconnect.backoff.ms", 50);
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    if (!m->given && client_map_get(m, "reconnect.backoff.ms") != NULL)
        n = least;
    return put_number(m, row, row->rdkafka, fit(m, row, n < least ? least : n));
}

/* Java: negative = never. */
static int map_idle(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    return rc != 0 ? rc : put_number(m, row, row->rdkafka, n < 0 ? 0 : fit(m, row, n));
}

static int map_acks(struct client_map *m, const struct row *row, const char *value)
{
    if (strcmp(value, "all") != 0 && strcmp(value, "-1") != 0 && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return client_map_invalid(m, row->java, value, "String must be one of: all, -1, 0, 1");
    return client_map_put(m, row->java, row->rdkafka, value);
}

static bool all_acks(const struct client_map *m)
{
    const char *acks = client_map_get(m, "acks");

    return acks == NULL || strcmp(acks, "all") == 0 || strcmp(acks, "-1") == 0;
}

/* Java: on by default, unless other settings that the user gave speak against it; asked for in so many words, they clash. */
static int map_idempotence(struct client_map *m, const struct row *row, const char *value)
{
    const char *clash = NULL;
    bool off = strcasecmp(value, "false") == 0;

    if (!all_acks(m))
        clash = "Must set acks to all in order to use the idempotent producer";
    else if (number_of(m, "retries", 1) < 1)
        clash = "Must set retries to non-zero when using the idempotent producer";
    else if (number_of(m, "max.in.flight.requests.per.connection", 5) > 5)
        clash = "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer";
    if (client_map_get(m, "transactional.id") != NULL && (off || clash != NULL))
        return mr_fail(m->err, MR_ERR_CONFIG, "Cannot set a transactional.id without also enabling idempotence%s%s",
                       clash != NULL ? ": " : "", clash != NULL ? clash : "");
    if (!m->given && clash != NULL)
        return client_map_put(m, row->java, row->rdkafka, "false");
    if (clash != NULL && !off)
        return client_map_invalid(m, row->java, value, clash);
    return map_bool(m, row, value);
}

static int map_delivery_timeout(struct client_map *m, const struct row *row, const char *value)
{
    int64_t least = number_of(m, "linger.ms", 0) + number_of(m, "request.timeout.ms", 30000);
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    if (n < least && m->given)
        return client_map_invalid(m, row->java, value,
                                  "it should be equal to or larger than linger.ms + request.timeout.ms");
    if (n < least)
        n = least > INT_MAX ? INT_MAX : least;
    if (client_map_get(m, "transactional.id") != NULL) { /* librdkafka: a record can't outlive its transaction */
        int64_t limit = number_of(m, "transaction.timeout.ms", 60000);

        if (n > limit)
            n = limit;
    }
    return put_number(m, row, row->rdkafka, n);
}

static int map_compression(struct client_map *m, const struct row *row, const char *value)
{
    static const char *const types[] = {"none", "gzip", "snappy", "lz4", "zstd"};

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i], value) == 0)
            return client_map_put(m, row->java, row->rdkafka, value);
    return client_map_invalid(m, row->java, value, "String must be one of: none, gzip, snappy, lz4, zstd");
}

/* compression.gzip.level counts only next to compression.type=gzip, and so on; the codec's name is the row's note. */
static int map_level(struct client_map *m, const struct row *row, const char *value)
{
    const char *type = client_map_get(m, "compression.type");
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0 || type == NULL || strcmp(type, row->note) != 0)
        return rc;
    return put_number(m, row, row->rdkafka, fit(m, row, n));
}

/* Bytes of values that may wait, and with them the number of records: each costs about 200 bytes of its own. */
static int map_buffer_memory(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int64_t records;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    records = n / 320;
    records = records < 1000 ? 1000 : records > 10000000 ? 10000000 : records;
    n /= 1024;
    rc = put_number(m, row, "queue.buffering.max.kbytes", n < 1 ? 1 : n > 2097151 ? 2097151 : n);
    return rc != 0 ? rc : put_number(m, row, "queue.buffering.max.messages", records);
}

static int map_partitioner(struct client_map *m, const struct row *row, const char *value)
{
    static const struct {
        const char *name;
        const char *partitioner;
    } known[] = {
        {"", "murmur2_random"},
        {"DefaultPartitioner", "murmur2_random"},
        {"UniformStickyPartitioner", "random"},
        {"RoundRobinPartitioner", "random"},
    };
    const char *ignore = client_map_get(m, "partitioner.ignore.keys");
    const char *dot = strrchr(value, '.');
    const char *name = dot != NULL ? dot + 1 : value;
    size_t package = (size_t)(name - value);

    if (package > 0 && strncmp(value, "org.apache.kafka.clients.producer.", package) != 0 &&
        strncmp(value, "org.apache.kafka.clients.producer.internals.", package) != 0)
        name = value;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        const char *partitioner = known[i].partitioner;

        if (strcmp(known[i].name, name) != 0)
            continue;
        if (strcmp(name, "RoundRobinPartitioner") == 0)
            client_map_remark(m, row->java, "librdkafka has no round robin: partitions are chosen at random");
        if (name[0] == '\0' && ignore != NULL && strcasecmp(ignore, "true") == 0)
            partitioner = "random";
        return client_map_put(m, row->java, row->rdkafka, partitioner);
    }
    return client_map_invalid(m, row->java, value,
                              "Java partitioners can't run here and records would land in other partitions; remove it, "
                              "or let the source set the partition");
}

/* Our own serializing is done by converters: bytes in, bytes out. */
static int map_serializer(struct client_map *m, const struct row *row, const char *value)
{
    if (strstr(value, "ByteArray") == NULL)
        client_map_remark(m, row->java, "records are written and read by converters; ignored");
    return 0;
}

static int map_reset(struct client_map *m, const struct row *row, const char *value)
{
    static const char *const names[][2] = {{"earliest", "earliest"}, {"latest", "latest"}, {"none", "error"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcasecmp(names[i][0], value) == 0)
            return client_map_put(m, row->java, row->rdkafka, names[i][1]);
    if (strncasecmp(value, "by_duration:", 12) == 0)
        return client_map_invalid(m, row->java, value, "librdkafka can't reset by duration: use earliest or latest");
    return client_map_invalid(m, row->java, value, "String must be one of: earliest, latest, none");
}

static int map_isolation(struct client_map *m, const struct row *row, const char *value)
{
    if (strcmp(value, "read_committed") != 0 && strcmp(value, "read_uncommitted") != 0)
        return client_map_invalid(m, row->java, value, "String must be one of: read_committed, read_uncommitted");
    return client_map_put(m, row->java, row->rdkafka, value);
}

static int map_auto_commit(struct client_map *m, const struct row *row, const char *value)
{
    if (strcasecmp(value, "true") == 0)
        client_map_remark(m, row->java, "offsets are committed only after records were delivered; false is used");
    else if (strcasecmp(value, "false") != 0)
        return client_map_invalid(m, row->java, value, "Expected value to be either true or false");
    return 0;
}

/* librdkafka refuses a poll limit below the session's. */
static int map_max_poll(struct client_map *m, const struct row *row, const char *value)
{
    int64_t session = number_of(m, "session.timeout.ms", 45000);
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    if (n < session && session <= row->lib_max) {
        client_map_remark(m, row->java, "librdkafka wants at least session.timeout.ms: %lld is used", (long long)session);
        n = session;
    }
    return put_number(m, row, row->rdkafka, n);
}

static int map_heartbeat(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc == 0 && n >= number_of(m, "session.timeout.ms", 45000))
        return client_map_invalid(m, row->java, value, "Heartbeat must be set lower than the session timeout");
    return rc != 0 ? rc : put_number(m, row, row->rdkafka, fit(m, row, n));
}

/* The library wants message.max.bytes <= fetch.max.bytes < receive.message.max.bytes. */
static int map_fetch_max(struct client_map *m, const struct row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    rc = put_number(m, row, row->rdkafka, n);
    if (rc == 0 && n < 1000000)
        rc = put_number(m, row, "message.max.bytes", n);
    if (rc == 0 && n + 512 > 100000000)
        rc = put_number(m, row, "receive.message.max.bytes", n + 512);
    return rc;
}

static int map_group_protocol(struct client_map *m, const struct row *row, const char *value)
{
    if (strcasecmp(value, "consumer") == 0)
        client_map_remark(m, row->java, "only the classic protocol is spoken; classic is used");
    else if (strcasecmp(value, "classic") != 0)
        return client_map_invalid(m, row->java, value, "String must be one of (case insensitive): CLASSIC, CONSUMER");
    return 0;
}

static const struct {
    const char *java;
    const char *rdkafka; /* NULL: none */
    bool eager;
} assignors[] = {
    {"RangeAssignor", "range", true},
    {"RoundRobinAssignor", "roundrobin", true},
    {"CooperativeStickyAssignor", "cooperative-sticky", false},
    {"StickyAssignor", NULL, true},
};

static const char *assignor_name(const char *item, size_t len, bool *eager)
{
    static const char package[] = "org.apache.kafka.clients.consumer.";

    if (len > sizeof(package) - 1 && strncmp(item, package, sizeof(package) - 1) == 0) {
        item += sizeof(package) - 1;
        len -= sizeof(package) - 1;
    }
    for (size_t i = 0; i < sizeof(assignors) / sizeof(*assignors); i++)
        if (client_map_is(item, len, assignors[i].java)) {
            *eager = assignors[i].eager;
            return assignors[i].rdkafka;
        }
    return NULL;
}

/* Eager and cooperative strategies can't be mixed in librdkafka. Java's own list for sinks is range and
 * cooperative-sticky, a step of an upgrade: the eager part is what all members of such a group can do. */
static int map_assignors(struct client_map *m, const struct row *row, const char *value)
{
    char eager_list[64] = "";
    const char *list = value;
    const char *item;
    size_t len;
    bool cooperative = false;

    while (client_map_item(&list, &item, &len)) {
        bool eager = false;
        const char *name = assignor_name(item, len, &eager);

        if (name == NULL) {
            client_map_remark(m, row->java, "librdkafka has no assignor %.*s; ignored", (int)len, item);
        } else if (!eager) {
            cooperative = true;
        } else if (strstr(eager_list, name) == NULL) {
            size_t used = strlen(eager_list);

            snprintf(eager_list + used, sizeof(eager_list) - used, "%s%s", used > 0 ? "," : "", name);
        }
    }
    if (cooperative && eager_list[0] == '\0') {
        if (rd_kafka_version() < 0x020a00ff)
            client_map_remark(m, row->java,
                              "cooperative rebalancing has known faults in librdkafka %s (good from 2.10.1 on)",
                              rd_kafka_version_str());
        return client_map_put(m, row->java, row->rdkafka, "cooperative-sticky");
    }
    if (eager_list[0] == '\0')
        client_map_remark(m, row->java, "no usable assignor is named: range is used");
    return client_map_put(m, row->java, row->rdkafka, eager_list[0] != '\0' ? eager_list : "range");
}

/* --- the rows ------------------------------------------------------------------------------------------------------- */

#define LONG INT64_MAX
#define INT INT_MAX
#define SECURITY(X, name) X(name, NULL, map_security, 0, 0, 0, 0, NULL, NULL)
#define NOTE_METRICS "metrics are the worker's, not a client's"

/* clang-format off */
#define COMMON_ROWS(X) \
    X("bootstrap.servers", "bootstrap.servers", map_bootstrap, 0, 0, 0, 0, NULL, NULL) \
    X("client.id", "client.id", map_text, 0, 0, 0, 0, NULL, NULL) \
    X("client.dns.lookup", "client.dns.lookup", map_dns, 0, 0, 0, 0, NULL, NULL) \
    X("request.timeout.ms", "socket.timeout.ms", map_request_timeout, 0, INT, 10, 300000, "30000", NULL) \
    X("metadata.max.age.ms", NULL, map_metadata_age, 0, LONG, 1000, 3600000, "300000", NULL) \
    X("send.buffer.bytes", "socket.send.buffer.bytes", map_idle, -1, INT, 0, 100000000, NULL, NULL) \
    X("receive.buffer.bytes", "socket.receive.buffer.bytes", map_idle, -1, INT, 0, 100000000, NULL, NULL) \
    X("reconnect.backoff.ms", "reconnect.backoff.ms", map_number, 0, LONG, 0, 3600000, "50", NULL) \
    X("reconnect.backoff.max.ms", "reconnect.backoff.max.ms", map_backoff_max, 0, LONG, 0, 3600000, "1000", NULL) \
    X("retry.backoff.ms", "retry.backoff.ms", map_number, 0, LONG, 1, 300000, "100", NULL) \
    X("retry.backoff.max.ms", "retry.backoff.max.ms", map_number, 0, LONG, 1, 300000, "1000", NULL) \
    X("connections.max.idle.ms", "connections.max.idle.ms", map_idle, INT64_MIN, LONG, 0, INT, "540000", NULL) \
    X("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.ms", map_number, 0, LONG, 1000, INT, \
      "10000", NULL) \
    X("socket.connection.setup.timeout.max.ms", NULL, map_lost, 0, LONG, 0, 0, "30000", \
      "librdkafka doesn't raise the time for connecting") \
    X("metadata.recovery.strategy", "metadata.recovery.strategy", map_text, 0, 0, 0, 0, NULL, NULL) \
    X("metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.rebootstrap.trigger.ms", map_number, 0, LONG, 0, \
      INT, NULL, NULL) \
    X("enable.metrics.push", "enable.metrics.push", map_bool, 0, 0, 0, 0, "false", NULL) \
    X("metric.reporters", NULL, map_lost, 0, 0, 0, 0, "org.apache.kafka.common.metrics.JmxReporter", NOTE_METRICS) \
    X("auto.include.jmx.reporter", NULL, map_nothing, 0, 0, 0, 0, NULL, NULL) \
    X("metrics.num.samples", NULL, map_lost, 0, 0, 0, 0, "2", NOTE_METRICS) \
    X("metrics.recording.level", NULL, map_lost, 0, 0, 0, 0, "INFO", NOTE_METRICS) \
    X("metrics.sample.window.ms", NULL, map_lost, 0, 0, 0, 0, "30000", NOTE_METRICS) \
    X("config.providers", NULL, map_lost, 0, 0, 0, 0, NULL, "config providers are set for the worker") \
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

/* linger.ms: Java's 5 ms from 4.0 on would be most of the time a record takes here; batches form by themselves while one
 * request is under way. batch.size: librdkafka's 1 MB, since Java's 16 KiB costs twice the CPU. */
#define PRODUCER_ROWS(X) \
    X("acks", "acks", map_acks, 0, 0, 0, 0, "all", NULL) \
    X("retries", "retries", map_number, 0, INT, 0, INT, "2147483647", NULL) \
    X("delivery.timeout.ms", "delivery.timeout.ms", map_delivery_timeout, 0, INT, 1, INT, "120000", NULL) \
    X("max.in.flight.requests.per.connection", "max.in.flight.requests.per.connection", map_number, 1, INT, 1, 1000000, \
      "5", NULL) \
    X("enable.idempotence", "enable.idempotence", map_idempotence, 0, 0, 0, 0, "true", NULL) \
    X("transactional.id", "transactional.id", map_text, 0, 0, 0, 0, NULL, "String must be non-empty") \
    X("transaction.timeout.ms", "transaction.timeout.ms", map_number, 0, INT, 1000, INT, "60000", NULL) \
    X("transaction.two.phase.commit.enable", NULL, map_lost, 0, 0, 0, 0, "false", "librdkafka can't take part in two-phase commits") \
    X("batch.size", "batch.size", map_number, 0, INT, 1, INT, NULL, NULL) \
    X("linger.ms", "linger.ms", map_number, 0, LONG, 0, 900000, "0", NULL) \
    X("compression.type", "compression.type", map_compression, 0, 0, 0, 0, "none", NULL) \
    X("compression.gzip.level", "compression.level", map_level, -1, 9, -1, 9, NULL, "gzip") \
    X("compression.lz4.level", "compression.level", map_level, 1, 17, 0, 12, NULL, "lz4") \
    X("compression.zstd.level", "compression.level", map_level, -131072, 22, 0, 12, NULL, "zstd") \
    X("buffer.memory", NULL, map_buffer_memory, 0, LONG, 0, 0, "33554432", NULL) \
    X("max.block.ms", NULL, map_lost, 0, LONG, 0, 0, "9223372036854775807", "a full queue always slows the source down") \
    X("max.request.size", "message.max.bytes", map_number, 0, INT, 1000, 1000000000, "1048576", NULL) \
    X("metadata.max.idle.ms", NULL, map_lost, 0, LONG, 0, 0, "300000", "librdkafka keeps topics that were used") \
    X("partitioner.class", "partitioner", map_partitioner, 0, 0, 0, 0, "", NULL) \
    X("partitioner.ignore.keys", NULL, map_nothing, 0, 0, 0, 0, NULL, NULL) \
    X("partitioner.adaptive.partitioning.enable", NULL, map_lost, 0, 0, 0, 0, "true", "librdkafka does not partition by load") \
    X("partitioner.availability.timeout.ms", NULL, map_lost, 0, 0, 0, 0, "0", "librdkafka does not partition by load") \
    X("interceptor.classes", NULL, map_lost, 0, 0, 0, 0, NULL, "Java interceptors can't run here") \
    X("key.serializer", NULL, map_serializer, 0, 0, 0, 0, NULL, NULL) \
    X("value.serializer", NULL, map_serializer, 0, 0, 0, 0, NULL, NULL)

#define CONSUMER_ROWS(X) \
    X("group.id", "group.id", map_text, 0, 0, 0, 0, NULL, NULL) \
    X("group.instance.id", "group.instance.id", map_text, 0, 0, 0, 0, NULL, "String must be non-empty") \
    X("group.protocol", NULL, map_group_protocol, 0, 0, 0, 0, NULL, NULL) \
    X("group.remote.assignor", NULL, map_lost, 0, 0, 0, 0, NULL, "only the classic protocol is spoken") \
    X("client.rack", "client.rack", map_text, 0, 0, 0, 0, NULL, NULL) \
    X("session.timeout.ms", "session.timeout.ms", map_number, 0, INT, 1, 3600000, "45000", NULL) \
    X("heartbeat.interval.ms", "heartbeat.interval.ms", map_heartbeat, 0, INT, 1, 3600000, "3000", NULL) \
    X("max.poll.interval.ms", "max.poll.interval.ms", map_max_poll, 1, INT, 1, 86400000, "300000", NULL) \
    X("max.poll.records", NULL, map_nothing, 1, INT, 0, 0, NULL, NULL) \
    X("partition.assignment.strategy", "partition.assignment.strategy", map_assignors, 0, 0, 0, 0, "RangeAssignor", NULL) \
    X("auto.offset.reset", "auto.offset.reset", map_reset, 0, 0, 0, 0, "latest", NULL) \
    X("isolation.level", "isolation.level", map_isolation, 0, 0, 0, 0, "read_uncommitted", NULL) \
    X("check.crcs", "check.crcs", map_bool, 0, 0, 0, 0, "true", NULL) \
    X("allow.auto.create.topics", "allow.auto.create.topics", map_bool, 0, 0, 0, 0, "true", NULL) \
    X("enable.auto.commit", NULL, map_auto_commit, 0, 0, 0, 0, NULL, NULL) \
    X("auto.commit.interval.ms", NULL, map_nothing, 0, INT, 0, 0, NULL, NULL) \
    X("fetch.min.bytes", "fetch.min.bytes", map_number, 0, INT, 1, 100000000, "1", NULL) \
    X("fetch.max.bytes", "fetch.max.bytes", map_fetch_max, 0, INT, 1000, 2147483135, "52428800", NULL) \
    X("max.partition.fetch.bytes", "max.partition.fetch.bytes", map_number, 0, INT, 1, 1000000000, "1048576", NULL) \
    X("fetch.max.wait.ms", "fetch.wait.max.ms", map_number, 0, INT, 0, 300000, "500", NULL) \
    X("exclude.internal.topics", NULL, map_lost, 0, 0, 0, 0, "true", "topics of the cluster itself are read only when named") \
    X("default.api.timeout.ms", NULL, map_nothing, 0, INT, 0, 0, NULL, NULL) \
    X("interceptor.classes", NULL, map_lost, 0, 0, 0, 0, NULL, "Java interceptors can't run here") \
    X("share.acknowledgement.mode", NULL, map_lost, 0, 0, 0, 0, "implicit", "share groups are not used") \
    X("share.acquire.mode", NULL, map_lost, 0, 0, 0, 0, "batch_optimized", "share groups are not used") \
    X("key.deserializer", NULL, map_serializer, 0, 0, 0, 0, NULL, NULL) \
    X("value.deserializer", NULL, map_serializer, 0, 0, 0, 0, NULL, NULL)
/* clang-format on */

#define AS_ROW(java, rdkafka, map, min, max, lib_min, lib_max, unset, note) \
    {java, rdkafka, map, min, max, lib_min, lib_max, unset, note},
#define AS_NAME(java, rdkafka, map, min, max, lib_min, lib_max, unset, note) java,

static const struct row common_rows[] = {COMMON_ROWS(AS_ROW)};
static const struct row producer_rows[] = {PRODUCER_ROWS(AS_ROW)};
static const struct row consumer_rows[] = {CONSUMER_ROWS(AS_ROW)};

static const char *const admin_names[] = {COMMON_ROWS(AS_NAME) NULL};
static const char *const producer_names[] = {COMMON_ROWS(AS_NAME) PRODUCER_ROWS(AS_NAME) NULL};
static const char *const consumer_names[] = {COMMON_ROWS(AS_NAME) CONSUMER_ROWS(AS_NAME) NULL};

const char *const *client_table_names(enum client_kind kind)
{
    static const char *const *const names[] = {
        [CLIENT_PRODUCER] = producer_names, [CLIENT_CONSUMER] = consumer_names, [CLIENT_ADMIN] = admin_names};

    return names[kind];
}

/* --- settings that no Java name stands for -------------------------------------------------------------------------- */

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

/* sticky…: records without key stay in one partition for a while, as in Java; with linger 0 librdkafka would scatter them.
 * topic.metadata…: how long a topic may be unknown before its records fail; long enough for one that was just created. */
static const struct fixed producer_fixed[] = {
    {"sticky.partitioning.linger.ms", "10"},
    {"topic.metadata.propagation.max.ms", "15000"},
    {NULL, NULL},
};

/* Offsets are the owner's. queued…: a client fetches ahead up to these, whatever the number of partitions. With few messages
 * the fetcher sleeps up to a second each time they are reached: 10 000 made 40 000 records a second of 100 bytes, so the
 * bytes bound it. */
static const struct fixed consumer_fixed[] = {
    {"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"},
    {"queued.min.messages", "100000"},
    {"queued.max.messages.kbytes", "16384"},
    {NULL, NULL},
};

static int apply_fixed(struct client_map *m, const struct fixed *fixed)
{
    int rc = 0;

    for (; rc == 0 && fixed->rdkafka != NULL; fixed++)
        rc = client_map_put(m, fixed->rdkafka, fixed->rdkafka, fixed->value);
    return rc;
}

static int apply_rows(struct client_map *m, const struct row *rows, size_t count)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *value = client_map_get(m, rows[i].java);

        m->given = value != NULL;
        if (value == NULL && rows[i].map != map_lost)
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
        return mr_fail(m->err, MR_ERR_CONFIG,
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
