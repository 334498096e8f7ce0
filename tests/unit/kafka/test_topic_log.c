/* SPDX-License-Identifier: Apache-2.0 */
/* topic_log and topic_admin on librdkafka's mock cluster (or a real one): replay, order,
 * confirmation, deadlines. What a mock can't do (creating, policies, deletion, rights) is tried in
 * tests/integration/test_stores.c. */
#include "mock_kafka.h"

#include "base/clock.h"
#include "kafka/topic_log.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 30000
#define PARTITIONS 4

struct rig {
    struct mock_kafka kafka;
    char topic[128];
    struct topic_admin *admin;
    struct topic_log *log;
    int records;
    int done;
    int code; /* of the newest answer */
    char text[256];
    char last[64]; /* value of the newest record */
    const char *fetch_wait_ms;
    bool seldom;
    struct props writer; /* for the log's life */
    int64_t next[PARTITIONS];
    int order[4096]; /* answers, as they came */
};

static void on_record(void *arg, const struct topic_log_record *rec)
{
    struct rig *rig = arg;

    rig->records++;
    assert_true(rec->offset >= rig->next[rec->partition]);
    rig->next[rec->partition] = rec->offset + 1;
    snprintf(rig->last, sizeof(rig->last), "%.*s", (int)rec->value_len,
             rec->value != NULL ? (const char *)rec->value : "(null)");
}

static void on_done(void *arg, int code, const char *text)
{
    struct rig *rig = arg;

    rig->done++;
    rig->code = code;
    snprintf(rig->text, sizeof(rig->text), "%s", text != NULL ? text : "");
}

static const struct topic_log_events events = {on_record, NULL};

static void open_log(struct rig *rig, const char *key, const char *value)
{
    struct props reader;
    struct mr_error err = {0};
    struct topic_log_options options = {.topic = rig->topic,
                                        .partitions = PARTITIONS,
                                        .consumer = &reader,
                                        .producer = &rig->writer,
                                        .seldom = rig->seldom,
                                        .admin = rig->admin,
                                        .max_bytes = 100000,
                                        .events = &events,
                                        .arg = rig};

    mock_kafka_props(&reader, "bootstrap.servers", rig->kafka.bootstrap, "fetch.max.wait.ms",
                     rig->fetch_wait_ms != NULL ? rig->fetch_wait_ms : "50", NULL);
    props_deinit(&rig->writer);
    mock_kafka_props(&rig->writer, "bootstrap.servers", rig->kafka.bootstrap, "acks", "all",
                     "enable.idempotence", "false", "request.timeout.ms", "1500",
                     "max.in.flight.requests.per.connection", "1", key, value, NULL);
    memset(rig->next, 0, sizeof(rig->next));
    rig->records = 0;
    rig->log = topic_log_open(&options, &err);
    props_deinit(&reader);
    if (rig->log == NULL)
        fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct props java;

    mock_kafka_start(&rig->kafka, 1);
    mock_kafka_topic(&rig->kafka, rig->topic, sizeof(rig->topic), PARTITIONS);
    mock_kafka_props(&java, "bootstrap.servers", rig->kafka.bootstrap, NULL);
    rig->admin = topic_admin_new(&java, NULL, NULL, NULL);
    props_deinit(&java);
    assert_non_null(rig->admin);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    topic_log_close(&rig->log);
    props_deinit(&rig->writer);
    topic_admin_free(&rig->admin);
    mock_kafka_stop(&rig->kafka);
    free(rig);
    return 0;
}

static void append(struct rig *rig, const char *key, const char *value)
{
    struct mr_error err = {0};
    struct topic_log_append rec = {.key = key,
                                   .key_len = strlen(key),
                                   .value = value,
                                   .value_len = value != NULL ? strlen(value) : 0,
                                   .done = on_done,
                                   .arg = rig};

    if (topic_log_append(rig->log, &rec, &err) != 0)
        fail_msg("%s", err.text);
}

