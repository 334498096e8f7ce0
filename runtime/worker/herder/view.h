/* SPDX-License-Identifier: Apache-2.0 */
/* What REST shows of connectors and plugins, as JSON with Connect's members in Connect's order.
 * Pure; new references.
 * Spec: org.apache.kafka.connect.runtime.rest.entities; reference rest 7. */
#ifndef WORKER_VIEW_H
#define WORKER_VIEW_H

#include "base/json.h"
#include "worker/herder/conn_source.h"

#define VIEW_CONNECT_VERSION "4.3.1" /* the Connect that we answer as */

json_t *view_root(const char *cluster_id); /* NULL: not known yet */
json_t *view_info(const struct source_conn *conn);
json_t *view_task_config(const char *conn, int task, const struct props *config);
/* The states of a connector and its tasks; each begins with nothing of the tasks. */
json_t *view_status(const char *conn, const struct source_state *state,
                    const struct catalog_plugin *plugin);
void view_add_task(json_t *status, int task, const struct source_state *state);
json_t *view_task(int task, const struct source_state *state);
json_t *view_plugins(const struct catalog *catalog, bool connectors_only);

#endif
