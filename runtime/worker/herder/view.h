/* SPDX-License-Identifier: Apache-2.0 */
/* What REST shows of connectors and plugins, as JSON with Connect's members in Connect's order. Pure; new references.
 * Spec: org.apache.kafka.connect.runtime.rest.entities; reference rest 7. */
#ifndef WORKER_VIEW_H
#define WORKER_VIEW_H

#include "worker/herder/lifecycle.h"

#define VIEW_CONNECT_VERSION "4.3.1" /* the Connect that we answer as */

json_t *view_root(const char *cluster_id); /* NULL: not known yet */
json_t *view_info(const char *conn, const struct props *config, const struct catalog_plugin *plugin,
                  size_t task_count);
json_t *view_tasks(const char *conn, const struct props *tasks, size_t count);
json_t *view_status(const char *conn, const struct lifecycle *lc,
                    const struct catalog_plugin *plugin, const char *worker_id);
json_t *view_task_status(const struct lifecycle *lc, int task,
                         const char *worker_id); /* NULL: no such task */
json_t *view_plugins(const struct catalog *catalog, bool connectors_only);

#endif