/* Wait on its descriptor alone. */
static void serve_until_confirmed(struct rig *rig)
{
    struct pollfd fd = {.fd = topic_log_fd(rig->log), .events = POLLIN};
    int64_t until = clock_ms() + CALL_MS;

    while (topic_log_unconfirmed(rig->log) > 0) {
        assert_true(clock_ms() < until);
        assert_int_equal(poll(&fd, 1, CALL_MS), 1);
        topic_log_serve(rig->log, NULL);
    }
}

static void to_end(struct rig *rig)
{
    struct mr_error err = {0};

    if (topic_log_read_to_end(rig->log, clock_ms() + CALL_MS, &err) != 0)
        fail_msg("%s", err.text);
}

static void an_empty_topic_has_an_end(void **state)
{
    struct rig *rig = *state;
    int64_t ends[PARTITIONS] = {-1};

    open_log(rig, NULL, NULL);
    to_end(rig);
    assert_int_equal(rig->records, 0);
    assert_int_equal(topic_admin_ends(rig->admin, rig->topic, PARTITIONS, CALL_MS, ends, NULL), 0);
    assert_int_equal(ends[PARTITIONS - 1], 0);
}

/* A log that the brokers let nobody read, for so many requests. With records in all partitions,
 * since the mock tells of the end of an empty one also where it denies. */
static void open_denied(struct rig *rig, size_t count)
{
    rd_kafka_resp_err_t errors[1000];

    open_log(rig, NULL, NULL);
    for (int i = 0; i < 100; i++)
        append(rig, (char[]){'k', (char)(' ' + i), '\0'}, "v");
    serve_until_confirmed(rig);
    topic_log_close(&rig->log);
    assert_true(count <= sizeof(errors) / sizeof(*errors));
    for (size_t i = 0; i < count; i++)
        errors[i] = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    rd_kafka_mock_push_request_errors_array(rig->kafka.cluster, 1, count, errors);
    open_log(rig, NULL, NULL);
}

static void a_topic_that_may_not_be_read_is_told(void **state)
{
    struct rig *rig = *state;
    struct mr_error err = {0};

    if (rig->kafka.cluster == NULL)
        skip();
    open_denied(rig, 1000);
    assert_int_equal(topic_log_prove(rig->log, clock_ms() + 2000, &err), MR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, rig->topic));
    assert_non_null(strstr(err.text, "ACLs Read and Describe"));
}

/* Brokers learn of rights one after another. */
static void a_right_that_comes_late_is_waited_for(void **state)
{
    struct rig *rig = *state;
    int64_t since = clock_ms();

    if (rig->kafka.cluster == NULL)
        skip();
    open_denied(rig, 1);
    assert_int_equal(topic_log_prove(rig->log, since + CALL_MS, NULL), 0);
    assert_true(clock_ms() - since < CALL_MS / 2); /* it was heard of, not given up */
}

static void an_empty_topic_is_heard_of(void **state)
{
    struct rig *rig = *state;
    int64_t since = clock_ms();

    open_log(rig, NULL, NULL);
    to_end(rig);
    assert_int_equal(topic_log_prove(rig->log, since + CALL_MS, NULL), 0);
    assert_true(clock_ms() - since < CALL_MS / 2);
}

static void what_is_confirmed_is_read_and_read_again_by_the_next(void **state)
{
    struct rig *rig = *state;

    open_log(rig, NULL, NULL);
    for (int i = 0; i < 500; i++) {
        char key[16];

        snprintf(key, sizeof(key), "key-%d", i);
        append(rig, key, i % 7 ? "value" : NULL);
    }
    assert_int_equal(topic_log_unconfirmed(rig->log), 500);
    serve_until_confirmed(rig);
    assert_int_equal(rig->done, 500);
    assert_int_equal(rig->code, 0);
    to_end(rig);
    assert_int_equal(rig->records, 500);
    topic_log_close(&rig->log);
    open_log(rig, NULL, NULL);
    to_end(rig);
    assert_int_equal(rig->records, 500);
}

