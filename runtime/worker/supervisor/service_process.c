/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the process of a service into the world and out of it, for services.c. What it is to be
 * stands in a file without a name, its descriptor 0, since its settings may be secret; what it
 * prints, and its log, are read and logged as those of hosts are (output.c). It leads a group of
 * its own, which dies with it. */
#include "worker/supervisor/service_process.h"

#include "base/json.h"
#include "base/service_link.h"
#include "worker/supervisor/output.h"
#include "worker/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_MS 1000
#define FIRST_FREE_FD 16 /* above every number that it is born with */
#define FDS (SERVICE_LINK_FD + 1)

/* The worker's ends of its outputs, and its own descriptors by number; -1 none. */
struct birth {
    int out, err;
    int fds[FDS];
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* --- its end ---------------------------------------------------------------------------------- */

static void end_output(struct output **out)
{
    if (*out != NULL)
        output_finish(*out);
    output_free(out);
}

static void tell_end(const siginfo_t *end, char *how, size_t size)
{
    const char *name = end->si_code == CLD_EXITED ? NULL : sigabbrev_np(end->si_status);

    if (end->si_pid == 0)
        snprintf(how, size, "can't be ended");
    else if (end->si_code == CLD_EXITED)
        snprintf(how, size, "exited with code %d", end->si_status);
    else
        snprintf(how, size, "was killed by signal %d (SIG%s)", end->si_status,
                 name != NULL ? name : "?");
}

void service_process_end(struct service_process *process, char *how, size_t size)
{
    struct pollfd p = {.fd = process->pidfd, .events = POLLIN};
    siginfo_t end = {.si_pid = 0};

    kill(-process->pid, SIGKILL);
    pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
    poll(&p, 1, KILL_MS);
    kill(-process->pid, SIGKILL); /* what it has forked meanwhile: until it is reaped the number is
                                     its own */
    if (waitid(P_PIDFD, (id_t)process->pidfd, &end, WEXITED | WNOHANG) != 0)
        end.si_pid = 0;
    tell_end(&end, how, size);
    spawn_forget(process->pid);
    end_output(&process->out);
    end_output(&process->err);
    close_fd(&process->fd);
    close_fd(&process->pidfd);
    process->pid = 0;
}

/* --- its birth -------------------------------------------------------------------------------- */

static int setup_file(const struct services_spec *spec)
{
    json_t *setup = json_pack("{s:s, s:s, s:s, s:i, s:o}", "name", spec->name, "library",
                              spec->library, "class", spec->class_name, "kind", (int)spec->kind,
                              "params", json_from_props(spec->params));
    int fd = memfd_create("service", MFD_CLOEXEC);
    struct buf text;

    buf_init(&text, SERVICE_LINK_SETUP_MAX);
    if (fd >= 0 && (setup == NULL || json_write(&text, setup) != 0 ||
                    pwrite(fd, text.data, text.len, 0) != (ssize_t)text.len))
        close_fd(&fd);
    if (text.data != NULL)
        explicit_bzero(text.data, text.len);
    buf_deinit(&text);
    json_decref(setup);
    return fd;
}

static int move_up(int *fd)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);

    close_fd(fd);
    *fd = moved;
    return moved >= 0 ? 0 : -1;
}

static int open_birth(struct service_process *process, const struct services_spec *spec,
                      struct birth *b)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, pair[2] = {-1, -1};
    int rc = 0;

    b->fds[0] = setup_file(spec);
    if (b->fds[0] < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 ||
        pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        rc = -1;
    b->out = out[0];
    b->fds[1] = out[1];
    b->err = err[0];
    b->fds[2] = err[1];
    process->fd = pair[0];
    b->fds[SERVICE_LINK_FD] = pair[1];
    for (int i = 0; rc == 0 && i < FDS; i++)
        rc = move_up(&b->fds[i]);
    return rc;
}

static int run(struct service_process *process, const char *exe, const struct services_spec *spec,
               const struct birth *b, struct mr_error *err)
{
    char program[] = "millrace", verb[] = "service";
    char *argv[] = {program, verb, (char *)(uintptr_t)spec->name, NULL};

    errno = spawn_run(exe, argv, b->fds, FDS, &process->pid);
    if (errno != 0) {
        process->pid = 0;
        return err_errno(err, "its process can't be started");
    }
    process->pidfd = pidfd_open(process->pid, 0);
    if (process->pidfd >= 0)
        return 0;
    err_errno(err, "its process can't be watched");
    kill(-process->pid, SIGKILL); /* a stray from now on, and reaped as one */
    spawn_forget(process->pid);
    process->pid = 0;
    return MR_ERR_IO;
}

static int read_outputs(struct service_process *process, struct loop *loop, const char *what,
                        struct birth *b, struct mr_error *err)
{
    process->out = output_new(loop, b->out, what, "plugin.stdout", err);
    b->out = -1;
    if (process->out == NULL)
        return MR_ERR_IO;
    process->err = output_new(loop, b->err, what, "plugin.stderr", err);
    b->err = -1;
    return process->err != NULL ? 0 : MR_ERR_IO;
}

int service_process_start(struct service_process *process, struct loop *loop, const char *exe,
                          const struct services_spec *spec, struct mr_error *err)
{
    struct birth b = {.out = -1, .err = -1, .fds = {-1, -1, -1, -1}};
    char how[64];
    int rc;

    *process = (struct service_process){.pidfd = -1, .fd = -1};
    rc = open_birth(process, spec, &b) == 0 ? 0 : err_errno(err, "no descriptors for its process");
    if (rc == 0)
        rc = run(process, exe, spec, &b, err);
    if (rc == 0)
        rc = read_outputs(process, loop, spec->what, &b, err);
    if (rc != 0 && process->pid != 0)
        service_process_end(process, how, sizeof(how));
    if (rc != 0)
        close_fd(&process->fd);
    close_fd(&b.out);
    close_fd(&b.err);
    for (int i = 0; i < FDS; i++)
        close_fd(&b.fds[i]);
    return rc;
}
