/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts ask before a task begins: may it still, and are its predecessors fenced? Owner: the worker's loop. */
#ifndef WORKER_START_DESK_H
#define WORKER_START_DESK_H

#include "worker/herder/conn_source.h"
#include "worker/herder/sink_members.h"
#include "worker/supervisor/supervisor.h"

/* Borrowed for life; source and supervisor outlive all answers. */
struct start_desk {
    struct loop *loop;
    struct supervisor *sup;
    struct conn_source *source;
    struct map *members; /* of sink_members.h */
};

/* The supervisor's events. */
void start_desk_check(struct start_desk *desk, const char *conn, int64_t id, int task,
                      int64_t generation);
void start_desk_fence(struct start_desk *desk, const char *conn, int64_t id);

#endif
