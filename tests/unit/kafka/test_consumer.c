/* SPDX-License-Identifier: Apache-2.0 */
/* One consumer against librdkafka's mock cluster (or a real Kafka: KAFKA_BOOTSTRAP): what is handed
 * out must be exactly what was written, in order, whatever is paused or sought. */
#include "consumer_ledger.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"
#include "support/unit/side_by_side.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct mock_kafka kafka;

static void a_topic_is_read_in_order_and_goes_on_behind_the_commit(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth, .commit_on_revoke = true};
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    int64_t from;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 2);
    ledger_fill(&kafka, topic, 2, 1000);
    ledger_open(&l, topic, NULL);
    assert_string_equal(consumer_member_id(l.c), "");
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 2000, 60000);
    assert_int_equal(l.assigned, 1);
    assert_string_not_equal(consumer_member_id(l.c), "");
    assert_int_equal(consumer_commit(l.c, mine, ledger_positions(&l, topic, mine), false, 0, &err),
                     0);
    for (from = clock_ms(); consumer_commit_result(l.c, &err) == 0;)
        assert_true(clock_ms() - from < 5000);
    assert_int_equal(err.code, 0);
    assert_int_equal(consumer_commit_result(l.c, &err), 0); /* told once */
    from = clock_ms();
    consumer_close(&l.c, INT64_MAX);
    assert_true(clock_ms() - from < 2500);
    assert_int_equal(l.revoked, 1);
    assert_int_equal(l.lost, 0);
    ledger_fill(&kafka, topic, 2, 1); /* 0 again: shows up as seen twice */
    l.assigned = 0;
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 2002, 60000);
    assert_int_equal(l.twice, 2);
    consumer_close(&l.c, INT64_MAX);
}

static void messages_carry_everything(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_msg msg = {0};
    struct consumer_header header;
    struct mr_error err = {0};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    char topic[64];
    rd_kafka_t *rk;

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    rd_kafka_conf_set(conf, "bootstrap.servers", kafka.bootstrap, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY("", 0),
                                       RD_KAFKA_V_TIMESTAMP(1234567),
                                       RD_KAFKA_V_HEADER("a", "x\0y", 3),
                                       RD_KAFKA_V_HEADER("a", NULL, 0),
                                       RD_KAFKA_V_HEADER("", "", 0), RD_KAFKA_V_END),
                     0);
    rd_kafka_flush(rk, 10000);
    rd_kafka_destroy(rk);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (int i = 0; i < 200 && consumer_poll(l.c, &msg, 1, 100, &err) != 1; i++)
        err = (struct mr_error){0};
    assert_string_equal(msg.topic, topic);
    assert_int_equal(msg.partition, 0);
    assert_int_equal(msg.offset, 0);
    assert_int_equal(msg.timestamp_ms, 1234567);
    assert_string_equal(consumer_timestamp_type(&msg), "CreateTime");
    assert_int_equal(msg.key_len, 0);
    assert_null(msg.value);
    if (kafka.cluster == NULL) { /* the mock's broker makes an empty key null */
        assert_non_null(msg.key);
    }
    assert_int_equal(msg.header_count, 3);
    header = consumer_header_at(&msg, 0);
    assert_string_equal(header.name, "a");
    assert_int_equal(header.value_len, 3);
    assert_memory_equal(header.value, "x\0y", 3);
    header = consumer_header_at(&msg, 1);
    assert_null(header.value);
    header = consumer_header_at(&msg, 2);
    assert_string_equal(header.name, "");
    consumer_close(&l.c, INT64_MAX); /* with the batch still held */
}

/* Message i has i % 4 headers and a value of i % 3 bytes, under every compression: the count must
 * be right for each. */
