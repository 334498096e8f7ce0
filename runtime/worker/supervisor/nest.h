/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of its nest: the process that hosts are forked from. Owner: the worker's loop. */
#ifndef WORKER_NEST_H
#define WORKER_NEST_H

#include "base/err.h"
#include "link/nest_format.h"

#include <sys/types.h>

#define NEST_MS 2000 /* for one host, its own start included */

struct nest;

/* Start the process, so that the first host need not wait for it. Where that fails, nest_fork will say why. exe: path of
 * the binary, copied. */
struct nest *nest_new(const char *exe);
void nest_free(struct nest **nest); /* the process is killed and reaped; hosts live on */
const char *nest_exe(const struct nest *nest);

/* Fork a host, with what link/inherit.h promises; start the nest before when there is none or it has died.
 *
 * conn   the connector's name, for ps
 * fds    become descriptors 1 to 4 of the host; borrowed
 * pid    written on success only: a child of this process that spawn_knows
 *
 * Returns 0, or MR_ERR_IO: there is no host, and plain spawn would not bring it about either (no processes, no such file),
 *         or MR_ERR_CLOSED, MR_ERR_TIMEOUT: the nest died or hung, and was ended. A host may then be in the world all the
 *         same: whoever tries again gives it other descriptors, so that the end of these ends it.
 * Blocks, NEST_MS at most. */
int nest_fork(struct nest *nest, const char *conn, const int fds[NEST_FORMAT_FDS], pid_t *pid,
              struct mr_error *err);

#endif
