/* SPDX-License-Identifier: Apache-2.0 */
/* Brings processes into the world: hosts, by child.c when the supervisor is told to run a connector
 * (the loop's thread), and scanners, by catalog_scan.c (the starter's). Knows which of this
 * process's children these are.
 *
 * A host is forked from the nest (nest.c); when that one fails, it is spawned as everything else
 * is: by posix_spawn, because the worker has threads, so no code of ours runs between fork and
 * exec. The new process gets default handlers and an empty signal mask whatever the worker blocks,
 * a group of its own so that it can be killed with all it forked, and descriptors 0 to 4 as
 * link/inherit.h says, nothing above. The host's ends are first moved out of the way of these
 * numbers, so that no dup2 of the list can overwrite one that a later step needs. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/spawn.h"

#include "base/log.h"
#include "base/text.h"
#include "link/black_box.h"
#include "worker/supervisor/nest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_FREE_FD 16 /* above every number of link/inherit.h */

extern char **environ;

/* The host's ends; -1 none. */
struct ends {
    int link;
    int box;
    int out;
    int err;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_ends(struct ends *ends)
{
    close_fd(&ends->link);
    close_fd(&ends->box);
    close_fd(&ends->out);
    close_fd(&ends->err);
}

static void close_spawn(struct spawn *s)
{
    close_fd(&s->pidfd);
    close_fd(&s->link_fd);
    close_fd(&s->box_fd);
    close_fd(&s->out_fd);
    close_fd(&s->err_fd);
}

/* Replace a descriptor by a copy above the inherited numbers. */
static int move_up(int *fd)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);

    if (moved < 0)
        return -1;
    close(*fd);
    *fd = moved;
    return 0;
}

static int open_pipe(int *read_end, int *write_end)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    *read_end = fds[0];
    *write_end = fds[1];
    return move_up(write_end);
}

static int open_ends(struct spawn *s, struct ends *ends)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return -1;
    s->link_fd = pair[0];
    ends->link = pair[1];
    if (move_up(&ends->link) != 0)
        return -1;
    s->box_fd = black_box_create();
    if (s->box_fd < 0)
        return -1;
    ends->box = fcntl(s->box_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    if (ends->box < 0)
        return -1;
    if (open_pipe(&s->out_fd, &ends->out) != 0)
        return -1;
    return open_pipe(&s->err_fd, &ends->err);
}

/* --- processes of ours ------------------------------------------------------------------------ */

/* Which children of this process were made here: what else turns up among them is the leftover of a
 * dead host. Global, as the children themselves are; the lock is held from before a process is made
 * until it is listed. (A forked host is noted on the thread that looks for leftovers.) */
static struct {
    pthread_mutex_t lock;
    pid_t *pids;
    size_t count;
    size_t cap;
} ours = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t find_ours(pid_t pid)
{
    size_t i = 0;

    while (i < ours.count && ours.pids[i] != pid)
        i++;
    return i;
}

static void add_ours(pid_t pid)
{
    if (ours.count == ours.cap) {
        ours.cap = ours.cap == 0 ? 16 : ours.cap * 2;
        ours.pids = realloc(ours.pids, ours.cap * sizeof(*ours.pids));
        mr_assert(ours.pids != NULL);
    }
    ours.pids[ours.count++] = pid;
}

void spawn_note(pid_t pid)
{
    pthread_mutex_lock(&ours.lock);
    add_ours(pid);
    pthread_mutex_unlock(&ours.lock);
}

bool spawn_knows(pid_t pid)
{
    bool known;

    pthread_mutex_lock(&ours.lock);
    known = find_ours(pid) < ours.count;
    pthread_mutex_unlock(&ours.lock);
    return known;
}

void spawn_forget(pid_t pid)
{
    size_t i;

    pthread_mutex_lock(&ours.lock);
    i = find_ours(pid);
    if (i < ours.count)
        ours.pids[i] = ours.pids[--ours.count];
    pthread_mutex_unlock(&ours.lock);
}

/* --- making one ------------------------------------------------------------------------------- */

/* The functions below give 0 or an errno, as posix_spawn's own do. */
static int list_actions(posix_spawn_file_actions_t *actions, const int *fds, size_t count)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = fds[i] >= 0 ? posix_spawn_file_actions_adddup2(actions, fds[i], (int)i)
                         : posix_spawn_file_actions_addopen(actions, (int)i, "/dev/null",
                                                            i == 0 ? O_RDONLY : O_WRONLY, 0);
    return rc == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, (int)count) : rc;
}

static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t all, none;
    int rc;

    sigfillset(&all);
    sigemptyset(&none);
    rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
    if (rc == 0)
        rc = posix_spawnattr_setpgroup(attr, 0);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attr, &all);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attr, &none);
    return rc;
}

