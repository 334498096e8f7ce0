/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the rows of client_table.c name: each takes the value of one Java setting to
 * librdkafka's.
 *
 * A value out of Java's range is refused in Java's words; one beyond librdkafka's range is moved to
 * its edge with a remark. Settings that clash only inside librdkafka are moved so that they do not.
 * Each may look at other settings of the same run, never at what was put before, so that the order
 * of rows does not matter. */
#include "kafka/kafka_private.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int range_error(struct client_map *m, const struct client_row *row, const char *value,
                       const char *edge, int64_t n)
{
    char why[80];

    snprintf(why, sizeof(why), "Value must be %s %lld", edge, (long long)n);
    return client_map_invalid(m, row->java, value, why);
}

static int read_number(struct client_map *m, const struct client_row *row, const char *value,
                       int64_t *n)
{
    if (!client_map_long(value, n) || (row->max == INT_MAX && (*n > INT_MAX || *n < INT_MIN)))
        return client_map_invalid(m, row->java, value,
                                  row->max == INT_MAX ? "Not a number of type INT"
                                                      : "Not a number of type LONG");
    if (*n < row->min)
        return range_error(m, row, value, "at least", row->min);
    if (*n > row->max)
        return range_error(m, row, value, "no more than", row->max);
    return 0;
}

static int put_number(struct client_map *m, const struct client_row *row, const char *rdkafka,
                      int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)n);
    return client_map_put(m, row->java, rdkafka, text);
}

static int64_t fit(struct client_map *m, const struct client_row *row, int64_t n)
{
    int64_t fitted = n < row->lib_min ? row->lib_min : n > row->lib_max ? row->lib_max : n;

    if (fitted != n && m->given)
        client_map_remark(m, row->java, "librdkafka takes %lld to %lld: %lld is used",
                          (long long)row->lib_min, (long long)row->lib_max, (long long)fitted);
    return fitted;
}

/* A number that another setting depends on: the user's, or the row's. */
static int64_t number_of(const struct client_map *m, const char *java, int64_t unset)
{
    const char *value = client_map_get(m, java);
    int64_t n;

    return value != NULL && client_map_long(value, &n) ? n : unset;
}

/* --- translations ----------------------------------------------------------------------------- */

int client_translate_number(struct client_map *m, const struct client_row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    return rc != 0 ? rc : put_number(m, row, row->rdkafka, fit(m, row, n));
}

int client_translate_text(struct client_map *m, const struct client_row *row, const char *value)
{
    if (value[0] == '\0')
        return row->note != NULL ? client_map_invalid(m, row->java, value, row->note) : 0;
    return client_map_put(m, row->java, row->rdkafka, value);
}

int client_translate_bool(struct client_map *m, const struct client_row *row, const char *value)
{
    bool yes = strcasecmp(value, "true") == 0;

    if (!yes && strcasecmp(value, "false") != 0)
        return client_map_invalid(m, row->java, value, "Expected value to be either true or false");
    return client_map_put(m, row->java, row->rdkafka, yes ? "true" : "false");
}

/* No counterpart, nothing lost. */
int client_translate_nothing(struct client_map *m, const struct client_row *row, const char *value)
{
    (void)m, (void)row, (void)value;
    return 0;
}

/* No counterpart: said by name, unless it is the value that is in effect anyway (row->unset). */
int client_translate_lost(struct client_map *m, const struct client_row *row, const char *value)
{
    if (value[0] != '\0' && (row->unset == NULL || strcasecmp(row->unset, value) != 0))
        client_map_remark(m, row->java, "%s; ignored", row->note);
    return 0;
}

/* LISTENER://host:port,host:port → host:port,host:port */
int client_translate_bootstrap(struct client_map *m, const struct client_row *row,
                               const char *value)
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
        if (port == len || port < 2 || item[port - 1] != ':' || len - port > 5 ||
            strtol(item + port, NULL, 10) < 1 || strtol(item + port, NULL, 10) > 65535)
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

int client_translate_dns(struct client_map *m, const struct client_row *row, const char *value)
{
    /* What every librdkafka does unless told otherwise. */
    if (strcmp(value, "use_all_dns_ips") == 0)
        return 0;
    if (strcmp(value, "resolve_canonical_bootstrap_servers_only") != 0)
        return client_map_invalid(
            m, row->java, value,
            "String must be one of: use_all_dns_ips, resolve_canonical_bootstrap_servers_only");
    return client_map_put(m, row->java, row->rdkafka, value);
}

/* librdkafka's own request.timeout.ms is the time a broker may take for acknowledgements. */
int client_translate_request_timeout(struct client_map *m, const struct client_row *row,
                                     const char *value)
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

int client_translate_metadata_age(struct client_map *m, const struct client_row *row,
                                  const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    rc = put_number(m, row, "topic.metadata.refresh.interval.ms", n);
    return rc != 0 ? rc : put_number(m, row, "metadata.max.age.ms", n * 3);
}

