/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a process into the world: the only place that knows how, and which children of this
 * process are ours. */
#ifndef WORKER_SPAWN_H
#define WORKER_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

struct nest;

/* The worker's ends of a new host. All descriptors are close-on-exec, non-blocking where that means
 * something, and the caller's. The process leads a group of its own whose id is pid. */
struct spawn {
    pid_t pid;
    int pidfd;   /* readable once the process has ended; it is reaped by waitid on this */
    int link_fd; /* frames of link/msg.h */
    int box_fd;  /* link/black_box.h */
    int out_fd;  /* what it writes to 1 */
    int err_fd;  /* what it writes to 2 */
};

struct spawn_job; /* a host that was asked for and is not there yet */

/* s NULL: there is none, err says why (MR_ERR_IO: no descriptors, no processes, no such file), and
 * nothing is left behind. */
typedef void (*spawn_done)(void *arg, const struct spawn *s, const struct mr_error *err);

/* Start `millrace host <conn>` with what link/inherit.h promises: forked from the nest, or, if that
 * one dies or hangs, spawned without it after a warning.
 *
 * conn   the connector's name: shown by ps, nothing more; copied
 * done   once, unless it is called off, and never inside this call; the nest may be freed in it
 *
 * Returns NULL with err: no descriptors.
 * Thread: the loop's. Blocks for no more than a spawn without a nest takes, a millisecond or
 * two. */
struct spawn_job *spawn_host(struct nest *nest, const char *conn, spawn_done done, void *arg,
                             struct mr_error *err);
/* Nobody wants it any more: what comes about all the same hears the end of its link, and is
 * killed. */
void spawn_cancel(struct spawn_job **job);

/* Start exe as leader of a group of its own, with default handlers and no signal blocked. Its
 * descriptor i is a copy of fds[i], or /dev/null for -1; it has none from count on. A descriptor of
 * the caller's below count must stand in its own place. argv: ended by NULL. 0, or an errno. It is
 * known until spawn_forget, to be called when it is reaped. Any thread. */
int spawn_run(const char *exe, char *const *argv, const int *fds, size_t count, pid_t *pid);
void spawn_note(pid_t pid); /* a child that came by another way is known, too */
void spawn_forget(pid_t pid);
bool spawn_knows(pid_t pid);

#endif
