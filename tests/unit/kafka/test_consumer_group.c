/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers of one group against librdkafka's mock cluster (or a real Kafka: KAFKA_BOOTSTRAP): what
 * one gives up another goes on with, nothing is jumped over, and a member inside a long put keeps
 * its place. */
#include "consumer_ledger.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"
#include "support/unit/side_by_side.h"

#include <stdlib.h>
#include <time.h>

static struct mock_kafka kafka;

/* Members come and go; the owners commit when asked to give up, so every message is seen exactly
 * once by somebody. */
static void rebalance_hands_over(const char *strategy)
{
    struct ledger_truth truth = {0};
    struct ledger a = {.kafka = &kafka, .truth = &truth, .commit_on_revoke = true};
    struct ledger b = {.kafka = &kafka, .truth = &truth, .commit_on_revoke = true};
    struct mr_error err = {0};
    struct consumer_partition mine[PARTITIONS];
    int64_t until = clock_ms() + 180000;
    size_t left_at = 0;
    char topic[64];

    ledger_seed();
    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, 3000);
    ledger_open(&a, topic, "partition.assignment.strategy", strategy, NULL);
    ledger_subscribe(&a, topic);
    while (a.seen + b.seen - a.twice - b.twice < 3000 * PARTITIONS && clock_ms() < until) {
        bool joining = b.c != NULL && b.assigned == 0; /* leave something to do */

        ledger_poll(&a, joining ? 1 : 1 + (size_t)random() % 20, joining ? 10 : 2);
        if (a.seen > 500 && b.c == NULL && left_at == 0) {
            ledger_open(&b, topic, "partition.assignment.strategy", strategy, NULL);
            ledger_subscribe(&b, topic);
        }
        if (b.c != NULL)
            ledger_poll(&b, 1 + (size_t)random() % 20, 2);
        if (b.c != NULL && random() % 10 == 0 && ledger_positions(&b, topic, mine) > 0)
            consumer_commit(b.c, mine, ledger_positions(&b, topic, mine), false, 0, &err);
        if (b.c != NULL && b.seen > 2000) {
            left_at = a.seen;
            consumer_close(&b.c, INT64_MAX);
        }
    }
    assert_int_equal(a.seen + b.seen - a.twice - b.twice, 3000 * PARTITIONS);
    assert_true(left_at > 0 && a.seen > left_at); /* both had their share, and a went on with b's */
    if (kafka.cluster == NULL)
        assert_int_equal(a.twice + b.twice, 0);
    assert_int_equal(a.lost + b.lost, 0);
    assert_int_equal(a.moved + b.moved, 0);
    consumer_close(&a.c, INT64_MAX);
    assert_null(b.c);
}

static void eager_rebalances_hand_over(void **state)
{
    rebalance_hands_over("RangeAssignor");
}

static void cooperative_rebalances_hand_over(void **state)
{
    rebalance_hands_over("CooperativeStickyAssignor");
}

/* What a sink task may do between two polls. */
static void do_something(struct ledger *l, const char *topic)
{
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    int p = (int)(random() % PARTITIONS);
    long what = random() % 32;

    if (what < 4) {
        assert_int_equal(consumer_pause(l->c, &err), 0);
        for (long i = random() % 3; i > 0; i--)
            assert_int_equal(ledger_poll(l, BATCH, random() % 5), 0);
        assert_int_equal(consumer_resume(l->c, mine, ledger_positions(l, topic, mine), &err), 0);
    } else if (what < 6 && l->mine[p] && l->next[p] > 0) {
        ledger_seek_back(l, topic, p,
                         l->next[p] - random() % (l->next[p] < 100 ? l->next[p] : 100));
    } else if (what < 8) {
        ledger_commit(l, topic);
    }
}

static bool all_seen(const struct ledger_truth *truth, int64_t count)
{
    for (int p = 0; p < PARTITIONS; p++)
        if (truth->next[p] < count || truth->high[p] < count)
            return false;
    return true;
}

/* Pauses, seeks, commits, members that come and go, in any order: each record once between two
 * seeks, none left out. */