static void headers_are_counted_whatever_the_compression(void **state)
{
    static const char *const types[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_msg msgs[50];
    struct mr_error err = {0};
    size_t seen = 0;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char why[256];
        rd_kafka_t *rk;

        rd_kafka_conf_set(conf, "bootstrap.servers", kafka.bootstrap, why, sizeof(why));
        rd_kafka_conf_set(conf, "enable.idempotence", "true", why, sizeof(why));
        rd_kafka_conf_set(conf, "compression.type", types[t], why, sizeof(why));
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
        for (int i = 0; i < 120; i++) {
            rd_kafka_headers_t *headers = rd_kafka_headers_new(4);

            for (int h = 0; h < i % 4; h++)
                rd_kafka_header_add(headers, "name", 4, "value", 5);
            assert_int_equal(
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic),
                                  RD_KAFKA_V_VALUE((void *)(uintptr_t) "abc", (size_t)i % 3),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                  RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END),
                0);
        }
        rd_kafka_flush(rk, 10000);
        rd_kafka_destroy(rk);
    }
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (int64_t until = clock_ms() + 20000; seen < 600 && clock_ms() < until;) {
        int n = consumer_poll(l.c, msgs, 50, 100, &err);

        for (int i = 0; i < n; i++, seen++) {
            assert_int_equal(msgs[i].offset, seen);
            assert_int_equal(msgs[i].value_len, seen % 120 % 3);
            assert_int_equal(msgs[i].header_count, seen % 120 % 4);
            for (size_t h = 0; h < msgs[i].header_count; h++)
                assert_memory_equal(consumer_header_at(&msgs[i], h).value, "value", 5);
        }
        consumer_release(l.c);
    }
    assert_int_equal(seen, 600);
    consumer_close(&l.c, INT64_MAX);
}

static void resume_goes_on_where_the_owner_says(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition to = {.partition = 0, .offset = 40};
    struct mr_error err = {0};
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 100);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 100, 60000);
    assert_int_equal(consumer_pause(l.c, &err), 0);
    to.topic = topic;
    truth = (struct ledger_truth){.next = {40}, .high = {40}};
    assert_int_equal(consumer_resume(l.c, &to, 1, &err), 0);
    ledger_poll_until(&l, 160, 60000);
    assert_int_equal(l.twice, 0);
    consumer_close(&l.c, INT64_MAX);
}

/* What librdkafka 2.0.2 gets wrong by itself: random batches, pauses, polls while paused, seeks
 * back. */
static void nothing_is_lost_or_doubled_by_pause_resume_and_seek(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    int64_t until;
    size_t sought = 0;
    char topic[64];

    ledger_seed();
    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, 10000);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (until = clock_ms() + 60000; l.seen < 10000 * PARTITIONS + sought && clock_ms() < until;) {
        ledger_poll(&l, 1 + (size_t)random() % BATCH, random() % 20);
        if (random() % 8 == 0 && l.assigned > 0) {
            assert_int_equal(consumer_pause(l.c, &err), 0);
            for (long i = random() % 3; i > 0; i--)
                assert_int_equal(ledger_poll(&l, BATCH, random() % 5), 0);
            assert_int_equal(consumer_resume(l.c, mine, ledger_positions(&l, topic, mine), &err),
                             0);
        }
        if (random() % 16 == 0 && l.assigned > 0) { /* rewind one partition, as a failed put does */
            int p = (int)(random() % PARTITIONS);
            int64_t back = l.next[p] > 0 ? random() % (l.next[p] < 100 ? l.next[p] + 1 : 100) : 0;

            if (l.next[p] < 0)
                continue;
            l.next[p] -= back;
            truth.next[p] -= back;
            truth.high[p] -= back;
            sought += (size_t)back;
            assert_int_equal(consumer_seek(l.c, mine, ledger_positions(&l, topic, mine), &err), 0);
        }
    }
    assert_int_equal(l.assigned, 1); /* not thrown out by a busy machine */
    assert_int_equal(l.seen, 10000 * PARTITIONS + sought);
    assert_int_equal(l.twice, 0);
    assert_int_equal(l.moved, 0);
    consumer_close(&l.c, INT64_MAX);
}

/* What a truncated log looks like: the position lies behind its end. */
static void a_log_that_ends_before_the_position_is_told(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 2);
    ledger_fill(&kafka, topic, 2, 10);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 20, 60000);
    assert_int_equal(l.moved, 0);
    l.next[1] = 1000;
    truth.next[1] = 0;
    assert_int_equal(consumer_seek(l.c, mine, ledger_positions(&l, topic, mine), &err), 0);
    ledger_poll_until(&l, 30, 60000);
    assert_int_equal(l.moved, 1);
    assert_int_equal(l.next[1], 10);
    consumer_close(&l.c, INT64_MAX);
}

