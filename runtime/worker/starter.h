/* SPDX-License-Identifier: Apache-2.0 */
/* What a start has to wait for, on a thread of its own, so that the worker answers (503) and can be
 * ended meanwhile: a look at the plugins, and the end of hosts that an earlier worker left. Owner:
 * the worker's loop. */
#ifndef WORKER_STARTER_H
#define WORKER_STARTER_H

#include "base/loop.h"
#include "worker/worker_config.h"

struct catalog;
struct starter;

/* fn runs exactly once, on the loop. catalog: taken; NULL with err (borrowed): the start failed, or
 * was called off (MR_ERR_CLOSED). exe: the binary that scans. config: borrowed until fn; its
 * `found` is taken, and not looked for again. NULL with err: no thread. */
typedef void (*starter_fn)(void *arg, struct catalog *catalog, const struct mr_error *err);
struct starter *starter_new(struct loop *loop, const char *exe, struct worker_config *config,
                            starter_fn fn, void *arg, struct mr_error *err);

/* Call it off: fn runs soon, unless a file system hangs. Does not block. */
void starter_cancel(struct starter *starter);

void starter_free(struct starter **starter); /* in fn, or after it */

#endif
