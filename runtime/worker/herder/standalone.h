/* SPDX-License-Identifier: Apache-2.0 */
/* Where a standalone worker's configurations, target states and assignments come from: this process's memory, and
 * everything is assigned here.
 * Spec: org.apache.kafka.connect.runtime.standalone.StandaloneHerder, MemoryConfigBackingStore. */
#ifndef WORKER_STANDALONE_H
#define WORKER_STANDALONE_H

#include "worker/herder/conn_source.h"

struct conn_source *standalone_new(void);

#endif
