/* SPDX-License-Identifier: Apache-2.0 */
/* Java's topic patterns: what they match after translation, by the same library call that
 * librdkafka uses. */
#include "base/buf.h"
#include "kafka/topic_pattern.h"

#include <regex.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *java, const char *topic)
{
    struct buf out;
    struct mr_error err = {0};
    regex_t regex;
    bool yes;

    buf_init(&out, 8192);
    if (topic_pattern_translate(java, &out, &err) != 0)
        fail_msg("%s: %s", java, err.text);
    assert_int_equal(out.data[0], '^');
    assert_int_equal(regcomp(&regex, out.data, REG_EXTENDED | REG_NOSUB), 0);
    yes = regexec(&regex, topic, 0, NULL, 0) == 0;
    regfree(&regex);
    buf_deinit(&out);
    return yes;
}

static void the_whole_name_must_match(void **state)
{
    assert_true(matches("foo", "foo"));
    assert_false(matches("foo", "foobar"));
    assert_false(matches("foo", "a-foo"));
    assert_true(matches("foo.*", "foo.bar"));
    assert_true(matches("foo|bar", "bar"));
    assert_false(matches("foo|bar", "foobar"));
    assert_true(matches("^foo$", "foo"));
    assert_true(matches("(foo|bar)-[0-9]{2,3}", "bar-123"));
    assert_false(matches("(foo|bar)-[0-9]{2,3}", "bar-1"));
}

static void escapes_mean_what_they_mean_in_java(void **state)
{
    assert_true(matches("\\d+", "123"));
    assert_false(matches("\\d+", "ddd"));
    assert_true(matches("\\w+", "a_1"));
    assert_false(matches("\\w+", "a-1"));
    assert_true(matches("\\W", "-"));
    assert_true(matches("\\D+", "a.b"));
    assert_true(matches("a\\.b", "a.b"));
    assert_false(matches("a\\.b", "axb"));
    assert_true(matches("\\Qa.b+\\E.*", "a.b+x"));
    assert_false(matches("\\Qa.b\\E", "axb"));
    assert_true(matches("a\\-b", "a-b"));
    assert_false(matches("a\\s?b", "a b"));
    assert_true(matches("a\\s?b", "ab"));
}

static void brackets_hold_the_same_characters(void **state)
{
    assert_true(matches("[a-c]+", "abc"));
    assert_false(matches("[a-c]+", "abd"));
    assert_true(matches("[^a-c]+", "xyz"));
    assert_false(matches("[^a-c]+", "xya"));
    assert_true(matches("[\\d_.]+", "1_2."));
    assert_false(matches("[\\d]+", "d"));
    assert_true(matches("[a\\-z]+", "a-z"));
    assert_false(matches("[a\\-z]+", "b"));
    assert_true(matches("[a-]+", "a-"));
    assert_true(matches("[\\w.-]+", "a.b-c_1"));
    assert_false(matches("[ ,]", "x"));
}

static void groups_and_lazy_quantifiers_are_rewritten(void **state)
{
    assert_true(matches("(?:a|b)+", "abab"));
    assert_true(matches("(?<name>a)b", "ab"));
    assert_true(matches("a.*?b", "axxb"));
    assert_true(matches("a+?", "aaa"));
    assert_true(matches("a{2}?", "aa"));
    assert_true(matches("[a-z]{1,200}\\.([a-z]{1,30}-){1,50}x", "a.b-c-x"));
}

static void what_posix_cannot_say_is_refused(void **state)
{
    static const char *const patterns[] = {"(?=a)",
                                           "(?!a).*",
                                           "(?<=a)b",
                                           "(?i)abc",
                                           "a++",
                                           "(a)\\1",
                                           "\\p{Lu}",
                                           "\\bfoo",
                                           "[a&&b]",
                                           "[[a]b]",
                                           "[a",
                                           "(a",
                                           "a)",
                                           "*a(",
                                           "a\\",
                                           "[z-a]",
                                           "a{x}",
                                           "{",
                                           "[]",
                                           "a**",
                                           "*",
                                           "a|*",
                                           "(+)",
                                           "a{2}{3}",
                                           "a{60000}",
                                           "(((a{99}){99}){99})",
                                           "a{99999999999999999999}"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        struct buf out;
        struct mr_error err = {0};

        buf_init(&out, 8192);
        if (topic_pattern_translate(patterns[i], &out, &err) != MR_ERR_CONFIG)
            fail_msg("%s became %s", patterns[i], out.data);
        assert_non_null(strstr(err.text, "The topic pattern can't be used: "));
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_name_must_match),
        cmocka_unit_test(escapes_mean_what_they_mean_in_java),
        cmocka_unit_test(brackets_hold_the_same_characters),
        cmocka_unit_test(groups_and_lazy_quantifiers_are_rewritten),
        cmocka_unit_test(what_posix_cannot_say_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