static void *wake_soon(void *arg)
{
    struct timespec pause = {0, 100 * 1000 * 1000};

    nanosleep(&pause, NULL);
    consumer_wake(arg);
    return NULL;
}

static void a_wait_ends_when_woken(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    pthread_t thread;
    int64_t from;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (from = clock_ms(); l.assigned == 0 && clock_ms() - from < 20000;)
        ledger_poll(&l, BATCH, 100);
    assert_int_equal(pthread_create(&thread, NULL, wake_soon, l.c), 0);
    from = clock_ms();
    assert_int_equal(ledger_poll(&l, BATCH, 20000), 0);
    assert_in_range(clock_ms() - from, 50, 3000);
    pthread_join(thread, NULL);
    consumer_wake(l.c); /* before the poll counts too */
    from = clock_ms();
    assert_int_equal(ledger_poll(&l, BATCH, 20000), 0);
    assert_true(clock_ms() - from < 5000);
    from = clock_ms();
    assert_int_equal(ledger_poll(&l, BATCH, 300), 0); /* and only once */
    assert_true(clock_ms() - from >= 290);
    consumer_close(&l.c, INT64_MAX);
}

static void latest_starts_at_the_end_as_it_was_at_assignment(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    int64_t from;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 10);
    ledger_open(&l, topic, "auto.offset.reset", "latest", NULL);
    ledger_subscribe(&l, topic);
    for (from = clock_ms(); l.assigned == 0 && clock_ms() - from < 20000;)
        ledger_poll(&l, BATCH, 50);
    assert_int_equal(l.next[0], 10);
    assert_int_equal(consumer_pause(l.c, &err), 0);
    ledger_fill(&kafka, topic, 1, 5); /* written while paused: must not be jumped over */
    assert_int_equal(consumer_resume(l.c, mine, 0, &err), 0);
    ledger_poll_until(&l, 5, 10000);
    assert_int_equal(l.next[0], 15);
    consumer_close(&l.c, INT64_MAX);
}

static void seeking_in_assigned_decides_where_to_start(void **state);

static void assigned_and_seek(void *arg, const struct consumer_partition *parts, size_t count)
{
    struct ledger *l = arg;
    struct consumer_partition to = {parts[0].topic, 0, 7};
    struct mr_error err = {0};

    ledger_assigned(arg, parts, count);
    assert_int_equal(consumer_seek(l->c, &to, 1, &err), 0);
    l->truth->next[0] = 7;
    l->truth->high[0] = 7;
}

static void seeking_in_assigned_decides_where_to_start(void **state)
{
    static const struct consumer_events seeking = {.assigned = assigned_and_seek,
                                                   .revoked = ledger_revoked};
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct mr_error err = {0};
    struct props java;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 10);
    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "group.id", topic,
                     "auto.offset.reset", "earliest", NULL);
    l.c = consumer_new(&java, &seeking, NULL, &l, &err);
    props_deinit(&java);
    assert_non_null(l.c);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 3, 60000);
    consumer_close(&l.c, INT64_MAX);
}

static void ignore_revoked(void *arg, const struct consumer_partition *parts, size_t count,
                           bool lost)
{
}

static void seeks_beyond_the_end(void *arg, const struct consumer_partition *parts, size_t count)
{
    struct ledger *l = arg;
    struct consumer_partition to = {parts[0].topic, 0, 7};
    struct mr_error err = {0};

    (void)count;
    assert_int_equal(consumer_seek(l->c, &to, 1, &err), 0);
}

/* A consumer that is to go on at offset 7 of a topic with three records. Polls until it has
 * something to say. */
static int poll_out_of_range(const char *out_of_range, struct consumer_msg *msg,
                             struct mr_error *err)
{
    const struct consumer_events events = {
        .assigned = seeks_beyond_the_end, .revoked = ignore_revoked, .out_of_range = out_of_range};
    struct ledger l = {.kafka = &kafka};
    struct props java;
    char topic[64];
    int rc = 0;

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 3);
    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "group.id", topic,
                     "auto.offset.reset", "latest", NULL);
    l.c = consumer_new(&java, &events, NULL, &l, err);
    props_deinit(&java);
    assert_non_null(l.c);
    ledger_subscribe(&l, topic);
    for (int64_t until = clock_ms() + 60000; rc == 0 && clock_ms() < until;)
        rc = consumer_poll(l.c, msg, 1, 100, err);
    consumer_close(&l.c, INT64_MAX);
    return rc;
}

