/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of a source for REST, wherever they are kept: in the worker's store, and in the offsets
 * topic that the connector has for itself, if it has one. Owner: the worker's loop. Spec: KIP-618;
 * ConnectorOffsetBackingStore. */
#ifndef WORKER_SOURCE_OFFSETS_H
#define WORKER_SOURCE_OFFSETS_H

#include "base/loop.h"
#include "worker/herder/offsets/offset_jobs.h"
#include "worker/store/offset_store.h"
#include "worker/worker_config.h"

struct source_offsets;

/* All borrowed for life. */
struct source_offsets *source_offsets_new(struct loop *loop, struct offset_jobs *jobs,
                                          const struct offset_store *store,
                                          const struct worker_config *config);
/* From now on all is refused, and what a process is asked is called off. What the store still
 * answers finds that: source_offsets_free comes after it. */
void source_offsets_stop(struct source_offsets *so);
void source_offsets_free(struct source_offsets **so);

/* Whose offsets; copied. */
struct source_offsets_conn {
    const char *name;
    const struct props *config; /* as given */
};

/* All [partition, offset] of the connector; of a partition that both know, its own topic's
 * counts. */
void source_offsets_list(struct source_offsets *so, const struct source_offsets_conn *conn,
                         offset_store_read_fn fn, void *arg);
/* Store [[partition, offset | null], …], taken, and nobody else's: removals in the worker's store, then all in the
 * topic of its own, then the rest in the worker's store, which may fail and is told in the log. */
void source_offsets_put(struct source_offsets *so, const struct source_offsets_conn *conn,
                        json_t *entries, offset_store_written_fn fn, void *arg);

#endif
