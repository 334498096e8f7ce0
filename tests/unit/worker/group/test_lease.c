/* SPDX-License-Identifier: Apache-2.0 */
/* lease: until when, from what was answered. */
#include "worker/group/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct lease fresh(void)
{
    return (struct lease){.session_ms = 10000, .graceful_ms = 5000, .rebalance_ms = 60000};
}

static void assert_times(const struct lease *lease, int64_t soft_ms, int64_t hard_ms)
{
    assert_int_equal(lease_times(lease).soft_ms, soft_ms);
    assert_int_equal(lease_times(lease).hard_ms, hard_ms);
}

static void it_counts_from_when_the_answered_request_was_sent(void **state)
{
    struct lease lease = fresh();

    (void)state;
    assert_times(&lease, 0, 0);
    lease_renew(&lease, 100000);
    assert_times(&lease, 110000 - 3333, 110000); /* a third of the session is less than graceful */
    lease_renew(&lease, 99000);                  /* a parked one, answered late */
    assert_times(&lease, 110000 - 3333, 110000);
    lease.graceful_ms = 1000;
    assert_times(&lease, 109000, 110000);
}

static void a_round_that_we_have_not_joined_caps_it(void **state)
{
    struct lease lease = fresh();

    (void)state;
    lease_rebalancing(&lease, 100000, false);
    assert_times(&lease, 110000 - 3333, 110000);
    for (int64_t sent = 103000; sent < 170000; sent += 3000)
        lease_rebalancing(&lease, sent, false);
    assert_times(&lease, 160000 - 3333, 160000); /* the first 27 counts */
    lease_joined(&lease);
    lease_renew(&lease, 155000);
    assert_times(&lease, 179000 - 3333, 179000);
}

static void a_parked_join_renews_without_a_cap(void **state)
{
    struct lease lease = fresh();

    (void)state;
    lease_renew(&lease, 100000);
    for (int64_t sent = 103000; sent <= 199000; sent += 3000)
        lease_rebalancing(&lease, sent, true);
    assert_times(&lease, 209000 - 3333, 209000);
}

static void it_lapses_at_its_hard_time(void **state)
{
    struct lease lease = fresh();

    (void)state;
    assert_false(lease_lapsed(&lease, 1)); /* there was none */
    lease_renew(&lease, 100000);
    assert_false(lease_lapsed(&lease, 109999));
    assert_true(lease_lapsed(&lease, 110000));
}

static void its_end_is_at_once_and_never_later_than_it_was(void **state)
{
    struct lease lease = fresh();
    struct lease_times times;

    (void)state;
    assert_int_equal(lease_ended(&lease, 5).hard_ms, 0);
    lease_renew(&lease, 100000);
    times = lease_ended(&lease, 101000);
    assert_int_equal(times.soft_ms, 101000);
    assert_int_equal(times.hard_ms, 104333);
    times = lease_ended(&lease, 120000); /* after a long freeze */
    assert_int_equal(times.soft_ms, 106667);
    assert_int_equal(times.hard_ms, 110000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_from_when_the_answered_request_was_sent),
        cmocka_unit_test(a_round_that_we_have_not_joined_caps_it),
        cmocka_unit_test(a_parked_join_renews_without_a_cap),
        cmocka_unit_test(it_lapses_at_its_hard_time),
        cmocka_unit_test(its_end_is_at_once_and_never_later_than_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
