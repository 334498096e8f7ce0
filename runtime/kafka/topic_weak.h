/* SPDX-License-Identifier: Apache-2.0 */
/* What a topic's settings let brokers lose although it was confirmed. */
#ifndef KAFKA_TOPIC_WEAK_H
#define KAFKA_TOPIC_WEAK_H

#include "kafka/topic_admin.h"

/* Writes the settings by which a topic is weaker than Kafka can have it, such as "replication
 * factor 1, min.insync.replicas=1, unclean.leader.election.enable=true"; "" where there is none, or
 * what can't be read. timeout_ms is for each of three questions; blocks, as topic_admin does. */
void topic_weak_describe(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                         char *out, size_t size);

#endif
