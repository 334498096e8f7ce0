/* SPDX-License-Identifier: Apache-2.0 */
/* The ids that sink tasks have in their consumer groups, as their hosts told them: what a dead one
 * leaves behind there its successor may make leave, and nobody else (host/task/sink/sink_ghosts.h).
 * Owner: the worker's loop. */
#ifndef WORKER_SINK_MEMBERS_H
#define WORKER_SINK_MEMBERS_H

#include "base/json.h"
#include "base/map.h"
#include "worker/herder/conn_source.h"

#define SINK_MEMBERS_MAX 100000 /* tasks; beyond it nothing is kept: their members are waited out */

/* A task of this worker's has joined as this member: kept, and told to other workers. */
void sink_members_joined(struct map *members, struct conn_source *source, const char *conn,
                         int task, const char *member);
/* [text] that a start of this task may make leave: those known here and in the cluster; NULL none.
 * The caller's. */
json_t *sink_members_left(const struct map *members, const struct conn_source *source,
                          const char *conn, int task);

#endif
