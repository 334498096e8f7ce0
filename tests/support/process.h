/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a test starts: each is ended when the test ends, by its pid. */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    const char *log; /* file with its stdout and stderr */
    bool reaped;
    int status; /* of waitpid, once reaped */
};

/* Start argv (ended by NULL; argv[0] is the path or a name in PATH) with output appended to log and
 * stdin from /dev/null, in a process group of its own. mark: value of MILLRACE_TEST_MARK in its
 * environment, NULL none: what it starts inherits it and can be found by process_marked. */
struct process *process_start(const char *const *argv, const char *log, const char *mark);
bool process_running(struct process *proc); /* reaps it when it has ended */
void process_signal(struct process *proc, int signal);
/* Wait for its end for at most ms. Gives the exit code, or 128 + signal; fails the test when it
 * goes on. */
int process_wait(struct process *proc, int ms);

/* Run to the end. Gives the exit code as process_wait; *output: what it wrote to stdout and
 * stderr. */
int process_run(const char *const *argv, int ms, char **output);
/* by bash, in the project's folder */
int process_shell(const char *command, int ms, char **output);

/* Living processes (zombies not counted) whose environment has this mark; at most max pids are
 * written. */
size_t process_marked(const char *mark, pid_t *pids, size_t max);

/* What ps shows of it: its arguments, a blank between two; "" when it is gone. Until the test's
 * end. */
const char *process_arguments(pid_t pid);

#endif
