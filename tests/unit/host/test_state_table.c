/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin keeps, in memory: changes, their taking back, and against a model in thousands of
 * random steps. */
#include "host/task/sink/state_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MOST 100000
#define KEYS 40

static size_t bytes;

static struct state_span span(const char *text)
{
    return (struct state_span){text, text == NULL ? 0 : strlen(text)};
}

static void put(struct state_table *t, const char *key, const char *value)
{
    assert_int_equal(state_table_set(t, span(key), span(value), NULL), 0);
}

static void has(const struct state_table *t, const char *key, const char *value)
{
    struct state_span found = state_table_get(t, span(key));

    if (value == NULL) {
        assert_null(found.data);
        return;
    }
    assert_non_null(found.data);
    assert_int_equal(found.len, strlen(value));
    assert_memory_equal(found.data, value, found.len);
}

static void what_is_set_is_there_until_it_is_forgotten(void **state)
{
    struct state_table *t = state_table_new(&bytes, MOST);

    (void)state;
    put(t, "a", "1");
    put(t, "a", "a longer one");
    put(t, "b", "2");
    has(t, "a", "a longer one");
    put(t, "a", NULL);
    has(t, "a", NULL);
    has(t, "b", "2");
    has(t, "c", NULL);
    assert_int_equal(state_table_count(t), 1);
    state_table_free(&t);
    assert_int_equal(bytes, 0);
}

static void a_call_that_failed_changes_nothing(void **state)
{
    struct state_table *t = state_table_new(&bytes, MOST);

    (void)state;
    put(t, "a", "1");
    put(t, "gone", "x");
    put(t, "gone", NULL);
    state_table_keep(t);
    put(t, "a", "2");
    put(t, "a", "three");
    put(t, "gone", "again");
    put(t, "new", "n");
    put(t, "a", NULL);
    state_table_roll_back(t);
    has(t, "a", "1");
    has(t, "gone", NULL);
    has(t, "new", NULL);
    assert_int_equal(state_table_changes(t), 2);
    assert_int_equal(state_table_count(t), 1);
    state_table_free(&t);
}

static void a_commit_names_each_changed_key_once(void **state)
{
    struct state_table *t = state_table_new(&bytes, MOST);
    struct state_span key, value;

    (void)state;
    assert_int_equal(state_table_load(t, span("old"), span("o"), NULL), 0);
    assert_int_equal(state_table_load(t, span("dead"), span("d"), NULL), 0);
    assert_int_equal(state_table_load(t, span("dead"), span(NULL), NULL), 0);
    has(t, "dead", NULL);
    for (int i = 0; i < 10; i++) {
        put(t, "a", i % 2 == 0 ? "even" : "odd");
        state_table_keep(t);
    }
    put(t, "old", NULL);
    state_table_keep(t);
    assert_int_equal(state_table_changes(t), 2);
    state_table_change(t, 0, &key, &value);
    assert_memory_equal(key.data, "a", key.len);
    assert_memory_equal(value.data, "odd", value.len);
    state_table_change(t, 1, &key, &value);
    assert_memory_equal(key.data, "old", key.len);
    assert_null(value.data);
    state_table_committed(t);
    assert_int_equal(state_table_changes(t), 0);
    has(t, "a", "odd");
    has(t, "old", NULL);
    state_table_free(&t);
    assert_int_equal(bytes, 0);
}

static void there_is_a_limit_and_beyond_it_nothing_changes(void **state)
{
    struct state_table *t = state_table_new(&bytes, 1000);
    struct mr_error err = {0};
    char large[2000];

    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    put(t, "a", "1");
    assert_int_equal(state_table_set(t, span("a"), span(large), &err), MR_ERR_FULL);
    assert_non_null(strstr(err.text, "more than 1000 bytes"));
    has(t, "a", "1");
    err = (struct mr_error){0};
    assert_int_equal(state_table_set(t, span(large), span("1"), &err), MR_ERR_FULL);
    assert_int_equal(state_table_count(t), 1);
    state_table_free(&t);
}

