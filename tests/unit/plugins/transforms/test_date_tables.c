/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/oracle.h"
#include "support/unit/plugin_host.h"
#include "transforms/date_format.h"

#include <string.h>

#define NOW INT64_C(1795900000000) /* November 2026, when the tables were recorded */

static bool row_format(const json_t *row, struct date_format *format, struct mr_error *err)
{
    const json_t *input = json_object_get(row, "input");

    return date_format_parse(format, json_string_value(json_object_get(input, "pattern")), NOW,
                             err) == 0;
}

static bool format_row(const json_t *row, void *arg)
{
    struct plugin_host *h = arg;
    int64_t ms = json_integer_value(json_object_get(json_object_get(row, "input"), "ms"));
    const char *wanted = json_string_value(json_object_get(row, "output")), *text;
    struct mr_error err = {0};
    struct date_format format;
    size_t len;

    if (!row_format(row, &format, &err))
        return wanted == NULL ? oracle_error(row, &err) : oracle_wrong("refused: %s", err.text);
    text = date_format_text(&format, plugin_host_arena(h), ms, &len);
    date_format_free(&format);
    if (wanted == NULL)
        return oracle_wrong("no error");
    return (len == strlen(wanted) && memcmp(text, wanted, len) == 0) ||
           oracle_wrong("%s where Java has %s", text, wanted);
}

static bool parse_row(const json_t *row, void *arg)
{
    const json_t *input = json_object_get(row, "input"), *wanted = json_object_get(row, "output");
    const char *text = json_string_value(json_object_get(input, "text"));
    struct mr_error err = {0};
    struct date_format format;
    int64_t ms = 0;
    bool read;

    (void)arg;
    if (!row_format(row, &format, &err))
        return wanted == NULL ? oracle_error(row, &err) : oracle_wrong("refused: %s", err.text);
    read = date_format_read(&format, text, strlen(text), &ms);
    date_format_free(&format);
    if (wanted == NULL || !read)
        return (wanted == NULL && !read) || oracle_wrong(read ? "no error" : "does not match");
    return ms == json_integer_value(wanted) ||
           oracle_wrong("%lld where Java has %lld", (long long)ms,
                        (long long)json_integer_value(wanted));
}

static void dates_are_written_as_java_writes_them(void **state)
{
    struct plugin_host h = {0};

    (void)state;
    plugin_host_bare(&h);
    assert_int_equal(oracle_run("date-format.jsonl", NULL, format_row, &h), 0);
    plugin_host_close(&h);
}

static void dates_are_read_as_java_reads_them(void **state)
{
    (void)state;
    assert_int_equal(oracle_run("date-parse.jsonl", NULL, parse_row, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_written_as_java_writes_them),
        cmocka_unit_test(dates_are_read_as_java_reads_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
