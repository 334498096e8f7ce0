/* SPDX-License-Identifier: Apache-2.0 */
/* Two kinds of orphans: hosts whose worker is gone, found by a starting worker through the lock
 * files they hold; and processes that a plugin forked out of its host's group, which come to this
 * process when their host is dead.
 *
 * A lock file is named after the worker that gave it out. Its holder is an orphan when that worker
 * is no longer its parent: the kernel changes a process's parent when the parent ends, whatever
 * number is used again later. So several workers may share one folder, and a live one's hosts are
 * never touched. Just before the kill the lock's holder is asked for again.
 *
 * orphans_bury blocks and runs on the starter's thread; orphans_sweep runs on the loop's, as does
 * orphans_end when that has ended. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/orphans.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORPHANS_MAX 4096
#define KILLED_WAIT_MS 2000

struct orphan {
    char path[PATH_MAX];
    int64_t worker;
    int64_t pid;
    int pidfd;
};

struct orphans {
    struct orphan *list;
    size_t count;
};

bool orphans_lock_path(const char *run_dir, int64_t number, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/host-%d-%lld.lock", run_dir, (int)getpid(), (long long)number);

    return n > 0 && (size_t)n < size;
}

/* host-<worker>-<number>.lock */
static bool parse_name(const char *name, int64_t *worker)
{
    char *end;

    if (strncmp(name, "host-", 5) != 0)
        return false;
    *worker = strtoll(name + 5, &end, 10);
    if (end == name + 5 || *end != '-' || *worker <= 0)
        return false;
    strtoll(end + 1, &end, 10);
    return strcmp(end, ".lock") == 0;
}

static int64_t parent_of(int64_t pid)
{
    char path[64], stat[512];
    char *p;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    if (n <= 0)
        return -1;
    stat[n] = '\0';
    p = strrchr(stat, ')'); /* the name before it may hold anything */
    if (p == NULL || strlen(p) < 5)
        return -1;
    return strtoll(p + 4, NULL, 10); /* ") S 4711" */
}

/* The process that holds the lock and whose worker is gone; 0 none: the file is stale (and removed)
 * or in good hands. */
static int64_t find_holder(const char *path, int64_t worker)
{
    struct mr_error err = {0};
    int64_t pid = 0;
    int fd;
    int rc = file_lock(path, &fd, &pid, &err);

    if (rc == 0) {
        unlink(path);
        close(fd);
        return 0;
    }
    if (rc != MR_ERR_EXISTS || pid <= 0) {
        log_warn("cannot tell who holds %s: left alone", path);
        return 0;
    }
    return parent_of(pid) == worker ? 0 : pid;
}

static void add_orphan(struct orphans *all, const char *path, int64_t worker)
{
    int64_t pid = find_holder(path, worker);
    struct orphan *o;
    int pidfd;

    if (pid <= 0 || all->count >= ORPHANS_MAX)
        return;
    pidfd = pidfd_open((pid_t)pid, 0);
    if (pidfd < 0)
        return;
    all->list = realloc(all->list, (all->count + 1) * sizeof(*all->list));
    mr_assert(all->list != NULL);
    o = &all->list[all->count++];
    snprintf(o->path, sizeof(o->path), "%s", path);
    o->worker = worker;
    o->pid = pid;
    o->pidfd = pidfd;
}

static int find_orphans(const char *run_dir, struct orphans *all, struct mr_error *err)
{
    DIR *dir = opendir(run_dir);
    struct dirent *entry;

    if (dir == NULL && errno == ENOENT)
        return 0;
    if (dir == NULL)
        return err_errno(err, "cannot read the folder of lock files %s", run_dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        int64_t worker;

        if (!parse_name(entry->d_name, &worker))
            continue;
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", run_dir, entry->d_name) < sizeof(path))
            add_orphan(all, path, worker);
    }
    closedir(dir);
    return 0;
}

/* Wait until all have ended or the time is over; those that ended leave the list. false: called
 * off. */
