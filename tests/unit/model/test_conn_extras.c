/* SPDX-License-Identifier: Apache-2.0 */
/* conn_extras: no key of ours is read that the table does not have. Looked for in the sources, as
 * whoever adds one may not think of the table. */
#include "base/buf.h"
#include "base/file.h"
#include "model/conn_extras.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OURS "\"millrace."
#define LETTERS "abcdefghijklmnopqrstuvwxyz."

static struct buf worker_keys; /* the text of the table of what workers are told */
static size_t files, keys;

static void read_text(const char *path, struct buf *out)
{
    struct mr_error err = {0};

    buf_init(out, 1 << 20);
    assert_int_equal(file_read(path, out, &err), 0);
    buf_putc(out, '\0');
    assert_false(out->failed);
}

static void assert_known(const char *path, const char *name)
{
    char quoted[256], prefix[256];

    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    snprintf(prefix, sizeof(prefix), "\"%s.\"", name);
    keys++;
    if (conn_extras_find(name) == NULL && strstr(worker_keys.data, quoted) == NULL &&
        strstr(worker_keys.data, prefix) == NULL)
        fail_msg("%s: %s stands neither in conn_extras nor in worker_keys.c", path, name);
}

static int look(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    size_t len = strlen(path);
    struct buf text;

    (void)st;
    (void)at;
    if (kind != FTW_F || len < 2 || path[len - 2] != '.' || strchr("ch", path[len - 1]) == NULL)
        return 0;
    files++;
    read_text(path, &text);
    for (const char *p = strstr(text.data, OURS); p != NULL; p = strstr(p + 1, OURS)) {
        char name[128];

        snprintf(name, sizeof(name), "%.*s", (int)strspn(p + 1, LETTERS), p + 1);
        assert_known(path, name);
    }
    buf_deinit(&text);
    return 0;
}

static void every_key_of_ours_that_is_read_stands_in_a_table(void **state)
{
    (void)state;
    read_text(TEST_SOURCE "/runtime/worker/worker_keys.c", &worker_keys);
    assert_int_equal(nftw(TEST_SOURCE "/runtime", look, 16, FTW_PHYS), 0);
    assert_true(files > 100 && keys > 10);
    buf_deinit(&worker_keys);
}

static void what_is_no_key_of_ours_is_not_found(void **state)
{
    (void)state;
    assert_string_equal(conn_extras_find(CONN_EXTRAS_OUT_OF_RANGE)->name,
                        "millrace.offsets.out.of.range");
    assert_null(conn_extras_find("millrace.offsets"));
    assert_null(conn_extras_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_ours_that_is_read_stands_in_a_table),
        cmocka_unit_test(what_is_no_key_of_ours_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