/* Java: reconnect.backoff.ms set alone is also the maximum; a maximum below it is lifted here,
 * librdkafka refuses it. */
int client_translate_backoff_max(struct client_map *m, const struct client_row *row,
                                 const char *value)
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
int client_translate_idle(struct client_map *m, const struct client_row *row, const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    return rc != 0 ? rc : put_number(m, row, row->rdkafka, n < 0 ? 0 : fit(m, row, n));
}

int client_translate_acks(struct client_map *m, const struct client_row *row, const char *value)
{
    if (strcmp(value, "all") != 0 && strcmp(value, "-1") != 0 && strcmp(value, "0") != 0 &&
        strcmp(value, "1") != 0)
        return client_map_invalid(m, row->java, value, "String must be one of: all, -1, 0, 1");
    return client_map_put(m, row->java, row->rdkafka, value);
}

static bool all_acks(const struct client_map *m)
{
    const char *acks = client_map_get(m, "acks");

    return acks == NULL || strcmp(acks, "all") == 0 || strcmp(acks, "-1") == 0;
}

const struct client_conf_clash *client_translate_clash(const struct client_map *m)
{
    static const struct client_conf_clash acks = {
        "acks", "all", "Must set acks to all in order to use the idempotent producer"};
    static const struct client_conf_clash retries = {
        "retries", "1 or more", "Must set retries to non-zero when using the idempotent producer"};
    static const struct client_conf_clash in_flight = {
        "max.in.flight.requests.per.connection", "1 to 5",
        "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent "
        "producer"};

    if (!all_acks(m))
        return &acks;
    if (number_of(m, retries.key, 1) < 1)
        return &retries;
    return number_of(m, in_flight.key, 5) > 5 ? &in_flight : NULL;
}

/* Java: on by default, unless other settings that the user gave speak against it; asked for in so
 * many words, they clash. */
int client_translate_idempotence(struct client_map *m, const struct client_row *row,
                                 const char *value)
{
    const struct client_conf_clash *clash = client_translate_clash(m);
    bool off = strcasecmp(value, "false") == 0;

    if (client_map_get(m, "transactional.id") != NULL && (off || clash != NULL))
        return mr_fail(m->err, MR_ERR_CONFIG,
                       "Cannot set a transactional.id without also enabling idempotence%s%s",
                       clash != NULL ? ": " : "", clash != NULL ? clash->text : "");
    if (!m->given && clash != NULL)
        return client_map_put(m, row->java, row->rdkafka, "false");
    if (clash != NULL && !off)
        return client_map_invalid(m, row->java, value, clash->text);
    return client_translate_bool(m, row, value);
}

int client_translate_delivery_timeout(struct client_map *m, const struct client_row *row,
                                      const char *value)
{
    int64_t least = number_of(m, "linger.ms", 0) + number_of(m, "request.timeout.ms", 30000);
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    if (n < least && m->given)
        return client_map_invalid(
            m, row->java, value,
            "it should be equal to or larger than linger.ms + request.timeout.ms");
    if (n < least)
        n = least > INT_MAX ? INT_MAX : least;
    /* librdkafka: a record can't outlive its transaction. */
    if (client_map_get(m, "transactional.id") != NULL) {
        int64_t limit = number_of(m, "transaction.timeout.ms", 60000);

        if (n > limit)
            n = limit;
    }
    return put_number(m, row, row->rdkafka, n);
}

int client_translate_compression(struct client_map *m, const struct client_row *row,
                                 const char *value)
{
    static const char *const types[] = {"none", "gzip", "snappy", "lz4", "zstd"};

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i], value) == 0)
            return client_map_put(m, row->java, row->rdkafka, value);
    return client_map_invalid(m, row->java, value,
                              "String must be one of: none, gzip, snappy, lz4, zstd");
}

/* compression.gzip.level counts only next to compression.type=gzip, and so on; the codec's name is
 * the row's note. */
int client_translate_level(struct client_map *m, const struct client_row *row, const char *value)
{
    const char *type = client_map_get(m, "compression.type");
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0 || type == NULL || strcmp(type, row->note) != 0)
        return rc;
    return put_number(m, row, row->rdkafka, fit(m, row, n));
}

/* Bytes of values that may wait, and with them the number of records: each costs about 200 bytes of
 * its own. */
int client_translate_buffer_memory(struct client_map *m, const struct client_row *row,
                                   const char *value)
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

int client_translate_partitioner(struct client_map *m, const struct client_row *row,
                                 const char *value)
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
            client_map_remark(m, row->java,
                              "librdkafka has no round robin: partitions are chosen at random");
        if (name[0] == '\0' && ignore != NULL && strcasecmp(ignore, "true") == 0)
            partitioner = "random";
        return client_map_put(m, row->java, row->rdkafka, partitioner);
    }
    return client_map_invalid(
        m, row->java, value,
        "Java partitioners can't run here and records would land in other partitions; remove it, "
        "or let the source set the partition");
}

