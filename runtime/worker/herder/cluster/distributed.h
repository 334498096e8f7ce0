/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cluster's configurations, target states, assignments, states and offsets come from: three
 * topics and the group.
 * Spec: org.apache.kafka.connect.runtime.distributed.DistributedHerder. */
#ifndef WORKER_DISTRIBUTED_H
#define WORKER_DISTRIBUTED_H

#include "worker/herder/conn_source.h"

/* Begins to read the topics; joins the group once they were read. parts->config: of a cluster,
 * worker_id set. NULL with err: MR_ERR_CONFIG. */
struct conn_source *distributed_open(const struct source_parts *parts, struct mr_error *err);

#endif
