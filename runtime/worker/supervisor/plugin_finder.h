/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the plugins besides the connector itself that a configuration names. Pure. */
#ifndef WORKER_PLUGIN_FINDER_H
#define WORKER_PLUGIN_FINDER_H

#include "base/json.h"
#include "base/props.h"
#include "worker/supervisor/catalog.h"

/* For MSG_CONNECTOR_START: {property: {library, class}} of converters, transforms and predicates,
 * by the same rule of names and versions as validation, so what was valid is found; {property:
 * {error}} where a class is here in other versions only. Where the connector sets no converter, the
 * worker's. What is not installed is left out: the task that needs it says so. library: the
 * connector's, NULL none. New reference. */
json_t *plugin_finder_places(const struct catalog *catalog, const char *library,
                             const struct props *worker, const struct props *config);

#endif
