/* SPDX-License-Identifier: Apache-2.0 */
/* ghost: whose member may be made to leave, and nobody else's. */
#include "worker/group/ghost.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char path[128];

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/millrace-ghost-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/member", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ghost_remove(path);
    return rmdir(folder);
}

static void what_was_written_is_read_until_it_is_removed(void **state)
{
    char id[GHOST_ID_MAX];

    (void)state;
    assert_false(ghost_read(path, "g", id, sizeof(id)));
    assert_int_equal(ghost_write(path, "g", "me-\"1\"", NULL), 0);
    assert_true(ghost_read(path, "g", id, sizeof(id)));
    assert_string_equal(id, "me-\"1\"");
    assert_int_equal(ghost_write(path, "g", "me-2", NULL), 0);
    assert_true(ghost_read(path, "g", id, sizeof(id)));
    assert_string_equal(id, "me-2");
    assert_false(ghost_read(path, "other group", id, sizeof(id)));
    assert_false(ghost_read(path, "g", id, 4)); /* does not fit: none */
    ghost_remove(path);
    assert_false(ghost_read(path, "g", id, sizeof(id)));
}

/* A full disk takes part of it. */
static void a_record_that_was_written_in_part_says_why_and_replaces_nothing(void **state)
{
    struct rlimit before, ten;
    struct mr_error err = {0};
    char id[GHOST_ID_MAX], beside[160];

    (void)state;
    assert_int_equal(ghost_write(path, "g", "me-1", NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    ten = (struct rlimit){10, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    errno = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &ten), 0);
    assert_int_equal(ghost_write(path, "g", "me-2", &err), MR_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(err.text, "No space left on device"));
    assert_true(ghost_read(path, "g", id, sizeof(id)));
    assert_string_equal(id, "me-1");
    snprintf(beside, sizeof(beside), "%s.tmp", path);
    unlink(beside);
}

/* Who holds the folder's lock is its writer's successor, also when the machine was started
 * meanwhile. */
static void a_record_of_before_the_machine_started_counts(void **state)
{
    const char *text = "{\"group\":\"g\",\"member\":\"m\",\"boot\":\"another\"}";
    char id[GHOST_ID_MAX];

    (void)state;
    assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), 0);
    assert_true(ghost_read(path, "g", id, sizeof(id)));
    assert_string_equal(id, "m");
}

static void odd_files_are_none(void **state)
{
    static const char *const odd[] = {"",
                                      "x",
                                      "[]",
                                      "{}",
                                      "{\"group\":\"g\",\"member\":7}",
                                      "{\"group\":\"g\",\"member\":\"\",\"boot\":\"\"}"};
    char id[GHOST_ID_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_int_equal(file_write_atomic(path, odd[i], strlen(odd[i]), NULL), 0);
        assert_false(ghost_read(path, "g", id, sizeof(id)));
    }
}

static void a_folder_that_is_not_there_is_an_error_in_words(void **state)
{
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(ghost_write("/nowhere/member", "g", "m", &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/member"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_was_written_is_read_until_it_is_removed),
        T(a_record_of_before_the_machine_started_counts),
        T(a_record_that_was_written_in_part_says_why_and_replaces_nothing),
        T(odd_files_are_none),
        T(a_folder_that_is_not_there_is_an_error_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
