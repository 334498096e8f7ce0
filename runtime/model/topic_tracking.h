/* SPDX-License-Identifier: Apache-2.0 */
/* Which topics connectors use: is that kept, and what can be one? Pure.
 * Spec: KIP-558; org.apache.kafka.connect.runtime.WorkerConfig. */
#ifndef MODEL_TOPIC_TRACKING_H
#define MODEL_TOPIC_TRACKING_H

#include "base/props.h"

/* Of one connector that are kept; further ones are left out. */
#define TOPIC_TRACKING_MAX 10000

/* topic.tracking.enable and topic.tracking.allow.reset of a worker's configuration, which was
 * checked before. */
bool topic_tracking_wanted(const struct props *worker);
bool topic_tracking_resets(const struct props *worker);

/* A name that Kafka lets a topic have. */
bool topic_tracking_is_topic(const char *name);

#endif
