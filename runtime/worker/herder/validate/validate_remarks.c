/* SPDX-License-Identifier: Apache-2.0 */
/* What a valid configuration asks for and does not get: settings that nothing here acts on, and
 * keys that nobody knows, as a typing error leaves them. Connect is silent about both. Called by
 * the herder when a configuration is taken; pure.
 *
 * Known is what the validation has looked at: the framework's keys, the connector's own, those of
 * its converters, transforms and predicates; and what tasks read besides, by the table of
 * model/conn_extras. A plugin can read only keys that it declares, so a key that is not among them
 * reaches nobody. */
#include "base/nearest.h"
#include "model/conn_extras.h"
#include "worker/herder/validate/validation.h"

#define UNKNOWN_MAX 20 /* remarks about unknown keys */

/* What a standalone worker has no use for. */
static const struct {
    const char *key;
    const char *only; /* this value of it, in any case; NULL: any but `usual` */
    const char *usual;
    const char *why;
} of_clusters[] = {
    {"offsets.storage.topic", NULL, "", "a standalone worker keeps all offsets in its file"},
    {"exactly.once.support", "required", NULL,
     "a standalone worker delivers at least once; exactly once takes a cluster, be it of one "
     "worker"},
    {"transaction.boundary", NULL, "poll", "a standalone worker's sources have no transactions"},
};

static void remark_known(const struct validate_input *input, validate_remark fn, void *arg)
{
    for (size_t i = 0; i < sizeof(of_clusters) / sizeof(of_clusters[0]); i++) {
        const char *given = props_get(input->config, of_clusters[i].key);
        char *value = validation_trimmed(given != NULL ? given : "");

        if (value[0] != '\0' &&
            (of_clusters[i].only != NULL ? strcasecmp(value, of_clusters[i].only) == 0
                                         : strcasecmp(value, of_clusters[i].usual) != 0))
            fn(arg, of_clusters[i].key, of_clusters[i].why);
        free(value);
    }
}

/* --- unknown keys ----------------------------------------------------------------------------- */

/* Below these, others judge: the Kafka clients. */
static const char *const judged_elsewhere[] = {"producer.override.", "consumer.override.",
                                               "admin.override.", "topic.creation."};

static bool begins_with(const char *key, const char *prefix)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool is_judged_elsewhere(const char *key)
{
    for (size_t i = 0; i < sizeof(judged_elsewhere) / sizeof(judged_elsewhere[0]); i++)
        if (begins_with(key, judged_elsewhere[i]))
            return true;
    return false;
}

/* The converter below whose prefix the key stands, as its own key; NULL none. */
static const char *converter_of(const char *key)
{
    static const char *const converters[] = {"key.converter", "value.converter",
                                             "header.converter"};

    for (size_t i = 0; i < sizeof(converters) / sizeof(converters[0]); i++)
        if (begins_with(key, converters[i]) && key[strlen(converters[i])] == '.')
            return converters[i];
    return NULL;
}

static bool knows_keys_of(const struct validate_result *result, const char *converter)
{
    for (size_t i = 0; i < result->key_count; i++)
        if (result->keys[i].per_key && converter_of(result->keys[i].name) == converter)
            return true;
    return false;
}

/* --- beyond Connect's ------------------------------------------------------------------------- */

#define SINK_DEAD_LETTERS "errors.deadletterqueue.topic.name"

static bool is_source(const struct catalog_plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_SOURCE;
}

static bool emits(const struct catalog_plugin *plugin)
{
    return plugin->emits;
}

static bool may_store(const struct catalog_plugin *plugin)
{
    return plugin->stores_offsets != NULL;
}

/* Who reads them, and how the others are told. */
static const struct {
    bool (*is)(const struct catalog_plugin *plugin);
    const char *who;
} readers[CONN_EXTRAS_READERS] = {
    [CONN_EXTRAS_SOURCE] = {is_source, "sources"},
    [CONN_EXTRAS_EMITS] = {emits, "sinks that emit"},
    [CONN_EXTRAS_STORES] = {may_store, "sinks that store their offsets with their data"},
};

static const char **names_of(const struct validate_result *result)
{
    size_t count = result->key_count, extras = 0;
    const char **names;

    while (conn_extras[extras].name != NULL)
        extras++;
    names = calloc(count + extras + 1, sizeof(*names));
    mr_assert(names != NULL);
    for (size_t i = 0; i < count; i++)
        names[i] = result->keys[i].name;
    for (size_t i = 0; i < extras; i++)
        if (readers[conn_extras[i].reader].is(result->plugin))
            names[count++] = conn_extras[i].name;
    return names;
}

static void no_problem(void *arg, const char *key, const char *text)
{
    (void)arg;
    (void)key;
    (void)text;
}

