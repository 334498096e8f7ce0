/* SPDX-License-Identifier: Apache-2.0 */
/* FileStreamSink with its offsets beside the file: killed at each of its system calls in turn, two
 * at one file, offsets changed by the user, and files that are not what they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/unit/plugin_host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED 9
#define RECORDS 9 /* "0" … "8" stand in partition t-0 */
#define BATCH 3

/* --- dying at a system call ------------------------------------------------------------------- */

static int calls_left = -1; /* until this process dies; -1: it does not */

static bool last_call(void)
{
    return calls_left > 0 && --calls_left == 0;
}

ssize_t __real_write(int fd, const void *p, size_t len);
int __real_ftruncate(int fd, off_t size);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
ssize_t __wrap_write(int fd, const void *p, size_t len);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

ssize_t __wrap_write(int fd, const void *p, size_t len)
{
    if (last_call()) {
        (void)!__real_write(fd, p, len / 2);
        _exit(KILLED);
    }
    return __real_write(fd, p, len);
}

int __wrap_ftruncate(int fd, off_t size)
{
    if (last_call())
        _exit(KILLED);
    return __real_ftruncate(fd, size);
}

int __wrap_fdatasync(int fd)
{
    if (last_call())
        _exit(KILLED);
    return __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
    if (last_call())
        _exit(KILLED);
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    if (last_call())
        _exit(KILLED);
    return __real_rename(from, to);
}

/* --- the sink on a file of its own ------------------------------------------------------------ */

struct rig {
    char folder[64];
    char file[96];
    char offsets[112];
};

/* A task: the plugin, and what its framework knows. */
struct task {
    struct plugin_host h;
    struct mr_partition part;
    struct mr_partition_list list;
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    snprintf(rig->folder, sizeof(rig->folder), "/tmp/millrace-once-XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->file, sizeof(rig->file), "%s/out.txt", rig->folder);
    snprintf(rig->offsets, sizeof(rig->offsets), "%s.offsets", rig->file);
    calls_left = -1;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    char other[128];

    unlink(rig->file);
    unlink(rig->offsets);
    snprintf(other, sizeof(other), "%s.new", rig->offsets);
    unlink(other);
    snprintf(other, sizeof(other), "%s.moved", rig->file);
    unlink(other);
    rmdir(rig->folder);
    free(rig);
    return 0;
}

static int open_task(struct task *t, const struct rig *rig)
{
    const char *keys[] = {"file", rig->file, "millrace.file.exactly.once", "true", NULL};
    int rc = plugin_host_open(&t->h, "FileStreamSink", keys);

    t->part = (struct mr_partition){"t", 0, 0, -1};
    t->list = (struct mr_partition_list){.host = &host_api_table,
                                         .parts = (char *)&t->part,
                                         .part_size = sizeof(t->part),
                                         .count = 1};
    return rc != 0 ? rc : t->h.plugin->sink.open(t->h.inst.self, &t->list, &t->h.err);
}

/* The records from … to - 1, and the offset behind them. */
static int put(struct task *t, int64_t from, int64_t to)
{
    char text[24];
    int rc;

    for (int64_t i = from; i < to; i++) {
        int len = snprintf(text, sizeof(text), "%lld", (long long)i);

        plugin_host_add(&t->h, mr_text_copy(plugin_host_arena(&t->h), text, (size_t)len));
    }
    t->part.offset = to;
    t->h.batch->pub.offsets = &t->list;
    rc = plugin_host_put(&t->h);
    plugin_host_next(&t->h);
    if (rc == 0)
        t->part.stored = to;
    return rc;
}

static void put_rest(struct task *t)
{
    int64_t from = t->part.stored < 0 ? 0 : t->part.stored;

    for (; from < RECORDS; from += BATCH)
        assert_int_equal(put(t, from, from + BATCH), 0);
}

static void expect_file(const char *path, const char *text)
{
    char made[1024] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, made, sizeof(made) - 1);