static void a_position_that_the_log_lacks_is_what_the_owner_says(void **state)
{
    struct consumer_msg msg = {0};
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(poll_out_of_range(": ask somebody", &msg, &err), MR_ERR_FATAL);
    assert_non_null(
        strstr(err.text, "-0 has no offset 7, at which reading was to go on: ask somebody"));
    err = (struct mr_error){0};
    assert_int_equal(poll_out_of_range("earliest", &msg, &err), 1);
    assert_int_equal(msg.offset, 0);
}

static void no_offset_and_no_reset_is_fatal(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_msg msg;
    struct mr_error err = {0};
    int rc = 0;
    int64_t until = clock_ms() + 20000;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_open(&l, topic, "auto.offset.reset", "none", NULL);
    ledger_subscribe(&l, topic);
    while (rc >= 0 && clock_ms() < until)
        rc = consumer_poll(l.c, &msg, 1, 100, &err);
    assert_int_equal(rc, MR_ERR_FATAL);
    assert_non_null(strstr(err.text, "auto.offset.reset is none"));
    consumer_close(&l.c, INT64_MAX);
}

static void a_pattern_subscribes_to_what_matches_as_a_whole(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    const char *bad[] = {"^(x", NULL};
    struct mr_error err = {0};
    char topic[64];
    char pattern[80];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 10);
    ledger_open(&l, topic, NULL);
    assert_int_equal(consumer_subscribe(l.c, bad, &err), MR_ERR_CONFIG);
    snprintf(pattern, sizeof(pattern), "^[st]%.40s\\d", topic + 1);
    pattern[strlen(pattern) - 3] = '\0'; /* "^[st]…": all but the last character, then a digit */
    snprintf(pattern + strlen(pattern), 4, "\\d");
    ledger_subscribe(&l, pattern);
    ledger_poll_until(&l, 10, 60000);
    consumer_close(&l.c, INT64_MAX);
}

/* Until this topic has given count messages. Others may give theirs again, as nothing is committed,
 * but never this one. */
static void read_from(struct consumer *c, const char *topic, size_t count, const char *never)
{
    int64_t until = clock_ms() + 60000;
    struct consumer_msg msg[10];
    struct mr_error err = {0};
    size_t seen = 0;

    while (seen < count && clock_ms() < until) {
        int n = consumer_poll(c, msg, 10, 100, &err);

        assert_true(n >= 0 || n == MR_ERR_RETRY);
        err = (struct mr_error){0};
        for (int i = 0; i < n; i++) {
            assert_string_not_equal(msg[i].topic, never);
            seen += strcmp(msg[i].topic, topic) == 0;
        }
        consumer_release(c);
    }
    assert_true(seen >= count);
}

static void ignore_assigned(void *arg, const struct consumer_partition *parts, size_t count)
{
}

/* One that librdkafka can't match: topics that come later are found all the same. */
static void a_pattern_of_javas_own_finds_what_comes_later(void **state)
{
    const struct consumer_events events = {.assigned = ignore_assigned, .revoked = ignore_revoked};
    char topic[64], never[80], name[80], pattern[200];
    const char *subscribed[] = {pattern, NULL};
    struct mr_error err = {0};
    struct consumer *c;
    struct props java;

    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    /* the mock waits for a session when a member comes with another subscription */
    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "group.id", topic,
                     "auto.offset.reset", "earliest", "metadata.max.age.ms", "200",
                     "session.timeout.ms", "6000", "heartbeat.interval.ms", "500", NULL);
    c = consumer_new(&java, &events, NULL, NULL, &err);
    props_deinit(&java);
    assert_non_null(c);
    snprintf(pattern, sizeof(pattern), "^(?!%s-private)%s-.*+", topic, topic);
    assert_int_equal(consumer_subscribe(c, subscribed, NULL), 0); /* nothing matches yet */
    snprintf(never, sizeof(never), "%s-private", topic);
    ledger_fill(&kafka, never, 1, 10);
    snprintf(name, sizeof(name), "%s-a", topic);
    ledger_fill(&kafka, name, 1, 10);
    read_from(c, name, 10, never);
    snprintf(name, sizeof(name), "%s-b", topic);
    ledger_fill(&kafka, name, 1, 10);
    read_from(c, name, 10, never);
    consumer_close(&c, INT64_MAX);
}

