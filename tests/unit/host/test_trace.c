/* SPDX-License-Identifier: Apache-2.0 */
/* trace: how failures read in statuses and dead letters. */
#include "host/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void a_cause_is_no_part_of_the_message(void **state)
{
    struct mr_error plain = {0}, deep = {0};
    char out[200];

    (void)state;
    mr_fail(&plain, MR_ERR_RETRY, "away");
    assert_int_equal(trace_message_len(&plain), 4);
    mr_fail(&deep, MR_ERR_DATA, "bad: \nCaused by: x.Y: why");
    assert_int_equal(trace_message_len(&deep), 5);
    assert_string_equal(trace_write(out, sizeof(out), &deep, "put"),
                        "org.apache.kafka.connect.errors.DataException: bad: \nCaused by: x.Y: "
                        "why\n\tin put");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cause_is_no_part_of_the_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
