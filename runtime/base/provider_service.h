/* SPDX-License-Identifier: Apache-2.0 */
/* A config provider that is not built in: it is asked in its own process, through the worker's
 * services (service_link.h). Any thread. Spec: ConfigProvider.get(path, keys), ConfigData. */
#ifndef BASE_PROVIDER_SERVICE_H
#define BASE_PROVIDER_SERVICE_H

#include "base/json.h"

#include <stdint.h>

#define PROVIDER_SERVICE_NO_TTL INT64_MAX

struct provider_service {
    const char *socket; /* of the worker's services */
    const char *name;   /* in config.providers */
};

/* The values of keys (an array of texts; empty: only whether it has started) that are there at
 * path. values: initialised, what is there is added; *ttl_ms: in how many milliseconds they are to
 * be read again, or PROVIDER_SERVICE_NO_TTL. MR_ERR_IO with what went wrong, naming provider and
 * path. Blocks, for a minute at most. */
int provider_service_get(const struct provider_service *service, const char *path,
                         const json_t *keys, struct props *values, int64_t *ttl_ms,
                         struct mr_error *err);

/* The answer, as untrusted bytes. MR_ERR_PROTOCOL: it is none; MR_ERR_IO: it is an error. Pure. */
int provider_service_read(const char *answer, size_t len, const json_t *keys, struct props *values,
                          int64_t *ttl_ms, struct mr_error *err);

#endif
