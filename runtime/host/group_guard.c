/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Started by host.c when the link is lost, before the host begins to stop: the
 * kernel timer that ends the host two seconds later (kill_timer.c) reaches this process alone, and
 * a control thread that gets no processor in time can't end the group. Started by service.c at
 * birth, since the kernel ends that one the moment its worker is gone.
 *
 * Made by a bare clone, since other threads run and fork would call what plugins have registered
 * for it: the child has a copy of a world in mid-act, so it calls nothing but the kernel. */
#include "host/group_guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOGGER "host.control"
#include "base/log.h"

#define END_FD 0

/* In the child: host is the process to wait for, and the number of its group. */
static void stand_guard(int pidfd, pid_t host)
{
    struct pollfd end = {.fd = END_FD, .events = POLLIN};

    setpgid(0, 0);
    if (dup2(pidfd, END_FD) != END_FD || close_range(END_FD + 1, ~0u, 0) != 0)
        _exit(1);
    while (poll(&end, 1, -1) < 0 && errno == EINTR)
        ;
    (void)kill(-host, SIGKILL);
    _exit(0);
}

void group_guard_start(void)
{
    pid_t host = getpid();
    int pidfd = pidfd_open(host, 0);
    long child = pidfd >= 0 ? syscall(SYS_clone, 0, NULL, NULL, NULL, 0) : -1;

    if (child == 0)
        stand_guard(pidfd, host);
    if (child > 0)
        setpgid((pid_t)child, (pid_t)child); /* whoever comes first */
    else
        log_debug("nobody watches over the processes that plugins have started: errno %d", errno);
    if (pidfd >= 0)
        close(pidfd);
}
