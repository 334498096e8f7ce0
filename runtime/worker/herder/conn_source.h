/* SPDX-License-Identifier: Apache-2.0 */
/* Where configurations, target states and assignments come from: all that the herder knows of it. A standalone worker has
 * its memory (standalone.c); a cluster has the config topic and the group, behind the same table and above the same
 * connectors.h. Owner: the worker's loop. */
#ifndef WORKER_CONN_SOURCE_H
#define WORKER_CONN_SOURCE_H

#include "worker/herder/connectors.h"

/* A connector that is known, whether it runs here or not. */
struct source_conn {
    char *name;
    const struct catalog_plugin *plugin;
    struct props config; /* as given */
    enum target_state target;
    uint64_t serial;     /* of the configuration: another one with each put */
    struct props *tasks; /* as made by the connector, with what Connect adds */
    size_t task_count;
};

/* A valid configuration to be stored. target: of a new connector; a known one keeps its own. */
struct source_put {
    const char *name;
    const struct catalog_plugin *plugin;
    const struct props *config;
    enum target_state target;
};

/* Begins what implements it.
 *
 * run_on    once, before the first change: what is to run here is told to these
 * find      NULL: unknown
 * next      for (size_t i = 0; (conn = next(source, &i)) != NULL;), oldest first
 * put, remove, target   stored, then run; done as in connectors.h. Refused (MR_ERR_CLOSED, MR_ERR_FULL, through done) before
 *           anything is stored. A new connector whose first start fails is forgotten again: who was told that it failed finds
 *           nothing left behind
 * made      a connector made the configurations of its tasks: answered by connectors_run, now or later */
struct conn_source {
    void (*run_on)(struct conn_source *source, struct connectors *connectors);
    const struct source_conn *(*find)(const struct conn_source *source, const char *name);
    const struct source_conn *(*next)(const struct conn_source *source, size_t *cursor);
    void (*put)(struct conn_source *source, const struct source_put *put, connectors_done done,
                void *arg);
    void (*remove)(struct conn_source *source, const char *name, connectors_done done, void *arg);
    void (*target)(struct conn_source *source, const char *name, enum target_state target,
                   connectors_done done, void *arg);
    void (*made)(struct conn_source *source, const char *conn, struct props *configs, size_t count);
    void (*free)(struct conn_source *source);
};

#endif
