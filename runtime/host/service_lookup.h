/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a config provider's get: what is behind struct mr_lookup. */
#ifndef HOST_SERVICE_LOOKUP_H
#define HOST_SERVICE_LOOKUP_H

#include "base/json.h"
#include "host/host_api.h"

/* Ask the provider behind inst what the question (base/service_link.h) names. An answer's object,
 * or NULL with err: the text is the plugin's, or tells its mistake, and holds no value. Runs plugin
 * code. */
json_t *service_lookup_run(struct instance *inst, const json_t *question, struct mr_error *err);

/* Slots of the host's table. */
const char *service_lookup_path(const struct mr_lookup *at);
const char *service_lookup_key(const struct mr_lookup *at, size_t i);
void service_lookup_set(struct mr_lookup *at, size_t i, const char *value, size_t len);
void service_lookup_ttl(struct mr_lookup *at, int64_t ms);

#endif
