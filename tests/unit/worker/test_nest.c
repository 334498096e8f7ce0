/* SPDX-License-Identifier: Apache-2.0 */
/* nest and spawn: hosts forked from the real nest (host/nest_main.c), whose host_main is
 * fake_host.c's. */
#include "fake_host.h"

#include "base/clock.h"
#include "worker/supervisor/nest.h"
#include "worker/supervisor/orphans.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BOUND_MS 20000 /* for what happens at once on a machine that has nothing else to do */
#define HOSTS 8

struct fixture {
    struct loop *loop;
    struct nest *nest;
    bool answered;
    struct mr_error err; /* of the last host; code 0 none */
    struct spawn born;
    struct spawn hosts[HOSTS];
    size_t count;
    char log[65536]; /* what the worker logged during host_logged */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    orphans_adopt();
    f->loop = loop_new(NULL);
    f->nest = nest_new(f->loop, &(struct nest_options){.exe = "/proc/self/exe"});
    assert_true(fake_host_nest() > 0);
    *state = f;
    return 0;
}

static void end_host(struct spawn *s)
{
    kill(-s->pid, SIGKILL);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    spawn_forget(s->pid);
    close(s->pidfd);
    close(s->link_fd);
    close(s->box_fd);
    close(s->out_fd);
    close(s->err_fd);
}

/* What a nest that was ended left, too. */
static void sweep(void)
{
    int64_t due = clock_ms() + BOUND_MS;

    while (orphans_sweep(spawn_knows) > 0 && clock_ms() < due)
        poll(NULL, 0, 1);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    siginfo_t info;

    for (size_t i = 0; i < f->count; i++)
        end_host(&f->hosts[i]);
    nest_free(&f->nest);
    loop_free(&f->loop);
    sweep();
    /* Nobody is left behind. */
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    free(f);
    return 0;
}

static void on_born(void *arg, const struct spawn *s, const struct mr_error *err)
{
    struct fixture *f = arg;

    assert_false(f->answered);
    f->answered = true;
    f->err = err != NULL ? *err : (struct mr_error){0};
    if (s != NULL)
        f->born = *s;
    loop_stop(f->loop);
}

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("no answer within %d ms", BOUND_MS);
}

/* Ask, and wait for the answer. */
static bool bring(struct fixture *f, const char *conn)
{
    struct loop_timer guard = {0};
    struct mr_error err = {0};

    f->answered = false;
    if (spawn_host(f->nest, conn, on_born, f, &err) == NULL)
        fail_msg("%s", err.text);
    assert_false(f->answered);
    loop_timer_start(f->loop, &guard, BOUND_MS, too_long, f);
    loop_run(f->loop);
    loop_timer_cancel(&guard);
    return f->err.code == 0;
}

/* A host that has said something: it runs. */
static struct spawn *host(struct fixture *f, const char *conn)
{
    struct spawn *s = &f->hosts[f->count];
    struct pollfd p;

    if (!bring(f, conn))
        fail_msg("%s", f->err.text);
    *s = f->born;
    f->count++;
    p = (struct pollfd){.fd = s->link_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, BOUND_MS), 1);
    assert_int_equal(p.revents, POLLIN);
    return s;
}

static struct spawn *host_logged(struct fixture *f, const char *conn)
{
    int saved = dup(STDERR_FILENO);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct spawn *s;
    ssize_t n;

    assert_true(file >= 0);
    dup2(file, STDERR_FILENO);
    s = host(f, conn);
    dup2(saved, STDERR_FILENO);
    close(saved);
    n = pread(file, f->log, sizeof(f->log) - 1, 0);
    assert_true(n >= 0);
    f->log[n] = '\0';
    close(file);
    return s;
}

/* What ps shows: arguments separated by blanks, without what follows the last. */
static void arguments(pid_t pid, char *out, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, out, size - 1);
    close(fd);
    assert_true(n > 0);
    while (n > 0 && out[n - 1] == '\0')
        n--;
    out[n] = '\0';
    for (ssize_t i = 0; i < n; i++)
        if (out[i] == '\0')
            out[i] = ' ';
}

static void assert_arguments(pid_t pid, const char *expected)
{
    char got[1024];

    arguments(pid, got, sizeof(got));
    assert_string_equal(got, expected);
}