/* The log holds what a value was before the call, once, within the limit, and not for ever. */
static void a_call_that_changes_much_stays_within_the_limit(void **state)
{
    enum { SIZE = 10000, VALUES = 4 };
    struct state_table *t = state_table_new(&bytes, MOST);
    struct mr_error err = {0};
    static char large[SIZE];
    char key[2] = "a";
    size_t before, kept;

    (void)state;
    for (int i = 0; i < VALUES; i++, key[0]++)
        assert_int_equal(state_table_load(t, span(key), (struct state_span){large, SIZE}, NULL), 0);
    before = bytes;
    for (int i = 0; i < 1000; i++) {
        large[0] = (char)i;
        assert_int_equal(state_table_set(t, span("b"), (struct state_span){large, SIZE}, &err), 0);
    }
    assert_in_range(bytes - before, SIZE, 2 * SIZE); /* not a thousand times */
    state_table_roll_back(t);
    assert_int_equal(((const char *)state_table_get(t, span("b")).data)[0], 0);
    kept = bytes;
    assert_true(kept - before < 1000);
    for (int call = 0; call < 10; call++) {
        for (key[0] = 'a'; key[0] < 'a' + VALUES; key[0]++)
            put(t, key, "small");
        assert_true(bytes > kept + VALUES * SIZE || call > 0);
        state_table_keep(t);
        assert_true(bytes <= kept + 1000);
    }
    state_table_free(&t);
    assert_int_equal(bytes, 0);

    t = state_table_new(&bytes, 3 * SIZE);
    for (key[0] = 'a'; key[0] <= 'b'; key[0]++)
        assert_int_equal(state_table_load(t, span(key), (struct state_span){large, SIZE}, NULL), 0);
    assert_int_equal(state_table_set(t, span("a"), span("1"), &err), MR_ERR_FULL);
    assert_non_null(strstr(err.text, "more than 30000 bytes"));
    assert_int_equal(state_table_get(t, span("a")).len, SIZE);
    assert_int_equal(state_table_changes(t), 0);
    state_table_free(&t);
    assert_int_equal(bytes, 0);
}

/* --- against a model -------------------------------------------------------------------------- */

struct model {
    int value[KEYS]; /* 0: none */
    bool changed[KEYS];
};

static void compare(const struct state_table *t, const struct model *m)
{
    size_t changed = 0;
    char key[16], value[64];

    for (int k = 0; k < KEYS; k++) {
        snprintf(key, sizeof(key), "key-%d", k);
        snprintf(value, sizeof(value), "%0*d", m->value[k] % 37 + 1, m->value[k]);
        has(t, key, m->value[k] == 0 ? NULL : value);
        changed += m->changed[k];
    }
    assert_int_equal(state_table_changes(t), changed);
}

static void change(struct state_table *t, struct model *m, unsigned *seed)
{
    int k = rand_r(seed) % KEYS, n = rand_r(seed) % 4 == 0 ? 0 : 1 + rand_r(seed) % 5000;
    char key[16], value[64];

    if (n == 0 && m->value[k] == 0 && !m->changed[k])
        return; /* nothing is no change */
    snprintf(key, sizeof(key), "key-%d", k);
    snprintf(value, sizeof(value), "%0*d", n % 37 + 1, n);
    put(t, key, n == 0 ? NULL : value);
    m->value[k] = n;
    m->changed[k] = true;
}

static void random_steps_do_what_the_model_does(void **state)
{
    struct state_table *t = state_table_new(&bytes, MOST);
    struct model now, before;
    unsigned seed = 7;

    (void)state;
    memset(&now, 0, sizeof(now));
    for (int step = 0; step < 5000; step++) {
        before = now;
        for (int i = rand_r(&seed) % 6; i > 0; i--)
            change(t, &now, &seed);
        if (rand_r(&seed) % 3 == 0) {
            state_table_roll_back(t);
            now = before;
        } else {
            state_table_keep(t);
        }
        if (rand_r(&seed) % 10 == 0) {
            state_table_committed(t);
            memset(now.changed, 0, sizeof(now.changed));
        }
        compare(t, &now);
    }
    state_table_free(&t);
    assert_int_equal(bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_set_is_there_until_it_is_forgotten),
        cmocka_unit_test(a_call_that_failed_changes_nothing),
        cmocka_unit_test(a_commit_names_each_changed_key_once),
        cmocka_unit_test(there_is_a_limit_and_beyond_it_nothing_changes),
        cmocka_unit_test(a_call_that_changes_much_stays_within_the_limit),
        cmocka_unit_test(random_steps_do_what_the_model_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
