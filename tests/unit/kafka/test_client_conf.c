/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: from Java's names to librdkafka's, what is refused and what is remarked on, and the
 * layers of Connect. */
#include "mapped.h"

#include <stdlib.h>
#include <string.h>

/* What Connect gives its own clients: nothing of that is worth a word. */
static void settings_of_connect_map_without_a_remark(void **state)
{
    struct mapped *m =
        MAP(CLIENT_PRODUCER, "client.id", "connector-producer-x-0", "key.serializer",
            "org.apache.kafka.common.serialization.ByteArraySerializer", "value.serializer",
            "org.apache.kafka.common.serialization.ByteArraySerializer", "max.block.ms",
            "9223372036854775807", "enable.idempotence", "false", "acks", "all",
            "max.in.flight.requests.per.connection", "1", "delivery.timeout.ms", "2147483647");

    mapped_silent(m);
    mapped_value(m, "client.id", "connector-producer-x-0");
    mapped_value(m, "acks", "all");
    mapped_value(m, "enable.idempotence", "false");
    mapped_value(m, "max.in.flight.requests.per.connection", "1");
    mapped_value(m, "delivery.timeout.ms", "2147483647");
    m = MAP(CLIENT_CONSUMER, "group.id", "connect-x", "enable.auto.commit", "false",
            "auto.offset.reset", "earliest", "key.deserializer",
            "org.apache.kafka.common.serialization.ByteArrayDeserializer");
    mapped_silent(m);
    mapped_value(m, "auto.offset.reset", "earliest");
}

static void java_defaults_are_set_where_librdkafka_has_others(void **state)
{
    struct mapped *m = MAP(CLIENT_PRODUCER, "client.id", "x");

    mapped_silent(m);
    mapped_value(m, "partitioner", "murmur2_random");
    mapped_value(m, "linger.ms", "0");
    mapped_value(m, "acks", "all");
    mapped_value(m, "enable.idempotence", "true");
    mapped_value(m, "max.in.flight.requests.per.connection", "5");
    mapped_value(m, "delivery.timeout.ms", "120000");
    mapped_value(m, "request.timeout.ms", "30000");
    mapped_value(m, "socket.timeout.ms", "30000");
    mapped_value(m, "reconnect.backoff.ms", "50");
    mapped_value(m, "reconnect.backoff.max.ms", "1000");
    mapped_value(m, "message.max.bytes", "1048576");
    mapped_value(m, "queue.buffering.max.kbytes", "32768");
    mapped_value(m, "socket.nagle.disable", "true");
    mapped_unset(m, "batch.size"); /* librdkafka's own */
    m = MAP(CLIENT_CONSUMER, "group.id", "g");
    mapped_silent(m);
    mapped_value(m, "isolation.level", "read_uncommitted");
    mapped_value(m, "check.crcs", "true");
    mapped_value(m, "allow.auto.create.topics", "true");
    mapped_value(m, "auto.offset.reset", "latest");
    mapped_value(m, "enable.auto.commit", "false");
    mapped_value(m, "enable.auto.offset.store", "false");
    mapped_value(m, "partition.assignment.strategy", "range");
    mapped_value(m, "connections.max.idle.ms", "540000");
    mapped_value(m, "metadata.max.age.ms", "900000");
    m = MAP(CLIENT_ADMIN, "group.id", "cluster", "key.converter", "x", "offset.storage.topic", "t");
    mapped_silent(m);
    mapped_unset(m, "group.id");
}

