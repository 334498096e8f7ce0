/* SPDX-License-Identifier: Apache-2.0 */
/* A validated configuration as REST shows it: every key that was looked at, with its definition,
 * its value and what is wrong with it; and the definitions of a plugin's keys alone. Member order
 * is part of the format. Called by the herder; pure.
 *
 * Definitions are found by name where the validation took them from: the connector's own keys, the
 * framework's, those of its converters below their prefix, those of the Kafka clients below
 * producer.override. and so on; those of transforms and predicates stand with the key. Of a
 * client's keys only the name is known here, so they are shown as texts; keys that nobody defines
 * come first, with definition null, as in Connect.
 * Spec: ConfigInfos, ConfigKeyInfo, ConfigValueInfo; reference connector-config 7. */
#include "base/buf.h"
#include "kafka/client_conf.h"
#include "model/conn_config.h"
#include "worker/group/java_order.h"
#include "worker/herder/validation.h"

#define SIMPLE_HEADERS "org.apache.kafka.connect.storage.SimpleHeaderConverter"
#define RECOMMENDED_MAX 256
#define VERSION_SUFFIX ".plugin.version"

/* Where a key's definition was found. */
struct shown {
    struct mr_config_key key;   /* a copy: defaults may be those of this worker */
    const char *prefix;         /* stands before key.name; "" none */
    const char *value;          /* what the framework gives; NULL: what the configuration has */
    const char *const *choices; /* recommended values, ended by NULL */
    const char *recommended[RECOMMENDED_MAX]; /* room for choices */
    uint32_t stage_kind;                      /* of an alias's keys; 0 others */
    bool defined;
};

/* --- definitions ------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static json_t *definition(const struct mr_config_key *key, const char *prefix)
{
    static const char *const importance[] = {"LOW", "MEDIUM", "HIGH"};
    static const char *const width[] = {"NONE", "SHORT", "MEDIUM", "LONG"};
    bool required = (key->flags & MR_CFG_REQUIRED) != 0;
    const char *label = key->display_name != NULL ? key->display_name : key->name;
    char name[1024];

    snprintf(name, sizeof(name), "%s%s", prefix, key->name);
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

static const struct catalog_plugin *converter_named(const struct validate_input *in,
                                                    const char *name)
{
    char *trimmed = validation_trimmed(name != NULL ? name : "");
    const struct catalog_plugin *found =
        catalog_find(in->catalog, MR_PLUGIN_HEADER_CONVERTER, trimmed);

    free(trimmed);
    return found;
}

/* The class that a connector without this key has: the worker's. */
static const char *worker_class(const struct validate_input *in, const char *key)
{
    const char *name = props_get(&in->worker->props, key);
    const struct catalog_plugin *plugin = converter_named(in, name);

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

/* Version of the plugin that a ….plugin.version is about; NULL: none is known. */
static const char *version_for(const struct validate_input *in,
                               const struct catalog_plugin *connector, const char *name)
{
    const struct catalog_plugin *plugin = connector;
    char key[64];

    if (strcmp(name, "connector.plugin.version") != 0) {
        snprintf(key, sizeof(key), "%.*s", (int)(strlen(name) - strlen(VERSION_SUFFIX)), name);
        plugin = props_get(in->config, key) != NULL
                     ? converter_named(in, props_get(in->config, key))
                     : converter_named(in, worker_class(in, key));
    }
    return plugin != NULL ? plugin->version : NULL;
}

/* Defaults and recommendations that the framework's tables can't know. */
static void adapt(const struct validate_input *in, const struct catalog_plugin *connector,
                  struct shown *s)
{
    const char *name = s->key.name;
    size_t len = strlen(name), suffix = strlen(VERSION_SUFFIX), count = 0;

    if (len > suffix && strcmp(name + len - suffix, VERSION_SUFFIX) == 0) {
        s->key.fallback = version_for(in, connector, name);
        recommend(s, &count, s->key.fallback);
    } else if (len > 10 && strcmp(name + len - 10, ".converter") == 0) {
        s->key.fallback = worker_class(in, name);
        recommend_converters(in, s, begins_with(name, "header."));
    }
}

/* --- which definition a key has --------------------------------------------------------------- */

static void converter_definition(const struct validate_input *in, const char *name, struct shown *s)
{
    static const char *const converters[] = {"key", "value", "header"};
    static const char *const prefixes[] = {"key.converter.", "value.converter.",
                                           "header.converter."};

    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(prefixes[i]);
        const struct catalog_plugin *plugin;
        const struct mr_config_key *key;
        char class_key[32];

        if (!begins_with(name, prefixes[i]))
            continue;
        snprintf(class_key, sizeof(class_key), "%s.converter", converters[i]);
        plugin = converter_named(in, props_get(in->config, class_key));
        key = plugin != NULL ? find_key(plugin->keys, name + len) : NULL;
        if (key == NULL)
            return;
        s->key = *key;
        s->prefix = prefixes[i];
        s->value = strcmp(key->name, "converter.type") == 0 ? converters[i] : NULL;
        s->defined = true;
    }
}

