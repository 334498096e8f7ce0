/* SPDX-License-Identifier: Apache-2.0 */
/* text: copies, parts, and what takes the place of what. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_copy_is_another_text_and_of_nothing_nothing(void **state)
{
    const char *text = "first";
    char *copy = text_dup(text);

    assert_ptr_not_equal(copy, text);
    assert_string_equal(copy, text);
    assert_null(text_dup(NULL));
    free(copy);
}

static void a_part_ends_where_it_is_told_or_where_the_text_ends(void **state)
{
    char *part = text_dup_len("first", 3), *whole = text_dup_len("first", 30);

    assert_string_equal(part, "fir");
    assert_string_equal(whole, "first");
    free(part);
    free(whole);
}

static void a_text_is_replaced_also_by_a_part_of_itself_and_by_nothing(void **state)
{
    char *text = NULL;

    text_replace(&text, "the first");
    assert_string_equal(text, "the first");
    text_replace(&text, text + 4);
    assert_string_equal(text, "first");
    text_replace(&text, NULL);
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_another_text_and_of_nothing_nothing),
        cmocka_unit_test(a_part_ends_where_it_is_told_or_where_the_text_ends),
        cmocka_unit_test(a_text_is_replaced_also_by_a_part_of_itself_and_by_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
