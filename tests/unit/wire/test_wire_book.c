/* SPDX-License-Identifier: Apache-2.0 */
/* wire_book: who is tried next, and how long a failure keeps an address back. */
#include "wire/wire_book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wire_book book;

static int start(void **state)
{
    wire_book_init(&book, 50, 1000, 42);
    return 0;
}

static int end(void **state)
{
    wire_book_deinit(&book);
    return 0;
}

static void an_address_stands_once(void **state)
{
    struct wire_book_entry *a = wire_book_add(&book, "Host", 1);

    assert_ptr_equal(wire_book_add(&book, "host", 1), a);
    wire_book_add(&book, "host", 2);
    assert_int_equal(book.count, 2);
}

static void failures_double_the_wait_up_to_the_most(void **state)
{
    static const int64_t steps[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};
    bool differs = false;
    int64_t last = 0;

    wire_book_add(&book, "a", 1);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        int64_t wait;

        wire_book_failed(&book, "a", 1, 5000);
        wait = wire_book_wait(&book, "a", 1, 5000);
        if (wait < steps[i] * 8 / 10 || wait > steps[i] * 12 / 10)
            fail_msg("step %zu: %d ms", i, (int)wait);
        differs = differs || (i > 5 && wait != last);
        last = wait;
    }
    assert_true(differs); /* jitter */
    wire_book_worked(&book, "a", 1);
    wire_book_failed(&book, "a", 1, 9000);
    assert_true(wire_book_wait(&book, "a", 1, 9000) <= 60);
    assert_int_equal(wire_book_wait(&book, "a", 1, 9060), 0);
    assert_int_equal(wire_book_wait(&book, "unknown", 1, 0), 0);
}

static void the_best_address_is_picked(void **state)
{
    bool seen[3] = {false};

    assert_null(wire_book_pick(&book, 0));
    wire_book_add(&book, "a", 1);
    wire_book_add(&book, "b", 1);
    wire_book_add(&book, "c", 1);
    for (int i = 0; i < 100; i++)
        seen[wire_book_pick(&book, 0)->host[0] - 'a'] = true;
    assert_true(seen[0] && seen[1] && seen[2]);
    wire_book_failed(&book, "a", 1, 0);
    wire_book_failed(&book, "b", 1, 0);
    for (int i = 0; i < 100; i++)
        assert_string_equal(wire_book_pick(&book, 5000)->host, "c"); /* never failed */
    for (int i = 0; i < 5; i++)
        wire_book_failed(&book, "c", 1, 0);
    for (int i = 0; i < 100; i++)
        assert_string_not_equal(wire_book_pick(&book, 1)->host, "c"); /* can be tried last */
}

static void brokers_come_and_go_seeds_stay(void **state)
{
    struct wire_book_entry *entry = wire_book_add(&book, "seed", 1);

    entry->seed = true;
    entry = wire_book_add(&book, "old", 1);
    entry->id = 1;
    wire_book_failed(&book, "new", 1, 0);
    entry = wire_book_add(&book, "new", 1);
    entry->id = 2;
    entry->learnt = true;
    wire_book_sweep(&book);
    assert_int_equal(book.count, 2);
    assert_null(wire_book_find(&book, 1));
    assert_string_equal(wire_book_find(&book, 2)->host, "new");
    wire_book_sweep(&book);
    assert_int_equal(book.count, 1);
    assert_string_equal(book.entries[0].host, "seed");
}

static void the_book_has_a_last_page(void **state)
{
    char host[20];

    for (int i = 0; i < WIRE_BOOK_MAX; i++) {
        snprintf(host, sizeof(host), "h%d", i);
        assert_non_null(wire_book_add(&book, host, 1));
    }
    assert_null(wire_book_add(&book, "one-more", 1));
    assert_non_null(wire_book_add(&book, "h7", 1));
}

#define test(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(an_address_stands_once),     test(failures_double_the_wait_up_to_the_most),
        test(the_best_address_is_picked), test(brokers_come_and_go_seeds_stay),
        test(the_book_has_a_last_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