/* Our own serializing is done by converters: bytes in, bytes out. */
int client_translate_serializer(struct client_map *m, const struct client_row *row,
                                const char *value)
{
    if (strstr(value, "ByteArray") == NULL)
        client_map_remark(m, row->java, "records are written and read by converters; ignored");
    return 0;
}

int client_translate_reset(struct client_map *m, const struct client_row *row, const char *value)
{
    static const char *const names[][2] = {
        {"earliest", "earliest"}, {"latest", "latest"}, {"none", "error"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcasecmp(names[i][0], value) == 0)
            return client_map_put(m, row->java, row->rdkafka, names[i][1]);
    if (strncasecmp(value, "by_duration:", 12) == 0)
        return client_map_invalid(m, row->java, value,
                                  "librdkafka can't reset by duration: use earliest or latest");
    return client_map_invalid(m, row->java, value, "String must be one of: earliest, latest, none");
}

int client_translate_isolation(struct client_map *m, const struct client_row *row,
                               const char *value)
{
    if (strcmp(value, "read_committed") != 0 && strcmp(value, "read_uncommitted") != 0)
        return client_map_invalid(m, row->java, value,
                                  "String must be one of: read_committed, read_uncommitted");
    return client_map_put(m, row->java, row->rdkafka, value);
}

int client_translate_auto_commit(struct client_map *m, const struct client_row *row,
                                 const char *value)
{
    if (strcasecmp(value, "true") == 0)
        client_map_remark(m, row->java,
                          "offsets are committed only after records were delivered; false is used");
    else if (strcasecmp(value, "false") != 0)
        return client_map_invalid(m, row->java, value, "Expected value to be either true or false");
    return 0;
}

/* librdkafka refuses a poll limit below the session's. */
int client_translate_max_poll(struct client_map *m, const struct client_row *row, const char *value)
{
    int64_t session = number_of(m, "session.timeout.ms", 45000);
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc != 0)
        return rc;
    n = fit(m, row, n);
    if (n < session && session <= row->lib_max) {
        client_map_remark(m, row->java,
                          "librdkafka wants at least session.timeout.ms: %lld is used",
                          (long long)session);
        n = session;
    }
    return put_number(m, row, row->rdkafka, n);
}

int client_translate_heartbeat(struct client_map *m, const struct client_row *row,
                               const char *value)
{
    int64_t n;
    int rc = read_number(m, row, value, &n);

    if (rc == 0 && n >= number_of(m, "session.timeout.ms", 45000))
        return client_map_invalid(m, row->java, value,
                                  "Heartbeat must be set lower than the session timeout");
    return rc != 0 ? rc : put_number(m, row, row->rdkafka, fit(m, row, n));
}

/* The library wants message.max.bytes <= fetch.max.bytes < receive.message.max.bytes. */
int client_translate_fetch_max(struct client_map *m, const struct client_row *row,
                               const char *value)
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

int client_translate_group_protocol(struct client_map *m, const struct client_row *row,
                                    const char *value)
{
    if (strcasecmp(value, "consumer") == 0)
        client_map_remark(m, row->java, "only the classic protocol is spoken; classic is used");
    else if (strcasecmp(value, "classic") != 0)
        return client_map_invalid(m, row->java, value,
                                  "String must be one of (case insensitive): CLASSIC, CONSUMER");
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

/* Eager and cooperative strategies can't be mixed in librdkafka. Java's own list for sinks is range
 * and cooperative-sticky, a step of an upgrade: the eager part is what all members of such a group
 * can do. */
int client_translate_assignors(struct client_map *m, const struct client_row *row,
                               const char *value)
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
            client_map_remark(m, row->java, "librdkafka has no assignor %.*s; ignored", (int)len,
                              item);
        } else if (!eager) {
            cooperative = true;
        } else if (strstr(eager_list, name) == NULL) {
            size_t used = strlen(eager_list);

            snprintf(eager_list + used, sizeof(eager_list) - used, "%s%s", used > 0 ? "," : "",
                     name);
        }
    }
    if (cooperative && eager_list[0] == '\0') {
        if (rd_kafka_version() < 0x020a00ff)
            client_map_remark(
                m, row->java,
                "cooperative rebalancing has known faults in librdkafka %s (good from 2.10.1 on)",
                rd_kafka_version_str());
        return client_map_put(m, row->java, row->rdkafka, "cooperative-sticky");
    }
    if (eager_list[0] == '\0')
        client_map_remark(m, row->java, "no usable assignor is named: range is used");
    return client_map_put(m, row->java, row->rdkafka, eager_list[0] != '\0' ? eager_list : "range");
}
