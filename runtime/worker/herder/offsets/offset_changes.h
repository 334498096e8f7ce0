/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of connectors, shown to REST and changed for it: those of sources in their store, those
 * of sinks in Kafka's groups. Owner: the worker's loop; nothing here blocks. Spec: KIP-875;
 * Worker.connectorOffsets, modifyConnectorOffsets. */
#ifndef WORKER_OFFSET_CHANGES_H
#define WORKER_OFFSET_CHANGES_H

#include "worker/herder/conn_source.h"

struct offset_changes;

/* All borrowed for life. */
struct offset_changes *offset_changes_new(struct loop *loop, struct conn_source *source,
                                          const struct worker_config *config);
/* From now on all are refused; what waits for plugins or Kafka is called off. What the source still
 * answers, also while it is freed, finds that: offset_changes_free comes after it. */
void offset_changes_stop(struct offset_changes *oc);
void offset_changes_free(struct offset_changes **oc);

/* As text {"offsets": […]}, in any state of the connector. MR_ERR_NOT_FOUND; MR_ERR_FATAL they can't
 * be read; MR_ERR_FULL, MR_ERR_CLOSED. */
void offset_changes_read(struct offset_changes *oc, const char *conn, herder_done done, void *arg);

/* entries: as in offset_entries.h, taken, and nobody else's; NULL: forget all. Done by the leader, for a connector
 * that is STOPPED and has no tasks. The connector's own code is asked first. Body {"message": …}.
 * MR_ERR_NOT_FOUND; MR_ERR_CONFIG: not STOPPED, or entries that a sink can't have; MR_ERR_STATE:
 * not now; MR_ERR_DATA, MR_ERR_FATAL: refused, or it failed; MR_ERR_FULL, MR_ERR_CLOSED. */
void offset_changes_apply(struct offset_changes *oc, const char *conn, json_t *entries,
                          herder_done done, void *arg);

#endif
