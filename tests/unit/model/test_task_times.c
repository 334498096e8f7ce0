/* SPDX-License-Identifier: Apache-2.0 */
/* The times of tasks: what is set counts, zero included, and what can't be is named. */
#include "model/task_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void what_is_not_set_has_its_default(void **state)
{
    struct props worker;
    struct task_times times;

    (void)state;
    props_init(&worker);
    assert_int_equal(task_times_read(&worker, &times, NULL), MR_OK);
    assert_int_equal(times.graceful_ms, 5000);
    assert_int_equal(times.flush_interval_ms, 60000);
    assert_int_equal(times.flush_timeout_ms, 5000);
    props_deinit(&worker);
}

static void what_is_set_counts_also_zero_and_the_largest(void **state)
{
    struct props worker;
    struct task_times times;

    (void)state;
    props_init(&worker);
    props_set(&worker, "task.shutdown.graceful.timeout.ms", "0");
    props_set(&worker, "offset.flush.timeout.ms", " 0 ");
    props_set(&worker, "offset.flush.interval.ms", "9223372036854775807");
    assert_int_equal(task_times_read(&worker, &times, NULL), MR_OK);
    assert_int_equal(times.graceful_ms, 0);
    assert_int_equal(times.flush_timeout_ms, 0);
    assert_true(times.flush_interval_ms > INT64_MAX / 8);
    assert_true(times.flush_interval_ms < INT64_MAX / 2);
    props_deinit(&worker);
}

static void what_can_not_be_is_named(void **state)
{
    static const char *const rows[][2] = {
        {"task.shutdown.graceful.timeout.ms", "-1"},
        {"task.shutdown.graceful.timeout.ms", "3e9"},
        {"offset.flush.interval.ms", "0"},
        {"offset.flush.interval.ms", ""},
        {"offset.flush.timeout.ms", "five"},
        {"offset.flush.timeout.ms", "9223372036854775808"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct props worker;
        struct task_times times = {.graceful_ms = 7};
        struct mr_error err = {0};

        props_init(&worker);
        props_set(&worker, rows[i][0], rows[i][1]);
        assert_int_equal(task_times_read(&worker, &times, &err), MR_ERR_CONFIG);
        assert_non_null(strstr(err.text, rows[i][0]));
        assert_int_equal(times.graceful_ms, 7);
        props_deinit(&worker);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_set_has_its_default),
        cmocka_unit_test(what_is_set_counts_also_zero_and_the_largest),
        cmocka_unit_test(what_can_not_be_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
