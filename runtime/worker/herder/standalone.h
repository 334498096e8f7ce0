/* SPDX-License-Identifier: Apache-2.0 */
/* Where a standalone worker's configurations, target states and assignments come from: this
 * process's memory, and everything is assigned here.
 * Spec: org.apache.kafka.connect.runtime.standalone.StandaloneHerder, MemoryConfigBackingStore. */
#ifndef WORKER_STANDALONE_H
#define WORKER_STANDALONE_H

#include "worker/herder/conn_source.h"

/* Opens the offset file. NULL with err: MR_ERR_CONFIG, MR_ERR_IO, MR_ERR_PROTOCOL (a damaged
 * file). */
struct conn_source *standalone_open(const struct source_parts *parts, struct mr_error *err);

#endif
