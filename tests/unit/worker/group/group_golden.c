/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the recordings in tests/data/group/ for the tests of this folder. */
#include "group_golden.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int golden_each(const char *name, void (*fn)(const json_t *line, void *arg), void *arg)
{
    struct buf data;
    char path[512];
    int lines = 0;

    buf_init(&data, 16 << 20);
    snprintf(path, sizeof(path), "%s/tests/data/group/%s", TEST_SOURCE, name);
    assert_int_equal(file_read(path, &data, NULL), 0);
    for (char *line = data.data, *end; line != NULL && *line != '\0'; line = end) {
        json_t *object;

        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        object = json_loads(line, 0, NULL);
        assert_non_null(object);
        fn(object, arg);
        json_decref(object);
        lines++;
    }
    buf_deinit(&data);
    return lines;
}

const char *golden_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int64_t golden_int(const json_t *object, const char *key, int64_t absent)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? (int64_t)json_integer_value(value) : absent;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

void golden_hex(const json_t *object, const char *key, struct buf *out)
{
    const char *hex = golden_text(object, key);

    assert_non_null(hex);
    for (; hex[0] != '\0'; hex += 2)
        buf_putc(out, (char)(digit(hex[0]) * 16 + digit(hex[1])));
    assert_false(out->failed);
}

void golden_list(const json_t *object, struct work_list *out)
{
    const char *conn;
    json_t *tasks;

    json_object_foreach((json_t *)object, conn, tasks) for (size_t i = 0;
                                                            i < json_array_size(tasks); i++)
        assert_int_equal(
            work_list_add(out, conn, (int32_t)json_integer_value(json_array_get(tasks, i))), 0);
}

static void print_list(const char *title, const struct work_list *list)
{
    print_error("  %s:", title);
    for (size_t i = 0; i < list->count; i++)
        for (size_t t = 0; t < list->entries[i].count; t++)
            print_error(" %s/%d", list->entries[i].conn, list->entries[i].tasks[t]);
    print_error("\n");
}

void golden_assert_same(const char *where, const json_t *expected, const struct work_list *got)
{
    struct work_list wanted = {0};
    bool same;

    golden_list(expected, &wanted);
    same = work_list_same(&wanted, got) && wanted.items == got->items;
    if (!same) {
        print_error("%s\n", where);
        print_list("expected", &wanted);
        print_list("got", got);
    }
    work_list_deinit(&wanted);
    assert_true(same);
}