static void random_life_loses_and_doubles_nothing(const char *strategy)
{
    enum { EACH = 5000, JOINS = 2 };
    struct ledger_truth truth = {0};
    struct ledger a = {
        .kafka = &kafka, .truth = &truth, .commit_on_revoke = true, .rolls_back = true};
    struct ledger b = a;
    int64_t until = clock_ms() + 180000;
    int joins = 0;
    char topic[64];

    ledger_seed();
    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, EACH);
    ledger_open(&a, topic, "partition.assignment.strategy", strategy, NULL);
    ledger_subscribe(&a, topic);
    while ((joins < JOINS || b.c != NULL) && clock_ms() < until) {
        ledger_poll(&a, 1 + (size_t)random() % 40, random() % 5);
        do_something(&a, topic);
        if (b.c == NULL && joins < JOINS && a.assigned > 0 && random() % 100 == 0) {
            b.assigned = 0;
            joins++;
            ledger_open(&b, topic, "partition.assignment.strategy", strategy, NULL);
            ledger_subscribe(&b, topic);
        }
        if (b.c != NULL) {
            ledger_poll(&b, 1 + (size_t)random() % 40, random() % 5);
            do_something(&b, topic);
        }
        if (b.c != NULL && b.assigned > 0 && random() % 200 == 0)
            consumer_close(&b.c, INT64_MAX);
    }
    while (!all_seen(&truth, EACH) && clock_ms() < until)
        ledger_poll(&a, BATCH, 10);
    print_message("%zu and %zu seen, %zu and %zu revocations\n", a.seen, b.seen, a.revoked,
                  b.revoked);
    assert_true(all_seen(&truth, EACH));
    assert_true(joins == JOINS && a.revoked > 0 && b.seen > 0);
    assert_int_equal(a.twice + b.twice, 0);
    assert_int_equal(a.moved + b.moved, 0);
    consumer_close(&a.c, INT64_MAX);
    assert_null(b.c);
}

static void random_life_loses_and_doubles_nothing_eagerly(void **state)
{
    random_life_loses_and_doubles_nothing("RangeAssignor");
}

static void random_life_loses_and_doubles_nothing_cooperatively(void **state)
{
    random_life_loses_and_doubles_nothing("CooperativeStickyAssignor");
}

/* What comes into the middle of a batch: librdkafka calls in_the_middle for each message that it
 * gathers. Interceptors can be set only while a client is made, so the linker has rd_kafka_new pass
 * through here (--wrap, see the Makefile). */
struct middle {
    struct ledger *l;
    int after; /* messages */
    bool cooperative;
};

static struct middle *middle; /* of the test that runs; NULL: none */

static rd_kafka_resp_err_t in_the_middle(rd_kafka_t *rk, rd_kafka_message_t *msg, void *arg)
{
    struct middle *m = middle;
    rd_kafka_topic_partition_list_t *all;

    if (m == NULL || m->after-- != 0)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    all = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(all, rd_kafka_topic_name(msg->rkt), msg->partition);
    if (m->cooperative) { /* the library pauses what stays: 2.0.2 then loses what it has gathered */
        rd_kafka_pause_partitions(rk, all);
        rd_kafka_resume_partitions(rk, all);
        rd_kafka_topic_partition_list_del_by_idx(all, 0);
    }
    consumer_group_on_rebalance(rk,
                                m->cooperative ? RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
                                               : RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS,
                                all, m->l->c);
    rd_kafka_topic_partition_list_destroy(all);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *arg, char *why,
                                  size_t size)
{
    return rd_kafka_interceptor_add_on_consume(rk, "middle", in_the_middle, NULL);
}

rd_kafka_t *__real_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why,
                                size_t size);
rd_kafka_t *__wrap_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why,
                                size_t size);

rd_kafka_t *__wrap_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t size)
{
    if (type == RD_KAFKA_CONSUMER)
        rd_kafka_conf_interceptor_add_on_new(conf, "middle", on_new, NULL);
    return __real_rd_kafka_new(type, conf, why, size);
}

static void open_with_a_full_queue(struct middle *m, char *topic, size_t size, const char *strategy)
{
    struct ledger *l = m->l;
    int64_t until = clock_ms() + 20000;

    mock_kafka_topic(&kafka, topic, size, 1);
    ledger_fill(&kafka, topic, 1, 1000);
    ledger_open(l, topic, "partition.assignment.strategy", strategy, NULL);
    ledger_subscribe(l, topic);
    while (l->seen == 0 && clock_ms() < until)
        ledger_poll(l, 1, 100);
    while (rd_kafka_queue_length(l->c->queue) < 500 && clock_ms() < until)
        ;
    middle = m;
}

static void a_batch_that_a_revocation_came_into_is_thrown_away(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct middle m = {.l = &l, .after = 100};
    char topic[64];

    open_with_a_full_queue(&m, topic, sizeof(topic), "RangeAssignor");
    assert_int_equal(ledger_poll(&l, BATCH, 50), 0);
    assert_true(m.after < 0);
    assert_int_equal(l.revoked, 1);
    assert_int_equal(l.seen, 1);
    middle = NULL;
    consumer_close(&l.c, INT64_MAX);
}

