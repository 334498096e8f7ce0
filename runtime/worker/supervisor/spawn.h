/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a host process into the world: the only place that knows how. */
#ifndef WORKER_SPAWN_H
#define WORKER_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

/* The worker's ends of a new host. All descriptors are close-on-exec, non-blocking where that means something, and the
 * caller's. The process leads a group of its own whose id is pid. */
struct spawn {
    pid_t pid;
    int pidfd;   /* readable once the process has ended; it is reaped by waitid on this */
    int link_fd; /* frames of link/msg.h */
    int box_fd;  /* link/black_box.h */
    int out_fd;  /* what it writes to 1 */
    int err_fd;  /* what it writes to 2 */
};

/* Start `exe host <conn>` with what link/inherit.h promises.
 *
 * exe    path of the binary; "/proc/self/exe" is this one, also after the file was replaced
 * conn   the connector's name: shown by ps, nothing more
 * out    written on success only
 *
 * Returns 0, or MR_ERR_IO with the reason (no descriptors, no processes, no such file); nothing is left behind then.
 * Thread: any. Blocks until the new process has begun to run exe: a millisecond or two. */
int spawn_host(const char *exe, const char *conn, struct spawn *out, struct mr_error *err);

#endif