int spawn_run(const char *exe, char *const *argv, const int *fds, size_t count, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    rc = list_actions(&actions, fds, count);
    if (rc == 0)
        rc = set_attributes(&attr);
    pthread_mutex_lock(&ours.lock);
    if (rc == 0)
        rc = posix_spawn(pid, exe, &actions, &attr, argv, environ);
    if (rc == 0)
        add_ours(*pid);
    pthread_mutex_unlock(&ours.lock);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int run_host(const char *exe, const char *conn, const int *fds, pid_t *pid,
                    struct mr_error *err)
{
    const int all[] = {-1, fds[0], fds[1], fds[2], fds[3]};
    char program[] = "millrace", verb[] = "host", name[NEST_FORMAT_NAME_MAX + 1];
    char *argv[] = {program, verb, name, NULL};

    snprintf(name, sizeof(name), "%s", conn);
    errno = spawn_run(exe, argv, all, sizeof(all) / sizeof(all[0]), pid);
    return errno == 0 ? 0 : err_errno(err, "cannot start the host process %s", exe);
}

/* One that can't be watched is killed and not waited for: it is a stray then, and reaped as one. */
static int watch(struct spawn *s, struct mr_error *err)
{
    int rc;

    s->pidfd = pidfd_open(s->pid, 0);
    if (s->pidfd >= 0)
        return 0;
    rc = err_errno(err, "cannot watch host process %d", (int)s->pid);
    kill(-s->pid, SIGKILL);
    kill(s->pid, SIGKILL); /* not reaped yet, so the number is still its own */
    spawn_forget(s->pid);
    return rc;
}

/* --- a host ----------------------------------------------------------------------------------- */

struct spawn_job {
    struct nest *nest;
    struct nest_fork *fork; /* NULL: answered */
    char *conn;
    struct spawn s;
    struct ends ends;
    int fds[NEST_FORMAT_FDS]; /* of ends, as the nest takes them */
    spawn_done done;
    void *arg;
};

/* Each try has descriptors of its own: what an earlier one has brought into the world after all
 * hears only their end. */
static int open_all(struct spawn_job *job, struct mr_error *err)
{
    job->s = (struct spawn){.pidfd = -1, .link_fd = -1, .box_fd = -1, .out_fd = -1, .err_fd = -1};
    job->ends = (struct ends){-1, -1, -1, -1};
    if (open_ends(&job->s, &job->ends) != 0)
        return err_errno(err, "cannot open the descriptors of a host process");
    job->fds[0] = job->ends.out;
    job->fds[1] = job->ends.err;
    job->fds[2] = job->ends.link;
    job->fds[3] = job->ends.box;
    return 0;
}

static void close_all(struct spawn_job *job)
{
    close_ends(&job->ends);
    close_spawn(&job->s);
}

static void free_job(struct spawn_job *job)
{
    free(job->conn);
    free(job);
}

/* The job is gone when `done` runs, and so may be the nest after it. */
static void finish(struct spawn_job *job, const struct mr_error *err)
{
    spawn_done done = job->done;
    void *arg = job->arg;
    struct spawn s = job->s;

    if (err == NULL)
        close_ends(&job->ends);
    else
        close_all(job);
    free_job(job);
    done(arg, err == NULL ? &s : NULL, err);
}

static int spawn_plain(struct spawn_job *job, struct mr_error *err)
{
    int rc;

    close_all(job);
    rc = open_all(job, err);
    return rc == 0 ? run_host(nest_exe(job->nest), job->conn, job->fds, &job->s.pid, err) : rc;
}

static void on_forked(void *arg, pid_t pid, const struct mr_error *why)
{
    struct spawn_job *job = arg;
    struct mr_error err = {0};
    int rc = why != NULL ? why->code : 0;

    job->fork = NULL;
    job->s.pid = pid;
    if (rc == MR_ERR_CLOSED || rc == MR_ERR_TIMEOUT) {
        log_write_for(LOG_WARN, LOGGER, job->conn, -1, "%s: this host is started without it",
                      why->text);
        rc = spawn_plain(job, &err);
        why = &err;
    }
    if (rc == 0) {
        rc = watch(&job->s, &err);
        why = &err;
    }
    finish(job, rc != 0 ? why : NULL);
}

struct spawn_job *spawn_host(struct nest *nest, const char *conn, spawn_done done, void *arg,
                             struct mr_error *err)
{
    struct spawn_job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    *job = (struct spawn_job){.nest = nest, .conn = text_dup(conn), .done = done, .arg = arg};
    if (open_all(job, err) != 0) {
        close_all(job);
        free_job(job);
        return NULL;
    }
    job->fork = nest_fork(nest, conn, job->fds, on_forked, job);
    return job;
}

void spawn_cancel(struct spawn_job **jobp)
{
    struct spawn_job *job = *jobp;

    *jobp = NULL;
    if (job == NULL)
        return;
    nest_cancel(&job->fork);
    close_all(job);
    free_job(job);
}
