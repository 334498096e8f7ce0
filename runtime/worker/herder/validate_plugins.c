/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a connector's configuration that ask the catalog: versions, and converters with
 * their own keys. Called by validate.c; pure. */
#include "worker/herder/validation.h"

#include <strings.h>

/* --- versions of plugins ---------------------------------------------------------------------- */

/* One version of each plugin is installed: this one, by itself, by a range of nothing but it, or
 * "latest". */
static bool is_version(const char *wanted, const char *installed)
{
    size_t len = strlen(wanted), n = installed != NULL ? strlen(installed) : 0;

    if (strcasecmp(wanted, "latest") == 0)
        return true;
    if (n > 0 && len == n + 2 && wanted[0] == '[' && wanted[len - 1] == ']')
        return strncmp(wanted + 1, installed, n) == 0;
    return n > 0 && strcmp(wanted, installed) == 0;
}

int validate_version(const struct catalog_plugin *plugin, const char *wanted, struct mr_error *err)
{
    const char *open = "", *middle = "", *again = "", *close = "";

    if (is_version(wanted, plugin->version))
        return 0;
    if (wanted[0] != '[' && wanted[0] != '(') {
        open = "[";
        middle = ",";
        again = wanted;
        close = "]";
    }
    return mr_fail(err, MR_ERR_CONFIG,
                   "Plugin %s not found that matches the version range %s%s%s%s%s, available "
                   "versions: [%s]",
                   plugin->java_class, open, wanted, middle, again, close,
                   plugin->version != NULL ? plugin->version : "undefined");
}

void validate_plugins_version(struct validation *v, const char *class_key, const char *version_key,
                              const struct catalog_plugin *plugin)
{
    const char *wanted = validation_get(v, version_key);
    struct mr_error err = {0};

    if (wanted == NULL || validate_version(plugin, wanted, &err) == 0)
        return;
    validation_say(validation_key(v, class_key), err.text);
    validation_say(validation_key(v, version_key), err.text);
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

static const struct catalog_plugin *find_converter(struct validation *v, size_t i)
{
    const char *value = validation_get(v, converters[i].key);
    char *name = value != NULL ? validation_trimmed(value) : NULL;
    const struct catalog_plugin *found = NULL, *other;

    if (name == NULL)
        return NULL;
    found = catalog_find(v->in->catalog,
                         strcmp(converters[i].type, "header") == 0 ? MR_PLUGIN_HEADER_CONVERTER
                                                                   : MR_PLUGIN_CONVERTER,
                         name);
    if (found == NULL) {
        other = catalog_find(v->in->catalog, MR_PLUGIN_HEADER_CONVERTER, name);
        if (other == NULL)
            other = catalog_find(v->in->catalog, 0, name);
        if (other != NULL)
            validation_problem(v, converters[i].key,
                               "Class class %s does not implement the %s interface",
                               other->java_class, converters[i].interface);
        else
            validation_problem(
                v, converters[i].key,
                "Invalid value %s for configuration %s: Class %s could not be found.", value,
                converters[i].key, name);
    }
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
    for (size_t i = 0; i < VALIDATION_CONVERTERS; i++) {
        v->converters[i] = find_converter(v, i);
        if (v->converters[i] != NULL)
            validate_plugins_version(v, converters[i].key, converters[i].version, v->converters[i]);
    }
}

void validate_plugins_converter_keys(struct validation *v)
{
    for (size_t i = 0; i < VALIDATION_CONVERTERS; i++)
        if (v->converters[i] != NULL)
            check_converter_keys(v, i, v->converters[i]);
}
