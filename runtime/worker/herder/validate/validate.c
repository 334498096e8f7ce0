/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a connector's configuration, as values in and values out. The keys are laid out
 * first (framework, transforms, predicates, the connector's own, client overrides, converters),
 * then each check writes its sentences to its key (validation.c). Called by the herder before
 * anything is stored; any thread.
 *
 * No sentence is new: clients match on them. */
#include "worker/herder/validate/validate.h"

#include "base/buf.h"
#include "base/java_pattern.h"
#include "base/java_syntax.h"
#include "base/json.h"
#include "base/map.h"
#include "kafka/client_conf.h"
#include "model/conn_config.h"
#include "worker/herder/validate/validation.h"
#include "worker/supervisor/plugin_pick.h"

#include <strings.h>

#define HIDDEN "[hidden]"
#define PATTERN_MAX 1000
#define CONFIG_MAX ((size_t)1 << 20) /* bytes, as JSON */
#define DEAD_LETTERS "errors.deadletterqueue.topic.name"
#define INVALID_REGEX "Invalid value %s for configuration topics.regex: Invalid regex: %s"

/* --- single keys ------------------------------------------------------------------------------ */

static const struct mr_config_key *own_key(const struct validation *v, const char *name)
{
    for (const struct mr_config_key *key = v->plugin->keys; key->name != NULL; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

/* A plugin's key of a framework name keeps the framework's place and has the plugin's
 * definition. */
static void check_table(struct validation *v, const struct mr_config_key *keys)
{
    for (; keys->name != NULL; keys++)
        if (v->out->bare || own_key(v, keys->name) == NULL)
            config_def_check(keys, v->in->config, NULL, validation_bad,
                             validation_key(v, keys->name));
}

static void check_own(struct validation *v)
{
    for (const struct mr_config_key *key = v->plugin->keys; key->name != NULL; key++) {
        struct validate_key *slot = validation_key(v, key->name);

        validation_clear(slot);
        config_def_check(key, v->in->config, NULL, validation_bad, slot);
    }
}

/* Whatever a class that has a key of that name makes of it. */
static void check_name(struct validation *v)
{
    const char *name = validation_get(v, "name");
    struct mr_error err = {0};

    if (name != NULL && conn_config_check_name(name, &err) != 0)
        validation_problem(v, "name", "%s", err.text);
}

/* Keys given as null: an error, but for the connector's own keys (their definition says what null
 * means). */
static void check_nulls(struct validation *v)
{
    const struct props *config = v->in->config;

    for (size_t i = 0, nulls = 0; i < config->count && nulls < VALIDATION_NAMED_MAX; i++) {
        const char *name = config->entries[i].key;

        if (config->entries[i].value != NULL || (!v->out->bare && own_key(v, name) != NULL))
            continue;
        nulls++;
        validation_say(validation_find(v, name) != NULL ? validation_find(v, name)
                                                        : validation_add(v, name, true),
                       "Null value can not be supplied as the configuration value.");
    }
}

/* --- sinks and sources ------------------------------------------------------------------------ */

static void check_both_topics(struct validation *v, const char *text)
{
    validation_problem(v, "topics", "%s", text);
    validation_problem(v, "topics.regex", "%s", text);
}

/* What is no pattern, or one that the task could not subscribe by, is refused here; but for what is
 * dear to compile, which is left to the task's own process (promise 2). Beside a topic for dead
 * letters, which it is to be compared with, Connect then looks no further. */
static int check_pattern(struct validation *v, struct mr_error *err)
{
    const char *regex = validation_get(v, "topics.regex");
    struct java_pattern *pattern = NULL;
    struct java_syntax syntax = {0};
    struct mr_error why = {0};
    struct buf out;
    int rc;

    if (validation_blank(regex))
        return 0;
    buf_init(&out, 65536);
    rc = java_syntax_translate(regex, &out, &syntax, &why);
    java_syntax_deinit(&syntax);
    buf_deinit(&out);
    if (rc == 0 && strlen(regex) <= PATTERN_MAX && strchr(regex, '{') == NULL)
        rc = (pattern = java_pattern_make(regex, &why)) == NULL ? why.code : 0;
    java_pattern_free(&pattern);
    if (rc != 0 && !validation_blank(validation_get(v, DEAD_LETTERS)))
        return mr_fail(err, MR_ERR_CONFIG, INVALID_REGEX, regex, why.text);
    if (rc != 0)
        validation_problem(v, "topics.regex", INVALID_REGEX, regex, why.text);
    return 0;
}

/* Dead letters must not come back to the connector that wrote them. */
static void check_dead_letters(struct validation *v, const struct config_value *topics,
                               const char *dead)
{
    const char *regex = validation_get(v, "topics.regex");

    if (validation_contains(topics, topics->item_count, dead)) {
        char *all = validation_joined(topics);

        validation_problem(v, "topics",
                           "The DLQ topic '%s' may not be included in the list of topics "
                           "('topics=[%s]') consumed by the connector",
                           dead, all);
        free(all);
    }
    if (validation_blank(regex) || strlen(regex) > PATTERN_MAX)
        return;
    if (java_pattern_matches_once(regex, dead, NULL) == 1)
        validation_problem(v, "topics.regex",
                           "The DLQ topic '%s' may not be matched by the regex for the topics "
                           "('topics.regex=%s') consumed by the connector",
                           dead, regex);
}

/* The sink's group must not be that of the workers. An override of it is among the keys that
 * nobody defines, and among the overrides once more. */
static void check_consumer_group(struct validation *v)
{
    const char *workers = v->in->worker->cluster.group_id, *name = validation_get(v, "name");
    const struct props_entry *own = props_find(v->in->config, "consumer.override.group.id");
    char *trimmed = validation_trimmed(name != NULL ? name : "");

    if (workers == NULL) {
        free(trimmed);
        return;
    }
    if (own != NULL)
        validation_add(v, own->key, true);
    if (own != NULL && own->value != NULL && strcmp(own->value, workers) == 0)
        validation_problem(v, own->key, "Consumer group %s conflicts with Connect worker group %s",
                           own->value, workers);
    if (own == NULL && strncmp(workers, "connect-", 8) == 0 && strcmp(workers + 8, trimmed) == 0)
        validation_problem(v, "name",
                           "Consumer group for sink connector named %s conflicts with Connect "
                           "worker group %s",
                           trimmed, workers);
    free(trimmed);
}

static void check_topics(struct validation *v)
{
    bool list = !validation_blank(validation_get(v, "topics")),
         regex = !validation_blank(validation_get(v, "topics.regex"));
    const char *dead = validation_get(v, DEAD_LETTERS);
    struct config_value topics = validation_list(v, "topics");
    char *dlq = validation_trimmed(dead != NULL ? dead : "");

    if (props_find(v->in->config, "topics") != NULL && validation_get(v, "topics") == NULL)
        validation_problem(v, "topics", "Configuration 'topics' values must not be null.");
    else if (config_def_has_duplicate(&topics))
        validation_problem(v, "topics", "Configuration 'topics' values must not be duplicated.");
    if (list && regex)
        check_both_topics(
            v, "topics and topics.regex are mutually exclusive options, but both are set.");
    else if (!list && !regex)
        check_both_topics(v, "Must configure one of topics or topics.regex");
    if (dlq[0] != '\0')
        check_dead_letters(v, &topics, dlq);
    free(dlq);
    config_value_deinit(&topics);
}

static void check_groups(struct validation *v)
{
    struct config_value groups = validation_list(v, "topic.creation.groups");

    if (config_def_has_duplicate(&groups))
        validation_problem(v, "topic.creation.groups",
                           "Configuration 'topic.creation.groups' values must not be duplicated.");
    config_value_deinit(&groups);
}

/* What the class says of itself with this configuration. */
static void check_offsets_suffice(struct validation *v)
{
    const char *needs = v->plugin->exactly_once;
    const char *given = needs != NULL && needs[0] != '\0' ? validation_get(v, needs) : "";

    if (needs == NULL)
        validation_problem(
            v, "exactly.once.support",
            "The connector does not implement the API required for preflight validation of "
            "exactly-once source support. Please consult the documentation for the connector to "
            "determine whether it supports exactly-once semantics, and then consider reconfiguring "
            "the connector to use the value \"requested\" for this property (which will disable "
            "this preflight check and allow the connector to be created).");
    else if (given == NULL || (needs[0] != '\0' && given[0] == '\0'))
        validation_problem(v, "exactly.once.support",
                           "The connector does not support exactly-once semantics with the "
                           "provided configuration.");
}

static bool says(struct validation *v, const char *key, const char *word)
{
    const char *given = validation_get(v, key);
    char *value = validation_trimmed(given != NULL ? given : "");
    bool same = strcasecmp(value, word) == 0;

    free(value);
    return same;
}

/* Of a cluster's worker alone, as in Java: standalone nobody asks, and it has no effect
 * (validate_remarks.c). */
static void check_exactly_once(struct validation *v)
{
    const char *support = v->in->worker->cluster.exactly_once;

    if (v->in->worker->cluster.group_id == NULL)
        return;
    if (says(v, "exactly.once.support", "required")) {
        if (support == NULL || strcasecmp(support, "enabled") != 0)
            validation_problem(v, "exactly.once.support",
                               "This worker does not have exactly-once source support enabled.");
        check_offsets_suffice(v);
    }
    if (says(v, "transaction.boundary", "connector") && !v->plugin->boundaries)
        validation_problem(
            v, "transaction.boundary",
            "The connector does not support connector-defined transaction boundaries with the "
            "given configuration. Please reconfigure it to use a different transaction boundary "
            "definition.");
}

/* --- the class -------------------------------------------------------------------------------- */

static bool looks_secret(const char *key)
{
    return client_conf_secret(key) || strstr(key, "password") != NULL ||
           strstr(key, "secret") != NULL;
}

/* As Java prints a map; the client sees what it sent, but for what looks secret (the text is
 * logged). */
static int no_class(const struct props *config, struct mr_error *err)
{
    struct buf map;
    int rc;

    buf_init(&map, sizeof(err->text));
    for (size_t i = 0; i < config->count; i++) {
        const struct props_entry *e = &config->entries[i];

        buf_printf(&map, "%s%s=%s", i > 0 ? ", " : "", e->key,
                   e->value == NULL       ? "null"
                   : looks_secret(e->key) ? HIDDEN
                                          : e->value);
    }
    rc = mr_fail(err, MR_ERR_CONFIG, "Connector config {%s} contains no connector type",
                 map.len > 0 ? map.data : "");
    buf_deinit(&map);
    return rc;
}

static int unknown_class(const struct catalog *catalog, const char *name, struct mr_error *err)
{
    struct buf list;
    int rc;

    buf_init(&list, sizeof(err->text));
    for (size_t i = 0; i < catalog_count(catalog); i++) {
        const struct catalog_plugin *plugin = catalog_at(catalog, i);

        if ((plugin->kind == MR_PLUGIN_SINK || plugin->kind == MR_PLUGIN_SOURCE) &&
            plugin_pick_first_of_class(catalog, i))
            buf_printf(&list, "%s%s", list.len > 0 ? ", " : "", plugin->java_class);
    }
    rc = mr_fail(
        err, MR_ERR_CONFIG,
        "Failed to find any class that implements Connector and which name matches %s, available "
        "connectors are: %s",
        name, list.len > 0 ? list.data : "none (see plugin.path)");
    buf_deinit(&list);
    return rc;
}

/* problem: filled where only the version is not there. */
static int find_class(struct validation *v, struct mr_error *problem, struct mr_error *err)
{
    const char *value = validation_get(v, "connector.class");
    struct plugin_wish wish = {.version = validation_get(v, "connector.plugin.version")};
    char *name;
    int rc;

    if (value == NULL)
        return no_class(v->in->config, err);
    name = validation_trimmed(value);
    wish.name = name;
    v->plugin = catalog_find(v->in->catalog, 0, name);
    rc = v->plugin == NULL ? unknown_class(v->in->catalog, name, err)
                           : plugin_pick(v->in->catalog, &wish, &v->plugin, problem);
    v->out->plugin = v->plugin;
    v->out->bare = rc == MR_ERR_UNSUPPORTED;
    free(name);
    if (rc == MR_ERR_CONFIG)
        return mr_fail(err, rc, "%s", problem->text);
    return v->out->bare ? 0 : rc;
}

/* The class is there, but not in that version: what belongs to a version can't be looked at. */
static void check_bare(struct validation *v, const char *problem)
{
    validation_problem(v, "connector.class", "%s", problem);
    validation_problem(v, "connector.plugin.version", "%s", problem);
    validate_plugins_converters(v);
    validate_stages(v);
    check_nulls(v);
    validate_references_check(v);
}

/* --- the doors -------------------------------------------------------------------------------- */

int validate_size(const struct props *config, struct mr_error *err)
{
    json_t *json = json_from_props(config);
    size_t size = json != NULL ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;

    json_decref(json);
    if (size <= CONFIG_MAX)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "The connector's configuration is too large: %zu bytes as JSON, where at most "
                   "%zu are possible",
                   size, CONFIG_MAX);
}

int validate_connector(const struct validate_input *input, struct validate_result *out,
                       struct mr_error *err)
{
    struct validation v = {.in = input, .out = out};
    struct mr_error problem = {0};
    int rc;

    memset(out, 0, sizeof(*out));
    rc = validate_size(input->config, err);
    if (rc == 0)
        rc = find_class(&v, &problem, err);
    if (rc != 0)
        return rc;
    check_table(&v, conn_config_common);
    if (out->bare) {
        check_name(&v);
        check_bare(&v, problem.text);
        return 0;
    }
    check_table(&v, validation_sink(&v) ? conn_config_sink : conn_config_source);
    validate_plugins_converters(&v);
    validate_stages(&v);
    if (validation_sink(&v)) {
        rc = check_pattern(&v, err);
        if (rc != 0)
            return rc;
        check_topics(&v);
        check_consumer_group(&v);
    } else {
        check_groups(&v);
        check_exactly_once(&v);
    }
    check_own(&v);
    check_name(&v);
    check_nulls(&v);
    rc = validate_clients_overrides(&v, err);
    if (rc != 0)
        return rc;
    validate_plugins_converter_keys(&v);
    validate_references_check(&v);
    return 0;
}

size_t validate_error_count(const struct validate_result *result)
{
    size_t count = 0;

    for (size_t i = 0; i < result->key_count; i++)
        count +=
            result->keys[i].per_key ? result->keys[i].error_count > 0 : result->keys[i].error_count;
    return count;
}

int validate_message(const struct validate_result *result, struct buf *out)
{
    buf_printf(out, "Connector configuration is invalid and contains the following %zu error(s):",
               validate_error_count(result));
    for (size_t i = 0; i < result->key_count; i++)
        for (size_t j = 0; j < result->keys[i].error_count; j++) {
            buf_putc(out, '\n');
            buf_puts(out, result->keys[i].errors[j]);
        }
    buf_puts(out, "\nYou can also find the above list of errors at the endpoint "
                  "`/connector-plugins/{connectorType}/config/validate`");
    return out->failed ? MR_ERR_FULL : 0;
}

int validate_worker(const struct worker_config *worker, const struct catalog *catalog,
                    struct mr_error *err)
{
    struct validate_result result = {0};
    struct validate_input input = {.config = &worker->props, .catalog = catalog, .worker = worker};
    struct validation v = {.in = &input, .out = &result};
    int rc = 0;

    validate_plugins_converters(&v);
    validate_plugins_converter_keys(&v);
    for (size_t i = 0; i < result.key_count && rc == 0; i++)
        if (result.keys[i].error_count > 0) {
            char where[512];

            worker_config_where(worker, result.keys[i].name, where, sizeof(where));
            rc = mr_fail(err, MR_ERR_CONFIG, "%s%s", where, result.keys[i].errors[0]);
        }
    validate_deinit(&result);
    return rc;
}

void validate_deinit(struct validate_result *result)
{
    for (size_t i = 0; i < result->key_count; i++) {
        validation_clear(&result->keys[i]);
        validate_stages_free(&result->keys[i].stage);
        free(result->keys[i].name);
    }
    free(result->keys);
    map_free(&result->index, NULL);
    memset(result, 0, sizeof(*result));
}
