/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a Kafka cluster who it is, and whether it is still there. Owner: one thread; it blocks, at
 * most as long as it is told. */
#ifndef KAFKA_CLUSTER_H
#define KAFKA_CLUSTER_H

#include "kafka/client_conf.h"

struct cluster;

/* A client that is used for nothing else. java: layered properties of an admin client. */
struct cluster *cluster_new(const struct props *java, struct mr_error *err);
void cluster_free(struct cluster **cluster);

/* The cluster's id, copied. MR_ERR_TIMEOUT: no broker answered yet; err says what the client last
 * saw ("localhost:9092: Connect failed: Connection refused"). May be called again: the client goes
 * on trying in between. */
int cluster_id(struct cluster *cluster, int64_t timeout_ms, char *out, size_t size,
               struct mr_error *err);
/* 0: a broker answers now. MR_ERR_TIMEOUT: none in this time; err as above. */
int cluster_answers(struct cluster *cluster, int64_t timeout_ms, struct mr_error *err);

#endif
