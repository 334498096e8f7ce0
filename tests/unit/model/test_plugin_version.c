/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_version: the order of versions and the ranges are Maven's; the tables are what
 * maven-artifact 3.9.15 says. */
#include "model/plugin_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static void versions_are_in_maven_s_order(void **state)
{
    static const struct {
        const char *a, *b;
        int order;
    } pairs[] = {
        {"1", "1.0", 0},
        {"1", "1.0.0-ga", 0},
        {"1.0-final", "1", 0},
        {"1.0", "1.0-RELEASE", 0},
        {"1-rc1", "1-cr1", 0},
        {"1a1", "1-alpha-1", 0},
        {"1b", "1-beta", 1},
        {"1.9", "1.10", -1},
        {"1.01", "1.1", 0},
        {"1-sp", "1", 1},
        {"1-sp-1", "1.1", -1},
        {"1-abc", "1-sp", 1},
        {"1-abc", "1-abd", -1},
        {"1-abc", "1.1", -1},
        {"1.0-SNAPSHOT", "1.0-snapshot", 0},
        {"1-SNAPSHOT", "1-rc9", 1},
        {"1-milestone", "1-beta", 1},
        {"1m3", "1-milestone-3", 0},
        {"2.0.0-beta.10", "2.0.0-beta.9", 1},
        {"1..2", "1.0.2", 0},
        {"1-1", "1.1", -1},
        {"1-1", "1.0-2", -1},
        {"1-0.1", "1", 1},
        {"", "0", 0},
        {"", "a", -1},
        {"99.0-9bc37a", "99.0", 1},
        {"4.3.1", "4.3.1-rc0", 1},
        {"4.3.1-ccs", "4.3.1", 1},
        {"7.6.0-ccs", "7.10.0-ccs", -1},
        {"9999999999", "999999999", 1},
        {"99999999999999999999", "999999999999999999", 1},
        {"1.a", "1-a", 0},
        {"1a", "1.a", 0},
        {"1_2", "1.2", -1},
        {"a1", "a-1", -1},
        {"x", "1", -1},
        {"1-ga-1", "1-1", -1},
        {"1.0.alpha", "1.0-alpha", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int there = sign(plugin_version_compare(pairs[i].a, pairs[i].b)),
            back = sign(plugin_version_compare(pairs[i].b, pairs[i].a));

        if (there != pairs[i].order || back != -pairs[i].order)
            fail_msg("\"%s\" and \"%s\": %d and %d", pairs[i].a, pairs[i].b, there, back);
    }
}

static void expect_range(const char *spec, const char *shown, const char *held)
{
    static const char *const versions[] = {"1", "1.2", "2.0", "2.5", "3"};
    struct plugin_version_range *range = NULL;
    struct mr_error err = {0};
    struct buf out;

    buf_init(&out, 4096);
    if (plugin_version_range_parse(spec, &range, &err) == 0)
        plugin_version_range_write(range, &out);
    else
        buf_puts(&out, err.text);
    if (strcmp(out.data, shown) != 0 || (range != NULL) != (held != NULL))
        fail_msg("\"%s\" is %s and not %s", spec, out.data, shown);
    for (size_t i = 0; held != NULL && i < 5; i++)
        if (plugin_version_range_holds(range, versions[i]) != (held[i] == 'y'))
            fail_msg("\"%s\" and %s", spec, versions[i]);
    plugin_version_range_free(&range);
    buf_deinit(&out);
}

static void ranges_are_maven_s(void **state)
{
    /* held: whether 1, 1.2, 2.0, 2.5 and 3 are in it; NULL: it is none, and shown is why */
    static const struct {
        const char *spec, *shown, *held;
    } ranges[] = {
        {"1.2", "[1.2,1.2]", "nynnn"},
        {"[1.2]", "[1.2,1.2]", "nynnn"},
        {" 1.2 ", "[1.2,1.2]", "nynnn"},
        {"[1.0,2.0)", "[1.0,2.0)", "yynnn"},
        {"(1.0,2.0]", "(1.0,2.0]", "nyynn"},
        {"[ 1.0 , 2.0 ]", "[1.0,2.0]", "yyynn"},
        {"(,2)", "(,2)", "yynnn"},
        {"[1.5,)", "[1.5,)", "nnyyy"},
        {"(,)", "(,)", "yyyyy"},
        {"[,]", "[,]", "yyyyy"},
        {"", "[,]", "nnnnn"},
        {"[]", "[,]", "nnnnn"},
        {"1.0,2.0", "[1.0,2.0]", "yyynn"},
        {"[1],[3,)", "[1,1],[3,)", "ynnny"},
        {"[1,2) , (2,3]", "[1,2),(2,3]", "yynyy"},
        {"[1,2)(2,3]", "[1,2),(2,3]", "yynyy"},
        {"LATEST", "[LATEST,LATEST]", "nnnnn"},
        {" latest", "[latest,latest]", "nnnnn"},
        {"[1.0", "Unbounded range: [1.0", NULL},
        {"(1.0]", "Single version must be surrounded by []: (1.0]", NULL},
        {"[1.0)", "Single version must be surrounded by []: [1.0)", NULL},
        {"(1.0", "Unbounded range: (1.0", NULL},
        {"[2,1]", "Range defies version ordering: [2,1]", NULL},
        {"(1,1]", "Range defies version ordering: (1,1]", NULL},
        {"[1,1]", "[1,1]", "ynnnn"},
        {"[1,1.0]", "[1,1.0]", "ynnnn"},
        {"[1,3],[2,4]", "Ranges overlap: [1,3],[2,4]", NULL},
        {"[3,4],[1,2]", "Ranges overlap: [3,4],[1,2]", NULL},
        {"[1,2],5", "Only fully-qualified sets allowed in multiple set scenario: [1,2],5", NULL},
        {"[1,2]5", "Only fully-qualified sets allowed in multiple set scenario: [1,2]5", NULL},
        {"1]", "Only fully-qualified sets allowed in multiple set scenario: [1]]", NULL},
        {"[1,2,3]", "[1,2,3]", "yyynn"},
        {"((1,2)", "((1,2)", "yynnn"},
        {"[1,,2]", "Range defies version ordering: [1,,2]", NULL},
        {"[(1,2)", "[(1,2)", "yynnn"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        expect_range(ranges[i].spec, ranges[i].shown, ranges[i].held);
}

static void nothing_and_latest_ask_for_no_version(void **state)
{
    struct plugin_version_range *range = (struct plugin_version_range *)1;

    (void)state;
    assert_int_equal(plugin_version_range_parse(NULL, &range, NULL), 0);
    assert_null(range);
    range = (struct plugin_version_range *)1;
    assert_int_equal(plugin_version_range_parse("latest", &range, NULL), 0);
    assert_null(range);
    assert_true(plugin_version_range_holds(NULL, "anything"));
}

static void a_range_of_very_many_parts_is_refused(void **state)
{
    struct plugin_version_range *range = NULL;
    struct mr_error err = {0};
    struct buf spec;

    (void)state;
    buf_init(&spec, 4096);
    for (int i = 0; i < 65; i++)
        buf_printf(&spec, "[%d],", i);
    assert_int_equal(plugin_version_range_parse(spec.data, &range, &err), MR_ERR_CONFIG);
    assert_non_null(strstr(err.text, "More than 64 ranges"));
    buf_deinit(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_in_maven_s_order),
        cmocka_unit_test(ranges_are_maven_s),
        cmocka_unit_test(nothing_and_latest_ask_for_no_version),
        cmocka_unit_test(a_range_of_very_many_parts_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