static void names_and_values_are_translated(void **state)
{
    struct mapped *m =
        MAP(CLIENT_CONSUMER, "group.id", "g", "fetch.max.wait.ms", " 100 ", "auto.offset.reset",
            "none", "fetch.max.bytes", "200000", "send.buffer.bytes", "-1",
            "connections.max.idle.ms", "-1", "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RoundRobinAssignor, RangeAssignor");

    mapped_silent(m);
    mapped_value(m, "fetch.wait.max.ms", "100");
    mapped_value(m, "auto.offset.reset", "error");
    mapped_value(m, "fetch.max.bytes", "200000");
    mapped_value(m, "message.max.bytes", "200000");
    mapped_value(m, "socket.send.buffer.bytes", "0");
    mapped_value(m, "connections.max.idle.ms", "0");
    mapped_value(m, "partition.assignment.strategy", "roundrobin,range");
    m = MAP(CLIENT_PRODUCER, "compression.type", "zstd", "compression.zstd.level", "3",
            "compression.gzip.level", "9", "buffer.memory", "1048576", "batch.size", "16384",
            "reconnect.backoff.ms", "2000", "bootstrap.servers",
            "PLAINTEXT://one:1, two:2 ,[::1]:3");
    mapped_silent(m);
    mapped_value(m, "compression.level", "3");
    mapped_value(m, "queue.buffering.max.kbytes", "1024");
    mapped_value(m, "queue.buffering.max.messages", "3276");
    mapped_value(m, "batch.size", "16384");
    mapped_value(m, "reconnect.backoff.max.ms", "2000");
    mapped_value(m, "bootstrap.servers", "one:1,two:2,[::1]:3");
}

static void values_out_of_range_name_key_and_reason(void **state)
{
    mapped_refused(MAP(CLIENT_PRODUCER, "linger.ms", "soon"),
                   "Invalid value soon for configuration linger.ms", "Not a number of type LONG",
                   NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "linger.ms", "-1"), "linger.ms", "Value must be at least 0",
                   NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "batch.size", "99999999999"), "batch.size",
                   "Not a number of type INT", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "acks", "2"), "acks", "all, -1, 0, 1", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "compression.type", "lzma"), "compression.type", "zstd",
                   NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "enable.idempotence", "yes"), "enable.idempotence",
                   "true or false", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "enable.idempotence", "true", "acks", "1"),
                   "enable.idempotence", "acks", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "transactional.id", "x", "enable.idempotence", "false"),
                   "transactional.id", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "delivery.timeout.ms", "10"), "delivery.timeout.ms",
                   "linger.ms", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "bootstrap.servers", "nowhere"), "bootstrap.servers",
                   "host:port", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "bootstrap.servers", ""), "bootstrap.servers", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "bootstrap.servers", "localhost:65536"),
                   "bootstrap.servers", "host:port", NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "bootstrap.servers", "localhost:0"), "bootstrap.servers",
                   "host:port", NULL);
    mapped_refused(MAP(CLIENT_CONSUMER, "auto.offset.reset", "first"), "auto.offset.reset",
                   "earliest", NULL);
    mapped_refused(MAP(CLIENT_CONSUMER, "isolation.level", "serial"), "isolation.level",
                   "read_committed", NULL);
    mapped_refused(MAP(CLIENT_CONSUMER, "heartbeat.interval.ms", "45000"), "heartbeat.interval.ms",
                   "session", NULL);
    mapped_refused(MAP(CLIENT_CONSUMER, "group.instance.id", ""), "group.instance.id", "non-empty",
                   NULL);
    mapped_refused(MAP(CLIENT_PRODUCER, "partitioner.class", "com.example.Mine"),
                   "partitioner.class", "remove it", NULL);
}

