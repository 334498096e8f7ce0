/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions against librdkafka's mock cluster (or a real Kafka: KAFKA_BOOTSTRAP): what ends
 * well, what must not be used again. */
#include "kafka/producer.h"

#include "base/clock.h"
#include "kafka/consumer.h"
#include "mock_kafka.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#define HEARTBEAT 12
#define END_TXN 26
#define LIMIT_MS 20000

static struct mock_kafka kafka;
static struct producer *p;
static struct producer_topic *topic;
static char name[64]; /* of the topic, and the transactional id */
static size_t delivered;
static size_t failed;

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    (void)arg, (void)opaque, (void)text;
    if (code == 0)
        delivered++;
    else
        failed++;
}

static struct producer *open_producer(const char *id)
{
    struct props java;
    struct mr_error err = {0};
    struct producer *made;

    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "transactional.id", id,
                     "enable.idempotence", "true", "retry.backoff.ms", "10", NULL);
    made = producer_new(&java, NULL, NULL, &err);
    if (made == NULL)
        fail_msg("%s", err.text);
    props_deinit(&java);
    return made;
}

typedef int (*step)(struct producer *producer, int64_t timeout_ms, struct mr_error *err);

/* As a task does: small slices, reports between them. */
static int insist(step fn, struct mr_error *err)
{
    int64_t until_ms = clock_ms() + LIMIT_MS;
    int rc;

    while ((rc = fn(p, 50, err)) == MR_AGAIN && clock_ms() < until_ms)
        producer_reports(p, 0, on_report, NULL);
    return rc;
}

static void must(int rc, const struct mr_error *err)
{
    if (rc != 0)
        fail_msg("%d: %s", rc, err->text);
}

static void send_some(size_t count)
{
    struct mr_error err = {0};

    for (size_t i = 0; i < count; i++)
        must(producer_send(p,
                           &(struct producer_record){.topic = topic,
                                                     .partition = 0,
                                                     .timestamp_ms = -1,
                                                     .value = "v",
                                                     .value_len = 1},
                           &err),
             &err);
}

static void walk(size_t count)
{
    int64_t until_ms = clock_ms() + LIMIT_MS;

    while (delivered + failed < count && clock_ms() < until_ms)
        producer_reports(p, 50, on_report, NULL);
    assert_int_equal(delivered + failed, count);
}

static void begin_with(size_t count)
{
    struct mr_error err = {0};

    must(producer_txn_begin(p, &err), &err);
    send_some(count);
}

static int setup(void **state)
{
    struct mr_error err = {0};

    (void)state;
    delivered = failed = 0;
    mock_kafka_topic(&kafka, name, sizeof(name), 1);
    p = open_producer(name);
    must(insist(producer_txn_init, &err), &err);
    topic = producer_topic(p, name, &err);
    assert_non_null(topic);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    producer_free(&p);
    return 0;
}

static void transactions_follow_each_other(void **state)
{
    struct mr_error err = {0};

    (void)state;
    for (size_t i = 1; i <= 3; i++) {
        begin_with(10);
        walk(10 * i);
        must(insist(producer_txn_commit, &err), &err);
        assert_false(producer_txn_tainted(p));
    }
    assert_int_equal(delivered, 30);
}

static void one_that_is_empty_leaves_no_taint(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_with(0);
    must(insist(producer_txn_commit, &err), &err);
    assert_false(producer_txn_tainted(p));
}

static void an_abort_reports_what_it_took_back(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_with(100);
    must(insist(producer_txn_abort, &err), &err);
    walk(100);
    assert_true(producer_txn_tainted(p));
}

static void an_abort_of_what_was_delivered_is_gone_on_from(void **state)
{
    struct mr_error err = {0};

    (void)state;
    for (size_t i = 1; i <= 3; i++) {
        begin_with(10);
        walk(10 * i);
        must(insist(producer_txn_abort, &err), &err);
        assert_false(producer_txn_tainted(p));
    }
    begin_with(1);
    walk(31);
    must(insist(producer_txn_commit, &err), &err);
    assert_int_equal(delivered, 31);
}

/* One record delivered, and the broker answers the next EndTxn so. */
static void begin_with_an_end_that_is(rd_kafka_resp_err_t code)
{
    if (kafka.cluster == NULL)
        skip();
    begin_with(1);
    walk(1);
    rd_kafka_mock_push_request_errors(kafka.cluster, END_TXN, 1, code);
}