/* Java allows 0, and "never": neither may have all topics asked for in each turn. */
static void a_pattern_of_javas_own_is_looked_for_at_most_each_second(void **state)
{
    static const struct {
        const char *age;
        int64_t each_ms;
    } rows[] = {{"0", 1000}, {"60000", 60000}, {"9223372036854775807", 3600000}};
    const struct consumer_events events = {.assigned = ignore_assigned, .revoked = ignore_revoked};
    const char *subscribed[] = {"^(?!not-this).*+-there-is-none", NULL};
    struct mr_error err = {0};
    struct consumer_msg msg;
    struct props java;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct consumer *c;
        int64_t looked_ms;

        mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "group.id", "none",
                         "metadata.max.age.ms", rows[i].age, NULL);
        c = consumer_new(&java, &events, NULL, NULL, &err);
        props_deinit(&java);
        assert_non_null(c);
        assert_int_equal(c->match.each_ms, rows[i].each_ms);
        assert_int_equal(consumer_subscribe(c, subscribed, NULL), 0);
        looked_ms = c->match.looked_ms;
        assert_int_equal(consumer_poll(c, &msg, 1, 100, &err), 0);
        assert_true(c->match.looked_ms == looked_ms || clock_ms() - looked_ms >= 1000);
        consumer_close(&c, INT64_MAX);
    }
}

static void a_lost_broker_is_something_to_poll_on_for(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_msg msg;
    struct mr_error err = {0};
    int64_t until;
    int rc = 0;
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 10);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 10, 60000);
    rd_kafka_mock_broker_set_down(kafka.cluster, 1);
    for (until = clock_ms() + 10000; rc == 0 && clock_ms() < until;)
        rc = consumer_poll(l.c, &msg, 1, 100, &err);
    assert_int_equal(rc, MR_ERR_RETRY);
    assert_true(err.text[0] != '\0');
    rd_kafka_mock_broker_set_up(kafka.cluster, 1);
    ledger_fill(&kafka, topic, 1, 5);
    for (until = clock_ms() + 20000; l.seen < 15 && clock_ms() < until;)
        ledger_poll(&l, 1, 100);
    assert_int_equal(l.seen, 15);
    consumer_close(&l.c, INT64_MAX);
}

/* Nor is any other number told that stands for "none". */
static void an_error_of_a_topic_names_no_offset(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_msg msg;
    struct mr_error err = {0};
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    rd_kafka_mock_topic_set_error(kafka.cluster, topic,
                                  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (int i = 0; i < 200 && strstr(err.text, topic) == NULL; i++) {
        err = (struct mr_error){0};
        consumer_poll(l.c, &msg, 1, 100, &err);
    }
    assert_non_null(strstr(err.text, "Topic authorization failed"));
    assert_non_null(strstr(err.text, topic));
    assert_null(strstr(err.text, "offset"));
    assert_null(strstr(err.text, "Partition")); /* nor a partition where the topic is meant */
    consumer_close(&l.c, INT64_MAX);
}

/* librdkafka sends a commit again that the broker could not take; it must not undo a later one. */
static void a_last_commit_is_the_last(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition part = {.offset = 5};
    struct mr_error err = {0};
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 20);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 20, 60000);
    part.topic = topic;
    rd_kafka_mock_push_request_errors(kafka.cluster, 8 /* OffsetCommit */, 1,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
    assert_int_equal(consumer_commit(l.c, &part, 1, false, 0, &err), 0);
    part.offset = 20;
    assert_int_equal(consumer_commit(l.c, &part, 1, true, 20000, &err), 0);
    consumer_close(&l.c, INT64_MAX);
    ledger_fill(&kafka, topic, 1, 1); /* 0 again */
    l.assigned = 0;
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 21, 60000);
    assert_int_equal(l.twice, 1);
    consumer_close(&l.c, INT64_MAX);
}

