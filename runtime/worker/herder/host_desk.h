/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts ask the worker and wait for: a connector's offsets, read and stored; may a task start;
 * are its predecessors fenced. Owner: the worker's loop. */
#ifndef WORKER_HOST_DESK_H
#define WORKER_HOST_DESK_H

#include "worker/herder/conn_source.h"
#include "worker/herder/sink_members.h"
#include "worker/supervisor/supervisor.h"

/* Borrowed for life; source and supervisor outlive all answers. */
struct host_desk {
    struct loop *loop;
    struct supervisor *sup;
    struct conn_source *source;
    struct map *members; /* of sink_members.h */
};

/* The supervisor's events; the connector is the one that the host was given, so none reads or
 * writes another's offsets. */
void host_desk_get(struct host_desk *desk, const char *conn, int64_t id, const json_t *partitions);
void host_desk_put(struct host_desk *desk, const char *conn, int64_t id, const json_t *entries);
void host_desk_check(struct host_desk *desk, const char *conn, int64_t id, int task,
                     int64_t generation);
void host_desk_fence(struct host_desk *desk, const char *conn, int64_t id);

#endif
