/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of its nest: the process that hosts are forked from. Owner: the worker's loop;
 * nothing here blocks it but nest_free. */
#ifndef WORKER_NEST_H
#define WORKER_NEST_H

#include "base/loop.h"
#include "link/nest_format.h"

#include <sys/types.h>

#define NEST_MS 2000 /* for one host, the nest's own start included */

struct nest;
struct nest_fork; /* one that was asked for and not answered yet */

/* err NULL: pid is a child of this process that spawn_knows. Else there is no host: MR_ERR_IO,
 * plain spawn would not bring it about either (no processes, no such file); MR_ERR_CLOSED,
 * MR_ERR_TIMEOUT: the nest died or hung, and was ended. A host may then be in the world all the
 * same: whoever tries again gives it other descriptors, so that the end of these ends it. The nest
 * may be freed in it. */
typedef void (*nest_done)(void *arg, pid_t pid, const struct mr_error *err);

/* exe      path of the binary; copied
 * strays   a child of this process may be left that nobody knows: an ended nest, a host that nobody
 *          wants any more. It is to be looked for by orphans_sweep. NULL: nobody is told */
struct nest_options {
    const char *exe;
    void (*strays)(void *arg);
    void *arg;
};

/* Start the process, so that the first host need not wait for it. Where that fails, the first fork
 * will say why. */
struct nest *nest_new(struct loop *loop, const struct nest_options *options);
/* The process is killed and reaped, which is waited for, a second at most; hosts live on, forks are
 * forgotten. */
void nest_free(struct nest **nest);
const char *nest_exe(const struct nest *nest);

/* Fork a host, with what link/inherit.h promises; the nest is started before when there is none or
 * it has died. One is forked after the other.
 *
 * conn   the connector's name, for ps; copied
 * fds    become descriptors 1 to 4 of the host; borrowed until it is answered or called off
 * done   exactly once unless it is called off, never inside this call */
struct nest_fork *nest_fork(struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS],
                            nest_done done, void *arg);
/* Nobody wants it any more: should it come about, the host is killed. */
void nest_cancel(struct nest_fork **fork);
/* A host may be a child of this process and not be known yet. */
bool nest_busy(const struct nest *nest);

#endif