static void client_definition(const char *name, struct shown *s)
{
    static const struct {
        enum client_kind kind;
        const char *prefix;
    } clients[] = {{CLIENT_PRODUCER, "producer.override."},
                   {CLIENT_CONSUMER, "consumer.override."},
                   {CLIENT_ADMIN, "admin.override."}};

    for (size_t i = 0; i < 3; i++) {
        const char *const *known = client_conf_names(clients[i].kind);
        size_t len = strlen(clients[i].prefix);

        if (!begins_with(name, clients[i].prefix))
            continue;
        while (*known != NULL && strcmp(*known, name + len) != 0)
            known++;
        if (*known == NULL)
            return;
        s->key = (struct mr_config_key){
            .name = *known, .type = client_conf_secret(*known) ? MR_CFG_PASSWORD : MR_CFG_STRING};
        s->prefix = clients[i].prefix;
        s->defined = true;
    }
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
    size_t count = 0;

    s->key = of->def;
    s->stage_kind = of->kind;
    s->defined = true;
    if (strcmp(of->own_name, "type") == 0)
        recommend_classes(in, of->kind, s);
    else if (strcmp(of->own_name, "plugin.version") == 0)
        recommend(s, &count, of->def.fallback);
}

static void find_definition(const struct validate_input *in, const struct validate_result *result,
                            const struct validate_key *key, struct shown *s)
{
    const struct mr_config_key *own = find_key(result->plugin->keys, key->name);
    const struct mr_config_key *framework =
        own == NULL ? framework_key(result->plugin, key->name) : NULL;

    memset(s, 0, sizeof(*s));
    s->prefix = "";
    s->defined = own != NULL || framework != NULL;
    if (own != NULL) {
        s->key = *own;
    } else if (framework != NULL) {
        s->key = *framework;
        adapt(in, result->plugin, s);
    } else if (key->per_key) {
        converter_definition(in, key->name, s);
        client_definition(key->name, s);
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

    if (raw == NULL ||
        (s->key.type != MR_CFG_CLASS && config_def_parse(&s->key, raw, &value, NULL) != 0))
        return json_null();
    if (s->key.type == MR_CFG_CLASS)
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

static json_t *value_info(const struct validate_key *key, json_t *value,
                          const char *const *recommended)
{
    json_t *list = json_array(), *errors = json_array();

    for (; recommended != NULL && *recommended != NULL; recommended++)
        json_array_append_new(list, json_string(*recommended));
    for (size_t i = 0; i < key->error_count; i++)
        json_array_append_new(errors, json_string(key->errors[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:b}", "name", key->name, "value", value,
                     "recommended_values", list, "errors", errors, "visible", 1);
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
            json_array_append_new(undefined,
                                  json_pack("{s:n, s:o}", "definition", "value",
                                            value_info(key, given_value(in, key->name), NULL)));
        } else if (!is_hidden(&s, key)) {
            take_group(groups, &of, &s);
            json_array_append_new(
                defined,
                json_pack("{s:o, s:o}", "definition", definition(&s.key, s.prefix), "value",
                          value_info(key, shown_value(in, &s, key->name), s.choices)));
        }
    }
    flush_groups(groups, &of);
    json_array_extend(undefined, defined);
    json_decref(defined);
    return json_pack("{s:s, s:i, s:o, s:o}", "name", name != NULL ? name : "", "error_count",
                     (int)validate_error_count(result), "groups", groups, "configs", undefined);
}

static void add_definitions(json_t *list, const struct catalog_plugin *plugin,
                            const struct mr_config_key *keys, bool own)
{
    for (; keys->name != NULL; keys++) {
        struct mr_config_key key = *keys;

        if ((key.flags & MR_CFG_INTERNAL) != 0 ||
            (!own && find_key(plugin->keys, key.name) != NULL))
            continue;
        if (!own && strcmp(key.name, "connector.plugin.version") == 0)
            key.fallback = plugin->version;
        json_array_append_new(list, definition(&key, ""));
    }
}

json_t *validate_definitions(const struct catalog_plugin *plugin)
{
    json_t *list = json_array();

    add_definitions(list, plugin, plugin->keys, true);
    if (plugin->kind != MR_PLUGIN_SINK && plugin->kind != MR_PLUGIN_SOURCE)
        return list;
    add_definitions(list, plugin, conn_config_common, false);
    add_definitions(list, plugin,
                    plugin->kind == MR_PLUGIN_SINK ? conn_config_sink : conn_config_source, false);
    return list;
}