static bool wait_for(struct orphans *all, int64_t wait_ms, int cancel_fd)
{
    int64_t end = clock_ms() + wait_ms;

    while (all->count > 0) {
        struct orphan *last = &all->list[all->count - 1];
        struct pollfd p[2] = {{.fd = last->pidfd, .events = POLLIN},
                              {.fd = cancel_fd, .events = POLLIN}};
        int64_t left = end - clock_ms();

        (void)poll(p, 2, left > 0 ? (int)left : 0);
        if (p[0].revents != 0) {
            unlink(last->path);
            close(last->pidfd);
            all->count--;
        } else if (p[1].revents != 0) {
            return false;
        } else if (left <= 0) {
            return true;
        }
    }
    return true;
}

static void kill_orphan(const struct orphan *o)
{
    if (find_holder(o->path, o->worker) != o->pid)
        return;
    log_warn("ending host process %lld, left behind by worker process %lld", (long long)o->pid,
             (long long)o->worker);
    if (getpgid((pid_t)o->pid) == (pid_t)o->pid)
        kill(-(pid_t)o->pid, SIGKILL);
    else
        pidfd_send_signal(o->pidfd, SIGKILL, NULL, 0);
}

int orphans_bury(const char *run_dir, int64_t wait_ms, int cancel_fd, struct mr_error *err)
{
    struct orphans all = {0};
    int rc = find_orphans(run_dir, &all, err);

    if (all.count > 0)
        log_info("waiting for host processes of an earlier worker to end: %zu", all.count);
    if (wait_for(&all, wait_ms, cancel_fd)) {
        for (size_t i = 0; i < all.count; i++)
            kill_orphan(&all.list[i]);
        wait_for(&all, KILLED_WAIT_MS, -1);
    } else if (rc == 0) {
        rc = mr_fail(err, MR_ERR_CLOSED, "the wait for earlier host processes was called off");
    }
    if (rc == 0 && all.count > 0)
        rc = mr_fail(
            err, MR_ERR_TIMEOUT,
            "host process %lld of an earlier worker holds %s and does not end: end it first",
            (long long)all.list[0].pid, all.list[0].path);
    for (size_t i = 0; i < all.count; i++)
        close(all.list[i].pidfd);
    free(all.list);
    return rc;
}

/* --- descendants of dead hosts ---------------------------------------------------------------- */

void orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* until_ms: waited for so long; 0 not at all. */
static void end_child(pid_t pid, int64_t until_ms)
{
    struct pollfd end = {.fd = -1, .events = POLLIN};
    int64_t left = until_ms > 0 ? until_ms - clock_ms() : 0;
    siginfo_t info;

    kill(pid, SIGKILL);
    if (left > 0)
        end.fd = pidfd_open(pid, 0);
    if (end.fd >= 0) {
        (void)poll(&end, 1, (int)left);
        close(end.fd);
    }
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG);
}

/* /proc/self/task/<thread>/children: numbers separated by blanks. It may skip one while others go:
 * a look that found any is followed by another. */
static size_t sweep_thread(const char *thread, bool (*ours)(pid_t pid), int64_t until_ms)
{
    char path[64];
    size_t found = 0;
    long pid;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fscanf(file, "%ld", &pid) == 1)
        if (pid > 0 && !ours((pid_t)pid)) {
            end_child((pid_t)pid, until_ms);
            found++;
        }
    fclose(file);
    return found;
}

static size_t sweep(bool (*ours)(pid_t pid), int64_t until_ms)
{
    size_t found = 0;
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/task");

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            found += sweep_thread(entry->d_name, ours, until_ms);
    closedir(dir);
    return found;
}

/* The usual case, known without a look into /proc. */
static bool are_none(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

size_t orphans_sweep(bool (*ours)(pid_t pid))
{
    return are_none() ? 0 : sweep(ours, 0);
}

static bool nobody(pid_t pid)
{
    (void)pid;
    return false;
}

bool orphans_end(int64_t wait_ms)
{
    int64_t until_ms = clock_ms() + wait_ms;

    while (!are_none()) {
        if (clock_ms() >= until_ms)
            return false;
        (void)sweep(nobody, until_ms);
    }
    return true;
}