static void a_group_that_does_not_answer_is_left_by_the_deadline(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    int64_t from;
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 1);
    ledger_fill(&kafka, topic, 1, 10);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 10, 60000);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 10000);
    from = clock_ms();
    consumer_close(&l.c, from + 300);
    assert_true(clock_ms() - from < 5000); /* the answer would take ten seconds */
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
}

/* metadata.max.age.ms is five minutes; Java asks each second. The mock can't be without a topic,
 * but say that it is. */
static void a_topic_that_is_created_after_the_start_is_read_soon(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    int64_t from;
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 2);
    ledger_fill(&kafka, topic, 2, 10);
    rd_kafka_mock_topic_set_error(kafka.cluster, topic, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    for (from = clock_ms(); clock_ms() - from < 4000;) /* longer than the group needs to be there */
        ledger_poll(&l, BATCH, 100);
    assert_int_equal(l.assigned, 0);
    rd_kafka_mock_topic_set_error(kafka.cluster, topic, RD_KAFKA_RESP_ERR_NO_ERROR);
    ledger_poll_until(&l, 20, 60000); /* the mock's own 3 s among them */
    consumer_close(&l.c, INT64_MAX);
}

static void a_topic_that_is_gone_is_given_up_and_taken_again_when_it_is_back(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    int64_t from;
    char topic[64];

    if (kafka.cluster == NULL)
        skip();
    mock_kafka_topic(&kafka, topic, sizeof(topic), 2);
    ledger_fill(&kafka, topic, 2, 10);
    ledger_open(&l, topic, NULL);
    ledger_subscribe(&l, topic);
    ledger_poll_until(&l, 20, 60000);
    rd_kafka_mock_topic_set_error(kafka.cluster, topic, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rd_kafka_mock_push_request_errors(
        kafka.cluster, 1 /* Fetch */, 3, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    for (from = clock_ms(); l.revoked == 0 && clock_ms() - from < 60000;)
        ledger_poll(&l, BATCH, 50);
    assert_int_equal(l.revoked, 1);
    rd_kafka_mock_topic_set_error(kafka.cluster, topic, RD_KAFKA_RESP_ERR_NO_ERROR);
    for (from = clock_ms(); l.assigned < 2 && clock_ms() - from < 60000;)
        ledger_poll(&l, BATCH, 50);
    assert_int_equal(l.assigned, 2);
    consumer_close(&l.c, INT64_MAX);
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

/* A client whose topic was missing is destroyed by a thread of its own (consumer.c:
 * destroy_client), which a test's end does not wait for: what it has not freed by then is no
 * leak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:librdkafka.so";
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_is_read_in_order_and_goes_on_behind_the_commit),
        cmocka_unit_test(messages_carry_everything),
        cmocka_unit_test(headers_are_counted_whatever_the_compression),
        cmocka_unit_test(a_topic_that_is_created_after_the_start_is_read_soon),
        cmocka_unit_test(a_topic_that_is_gone_is_given_up_and_taken_again_when_it_is_back),
        cmocka_unit_test(resume_goes_on_where_the_owner_says),
        cmocka_unit_test(nothing_is_lost_or_doubled_by_pause_resume_and_seek),
        cmocka_unit_test(a_log_that_ends_before_the_position_is_told),
        cmocka_unit_test(a_wait_ends_when_woken),
        cmocka_unit_test(latest_starts_at_the_end_as_it_was_at_assignment),
        cmocka_unit_test(seeking_in_assigned_decides_where_to_start),
        cmocka_unit_test(a_position_that_the_log_lacks_is_what_the_owner_says),
        cmocka_unit_test(no_offset_and_no_reset_is_fatal),
        cmocka_unit_test(a_pattern_subscribes_to_what_matches_as_a_whole),
        cmocka_unit_test(a_pattern_of_javas_own_finds_what_comes_later),
        cmocka_unit_test(a_pattern_of_javas_own_is_looked_for_at_most_each_second),
        cmocka_unit_test(a_lost_broker_is_something_to_poll_on_for),
        cmocka_unit_test(an_error_of_a_topic_names_no_offset),
        cmocka_unit_test(a_last_commit_is_the_last),
        cmocka_unit_test(a_group_that_does_not_answer_is_left_by_the_deadline),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            start, stop);
}
