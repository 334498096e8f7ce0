/* SPDX-License-Identifier: Apache-2.0 */
/* trace: how failures read in statuses and dead letters. */
#include "host/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* cause: NULL: none is told */
static void assert_parts(const char *text, const char *cause, const char *class_name,
                         const char *message)
{
    struct mr_error err = {0};
    struct trace_parts parts;

    mr_fail(&err, MR_ERR_DATA, "%s", text);
    if (cause != NULL)
        mr_caused_by(&err, MR_ERR_DATA, "%s", cause);
    parts = trace_parts(&err);
    assert_int_equal(parts.class_len, strlen(class_name));
    assert_memory_equal(parts.class_name, class_name, parts.class_len);
    assert_int_equal(parts.message_len, strlen(message));
    assert_memory_equal(parts.message, message, parts.message_len);
}

#define DATA "org.apache.kafka.connect.errors.DataException"
#define LIKE_ONE "bad: x\nCaused by: a.B: c"

static void a_cause_is_no_part_of_the_message(void **state)
{
    struct mr_error deep = {0};
    char out[200];

    (void)state;
    assert_parts("away", NULL, DATA, "away");
    assert_parts("bad: ", "x.Y: why", DATA, "bad: ");
    assert_parts(LIKE_ONE, NULL, DATA, LIKE_ONE);
    assert_parts(LIKE_ONE, "x.Y: why", DATA, LIKE_ONE);
    mr_caused_by(&deep, mr_fail(&deep, MR_ERR_DATA, "bad: "), "x.Y: why");
    mr_caused_by(&deep, MR_ERR_DATA, "of another");
    assert_string_equal(trace_write(out, sizeof(out), &deep, "put"),
                        DATA ": bad: \nCaused by: x.Y: why\n\tin put");
}

static void words_in_front_leave_the_cause_where_it_is(void **state)
{
    struct mr_error err = {0};
    struct trace_parts parts;

    (void)state;
    mr_caused_by(&err, mr_fail(&err, MR_ERR_DATA, "bad"), "x.Y: why");
    err_prefix(&err, "%s", "in front");
    parts = trace_parts(&err);
    assert_string_equal(parts.message, "in front: bad\nCaused by: x.Y: why");
    assert_int_equal(parts.message_len, strlen("in front: bad"));
}

/* It is not told where a plugin was built when there was no place for it. */
static void where_a_message_ends_is_believed_if_it_can_be(void **state)
{
    static const struct {
        const char *text;
        uint32_t told;
        size_t len;
    } rows[] = {
        {"bad\nCaused by: x.Y: why", 0, 3},
        {"bad\nCaused by: x.Y: why", 24, 3},
        {"bad\nCaused by: x.Y: why", UINT32_MAX, 3},
        {"bad", 4, 3},
        {"bad", 2, 2},
        {"java.lang.X: bad", 7, 3},
        {"java.lang.X: bad", 13, 0},
        {"", 0, 0},
        {"", 9, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mr_error err = {.code = MR_ERR_DATA};

        snprintf(err.text, sizeof(err.text), "%s", rows[i].text);
        err.message_len = rows[i].told;
        assert_int_equal(trace_parts(&err).message_len, rows[i].len);
    }
}

static void a_text_may_begin_with_the_class_that_it_stands_for(void **state)
{
    struct mr_error err = {0};
    char out[200];

    (void)state;
    assert_parts("java.lang.IllegalArgumentException: Unknown field: a", "x: y",
                 "java.lang.IllegalArgumentException", "Unknown field: a");
    assert_parts("org.apache.kafka.connect.errors.SchemaBuilderException: no: ", NULL,
                 "org.apache.kafka.connect.errors.SchemaBuilderException", "no: ");
    assert_parts("java.lang", NULL, DATA, "java.lang");
    assert_parts("java.lang.X:y", NULL, DATA, "java.lang.X:y");
    assert_parts("java.util is a package: really", NULL, DATA, "java.util is a package: really");
    assert_parts("javax.X: y", NULL, DATA, "javax.X: y");
    mr_fail(&err, MR_ERR_DATA, "java.lang.X: y");
    assert_string_equal(trace_write(out, sizeof(out), &err, NULL), "java.lang.X: y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cause_is_no_part_of_the_message),
        cmocka_unit_test(words_in_front_leave_the_cause_where_it_is),
        cmocka_unit_test(where_a_message_ends_is_believed_if_it_can_be),
        cmocka_unit_test(a_text_may_begin_with_the_class_that_it_stands_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
