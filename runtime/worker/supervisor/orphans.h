/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that outlived the one that answered for them. */
#ifndef WORKER_ORPHANS_H
#define WORKER_ORPHANS_H

#include "base/err.h"

#include <sys/types.h>

/* Path of the lock file that host number `number` of this worker holds: run_dir/host-<our
 * pid>-<number>.lock. false: it does not fit. */
bool orphans_lock_path(const char *run_dir, int64_t number, char *out, size_t size);

/* As supervisor_bury_orphans. wait_ms: how long they may take to end by themselves. */
int orphans_bury(const char *run_dir, int64_t wait_ms, int cancel_fd, struct mr_error *err);

/* Make this process the heir of what its hosts leave behind. Each host is the heir of its own
 * descendants, so whatever comes to us is the leftover of a dead one. */
void orphans_adopt(void);

/* Kill every child of this process that `ours` does not know, and reap those that are dead. Gives
 * how many there were: call again until there is none. Never blocks. */
size_t orphans_sweep(bool (*ours)(pid_t pid));

/* The last act of a worker: kill every child that is left, and wait until they are gone, for
 * wait_ms at the most. The guard of a service that has just ended is one (host/group_guard.h).
 * false: some can't be ended. Blocks. */
bool orphans_end(int64_t wait_ms);

#endif
