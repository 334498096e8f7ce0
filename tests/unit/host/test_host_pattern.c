/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as plugins have them, against what java.util.regex did with the same ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/host_api.h"
#include "support/unit/oracle.h"

#include <millrace/pattern.h>
#include <string.h>

/* Java counts in UTF-16. */
static long long units(const char *text, size_t bytes)
{
    long long n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80 ? ((unsigned char)text[i] >= 0xf0 ? 2 : 1) : 0;
    return n;
}

static bool found_as(struct mr_pattern *pattern, const char *text, const json_t *output)
{
    const json_t *find = json_object_get(output, "find");
    struct mr_span span = {0};
    int whole = mr_pattern_find(pattern, text, strlen(text), 0, true, NULL, 0, NULL);
    int found = mr_pattern_find(pattern, text, strlen(text), 0, false, &span, 1, NULL);

    if (whole != json_is_true(json_object_get(output, "matches")))
        return oracle_wrong("matches: %d", whole);
    if (found != json_is_array(find))
        return oracle_wrong("find: %d", found);
    if (found == 1 && (units(text, span.start) != json_integer_value(json_array_get(find, 0)) ||
                       units(text, span.end) != json_integer_value(json_array_get(find, 1))))
        return oracle_wrong("found %zu to %zu", span.start, span.end);
    return true;
}

static bool regex_row(const json_t *row, void *arg)
{
    const json_t *input = json_object_get(row, "input"), *error = json_object_get(row, "error");
    const char *kind = json_string_value(json_object_get(error, "class"));
    bool bad = kind != NULL && strcmp(kind, "java.util.regex.PatternSyntaxException") == 0;
    struct mr_error err = {0};
    struct mr_pattern *pattern = mr_pattern_make(
        &host_api_table, json_string_value(json_object_get(input, "pattern")), &err);
    bool good;

    if (bad || pattern == NULL) {
        mr_pattern_free(pattern);
        return bad ? oracle_error(row, &err) : oracle_wrong("refused: %s", err.text);
    }
    /* An error of the replacement's is not this file's business. */
    good = error != NULL || found_as(pattern, json_string_value(json_object_get(input, "text")),
                                     json_object_get(row, "output"));
    mr_pattern_free(pattern);
    return good;
}

static void patterns_find_what_java_finds(void **state)
{
    static const struct oracle_except except[] = {
        {"regex-006", "Unicode blocks are refused"},
        {"regex-019", "PCRE2 10.42 has no look-behind of varying length; refused"},
        {0},
    };

    assert_int_equal(oracle_run("regex.jsonl", except, regex_row, NULL), 0);
}

/* Where the two libraries differ: what JDK 17 did. */
static void what_differs_is_as_in_java(void **state)
{
    static const struct oracle_except except[] = {
        {"more-101", "look-behind of varying length"},
        {0},
    };

    assert_int_equal(oracle_run("regex-more.jsonl", except, regex_row, NULL), 0);
}

static void groups_are_spans_and_have_names(void **state)
{
    struct mr_pattern *p =
        mr_pattern_make(&host_api_table, "(?<year>\\d{4})-(?<month>\\d\\d)(x)?", NULL);
    struct mr_span spans[5];

    assert_non_null(p);
    assert_int_equal(p->groups, 3);
    assert_int_equal(mr_pattern_group(p, "month"), 2);
    assert_int_equal(mr_pattern_group(p, "day"), -1);
    assert_int_equal(mr_pattern_group(p, NULL), -1);
    assert_int_equal(mr_pattern_find(p, "at 2024-07!", 11, 0, false, spans, 5, NULL), 1);
    assert_int_equal(spans[0].start, 3);
    assert_int_equal(spans[0].end, 10);
    assert_int_equal(spans[2].start, 8);
    assert_true(spans[3].start == MR_NO_SPAN && spans[4].end == MR_NO_SPAN);
    mr_pattern_free(p);
}

static void a_search_begins_where_it_is_told(void **state)
{
    struct mr_pattern *p = mr_pattern_make(&host_api_table, "(?<=a)b", NULL);
    struct mr_span span;
    struct mr_error err = {0};

    assert_int_equal(mr_pattern_find(p, "abab", 4, 1, false, &span, 1, NULL), 1);
    assert_int_equal(span.start, 1);
    assert_int_equal(mr_pattern_find(p, "abab", 4, 2, false, &span, 1, NULL), 1);
    assert_int_equal(span.start, 3);
    assert_int_equal(mr_pattern_find(p, "abab", 4, 3, true, NULL, 0, NULL), 1);
    assert_int_equal(mr_pattern_find(p, "abab", 3, 2, false, NULL, 0, NULL), 0);
    assert_int_equal(mr_pattern_find(p, "abab", 4, 5, false, NULL, 0, &err), MR_ERR_FATAL);
    mr_pattern_free(p);
    mr_pattern_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_find_what_java_finds),
        cmocka_unit_test(what_differs_is_as_in_java),
        cmocka_unit_test(groups_are_spans_and_have_names),
        cmocka_unit_test(a_search_begins_where_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
