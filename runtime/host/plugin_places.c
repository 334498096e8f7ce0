/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what CONNECTOR_START says of plugins. Checked by control when it comes, read by task
 * threads after that; nobody changes it as long as the connector is here. */
#include "host/plugin_places.h"

int plugin_places_check(const json_t *places, struct mr_error *err)
{
    const char *property, *text;
    json_t *place;

    json_object_foreach((json_t *)(uintptr_t)places, property, place)
    {
        if (!json_get_text(place, "error", &text) &&
            (!json_get_text(place, "library", &text) || !json_get_text(place, "class", &text)))
            return mr_fail(err, MR_ERR_PROTOCOL, "%.200s has no library or no class", property);
    }
    return 0;
}

struct plugin_place plugin_places_find(const json_t *places, const char *property)
{
    const json_t *place = json_object_get(places, property);
    struct plugin_place found = {NULL, NULL};

    if (!json_get_text(place, "library", &found.library) ||
        !json_get_text(place, "class", &found.name))
        return (struct plugin_place){NULL, NULL};
    return found;
}

const struct plugin *plugin_places_load(const json_t *places, const char *property, uint32_t kind,
                                        const char *named, struct mr_error *err)
{
    struct plugin_place place = plugin_places_find(places, property);
    const struct plugin *plugin;
    const char *error;

    if (json_get_text(json_object_get(places, property), "error", &error)) {
        mr_fail(err, MR_ERR_CONFIG, "%s", error);
        return NULL;
    }
    if (place.library == NULL) {
        mr_fail(err, MR_ERR_CONFIG, "%.200s: no %s called %.200s is installed", property,
                plugin_load_kind_name(kind), named);
        return NULL;
    }
    plugin = plugin_load_find(place.library, kind, place.name, err);
    if (plugin == NULL)
        err_prefix(err, "%.200s", property);
    return plugin;
}