static pid_t parent_of(pid_t pid)
{
    char path[64], line[512] = "";
    char *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    end = strrchr(line, ')');
    assert_non_null(end);
    return (pid_t)strtol(end + 4, NULL, 10);
}

/* It ends within ms; it is a child of this process, but not to be reaped. */
static void await_end(pid_t pid, int64_t ms)
{
    int64_t due = clock_ms() + ms;
    siginfo_t info = {0};

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        if (clock_ms() > due)
            fail_msg("process %d lives", (int)pid);
        poll(NULL, 0, 1);
    }
}

static void kill_nest(void)
{
    pid_t pid = fake_host_nest();

    assert_true(pid > 0);
    kill(pid, SIGKILL);
    await_end(pid, BOUND_MS);
}

/* --- what a host is --------------------------------------------------------------------------- */

static void a_host_is_a_child_of_ours_and_leads_a_group(void **state)
{
    struct fixture *f = *state;
    struct spawn *s = host(f, "good");

    assert_int_equal(parent_of(s->pid), getpid());
    assert_int_equal(getpgid(s->pid), s->pid);
    assert_true(spawn_knows(s->pid));
    assert_int_equal(orphans_sweep(spawn_knows), 0); /* neither host nor nest is a leftover */
    assert_int_equal(waitpid(s->pid, NULL, WNOHANG), 0);
}

static void ps_shows_the_connector(void **state)
{
    struct fixture *f = *state;
    char name[301], expected[400];

    memset(name, 'x', 300);
    name[300] = '\0';
    snprintf(expected, sizeof(expected), "millrace host %.200s", name);
    assert_arguments(host(f, "good")->pid, "millrace host good");
    assert_arguments(host(f, name)->pid, expected);
    assert_arguments(host(f, "good again")->pid, "millrace host good again");
    assert_arguments(fake_host_nest(), "millrace nest");
}

/* Where the stack begins is chosen at every exec. (In /proc/PID/stat it is the 28th member.) */
static unsigned long long stack_of(pid_t pid)
{
    char path[64], line[1024] = "";
    char *at;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    at = strrchr(line, ')');
    for (int i = 2; i < 28 && at != NULL; i++)
        at = strchr(at + 1, ' ');
    assert_non_null(at);
    return strtoull(at, NULL, 10);
}

static void hosts_are_forked_from_one_process(void **state)
{
    struct fixture *f = *state;
    unsigned long long first = stack_of(host(f, "good")->pid);

    assert_true(first > 0);
    assert_true(stack_of(host(f, "good")->pid) == first);
    assert_true(stack_of(fake_host_nest()) == first);
    if (stack_of(getpid()) == first)
        print_message("no address space layout randomisation: nothing is shown\n");
}

/* --- when the nest fails ---------------------------------------------------------------------- */

static void a_killed_nest_comes_back(void **state)
{
    struct fixture *f = *state;
    struct spawn *first = host(f, "good");
    pid_t nest = fake_host_nest();

    kill_nest();
    host_logged(f, "good");
    assert_non_null(strstr(f->log, "which hosts are forked from, was killed or ended"));
    assert_true(fake_host_nest() > 0);
    assert_int_not_equal(fake_host_nest(), nest);
    assert_int_equal(waitpid(first->pid, NULL, WNOHANG), 0); /* hosts outlive it */
}

static void a_hung_nest_costs_one_warning_and_two_seconds(void **state)
{
    struct fixture *f = *state;
    int64_t from_ms = clock_ms();
    pid_t nest = fake_host_nest();
    struct spawn *s;

    kill(nest, SIGSTOP);
    s = host_logged(f, "good");
    assert_in_range(clock_ms() - from_ms, NEST_MS, NEST_MS + 3000);
    if (strstr(f->log, "did not answer within 2000 ms: this host is started without it") == NULL)
        fail_msg("'%s'", f->log);
    assert_arguments(s->pid, "millrace host good");
    assert_int_equal(parent_of(s->pid), getpid());
    await_end(nest, BOUND_MS); /* a stray: reaped by the sweep */
    host_logged(f, "good");
    assert_string_equal(f->log, "");
    assert_true(fake_host_nest() > 0);
}

