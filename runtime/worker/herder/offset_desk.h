/* SPDX-License-Identifier: Apache-2.0 */
/* Carries the offset questions of hosts to the store and the answers back. Owner: the worker's
 * loop. */
#ifndef WORKER_OFFSET_DESK_H
#define WORKER_OFFSET_DESK_H

#include "worker/store/offset_store.h"
#include "worker/supervisor/supervisor.h"

/* Borrowed for life; store and supervisor outlive all answers. */
struct offset_desk {
    struct supervisor *sup;
    struct offset_store store;
};

/* The supervisor's events; the connector is the one that the host was given, so none reads or
 * writes another's offsets. */
void offset_desk_get(struct offset_desk *desk, const char *conn, int64_t id,
                     const json_t *partitions);
void offset_desk_put(struct offset_desk *desk, const char *conn, int64_t id, const json_t *entries);

#endif
