/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a test: spawn, wait, find, end. Found by a mark in the environment rather than by
 * parent or name, so that orphans and what plugins forked are seen as well, and nobody else's
 * processes are. */
#include "support/process.h"

#include "support/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK "MILLRACE_TEST_MARK"

extern char **environ;

static void end(void *arg)
{
    struct process *proc = arg;

    if (!proc->reaped) {
        kill(-proc->pid, SIGKILL);
        waitpid(proc->pid, &proc->status, 0);
    }
    free(proc);
}

struct process *process_start(const char *const *argv, const char *log, const char *mark)
{
    struct process *proc = calloc(1, sizeof(*proc));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc;

    assert_non_null(proc);
    proc->log = log;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    if (mark != NULL)
        setenv(MARK, mark, 1);
    rc = posix_spawnp(&proc->pid, argv[0], &actions, &attr, (char *const *)argv, environ);
    unsetenv(MARK);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        free(proc);
        fail_msg("%s: %s", argv[0], strerror(rc));
    }
    scratch_at_end(end, proc);
    return proc;
}

bool process_running(struct process *proc)
{
    if (!proc->reaped && waitpid(proc->pid, &proc->status, WNOHANG) == proc->pid)
        proc->reaped = true;
    return !proc->reaped;
}

void process_signal(struct process *proc, int signal)
{
    if (process_running(proc))
        kill(proc->pid, signal);
}

int process_wait(struct process *proc, int ms)
{
    wait_until(ms, !process_running(proc));
    return WIFEXITED(proc->status) ? WEXITSTATUS(proc->status) : 128 + WTERMSIG(proc->status);
}

int process_run(const char *const *argv, int ms, char **output)
{
    static unsigned runs;
    const char *log = scratch_path(scratch_text("run-%u.out", ++runs));
    int rc = process_wait(process_start(argv, log, NULL), ms);

    if (output != NULL)
        *output = scratch_read(log, NULL);
    return rc;
}

int process_shell(const char *command, int ms, char **output)
{
    const char *argv[] = {"bash", "-c", scratch_text("cd '%s' && %s", TEST_SOURCE, command), NULL};

    return process_run(argv, ms, output);
}

/* The whole of a small /proc file; how many bytes were read. */
static size_t read_proc(const char *pid, const char *name, char *data, size_t size)
{
    char path[300];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, data, size);
    close(fd);
    return n < 0 ? 0 : (size_t)n;
}

static bool is_marked(const char *pid, const char *entry)
{
    static char data[131072];
    size_t len = read_proc(pid, "environ", data, sizeof(data) - 1);

    data[len] = '\0';
    for (size_t at = 0; at < len; at += strlen(data + at) + 1)
        if (strcmp(data + at, entry) == 0)
            return true;
    return false;
}

size_t process_marked(const char *mark, pid_t *pids, size_t max)
{
    DIR *proc = opendir("/proc");
    char entry[300];
    size_t count = 0;
    struct dirent *at;

    assert_non_null(proc);
    snprintf(entry, sizeof(entry), MARK "=%s", mark);
    while ((at = readdir(proc)) != NULL) {
        if (at->d_name[0] < '0' || at->d_name[0] > '9' || !is_marked(at->d_name, entry))
            continue;
        if (count < max)
            pids[count] = (pid_t)strtol(at->d_name, NULL, 10);
        count++;
    }
    closedir(proc);
    return count;
}

const char *process_arguments(pid_t pid)
{
    char args[4096];
    size_t len = read_proc(scratch_text("%d", (int)pid), "cmdline", args, sizeof(args) - 1);

    args[len] = '\0';
    while (len > 0 && args[len - 1] == '\0')
        len--;
    for (size_t i = 0; i < len; i++)
        if (args[i] == '\0')
            args[i] = ' ';
    return scratch_text("%s", args);
}
