/* SPDX-License-Identifier: Apache-2.0 */
/* The API as an OpenAPI 3.0 document, made from the table of operations: what is no row there is
 * not in it. Calls that workers make to each other are left out, as in the document that Kafka
 * Connect publishes. Pure. */
#ifndef WORKER_OPENAPI_H
#define WORKER_OPENAPI_H

#include "base/json.h"
#include "worker/rest/router.h"

/* version: of the API, as GET / tells it. NULL out of memory. */
json_t *openapi_document(const struct route *routes, size_t count, const char *version);

#endif
