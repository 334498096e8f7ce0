/* SPDX-License-Identifier: Apache-2.0 */
/* Where a standalone worker's configurations, target states and assignments come from: this process's memory, and
 * everything is assigned here. A distributed worker has the config topic and the group in its place, above the same
 * connectors.h. Owner: the worker's loop.
 * Spec: org.apache.kafka.connect.runtime.standalone.StandaloneHerder, MemoryConfigBackingStore. */
#ifndef WORKER_STANDALONE_H
#define WORKER_STANDALONE_H

#include "worker/herder/connectors.h"

struct standalone;

struct standalone_conn {
    char *name;
    const struct catalog_plugin *plugin;
    struct props config; /* as given */
    enum target_state target;
    uint64_t serial;     /* of the configuration: another one with each put */
    struct props *tasks; /* as made by the connector, with what Connect adds */
    size_t task_count;
};

struct standalone *standalone_new(void);
void standalone_free(struct standalone **sa);
void standalone_run_on(struct standalone *sa,
                       struct connectors *connectors); /* once, before the first change */

const struct standalone_conn *standalone_find(const struct standalone *sa, const char *name);
/* for (size_t i = 0; (conn = standalone_next(sa, &i)) != NULL;), oldest first */
const struct standalone_conn *standalone_next(const struct standalone *sa, size_t *cursor);

/* All changes: refused (MR_ERR_CLOSED, MR_ERR_FULL, through done) before anything is stored.
 *
 * Store a valid configuration and run it. target: of a new connector; a known one keeps its own. done as in connectors.h.
 * A new connector whose first start fails is forgotten again: who was told that it failed finds nothing left behind. */
struct standalone_put {
    const char *name;
    const struct catalog_plugin *plugin;
    const struct props *config;
    enum target_state target;
};
void standalone_put(struct standalone *sa, const struct standalone_put *put, connectors_done done,
                    void *arg);
void standalone_delete(struct standalone *sa, const char *name, connectors_done done, void *arg);
void standalone_target(struct standalone *sa, const char *name, enum target_state target,
                       connectors_done done, void *arg);

/* The `made` of connectors.h: stored at once, and run at once. */
void standalone_made(void *sa, const char *conn, struct props *configs, size_t count);

#endif