/* A broker that takes the end of a transaction for another one's. */
static void one_whose_state_the_broker_denies_is_over(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_with_an_end_that_is(RD_KAFKA_RESP_ERR_INVALID_TXN_STATE);
    assert_int_equal(insist(producer_txn_abort, &err), MR_ERR_STATE);
    assert_true(producer_txn_over(p));
}

static void one_that_is_refused_is_not_tried_anew(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_with_an_end_that_is(RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_int_equal(insist(producer_txn_commit, &err), MR_ERR_FATAL);
    assert_false(producer_txn_over(p));
    assert_non_null(strstr(err.text, "needs the ACLs Write and Describe on the transactional id"));
    assert_non_null(strstr(err.text, name));
}

static void an_end_that_was_sent_again_taints(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_with_an_end_that_is(RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
    must(insist(producer_txn_commit, &err), &err);
    assert_true(producer_txn_tainted(p));
    assert_int_equal(producer_txn_begin(p, &err), MR_ERR_STATE);
}

static void who_takes_the_id_over_ends_the_other(void **state)
{
    struct producer *first = p;
    struct mr_error err = {0};
    int rc;

    (void)state;
    begin_with(1);
    walk(1);
    p = open_producer(name);
    must(insist(producer_txn_init, &err), &err);
    producer_free(&p);
    p = first;
    if (kafka.cluster != NULL) /* it keeps no epochs */
        rd_kafka_mock_push_request_errors(kafka.cluster, END_TXN, 1,
                                          RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
    rc = insist(producer_txn_commit, &err);
    assert_int_equal(rc, MR_ERR_CLOSED);
    assert_non_null(strstr(err.text, "has taken over"));
    assert_true(producer_txn_over(p));
    assert_true(producer_txn_tainted(p));
}

static void a_slice_that_is_too_short_is_gone_on_with(void **state)
{
    struct mr_error err = {0};
    int rc;

    (void)state;
    if (kafka.cluster == NULL)
        skip();
    begin_with(1);
    walk(1);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 1000);
    rc = producer_txn_commit(p, 300, &err);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
    assert_int_equal(rc, MR_AGAIN);
    must(insist(producer_txn_commit, &err), &err);
    assert_false(producer_txn_tainted(p));
}

/* --- brokers that keep it waiting ------------------------------------------------------------- */

static int64_t cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* As a task does: woken by the descriptor alone. */
static void serve_for(int64_t ms)
{
    struct pollfd fd = {.fd = producer_fd(p), .events = POLLIN};
    int64_t until_ms = clock_ms() + ms;

    while (clock_ms() < until_ms) {
        poll(&fd, 1, (int)(until_ms - clock_ms()));
        producer_reports(p, 0, on_report, NULL);
    }
}

/* Ten records are delivered, ten wait for their answer, and ten wait behind these; for longer than
 * it takes until the producer rests. */
static void begin_a_stall(void)
{
    if (kafka.cluster == NULL)
        skip();
    begin_with(10);
    walk(10);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 4000);
    send_some(10);
    serve_for(200);
    send_some(10);
    serve_for(1300);
    assert_int_equal(delivered + failed, 10);
}

static void end_the_stall(void)
{
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
}

static void a_long_stall_costs_no_cpu_and_no_transaction(void **state)
{
    struct mr_error err = {0};
    int64_t used_ms;

    (void)state;
    begin_a_stall();
    used_ms = cpu_ms();
    serve_for(1000);
    used_ms = cpu_ms() - used_ms;
    end_the_stall();
    walk(30);
    must(insist(producer_txn_commit, &err), &err);
    assert_int_equal(delivered, 30);
    assert_false(producer_txn_tainted(p));
    begin_with(10);
    walk(40);
    must(insist(producer_txn_commit, &err), &err);
    assert_int_equal(delivered, 40);
    if (used_ms > 500)
        fail_msg("%lld ms of CPU in 1000 ms of waiting", (long long)used_ms);
}

static void a_transaction_that_rests_can_be_aborted(void **state)
{
    struct mr_error err = {0};

    (void)state;
    begin_a_stall();
    assert_int_equal(producer_txn_abort(p, 50, &err), MR_AGAIN);
    end_the_stall();
    must(insist(producer_txn_abort, &err), &err);
    walk(30);
    assert_true(producer_txn_tainted(p));
}

/* --- offsets of a consumer -------------------------------------------------------------------- */

static size_t assigned; /* partitions */

static void on_assigned(void *arg, const struct consumer_partition *parts, size_t count)
{
    (void)arg, (void)parts;
    assigned += count;
}

static void on_revoked(void *arg, const struct consumer_partition *parts, size_t count, bool lost)
{
    (void)arg, (void)parts, (void)count, (void)lost;
}

/* A member of the group that has its name, with the topic's partition. */
static struct consumer *join(void)
{
    static const struct consumer_events events = {.assigned = on_assigned, .revoked = on_revoked};
    const char *topics[] = {name, NULL};
    int64_t until_ms = clock_ms() + LIMIT_MS;
    struct consumer_msg msg;
    struct mr_error err = {0};
    struct consumer *c;
    struct props java;

    mock_kafka_props(&java, "bootstrap.servers", kafka.bootstrap, "group.id", name,
                     "heartbeat.interval.ms", "100", NULL);
    c = consumer_new(&java, &events, NULL, NULL, &err);
    if (c == NULL)
        fail_msg("%s", err.text);
    props_deinit(&java);
    assigned = 0;
    must(consumer_subscribe(c, topics, &err), &err);
    while (assigned == 0 && clock_ms() < until_ms) {
        must(consumer_poll(c, &msg, 1, 50, &err) < 0, &err);
        consumer_release(c);
    }
    assert_int_equal(assigned, 1);
    return c;
}

/* Thrown out of its group, it does not know yet that its partition went, and has no generation that
 * brokers could refuse. */
static void offsets_of_a_consumer_without_a_generation_go_into_no_transaction(void **state)
{
    int64_t until_ms = clock_ms() + LIMIT_MS;
    struct consumer_partition part = {name, 0, 1};
    struct mr_error err = {0};
    struct consumer *c;
    int rc;

    (void)state;
    if (kafka.cluster == NULL)
        skip();
    c = join();
    begin_with(1);
    walk(1);
    must(producer_txn_offsets(p, c, &part, 1, LIMIT_MS, &err), &err);
    rd_kafka_mock_push_request_errors(kafka.cluster, HEARTBEAT, 1,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    while ((rc = producer_txn_offsets(p, c, &part, 1, LIMIT_MS, &err)) == 0 &&
           clock_ms() < until_ms)
        producer_reports(p, 10, on_report, NULL);
    assert_int_equal(rc, MR_ERR_STATE);
    assert_string_equal(err.text, "this consumer is not in its group any more");
    must(insist(producer_txn_abort, &(struct mr_error){0}), &err);
    consumer_close(&c, clock_ms() + 1000);
}

static void offsets_of_a_partition_that_went_go_into_no_transaction(void **state)
{
    struct consumer_partition part = {name, 7, 1};
    struct mr_error err = {0};
    struct consumer *c = join();

    (void)state;
    begin_with(0);
    assert_int_equal(producer_txn_offsets(p, c, &part, 1, LIMIT_MS, &err), MR_ERR_STATE);
    assert_non_null(strstr(err.text, "-7 went to another member of the group"));
    must(insist(producer_txn_abort, &(struct mr_error){0}), &err);
    consumer_close(&c, clock_ms() + 1000);
}

static int open_kafka(void **state)
{
    (void)state;
    mock_kafka_start(&kafka, 1);
    return 0;
}

static int close_kafka(void **state)
{
    (void)state;
    mock_kafka_stop(&kafka);
    return 0;
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(transactions_follow_each_other),
        test(one_that_is_empty_leaves_no_taint),
        test(an_abort_reports_what_it_took_back),
        test(an_end_that_was_sent_again_taints),
        test(an_abort_of_what_was_delivered_is_gone_on_from),
        test(one_whose_state_the_broker_denies_is_over),
        test(one_that_is_refused_is_not_tried_anew),
        test(who_takes_the_id_over_ends_the_other),
        test(a_slice_that_is_too_short_is_gone_on_with),
        test(a_long_stall_costs_no_cpu_and_no_transaction),
        test(a_transaction_that_rests_can_be_aborted),
        test(offsets_of_a_consumer_without_a_generation_go_into_no_transaction),
        test(offsets_of_a_partition_that_went_go_into_no_transaction),
    };

    return cmocka_run_group_tests(tests, open_kafka, close_kafka);
}
