/* SPDX-License-Identifier: Apache-2.0 */
/* The producer against librdkafka's mock cluster (or a real Kafka: KAFKA_BOOTSTRAP): every record
 * gets one report. */
#include "kafka/producer.h"

#include "base/clock.h"
#include "mock_kafka.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct mock_kafka kafka;

struct reports {
    size_t count;
    size_t by_code[20]; /* index: -code */
    size_t last;        /* opaque of the newest */
    bool ordered;
    char text[1024];
};

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct reports *r = arg;

    r->ordered = r->ordered && (size_t)opaque == r->last + 1;
    r->last = (size_t)opaque;
    r->count++;
    r->by_code[-code]++;
    if (code != 0)
        snprintf(r->text, sizeof(r->text), "%s", text);
}

/* As Connect sets up a source's producer, and these pairs. */
static struct producer *open_producer(const char *key, ...)
{
    struct props java;
    struct mr_error err = {0};
    struct producer *p;
    va_list args;

    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "enable.idempotence", "false",
                     "max.in.flight.requests.per.connection", "1", NULL);
    va_start(args, key);
    for (; key != NULL; key = va_arg(args, const char *))
        props_set(&java, key, va_arg(args, const char *));
    va_end(args);
    p = producer_new(&java, NULL, NULL, &err);
    if (p == NULL)
        fail_msg("%s", err.text);
    props_deinit(&java);
    return p;
}

static struct producer_topic *open_topic(struct producer *p, int partitions)
{
    char name[64];
    struct mr_error err = {0};
    struct producer_topic *topic;

    mock_kafka_topic(&kafka, name, sizeof(name), partitions);
    topic = producer_topic(p, name, &err);
    if (topic == NULL)
        fail_msg("%s", err.text);
    assert_ptr_equal(producer_topic(p, name, &err), topic);
    return topic;
}

static struct producer_record record(struct producer_topic *topic, const char *value, size_t serial)
{
    return (struct producer_record){.topic = topic,
                                    .partition = -1,
                                    .timestamp_ms = -1,
                                    .value = value,
                                    .value_len = value != NULL ? strlen(value) : 0,
                                    .opaque = (void *)serial};
}

static void walk_all(struct producer *p, struct reports *r, int64_t limit_ms)
{
    int64_t until = clock_ms() + limit_ms;

    while (producer_in_flight(p) > 0 && clock_ms() < until)
        producer_reports(p, 100, on_report, r);
    assert_int_equal(producer_in_flight(p), 0);
}

