/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of Kafka's Java clients as their definitions have them: types, defaults,
 * importance. What a connector overrides of them is read and shown by these; what a client here
 * does with them is kafka/client_conf.h. Pure.
 * Spec: ProducerConfig, ConsumerConfig, AdminClientConfig of Kafka 4.3. */
#ifndef MODEL_CLIENT_KEYS_H
#define MODEL_CLIENT_KEYS_H

#include <millrace/config.h>

enum client_keys_kind { CLIENT_KEYS_PRODUCER = 1, CLIENT_KEYS_CONSUMER = 2, CLIENT_KEYS_ADMIN = 4 };

/* NULL: that kind of client has no such setting. */
const struct mr_config_key *client_keys_find(enum client_keys_kind kind, const char *name);

#endif
