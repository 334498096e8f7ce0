/* SPDX-License-Identifier: Apache-2.0 */
/* warm_up: what is forked afterwards must be whole, and hold nothing. */
#include "kafka/warm_up.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t count(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static size_t mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[4096];
    size_t n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        n += strstr(line, ".so") != NULL;
    fclose(file);
    return n;
}

static void it_loads_libraries_and_leaves_no_thread_and_no_descriptor(void **state)
{
    size_t threads = count("/proc/self/task"), fds = count("/proc/self/fd"), libs = mappings();

    (void)state;
    warm_up();
    assert_int_equal(count("/proc/self/task"), threads);
    assert_int_equal(count("/proc/self/fd"), fds);
    assert_true(mappings() > libs); /* the SASL library's modules */
    libs = mappings();
    warm_up();
    assert_int_equal(mappings(), libs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_loads_libraries_and_leaves_no_thread_and_no_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
