/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_pick and plugin_finder: which of several versions of a class a configuration gets, and
 * what a host is told of it, over a catalog that this file plays. */
#include "worker/supervisor/plugin_finder.h"
#include "worker/supervisor/plugin_pick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PLUGIN(plugin_name, plugin_kind, release, path) \
    { \
        .name = plugin_name, .version = release, .library = path, .kind = plugin_kind, \
        .java_class = "org.x." plugin_name \
    }

/* In the order of REST: by class, then by version. */
static const struct catalog_plugin plugins[] = {
    PLUGIN("Source", MR_PLUGIN_SOURCE, "1.0", "/p/one.so"),
    PLUGIN("Source", MR_PLUGIN_SOURCE, "2.0-rc1", "/p/two-rc.so"),
    PLUGIN("Source", MR_PLUGIN_SOURCE, "2.0", "/p/two.so"),
    PLUGIN("Cut", MR_PLUGIN_TRANSFORM, "1.0", "/p/one.so"),
    PLUGIN("Cut", MR_PLUGIN_TRANSFORM, "1.5", "/p/two.so"),
    PLUGIN("Cut", MR_PLUGIN_TRANSFORM, "1.5", "/q/cut.so"),
    PLUGIN("Cut", MR_PLUGIN_TRANSFORM, "3", "/p/three.so"),
    PLUGIN("Text", MR_PLUGIN_CONVERTER, "1", "/p/text-1.so"),
    PLUGIN("Text", MR_PLUGIN_CONVERTER, "2", "/p/text-2.so"),
    PLUGIN("SimpleHeaderConverter", MR_PLUGIN_HEADER_CONVERTER, "1", "/p/simple.so"),
};

#define PLUGINS (sizeof(plugins) / sizeof(plugins[0]))

size_t catalog_count(const struct catalog *cat)
{
    return PLUGINS;
}

const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i)
{
    return &plugins[i];
}

/* The highest version, as the real one. */
const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind,
                                          const char *name)
{
    const struct catalog_plugin *found = NULL;

    for (size_t i = 0; i < PLUGINS; i++)
        if ((plugins[i].kind == kind || (kind == 0 && plugins[i].kind <= MR_PLUGIN_SINK)) &&
            strcmp(plugins[i].name, name) == 0)
            found = &plugins[i];
    return found;
}

/* --- picking ---------------------------------------------------------------------------------- */

static void expect(struct plugin_wish wish, const char *library)
{
    const struct catalog_plugin *plugin = NULL;
    struct mr_error err = {0};

    if (plugin_pick(NULL, &wish, &plugin, &err) != 0)
        fail_msg("%s %s: %s", wish.name, wish.version, err.text);
    assert_string_equal(plugin->library, library);
}

static void expect_none(struct plugin_wish wish, int code, const char *text)
{
    const struct catalog_plugin *plugin = NULL;
    struct mr_error err = {0};

    assert_int_equal(plugin_pick(NULL, &wish, &plugin, &err), code);
    assert_null(plugin);
    assert_string_equal(err.text, text);
}

static void the_highest_version_in_the_range_is_picked(void **state)
{
    (void)state;
    expect((struct plugin_wish){0, "Source", NULL, NULL}, "/p/two.so");
    expect((struct plugin_wish){0, "Source", "latest", NULL}, "/p/two.so");
    expect((struct plugin_wish){0, "Source", "1.0", NULL}, "/p/one.so");
    expect((struct plugin_wish){0, "Source", "[1,2)", NULL}, "/p/two-rc.so");
    expect((struct plugin_wish){0, "Source", "(,1]", NULL}, "/p/one.so");
    expect((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", "[1,2]", NULL}, "/p/two.so");
}

static void a_connector_s_own_goes_before_higher_versions(void **state)
{
    (void)state;
    expect((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", NULL, NULL}, "/p/three.so");
    expect((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", NULL, "/p/one.so"}, "/p/one.so");
    expect((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", "[1.1,)", "/p/one.so"}, "/p/three.so");
    expect((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", "[1,2]", "/q/cut.so"}, "/q/cut.so");
}

static void what_is_not_there_is_told(void **state)
{
    (void)state;
    expect_none((struct plugin_wish){0, "Nope", NULL, NULL}, MR_ERR_NOT_FOUND,
                "No plugin called Nope is installed");
    expect_none((struct plugin_wish){0, "Source", "[1", NULL}, MR_ERR_CONFIG,
                "Unbounded range: [1");
    expect_none((struct plugin_wish){MR_PLUGIN_TRANSFORM, "Cut", "2", NULL}, MR_ERR_UNSUPPORTED,
                "Plugin org.x.Cut not found that matches the version range [2,2], available "
                "versions: [1.0, 1.5, 3]");
}

/* --- what a host is told ---------------------------------------------------------------------- */

static void expect_places(const struct props *worker, const struct props *config, const char *want)
{
    json_t *places = plugin_finder_places(NULL, "/p/one.so", worker, config);
    char *text = json_dumps(places, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(text, want);
    free(text);
    json_decref(places);
}

static void a_host_is_told_of_the_versions_that_are_asked_for(void **state)
{
    struct props worker, config;

    (void)state;
    props_init(&worker);
    props_init(&config);
    props_set(&worker, "key.converter", "Text");
    props_set(&worker, "key.converter.plugin.version", "1");
    props_set(&config, "value.converter", "Text");
    props_set(&config, "value.converter.plugin.version", "7");
    props_set(&config, "transforms", "a,b,c");
    props_set(&config, "transforms.a.type", "Cut");
    props_set(&config, "transforms.b.type", "Cut");
    props_set(&config, "transforms.b.plugin.version", "[2,)");
    props_set(&config, "transforms.c.type", "Nope");
    expect_places(
        &worker, &config,
        "{\"header.converter\":{\"class\":\"SimpleHeaderConverter\",\"library\":\"/p/simple.so\"},"
        "\"key.converter\":{\"class\":\"Text\",\"library\":\"/p/text-1.so\"},"
        "\"transforms.a.type\":{\"class\":\"Cut\",\"library\":\"/p/one.so\"},"
        "\"transforms.b.type\":{\"class\":\"Cut\",\"library\":\"/p/three.so\"},"
        "\"value.converter\":{\"error\":\"Plugin org.x.Text not found that matches the version "
        "range [7,7], available versions: [1, 2]\"}}");
    props_deinit(&worker);
    props_deinit(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_version_in_the_range_is_picked),
        cmocka_unit_test(a_connector_s_own_goes_before_higher_versions),
        cmocka_unit_test(what_is_not_there_is_told),
        cmocka_unit_test(a_host_is_told_of_the_versions_that_are_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