static void what_stays_is_read_on_from_the_owners_position(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct middle m = {.l = &l, .after = 100, .cooperative = true};
    char topic[64];

    open_with_a_full_queue(&m, topic, sizeof(topic), "CooperativeStickyAssignor");
    ledger_poll_until(&l, 1000, 60000);
    assert_true(m.after < 0);
    assert_int_equal(l.twice, 0);
    assert_int_equal(l.revoked, 0);
    middle = NULL;
    consumer_close(&l.c, INT64_MAX);
}

/* The owner is in a long put, far beyond max.poll.interval.ms; another thread (here: none) keeps
 * the place in the group. */
static void a_lent_consumer_keeps_its_place(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger l = {.kafka = &kafka, .truth = &truth};
    struct consumer_partition mine[PARTITIONS];
    struct mr_error err = {0};
    int64_t until;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), 2);
    ledger_fill(&kafka, topic, 2, 1000);
    ledger_open(&l, topic, "session.timeout.ms", "4000", "max.poll.interval.ms", "4000", NULL);
    ledger_subscribe(&l, topic);
    for (until = clock_ms() + 20000; l.seen < 600 && clock_ms() < until;)
        ledger_poll(&l, 100, 100);
    assert_int_equal(consumer_lend(l.c, &err), 0);
    for (until = clock_ms() + 7000; clock_ms() < until;) {
        struct timespec pause = {0, 50 * 1000 * 1000};

        consumer_keep_alive(l.c);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(consumer_take_back(l.c, mine, ledger_positions(&l, topic, mine), &err), 0);
    ledger_poll_until(&l, 2000, 60000);
    assert_int_equal(l.assigned, 1);
    assert_int_equal(l.revoked, 0);
    assert_int_equal(l.twice, 0);
    assert_int_equal(l.moved, 0);
    consumer_close(&l.c, INT64_MAX);
}

/* Another member joins during the long put. The bound is 80 % of max.poll.interval.ms; then the
 * partitions are lost, and the new ones that come meanwhile are kept for the owner. */
static void a_revocation_waits_for_a_lent_consumer_and_then_takes(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger a = {.kafka = &kafka, .truth = &truth};
    struct ledger b = {.kafka = &kafka, .truth = &truth};
    struct mr_error err = {0};
    struct consumer_partition mine[PARTITIONS];
    int64_t from;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, 200);
    ledger_open(&a, topic, "session.timeout.ms", "6000", "max.poll.interval.ms", "6000", NULL);
    ledger_subscribe(&a, topic);
    ledger_poll_until(&a, 200 * PARTITIONS, 60000);
    assert_int_equal(
        consumer_commit(a.c, mine, ledger_positions(&a, topic, mine), true, 5000, &err), 0);
    assert_int_equal(consumer_lend(a.c, &err), 0);
    ledger_open(&b, topic, "session.timeout.ms", "6000", "max.poll.interval.ms", "6000", NULL);
    ledger_subscribe(&b, topic);
    for (from = clock_ms(); b.assigned == 0 && clock_ms() - from < 25000;) {
        consumer_keep_alive(a.c);
        ledger_poll(&b, BATCH, 20);
    }
    assert_true(clock_ms() - from >= 4000); /* it did wait */
    assert_int_equal(b.assigned, 1);
    assert_int_equal(ledger_positions(&b, topic, mine), PARTITIONS / 2);
    assert_int_equal(a.revoked, 0); /* hears of it when it is back */
    for (from = clock_ms(); clock_ms() - from < 300;)
        consumer_keep_alive(a.c);
    assert_int_equal(consumer_take_back(a.c, mine, 0, &err), 0);
    ledger_fill(&kafka, topic, PARTITIONS, 200);
    truth = (struct ledger_truth){0};
    for (from = clock_ms(); a.seen + b.seen < 400 * PARTITIONS && clock_ms() - from < 20000;) {
        ledger_poll(&a, BATCH, 20);
        ledger_poll(&b, BATCH, 20);
    }
    assert_int_equal(a.lost, 1);
    assert_int_equal(a.assigned, 2);
    assert_int_equal(a.seen + b.seen, 400 * PARTITIONS);
    assert_int_equal(a.twice + b.twice, 0);
    consumer_close(&a.c, INT64_MAX);
    consumer_close(&b.c, INT64_MAX);
}

/* A plugin that is slow, or a connector that is paused, loses partitions to another member, and has
 * them back when it is at work again. */