/* For leaders that are not known yet librdkafka would wait half a second, for empty partitions
 * until fetch.max.wait.ms. */
static void a_replay_waits_for_no_clock(void **state)
{
    struct rig *rig = *state;
    int64_t since;

    rig->fetch_wait_ms = "20000";
    open_log(rig, NULL, NULL);
    append(rig, "key", "value");
    serve_until_confirmed(rig);
    since = clock_ms();
    for (int i = 0; i < 24; i++) {
        topic_log_close(&rig->log);
        open_log(rig, NULL, NULL);
        to_end(rig);
        assert_int_equal(rig->records, 1);
    }
    assert_true(clock_ms() - since < 11000); /* by half a second each: 12000 */
}

static void each_confirmed_write_is_seen_by_the_next_read_to_end(void **state)
{
    struct rig *rig = *state;

    open_log(rig, NULL, NULL);
    for (int i = 0; i < 30; i++) {
        char value[16];

        snprintf(value, sizeof(value), "v%d", i);
        append(rig, "one key", value);
        serve_until_confirmed(rig);
        to_end(rig);
        assert_int_equal(rig->records, i + 1);
        assert_string_equal(rig->last, value);
    }
}

static void what_does_not_fit_is_not_taken(void **state)
{
    struct rig *rig = *state;
    static char big[60000];
    struct topic_log_append rec = {.key = "k",
                                   .key_len = 1,
                                   .value = big,
                                   .value_len = sizeof(big),
                                   .done = on_done,
                                   .arg = rig};

    open_log(rig, "max.request.size", "70000");
    assert_int_equal(topic_log_append(rig->log, &rec, NULL), 0);
    assert_int_equal(topic_log_append(rig->log, &rec, NULL), MR_ERR_FULL);
    serve_until_confirmed(rig);
    assert_int_equal(topic_log_append(rig->log, &rec, NULL), 0); /* there is room again */
    serve_until_confirmed(rig);
    topic_log_close(&rig->log);
    open_log(rig, "max.request.size", "50000");
    assert_int_equal(topic_log_append(rig->log, &rec, NULL), MR_ERR_TOO_LARGE);
    assert_int_equal(rig->done, 2);
}

static void a_write_that_nobody_takes_is_given_up_in_time(void **state)
{
    struct rig *rig = *state;

    if (rig->kafka.cluster == NULL)
        skip();
    open_log(rig, "delivery.timeout.ms", "1500");
    to_end(rig);
    append(rig, "k", "first");
    serve_until_confirmed(rig);
    rd_kafka_mock_broker_set_down(rig->kafka.cluster, 1);
    append(rig, "k", "v");
    serve_until_confirmed(rig);
    assert_int_equal(rig->code, MR_ERR_RETRY);
    assert_true(rig->text[0] != '\0');
}

static void reading_to_the_end_keeps_its_deadline_and_goes_on_later(void **state)
{
    struct rig *rig = *state;
    struct mr_error err = {0};
    int64_t since;

    if (rig->kafka.cluster == NULL)
        skip();
    open_log(rig, NULL, NULL);
    append(rig, "k", "v");
    serve_until_confirmed(rig);
    to_end(rig);
    rd_kafka_mock_broker_set_down(rig->kafka.cluster, 1);
    since = clock_ms();
    assert_int_equal(topic_log_read_to_end(rig->log, since + 700, &err), MR_ERR_TIMEOUT);
    assert_true(clock_ms() - since >= 700 && clock_ms() - since < 8000);
    assert_true(err.text[0] != '\0');
    rd_kafka_mock_broker_set_up(rig->kafka.cluster, 1);
    to_end(rig);
    append(rig, "k", "w");
    serve_until_confirmed(rig);
    to_end(rig);
    assert_int_equal(rig->records, 2);
}

