/* SPDX-License-Identifier: Apache-2.0 */
/* printable: whatever bytes go in, valid UTF-8 without control characters comes out, of the same
 * length. */
#include "link/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static void expect(const char *in, size_t len, const char *out)
{
    char text[64];

    assert_int_equal(strlen(out), len);
    memcpy(text, in, len);
    printable_clean(text, len);
    text[len] = '\0';
    assert_string_equal(text, out);
}

static void good_text_stays(void **state)
{
    (void)state;
    expect("a\tb\nc", 5, "a\tb\nc");
    expect("zu groß, €, 😀", 19, "zu groß, €, 😀");
}

static void bad_bytes_become_question_marks(void **state)
{
    (void)state;
    expect("a\x01\x7f\0b\r\x1b", 7, "a???b??");
    expect("\xff\xfe", 2, "??");
    expect("\xc3", 1, "?");
    expect("\xc0\x80", 2, "??");           /* overlong */
    expect("\xed\xa0\x80", 3, "???");      /* a surrogate */
    expect("\xf4\x90\x80\x80", 4, "????"); /* beyond Unicode */
    expect("\xe2\x82"
           "a",
           3, "??a"); /* torn */
    expect("\xc2\x85"
           "x",
           3, "??x"); /* a control character of two bytes */
}

static void random_bytes_are_fit_for_json(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 20000; round++) {
        char text[24];
        json_t *value;

        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = (char)(rand() >> 7);
        printable_clean(text, sizeof(text));
        value = json_stringn(text, sizeof(text));
        assert_non_null(value);
        json_decref(value);
    }
}

static void a_cut_tears_no_character(void **state)
{
    (void)state;
    assert_int_equal(printable_cut("abc", 3, 10), 3);
    assert_int_equal(printable_cut("abcdef", 6, 4), 4);
    assert_int_equal(printable_cut("ab\xe2\x82\xac"
                                   "c",
                                   6, 5),
                     5);
    assert_int_equal(printable_cut("ab\xe2\x82\xac"
                                   "c",
                                   6, 4),
                     2);
    assert_int_equal(printable_cut("ab\xe2\x82\xac"
                                   "c",
                                   6, 3),
                     2);
    assert_int_equal(printable_cut("\xf0\x9f\x98\x80", 4, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_text_stays),
        cmocka_unit_test(bad_bytes_become_question_marks),
        cmocka_unit_test(random_bytes_are_fit_for_json),
        cmocka_unit_test(a_cut_tears_no_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
