/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_load and descriptor: every way in which a library can be wrong is one sentence, and none
 * is a crash. The libraries are those of tests/plugins. */
#include "host/plugin_load.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIBRARY(name) TEST_BUILD "/tests/plugins/" name ".so"
#define ODD LIBRARY("odd_descriptors")

static char scratch[] = "/tmp/test-plugin-load-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(scratch) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(scratch);
}

static void assert_says(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void assert_refused(const char *path, const char *words)
{
    struct mr_error err = {0};
    size_t count = 77;

    assert_null(plugin_load(path, &count, &err));
    assert_int_equal(count, 77);
    assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
    assert_null(strchr(err.text, '\n'));
    assert_says(err.text, words);
}

/* A library's statics can be odd in one way per process only. What `look` writes comes back as
 * text. */
static void in_process_of_its_own(const char *odd, void (*look)(FILE *out), char *out, size_t size)
{
    int fds[2];
    int status;
    ssize_t n;
    size_t len = 0;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        FILE *f = fdopen(fds[1], "w");

        setenv("ODD", odd, 1);
        look(f);
        fclose(f);
        _exit(0);
    }
    close(fds[1]);
    while ((n = read(fds[0], out + len, size - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: the loader died with status 0x%x", odd, status);
}

static void look_at_odd(FILE *out)
{
    struct mr_error err = {0};
    size_t count = 0;
    const struct plugin *plugins = plugin_load(ODD, &count, &err);

    if (plugins == NULL)
        fprintf(out, "%s", err.text);
    for (size_t i = 0; plugins != NULL && i < count; i++)
        fprintf(out, "%s %s keys=%zu size=%zu committed=%d\n", plugins[i].name, plugins[i].version,
                plugins[i].key_count, plugins[i].state_size, plugins[i].source.committed != NULL);
}

static void good_library_is_copied(void **state)
{
    char seen[2000];

    (void)state;
    in_process_of_its_own("", look_at_odd, seen, sizeof(seen));
    assert_string_equal(seen, "Odd 1.0 keys=1 size=0 committed=0\n");
}

static void odd_descriptors_are_refused_with_a_sentence(void **state)
{
    static const struct {
        const char *odd;
        const char *words;
    } cases[] = {
        {"null", "millrace_module gives NULL"},
        {"wild", "millrace_module gives a pointer to no readable memory"},
        {"module-size", "module's size of 8 bytes"},
        {"no-plugins", "names 0 plugins"},
        {"many-plugins", "names 100000 plugins, 1 to 256"},
        {"wild-list", "the module's plugins point to no readable memory"},
        {"wild-plugin", "descriptor 0: points to no readable memory"},
        {"null-plugin", "descriptor 0: points to no readable memory"},
        {"size-zero", "descriptor 0: its size of 0 bytes"},
        {"size-huge", "descriptor 0: its size of 2147483647 bytes"},
        {"too-short", "plugin Odd: this source has no poll"},
        {"no-poll", "plugin Odd: this source has no poll"},
        {"no-name", "its name is empty or no class name"},
        {"empty-name", "its name is empty or no class name"},
        {"bad-name", "its name is empty or no class name"},
        {"wild-name", "its name points to no readable memory"},
        {"key-size", "plugin Odd: its key_size of 3"},
        {"wild-keys", "plugin Odd: its keys point to no readable memory"},
        {"twice", "plugin Odd: key topic is there twice"},
        {"type", "plugin Odd: key topic has the unknown type 77"},
        {"default",
         "plugin Odd: key size has a bad default: Invalid value many for configuration size"},
        {"state", "plugin Odd: its state_size of 1099511627776 bytes is above"},
        {"aliases", "plugin Odd: its aliases have no NULL"},
        {"version", "plugin Odd: its version is not UTF-8"},
        {"double", "plugin Odd: is there twice"},
        {"storing-key", "plugin Odd: its stores_offsets is the name of no BOOLEAN key"},
        {"storing", "plugin Odd: a sink with stores_offsets needs open and alter_offsets"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char seen[2000];

        in_process_of_its_own(cases[i].odd, look_at_odd, seen, sizeof(seen));
        assert_says(seen, cases[i].words);
        assert_null(strchr(seen, '\n'));
    }
}

static void later_and_earlier_structs_are_taken(void **state)
{
    char seen[2000];

    (void)state;
    in_process_of_its_own("long", look_at_odd, seen, sizeof(seen));
    assert_string_equal(seen, "Odd 1.0 keys=2 size=0 committed=0\n");
    /* what the size does not cover counts as NULL, although there are bytes */
    in_process_of_its_own("short", look_at_odd, seen, sizeof(seen));
    assert_string_equal(seen, "Odd 1.0 keys=1 size=0 committed=0\n");
}

static void unknown_kind_is_left_out(void **state)
{
    char seen[2000];

    (void)state;
    in_process_of_its_own("unknown-kind", look_at_odd, seen, sizeof(seen));
    assert_string_equal(seen, "Odd 1.0 keys=1 size=0 committed=0\n");
}

static void mismatches_are_refused(void **state)
{
    (void)state;
    assert_refused(LIBRARY("wrong_magic"),
                   "millrace_module gives magic 0x12345678 in place of 0x3152524d");
    assert_refused(LIBRARY("wrong_major"), "built for plugin ABI 1.3, this Millrace has 0.3");
    assert_refused(LIBRARY("minor_too_new"), "needs plugin ABI 0.4, this Millrace has 0.3");
    assert_refused(LIBRARY("no_symbol"), "exports no millrace_module");
}

static void files_that_are_no_library_are_refused(void **state)
{
    char path[200];
    int fd;

    (void)state;
    snprintf(path, sizeof(path), "%s/text.so", scratch);
    assert_refused(path, "No such file");
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "INPUT(libc.so.6)\n", 17), 17);
    close(fd);
    assert_refused(path, "not an ELF file");
    unlink(path);
    assert_refused(scratch, "not a file");
}

static void library_that_was_cut_off_is_refused(void **state)
{
    static const off_t cuts[] = {3, 20, 100, 4096};
    char path[200];
    char command[600];

    (void)state;
    snprintf(path, sizeof(path), "%s/cut.so", scratch);
    snprintf(command, sizeof(command), "cp %s %s", LIBRARY("hostile"), path);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        assert_int_equal(system(command), 0);
        assert_int_equal(truncate(path, cuts[i]), 0);
        assert_refused(path, i == 0 || i == 1 ? "" : "truncated ELF file");
    }
    unlink(path);
}

/* dlopen's own refusals come through as they are: here one that needs a symbol nobody has. */
static void undefined_symbol_is_named(void **state)
{
    char path[200];
    char command[900];

    (void)state;
    snprintf(path, sizeof(path), "%s/undefined.so", scratch);
    snprintf(command, sizeof(command),
             "printf 'extern int nobody_has_this(void); int x(void); int x(void) { return "
             "nobody_has_this(); }' | "
             "cc -shared -fPIC -x c - -o %s",
             path);
    assert_int_equal(system(command), 0);
    assert_refused(path, "cannot be loaded: ");
    assert_refused(path, "nobody_has_this");
    unlink(path);
}

static void same_path_is_opened_once(void **state)
{
    struct mr_error err = {0};
    size_t a = 0, b = 0;
    const struct plugin *first = plugin_load(LIBRARY("hostile"), &a, &err);

    (void)state;
    assert_non_null(first);
    assert_int_equal(a, 3);
    assert_ptr_equal(plugin_load(LIBRARY("hostile"), &b, &err), first);
    assert_int_equal(b, a);
}

static void plugins_are_found_by_kind_and_name(void **state)
{
    struct mr_error err = {0};
    const struct plugin *p =
        plugin_load_find(LIBRARY("hostile"), MR_PLUGIN_SINK, "HostileSink", &err);

    (void)state;
    assert_non_null(p);
    assert_int_equal(p->kind, MR_PLUGIN_SINK);
    assert_ptr_equal(plugin_load_find(LIBRARY("hostile"), 0, "HostileSink", &err), p);
    assert_null(plugin_load_find(LIBRARY("hostile"), 0, "HostileSinkConnector", &err));
    assert_non_null(
        plugin_load_find(LIBRARY("hostile"), MR_PLUGIN_CONVERTER, "HostileConverter", &err));
    err_clear(&err);
    assert_null(plugin_load_find(LIBRARY("hostile"), MR_PLUGIN_SOURCE, "HostileSink", &err));
    assert_int_equal(err.code, MR_ERR_NOT_FOUND);
    assert_says(err.text, "holds no connector called HostileSink");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_library_is_copied),
        cmocka_unit_test(odd_descriptors_are_refused_with_a_sentence),
        cmocka_unit_test(later_and_earlier_structs_are_taken),
        cmocka_unit_test(unknown_kind_is_left_out),
        cmocka_unit_test(mismatches_are_refused),
        cmocka_unit_test(files_that_are_no_library_are_refused),
        cmocka_unit_test(library_that_was_cut_off_is_refused),
        cmocka_unit_test(undefined_symbol_is_named),
        cmocka_unit_test(same_path_is_opened_once),
        cmocka_unit_test(plugins_are_found_by_kind_and_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