static void delivers_what_went_while_paused(const char *strategy)
{
    struct ledger_truth truth = {0};
    struct ledger a = {.kafka = &kafka, .truth = &truth};
    struct ledger b = {.kafka = &kafka, .truth = &truth};
    struct mr_error err = {0};
    struct consumer_partition mine[PARTITIONS];
    int64_t until = clock_ms() + 60000;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, 10);
    ledger_open(&a, topic, "partition.assignment.strategy", strategy, NULL);
    ledger_subscribe(&a, topic);
    ledger_poll_until(&a, 10 * PARTITIONS, 60000);
    assert_int_equal(
        consumer_commit(a.c, mine, ledger_positions(&a, topic, mine), true, 5000, &err), 0);
    assert_int_equal(consumer_pause(a.c, &err), 0);
    ledger_open(&b, topic, "partition.assignment.strategy", strategy, NULL);
    ledger_subscribe(&b, topic);
    while (b.assigned == 0 && clock_ms() < until) {
        ledger_poll(&a, BATCH, 20);
        ledger_poll(&b, BATCH, 20);
    }
    assert_int_equal(consumer_resume(a.c, mine, ledger_positions(&a, topic, mine), &err), 0);
    consumer_close(&b.c, INT64_MAX);
    while (ledger_positions(&a, topic, mine) < PARTITIONS && clock_ms() < until)
        ledger_poll(&a, BATCH, 20);
    ledger_fill(&kafka, topic, PARTITIONS, 10);
    truth = (struct ledger_truth){0};
    ledger_poll_until(&a, 20 * PARTITIONS, 60000);
    assert_int_equal(a.lost, 0);
    consumer_close(&a.c, INT64_MAX);
}

static void what_went_while_paused_delivers_when_it_is_back(void **state)
{
    delivers_what_went_while_paused("RangeAssignor");
}

static void what_went_while_paused_delivers_cooperatively(void **state)
{
    delivers_what_went_while_paused("CooperativeStickyAssignor");
}

/* The revocation came while nobody looked, and the group's patience began then: it is found when
 * the consumer is lent, at a third of max.poll.interval.ms, and may wait for what is left of 80
 * %. */
static void a_revocation_counts_from_the_last_poll(void **state)
{
    struct ledger_truth truth = {0};
    struct ledger a = {.kafka = &kafka, .truth = &truth};
    struct ledger b = {.kafka = &kafka, .truth = &truth};
    struct mr_error err = {0};
    struct consumer_partition mine[PARTITIONS];
    int64_t from;
    char topic[64];

    mock_kafka_topic(&kafka, topic, sizeof(topic), PARTITIONS);
    ledger_fill(&kafka, topic, PARTITIONS, 10);
    ledger_open(&a, topic, "session.timeout.ms", "6000", "max.poll.interval.ms", "6000", NULL);
    ledger_subscribe(&a, topic);
    ledger_poll_until(&a, 10 * PARTITIONS, 60000);
    ledger_open(&b, topic, "session.timeout.ms", "6000", "max.poll.interval.ms", "6000", NULL);
    ledger_subscribe(&b, topic);
    for (from = clock_ms(); clock_ms() - from < 2000;)
        ledger_poll(&b, BATCH, 20);
    assert_int_equal(consumer_lend(a.c, &err), 0);
    while (a.c->parts.count > 0 && clock_ms() - from < 20000) {
        consumer_keep_alive(a.c);
        ledger_poll(&b, BATCH, 20);
    }
    assert_in_range(clock_ms() - from, 4500, 5800);
    assert_int_equal(consumer_take_back(a.c, mine, 0, &err), 0);
    consumer_close(&a.c, INT64_MAX);
    consumer_close(&b.c, INT64_MAX);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cooperative_rebalances_hand_over), /* the longest begins first */
        cmocka_unit_test(eager_rebalances_hand_over),
        cmocka_unit_test(random_life_loses_and_doubles_nothing_cooperatively),
        cmocka_unit_test(random_life_loses_and_doubles_nothing_eagerly),
        cmocka_unit_test(a_batch_that_a_revocation_came_into_is_thrown_away),
        cmocka_unit_test(what_stays_is_read_on_from_the_owners_position),
        cmocka_unit_test(a_lent_consumer_keeps_its_place),
        cmocka_unit_test(a_revocation_waits_for_a_lent_consumer_and_then_takes),
        cmocka_unit_test(a_revocation_counts_from_the_last_poll),
        cmocka_unit_test(what_went_while_paused_delivers_when_it_is_back),
        cmocka_unit_test(what_went_while_paused_delivers_cooperatively),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            start, stop);
}
