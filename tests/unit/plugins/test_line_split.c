/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "file/line_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All lines, joined by '|', then '~' and what remains. */
static void expect(const char *data, size_t len, const char *lines)
{
    char made[256], *copy = malloc(len);
    struct line_split split;
    const char *line;
    size_t n, at = 0;

    memcpy(copy, data, len);
    line_split_init(&split, copy, len);
    while (line_split_next(&split, &line, &n))
        at += (size_t)snprintf(made + at, sizeof(made) - at, "%.*s|", (int)n, line);
    snprintf(made + at, sizeof(made) - at, "~%.*s", (int)(split.end - split.p), split.p);
    assert_string_equal(made, lines);
    free(copy);
}

static void lines_end_in_each_of_three_ways(void **state)
{
    (void)state;
    expect("", 0, "~");
    expect("a", 1, "~a");
    expect("a\n", 2, "a|~");
    expect("a\nb\nc", 5, "a|b|~c");
    expect("a\r\nb\r\n", 6, "a|b|~");
    expect("a\rb\rc", 5, "a|b|~c");
    expect("\n\n", 2, "||~");
    expect("a\n\r\nb\r\n", 7, "a||b|~");
    expect("\r\r\n\n", 4, "|||~");
}

static void a_carriage_return_at_the_end_waits(void **state)
{
    (void)state;
    expect("a\r", 2, "~a\r");
    expect("a\nb\r", 4, "a|~b\r");
    expect("\r", 1, "~\r");
    expect("\r\r", 2, "|~\r");
    assert_int_equal(line_split_seen("a\r", 2), 1);
    assert_int_equal(line_split_seen("ab", 2), 2);
    assert_int_equal(line_split_seen("", 0), 0);
}

static void other_breaks_of_unicode_end_no_line(void **state)
{
    (void)state;
    expect("a\xe2\x80\xa8"
           "b\xc2\x85"
           "c\x0b"
           "d\n",
           11,
           "a\xe2\x80\xa8"
           "b\xc2\x85"
           "c\x0b"
           "d|~");
}

/* The same lines, however the bytes are cut. */
static void cuts_change_nothing(void **state)
{
    static const char data[] = "one\r\ntwo\rthree\n\n\r\r\nfour\r\n\rfive\n";
    size_t whole = sizeof(data) - 1, expected = 0;
    struct line_split split;
    const char *line;
    size_t n;

    (void)state;
    line_split_init(&split, data, whole);
    while (line_split_next(&split, &line, &n))
        expected++;
    for (size_t step = 1; step < whole; step++) {
        size_t from = 0, count = 0;

        for (size_t to = step; from < whole; to = to + step < whole ? to + step : whole) {
            line_split_init(&split, data + from, to - from);
            while (line_split_next(&split, &line, &n))
                count++;
            from = (size_t)(split.p - data);
            if (to == whole)
                break;
        }
        assert_int_equal(count, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_in_each_of_three_ways),
        cmocka_unit_test(a_carriage_return_at_the_end_waits),
        cmocka_unit_test(other_breaks_of_unicode_end_no_line),
        cmocka_unit_test(cuts_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
