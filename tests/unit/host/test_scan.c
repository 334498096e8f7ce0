/* SPDX-License-Identifier: Apache-2.0 */
/* scan: the lines it prints, whatever the libraries do meanwhile. Run as a process of its own. */
#include "base/json.h"
#include "host_peer.h"
#include "link/scan_format.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIBRARY(name) TEST_BUILD "/tests/plugins/" name ".so"
#define LINES_MAX 32

struct scan {
    json_t *lines[LINES_MAX];
    size_t count;
    int status;
};

static int teardown(void **state)
{
    (void)state;
    unsetenv("HOSTILE_LOAD");
    unsetenv("ODD");
    return 0;
}

static pid_t spawn_scan(char *const *argv, int *out)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        setpgid(0, 0);
        dup2(fds[1], 1);
        dup2(null, 2);
        execv("/proc/self/exe", argv);
        _exit(99);
    }
    close(fds[1]);
    *out = fds[0];
    return pid;
}

static void take_lines(struct scan *scan, FILE *in)
{
    static char line[SCAN_FORMAT_LINE_MAX + 2];

    while (fgets(line, sizeof(line), in) != NULL) {
        struct mr_error err = {0};

        assert_true(scan->count < LINES_MAX);
        scan->lines[scan->count] = json_parse(line, strlen(line), &err);
        if (scan->lines[scan->count++] == NULL)
            fail_msg("%s: %.200s", err.text, line);
    }
}

static struct scan scan_of(const char *first, const char *second)
{
    char program[] = "millrace", verb[] = "scan";
    char *argv[] = {program, verb, strdup(first), second == NULL ? NULL : strdup(second), NULL};
    struct scan scan = {.count = 0};
    int out;
    pid_t pid = spawn_scan(argv, &out);
    FILE *in = fdopen(out, "r");

    take_lines(&scan, in);
    fclose(in);
    assert_int_equal(waitpid(pid, &scan.status, 0), pid);
    kill(-pid, SIGKILL); /* what a constructor has forked */
    free(argv[2]);
    free(argv[3]);
    return scan;
}

static const char *member(const struct scan *scan, size_t line, const char *key)
{
    const char *text;

    assert_true(line < scan->count);
    text = json_string_value(json_object_get(scan->lines[line], key));
    return text == NULL ? "" : text;
}

static void scan_end(struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        json_decref(scan->lines[i]);
}

static void plugins_are_printed_with_all_their_keys(void **state)
{
    struct scan scan = scan_of(LIBRARY("hostile"), NULL);
    json_t *plugins, *source, *key;

    (void)state;
    assert_int_equal(scan.status, 0);
    assert_int_equal(scan.count, 2);
    assert_true(json_is_true(json_object_get(scan.lines[0], "begin")));
    assert_string_equal(member(&scan, 0, "library"), LIBRARY("hostile"));
    assert_string_equal(member(&scan, 1, "library"), LIBRARY("hostile"));
    plugins = json_object_get(scan.lines[1], "plugins");
    assert_int_equal(json_array_size(plugins), 3);
    source = json_array_get(plugins, 0);
    assert_string_equal(json_string_value(json_object_get(source, "name")), "HostileSource");
    assert_string_equal(json_string_value(json_object_get(source, "version")), "1.0");
    assert_int_equal(json_integer_value(json_object_get(source, "kind")), 1);
    key = json_array_get(json_object_get(source, "keys"), 0);
    assert_string_equal(json_string_value(json_object_get(key, "name")), "topic");
    assert_string_equal(json_string_value(json_object_get(key, "fallback")), "hostile");
    assert_string_equal(json_string_value(json_object_get(key, "doc")), "Topic to write to");
    scan_end(&scan);
}

static void plugins_with_a_check_of_their_own_say_so(void **state)
{
    struct scan scan = scan_of(LIBRARY("picky"), NULL);
    json_t *plugins = json_object_get(scan.lines[1], "plugins"), *plugin;
    char names[200] = "";
    size_t i;

    (void)state;
    json_array_foreach(plugins, i, plugin)
    {
        if (json_is_true(json_object_get(plugin, "checks")))
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ",
                     json_string_value(json_object_get(plugin, "name")));
    }
    assert_string_equal(names, "Picky PickyPredicate PickyChecked PickyCheckedSink ");
    scan_end(&scan);
}

static void refused_library_is_one_line_and_the_next_one_is_read(void **state)
{
    struct scan scan = scan_of(LIBRARY("wrong_major"), LIBRARY("odd_descriptors"));

    (void)state;
    assert_int_equal(scan.status, 0);
    assert_int_equal(scan.count, 4);
    assert_string_equal(
        member(&scan, 1, "error"),
        "built for plugin ABI 1.3, this Millrace has 0.3: build the plugin with its headers");
    assert_int_equal(json_array_size(json_object_get(scan.lines[3], "plugins")), 1);
    scan_end(&scan);
}

static void set_load(const char *how, char *file, size_t size)
{
    FILE *f;

    snprintf(file, size, "/tmp/test-scan-%d", (int)getpid());
    f = fopen(file, "w");
    fputs(how, f);
    fclose(f);
    setenv("HOSTILE_LOAD", file, 1);
}

static void crash_is_laid_at_the_door_of_the_library_that_began(void **state)
{
    char file[100];
    struct scan scan;

    (void)state;
    set_load("segv", file, sizeof(file));
    scan = scan_of(LIBRARY("no_symbol"), LIBRARY("hostile"));
    unlink(file);
    assert_true(WIFSIGNALED(scan.status));
    assert_int_equal(scan.count, 3);
    assert_true(json_is_true(json_object_get(scan.lines[2], "begin")));
    assert_string_equal(member(&scan, 2, "library"), LIBRARY("hostile"));
    scan_end(&scan);
}

/* The flood goes where nobody takes it for an answer; a forked child does not keep the answers
 * open. */
static void what_a_constructor_prints_or_leaves_is_no_answer(void **state)
{
    static const char *const hows[] = {"flood", "fork-off", "threads"};

    (void)state;
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        char file[100];
        struct scan scan;

        set_load(hows[i], file, sizeof(file));
        scan = scan_of(LIBRARY("hostile"), NULL);
        unlink(file);
        assert_int_equal(scan.status, 0);
        assert_int_equal(scan.count, 2);
        assert_int_equal(json_array_size(json_object_get(scan.lines[1], "plugins")), 3);
        scan_end(&scan);
    }
}

static void usage_is_told(void **state)
{
    char program[] = "millrace", verb[] = "scan";
    char *argv[] = {program, verb, NULL};
    int out, status;
    pid_t pid = spawn_scan(argv, &out);

    (void)state;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 1);
    close(out);
}

#define scan_test(f) cmocka_unit_test_teardown(f, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scan_test(plugins_are_printed_with_all_their_keys),
        scan_test(plugins_with_a_check_of_their_own_say_so),
        scan_test(refused_library_is_one_line_and_the_next_one_is_read),
        scan_test(crash_is_laid_at_the_door_of_the_library_that_began),
        scan_test(what_a_constructor_prints_or_leaves_is_no_answer),
        scan_test(usage_is_told),
    };

    host_peer_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
