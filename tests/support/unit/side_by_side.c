/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A child is this process forked: it runs one test as a group of its own, with a
 * file as stdout and stderr, and ends by exit, so that leak checkers have their say. Children die
 * with this process (run-tests.sh cuts it off). */
#include "side_by_side.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
    const struct CMUnitTest *test; /* NULL: free */
    pid_t pid;
    FILE *out;
};

static void begin(struct run *run, const struct CMUnitTest *test, CMFixtureFunction setup,
                  CMFixtureFunction teardown)
{
    run->test = test;
    run->out = tmpfile();
    fflush(NULL);
    run->pid = run->out == NULL ? -1 : fork();
    if (run->pid < 0) {
        perror("side_by_side");
        exit(1);
    }
    if (run->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(fileno(run->out), STDOUT_FILENO);
    dup2(fileno(run->out), STDERR_FILENO);
    exit(_cmocka_run_group_tests(test->name, test, 1, setup, teardown) == 0 ? 0 : 1);
}

static void print_output(FILE *out)
{
    char line[4096];
    size_t n;

    rewind(out);
    while ((n = fread(line, 1, sizeof(line), out)) > 0)
        fwrite(line, 1, n, stdout);
    fclose(out);
}

/* One that cmocka could not sum up is named as cmocka names a failed one. */
static int end(struct run *run, int status)
{
    print_output(run->out);
    if (WIFSIGNALED(status))
        printf("[  FAILED  ] %s (killed by signal %d)\n", run->test->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        printf("[  FAILED  ] %s (exit %d)\n", run->test->name, WEXITSTATUS(status));
    fflush(stdout);
    run->test = NULL;
    return status == 0 ? 0 : 1;
}

/* Wait for any of them; tests' own children are waited for by the tests. */
static int reap(struct run *runs)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);

    if (pid < 0 && errno != EINTR) {
        perror("side_by_side");
        exit(1);
    }
    for (size_t i = 0; i < SIDE_BY_SIDE; i++)
        if (runs[i].test != NULL && runs[i].pid == pid)
            return end(&runs[i], status);
    return 0;
}

static struct run *free_place(struct run *runs)
{
    for (size_t i = 0; i < SIDE_BY_SIDE; i++)
        if (runs[i].test == NULL)
            return &runs[i];
    return NULL;
}

static size_t running(const struct run *runs)
{
    size_t count = 0;

    for (size_t i = 0; i < SIDE_BY_SIDE; i++)
        count += runs[i].test != NULL;
    return count;
}

int side_by_side_run(const struct CMUnitTest *tests, size_t count, const char *filter,
                     CMFixtureFunction group_setup, CMFixtureFunction group_teardown)
{
    struct run runs[SIDE_BY_SIDE] = {0};
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        if (filter != NULL && fnmatch(filter, tests[i].name, 0) != 0)
            continue;
        while (free_place(runs) == NULL)
            failed += reap(runs);
        begin(free_place(runs), &tests[i], group_setup, group_teardown);
    }
    while (running(runs) > 0)
        failed += reap(runs);
    return failed;
}