    close(fd);
    assert_true(n >= 0);
    assert_string_equal(made, text);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* A life of the sink that ends at the given system call; false: it lived longer. */
static bool live_and_die(const struct rig *rig, int calls)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct task t = {0};

        calls_left = calls;
        if (open_task(&t, rig) != 0)
            _exit(1);
        put_rest(&t);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != KILLED)
        assert_int_equal(WEXITSTATUS(status), 0);
    return WEXITSTATUS(status) == KILLED;
}

/* Twice: what was left behind is mended by a life that ends in the middle of that, too. */
static void wherever_it_is_killed_each_line_is_there_once(void **state)
{
    struct rig *rig = *state;
    int first = 1;

    for (bool died = true; died; first++)
        for (int second = 1; second < 6; second++) {
            struct task t = {0};

            unlink(rig->file);
            unlink(rig->offsets);
            died = live_and_die(rig, first);
            live_and_die(rig, second);
            assert_int_equal(open_task(&t, rig), 0);
            put_rest(&t);
            plugin_host_close(&t.h);
            expect_file(rig->file, "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
        }
    assert_true(first > 12);
}

static void of_two_tasks_with_one_partition_the_later_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct task one = {0}, other = {0};

    assert_int_equal(open_task(&one, rig), 0);
    assert_int_equal(open_task(&other, rig), 0);
    assert_int_equal(put(&one, 0, 3), 0);
    assert_int_equal(put(&other, 0, 2), MR_ERR_STALE);
    assert_non_null(
        strstr(other.h.err.text, "has offset 3 for t-0, not -1: another task was there"));
    expect_file(rig->file, "0\n1\n2\n");
    assert_int_equal(other.h.plugin->sink.open(other.h.inst.self, &other.list, &other.h.err), 0);
    assert_int_equal(other.part.stored, 3);
    assert_int_equal(put(&other, 3, 5), 0);
    assert_int_equal(put(&one, 3, 4), MR_ERR_STALE);
    expect_file(rig->file, "0\n1\n2\n3\n4\n");
    plugin_host_close(&one.h);
    plugin_host_close(&other.h);
}

static void partitions_of_several_tasks_share_the_file(void **state)
{
    struct rig *rig = *state;
    struct task one = {0}, other = {0};

    assert_int_equal(open_task(&one, rig), 0);
    assert_int_equal(open_task(&other, rig), 0);
    other.part.partition = 1;
    assert_int_equal(put(&one, 0, 2), 0);
    assert_int_equal(put(&other, 7, 8), 0);
    assert_int_equal(put(&one, 2, 3), 0);
    expect_file(rig->file, "0\n1\n7\n2\n");
    expect_file(rig->offsets, "millrace-offsets 1 8\nt 0 3\nt 1 8\nend\n");
    plugin_host_close(&one.h);
    plugin_host_close(&other.h);
}

static void what_the_file_had_before_stays(void **state)
{
    struct rig *rig = *state;
    struct task t = {0};

    write_file(rig->file, "old\n");
    assert_int_equal(open_task(&t, rig), 0);
    assert_int_equal(t.part.stored, -1);
    put_rest(&t);
    plugin_host_close(&t.h);
    expect_file(rig->file, "old\n0\n1\n2\n3\n4\n5\n6\n7\n8\n");
}

static void offsets_alone_are_stored_too(void **state)
{
    struct rig *rig = *state;
    struct task t = {0};

    assert_int_equal(open_task(&t, rig), 0);
    assert_int_equal(put(&t, 5, 5), 0);
    expect_file(rig->offsets, "millrace-offsets 1 0\nt 0 5\nend\n");
    plugin_host_close(&t.h);
}

