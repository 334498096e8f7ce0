/* SPDX-License-Identifier: Apache-2.0 */
/* Learns the Kafka cluster's id on a thread of its own, however long that takes, and says every few
 * seconds that it waits; then looks now and then whether Kafka is still there, and says once that
 * it is lost and once that it is back. Owner: the worker's loop. */
#ifndef WORKER_CLUSTER_PROBE_H
#define WORKER_CLUSTER_PROBE_H

#include "base/loop.h"
#include "worker/worker_config.h"

struct cluster_probe;

/* fn runs once, on the loop; id is borrowed. config: borrowed until the probe is stopped. NULL with
 * err: no client can be made of the settings. */
typedef void (*cluster_probe_fn)(void *arg, const char *id);
struct cluster_probe *cluster_probe_start(struct loop *loop, const struct worker_config *config,
                                          cluster_probe_fn fn, void *arg, struct mr_error *err);
/* Kafka does not answer: "Kafka at SERVERS has not answered since TIME: WHY." with what the client
 * saw last; or "": it does, as far as is known. */
void cluster_probe_trouble(struct cluster_probe *probe, char *out, size_t size);
/* fn does not run any more; the thread notices within half a second. Does not block. NULL:
 * nothing. */
void cluster_probe_stop(struct cluster_probe *probe);
/* Stops it and waits for its thread, for a second at most: a Kafka client that does not end by then
 * is left behind. */
void cluster_probe_free(struct cluster_probe **probe);

#endif
