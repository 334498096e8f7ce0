/* SPDX-License-Identifier: Apache-2.0 */
/* A validated configuration as REST shows it: every key that was looked at, with its definition,
 * its value and what is wrong with it; and the definitions of a plugin's keys alone. Member order
 * is part of the format. Called by the herder; pure.
 *
 * Definitions are found by name where the validation took them from: the connector's own keys, the
 * framework's, those of its converters below their prefix; those of transforms, predicates and
 * Kafka clients stand with the key. Keys that nobody defines come first, with definition null, as
 * in Connect; but for overrides, which stay where overrides stand.
 * Spec: ConfigInfos, ConfigKeyInfo, ConfigValueInfo; reference connector-config 7. */
#include "base/buf.h"
#include "model/conn_config.h"
#include "base/java_order.h"
#include "worker/herder/validate/validation.h"
#include "worker/supervisor/plugin_pick.h"

#define SIMPLE_HEADERS "org.apache.kafka.connect.storage.SimpleHeaderConverter"
#define RECOMMENDED_MAX 256
#define VERSION_SUFFIX ".plugin.version"

/* Where a key's definition was found. */
struct shown {
    struct mr_config_key key;   /* a copy: defaults may be those of this worker */
    const char *prefix;         /* of a converter's key; "" others */
    const char *value;          /* what the framework gives; NULL: what the configuration has */
    const char *const *choices; /* recommended values, ended by NULL */
    const char *recommended[RECOMMENDED_MAX]; /* room for choices */
    uint32_t stage_kind;                      /* of an alias's keys; 0 others */
    bool defined;
    bool invisible;
    bool verbatim; /* a class that is shown as it was given */
};

/* --- definitions ------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

/* name: with the prefix that it has where it is set. */
static json_t *definition(const struct mr_config_key *key, const char *name)
{
    static const char *const importance[] = {"LOW", "MEDIUM", "HIGH"};
    static const char *const width[] = {"NONE", "SHORT", "MEDIUM", "LONG"};
    bool required = (key->flags & MR_CFG_REQUIRED) != 0;
    const char *label = key->display_name != NULL ? key->display_name : key->name;

    return json_pack("{s:s, s:s, s:b, s:o, s:s, s:s, s:o, s:i, s:s, s:s, s:[]}", "name", name,
                     "type", config_def_type_name(key->type), "required", required, "default_value",
                     text_or_null(required ? NULL : key->fallback), "importance",
                     importance[key->importance <= MR_CFG_HIGH ? key->importance : 0],
                     "documentation", key->doc != NULL ? key->doc : "", "group",
                     text_or_null(key->group), "order_in_group",
                     key->group != NULL ? key->order : -1, "width",
                     width[key->width <= MR_CFG_WIDTH_LONG ? key->width : 0], "display_name", label,
                     "dependents");
}