static void settings_that_clash_only_inside_librdkafka_are_moved(void **state)
{
    struct mapped *m = MAP(CLIENT_PRODUCER, "acks", "1");

    mapped_value(m, "enable.idempotence", "false"); /* Java's default gives way */
    m = MAP(CLIENT_PRODUCER, "transactional.id", "x", "delivery.timeout.ms", "2147483647",
            "transaction.timeout.ms", "5000", "request.timeout.ms", "30000");
    mapped_value(m, "delivery.timeout.ms", "5000");
    mapped_value(m, "socket.timeout.ms", "5000");
    m = MAP(CLIENT_CONSUMER, "max.poll.interval.ms", "10000");
    mapped_value(m, "max.poll.interval.ms", "45000");
    mapped_remark(m, "max.poll.interval.ms: ");
    m = MAP(CLIENT_PRODUCER, "request.timeout.ms", "900000", "delivery.timeout.ms", "2147483647");
    mapped_value(m, "socket.timeout.ms", "300000");
    mapped_remark(m, "request.timeout.ms: librdkafka takes 10 to 300000: 300000 is used");
    m = MAP(CLIENT_CONSUMER, "partition.assignment.strategy",
            "RangeAssignor,CooperativeStickyAssignor");
    mapped_value(m, "partition.assignment.strategy", "range");
    m = MAP(CLIENT_CONSUMER, "partition.assignment.strategy", "StickyAssignor");
    mapped_value(m, "partition.assignment.strategy", "range");
    mapped_remark(m, "StickyAssignor");
    m = MAP(CLIENT_CONSUMER, "partition.assignment.strategy", "CooperativeStickyAssignor");
    mapped_value(m, "partition.assignment.strategy", "cooperative-sticky");
}

static void librdkafkas_own_names_are_refused_for_every_client(void **state)
{
    static const enum client_kind kinds[] = {CLIENT_PRODUCER, CLIENT_CONSUMER, CLIENT_ADMIN};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        mapped_refused(MAP(kinds[i], "plugin.library.paths", "/tmp/evil.so"),
                       "\"plugin.library.paths\"", "remove it", NULL);
        mapped_refused(MAP(kinds[i], "ssl.engine.location", "/tmp/evil.so"), "ssl.engine.location",
                       NULL);
        mapped_refused(MAP(kinds[i], "ssl.ca.location", "/x"), "ssl.ca.location",
                       "ssl.truststore.type=PEM", NULL);
        mapped_refused(MAP(kinds[i], "sasl.password", "hush"), "sasl.password", "sasl.jaas.config",
                       NULL);
        mapped_refused(MAP(kinds[i], "debug", "all"), "debug", NULL);
        mapped_refused(MAP(kinds[i], "queue.buffering.max.messages", "1"), "buffer.memory", NULL);
        mapped_refused(MAP(kinds[i], "message.timeout.ms", "1"), "delivery.timeout.ms", NULL);
        mapped_refused(MAP(kinds[i], "enable.ssl.certificate.verification", "false"), "remove it",
                       NULL);
        mapped_refused(MAP(kinds[i], "test.mock.num.brokers", "3"), "test.mock.num.brokers", NULL);
    }
    assert_null(strstr(MAP(CLIENT_PRODUCER, "sasl.password", "hush")->err.text, "hush"));
}

/* Admin clients get the whole worker configuration, whose names are Connect's. */
static void a_worker_configuration_passes_through_an_admin_client(void **state)
{
    struct mapped *m = MAP(
        CLIENT_ADMIN, "group.id", "g", "plugin.path", "/p", "topic.creation.enable", "true",
        "topic.tracking.enable", "true", "topic.tracking.allow.reset", "true", "key.converter", "x",
        "value.converter.schemas.enable", "false", "offset.storage.file.filename", "/f",
        "offset.flush.interval.ms", "1", "session.timeout.ms", "10000", "heartbeat.interval.ms",
        "3000", "rebalance.timeout.ms", "1", "listeners", "http://:8083", "rest.port", "1",
        "ssl.keystore.location", "/rest.jks", "config.storage.topic", "c", "status.storage.topic",
        "s", "connect.protocol", "eager", "task.shutdown.graceful.timeout.ms", "1",
        "exactly.once.source.support", "enabled", "retry.backoff.ms", "7", "worker.sync.timeout.ms",
        "1", "metrics.context.x", "y", "millrace.run.dir", "/r", "producer.acks", "1",
        "access.control.allow.origin", "*", "scheduled.rebalance.max.delay.ms", "1",
        "auto.include.jmx.reporter", "true", "header.converter", "h", "admin.listeners", "",
        "response.http.headers.config", "", "key.converter.plugin.version", "1",
        "inter.worker.key.size", "1", "metadata.recovery.strategy", "none", "client.id", "w");

    mapped_value(m, "retry.backoff.ms", "7");
    mapped_value(m, "client.id", "w");
    mapped_unset(m, "group.id");
    mapped_unset(m, "session.timeout.ms");
}

