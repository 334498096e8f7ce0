/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a running worker (millrace.run.dir): its own lock, and the locks of its hosts. */
#ifndef WORKER_RUN_DIR_H
#define WORKER_RUN_DIR_H

#include "base/err.h"

#include <stdbool.h>

struct worker_config;

/* Where it is when the user names none: below $XDG_RUNTIME_DIR, else below $TMPDIR or /tmp, in a
 * folder that depends on the offset file: two workers with different offset files never share one,
 * two with the same file always do. malloc'ed. */
char *run_dir_default(const char *offset_file);

/* Where a cluster's worker whose run folder is there by default keeps what outlives the machine's
 * next start: below $STATE_DIRECTORY (systemd's StateDirectory=), else $XDG_STATE_HOME, else
 * ~/.local/state, in a folder of the run folder's name. malloc'ed; NULL: none of them is a folder
 * of this user. */
char *run_dir_default_state(const char *run_dir);

struct run_dir {
    const char *path;  /* the configuration's */
    const char *key;   /* it is set by; static */
    const char *apart; /* the key by which two workers keep apart; static */
    int lock_fd;       /* -1: not ours */
    bool by_default;   /* its place is run_dir_default's */
    bool made;         /* by this worker */
};

/* Make the folder config->run_dir, see that it is ours alone, and take the worker's lock in it.
 * config: borrowed until the close. MR_ERR_EXISTS: another worker holds it (its pid is named);
 * MR_ERR_IO: not writable, or open to others. dir is written in any case and may be closed.
 * Start-up only. */
int run_dir_open(struct run_dir *dir, const struct worker_config *config, struct mr_error *err);
/* The same with config->state_dir, for a worker of a cluster. Where it is the run folder, whose
 * lock is ours already, nothing is done. */
int run_dir_open_state(struct run_dir *dir, const struct worker_config *config,
                       struct mr_error *err);
/* Once no host is left: the lock and the folder are removed, unless the folder was there before. */
void run_dir_close(struct run_dir *dir);

#endif