static void the_user_may_change_and_forget_them(void **state)
{
    struct rig *rig = *state;
    struct task t = {0};

    assert_int_equal(open_task(&t, rig), 0);
    put_rest(&t);
    t.part.offset = 4;
    assert_int_equal(t.h.plugin->sink.alter_offsets(&t.h.inst.pub, &t.list, &t.h.err), 0);
    expect_file(rig->offsets, "millrace-offsets 1 18\nt 0 4\nend\n");
    t.part.offset = -1;
    assert_int_equal(t.h.plugin->sink.alter_offsets(&t.h.inst.pub, &t.list, &t.h.err), 0);
    expect_file(rig->offsets, "millrace-offsets 1 18\nend\n");
    t.part.stored = -1;
    assert_int_equal(put(&t, 2, 3), 0);
    t.list.count = 0;
    t.list.all = true;
    assert_int_equal(t.h.plugin->sink.alter_offsets(&t.h.inst.pub, &t.list, &t.h.err), 0);
    expect_file(rig->offsets, "millrace-offsets 1 20\nend\n");
    plugin_host_close(&t.h);
}

static void fails_with(const struct rig *rig, const char *text)
{
    struct task t = {0};

    assert_int_not_equal(open_task(&t, rig), 0);
    if (strstr(t.h.err.text, text) == NULL)
        fail_msg("%s", t.h.err.text);
    plugin_host_close(&t.h);
}

static void a_file_that_is_not_what_it_was_is_refused(void **state)
{
    static const char *const damaged[] = {
        "",
        "millrace-offsets 2 3\nend\n",
        "millrace-offsets 1 3\nt 0 3\n",
        "millrace-offsets 1 3\nt 0 -3\nend\n",
        "millrace-offsets 1 3\nt 0 3\nt 0 4\nend\n",
        "millrace-offsets 1 99999999999999999999\nend\n",
        "millrace-offsets 1 3\nt 0 3\nend\nmore",
        "millrace-offsets 1 3\nt 9999999999 3\nend\n",
    };
    struct rig *rig = *state;

    write_file(rig->file, "0\n1\n");
    write_file(rig->offsets, "millrace-offsets 1 6\nt 0 3\nend\n");
    fails_with(rig, "has 4 bytes, of which 6 are committed");
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        write_file(rig->offsets, damaged[i]);
        fails_with(rig, "was not written by this sink, or is damaged");
    }
    expect_file(rig->file, "0\n1\n");
}

static void a_file_that_is_moved_away_meanwhile_fails_the_task(void **state)
{
    struct rig *rig = *state;
    struct task t = {0};
    char moved[128];

    assert_int_equal(open_task(&t, rig), 0);
    assert_int_equal(put(&t, 0, 3), 0);
    snprintf(moved, sizeof(moved), "%s.moved", rig->file);
    assert_int_equal(rename(rig->file, moved), 0);
    assert_int_equal(put(&t, 3, 6), MR_ERR_FATAL);
    assert_non_null(strstr(t.h.err.text, "was renamed or removed"));
    expect_file(moved, "0\n1\n2\n");
    plugin_host_close(&t.h);
}

static void it_needs_a_regular_file(void **state)
{
    const char *keys[] = {"file", "/dev/null", "millrace.file.exactly.once", "true", NULL};
    const char *none[] = {"millrace.file.exactly.once", "true", NULL};
    struct plugin_host h = {0};

    (void)state;
    assert_int_equal(plugin_host_open(&h, "FileStreamSink", keys), MR_ERR_CONFIG);
    assert_non_null(strstr(h.err.text, "needs a regular file: /dev/null is none"));
    plugin_host_close(&h);
    assert_int_equal(plugin_host_open(&h, "FileStreamSink", none), MR_ERR_CONFIG);
    assert_non_null(strstr(h.err.text, "needs a regular file: stdout is none"));
    plugin_host_close(&h);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(wherever_it_is_killed_each_line_is_there_once),
        T(of_two_tasks_with_one_partition_the_later_changes_nothing),
        T(partitions_of_several_tasks_share_the_file),
        T(what_the_file_had_before_stays),
        T(offsets_alone_are_stored_too),
        T(the_user_may_change_and_forget_them),
        T(a_file_that_is_not_what_it_was_is_refused),
        T(a_file_that_is_moved_away_meanwhile_fails_the_task),
        T(it_needs_a_regular_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