static void *call_off(void *arg)
{
    struct rig *rig = arg;

    topic_admin_cancel(rig->admin);
    return NULL;
}

static void what_blocks_can_be_called_off_from_another_thread(void **state)
{
    struct rig *rig = *state;
    struct mr_error err = {0};
    int64_t since = clock_ms();
    pthread_t thread;
    int count;

    if (rig->kafka.cluster == NULL)
        skip();
    open_log(rig, NULL, NULL);
    rd_kafka_mock_broker_set_down(rig->kafka.cluster, 1);
    assert_int_equal(pthread_create(&thread, NULL, call_off, rig), 0);
    assert_int_equal(topic_log_read_to_end(rig->log, clock_ms() + CALL_MS, &err), MR_ERR_CLOSED);
    pthread_join(thread, NULL);
    assert_int_equal(topic_admin_partitions(rig->admin, rig->topic, CALL_MS, &count, NULL),
                     MR_ERR_CLOSED);
    assert_true(clock_ms() - since < CALL_MS / 2);
}

static void closing_answers_what_waits(void **state)
{
    struct rig *rig = *state;

    if (rig->kafka.cluster == NULL)
        skip();
    open_log(rig, NULL, NULL);
    to_end(rig);
    rd_kafka_mock_broker_set_down(rig->kafka.cluster, 1);
    append(rig, "k", "v");
    topic_log_close(&rig->log);
    assert_int_equal(rig->done, 1);
    assert_int_equal(rig->code, MR_ERR_CLOSED);
}

static void keys_go_where_java_puts_them(void **state)
{
    /* murmur2 of the key, as org.apache.kafka.clients.producer has it, in four partitions */
    static const struct {
        const char *key;
        int partition;
    } keys[] = {{"status-connector-src", 1}, {"status-task-src-0", 1}};
    struct rig *rig = *state;

    open_log(rig, NULL, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        int64_t before[PARTITIONS];

        to_end(rig);
        memcpy(before, rig->next, sizeof(before));
        append(rig, keys[i].key, "v");
        serve_until_confirmed(rig);
        to_end(rig);
        for (int p = 0; p < PARTITIONS; p++)
            assert_int_equal(rig->next[p] - before[p], p == keys[i].partition);
    }
}

static size_t threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Each producer costs threads, and a worker of a cluster has a log that it rarely writes to. */
static void a_log_that_is_seldom_written_has_no_producer_before(void **state)
{
    struct rig *rig = *state;
    size_t usual;

    if (rig->kafka.cluster == NULL)
        skip();
    open_log(rig, NULL, NULL);
    usual = threads();
    topic_log_close(&rig->log);
    rig->seldom = true;
    open_log(rig, NULL, NULL);
    to_end(rig);
    assert_true(threads() < usual);
    append(rig, "k", "v");
    serve_until_confirmed(rig);
    assert_int_equal(rig->code, 0);
    to_end(rig);
    assert_string_equal(rig->last, "v");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_topic_has_an_end),
        TEST(a_topic_that_may_not_be_read_is_told),
        TEST(an_empty_topic_is_heard_of),
        TEST(a_right_that_comes_late_is_waited_for),
        TEST(what_is_confirmed_is_read_and_read_again_by_the_next),
        TEST(a_replay_waits_for_no_clock),
        TEST(each_confirmed_write_is_seen_by_the_next_read_to_end),
        TEST(what_does_not_fit_is_not_taken),
        TEST(a_write_that_nobody_takes_is_given_up_in_time),
        TEST(reading_to_the_end_keeps_its_deadline_and_goes_on_later),
        TEST(what_blocks_can_be_called_off_from_another_thread),
        TEST(closing_answers_what_waits),
        TEST(a_log_that_is_seldom_written_has_no_producer_before),
        TEST(keys_go_where_java_puts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
