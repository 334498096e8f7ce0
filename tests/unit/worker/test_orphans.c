/* SPDX-License-Identifier: Apache-2.0 */
/* orphans: hosts of a dead worker are waited for, then ended; those of a living one are not
 * touched. */
#include "base/clock.h"
#include "base/file.h"
#include "worker/supervisor/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char folder[64];
    char lock[128];
    pid_t holder;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/millrace-orph-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->holder > 0) {
        kill(f->holder, SIGKILL);
        waitpid(f->holder, NULL, 0);
    }
    unlink(f->lock);
    assert_int_equal(rmdir(f->folder), 0);
    free(f);
    return 0;
}

/* A process that holds the lock of a host of `worker` for some time, leading a group or not. */
static void hold(struct fixture *f, pid_t worker, int for_ms, bool leader)
{
    int ready[2];
    char byte;

    snprintf(f->lock, sizeof(f->lock), "%s/host-%d-1.lock", f->folder, (int)worker);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    f->holder = fork();
    if (f->holder == 0) {
        int fd;
        int64_t pid;

        if (leader)
            setpgid(0, 0);
        if (file_lock(f->lock, &fd, &pid, NULL) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        poll(NULL, 0, for_ms);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
}

static int end_of(struct fixture *f)
{
    int status;

    assert_int_equal(waitpid(f->holder, &status, 0), f->holder);
    f->holder = 0;
    return status;
}

#define DEAD_WORKER 99999999 /* above any pid */

static void a_lock_path_names_this_worker(void **state)
{
    char path[PATH_MAX], expected[64];

    (void)state;
    assert_true(orphans_lock_path("/run/x", 7, path, sizeof(path)));
    snprintf(expected, sizeof(expected), "/run/x/host-%d-7.lock", (int)getpid());
    assert_string_equal(path, expected);
    assert_false(orphans_lock_path("/run/x", 7, path, 10));
}

static void a_missing_folder_has_no_orphans(void **state)
{
    (void)state;
    assert_int_equal(orphans_bury("/no/such/folder", 0, -1, NULL), 0);
}

static void stale_files_are_removed_and_others_left(void **state)
{
    struct fixture *f = *state;
    char other[128];
    struct stat st;

    snprintf(f->lock, sizeof(f->lock), "%s/host-12345-1.lock", f->folder);
    snprintf(other, sizeof(other), "%s/host-x.lock", f->folder);
    close(open(f->lock, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(orphans_bury(f->folder, 0, -1, NULL), 0);
    assert_int_equal(stat(f->lock, &st), -1);
    assert_int_equal(unlink(other), 0);
}

static void an_orphan_that_ends_by_itself_is_waited_for(void **state)
{
    struct fixture *f = *state;
    int64_t begin_ms = clock_ms();

    hold(f, DEAD_WORKER, 300, true);
    assert_int_equal(orphans_bury(f->folder, 3000, -1, NULL), 0);
    assert_in_range(clock_ms() - begin_ms, 250, 1500);
    assert_true(WIFEXITED(end_of(f)));
}

static void an_orphan_that_stays_is_killed(void **state)
{
    struct fixture *f = *state;
    int64_t begin_ms = clock_ms();
    struct stat st;
    int status;

    hold(f, DEAD_WORKER, 60000, true);
    assert_int_equal(orphans_bury(f->folder, 200, -1, NULL), 0);
    assert_in_range(clock_ms() - begin_ms, 200, 1500);
    status = end_of(f);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(stat(f->lock, &st), -1);
}

static void only_the_holder_dies_when_it_leads_no_group(void **state)
{
    struct fixture *f = *state;

    hold(f, DEAD_WORKER, 60000, false);
    assert_int_equal(orphans_bury(f->folder, 100, -1, NULL), 0);
    assert_true(WIFSIGNALED(end_of(f))); /* and we, in the same group, live */
}

static void a_host_of_a_living_worker_is_not_touched(void **state)
{
    struct fixture *f = *state;
    int64_t begin_ms = clock_ms();

    hold(f, getpid(), 60000, true);
    assert_int_equal(orphans_bury(f->folder, 1000, -1, NULL), 0);
    assert_in_range(clock_ms() - begin_ms, 0, 500);
    assert_int_equal(waitpid(f->holder, NULL, WNOHANG), 0);
}

static void a_wait_that_is_called_off_kills_nobody(void **state)
{
    struct fixture *f = *state;
    int64_t begin_ms = clock_ms();
    int cancel_fd = eventfd(1, EFD_CLOEXEC);

    hold(f, DEAD_WORKER, 60000, true);
    assert_int_equal(orphans_bury(f->folder, 5000, cancel_fd, NULL), MR_ERR_CLOSED);
    assert_in_range(clock_ms() - begin_ms, 0, 2000);
    assert_int_equal(waitpid(f->holder, NULL, WNOHANG), 0);
    close(cancel_fd);
}

/* --- leftovers of dead hosts ------------------------------------------------------------------ */

static pid_t known;

static bool is_known(pid_t pid)
{
    return pid == known;
}

/* A process that left the group of the child that made it, and has come to us. */
static pid_t leftover(void)
{
    pid_t middle, grandchild = 0;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    middle = fork();
    if (middle == 0) {
        pid_t pid = fork();

        if (pid == 0) {
            setsid();
            poll(NULL, 0, 60000);
            _exit(0);
        }
        _exit(write(fds[1], &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1);
    }
    assert_int_equal(read(fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    close(fds[0]);
    close(fds[1]);
    waitpid(middle, NULL, 0);
    return grandchild;
}

static void leftovers_are_swept_and_known_children_kept(void **state)
{
    struct fixture *f = *state;
    pid_t grandchild;
    int64_t end_ms = clock_ms() + 5000;

    orphans_adopt();
    hold(f, getpid(), 60000, true);
    known = f->holder;
    grandchild = leftover();
    while (orphans_sweep(is_known) > 0 && clock_ms() < end_ms)
        poll(NULL, 0, 10);
    assert_int_equal(kill(grandchild, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(waitpid(known, NULL, WNOHANG), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

static void nobody_is_left_when_the_last_act_is_over(void **state)
{
    struct fixture *f = *state;
    pid_t all[20];

    orphans_adopt();
    hold(f, getpid(), 60000, true);
    for (size_t i = 0; i < 20; i++)
        all[i] = leftover();
    assert_true(orphans_end(10000));
    f->holder = 0;
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(kill(all[i], 0), -1);
    assert_true(orphans_end(0));
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_path_names_this_worker),
        cmocka_unit_test(a_missing_folder_has_no_orphans),
        cmocka_unit_test_setup_teardown(stale_files_are_removed_and_others_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_orphan_that_ends_by_itself_is_waited_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_orphan_that_stays_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_the_holder_dies_when_it_leads_no_group, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_host_of_a_living_worker_is_not_touched, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_wait_that_is_called_off_kills_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leftovers_are_swept_and_known_children_kept, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nobody_is_left_when_the_last_act_is_over, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
