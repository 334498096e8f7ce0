/* SPDX-License-Identifier: Apache-2.0 */
/* log (relayed lines, one event one line, never blocking) and file (caps, atomic replacement,
 * locks). */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void relayed_lines_come_apart_as_they_went_in(void **state)
{
    int fds[2];
    char line[500];
    struct log_relayed r;
    ssize_t n;

    (void)state;
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    log_relay_to(fds[1]);
    log_write_for(LOG_WARN, "host.task", "c", 3, "two\nlines\tand \x01");
    log_relay_to(-1);
    n = read(fds[0], line, sizeof(line) - 1);
    assert_true(n > 0 && line[n - 1] == '\n');
    line[n - 1] = '\0';
    assert_null(strchr(line, '\n'));
    assert_true(log_parse_relayed(line, &r));
    assert_int_equal(r.level, LOG_WARN);
    assert_string_equal(r.logger, "host.task");
    assert_int_equal(r.task, 3);
    assert_string_equal(r.message, "two\\nlines\\tand \\x01");
    close(fds[0]), close(fds[1]);
}

static void other_lines_are_not_taken_for_relayed_ones(void **state)
{
    char lines[][40] = {"",
                        "hello",
                        "\x01",
                        "\x01"
                        "9\ta\t1\tx",
                        "\x01"
                        "2\ta",
                        "\x01"
                        "2\t\t1\tx",
                        "\x01"
                        "2\ta\tx\tx",
                        "\x01"
                        "2\ta\t-2\tx"};
    struct log_relayed r;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_false(log_parse_relayed(lines[i], &r));
}

static void a_full_pipe_drops_and_counts(void **state)
{
    int fds[2];
    uint64_t before = log_dropped();

    (void)state;
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    log_relay_to(fds[1]);
    for (int i = 0; i < 5000; i++)
        log_write(LOG_ERROR, "t", "%0100d", i);
    log_relay_to(-1);
    assert_true(log_dropped() - before > 1000);
    close(fds[0]), close(fds[1]);
}

/* A blocking pipe whose reader sleeps must not hold up who logs, and the gap must be told. */
static void a_stalled_reader_costs_no_time_and_is_told_of_the_gap(void **state)
{
    int fds[2];
    int saved = dup(STDERR_FILENO);
    char text[100000];
    int64_t start = clock_ms();
    ssize_t n;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    for (int i = 0; i < 2000; i++)
        log_write(LOG_ERROR, "t", "%0100d", i);
    assert_true(clock_ms() - start < 5000);
    n = read(fds[0], text, sizeof(text));
    assert_true(n > 10000);
    log_write(LOG_INFO, "t", "after the gap");
    dup2(saved, STDERR_FILENO);
    n = read(fds[0], text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_non_null(strstr(text, "lines were dropped"));
    assert_non_null(strstr(strstr(text, "lines were dropped"), "after the gap"));
    close(saved), close(fds[0]), close(fds[1]);
}

static char folder[] = "/tmp/test-file-XXXXXX";

static void path_in(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static void files_are_replaced_whole_and_read_with_a_cap(void **state)
{
    char path[200];
    struct buf b;
    struct mr_error err = {0};

    (void)state;
    path_in(path, sizeof(path), "f");
    buf_init(&b, 5);
    assert_int_equal(file_read(path, &b, &err), MR_ERR_NOT_FOUND);
    assert_int_equal(file_write_atomic(path, "12345", 5, NULL), 0);
    assert_int_equal(file_write_atomic(path, "abc", 3, NULL), 0);
    assert_int_equal(file_read(path, &b, NULL), 0);
    assert_string_equal(b.data, "abc");
    buf_reset(&b);
    assert_int_equal(file_write_atomic(path, "123456", 6, NULL), 0);
    err_clear(&err);
    assert_int_equal(file_read(path, &b, &err), MR_ERR_TOO_LARGE);
    err_clear(&err);
    assert_int_equal(file_read(folder, &b, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
    err_clear(&err);
    assert_int_equal(file_write_atomic("/nowhere/at/all", "x", 1, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    unlink(path);
    buf_deinit(&b);
}

static void a_lock_names_its_holder_and_ends_with_it(void **state)
{
    char path[200];
    int fds[2];
    int fd = -1;
    int64_t pid = 0;
    char c;
    pid_t child;

    (void)state;
    path_in(path, sizeof(path), "lock");
    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0) {
        int held;

        if (file_lock(path, &held, &pid, NULL) != 0 || write(fds[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(file_lock(path, &fd, &pid, NULL), MR_ERR_EXISTS);
    assert_int_equal(pid, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(file_lock(path, &fd, &pid, NULL), 0);
    close(fd), close(fds[0]), close(fds[1]);
    unlink(path);
}

/* Take the lock, see that nobody else has it, remove it; many times. */
static int take_turns(const char *path, const char *mark)
{
    for (int taken = 0; taken < 200;) {
        int64_t pid;
        int fd = -1, rc = file_lock(path, &fd, &pid, NULL);

        if (rc == MR_ERR_EXISTS)
            continue;
        if (rc != 0)
            return 1;
        if (open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) < 0)
            return 2;
        taken++;
        unlink(mark);
        file_unlock(path, &fd);
    }
    return 0;
}

static void a_lock_that_is_removed_at_its_end_has_one_holder(void **state)
{
    char path[200], mark[200];
    pid_t children[3];
    int status, worst = 0;

    (void)state;
    path_in(path, sizeof(path), "turns");
    path_in(mark, sizeof(mark), "mark");
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(take_turns(path, mark));
    }
    for (int i = 0; i < 3; i++) {
        waitpid(children[i], &status, 0);
        worst = WEXITSTATUS(status) > worst ? WEXITSTATUS(status) : worst;
    }
    unlink(mark);
    assert_int_equal(worst, 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void another_s_lock_file_is_not_removed(void **state)
{
    char path[200];
    int64_t pid;
    int fd, other;

    (void)state;
    path_in(path, sizeof(path), "lock");
    assert_int_equal(file_lock(path, &fd, &pid, NULL), 0);
    assert_int_equal(unlink(path), 0);
    other = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    file_unlock(path, &fd);
    assert_int_equal(fd, -1);
    assert_int_equal(unlink(path), 0);
    close(other);
}

static void folders_are_made_with_their_parents(void **state)
{
    char path[200];
    struct stat st;

    (void)state;
    path_in(path, sizeof(path), "a/b/c");
    assert_int_equal(file_mkdirs(path, NULL), 0);
    assert_int_equal(file_mkdirs(path, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    path_in(path, sizeof(path), "a/b/c");
    rmdir(path);
    path_in(path, sizeof(path), "a/b");
    rmdir(path);
    path_in(path, sizeof(path), "a");
    rmdir(path);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relayed_lines_come_apart_as_they_went_in),
        cmocka_unit_test(other_lines_are_not_taken_for_relayed_ones),
        cmocka_unit_test(a_full_pipe_drops_and_counts),
        cmocka_unit_test(a_stalled_reader_costs_no_time_and_is_told_of_the_gap),
        cmocka_unit_test(files_are_replaced_whole_and_read_with_a_cap),
        cmocka_unit_test(a_lock_names_its_holder_and_ends_with_it),
        cmocka_unit_test(a_lock_that_is_removed_at_its_end_has_one_holder),
        cmocka_unit_test(another_s_lock_file_is_not_removed),
        cmocka_unit_test(folders_are_made_with_their_parents),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
