/* SPDX-License-Identifier: Apache-2.0 */
/* connector.client.config.override.policy: which settings of Kafka clients a connector may
 * override. Asked when a configuration is validated, and again when a task makes its clients,
 * since what is stored may be older than the policy. Pure.
 * Spec: org.apache.kafka.connect.connector.policy; KIP-1188 (Allowlist). */
#ifndef MODEL_OVERRIDE_POLICY_H
#define MODEL_OVERRIDE_POLICY_H

#include "base/props.h"

/* The policy's short name for its own or its Java class's
 * ("….policy.NoneConnectorClientConfigOverridePolicy"). NULL: there is no such policy. */
const char *override_policy_known(const char *text);

/* The policy of a worker with these properties, which were checked at its start: "All" where none
 * is set. */
const char *override_policy_of(const struct props *worker);
/* key: without producer.override. and so on. */
bool override_policy_allows(const struct props *worker, const char *key);

#endif
