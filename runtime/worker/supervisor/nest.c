/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of its nest. A host that is executed pays for itself about a megabyte of library
 * pages that the dynamic linker writes to; forked from one process that has them all, hosts share
 * them. Called by spawn.c on the loop's thread; the other end is host/nest_main.c.
 *
 *   nest_fork ─► queue ─► (turn) ─► request ─► nest ─► answer ─► done, and the next turn
 *                            │                   └── end of file, or NEST_MS ─► done with an error
 *                            └── it hung or died over an earlier one ─► the same error, one a round
 *
 * The nest is made with the supervisor, and again at the next need once it is found dead. It is
 * spawned like any process of ours, so it holds nothing of the worker's but its end of the socket,
 * and ends with the worker: by end of file there. It is never waited for: what was killed is
 * forgotten, and so reaped with the strays. What hosts share with it and with each other is also
 * their layout in memory: an address learnt in one of them is true in all of this worker's, until
 * it starts again. They are one user's processes and plugins are trusted code, so no wall stood
 * there before. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/nest.h"

#include "base/log.h"
#include "base/text.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct nest_fork {
    struct nest *nest;
    char conn[NEST_FORMAT_NAME_MAX + 1];
    const int *fds;
    nest_done done; /* NULL: called off while it was under way */
    void *arg;
    bool left_out; /* it waited when the nest failed */
    struct nest_fork *next;
};

struct nest {
    struct loop *loop;
    char *exe;
    void (*strays)(void *arg);
    void *arg;
    int fd; /* -1: there is no process */
    pid_t pid;
    struct loop_fd *watch;
    struct nest_fork *first, **last; /* oldest first */
    bool asked;                      /* first is under way */
    struct mr_error failure;         /* the last one */
    struct loop_timer turn;
    struct loop_timer deadline;
};

static void on_event(void *arg, uint32_t events);
static void on_turn(void *arg);

static void tell_strays(const struct nest *nest)
{
    if (nest->strays != NULL)
        nest->strays(nest->arg);
}

static void kill_group(pid_t pid)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
}

static void close_socket(struct nest *nest)
{
    if (nest->watch != NULL)
        loop_fd_remove(&nest->watch);
    close(nest->fd);
    nest->fd = -1;
}

/* With its group: what it was about to make a host of goes too. */
static void end(struct nest *nest)
{
    if (nest->fd < 0)
        return;
    close_socket(nest);
    kill_group(nest->pid);
    spawn_forget(nest->pid);
    tell_strays(nest);
}

static int start(struct nest *nest, struct mr_error *err)
{
    char program[] = "millrace", verb[] = "nest", room[NEST_FORMAT_NAME_MAX + 1];
    char *argv[] = {program, verb, room, NULL};
    int pair[2];

    memset(room, ' ', NEST_FORMAT_NAME_MAX);
    room[NEST_FORMAT_NAME_MAX] = '\0';
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return err_errno(err, "cannot open a socket to the process that hosts are forked from");
    errno =
        spawn_run(nest->exe, argv, (const int[]){-1, -1, STDERR_FILENO, pair[1]}, 4, &nest->pid);
    close(pair[1]);
    if (errno != 0) {
        close(pair[0]);
        return err_errno(err, "cannot start the process that hosts are forked from, %s", nest->exe);
    }
    nest->fd = pair[0];
    nest->watch = loop_fd_add(nest->loop, nest->fd, EPOLLIN, on_event, nest, err);
    if (nest->watch == NULL) {
        end(nest);
        return MR_ERR_IO;
    }
    log_debug("hosts are forked from process %d", (int)nest->pid);
    return 0;
}