static void what_is_lost_is_remarked_on_by_name(void **state)
{
    mapped_remark(MAP(CLIENT_PRODUCER, "interceptor.classes", "com.example.Spy"),
                  "interceptor.classes: Java");
    mapped_remark(MAP(CLIENT_PRODUCER, "metric.reporters", "com.example.R"), "metric.reporters: ");
    mapped_silent(
        MAP(CLIENT_PRODUCER, "metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"));
    mapped_silent(MAP(CLIENT_PRODUCER, "metric.reporters", ""));
    mapped_remark(MAP(CLIENT_PRODUCER, "max.block.ms", "1000"), "max.block.ms: ");
    mapped_remark(MAP(CLIENT_PRODUCER, "lingr.ms", "5"),
                  "lingr.ms: unknown setting, ignored; did you mean linger.ms?");
    mapped_remark(MAP(CLIENT_PRODUCER, "com.example.setting", "5"),
                  "com.example.setting: unknown setting, ignored\n");
    mapped_remark(MAP(CLIENT_PRODUCER, "fetch.min.bytes", "5"),
                  "fetch.min.bytes: a setting of consumers, ignored");
    mapped_remark(MAP(CLIENT_CONSUMER, "linger.ms", "5"),
                  "linger.ms: a setting of producers, ignored");
    mapped_remark(MAP(CLIENT_CONSUMER, "enable.auto.commit", "true"), "enable.auto.commit: ");
    mapped_remark(MAP(CLIENT_CONSUMER, "group.protocol", "consumer"), "group.protocol: ");
    mapped_remark(MAP(CLIENT_CONSUMER, "key.deserializer", "com.example.Avro"),
                  "key.deserializer: ");
    mapped_remark(MAP(CLIENT_PRODUCER, "sasl.jaas.config", "x", "ssl.truststore.location", "/x"),
                  "sasl.jaas.config: has no effect with security.protocol=PLAINTEXT\n");
}

/* Every row of the tables, with the value that Java has by default, maps and stays silent. */
static void every_known_name_takes_its_default(void **state)
{
    static const char *const texts[][2] = {
        {"acks", "all"},
        {"compression.type", "none"},
        {"auto.offset.reset", "latest"},
        {"client.dns.lookup", "use_all_dns_ips"},
        {"isolation.level", "read_uncommitted"},
        {"security.protocol", "PLAINTEXT"},
        {"group.protocol", "classic"},
        {"partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"},
        {"enable.idempotence", "true"},
        {"check.crcs", "true"},
        {"allow.auto.create.topics", "true"},
    };

    for (enum client_kind kind = CLIENT_PRODUCER; kind <= CLIENT_ADMIN; kind++)
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
            bool known = false;

            for (const char *const *name = client_conf_names(kind); *name != NULL; name++)
                known = known || strcmp(*name, texts[i][0]) == 0;
            if (known)
                mapped_silent(MAP(kind, texts[i][0], texts[i][1]));
        }
}

static void a_name_stands_only_once_in_each_list(void **state)
{
    for (enum client_kind kind = CLIENT_PRODUCER; kind <= CLIENT_ADMIN; kind++) {
        const char *const *names = client_conf_names(kind);

        for (size_t i = 0; names[i] != NULL; i++)
            for (size_t j = i + 1; names[j] != NULL; j++)
                assert_string_not_equal(names[i], names[j]);
    }
}

