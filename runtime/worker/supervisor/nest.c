/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of its nest. A host that is executed pays for itself about a megabyte of library pages that the dynamic
 * linker writes to; forked from one process that has them all, hosts share them. Called by spawn.c on the loop's thread;
 * the other end is host/nest_main.c.
 *
 * The nest is made with the supervisor, and again at the next need once it is found dead. It is spawned like any process of ours, so it
 * holds nothing of the worker's but its end of the socket, and ends with the worker: by end of file there.
 * What hosts share with it and with each other is also their layout in memory: an address learnt in one of them is true in
 * all of this worker's, until it starts again. They are one user's processes and plugins are trusted code, so no wall
 * stood there before. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/nest.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct nest {
    char *exe;
    int fd; /* -1: there is no process */
    pid_t pid;
};

/* With its group: what it was about to make a host of goes too. */
static void end(struct nest *nest)
{
    if (nest->fd < 0)
        return;
    close(nest->fd);
    nest->fd = -1;
    kill(-nest->pid, SIGKILL);
    waitpid(nest->pid, NULL, 0);
    spawn_forget(nest->pid);
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

static bool send_request(const struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS])
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

    snprintf(request.name, sizeof(request.name), "%s", conn);
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(NEST_FORMAT_FDS * sizeof(int))};
    memcpy(CMSG_DATA(&control.head), fds, NEST_FORMAT_FDS * sizeof(int));
    return sendmsg(nest->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(request);
}

/* false: not within NEST_MS. */
static bool await_answer(const struct nest *nest)
{
    struct pollfd p = {.fd = nest->fd, .events = POLLIN};
    int64_t due = clock_ms() + NEST_MS;
    int64_t left = NEST_MS;
    int rc;

    do {
        rc = poll(&p, 1, left > 0 ? (int)left : 0);
        left = due - clock_ms();
    } while (rc < 0 && errno == EINTR);
    return rc > 0;
}

/* It is what the nest says, and not somebody else's. */
static bool is_our_child(pid_t pid)
{
    siginfo_t info;

    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int ask(const struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS],
               struct nest_format_answer *answer, struct mr_error *err)
{
    if (!send_request(nest, conn, fds))
        return mr_fail(err, MR_ERR_CLOSED, "the process %d, which hosts are forked from, is dead",
                       (int)nest->pid);
    if (!await_answer(nest))
        return mr_fail(err, MR_ERR_TIMEOUT,
                       "the process %d, which hosts are forked from, did not answer within %d ms",
                       (int)nest->pid, NEST_MS);
    if (recv(nest->fd, answer, sizeof(*answer), MSG_DONTWAIT) != (ssize_t)sizeof(*answer) ||
        (answer->error == 0 && !is_our_child(answer->pid)))
        return mr_fail(err, MR_ERR_CLOSED, "the process %d, which hosts are forked from, went away",
                       (int)nest->pid);
    return 0;
}

struct nest *nest_new(const char *exe)
{
    struct nest *nest = calloc(1, sizeof(*nest));

    mr_assert(nest != NULL);
    nest->exe = strdup(exe);
    mr_assert(nest->exe != NULL);
    nest->fd = -1;
    (void)start(nest, NULL);
    return nest;
}

void nest_free(struct nest **nestp)
{
    struct nest *nest = *nestp;

    *nestp = NULL;
    if (nest == NULL)
        return;
    end(nest);
    free(nest->exe);
    free(nest);
}

const char *nest_exe(const struct nest *nest)
{
    return nest->exe;
}

int nest_fork(struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS], pid_t *pid,
              struct mr_error *err)
{
    struct nest_format_answer answer = {0};
    int rc = 0;

    if (!is_alive(nest)) {
        end(nest);
        rc = start(nest, err);
    }
    if (rc != 0)
        return rc;
    rc = ask(nest, conn, fds, &answer, err);
    if (rc != 0) {
        end(nest);
        return rc;
    }
    errno = answer.error;
    if (errno != 0)
        return err_errno(err, "cannot fork a host process");
    spawn_note(answer.pid);
    *pid = answer.pid;
    return 0;
}