/* There is nothing to read between two requests, unless it is the end. */
static bool is_alive(const struct nest *nest)
{
    char byte;

    return nest->fd >= 0 && recv(nest->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
}

static bool send_request(const struct nest *nest, const struct nest_fork *fork)
{
    struct nest_format_request request = {""};
    struct iovec part = {&request, sizeof(request)};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(NEST_FORMAT_FDS * sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    memcpy(request.name, fork->conn, sizeof(request.name));
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(NEST_FORMAT_FDS * sizeof(int))};
    memcpy(CMSG_DATA(&control.head), fork->fds, NEST_FORMAT_FDS * sizeof(int));
    return sendmsg(nest->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(request);
}

/* It is what the nest says, and not somebody else's. */
static bool is_our_child(pid_t pid)
{
    siginfo_t info;

    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* --- one after the other ---------------------------------------------------------------------- */

static void soon(struct nest *nest)
{
    if (nest->first != NULL && !nest->asked)
        loop_timer_start(nest->loop, &nest->turn, 0, on_turn, nest);
}

static void forget(struct nest *nest, struct nest_fork **place)
{
    struct nest_fork *fork = *place;

    *place = fork->next;
    if (nest->last == &fork->next)
        nest->last = place;
    free(fork);
}

/* The first is answered. Nothing of the nest is touched after `done`. */
static void finish(struct nest *nest, pid_t pid, const struct mr_error *err)
{
    struct nest_fork fork = *nest->first;

    forget(nest, &nest->first);
    nest->asked = false;
    loop_timer_cancel(&nest->deadline);
    soon(nest);
    if (fork.done != NULL) {
        if (err == NULL)
            spawn_note(pid);
        fork.done(fork.arg, pid, err);
    } else if (err == NULL) {
        kill_group(pid);
        tell_strays(nest);
    }
}

/* It is of no use any more, also not to those that wait. */
static void fail(struct nest *nest, const struct mr_error *err)
{
    nest->failure = *err;
    for (struct nest_fork *fork = nest->first; fork != NULL; fork = fork->next)
        fork->left_out = true;
    end(nest);
    finish(nest, 0, &nest->failure);
}

static void on_deadline(void *arg)
{
    struct nest *nest = arg;
    struct mr_error err = {0};

    if (!is_alive(nest))
        return; /* its answer or its end has come: on_event is next */
    mr_fail(&err, MR_ERR_TIMEOUT,
            "the process %d, which hosts are forked from, did not answer within %d ms",
            (int)nest->pid, NEST_MS);
    fail(nest, &err);
}

static void went_away(struct nest *nest)
{
    struct mr_error err = {0};

    if (!nest->asked) {
        log_warn("the process %d, which hosts are forked from, was killed or ended; another one "
                 "is started when a host is needed",
                 (int)nest->pid);
        end(nest);
        return;
    }
    mr_fail(&err, MR_ERR_CLOSED, "the process %d, which hosts are forked from, went away",
            (int)nest->pid);
    fail(nest, &err);
}

static void on_event(void *arg, uint32_t events)
{
    struct nest *nest = arg;
    struct nest_format_answer answer = {0};
    struct mr_error err = {0};
    ssize_t n = recv(nest->fd, &answer, sizeof(answer), MSG_DONTWAIT);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(answer) || !nest->asked ||
        (answer.error == 0 && !is_our_child(answer.pid))) {
        went_away(nest);
        return;
    }
    errno = answer.error;
    if (errno != 0)
        err_errno(&err, "cannot fork a host process");
    finish(nest, answer.pid, err.code != 0 ? &err : NULL);
}

/* Ask for the first, or answer it at once. */
static void on_turn(void *arg)
{
    struct nest *nest = arg;
    struct mr_error err = {0};

    if (nest->first == NULL)
        return; /* it was called off */
    if (nest->first->left_out) {
        finish(nest, 0, &nest->failure);
        return;
    }
    if (!is_alive(nest)) {
        if (nest->fd >= 0)
            went_away(nest);
        if (start(nest, &err) != 0) {
            finish(nest, 0, &err);
            return;
        }
    }
    nest->asked = true;
    loop_timer_start(nest->loop, &nest->deadline, NEST_MS, on_deadline, nest);
    if (!send_request(nest, nest->first))
        went_away(nest);
}

struct nest_fork *nest_fork(struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS],
                            nest_done done, void *arg)
{
    struct nest_fork *fork = calloc(1, sizeof(*fork));

    loop_assert_owner(nest->loop);
    mr_assert(fork != NULL);
    *fork = (struct nest_fork){.nest = nest, .fds = fds, .done = done, .arg = arg};
    snprintf(fork->conn, sizeof(fork->conn), "%s", conn);
    *nest->last = fork;
    nest->last = &fork->next;
    soon(nest);
    return fork;
}

void nest_cancel(struct nest_fork **forkp)
{
    struct nest_fork *fork = *forkp;
    struct nest_fork **place;

    *forkp = NULL;
    if (fork == NULL)
        return;
    if (fork == fork->nest->first && fork->nest->asked) {
        fork->done = NULL;
        return;
    }
    place = &fork->nest->first;
    while (*place != fork)
        place = &(*place)->next;
    forget(fork->nest, place);
}

bool nest_busy(const struct nest *nest)
{
    return nest->asked;
}

/* --- life ------------------------------------------------------------------------------------- */

struct nest *nest_new(struct loop *loop, const struct nest_options *options)
{
    struct nest *nest = calloc(1, sizeof(*nest));

    mr_assert(nest != NULL);
    *nest = (struct nest){.loop = loop, .strays = options->strays, .arg = options->arg, .fd = -1};
    nest->last = &nest->first;
    nest->exe = text_dup(options->exe);
    (void)start(nest, NULL);
    return nest;
}

/* Reaped here, since nobody looks for strays any more. */
static void reap(struct nest *nest)
{
    struct pollfd p = {.fd = pidfd_open(nest->pid, 0), .events = POLLIN};
    siginfo_t info;

    close_socket(nest);
    kill_group(nest->pid);
    if (p.fd >= 0) {
        poll(&p, 1, 1000);
        close(p.fd);
    }
    waitid(P_PID, (id_t)nest->pid, &info, WEXITED | WNOHANG);
    spawn_forget(nest->pid);
}

void nest_free(struct nest **nestp)
{
    struct nest *nest = *nestp;

    *nestp = NULL;
    if (nest == NULL)
        return;
    if (nest->fd >= 0)
        reap(nest);
    loop_timer_cancel(&nest->turn);
    loop_timer_cancel(&nest->deadline);
    while (nest->first != NULL)
        forget(nest, &nest->first);
    free(nest->exe);
    free(nest);
}

const char *nest_exe(const struct nest *nest)
{
    return nest->exe;
}
