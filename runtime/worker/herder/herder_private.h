/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the herder share: its parts, and a connector's state as it is shown. Owner: the
 * worker's loop. */
#ifndef WORKER_HERDER_PRIVATE_H
#define WORKER_HERDER_PRIVATE_H

#include "base/map.h"
#include "worker/herder/cluster_probe.h"
#include "worker/herder/conn_source.h"
#include "worker/herder/host_desk.h"
#include "worker/herder/validate/judge.h"
#include "worker/herder/offsets/offset_changes.h"

struct herder {
    struct loop *loop;
    const struct worker_config *config;
    const struct catalog *catalog;
    struct supervisor *sup;
    struct host_desk desk;
    struct connectors *connectors;
    struct judge *judge;
    struct conn_source *source;
    struct offset_changes *offsets;
    struct cluster_probe *probe;
    struct map *sink_members; /* "CONN-TASK" → text; sink_members.h */
    char *cluster_id;         /* NULL: not known yet */
    int64_t stage_wall_ms;    /* when what the worker does now began */
    bool started;
    bool stopping;
    loop_fn stopped_fn;
    void *stopped_arg;
    struct loop_timer stop_guard;
    void (*readable)(void *arg);
    void (*failed)(void *arg, const struct mr_error *err);
    void *mode_arg;
};

/* --- herder_reads.c --------------------------------------------------------------------------- */

/* The state of a connector, with those parts of it that a restart means shown as RESTARTING. A
 * deleted one has its state until that is removed too: who waits for its end may use the name again
 * then. NULL: it has none. */
json_t *herder_marked_status(const struct herder *herder, const char *conn,
                             const struct connectors_plan *plan);

#endif