/* The key that has to be true for this one to count, where it is not; NULL: nothing is amiss. */
static const char *needed(const struct props *config, const struct catalog_plugin *plugin,
                          const char *extra)
{
    const char *name = plugin->stores_offsets;
    struct config_value value = {0};
    bool stores = true;

    if (name == NULL || strcmp(extra, CONN_EXTRAS_OUT_OF_RANGE) != 0)
        return NULL;
    for (const struct mr_config_key *key = plugin->keys; key->name != NULL; key++)
        if (strcmp(key->name, name) == 0 &&
            config_def_check(key, config, &value, no_problem, NULL) == 0)
            stores = value.i != 0;
    config_value_deinit(&value);
    return stores ? NULL : name;
}

/* Whose key is it, that this plugin's connectors do not have? false: nobody's. */
static bool judge_others(const struct catalog_plugin *plugin, const char *key, char *text,
                         size_t size)
{
    const struct conn_extra *extra = conn_extras_find(key);
    bool sink = plugin->kind == MR_PLUGIN_SINK;

    if (strcmp(key, sink ? CONN_EXTRAS_DEAD_LETTERS : SINK_DEAD_LETTERS) == 0)
        snprintf(text, size, "%s have %s", sink ? "sinks" : "sources",
                 sink ? SINK_DEAD_LETTERS : CONN_EXTRAS_DEAD_LETTERS);
    else if (extra != NULL)
        snprintf(text, size, "only %s have it", readers[extra->reader].who);
    else
        return false;
    return true;
}

static bool contains(const char *const *names, const char *key)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, key) == 0)
            return true;
    return false;
}

/* Is it below transforms. or predicates., and of no alias that the list has? */
static const char *unlisted(const struct validate_result *result, const char *key)
{
    const char *list = begins_with(key, "transforms.")   ? "transforms"
                       : begins_with(key, "predicates.") ? "predicates"
                                                         : NULL;

    for (size_t i = 0; list != NULL && i < result->key_count; i++) {
        const struct validate_stage_key *of = result->keys[i].stage;

        if (of != NULL && strncmp(key, of->def.name, (size_t)(of->own_name - of->def.name)) == 0)
            return NULL;
    }
    return list;
}

/* key.converter.encoding is key.converter.converter.encoding: what stands behind the prefix is the
 * end of an option. */
static const char *ends_like(const char *const *names, const char *key, const char *converter)
{
    const char *rest = key + strlen(converter); /* with its dot */

    for (; rest[1] != '\0' && *names != NULL; names++) {
        size_t len = strlen(*names), end = strlen(rest);

        if (converter_of(*names) == converter && len > end && strcmp(*names + len - end, rest) == 0)
            return *names;
    }
    return NULL;
}

/* What is wrong with a key; false: nothing, or nobody here can tell. */
static bool judge(const struct props *config, const struct validate_result *result,
                  const char *const *names, const char *key, char *text, size_t size)
{
    const char *converter = converter_of(key), *list = unlisted(result, key), *near;

    if (is_judged_elsewhere(key))
        return false;
    if (contains(names, key)) {
        near = needed(config, result->plugin, key);
        if (near != NULL)
            snprintf(text, size, "it needs %s=true", near);
        return near != NULL;
    }
    if (judge_others(result->plugin, key, text, size))
        return true;
    if (converter != NULL && props_get(config, converter) == NULL) {
        snprintf(text, size,
                 "%s is not set, and the worker's converter has the worker's settings; set both "
                 "here",
                 converter);
        return true;
    }
    if (converter != NULL && !knows_keys_of(result, converter))
        return false;
    if (list != NULL) {
        snprintf(text, size, "%s does not list its alias", list);
        return true;
    }
    near = converter != NULL ? ends_like(names, key, converter) : NULL;
    if (near == NULL)
        near = nearest_name(key, names);
    snprintf(text, size, "no such setting is known%s%s%s", near != NULL ? "; did you mean " : "",
             near != NULL ? near : "", near != NULL ? "?" : "");
    return true;
}

static void remark_unknown(const struct props *config, const struct validate_result *result,
                           validate_remark fn, void *arg)
{
    const char **names = names_of(result);
    char text[512];

    for (size_t i = 0, said = 0; i < config->count && said < UNKNOWN_MAX; i++)
        if (judge(config, result, names, config->entries[i].key, text, sizeof(text))) {
            fn(arg, config->entries[i].key, text);
            said++;
        }
    free(names);
}

void validate_remarks(const struct validate_input *input, const struct validate_result *result,
                      validate_remark fn, void *arg)
{
    if (input->worker->cluster.group_id == NULL)
        remark_known(input, fn, arg);
    remark_unknown(input->config, result, fn, arg);
}
