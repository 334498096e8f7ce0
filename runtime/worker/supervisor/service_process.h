/* SPDX-License-Identifier: Apache-2.0 */
/* The process of one service: `millrace service NAME`, born with the descriptors of
 * base/service_link.h. Owner: the services' thread. */
#ifndef WORKER_SERVICE_PROCESS_H
#define WORKER_SERVICE_PROCESS_H

#include "base/loop.h"
#include "worker/supervisor/services.h"

#include <sys/types.h>

struct output;

/* All zero: there is none. */
struct service_process {
    pid_t pid; /* 0: none */
    int pidfd; /* readable once it has ended */
    int fd;    /* frames */
    struct output *out, *err;
};

/* What it writes is logged by loop. MR_ERR_IO: no descriptors, no process; none then. spec: its
 * texts must live as long as the process. Blocks for as long as a spawn takes. */
int service_process_start(struct service_process *process, struct loop *loop, const char *exe,
                          const struct services_spec *spec, struct mr_error *err);

/* It is killed, with all that it has forked, unless it has ended before, and reaped; how it ended
 * goes into how (size bytes), as "exited with code 3". Blocks for a second at most. */
void service_process_end(struct service_process *process, char *how, size_t size);

#endif
