/* SPDX-License-Identifier: Apache-2.0 */
/* Where a source connector's offsets are kept besides the worker's topic. Pure.
 * Spec: KIP-618; Worker.offsetStoreFor{Regular,ExactlyOnce}Source{Connector,Task}. */
#ifndef MODEL_OFFSETS_TOPIC_H
#define MODEL_OFFSETS_TOPIC_H

#include "base/props.h"

/* Do this worker's source tasks run in transactions? */
bool offsets_topic_transactions(const struct props *worker);

/* The name of the connector's own offsets topic, malloc'ed. NULL: it has none, the worker's is all.
 * It has one where it names one (offsets.storage.topic), or where its transactions are of another
 * Kafka than the worker's, and that is not the worker's very topic. A standalone worker knows none.
 * worker, connector: whole configurations, references resolved. */
char *offsets_topic_own(const struct props *worker, const struct props *connector);

#endif
