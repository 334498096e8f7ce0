/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of offsets: what is asked for while one is out, and what becomes of the rest. */
#include "host/task/source/offset_copies.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct {
    struct offset_copies copies;
    int64_t puts;
    json_t *last; /* of them */
    bool broken;  /* none can be handed over */
} f;

static int64_t put(void *arg, json_t *entries)
{
    json_decref(f.last);
    f.last = entries;
    f.puts++;
    return f.broken ? -1 : f.puts;
}

static int setup(void **state)
{
    f.puts = 0;
    f.broken = false;
    offset_copies_init(&f.copies, put, NULL);
    return 0;
}

static int teardown(void **state)
{
    offset_copies_deinit(&f.copies);
    json_decref(f.last);
    f.last = NULL;
    return 0;
}

static void add(const char *partition, const char *key, int next)
{
    offset_copies_add(&f.copies, json_pack("[[{s:s}, {s:i}]]", "name", partition, key, next));
}

static void last_is(const char *text)
{
    char *found = json_dumps(f.last, JSON_COMPACT);

    assert_string_equal(found, text);
    free(found);
}

static void while_one_is_out_the_newest_of_each_waits(void **state)
{
    add("a", "at", 1);
    add("a", "at", 2);
    add("b", "at", 1);
    add("b", "of", 7);
    add("a", "at", 3);
    assert_int_equal(f.puts, 1);
    last_is("[[{\"name\":\"a\"},{\"at\":1}]]");
    assert_false(offset_copies_answer(&f.copies, 99, "", "own"));
    assert_true(offset_copies_answer(&f.copies, 1, "", "own"));
    assert_int_equal(f.puts, 2);
    last_is("[[{\"name\":\"b\"},{\"at\":1}],[{\"name\":\"b\"},{\"of\":7}],"
            "[{\"name\":\"a\"},{\"at\":3}]]");
    assert_true(offset_copies_answer(&f.copies, 2, "no", "own"));
    assert_int_equal(f.puts, 2);
    add("a", "at", 4);
    assert_int_equal(f.puts, 3);
}

static void many_go_in_portions_and_at_the_end_all_of_them(void **state)
{
    char name[16];

    for (int i = 0; i < 3 * OFFSET_WRITER_PORTION; i++) {
        snprintf(name, sizeof(name), "%d", i);
        add(name, "at", i);
    }
    assert_true(offset_copies_answer(&f.copies, 1, "", "own"));
    assert_int_equal(json_array_size(f.last), OFFSET_WRITER_PORTION);
    offset_copies_end(&f.copies);
    assert_int_equal(f.puts, 4);
    assert_int_equal(json_array_size(f.last), OFFSET_WRITER_PORTION - 1);
}

/* Without a lease, say. */
static void what_can_not_be_handed_over_goes_with_the_next(void **state)
{
    f.broken = true;
    add("a", "at", 1);
    add("b", "at", 1);
    assert_int_equal(f.puts, 2);
    f.broken = false;
    add("b", "at", 2);
    assert_int_equal(f.puts, 3);
    last_is("[[{\"name\":\"a\"},{\"at\":1}],[{\"name\":\"b\"},{\"at\":2}]]");
}

static void what_is_refused_goes_with_the_next_unless_there_is_a_newer_one(void **state)
{
    add("a", "at", 1);
    assert_true(offset_copies_answer(&f.copies, 1, "no", "own"));
    assert_int_equal(f.puts, 1);
    add("b", "at", 1);
    last_is("[[{\"name\":\"a\"},{\"at\":1}],[{\"name\":\"b\"},{\"at\":1}]]");
    add("b", "at", 2);
    assert_true(offset_copies_answer(&f.copies, 2, "no", "own"));
    assert_int_equal(f.puts, 2); /* twice in a row */
    add("b", "at", 3);
    assert_int_equal(f.puts, 3);
    last_is("[[{\"name\":\"a\"},{\"at\":1}],[{\"name\":\"b\"},{\"at\":3}]]");
}

static void what_can_not_be_handed_over_at_the_end_is_given_up(void **state)
{
    f.broken = true;
    add("a", "at", 1);
    offset_copies_end(&f.copies);
    assert_int_equal(f.puts, 2);
    offset_copies_end(&f.copies);
    assert_int_equal(f.puts, 2);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(while_one_is_out_the_newest_of_each_waits),
        T(many_go_in_portions_and_at_the_end_all_of_them),
        T(what_can_not_be_handed_over_goes_with_the_next),
        T(what_is_refused_goes_with_the_next_unless_there_is_a_newer_one),
        T(what_can_not_be_handed_over_at_the_end_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