/* The request is in the socket, the process is gone before it has read it. */
static void a_nest_that_dies_over_a_request_is_left_out(void **state)
{
    struct fixture *f = *state;
    pid_t nest = fake_host_nest();
    pid_t killer;

    kill(nest, SIGSTOP);
    killer = fork();
    if (killer == 0) {
        poll(NULL, 0, 300);
        kill(nest, SIGKILL);
        _exit(0);
    }
    host_logged(f, "good");
    waitpid(killer, NULL, 0);
    if (strstr(f->log, "went away: this host is started without it") == NULL)
        fail_msg("'%s'", f->log);
}

static void a_nest_without_descriptors_says_so(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, few;

    host(f, "good");
    assert_int_equal(prlimit(fake_host_nest(), RLIMIT_NOFILE, NULL, &before), 0);
    few = (struct rlimit){8, before.rlim_max};
    assert_int_equal(prlimit(fake_host_nest(), RLIMIT_NOFILE, &few, NULL), 0);
    assert_false(bring(f, "good"));
    assert_int_equal(f->err.code, MR_ERR_IO);
    assert_string_equal(f->err.text, "cannot fork a host process: Too many open files");
    assert_int_equal(prlimit(fake_host_nest(), RLIMIT_NOFILE, &before, NULL), 0);
    host(f, "good");
}

static void a_binary_that_is_missing_is_an_error(void **state)
{
    struct fixture f = {.loop = loop_new(NULL)};

    (void)state;
    f.nest = nest_new(f.loop, &(struct nest_options){.exe = "/no/such/file"});
    assert_false(bring(&f, "good"));
    assert_int_equal(f.err.code, MR_ERR_IO);
    assert_non_null(strstr(f.err.text, "/no/such/file: No such file"));
    nest_free(&f.nest);
    loop_free(&f.loop);
}

/* --- when the worker dies --------------------------------------------------------------------- */

/* A worker is killed; its nest, which comes to us, ends within two seconds, whatever signal it got
 * before. */
static void expect_nest_to_follow(int signal_before)
{
    int fds[2];
    pid_t worker, nest = 0;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    worker = fork();
    if (worker == 0) {
        struct fixture f = {.loop = loop_new(NULL)};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        orphans_adopt();
        f.nest = nest_new(f.loop, &(struct nest_options){.exe = "/proc/self/exe"});
        if (!bring(&f, "good"))
            _exit(1);
        nest = fake_host_nest();
        if (write(fds[1], &nest, sizeof(nest)) != (ssize_t)sizeof(nest))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], &nest, sizeof(nest)), sizeof(nest));
    assert_true(nest > 0);
    kill(nest, signal_before);
    kill(worker, SIGKILL);
    assert_int_equal(waitpid(worker, NULL, 0), worker);
    await_end(nest, 2000);
    while (wait(NULL) > 0)
        ; /* its host, too, comes here, and ends as the link has */
    close(fds[0]);
    close(fds[1]);
}

static void a_nest_ends_with_its_worker(void **state)
{
    expect_nest_to_follow(0);
}

static void a_stopped_nest_ends_with_its_worker(void **state)
{
    expect_nest_to_follow(SIGSTOP);
}

static void started_by_hand_it_explains_itself(void **state)
{
    static const char text[] =
        "millrace nest: this command is started by the worker, not by hand\n";
    FILE *out = popen("/proc/$PPID/exe nest x 2>&1 3<&-", "re");
    char got[256] = "";

    assert_non_null(out);
    assert_non_null(fgets(got, sizeof(got), out));
    assert_string_equal(got, text);
    assert_int_equal(WEXITSTATUS(pclose(out)), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_host_is_a_child_of_ours_and_leads_a_group),
        TEST(ps_shows_the_connector),
        TEST(hosts_are_forked_from_one_process),
        TEST(a_killed_nest_comes_back),
        TEST(a_hung_nest_costs_one_warning_and_two_seconds),
        TEST(a_nest_that_dies_over_a_request_is_left_out),
        TEST(a_nest_without_descriptors_says_so),
        cmocka_unit_test(a_binary_that_is_missing_is_an_error),
        cmocka_unit_test(a_nest_ends_with_its_worker),
        cmocka_unit_test(a_stopped_nest_ends_with_its_worker),
        cmocka_unit_test(started_by_hand_it_explains_itself),
    };

    fake_host_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
