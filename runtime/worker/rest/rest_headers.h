/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that every answer of the main listeners carries besides its own: what
 * access.control.allow.* give to browsers, and what response.http.headers.config asks for. Any
 * thread.
 * Spec: RestServerConfig; Jetty 12's CrossOriginHandler as Kafka Connect 4.3.1 sets it up,
 * Jetty's HeaderFilter. */
#ifndef WORKER_REST_HEADERS_H
#define WORKER_REST_HEADERS_H

#include "worker/worker_config.h"

struct rest_headers;

/* NULL with MR_ERR_CONFIG in err, which is empty before and not NULL: the key, and what is
 * wrong, in Java's words where Java has some. */
struct rest_headers *rest_headers_new(const struct worker_config *config, struct mr_error *err);
void rest_headers_free(struct rest_headers **headers);

/* Of a request; NULL where it has no such header. */
struct rest_headers_asked {
    const char *method;
    const char *origin;        /* Origin */
    const char *wanted_method; /* Access-Control-Request-Method */
};

/* Calls fn for each header, in order; replaces: it takes the place of those of its name that are
 * there. */
typedef void (*rest_headers_fn)(void *arg, const char *name, const char *value, bool replaces);
void rest_headers_tell(struct rest_headers *headers, const struct rest_headers_asked *asked,
                       int64_t wall_ms, rest_headers_fn fn, void *arg);

#endif
