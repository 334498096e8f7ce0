/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a test starts: each is ended when the test ends, by its pid. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    const char *log;    /* file with its stdout and stderr */
    bool reaped;
    int status;         /* of waitpid, once reaped */
};

/* Start argv (ended by NULL; argv[0] is the path or a name in PATH) with output appended to log and stdin from /dev/null,
 * in a process group of its own. mark: value of MILLRACE_TEST_MARK in its environment, NULL none: what it starts inherits
 * it and can be found by child_marked. */
struct child *child_start(const char *const *argv, const char *log, const char *mark);
bool child_running(struct child *child);        /* reaps it when it has ended */
void child_signal(struct child *child, int signal);
/* Wait for its end for at most ms. Gives the exit code, or 128 + signal; fails the test when it goes on. */
int child_wait(struct child *child, int ms);

/* Run to the end. Gives the exit code as child_wait; *output: what it wrote to stdout and stderr. */
int child_run(const char *const *argv, int ms, char **output);
int child_shell(const char *command, int ms, char **output);    /* by bash, in the project's folder */

/* Living processes (zombies not counted) whose environment has this mark; at most max pids are written. */
size_t child_marked(const char *mark, pid_t *pids, size_t max);

#endif
