/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses among several versions of one class that are installed side by side: for the validation,
 * for what the herder starts, and for what a host is told of converters, transforms and predicates,
 * so that all three mean the same library. Pure. */
#include "worker/supervisor/plugin_pick.h"

#include "model/plugin_version.h"

#include <string.h>

/* As Java has it of plugins that have none. */
static const char *version_of(const struct catalog_plugin *plugin)
{
    return plugin->version != NULL ? plugin->version : "undefined";
}

static bool is_same_class(const struct catalog_plugin *a, const struct catalog_plugin *b)
{
    return a->kind == b->kind && strcmp(a->java_class, b->java_class) == 0;
}

const char *plugin_pick_next(const struct catalog *cat, const struct catalog_plugin *plugin,
                             const char *after)
{
    const char *next = NULL;

    for (size_t i = 0; i < catalog_count(cat); i++) {
        const struct catalog_plugin *other = catalog_at(cat, i);

        if (is_same_class(other, plugin) &&
            (after == NULL || plugin_version_compare(version_of(other), after) > 0) &&
            (next == NULL || plugin_version_compare(version_of(other), next) < 0))
            next = version_of(other);
    }
    return next;
}

static int not_there(const struct catalog *cat, const struct catalog_plugin *plugin,
                     const struct plugin_version_range *range, struct mr_error *err)
{
    struct buf text;
    int rc;

    buf_init(&text, sizeof(err->text));
    buf_printf(&text, "Plugin %s not found that matches the version range ", plugin->java_class);
    plugin_version_range_write(range, &text);
    buf_puts(&text, ", available versions: [");
    for (const char *v = plugin_pick_next(cat, plugin, NULL); v != NULL;) {
        buf_puts(&text, v);
        v = plugin_pick_next(cat, plugin, v);
        buf_puts(&text, v != NULL ? ", " : "");
    }
    rc = mr_fail(err, MR_ERR_UNSUPPORTED, "%s]", text.len > 0 ? text.data : "");
    buf_deinit(&text);
    return rc;
}

static bool is_near(const struct catalog_plugin *plugin, const char *near)
{
    return near != NULL && plugin->library != NULL && strcmp(plugin->library, near) == 0;
}

/* first: the one that goes before others of its version. */
static const struct catalog_plugin *best_of(const struct catalog *cat,
                                            const struct catalog_plugin *first,
                                            const struct plugin_version_range *range,
                                            const char *near)
{
    const struct catalog_plugin *best =
        plugin_version_range_holds(range, version_of(first)) ? first : NULL;

    for (size_t i = 0; i < catalog_count(cat); i++) {
        const struct catalog_plugin *other = catalog_at(cat, i);

        if (!is_same_class(other, first) || !plugin_version_range_holds(range, version_of(other)))
            continue;
        if (is_near(other, near))
            return other;
        if (best == NULL || plugin_version_compare(version_of(other), version_of(best)) > 0)
            best = other;
    }
    return best;
}

int plugin_pick(const struct catalog *cat, const struct plugin_wish *wish,
                const struct catalog_plugin **out, struct mr_error *err)
{
    const struct catalog_plugin *first = catalog_find(cat, wish->kind, wish->name), *best;
    struct plugin_version_range *range = NULL;
    int rc;

    if (first == NULL)
        return mr_fail(err, MR_ERR_NOT_FOUND, "No plugin called %s is installed", wish->name);
    rc = plugin_version_range_parse(wish->version, &range, err);
    if (rc != 0)
        return rc;
    best = best_of(cat, first, range, wish->near);
    if (best == NULL)
        rc = not_there(cat, first, range, err);
    else
        *out = best;
    plugin_version_range_free(&range);
    return rc;
}

bool plugin_pick_first_of_class(const struct catalog *cat, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (is_same_class(catalog_at(cat, before), catalog_at(cat, i)))
            return false;
    return true;
}

bool plugin_pick_first_of_version(const struct catalog *cat, size_t i)
{
    const struct catalog_plugin *plugin = catalog_at(cat, i);

    for (size_t before = 0; before < i; before++) {
        const struct catalog_plugin *other = catalog_at(cat, before);

        if (is_same_class(other, plugin) && strcmp(version_of(other), version_of(plugin)) == 0)
            return false;
    }
    return true;
}
