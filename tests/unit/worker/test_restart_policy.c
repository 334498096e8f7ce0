/* SPDX-License-Identifier: Apache-2.0 */
/* restart_policy: 0, 1, 5, 30, 30 s; then it gives up; old deaths are forgotten. */
#include "worker/supervisor/restart_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void delays_grow_and_end(void **state)
{
    struct restart_policy policy = {.max = 6};
    static const int64_t expected[] = {0, 1000, 5000, 30000, 30000, 30000, -1};

    (void)state;
    for (int i = 0; i < 7; i++)
        assert_int_equal(restart_policy_died(&policy, 1000 + i * 100), expected[i]);
    /* Having given up it begins anew: a restart by hand is a fresh start. */
    assert_int_equal(restart_policy_died(&policy, 2000), 0);
}

static void max_zero_gives_up_at_once(void **state)
{
    struct restart_policy policy = {.max = 0};

    (void)state;
    assert_int_equal(restart_policy_died(&policy, 1), -1);
    assert_int_equal(restart_policy_died(&policy, 2), -1);
}

static void deaths_leave_the_window_one_by_one(void **state)
{
    struct restart_policy policy = {.max = 2};

    (void)state;
    assert_int_equal(restart_policy_died(&policy, 0), 0);
    assert_int_equal(restart_policy_died(&policy, 300000), 1000);
    /* The first is ten minutes old: one counts. */
    assert_int_equal(restart_policy_died(&policy, RESTART_POLICY_WINDOW_MS), 1000);
    assert_int_equal(restart_policy_died(&policy, RESTART_POLICY_WINDOW_MS + 1), -1);
}

static void a_rare_crash_is_always_restarted_at_once(void **state)
{
    struct restart_policy policy = {.max = 1};

    (void)state;
    for (int64_t day = 0; day < 100; day++)
        assert_int_equal(restart_policy_died(&policy, day * 86400000), 0);
}

static void the_largest_max_fits(void **state)
{
    struct restart_policy policy = {.max = RESTART_POLICY_MAX};

    (void)state;
    for (int i = 0; i < RESTART_POLICY_MAX; i++)
        assert_true(restart_policy_died(&policy, i) >= 0);
    assert_int_equal(restart_policy_died(&policy, 1000), -1);
}

static void reset_forgets(void **state)
{
    struct restart_policy policy = {.max = 3};

    (void)state;
    restart_policy_died(&policy, 1);
    restart_policy_died(&policy, 2);
    restart_policy_reset(&policy);
    assert_int_equal(restart_policy_died(&policy, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_grow_and_end),
        cmocka_unit_test(max_zero_gives_up_at_once),
        cmocka_unit_test(deaths_leave_the_window_one_by_one),
        cmocka_unit_test(a_rare_crash_is_always_restarted_at_once),
        cmocka_unit_test(the_largest_max_fits),
        cmocka_unit_test(reset_forgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
