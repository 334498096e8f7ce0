/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of exactly-once tests, tried by themselves: what the proxy does to the transactions of
 * a producer that is nobody's, on librdkafka's mock brokers, and what the oracle sees. */
#include "chaos/chaos.h"
#include "chaos/chaos_naive.h"
#include "chaos/chaos_numbers.h"
#include "chaos/chaos_proxy.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>

#define BEFORE 3 /* transactions, before what happens and behind it */

/* --- the proxy -------------------------------------------------------------------------------- */

struct mock {
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *cluster;
};

static void end_mock(void *arg)
{
    struct mock *mock = arg;

    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->rk);
}

static const char *start_mock(void)
{
    struct mock *mock = scratch_keep(calloc(1, sizeof(*mock)));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];

    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    mock->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(mock->rk);
    mock->cluster = rd_kafka_mock_cluster_new(mock->rk, 3);
    assert_non_null(mock->cluster);
    scratch_at_end(end_mock, mock);
    rd_kafka_mock_topic_create(mock->cluster, "t", 1, 1);
    return rd_kafka_mock_cluster_bootstraps(mock->cluster);
}

struct plan {
    struct chaos_proxy *proxy;
    enum chaos_mishap what;
    int looks;
    int left; /* once it has happened */
};

/* Looked at before each transaction. */
static bool is_over(void *arg)
{
    struct plan *plan = arg;
    struct chaos_proxy_counts counts = chaos_proxy_counts(plan->proxy);
    bool happened = plan->what == CHAOS_MISHAPS ? counts.resets > 0
                    : plan->what == CHAOS_LATE  ? counts.overtaken > 0
                                                : counts.met[plan->what] > 0;

    if (++plan->looks == BEFORE && plan->what == CHAOS_MISHAPS)
        chaos_proxy_reset(plan->proxy);
    else if (plan->looks == BEFORE)
        chaos_proxy_mishap(plan->proxy, plan->what, CHAOS_END_TXN);
    return happened && plan->left-- == 0;
}

static struct chaos_proxy_counts run(enum chaos_mishap what)
{
    const char *servers = start_mock();
    struct plan plan = {chaos_proxy_new(servers, "mine"), what, 0, BEFORE};

    if (what == CHAOS_MISHAPS)
        chaos_proxy_slow(plan.proxy, 20, 20);
    assert_true(chaos_naive_run(plan.proxy, servers, "mine-1", "t", is_over, &plan) >= 2 * BEFORE);
    return chaos_proxy_counts(plan.proxy);
}

static void a_lost_end_is_sent_again(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_LOST);

    (void)state;
    assert_int_equal(counts.met[CHAOS_LOST], 1);
    assert_true(counts.ends > 2 * BEFORE);
}

static void an_unanswered_end_is_sent_again(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_UNANSWERED);

    (void)state;
    assert_int_equal(counts.met[CHAOS_UNANSWERED], 1);
    assert_true(counts.ends > 2 * BEFORE);
}

/* All commits are well for librdkafka, and one transaction was ended by the end of another. */
static void a_late_end_tears_a_later_transaction(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_LATE);

    (void)state;
    assert_int_equal(counts.met[CHAOS_LATE], 1);
    assert_int_equal(counts.overtaken, 1);
    assert_int_equal(counts.torn, 1);
}

static void connections_of_a_slow_wire_end_and_begin_anew(void **state)
{
    struct chaos_proxy_counts counts = run(CHAOS_MISHAPS);

    (void)state;
    assert_true(counts.resets > 0);
    assert_int_equal(counts.torn, 0);
}

static bool is_third(void *looks)
{
    return ++*(int *)looks > BEFORE;
}

static void what_is_not_ours_meets_nothing(void **state)
{
    const char *servers = start_mock();
    struct chaos_proxy *proxy = chaos_proxy_new(servers, "another");
    int looks = 0;

    (void)state;
    chaos_proxy_mishap(proxy, CHAOS_LOST, CHAOS_END_TXN);
    assert_int_equal(chaos_naive_run(proxy, servers, "mine-1", "t", is_third, &looks), BEFORE);
    assert_int_equal(chaos_proxy_counts(proxy).met[CHAOS_LOST], 0);
    assert_int_equal(chaos_proxy_counts(proxy).ends, 0);
}

/* --- the oracle ------------------------------------------------------------------------------- */

static struct chaos_numbers numbers(const int64_t *all, size_t count)
{
    struct chaos_numbers n = {.of = "numbers"};

    for (size_t i = 0; i < count; i++)
        chaos_numbers_take(&n, all[i]);
    return n;
}

static void numbers_in_order_are_right(void **state)
{
    struct chaos_numbers n = {.of = "many"};

    (void)state;
    for (int64_t i = 0; i < 200000; i++)
        chaos_numbers_take(&n, i);
    assert_int_equal(n.next, 200000);
    assert_true(chaos_numbers_right(&n));
}

static void what_is_lost_twice_or_late_is_seen(void **state)
{
    static const int64_t lost[] = {0, 1, 3}, twice[] = {0, 1, 1, 2}, late[] = {0, 2, 1, 3};
    struct chaos_numbers n = numbers(lost, 3);

    (void)state;
    assert_int_equal(n.next - n.count, 1);
    assert_false(chaos_numbers_right(&n));
    n = numbers(twice, 4);
    assert_int_equal(n.twice, 1);
    assert_false(chaos_numbers_right(&n));
    n = numbers(late, 4);
    assert_int_equal(n.late, 1);
    assert_int_equal(n.next - n.count, 0);
    assert_false(chaos_numbers_right(&n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_lost_end_is_sent_again),
        scratch_test(an_unanswered_end_is_sent_again),
        scratch_test(a_late_end_tears_a_later_transaction),
        scratch_test(connections_of_a_slow_wire_end_and_begin_anew),
        scratch_test(what_is_not_ours_meets_nothing),
        scratch_test(numbers_in_order_are_right),
        scratch_test(what_is_lost_twice_or_late_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
