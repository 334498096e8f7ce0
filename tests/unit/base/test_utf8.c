/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: what is allowed and what is not, byte for byte, and how long a malformed part is. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void characters_have_their_length(void **state)
{
    (void)state;
    assert_int_equal(utf8_char("a", 1), 1);
    assert_int_equal(utf8_char("", 1), 1); /* NUL is a character */
    assert_int_equal(utf8_char("\xC2\x80", 2), 2);
    assert_int_equal(utf8_char("\xE0\xA0\x80", 3), 3);
    assert_int_equal(utf8_char("\xED\x9F\xBF", 3), 3);
    assert_int_equal(utf8_char("\xF0\x90\x80\x80", 4), 4);
    assert_int_equal(utf8_char("\xF4\x8F\xBF\xBF", 4), 4);
}

static void what_is_malformed_is_so_long_as_java_has_it(void **state)
{
    static const struct {
        const char *bytes;
        int part;
    } cases[] = {
        {"\x80", 1},         {"\xC0\xAF", 1},         {"\xC1\xBF", 1},     {"\xC3", 1},
        {"\xC3(", 1},        {"\xE0\x9F\xBF", 1},     {"\xE2\x82", 2},     {"\xE2\x82(", 2},
        {"\xED\xA0\x80", 3}, {"\xED\xBF\xBF", 3},     {"\xF0\x8F\xBF", 1}, {"\xF0\x9F\x98", 3},
        {"\xF0\x9F(", 2},    {"\xF4\x90\x80\x80", 1}, {"\xF5\x80", 1},     {"\xFF", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int n = utf8_char(cases[i].bytes, strlen(cases[i].bytes));

        if (n != -cases[i].part)
            fail_msg("case %zu: %d, not %d", i, n, -cases[i].part);
    }
}

static void a_prefix_ends_at_the_first_bad_byte(void **state)
{
    static const char text[] = "sixteen bytes of ASCII, then \xC5\xBC, then \xFF and more";

    (void)state;
    assert_int_equal(utf8_prefix(text, sizeof(text) - 1), strchr(text, '\xFF') - text);
    assert_false(utf8_valid(text, sizeof(text) - 1));
    assert_true(utf8_valid(text, (size_t)(strchr(text, '\xFF') - text)));
    assert_true(utf8_valid("", 0));
}

/* Nothing behind the end is read: each length in memory of its own. */
static void no_byte_behind_the_end_is_read(void **state)
{
    static const char text[] = "eight to \xF0\x9F\x98\x80 \xE2\x82\xAC \xC5\xBC";

    (void)state;
    for (size_t len = 1; len < sizeof(text); len++) {
        char *copy = malloc(len);

        memcpy(copy, text, len);
        assert_true(utf8_prefix(copy, len) <= len);
        free(copy);
    }
}

static void a_cut_goes_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

    (void)state;
    for (size_t max = 0; max < sizeof(want) / sizeof(want[0]); max++)
        assert_int_equal(utf8_cut(text, sizeof(text) - 1, max), want[max]);
}

static void what_is_malformed_is_written_as_java_writes_it(void **state)
{
    char text[] = "\xed\xa0\x80"
                  "a\xc3\xa9"
                  "\xed\xb0\x80\xed\xa0\x80"
                  "b"
                  "\xc0\x80"
                  "\xff";
    static const char want[] = "?a\xc3\xa9??b\0?";
    char sound[] = "sound";

    (void)state;
    assert_int_equal(utf8_encode(text, sizeof(text) - 1), sizeof(want) - 1);
    assert_memory_equal(text, want, sizeof(want) - 1);
    assert_int_equal(utf8_encode(sound, 5), 5);
    assert_string_equal(sound, "sound");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_their_length),
        cmocka_unit_test(what_is_malformed_is_so_long_as_java_has_it),
        cmocka_unit_test(a_prefix_ends_at_the_first_bad_byte),
        cmocka_unit_test(no_byte_behind_the_end_is_read),
        cmocka_unit_test(a_cut_goes_between_characters),
        cmocka_unit_test(what_is_malformed_is_written_as_java_writes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
