/* SPDX-License-Identifier: Apache-2.0 */
/* buf, map, queue, err. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/queue.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void buf_keeps_its_cap_and_remembers_failure(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 10);
    assert_int_equal(buf_puts(&b, "12345"), 0);
    assert_int_equal(buf_printf(&b, "%d", 678), 0);
    assert_int_equal(buf_puts(&b, "xyz"), MR_ERR_FULL);
    assert_true(b.failed);
    assert_string_equal(b.data, "12345678");
    assert_null(buf_take(&b));
    buf_consume(&b, 3);
    assert_string_equal(b.data, "45678");
    buf_reset(&b);
    assert_int_equal(buf_puts(&b, "1234567890"), 0);
    assert_int_equal(b.len, 10);
    buf_deinit(&b);
}

static void an_empty_buf_gives_empty_text(void **state)
{
    struct buf b;
    char *text;

    (void)state;
    buf_init(&b, 10);
    text = buf_take(&b);
    assert_string_equal(text, "");
    free(text);
}

static void map_behaves_like_a_list_of_pairs(void **state)
{
    struct map *m = map_new();
    char key[8];
    uintptr_t want[500] = {0};
    size_t live = 0;

    (void)state;
    srand(7);
    for (int i = 0; i < 20000; i++) {
        int k = rand() % 500;

        snprintf(key, sizeof(key), "k%d", k);
        if (rand() % 3 == 0) {
            assert_int_equal((uintptr_t)map_remove(m, key), want[k]);
            live -= want[k] != 0;
            want[k] = 0;
        } else {
            assert_int_equal((uintptr_t)map_set(m, key, (void *)(uintptr_t)(i + 1)), want[k]);
            live += want[k] == 0;
            want[k] = (uintptr_t)i + 1;
        }
        assert_int_equal(map_count(m), live);
    }
    for (int k = 0; k < 500; k++) {
        snprintf(key, sizeof(key), "k%d", k);
        assert_int_equal((uintptr_t)map_get(m, key), want[k]);
    }
    map_free(&m, NULL);
    assert_null(m);
}

static void map_iterates_in_order_and_allows_removal(void **state)
{
    struct map *m = map_new();
    const char *key;
    char order[16] = "";

    (void)state;
    map_set(m, "b", m), map_set(m, "a", m), map_set(m, "c", m);
    for (size_t i = 0; map_next(m, &i, &key, NULL);) {
        order[strlen(order)] = key[0];
        map_remove(m, key);
    }
    assert_string_equal(order, "bac");
    assert_int_equal(map_count(m), 0);
    map_free(&m, NULL);
}

static void queue_says_full_and_closed(void **state)
{
    struct queue *q = queue_new(2);
    int a;
    int64_t start = clock_ms();

    (void)state;
    assert_null(queue_pop(q, 20));
    assert_true(clock_ms() - start >= 19);
    assert_int_equal(queue_push(q, &a), 0);
    assert_int_equal(queue_push(q, q), 0);
    assert_int_equal(queue_push(q, &a), MR_ERR_FULL);
    queue_close(q);
    assert_int_equal(queue_push(q, &a), MR_ERR_CLOSED);
    assert_ptr_equal(queue_pop(q, -1), &a);
    assert_ptr_equal(queue_pop(q, -1), q);
    assert_null(queue_pop(q, -1));
    queue_free(&q, NULL);
}

static void *close_it(void *arg)
{
    queue_close(arg);
    return NULL;
}

static void closing_wakes_a_waiting_pop(void **state)
{
    struct queue *q = queue_new(1);
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, close_it, q);
    assert_null(queue_pop(q, -1));
    pthread_join(thread, NULL);
    queue_free(&q, free);
}

static void the_first_error_wins_and_takes_words_in_front(void **state)
{
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(mr_fail(&err, MR_ERR_DATA, "bad %d", 1), MR_ERR_DATA);
    assert_int_equal(mr_fail(&err, MR_ERR_IO, "later"), MR_ERR_DATA);
    err_prefix(&err, "line %d", 7);
    assert_string_equal(err.text, "line 7: bad 1");
    assert_int_equal(mr_fail(NULL, MR_ERR_IO, "x"), MR_ERR_IO);
    err_clear(&err);
    errno = ENOENT;
    assert_int_equal(err_errno(&err, "open %s", "f"), MR_ERR_IO);
    assert_string_equal(err.text, "open f: No such file or directory");
    assert_string_equal(err_code_name(MR_ERR_DATA), "DATA");
    assert_string_equal(err_code_name(-99), "FATAL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_keeps_its_cap_and_remembers_failure),
        cmocka_unit_test(an_empty_buf_gives_empty_text),
        cmocka_unit_test(map_behaves_like_a_list_of_pairs),
        cmocka_unit_test(map_iterates_in_order_and_allows_removal),
        cmocka_unit_test(queue_says_full_and_closed),
        cmocka_unit_test(closing_wakes_a_waiting_pop),
        cmocka_unit_test(the_first_error_wins_and_takes_words_in_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
