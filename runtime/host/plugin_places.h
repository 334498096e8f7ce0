/* SPDX-License-Identifier: Apache-2.0 */
/* Where the plugins are that a connector's configuration names, as the worker has found them: an
 * object of {library, class} by the property that names one: "key.converter", "transforms.a.type",
 * "predicates.p.type"; of {error}, when the version asked for is not there. A property is absent
 * when it is not set, or nothing of that name is installed. */
#ifndef HOST_PLUGIN_PLACES_H
#define HOST_PLUGIN_PLACES_H

#include "base/json.h"
#include "host/plugin_load.h"

/* Is it such an object? MR_ERR_PROTOCOL. */
int plugin_places_check(const json_t *places, struct mr_error *err);
/* The one that property names; both NULL when there is none. Borrowed from a checked object. Any
 * thread, while nobody writes. */
struct plugin_place plugin_places_find(const json_t *places, const char *property);
/* Open the library and find the plugin in it. NULL with err, which begins with the property. As
 * plugin_load_find. */
const struct plugin *plugin_places_load(const json_t *places, const char *property, uint32_t kind,
                                        const char *named, struct mr_error *err);

#endif
