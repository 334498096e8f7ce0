/* SPDX-License-Identifier: Apache-2.0 */
/* java_order: names hashed, compared and put in order as Java does it. */
#include "base/java_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Values of String.hashCode and String.compareTo. */
static void names_hash_and_compare_as_in_java(void **state)
{
    (void)state;
    assert_int_equal(java_order_hash(""), 0);
    assert_int_equal(java_order_hash("foo"), 101574);
    assert_int_equal(java_order_hash("polygenelubricants"), INT32_MIN);
    assert_int_equal(java_order_hash("\xc3\xb6"), 0xf6);
    assert_int_equal(java_order_hash("\xf0\x9f\x98\x80"), 0xd83d * 31 + 0xde00);
    assert_true(java_order_compare("a", "b") < 0 && java_order_compare("ab", "a") > 0);
    assert_int_equal(java_order_compare("same", "same"), 0);
    assert_true(java_order_compare("\xf0\x9f\x98\x80", "\xef\xbf\xbd") < 0); /* surrogates first */
    assert_true(java_order_compare("\xf0\x9f\x98\x80", "\xed\x9f\xbf") > 0);
}

static void assert_order(const char *const *names, size_t count, const char *wanted)
{
    size_t places[16];
    char got[256] = "";

    assert_int_equal(java_order_of_set(names, count, places), 0);
    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", names[places[i]]);
    assert_string_equal(got, wanted);
}

/* What new HashSet<>(List.of(...)) gave; twelve names take a table of 32, not of 16. */
static void sets_of_names_are_in_the_order_of_java(void **state)
{
    static const char *const words[] = {"alpha", "bravo", "charlie", "delta", "echo", "foxtrot"};
    static const char *const conns[] = {"conn-0", "conn-1", "conn-2",  "conn-3",
                                        "conn-4", "conn-5", "conn-6",  "conn-7",
                                        "conn-8", "conn-9", "conn-10", "conn-11"};
    static const char *const bucket[] = {"q", "a"};

    (void)state;
    assert_order(words, 6, "bravo foxtrot alpha delta echo charlie ");
    assert_order(conns, 12,
                 "conn-9 conn-8 conn-7 conn-6 conn-5 conn-4 conn-3 conn-2 conn-1 conn-0 conn-11 "
                 "conn-10 ");
    assert_order(bucket, 2, "q a "); /* one bucket: as they were put in */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_hash_and_compare_as_in_java),
        cmocka_unit_test(sets_of_names_are_in_the_order_of_java),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