static void secrets_are_known_by_their_last_words(void **state)
{
    assert_true(client_conf_secret("sasl.jaas.config"));
    assert_true(client_conf_secret("producer.override.sasl.jaas.config"));
    assert_true(client_conf_secret("admin.ssl.key.password"));
    assert_true(client_conf_secret("ssl.keystore.key"));
    assert_false(client_conf_secret("ssl.keystore.type"));
    assert_false(client_conf_secret("xsasl.jaas.config"));
}

static void layers_lie_in_connects_order(void **state)
{
    struct props worker, connector, built_in, forced, java;
    struct client_conf_layers layers = {.kind = CLIENT_PRODUCER,
                                        .worker = &worker,
                                        .connector = &connector,
                                        .built_in = &built_in,
                                        .forced = &forced};

    mock_kafka_props(&worker, "bootstrap.servers", "w:1", "security.protocol", "SSL", "linger.ms",
                     "9", "producer.acks", "1", "producer.linger.ms", "1", "producer.batch.size",
                     "1", "consumer.fetch.min.bytes", "7", "admin.retries", "3", "producer.", "x",
                     NULL);
    mock_kafka_props(&connector, "name", "c", "producer.override.linger.ms", "2",
                     "producer.override.batch.size", "2", "consumer.override.x", "3", NULL);
    mock_kafka_props(&built_in, "acks", "all", "client.id", "me", NULL);
    mock_kafka_props(&forced, "batch.size", "3", NULL);
    props_init(&java);
    assert_int_equal(client_conf_layer(&layers, &java), 0);
    assert_string_equal(props_get(&java, "bootstrap.servers"), "w:1");
    assert_string_equal(props_get(&java, "client.id"), "me"); /* built in */
    assert_string_equal(props_get(&java, "acks"), "1");       /* worker's prefix over built in */
    assert_string_equal(props_get(&java, "linger.ms"), "2"); /* override over the worker's prefix */
    assert_string_equal(props_get(&java, "batch.size"), "3"); /* forced over all */
    assert_null(props_get(&java, "security.protocol"));       /* not inherited */
    assert_int_equal(java.count, 5);
    props_deinit(&java);
    props_init(&java);
    layers.kind = CLIENT_ADMIN;
    assert_int_equal(client_conf_layer(&layers, &java), 0);
    assert_string_equal(props_get(&java, "security.protocol"),
                        "SSL"); /* admin clients do inherit */
    assert_string_equal(props_get(&java, "retries"), "3");
    props_deinit(&java);
    props_init(&java);
    props_remove(&worker, "bootstrap.servers");
    layers = (struct client_conf_layers){.kind = CLIENT_CONSUMER, .worker = &worker};
    assert_int_equal(client_conf_layer(&layers, &java), 0);
    assert_string_equal(props_get(&java, "bootstrap.servers"), "localhost:9092");
    assert_string_equal(props_get(&java, "fetch.min.bytes"), "7");
    props_deinit(&java);
    props_deinit(&worker);
    props_deinit(&connector);
    props_deinit(&built_in);
    props_deinit(&forced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_connect_map_without_a_remark),
        cmocka_unit_test(java_defaults_are_set_where_librdkafka_has_others),
        cmocka_unit_test(names_and_values_are_translated),
        cmocka_unit_test(values_out_of_range_name_key_and_reason),
        cmocka_unit_test(settings_that_clash_only_inside_librdkafka_are_moved),
        cmocka_unit_test(librdkafkas_own_names_are_refused_for_every_client),
        cmocka_unit_test(a_worker_configuration_passes_through_an_admin_client),
        cmocka_unit_test(what_is_lost_is_remarked_on_by_name),
        cmocka_unit_test(every_known_name_takes_its_default),
        cmocka_unit_test(a_name_stands_only_once_in_each_list),
        cmocka_unit_test(secrets_are_known_by_their_last_words),
        cmocka_unit_test(layers_lie_in_connects_order),
    };

    return cmocka_run_group_tests(tests, NULL, mapped_end);
}
