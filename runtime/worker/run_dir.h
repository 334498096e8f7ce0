/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a running worker (millrace.run.dir): its own lock, and the locks of its hosts. */
#ifndef WORKER_RUN_DIR_H
#define WORKER_RUN_DIR_H

#include "base/err.h"

/* Where it is when the user names none: below $XDG_RUNTIME_DIR, else below $TMPDIR or /tmp, in a folder that depends on
 * the offset file: two workers with different offset files never share one, two with the same file always do. malloc'ed. */
char *run_dir_default(const char *offset_file);

/* Make the folder, see that it is ours alone, and take the worker's lock in it, which lives until the process ends.
 * MR_ERR_EXISTS: another worker holds it (its pid is named); MR_ERR_IO: not writable, or open to others. Start-up only. */
int run_dir_open(const char *path, struct mr_error *err);

#endif
