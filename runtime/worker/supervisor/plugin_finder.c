/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a host where the plugins are that its connector's configuration names, since only the
 * worker knows what is installed. Called by the supervisor when a host is started; loop thread. */
#include "worker/supervisor/plugin_finder.h"

#include "model/conn_config.h"
#include "worker/supervisor/plugin_pick.h"

#include <stdio.h>
#include <stdlib.h>

/* One search: what is found goes to places. near: the connector's library. */
struct search {
    json_t *places;
    const struct catalog *catalog;
    const char *near;
};

/* What is not installed at all is left out; a version that is not here is told by its words. */
static void add(const struct search *search, const char *property, const struct plugin_wish *wish)
{
    const struct catalog_plugin *plugin = NULL;
    struct mr_error err = {0};
    int rc = plugin_pick(search->catalog, wish, &plugin, &err);

    if (rc == 0)
        json_object_set_new(
            search->places, property,
            json_pack("{s:s, s:s}", "library", plugin->library, "class", plugin->name));
    else if (rc != MR_ERR_NOT_FOUND)
        json_object_set_new(search->places, property, json_pack("{s:s}", "error", err.text));
}

/* own: the connector sets it, and not the worker. */
static void add_converter(const struct search *search, const char *property,
                          const struct props *from, bool own)
{
    bool headers = strcmp(property, "header.converter") == 0;
    struct config_value name;
    char version[64];
    struct plugin_wish wish = {.kind = headers ? MR_PLUGIN_HEADER_CONVERTER : MR_PLUGIN_CONVERTER,
                               .name = headers ? "SimpleHeaderConverter" : NULL,
                               .near = own ? search->near : NULL};

    snprintf(version, sizeof(version), "%s.plugin.version", property);
    wish.version = props_get(from, version);
    if (conn_config_get(property, from, &name, NULL) == 0 && name.present)
        wish.name = name.text;
    if (wish.name != NULL)
        add(search, property, &wish);
    config_value_deinit(&name);
}

/* What <list>.<alias>.type names. */
static void add_alias(const struct search *search, uint32_t kind, const char *list,
                      const char *alias, const struct props *config)
{
    struct plugin_wish wish = {.kind = kind, .near = search->near};
    char *type = NULL, *version = NULL;

    mr_assert(asprintf(&type, "%s.%s.type", list, alias) > 0 &&
              asprintf(&version, "%s.%s.plugin.version", list, alias) > 0);
    wish.name = props_get(config, type);
    wish.version = props_get(config, version);
    if (wish.name != NULL)
        add(search, type, &wish);
    free(type);
    free(version);
}

static void add_listed(const struct search *search, uint32_t kind, const char *list,
                       const struct props *config)
{
    struct config_value aliases;

    if (conn_config_get(list, config, &aliases, NULL) != 0)
        aliases.item_count = 0;
    for (size_t i = 0; i < aliases.item_count; i++)
        add_alias(search, kind, list, aliases.items[i], config);
    config_value_deinit(&aliases);
}

json_t *plugin_finder_places(const struct catalog *catalog, const char *library,
                             const struct props *worker, const struct props *config)
{
    static const char *const converters[] = {"key.converter", "value.converter",
                                             "header.converter"};
    struct search search = {json_object(), catalog, library};

    for (size_t i = 0; i < sizeof(converters) / sizeof(converters[0]); i++) {
        bool own = props_get(config, converters[i]) != NULL;

        add_converter(&search, converters[i], own ? config : worker, own);
    }
    add_listed(&search, MR_PLUGIN_TRANSFORM, "transforms", config);
    add_listed(&search, MR_PLUGIN_PREDICATE, "predicates", config);
    return search.places;
}