static const struct mr_config_key *find_key(const struct mr_config_key *keys, const char *name)
{
    for (; keys->name != NULL; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

static const struct mr_config_key *framework_key(const struct catalog_plugin *plugin,
                                                 const char *name)
{
    const struct mr_config_key *key = find_key(conn_config_common, name);

    if (key == NULL)
        key =
            find_key(plugin->kind == MR_PLUGIN_SINK ? conn_config_sink : conn_config_source, name);
    return key;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* --- what depends on what is installed -------------------------------------------------------- */

static uint32_t converter_kind(const char *key)
{
    return begins_with(key, "header.") ? MR_PLUGIN_HEADER_CONVERTER : MR_PLUGIN_CONVERTER;
}

static const struct catalog_plugin *find_trimmed(const struct validate_input *in, uint32_t kind,
                                                 const char *name)
{
    char *trimmed = validation_trimmed(name != NULL ? name : "");
    const struct catalog_plugin *found = catalog_find(in->catalog, kind, trimmed);

    free(trimmed);
    return found;
}

static const struct catalog_plugin *class_of_any_kind(const struct validate_input *in,
                                                      const char *name)
{
    char *trimmed = validation_trimmed(name != NULL ? name : "");
    const struct catalog_plugin *found = validate_plugins_any(in->catalog, trimmed);

    free(trimmed);
    return found;
}

/* The class that a connector without this key has: the worker's. */
static const char *worker_class(const struct validate_input *in, const char *key)
{
    const char *name = props_get(&in->worker->props, key);
    const struct catalog_plugin *plugin = find_trimmed(in, MR_PLUGIN_HEADER_CONVERTER, name);

    if (plugin != NULL)
        return plugin->java_class;
    return name != NULL || strcmp(key, "header.converter") != 0 ? name : SIMPLE_HEADERS;
}

static void recommend(struct shown *s, size_t *count, const char *text)
{
    if (text != NULL && *count + 1 < sizeof(s->recommended) / sizeof(s->recommended[0]))
        s->recommended[(*count)++] = text;
    s->recommended[*count] = NULL;
    s->choices = s->recommended;
}

static void recommend_converters(const struct validate_input *in, struct shown *s, bool headers)
{
    size_t count = 0;

    for (size_t i = 0; i < catalog_count(in->catalog); i++) {
        const struct catalog_plugin *plugin = catalog_at(in->catalog, i);

        if (plugin->kind == MR_PLUGIN_CONVERTER ||
            (headers && plugin->kind == MR_PLUGIN_HEADER_CONVERTER))
            recommend(s, &count, plugin->java_class);
    }
}

static void recommend_versions(const struct validate_input *in, const struct catalog_plugin *plugin,
                               struct shown *s)
{
    size_t count = 0;

    for (const char *v = NULL; plugin != NULL;) {
        v = plugin_pick_next(in->catalog, plugin, v);
        recommend(s, &count, v);
        if (v == NULL)
            return;
    }
}

static const char *highest_version(const struct catalog *catalog,
                                   const struct catalog_plugin *plugin)
{
    const char *highest = plugin->version;

    for (const char *v = plugin_pick_next(catalog, plugin, NULL); v != NULL;
         v = plugin_pick_next(catalog, plugin, v))
        highest = v;
    return highest;
}

/* The version of a converter where none is asked for: that goes with the connector, but for the
 * worker's own. */
static const char *converter_version(const struct validate_input *in,
                                     const struct catalog_plugin *connector, const char *class_key,
                                     const char *version_key)
{
    const char *own = props_get(in->config, class_key);
    const char *given = own == NULL ? props_get(&in->worker->props, version_key) : NULL;
    const char *class_name = own != NULL ? own : worker_class(in, class_key);
    char *name = validation_trimmed(class_name != NULL ? class_name : "");
    struct plugin_wish wish = {.kind = converter_kind(class_key),
                               .name = name,
                               .near = own != NULL ? connector->library : NULL};
    const struct catalog_plugin *plugin = NULL;
    int rc = plugin_pick(in->catalog, &wish, &plugin, NULL);

    free(name);
    return given != NULL ? given : rc == 0 ? plugin->version : NULL;
}

/* connector.plugin.version and its twins of the converters. A converter that is none leaves its
 * version without a sense. */
static void adapt_version(const struct validate_input *in, const struct validate_result *result,
                          struct shown *s)
{
    const char *name = s->key.name, *class_name;
    char class_key[64];

    if (strcmp(name, "connector.plugin.version") == 0) {
        s->key.fallback = highest_version(in->catalog, result->plugin);
        recommend_versions(in, result->plugin, s);
        return;
    }
    if (result->bare)
        return;
    snprintf(class_key, sizeof(class_key), "%.*s", (int)(strlen(name) - strlen(VERSION_SUFFIX)),
             name);
    class_name = props_get(in->config, class_key);
    s->key.fallback = converter_version(in, result->plugin, class_key, name);
    if (class_name == NULL)
        class_name = worker_class(in, class_key);
    recommend_versions(in, find_trimmed(in, converter_kind(class_key), class_name), s);
    s->invisible = class_of_any_kind(in, class_name) == NULL;
}

/* Defaults and recommendations that the framework's tables can't know. */
static void adapt(const struct validate_input *in, const struct validate_result *result,
                  struct shown *s)
{
    const char *name = s->key.name;
    size_t len = strlen(name), suffix = strlen(VERSION_SUFFIX);

    if (len > suffix && strcmp(name + len - suffix, VERSION_SUFFIX) == 0) {
        adapt_version(in, result, s);
    } else if (!result->bare && len > 10 && strcmp(name + len - 10, ".converter") == 0) {
        s->key.fallback = worker_class(in, name);
        recommend_converters(in, s, begins_with(name, "header."));
    }
}

/* --- which definition a key has --------------------------------------------------------------- */

/* As the version has it that is asked for. */
static const struct catalog_plugin *picked_converter(const struct validate_input *in,
                                                     const struct catalog_plugin *connector,
                                                     const char *class_key, const char *version_key)
{
    char *name = validation_trimmed(
        props_get(in->config, class_key) != NULL ? props_get(in->config, class_key) : "");
    struct plugin_wish wish = {.kind = converter_kind(class_key),
                               .name = name,
                               .version = props_get(in->config, version_key),
                               .near = connector->library};
    const struct catalog_plugin *plugin = NULL;
    int rc = plugin_pick(in->catalog, &wish, &plugin, NULL);

    free(name);
    return rc == 0 ? plugin : NULL;
}

static void converter_definition(const struct validate_input *in,
                                 const struct catalog_plugin *connector, const char *name,
                                 struct shown *s)
{
    static const struct {
        const char *type, *prefix, *class_key, *version_key;
    } converters[] = {
        {"key", "key.converter.", "key.converter", "key.converter.plugin.version"},
        {"value", "value.converter.", "value.converter", "value.converter.plugin.version"},
        {"header", "header.converter.", "header.converter", "header.converter.plugin.version"}};

    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(converters[i].prefix);
        const struct catalog_plugin *plugin;
        const struct mr_config_key *key;

        if (!begins_with(name, converters[i].prefix))
            continue;
        plugin =
            picked_converter(in, connector, converters[i].class_key, converters[i].version_key);
        key = plugin != NULL ? find_key(plugin->keys, name + len) : NULL;
        if (key == NULL)
            return;
        s->key = *key;
        s->prefix = converters[i].prefix;
        s->value = strcmp(key->name, "converter.type") == 0 ? converters[i].type : NULL;
        s->defined = true;
    }
}

/* A client's own; its classes are Java's and can't be looked for, so they are shown as they are. */
static void client_definition(const struct validate_key *key, struct shown *s)
{
    if (key->client == NULL)
        return;
    s->key = *key->client;
    s->verbatim = key->client->type == MR_CFG_CLASS;
    s->defined = true;
}

static void recommend_classes(const struct validate_input *in, uint32_t kind, struct shown *s)
{
    size_t count = 0;

    for (size_t i = 0; i < catalog_count(in->catalog); i++)
        if (catalog_at(in->catalog, i)->kind == kind)
            recommend(s, &count, catalog_at(in->catalog, i)->java_class);
}

/* Of a transform or predicate: made by the validation. */
static void stage_definition(const struct validate_input *in, const struct validate_stage_key *of,
                             struct shown *s)
{
    s->key = of->def;
    s->stage_kind = of->kind;
    s->defined = true;
    if (strcmp(of->own_name, "type") == 0)
        recommend_classes(in, of->kind, s);
    else if (strcmp(of->own_name, "plugin.version") == 0)
        recommend_versions(in, of->plugin, s);
}

static void find_definition(const struct validate_input *in, const struct validate_result *result,
                            const struct validate_key *key, struct shown *s)
{
    const struct mr_config_key *own =
        result->bare || key->override ? NULL : find_key(result->plugin->keys, key->name);
    const struct mr_config_key *framework =
        own == NULL && !key->override ? framework_key(result->plugin, key->name) : NULL;

    memset(s, 0, sizeof(*s));
    s->prefix = "";
    s->defined = own != NULL || framework != NULL;
    if (own != NULL) {
        s->key = *own;
    } else if (framework != NULL) {
        s->key = *framework;
        adapt(in, result, s);
    } else if (key->override) {
        client_definition(key, s);
    } else if (key->per_key) {
        converter_definition(in, result->plugin, key->name, s);
    } else if (key->stage != NULL) {
        stage_definition(in, key->stage, s);
    }
}

/* --- values ----------------------------------------------------------------------------------- */

static void write_double(struct buf *out, double d)
{
    char text[40];
    int digits = 1;

    do
        snprintf(text, sizeof(text), "%.*g", digits, d);
    while (strtod(text, NULL) != d && ++digits <= 17);
    buf_puts(out, text);
    if (strpbrk(text, ".en") == NULL)
        buf_puts(out, ".0");
}

/* The class by its full name, of the kind that belongs here if there is one; what is not installed
 * has none, but for the outer class of nested ones. */
static json_t *class_value(const struct validate_input *in, const struct shown *s, const char *name)
{
    char *trimmed = validation_trimmed(name), *nested = NULL;
    uint32_t kind = s->stage_kind != 0 ? s->stage_kind : MR_PLUGIN_HEADER_CONVERTER;
    const struct catalog_plugin *plugin = catalog_find(in->catalog, kind, trimmed);
    json_t *value;

    if (plugin == NULL)
        plugin = validate_plugins_any(in->catalog, trimmed);
    if (plugin == NULL && s->stage_kind != 0)
        nested = validate_stages_nested(in->catalog, s->stage_kind, trimmed);
    value = text_or_null(plugin != NULL ? plugin->java_class : nested != NULL ? trimmed : NULL);
    free(nested);
    free(trimmed);
    return value;
}

static json_t *parsed_value(uint32_t type, const struct config_value *value)
{
    struct buf out;
    json_t *shown;

    buf_init(&out, (size_t)1 << 21);
    buf_puts(&out, "");
    if (type == MR_CFG_BOOLEAN)
        buf_puts(&out, value->i != 0 ? "true" : "false");
    else if (type == MR_CFG_DOUBLE)
        write_double(&out, value->d);
    else if (type == MR_CFG_INT || type == MR_CFG_SHORT || type == MR_CFG_LONG)
        buf_printf(&out, "%lld", (long long)value->i);
    else if (type == MR_CFG_PASSWORD)
        buf_puts(&out, "[hidden]");
    else if (type == MR_CFG_LIST)
        for (size_t i = 0; i < value->item_count; i++)
            buf_printf(&out, "%s%s", i > 0 ? "," : "", value->items[i]);
    else
        buf_puts(&out, value->text != NULL ? value->text : "");
    shown = json_string(out.len > 0 && !out.failed ? out.data : "");
    buf_deinit(&out);
    return shown != NULL ? shown : json_null();
}

/* name: with its prefix. */
static json_t *value_of(const struct validate_input *in, const struct shown *s, const char *name)
{
    const struct props_entry *entry = props_find(in->config, name);
    const char *raw = s->value != NULL ? s->value : entry != NULL ? entry->value : s->key.fallback;
    struct config_value value = {0};
    json_t *shown;

    if (raw == NULL || ((s->key.type != MR_CFG_CLASS || s->verbatim) &&
                        config_def_parse(&s->key, raw, &value, NULL) != 0))
        return json_null();
    if (s->key.type == MR_CFG_CLASS && !s->verbatim)
        shown = class_value(in, s, raw);
    else
        shown = parsed_value(s->key.type, &value);
    config_value_deinit(&value);
    return shown;
}

/* What was posted as a reference is shown as one, but for passwords, which are hidden anyhow. */
static json_t *shown_value(const struct validate_input *in, const struct shown *s, const char *name)
{
    const char *raw = validate_references_raw(in, name);

    return raw != NULL && s->key.type != MR_CFG_PASSWORD ? json_string(raw) : value_of(in, s, name);
}

static json_t *given_value(const struct validate_input *in, const char *name)
{
    const char *raw = validate_references_raw(in, name);

    return text_or_null(raw != NULL ? raw : props_get(in->config, name));
}

static json_t *value_info(const struct validate_key *key, json_t *value, const struct shown *s)
{
    json_t *list = json_array(), *errors = json_array();
    const char *const *recommended = s->choices;

    for (; recommended != NULL && *recommended != NULL; recommended++)
        json_array_append_new(list, json_string(*recommended));
    for (size_t i = 0; i < key->error_count; i++)
        json_array_append_new(errors, json_string(key->errors[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:b}", "name", key->name, "value", value,
                     "recommended_values", list, "errors", errors, "visible", !s->invisible);
}

/* --- the doors -------------------------------------------------------------------------------- */

static void add_group(json_t *groups, const char *group)
{
    size_t i;
    json_t *have;

    if (group == NULL)
        return;
    json_array_foreach(groups, i, have)
    {
        if (strcmp(json_string_value(have), group) == 0)
            return;
    }
    json_array_append_new(groups, json_string(group));
}

/* The groups of one converter's keys, which Connect gathers in a HashSet. */
#define CONVERTER_GROUPS 64
struct converter_groups {
    const char *prefix; /* of that converter; NULL none */
    const char *names[CONVERTER_GROUPS];
    size_t count;
};

static void flush_groups(json_t *groups, struct converter_groups *of)
{
    size_t places[CONVERTER_GROUPS];

    if (java_order_of_set(of->names, of->count, places) == 0)
        for (size_t i = 0; i < of->count; i++)
            add_group(groups, of->names[places[i]]);
    of->count = 0;
    of->prefix = NULL;
}

static void take_group(json_t *groups, struct converter_groups *of, const struct shown *s)
{
    size_t i = 0;

    if (of->prefix != NULL && of->prefix != s->prefix)
        flush_groups(groups, of);
    if (strstr(s->prefix, "converter.") == NULL) {
        add_group(groups, s->key.group);
        return;
    }
    of->prefix = s->prefix;
    while (i < of->count && s->key.group != NULL && strcmp(of->names[i], s->key.group) != 0)
        i++;
    if (s->key.group != NULL && i == of->count && i < CONVERTER_GROUPS)
        of->names[of->count++] = s->key.group;
}

/* A plugin's internal keys are shown only where something is wrong with them. */
static bool is_hidden(const struct shown *s, const struct validate_key *key)
{
    return s->defined && (s->key.flags & MR_CFG_INTERNAL) != 0 && key->error_count == 0;
}

json_t *validate_reply(const struct validate_input *in, const struct validate_result *result)
{
    const char *name = props_get(in->raw != NULL ? in->raw : in->config, "connector.class");
    json_t *groups = json_array(), *undefined = json_array(), *defined = json_array();
    struct converter_groups of = {0};

    for (size_t i = 0; i < result->key_count; i++) {
        const struct validate_key *key = &result->keys[i];
        struct shown s;

        find_definition(in, result, key, &s);
        if (!s.defined) {
            json_array_append_new(key->override ? defined : undefined,
                                  json_pack("{s:n, s:o}", "definition", "value",
                                            value_info(key, given_value(in, key->name), &s)));
        } else if (!is_hidden(&s, key)) {
            take_group(groups, &of, &s);
            json_array_append_new(
                defined, json_pack("{s:o, s:o}", "definition", definition(&s.key, key->name),
                                   "value", value_info(key, shown_value(in, &s, key->name), &s)));
        }
    }
    flush_groups(groups, &of);
    json_array_extend(undefined, defined);
    json_decref(defined);
    return json_pack("{s:s, s:i, s:o, s:o}", "name", name != NULL ? name : "", "error_count",
                     (int)validate_error_count(result), "groups", groups, "configs", undefined);
}

static void add_definitions(json_t *list, const struct catalog *catalog,
                            const struct catalog_plugin *plugin, const struct mr_config_key *keys)
{
    bool own = keys == plugin->keys;

    for (; keys->name != NULL; keys++) {
        struct mr_config_key key = *keys;

        if ((key.flags & MR_CFG_INTERNAL) != 0 ||
            (!own && find_key(plugin->keys, key.name) != NULL))
            continue;
        if (!own && strcmp(key.name, "connector.plugin.version") == 0)
            key.fallback = highest_version(catalog, plugin);
        json_array_append_new(list, definition(&key, key.name));
    }
}

json_t *validate_definitions(const struct catalog *catalog, const struct catalog_plugin *plugin)
{
    json_t *list = json_array();

    add_definitions(list, catalog, plugin, plugin->keys);
    if (plugin->kind != MR_PLUGIN_SINK && plugin->kind != MR_PLUGIN_SOURCE)
        return list;
    add_definitions(list, catalog, plugin, conn_config_common);
    add_definitions(list, catalog, plugin,
                    plugin->kind == MR_PLUGIN_SINK ? conn_config_sink : conn_config_source);
    return list;
}
