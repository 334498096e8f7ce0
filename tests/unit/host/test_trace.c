/* SPDX-License-Identifier: Apache-2.0 */
/* trace: how failures read in statuses and dead letters. */
#include "host/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void assert_parts(const char *text, const char *class_name, const char *message)
{
    struct mr_error err = {0};
    struct trace_parts parts;

    mr_fail(&err, MR_ERR_DATA, "%s", text);
    parts = trace_parts(&err);
    assert_int_equal(parts.class_len, strlen(class_name));
    assert_memory_equal(parts.class_name, class_name, parts.class_len);
    assert_int_equal(parts.message_len, strlen(message));
    assert_memory_equal(parts.message, message, parts.message_len);
}

#define DATA "org.apache.kafka.connect.errors.DataException"

static void a_cause_is_no_part_of_the_message(void **state)
{
    struct mr_error deep = {0};
    char out[200];

    (void)state;
    assert_parts("away", DATA, "away");
    assert_parts("bad: \nCaused by: x.Y: why", DATA, "bad: ");
    mr_fail(&deep, MR_ERR_DATA, "bad: \nCaused by: x.Y: why");
    assert_string_equal(trace_write(out, sizeof(out), &deep, "put"),
                        DATA ": bad: \nCaused by: x.Y: why\n\tin put");
}

static void a_text_may_begin_with_the_class_that_it_stands_for(void **state)
{
    struct mr_error err = {0};
    char out[200];

    (void)state;
    assert_parts("java.lang.IllegalArgumentException: Unknown field: a\nCaused by: x: y",
                 "java.lang.IllegalArgumentException", "Unknown field: a");
    assert_parts("org.apache.kafka.connect.errors.SchemaBuilderException: no: ",
                 "org.apache.kafka.connect.errors.SchemaBuilderException", "no: ");
    assert_parts("java.lang", DATA, "java.lang");
    assert_parts("java.lang.X:y", DATA, "java.lang.X:y");
    assert_parts("java.util is a package: really", DATA, "java.util is a package: really");
    assert_parts("javax.X: y", DATA, "javax.X: y");
    mr_fail(&err, MR_ERR_DATA, "java.lang.X: y");
    assert_string_equal(trace_write(out, sizeof(out), &err, NULL), "java.lang.X: y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cause_is_no_part_of_the_message),
        cmocka_unit_test(a_text_may_begin_with_the_class_that_it_stands_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
