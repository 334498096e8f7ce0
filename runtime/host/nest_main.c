/* SPDX-License-Identifier: Apache-2.0 */
/* `millrace nest`: the process that hosts are forked from, so that what the dynamic linker and the
 * libraries' first use write is written once a worker. Started by worker/supervisor/nest.c with
 * link/nest_format.h; one thread, always: what is forked is whole. It opens no plugin and keeps no
 * state, so it may be killed at any moment.
 *
 *   worker ── request, descriptors ─► nest ── fork ─► middle ── fork ─► host ─► host_main
 *      ◄───── answer: pid of the host ──┘ ◄── pid, exit ─┘
 *
 * The host must be a child of the worker, which waits for it. So there is a middle process: its end
 * makes the host an orphan, which the kernel gives to the nearest subreaper above, the worker.
 * (clone with CLONE_PARENT would do it in one step, but not through the C library: its idea of the
 * thread's id, and what others have asked it to do at a fork, as OpenSSL and the sanitizers have,
 * would be wrong in every host.) The answer waits for the end of the middle.
 *
 * A host inherits nothing of the nest but memory: default handlers and an empty mask are what the
 * nest was born with and never changes, descriptors are those of the request, everything above is
 * closed. */
#include "host/host.h"

#include "base/err.h"
#include "kafka/warm_up.h"
#include "link/nest_format.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define EXIT_USAGE 1
#define EXIT_INTERNAL 70

struct nest {
    char **argv; /* of this process: a host writes its own over it */
    int pids[2]; /* a pipe, from a middle process */
    struct nest_format_request request;
    int fds[NEST_FORMAT_FDS];
    size_t fd_count;
};

static bool born_right(int argc, char **argv)
{
    int type = 0;
    socklen_t len = sizeof(type);

    return argc == 2 && strlen(argv[1]) == NEST_FORMAT_NAME_MAX &&
           getsockopt(NEST_FORMAT_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
           type == SOCK_SEQPACKET;
}

/* --- one host --------------------------------------------------------------------------------- */

/* What ps shows is the memory that argv was born in. */
static void rename_process(struct nest *nest)
{
    static const char verb[] = "host";

    mr_assert(strlen(nest->argv[0]) == strlen(verb));
    memcpy(nest->argv[0], verb, strlen(verb));
    memcpy(nest->argv[1], nest->request.name, NEST_FORMAT_NAME_MAX);
}

/* The descriptors came at numbers above these, which the socket and the pipe hold. */
static void become_host(struct nest *nest)
{
    for (int i = 0; i < NEST_FORMAT_FDS; i++)
        if (dup2(nest->fds[i], i + 1) < 0)
            _exit(EXIT_INTERNAL);
    if (close_range(NEST_FORMAT_FDS + 1, ~0u, 0) != 0)
        _exit(EXIT_INTERNAL);
    setpgid(0, 0);
    rename_process(nest);
    _exit(host_main(2, nest->argv));
}

/* In the middle process. Both it and the host make the group: it stands before the host runs on,
 * and before anybody hears of it. Gives the exit code: 0, or an errno. */
static int fork_host(struct nest *nest)
{
    pid_t pid = fork();

    if (pid < 0)
        return errno;
    if (pid == 0)
        become_host(nest);
    setpgid(pid, pid);
    return write(nest->pids[1], &pid, sizeof(pid)) == (ssize_t)sizeof(pid) ? 0 : EIO;
}

static void hatch(struct nest *nest, struct nest_format_answer *answer)
{
    pid_t middle = fork(), pid;
    int status = 0;

    if (middle < 0) {
        answer->error = errno;
        return;
    }
    if (middle == 0)
        _exit(fork_host(nest));
    while (waitpid(middle, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status))
        _exit(EXIT_INTERNAL); /* killed by somebody: the worker starts another nest */
    answer->error = WEXITSTATUS(status);
    if (answer->error == 0 && read(nest->pids[0], &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
        answer->pid = pid;
}

/* --- requests --------------------------------------------------------------------------------- */

/* false: the worker is gone. */
static bool receive(struct nest *nest)
{
    struct iovec part = {&nest->request, sizeof(nest->request)};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(NEST_FORMAT_FDS * sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head;
    ssize_t n;

    do
        n = recvmsg(NEST_FORMAT_FD, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(nest->request))
        return false;
    head = CMSG_FIRSTHDR(&message);
    nest->fd_count = head == NULL ? 0 : (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (nest->fd_count > 0)
        memcpy(nest->fds, CMSG_DATA(head), nest->fd_count * sizeof(int));
    nest->request.name[NEST_FORMAT_NAME_MAX] = '\0';
    return true;
}

static bool serve(struct nest *nest)
{
    struct nest_format_answer answer = {0};

    if (!receive(nest))
        return false;
    if (nest->fd_count == NEST_FORMAT_FDS)
        hatch(nest, &answer);
    else
        answer.error = EMFILE; /* the kernel leaves out what finds no number here */
    for (size_t i = 0; i < nest->fd_count; i++)
        close(nest->fds[i]);
    return send(NEST_FORMAT_FD, &answer, sizeof(answer), MSG_NOSIGNAL) == (ssize_t)sizeof(answer);
}

int nest_main(int argc, char **argv)
{
    struct nest nest = {.argv = argv};

    if (!born_right(argc, argv)) {
        fprintf(stderr, "millrace nest: this command is started by the worker, not by hand\n");
        return EXIT_USAGE;
    }
    /* For a nest that is stopped when its worker is killed, and can't see the end of file. That
     * this also fires when only the thread ends that started the nest does no harm: the worker
     * starts another. Hosts do not inherit it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(argv[1], '\0', NEST_FORMAT_NAME_MAX);
    if (pipe2(nest.pids, O_CLOEXEC) != 0)
        return EXIT_INTERNAL;
    warm_up();
    while (serve(&nest))
        ;
    _exit(0);
}
