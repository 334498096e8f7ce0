/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a host where the plugins are that its connector's configuration names, since only the
 * worker knows what is installed. Called by the supervisor when a host is started; loop thread. */
#include "worker/supervisor/plugin_finder.h"

#include "model/conn_config.h"

#include <stdio.h>
#include <stdlib.h>

static void add(json_t *places, const struct catalog *catalog, uint32_t kind, const char *property,
                const char *name)
{
    const struct catalog_plugin *plugin = catalog_find(catalog, kind, name);

    if (plugin != NULL)
        json_object_set_new(
            places, property,
            json_pack("{s:s, s:s}", "library", plugin->library, "class", plugin->name));
}

static void add_converter(json_t *places, const struct catalog *catalog, const char *property,
                          const struct props *from)
{
    bool headers = strcmp(property, "header.converter") == 0;
    struct config_value name;

    if (conn_config_get(property, from, &name, NULL) == 0 && name.present)
        add(places, catalog, headers ? MR_PLUGIN_HEADER_CONVERTER : MR_PLUGIN_CONVERTER, property,
            name.text);
    else if (headers)
        add(places, catalog, MR_PLUGIN_HEADER_CONVERTER, property, "SimpleHeaderConverter");
    config_value_deinit(&name);
}

/* What <list>.<alias>.type names, for each alias of the list. */
static void add_listed(json_t *places, const struct catalog *catalog, uint32_t kind,
                       const char *list, const struct props *config)
{
    struct config_value aliases;

    if (conn_config_get(list, config, &aliases, NULL) != 0)
        aliases.item_count = 0;
    for (size_t i = 0; i < aliases.item_count; i++) {
        char *property = NULL;
        const char *type;

        mr_assert(asprintf(&property, "%s.%s.type", list, aliases.items[i]) > 0);
        type = props_get(config, property);
        if (type != NULL)
            add(places, catalog, kind, property, type);
        free(property);
    }
    config_value_deinit(&aliases);
}

json_t *plugin_finder_places(const struct catalog *catalog, const struct props *worker,
                             const struct props *config)
{
    static const char *const converters[] = {"key.converter", "value.converter",
                                             "header.converter"};
    json_t *places = json_object();

    for (size_t i = 0; i < sizeof(converters) / sizeof(converters[0]); i++)
        add_converter(places, catalog, converters[i],
                      props_get(config, converters[i]) != NULL ? config : worker);
    add_listed(places, catalog, MR_PLUGIN_TRANSFORM, "transforms", config);
    add_listed(places, catalog, MR_PLUGIN_PREDICATE, "predicates", config);
    return places;
}
