/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of work put together and taken apart, held against the slow way; and how long a list that
 * is read may be. */
#include "worker/group/connect_protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define NAMES 6
#define TASKS 4

static const char *name_of(int i)
{
    static char name[16];

    snprintf(name, sizeof(name), "c%d", i);
    return name;
}

/* Some items of a few names; now and then a name has a second entry. */
static struct work_list some(void)
{
    struct work_list list = {0};

    for (int i = rand() % 12; i > 0; i--) {
        const char *name = name_of(rand() % NAMES);

        if (rand() % 4 == 0)
            assert_non_null(work_list_open(&list, name, strlen(name)));
        assert_int_equal(work_list_add(&list, name, rand() % TASKS - 1), 0);
    }
    return list;
}

static size_t times(const struct work_list *list, const char *conn, int task)
{
    size_t n = 0;

    for (size_t i = 0; i < list->count; i++)
        for (size_t t = 0; t < list->entries[i].count; t++)
            n += strcmp(list->entries[i].conn, conn) == 0 && list->entries[i].tasks[t] == task;
    return n;
}

static void merged_has_both_and_subtracted_none_of_the_other(void **state)
{
    (void)state;
    srand(4711);
    for (int round = 0; round < 2000; round++) {
        struct work_list a = some(), b = some(), both = {0}, rest = {0};

        assert_int_equal(work_list_copy(&both, &a), 0);
        assert_int_equal(work_list_merge(&both, &b), 0);
        assert_int_equal(work_list_copy(&rest, &a), 0);
        assert_int_equal(work_list_subtract(&rest, &b), 0);
        for (int i = 0; i < NAMES * TASKS; i++) {
            const char *name = name_of(i / TASKS);
            int task = i % TASKS - 1;
            bool in_a = work_list_has(&a, name, task), in_b = work_list_has(&b, name, task);

            assert_int_equal(work_list_has(&both, name, task), in_a || in_b);
            assert_int_equal(times(&rest, name, task), in_b ? 0 : times(&a, name, task));
        }
        work_list_deinit(&a);
        work_list_deinit(&b);
        work_list_deinit(&both);
        work_list_deinit(&rest);
    }
}

/* As many as a list that is read may have, of names of their own. */
static void the_longest_lists_are_put_together_and_taken_apart(void **state)
{
    struct work_list list = {0}, other = {0};

    (void)state;
    for (int i = 0; i < (int)CONNECT_PROTOCOL_MAX_ITEMS; i++) {
        const char *name = name_of(i);

        assert_int_equal(work_list_push(&other, work_list_open(&other, name, strlen(name)), 0), 0);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(work_list_merge(&list, &other), 0);
        assert_int_equal(list.items, CONNECT_PROTOCOL_MAX_ITEMS);
        assert_int_equal(work_list_subtract(&list, &other), 0);
        assert_int_equal(list.items, 0);
    }
    work_list_deinit(&list);
    work_list_deinit(&other);
}

static int read_back(const struct work_list *list, struct mr_error *err)
{
    struct connect_assignment written = {.version = 1, .assigned = *list}, got;
    struct buf bytes;
    int rc;

    buf_init(&bytes, CONNECT_PROTOCOL_MAX_BYTES);
    assert_int_equal(connect_protocol_write_assignment(&bytes, &written), 0);
    rc = connect_protocol_read_assignment(bytes.data, bytes.len, false, &got, err);
    if (rc == 0)
        connect_protocol_assignment_deinit(&got);
    buf_deinit(&bytes);
    return rc;
}

static void longer_ones_are_not_read(void **state)
{
    struct work_list list = {0};
    struct work_entry *entry = work_list_open(&list, "c", 1);
    struct mr_error err = {0};

    (void)state;
    for (int i = 0; i < (int)CONNECT_PROTOCOL_MAX_ITEMS; i++)
        assert_int_equal(work_list_push(&list, entry, i), 0);
    assert_int_equal(read_back(&list, &err), 0);
    assert_int_equal(work_list_push(&list, entry, (int)CONNECT_PROTOCOL_MAX_ITEMS), 0);
    assert_int_equal(read_back(&list, &err), MR_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "too many"));
    work_list_deinit(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_has_both_and_subtracted_none_of_the_other),
        cmocka_unit_test(the_longest_lists_are_put_together_and_taken_apart),
        cmocka_unit_test(longer_ones_are_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