static void every_record_is_reported_once_and_in_order(void **state)
{
    struct producer *p = open_producer(NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct reports r = {.ordered = true};
    struct mr_error err = {0};

    for (size_t i = 1; i <= 20000; i++) {
        struct producer_record rec = record(topic, "some value", i);

        while (producer_send(p, &rec, &err) == MR_ERR_FULL) {
            err = (struct mr_error){0};
            producer_reports(p, 1000, on_report, &r);
        }
        assert_int_equal(err.code, 0);
    }
    walk_all(p, &r, 10000);
    assert_int_equal(r.count, 20000);
    assert_int_equal(r.by_code[0], 20000);
    assert_true(r.ordered);
    assert_null(producer_trouble(p, NULL));
    producer_free(&p);
    assert_null(p);
}

static void the_descriptor_is_readable_while_reports_wait(void **state)
{
    struct producer *p = open_producer(NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct reports r = {0};
    struct pollfd fd = {.fd = producer_fd(p), .events = POLLIN};

    for (size_t i = 0; i < 50; i++) {
        struct producer_record rec = record(topic, "x", i);

        assert_int_equal(producer_send(p, &rec, NULL), 0);
        assert_int_equal(poll(&fd, 1, 5000), 1);
        while (producer_in_flight(p) > 0) {
            assert_int_equal(poll(&fd, 1, 5000), 1);
            producer_reports(p, 0, on_report, &r);
        }
        assert_int_equal(r.count, i + 1);
        assert_int_equal(poll(&fd, 1, 0), 0);
    }
    producer_free(&p);
}

/* 10 000 records of 100 bytes are more than 64 KiB of buffer.memory. */
static void a_full_queue_takes_nothing_and_says_so(void **state)
{
    struct producer *p = open_producer("buffer.memory", "65536", "linger.ms", "60000",
                                       "delivery.timeout.ms", "120000", NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct reports r = {0};
    struct mr_error err = {0};
    char value[101];
    size_t sent = 0;

    memset(value, 'v', 100);
    value[100] = '\0';
    for (int rc = 0; rc == 0; sent++) {
        struct producer_record rec = record(topic, value, sent);

        rc = producer_send(p, &rec, &err);
        if (rc != 0) {
            assert_int_equal(rc, MR_ERR_FULL);
            assert_non_null(strstr(err.text, "buffer.memory"));
            break;
        }
    }
    assert_in_range(sent, 500, 1001);
    assert_int_equal(producer_in_flight(p), sent);
    producer_purge(p);
    walk_all(p, &r, 5000);
    assert_int_equal(r.by_code[-MR_ERR_CLOSED], sent);
    assert_string_equal(r.text, "dropped before it was delivered");
    producer_free(&p);
}

static void a_record_above_the_limit_is_refused_at_once(void **state)
{
    struct producer *p = open_producer("max.request.size", "10000", NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct producer_record rec = record(topic, NULL, 1);
    struct mr_error err = {0};
    char *value = calloc(1, 10001);

    rec.value = value;
    rec.value_len = 10001;
    assert_int_equal(producer_send(p, &rec, &err), MR_ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "max.request.size, which is 10000"));
    assert_int_equal(producer_in_flight(p), 0);
    rec.value_len = 5000;
    assert_int_equal(producer_send(p, &rec, NULL), 0);
    producer_free(&p);
    free(value);
}

/* Payloads are not copied: what is freed after producer_free must not be touched any more (a
 * sanitizer looks on). */
static void freeing_leaves_no_payload_referenced(void **state)
{
    for (int round = 0; round < 5; round++) {
        struct producer *p = open_producer(NULL);
        struct producer_topic *topic = open_topic(p, 4);
        char *value = malloc(1000 * 1000);

        for (size_t i = 0; i < 1000; i++) {
            struct producer_record rec = record(topic, NULL, i);

            rec.value = memset(value + i * 1000, 'x', 1000);
            rec.value_len = 1000;
            assert_int_equal(producer_send(p, &rec, NULL), 0);
        }
        producer_free(&p);
        memset(value, 0, 1000 * 1000);
        free(value);
    }
}

static void headers_timestamps_keys_and_nulls_arrive(void **state)
{
    struct producer *p = open_producer(NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct producer_header headers[] = {{"a", "1", 1}, {"a", NULL, 0}, {"", "", 0}};
    struct producer_record rec = record(topic, NULL, 1);
    struct reports r = {0};
    struct mr_error err = {0};

    rec.key = "k";
    rec.key_len = 1;
    rec.headers = headers;
    rec.header_count = 3;
    rec.timestamp_ms = 1234567890123;
    assert_int_equal(producer_send(p, &rec, &err), 0);
    rec.header_count = 0;
    rec.timestamp_ms = 0;
    rec.key = NULL;
    assert_int_equal(producer_send(p, &rec, &err), 0);
    rec.timestamp_ms = -2;
    assert_int_equal(producer_send(p, &rec, &err), MR_ERR_DATA);
    assert_string_equal(err.text, "Invalid record timestamp -2");
    walk_all(p, &r, 5000);
    assert_int_equal(r.by_code[0], 2);
    producer_free(&p);
}

static void a_partition_or_topic_that_is_not_there_is_named(void **state)
{
    struct producer *p = open_producer(NULL);
    struct producer_topic *topic = open_topic(p, 2);
    struct producer_header header = {"h", "v", 1};
    struct producer_record rec = record(topic, "x", 1);
    static const char *const no_names[] = {"", ".", "..", "a b", "a/b", "\xc3\xa4"};
    struct mr_error err = {0};

    rec.partition = 7;
    assert_int_equal(producer_send(p, &rec, &err), MR_ERR_FATAL);
    assert_non_null(strstr(err.text, "has no partition 7"));
    rec.headers = &header; /* the other way of sending */
    rec.header_count = 1;
    err = (struct mr_error){0};
    assert_int_equal(producer_send(p, &rec, &err), MR_ERR_FATAL);
    assert_non_null(strstr(err.text, "has no partition 7"));
    for (size_t i = 0; i < sizeof(no_names) / sizeof(*no_names); i++) {
        err = (struct mr_error){0};
        assert_null(producer_topic(p, no_names[i], &err));
        assert_int_equal(err.code, MR_ERR_DATA);
    }
    producer_free(&p);
}

/* What is queued fails at once when metadata says that there is no such topic; the producer itself
 * knows it again a moment later. */
static void a_topic_that_is_away_for_a_moment_is_no_failure(void **state)
{
    struct producer *p;
    struct producer_topic *topic;
    struct reports r = {0};
    char name[64];
    int64_t until = clock_ms() + 20000;
    int rc;

    if (kafka.cluster == NULL)
        skip();
    p = open_producer("metadata.max.age.ms", "1000", NULL);
    mock_kafka_topic(&kafka, name, sizeof(name), 1);
    topic = producer_topic(p, name, NULL);
    rd_kafka_mock_partition_set_leader(kafka.cluster, name, 0, -1);
    rd_kafka_mock_topic_set_error(kafka.cluster, name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    for (size_t i = 1; i <= 100; i++) {
        struct producer_record rec = record(topic, "x", i);

        rec.partition = 0;
        rc = producer_send(p, &rec, NULL);
        assert_true(rc == 0 || rc == MR_ERR_NOT_FOUND);
    }
    walk_all(p, &r, 10000);
    assert_int_equal(r.by_code[-MR_ERR_NOT_FOUND], r.count);
    rd_kafka_mock_partition_set_leader(kafka.cluster, name, 0, 1);
    rd_kafka_mock_topic_set_error(kafka.cluster, name, RD_KAFKA_RESP_ERR_NO_ERROR);
    do {
        struct producer_record rec = record(topic, "x", 1);

        r = (struct reports){0};
        rc = producer_send(p, &rec, NULL);
        assert_true(rc == 0 || rc == MR_ERR_NOT_FOUND);
        if (rc == 0)
            walk_all(p, &r, 10000);
        else
            producer_reports(p, 50, on_report, &r);
    } while (r.by_code[0] == 0 && clock_ms() < until);
    assert_int_equal(r.by_code[0], 1);
    producer_free(&p);
}

static void errors_of_the_broker_come_with_code_and_text(void **state)
{
    static const struct {
        rd_kafka_resp_err_t broker;
        int code;
        const char *text;
    } cases[] = {
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, MR_ERR_TOO_LARGE, "max.message.bytes"},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MR_ERR_FATAL, "uthoriz"},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, MR_ERR_FATAL, "alid"},
    };

    if (kafka.cluster == NULL)
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct producer *p = open_producer(NULL);
        struct producer_topic *topic = open_topic(p, 1);
        struct producer_record rec = record(topic, "x", 1);
        struct reports r = {0};

        rd_kafka_mock_push_request_errors(kafka.cluster, 0 /* Produce */, 1, cases[i].broker);
        assert_int_equal(producer_send(p, &rec, NULL), 0);
        walk_all(p, &r, 10000);
        assert_int_equal(r.by_code[-cases[i].code], 1);
        if (strstr(r.text, cases[i].text) == NULL)
            fail_msg("%s", r.text);
        producer_free(&p);
    }
}

static void passing_errors_are_retried_until_delivered(void **state)
{
    struct producer *p;
    struct producer_topic *topic;
    struct reports r = {.ordered = true};

    if (kafka.cluster == NULL)
        skip();
    p = open_producer(NULL);
    topic = open_topic(p, 1);
    rd_kafka_mock_push_request_errors(
        kafka.cluster, 0, 3, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
    for (size_t i = 1; i <= 3000; i++) {
        struct producer_record rec = record(topic, "x", i);

        assert_int_equal(producer_send(p, &rec, NULL), 0);
    }
    walk_all(p, &r, 20000);
    assert_int_equal(r.by_code[0], 3000);
    assert_true(r.ordered); /* one request in flight keeps the order through retries */
    producer_free(&p);
}

static int64_t cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void send_ten(struct producer *p, struct producer_topic *topic, size_t from)
{
    for (size_t i = from; i < from + 10; i++) {
        struct producer_record rec = record(topic, "x", i);

        assert_int_equal(producer_send(p, &rec, NULL), 0);
    }
}

/* As a task does: woken by the descriptor alone. */
static void serve_for(struct producer *p, struct reports *r, size_t until_count, int64_t limit_ms)
{
    struct pollfd fd = {.fd = producer_fd(p), .events = POLLIN};
    int64_t until = clock_ms() + limit_ms;

    while (r->count < until_count && clock_ms() < until) {
        poll(&fd, 1, (int)(until - clock_ms()));
        producer_reports(p, 0, on_report, r);
    }
}

/* Records wait behind a request that is answered late; when it is, what the broker says is that it
 * must be sent again, of which no report tells. */
static void brokers_that_keep_it_waiting_cost_no_cpu(void **state)
{
    struct producer *p = open_producer("enable.idempotence", "true", NULL);
    struct producer_topic *topic = open_topic(p, 1);
    struct reports r = {.ordered = true};
    int64_t used_ms;

    send_ten(p, topic, 1);
    serve_for(p, &r, 10, 10000);
    assert_int_equal(r.count, 10);
    rd_kafka_mock_push_request_errors(kafka.cluster, 0 /* Produce */, 1,
                                      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 1500);
    send_ten(p, topic, 11);
    serve_for(p, &r, 20, 200);
    send_ten(p, topic, 21);
    used_ms = cpu_ms();
    serve_for(p, &r, 20, 1100);
    used_ms = cpu_ms() - used_ms;
    assert_int_equal(r.count, 10);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
    serve_for(p, &r, 30, 20000);
    assert_int_equal(r.by_code[0], 30);
    assert_true(r.ordered);
    if (used_ms > 600)
        fail_msg("%lld ms of CPU in 1100 ms of waiting", (long long)used_ms);
    producer_free(&p);
}

/* It rests before it has an id, and the leader of its partition is not connected yet. */
static void an_id_that_is_long_in_coming_holds_records_up_no_longer(void **state)
{
    struct mock_kafka three;
    struct reports r = {.ordered = true};
    struct producer_topic *topic;
    struct producer *p;
    struct props java;
    char name[64], first[64];

    mock_kafka_start(&three, 3);
    if (three.cluster == NULL)
        skip();
    mock_kafka_topic(&three, name, sizeof(name), 1);
    rd_kafka_mock_partition_set_leader(three.cluster, name, 0, 3);
    rd_kafka_mock_push_request_errors(three.cluster, 22 /* InitProducerId */, 3,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(three.bootstrap, ","), three.bootstrap);
    mock_kafka_props(&java, "bootstrap.servers", first, "enable.idempotence", "true", NULL);
    p = producer_new(&java, NULL, NULL, NULL);
    assert_non_null(p);
    topic = producer_topic(p, name, NULL);
    assert_non_null(topic);
    send_ten(p, topic, 1);
    serve_for(p, &r, 10, 4000);
    assert_int_equal(r.by_code[0], 10);
    producer_free(&p);
    props_deinit(&java);
    mock_kafka_stop(&three);
}

/* More records, one each 20 ms, until one is refused; gives how many were taken. */
static size_t send_until_refused(struct producer *p, struct producer_topic *topic, size_t from,
                                 struct reports *r)
{
    int64_t until = clock_ms() + 20000;
    struct mr_error err = {0};
    size_t next = from;

    while (clock_ms() < until) {
        struct producer_record rec = record(topic, "x", next);

        if (producer_send(p, &rec, &err) != 0)
            break;
        next++;
        serve_for(p, r, SIZE_MAX, 20);
    }
    assert_int_equal(err.code, MR_ERR_NOT_FOUND);
    return next - from;
}

/* While it rests, its topic goes and comes again: records wait for it, in order. */
static void a_topic_that_is_away_during_a_rest_gets_its_records(void **state)
{
    struct producer *p =
        open_producer("enable.idempotence", "true", "metadata.max.age.ms", "1000", NULL);
    struct reports r = {.ordered = true};
    struct producer_topic *topic;
    struct mr_error err = {0};
    size_t sent = 20;
    char name[64];

    mock_kafka_topic(&kafka, name, sizeof(name), 1);
    topic = producer_topic(p, name, &err);
    send_ten(p, topic, 1);
    serve_for(p, &r, 10, 10000);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 500);
    send_ten(p, topic, 11);
    rd_kafka_mock_topic_set_error(kafka.cluster, name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    sent += send_until_refused(p, topic, sent + 1, &r);
    assert_true(r.count < sent);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
    rd_kafka_mock_topic_set_error(kafka.cluster, name, RD_KAFKA_RESP_ERR_NO_ERROR);
    serve_for(p, &r, sent, 20000);
    assert_int_equal(r.by_code[0], sent);
    assert_true(r.ordered);
    producer_free(&p);
}

static void a_lost_broker_is_trouble_but_not_fatal(void **state)
{
    struct producer *p;
    struct producer_topic *topic;
    struct producer_record rec;
    struct reports r = {0};
    int64_t until = clock_ms() + 10000;
    bool fatal = true;

    if (kafka.cluster == NULL)
        skip();
    p = open_producer(NULL);
    topic = open_topic(p, 1);
    rec = record(topic, "x", 1);
    rd_kafka_mock_broker_set_down(kafka.cluster, 1);
    assert_int_equal(producer_send(p, &rec, NULL), 0);
    while (producer_trouble(p, &fatal) == NULL && clock_ms() < until)
        producer_reports(p, 50, on_report, &r);
    assert_non_null(producer_trouble(p, &fatal));
    assert_false(fatal);
    assert_int_equal(r.count, 0);
    rd_kafka_mock_broker_set_up(kafka.cluster, 1);
    walk_all(p, &r, 15000);
    assert_int_equal(r.by_code[0], 1);
    assert_null(producer_trouble(p, &fatal));
    producer_free(&p);
}

static void giving_up_by_time_says_why(void **state)
{
    struct producer *p;
    struct producer_topic *topic;
    struct producer_record rec;
    struct reports r = {0};

    if (kafka.cluster == NULL)
        skip();
    p = open_producer("delivery.timeout.ms", "1500", "request.timeout.ms", "1000", NULL);
    topic = open_topic(p, 1);
    rec = record(topic, "x", 1);
    rd_kafka_mock_broker_set_down(kafka.cluster, 1);
    assert_int_equal(producer_send(p, &rec, NULL), 0);
    walk_all(p, &r, 10000);
    rd_kafka_mock_broker_set_up(kafka.cluster, 1);
    assert_int_equal(r.by_code[-MR_ERR_RETRY], 1);
    assert_non_null(strstr(r.text, "delivery.timeout.ms"));
    producer_free(&p);
}

static void settings_that_cannot_be_are_refused_at_birth(void **state)
{
    struct props java;
    struct mr_error err = {0};

    mock_kafka_props(&java, "bootstrap.servers", "x:1", "security.protocol", "SASL_SSL",
                     "sasl.mechanism", "PLAIN", NULL);
    assert_null(producer_new(&java, NULL, NULL, &err));
    assert_int_equal(err.code, MR_ERR_CONFIG);
    props_deinit(&java);
}

static int start(void **state)
{
    (void)state;
    mock_kafka_start(&kafka, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mock_kafka_stop(&kafka);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_is_reported_once_and_in_order),
        cmocka_unit_test(the_descriptor_is_readable_while_reports_wait),
        cmocka_unit_test(a_full_queue_takes_nothing_and_says_so),
        cmocka_unit_test(a_record_above_the_limit_is_refused_at_once),
        cmocka_unit_test(freeing_leaves_no_payload_referenced),
        cmocka_unit_test(headers_timestamps_keys_and_nulls_arrive),
        cmocka_unit_test(a_partition_or_topic_that_is_not_there_is_named),
        cmocka_unit_test(a_topic_that_is_away_for_a_moment_is_no_failure),
        cmocka_unit_test(errors_of_the_broker_come_with_code_and_text),
        cmocka_unit_test(passing_errors_are_retried_until_delivered),
        cmocka_unit_test(brokers_that_keep_it_waiting_cost_no_cpu),
        cmocka_unit_test(an_id_that_is_long_in_coming_holds_records_up_no_longer),
        cmocka_unit_test(a_topic_that_is_away_during_a_rest_gets_its_records),
        cmocka_unit_test(a_lost_broker_is_trouble_but_not_fatal),
        cmocka_unit_test(giving_up_by_time_says_why),
        cmocka_unit_test(settings_that_cannot_be_are_refused_at_birth),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
