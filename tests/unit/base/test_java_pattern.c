/* SPDX-License-Identifier: Apache-2.0 */
/* Java's regular expressions: bounds, refusals, bad text. What they match is compared with Java in
 * test_host_pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/java_pattern.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static int matches(const char *regex, const char *text)
{
    struct mr_error err = {0};
    struct java_pattern *p = java_pattern_make(regex, &err);
    int rc;

    if (p == NULL)
        fail_msg("%s: %s", regex, err.text);
    rc = java_pattern_matches(p, text, &err);
    java_pattern_free(&p);
    assert_null(p);
    return rc;
}

static void refused(const char *regex, const char *why)
{
    struct mr_error err = {0};
    struct java_pattern *p = java_pattern_make(regex, &err);

    if (p != NULL || err.code != MR_ERR_CONFIG || strstr(err.text, why) == NULL)
        fail_msg("%s: %s", regex, p != NULL ? "was taken" : err.text);
}

static void a_message_cuts_no_character_of_a_long_expression(void **state)
{
    char regex[600] = "(";
    struct mr_error err = {0};

    (void)state;
    for (size_t i = 1; i < 500; i += 2)
        memcpy(regex + i, "\xc3\xa9", 3);
    strcpy(regex + 501, "(");
    for (size_t from = 0; from < 2; from++) { /* the cut falls on either byte of one */
        err_clear(&err);
        assert_null(java_pattern_make(regex + from, &err));
        assert_true(utf8_valid(err.text, strlen(err.text)));
    }
}

static void what_cannot_be_translated_is_named(void **state)
{
    refused("(?U)\\w",
            "the flag U in a regular expression is not supported here, near index 2 of (?U)");
    refused("(?c)a", "the flag c");
    refused("\\b{g}", "\\b{");
    refused("\\N{DIGIT ONE}", "\\N");
    refused("(?<=a+)b", "look-behind of varying length is not supported here");
    refused("a{65536}", "a repetition of more than 65535");
    refused("[ab&&[b]&c]", "more members behind an intersection");
    refused("\\p{javaMirrored}", "this property");
    refused("\\p{IsNoScript}", "Unknown character property name");
    refused("((((a{999}){999}){999}){999}", "Unclosed group");
    refused("(((a{999}){999}){999}){999}", "not supported here (");
    refused("a\xff", "not UTF-8");
}

static void size_and_depth_are_bounded(void **state)
{
    char *deep = calloc(1, 40000);

    memset(deep, '(', 15000);
    refused(deep, "groups in groups");
    memset(deep, '[', 15000);
    refused(deep, "brackets in brackets");
    memset(deep, 'a', 15000);
    deep[0] = '[';
    for (int i = 2; i < 14000; i += 3)
        memcpy(deep + i, "&&", 2);
    deep[14999] = ']';
    refused(deep, "or intersections");
    memset(deep, 'a', 16385);
    refused(deep, "longer than 16384 bytes");
    free(deep);
}

static void a_match_that_takes_for_ever_is_ended(void **state)
{
    static const char *const regexes[] = {"(a+)+[bc]", "(a|aa)+[bc]", "(a|a?)+[bc]", "((a*)*)*[bc]",
                                          "(.*)(.*)(.*)(.*)[bc]"};
    char text[5001] = "";

    memset(text, 'a', sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(regexes) / sizeof(*regexes); i++)
        if (matches(regexes[i], text) != MR_ERR_DATA)
            fail_msg("%s came to an end", regexes[i]);
    assert_int_equal(matches("a*b", text), 0);
    assert_int_equal(matches("(?:a|b)*", text), 1);
}

static void text_must_be_utf8(void **state)
{
    struct mr_error err = {0};
    struct java_pattern *p = java_pattern_make(".", NULL);

    assert_int_equal(java_pattern_matches(p, "\xc3", &err), MR_ERR_DATA);
    assert_non_null(strstr(err.text, "UTF-8"));
    assert_int_equal(java_pattern_matches(p, "\xc3\xa9", NULL), 1);
    java_pattern_free(&p);
    java_pattern_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_cuts_no_character_of_a_long_expression),
        cmocka_unit_test(what_cannot_be_translated_is_named),
        cmocka_unit_test(size_and_depth_are_bounded),
        cmocka_unit_test(a_match_that_takes_for_ever_is_ended),
        cmocka_unit_test(text_must_be_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
