/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a connector's configuration that ask the catalog: versions, and converters with
 * their own keys. Called by validate.c; pure. */
#include "model/plugin_version.h"
#include "worker/herder/validate/validation.h"
#include "worker/supervisor/plugin_pick.h"

/* --- versions of plugins ---------------------------------------------------------------------- */

bool validate_plugins_is_range(const struct validation *v, const char *version_key,
                               struct mr_error *err)
{
    struct plugin_version_range *range = NULL;
    int rc = plugin_version_range_parse(validation_get(v, version_key), &range, err);

    plugin_version_range_free(&range);
    return rc == 0;
}

const struct catalog_plugin *validate_plugins_pick(const struct validation *v, uint32_t kind,
                                                   const char *name, const char *version_key,
                                                   struct mr_error *err)
{
    struct plugin_wish wish = {.kind = kind,
                               .name = name,
                               .version =
                                   version_key != NULL ? validation_get(v, version_key) : NULL,
                               .near = v->plugin != NULL ? v->plugin->library : NULL};
    const struct catalog_plugin *plugin = NULL;

    return plugin_pick(v->in->catalog, &wish, &plugin, err) == 0 ? plugin : NULL;
}

const struct catalog_plugin *validate_plugins_any(const struct catalog *catalog, const char *name)
{
    const struct catalog_plugin *found = catalog_find(catalog, 0, name);

    for (uint32_t kind = MR_PLUGIN_CONVERTER; found == NULL && kind <= MR_PLUGIN_HEADER_CONVERTER;
         kind++)
        found = catalog_find(catalog, kind, name);
    return found;
}

/* --- converters ------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *prefix;
    const char *version;
    const char *type;
    const char *interface;
} converters[VALIDATION_CONVERTERS] = {
    {"header.converter", "header.converter.", "header.converter.plugin.version", "header",
     "HeaderConverter"},
    {"key.converter", "key.converter.", "key.converter.plugin.version", "key", "Converter"},
    {"value.converter", "value.converter.", "value.converter.plugin.version", "value", "Converter"},
};

static uint32_t kind_of(size_t i)
{
    return strcmp(converters[i].type, "header") == 0 ? MR_PLUGIN_HEADER_CONVERTER
                                                     : MR_PLUGIN_CONVERTER;
}

static void tell_wrong_class(struct validation *v, size_t i, const char *value, const char *name)
{
    const struct catalog_plugin *other = validate_plugins_any(v->in->catalog, name);

    if (other != NULL)
        validation_problem(v, converters[i].key,
                           "Class class %s does not implement the %s interface", other->java_class,
                           converters[i].interface);
    else
        validation_problem(v, converters[i].key,
                           "Invalid value %s for configuration %s: Class %s could not be found.",
                           value, converters[i].key, name);
}

/* The version that is asked for. */
static const struct catalog_plugin *find_version(struct validation *v, size_t i, const char *name)
{
    struct mr_error err = {0};
    const struct catalog_plugin *found =
        validate_plugins_pick(v, kind_of(i), name, converters[i].version, &err);

    if (found == NULL) {
        validation_problem(v, converters[i].key, "%s", err.text);
        validation_problem(v, converters[i].version, "%s", err.text);
    }
    return found;
}

static const struct catalog_plugin *find_converter(struct validation *v, size_t i)
{
    const char *value = validation_get(v, converters[i].key);
    char *name = value != NULL ? validation_trimmed(value) : NULL;
    struct mr_error err = {0};
    bool is_range = validate_plugins_is_range(v, converters[i].version, &err);
    const struct catalog_plugin *found = NULL;

    if (!is_range)
        validation_problem(v, converters[i].version, "%s", err.text);
    if (name != NULL && catalog_find(v->in->catalog, kind_of(i), name) == NULL)
        tell_wrong_class(v, i, value, name);
    else if (name != NULL && is_range && !v->out->bare)
        found = find_version(v, i, name);
    free(name);
    return found;
}

/* The converter's own keys stand below its prefix; its sentences name them without. */
static void check_converter_keys(struct validation *v, size_t i,
                                 const struct catalog_plugin *plugin)
{
    struct props own;

    props_init(&own);
    mr_assert(props_subset(v->in->config, converters[i].prefix, &own) == 0 &&
              props_set(&own, "converter.type", converters[i].type) == 0);
    for (const struct mr_config_key *key = plugin->keys; key->name != NULL; key++) {
        char name[512];
        struct validate_key *slot;

        snprintf(name, sizeof(name), "%s%s", converters[i].prefix, key->name);
        slot = validation_key(v, name);
        slot->per_key = true;
        config_def_check(key, &own, NULL, validation_bad, slot);
    }
    props_deinit(&own);
}

void validate_plugins_converters(struct validation *v)
{
    for (size_t i = 0; i < VALIDATION_CONVERTERS; i++)
        v->converters[i] = find_converter(v, i);
}

void validate_plugins_converter_keys(struct validation *v)
{
    for (size_t i = 0; i < VALIDATION_CONVERTERS; i++)
        if (v->converters[i] != NULL)
            check_converter_keys(v, i, v->converters[i]);
}
