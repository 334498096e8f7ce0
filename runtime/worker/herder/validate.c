/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a connector's configuration, as values in and values out. The keys are laid out first (framework,
 * transforms, predicates, the connector's own, client overrides, converters), then each check writes its sentences to its
 * key, so the order of the answer is that of the keys and not that of the checks. Called by the herder before anything is
 * stored; any thread.
 *
 * No sentence is new: clients match on them. Where Connect answers a client's mistake with 500 (an override that does not
 * parse), it is a problem among the others here. */
#include "worker/herder/validate.h"

#include "base/buf.h"
#include "kafka/client_conf.h"
#include "kafka/topic_pattern.h"
#include "model/conn_config.h"

#include <strings.h>

#define HIDDEN "[hidden]"
#define SIMPLE_HEADERS "SimpleHeaderConverter" /* built into hosts, so in no catalog */
#define NAMED_MAX \
    200 /* aliases, overrides, nulls: beyond this they are counted and not looked at */

#define PATTERN_MAX 1000

struct run {
    const struct validate_input *in;
    struct validate_result *out;
    const struct catalog_plugin *plugin;
};

/* --- keys and their problems ---------------------------------------------------------------------------------------- */

static struct validate_key *find_key(struct run *run, const char *name)
{
    for (size_t i = 0; i < run->out->key_count; i++)
        if (strcmp(run->out->keys[i].name, name) == 0)
            return &run->out->keys[i];
    return NULL;
}

/* A new key, at the end or at the front (keys without a definition come first). */
static struct validate_key *add_key(struct run *run, const char *name, bool front)
{
    struct validate_result *out = run->out;
    struct validate_key *keys = realloc(out->keys, (out->key_count + 1) * sizeof(*keys)), *key;

    mr_assert(keys != NULL);
    out->keys = keys;
    key = front ? keys : &keys[out->key_count];
    memmove(key + 1, key, (size_t)(&keys[out->key_count] - key) * sizeof(*key));
    out->key_count++;
    *key = (struct validate_key){.name = strdup(name)};
    mr_assert(key->name != NULL);
    return key;
}

static struct validate_key *key_of(struct run *run, const char *name)
{
    struct validate_key *key = find_key(run, name);

    return key != NULL ? key : add_key(run, name, false);
}

static void clear_errors(struct validate_key *key)
{
    for (size_t i = 0; i < key->error_count; i++)
        free(key->errors[i]);
    free(key->errors);
    key->errors = NULL;
    key->error_count = 0;
}

static void add_error(struct validate_key *key, const char *text)
{
    key->errors = realloc(key->errors, (key->error_count + 1) * sizeof(*key->errors));
    mr_assert(key->errors != NULL);
    key->errors[key->error_count] = strdup(text);
    mr_assert(key->errors[key->error_count++] != NULL);
}

static MR_PRINTF(3, 4)
void problem(struct run *run, const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    mr_assert(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    add_error(key_of(run, name), text);
    free(text);
}

static void on_bad(void *arg, const char *key, const char *text)
{
    (void)key;
    add_error(arg, text);
}

void validate_deinit(struct validate_result *result)
{
    for (size_t i = 0; i < result->key_count; i++) {
        clear_errors(&result->keys[i]);
        free(result->keys[i].name);
    }
    free(result->keys);
    memset(result, 0, sizeof(*result));
}

/* --- looking at the configuration ------------------------------------------------------------------------------------ */

static const char *get(const struct run *run, const char *key)
{
    return props_get(run->in->config, key);
}

static bool is_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\r\n\f\v")] == '\0';
}

static struct config_value list_of(const struct run *run, const char *name)
{
    struct mr_config_key key = {name, MR_CFG_LIST, .fallback = ""};
    struct config_value value = {0};

    config_def_check(&key, run->in->config, &value, NULL, NULL);
    return value;
}

static bool contains(const struct config_value *list, size_t count, const char *item)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list->items[i], item) == 0)
            return true;
    return false;
}

/* As Java prints a list: "a, b". */
static char *joined(const struct config_value *list)
{
    struct buf out;

    buf_init(&out, (size_t)16 << 20);
    for (size_t i = 0; i < list->item_count; i++) {
        buf_puts(&out, i > 0 ? ", " : "");
        buf_puts(&out, list->items[i]);
    }
    return out.failed || out.len == 0 ? strdup("") : buf_take(&out);
}

static bool is_sink(const struct run *run)
{
    return run->plugin->kind == MR_PLUGIN_SINK;
}

/* --- single keys ------------------------------------------------------------------------------------------------------ */

static const struct mr_config_key *own_key(const struct run *run, const char *name)
{
    for (const struct mr_config_key *key = run->plugin->keys; key->name != NULL; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

/* A plugin's key of a framework name keeps the framework's place and has the plugin's definition. */
static void check_table(struct run *run, const struct mr_config_key *keys)
{
    for (; keys->name != NULL; keys++)
        if (own_key(run, keys->name) == NULL)
            config_def_check(keys, run->in->config, NULL, on_bad, key_of(run, keys->name));
}

static void check_own(struct run *run)
{
    for (const struct mr_config_key *key = run->plugin->keys; key->name != NULL; key++) {
        struct validate_key *slot = key_of(run, key->name);

        clear_errors(slot);
        config_def_check(key, run->in->config, NULL, on_bad, slot);
    }
}

static void check_name(struct run *run)
{
    const char *name = get(run, "name");
    struct mr_error err = {0};

    if (name != NULL && conn_config_check_name(name, &err) != 0)
        problem(run, "name", "%s", err.text);
}

/* Keys given as null: an error, but for the connector's own keys (their definition says what null means). */
static void check_nulls(struct run *run)
{
    const struct props *config = run->in->config;

    for (size_t i = 0, nulls = 0; i < config->count && nulls < NAMED_MAX; i++) {
        const char *name = config->entries[i].key;

        if (config->entries[i].value != NULL || own_key(run, name) != NULL)
            continue;
        nulls++;
        add_error(find_key(run, name) != NULL ? find_key(run, name) : add_key(run, name, true),
                  "Null value can not be supplied as the configuration value.");
    }
}

/* --- versions of plugins ----------------------------------------------------------------------------------------------- */

/* One version of each plugin is installed: this one, by itself, by a range of nothing but it, or "latest". */
static bool is_version(const char *wanted, const char *installed)
{
    size_t len = strlen(wanted), n = installed != NULL ? strlen(installed) : 0;

    if (strcasecmp(wanted, "latest") == 0)
        return true;
    if (n > 0 && len == n + 2 && wanted[0] == '[' && wanted[len - 1] == ']')
        return strncmp(wanted + 1, installed, n) == 0;
    return n > 0 && strcmp(wanted, installed) == 0;
}

static void check_version(struct run *run, const char *class_key, const char *version_key,
                          const struct catalog_plugin *plugin)
{
    const char *wanted = get(run, version_key);
    const char *open = "", *middle = "", *again = "", *close = "";
    char *text = NULL;

    if (wanted == NULL || is_version(wanted, plugin->version))
        return;
    if (wanted[0] != '[' && wanted[0] != '(') {
        open = "[";
        middle = ",";
        again = wanted;
        close = "]";
    }
    mr_assert(asprintf(&text,
                       "Plugin %s not found that matches the version range %s%s%s%s%s, available "
                       "versions: [%s]",
                       plugin->java_class, open, wanted, middle, again, close,
                       plugin->version != NULL ? plugin->version : "undefined") > 0);
    add_error(key_of(run, class_key), text);
    add_error(key_of(run, version_key), text);
    free(text);
}

/* --- converters -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *prefix;
    const char *version;
    const char *type;
    const char *interface;
} converters[] = {
    {"header.converter", "header.converter.", "header.converter.plugin.version", "header",
     "HeaderConverter"},
    {"key.converter", "key.converter.", "key.converter.plugin.version", "key", "Converter"},
    {"value.converter", "value.converter.", "value.converter.plugin.version", "value", "Converter"},
};

#define CONVERTERS (sizeof(converters) / sizeof(converters[0]))

static char *trimmed(const char *text)
{
    size_t len;
    char *copy;

    while (*text != '\0' && (unsigned char)*text <= ' ')
        text++;
    for (len = strlen(text); len > 0 && (unsigned char)text[len - 1] <= ' '; len--)
        ;
    copy = strndup(text, len);
    mr_assert(copy != NULL);
    return copy;
}

static bool is_simple_headers(const char *name)
{
    const char *dot = strrchr(name, '.');

    return strcmp(dot != NULL ? dot + 1 : name, SIMPLE_HEADERS) == 0;
}

static const struct catalog_plugin *find_converter(struct run *run, size_t i)
{
    const char *value = get(run, converters[i].key);
    char *name = value != NULL ? trimmed(value) : NULL;
    const struct catalog_plugin *found = NULL, *other;

    if (name == NULL)
        return NULL;
    found = catalog_find(run->in->catalog, MR_PLUGIN_CONVERTER, name);
    if (found == NULL && (strcmp(converters[i].type, "header") != 0 || !is_simple_headers(name))) {
        other = catalog_find(run->in->catalog, 0, name);
        if (other != NULL)
            problem(run, converters[i].key, "Class class %s does not implement the %s interface",
                    other->java_class, converters[i].interface);
        else
            problem(run, converters[i].key,
                    "Invalid value %s for configuration %s: Class %s could not be found.", value,
                    converters[i].key, name);
    }
    free(name);
    return found;
}

/* The converter's own keys stand below its prefix; its sentences name them without. */
static void check_converter_keys(struct run *run, size_t i, const struct catalog_plugin *plugin)
{
    struct props own;

    props_init(&own);
    mr_assert(props_subset(run->in->config, converters[i].prefix, &own) == 0 &&
              props_set(&own, "converter.type", converters[i].type) == 0);
    for (const struct mr_config_key *key = plugin->keys; key->name != NULL; key++) {
        char name[512];
        struct validate_key *slot;

        snprintf(name, sizeof(name), "%s%s", converters[i].prefix, key->name);
        slot = key_of(run, name);
        slot->per_key = true;
        config_def_check(key, &own, NULL, on_bad, slot);
    }
    props_deinit(&own);
}

static void check_converters(struct run *run, const struct catalog_plugin **found)
{
    for (size_t i = 0; i < CONVERTERS; i++) {
        found[i] = find_converter(run, i);
        if (found[i] != NULL)
            check_version(run, converters[i].key, converters[i].version, found[i]);
    }
}

/* --- transforms and predicates ------------------------------------------------------------------------------------------ */

/* No plugin kind of these exists here yet, so each alias is told like a class that is not installed. */
static void check_aliases(struct run *run, const char *name)
{
    struct config_value aliases = list_of(run, name);

    if (config_def_has_duplicate(&aliases)) {
        char *all = joined(&aliases);

        problem(run, name, "Invalid value [%s] for configuration %s: Duplicate alias provided.",
                all, name);
        free(all);
    }
    if (aliases.item_count > NAMED_MAX)
        problem(run, name, "%s: %zu aliases are more than %d", name, aliases.item_count, NAMED_MAX);
    for (size_t i = 0; i < aliases.item_count && i < NAMED_MAX; i++) {
        char type[1024];
        const char *class_name;

        if (contains(&aliases, i, aliases.items[i]))
            continue;
        snprintf(type, sizeof(type), "%s.%s.type", name, aliases.items[i]);
        class_name = get(run, type);
        if (class_name == NULL)
            problem(run, type, "Missing required configuration \"%s\" which has no default value.",
                    type);
        else
            problem(run, type,
                    "Invalid value %s for configuration %s: Class %s could not be found.",
                    class_name, type, class_name);
    }
    config_value_deinit(&aliases);
}

/* --- sinks and sources --------------------------------------------------------------------------------------------------- */

static void check_both_topics(struct run *run, const char *text)
{
    problem(run, "topics", "%s", text);
    problem(run, "topics.regex", "%s", text);
}

/* What the task could not subscribe to is refused here; but for patterns that are dear to compile, which are left to the
 * task's own process (promise 2). */
static void check_pattern(struct run *run)
{
    const char *regex = get(run, "topics.regex");
    struct mr_error err = {0};
    struct buf out;

    if (is_blank(regex) || strlen(regex) > PATTERN_MAX || strchr(regex, '{') != NULL)
        return;
    buf_init(&out, 65536);
    if (topic_pattern_translate(regex, &out, &err) != 0)
        problem(run, "topics.regex",
                "Invalid value %s for configuration topics.regex: Invalid regex: %s", regex,
                err.text);
    buf_deinit(&out);
}

static void check_topics(struct run *run)
{
    bool list = !is_blank(get(run, "topics")), regex = !is_blank(get(run, "topics.regex"));
    const char *dead = get(run, "errors.deadletterqueue.topic.name");
    struct config_value topics = list_of(run, "topics");
    char *dlq = trimmed(dead != NULL ? dead : "");

    if (props_find(run->in->config, "topics") != NULL && get(run, "topics") == NULL)
        problem(run, "topics", "Configuration 'topics' values must not be null.");
    else if (config_def_has_duplicate(&topics))
        problem(run, "topics", "Configuration 'topics' values must not be duplicated.");
    if (list && regex)
        check_both_topics(
            run, "topics and topics.regex are mutually exclusive options, but both are set.");
    else if (!list && !regex)
        check_both_topics(run, "Must configure one of topics or topics.regex");
    else if (dlq[0] != '\0' && contains(&topics, topics.item_count, dlq)) {
        char *all = joined(&topics);

        problem(run, "topics",
                "The DLQ topic '%s' may not be included in the list of topics ('topics=[%s]') "
                "consumed by the "
                "connector",
                dlq, all);
        free(all);
    }
    free(dlq);
    config_value_deinit(&topics);
}

/* Ignored, it would lose what the user asked to keep. */
static void check_dead_letters(struct run *run)
{
    if (!is_blank(get(run, "errors.deadletterqueue.topic.name")))
        problem(run, "errors.deadletterqueue.topic.name",
                "Dead letter queues are not supported yet: remove "
                "errors.deadletterqueue.topic.name; a bad record then fails the task, or is "
                "skipped with errors.tolerance=all");
}

static void check_groups(struct run *run)
{
    struct config_value groups = list_of(run, "topic.creation.groups");

    if (config_def_has_duplicate(&groups))
        problem(run, "topic.creation.groups",
                "Configuration 'topic.creation.groups' values must not be duplicated.");
    config_value_deinit(&groups);
}

static void check_exactly_once(struct run *run)
{
    const char *support = get(run, "exactly.once.support");
    char *value = trimmed(support != NULL ? support : "");

    if (strcasecmp(value, "required") == 0)
        problem(run, "exactly.once.support",
                "This worker does not have exactly-once source support enabled.");
    free(value);
}

/* --- client overrides ----------------------------------------------------------------------------------------------------- */

static const struct {
    enum client_kind kind;
    const char *prefix;
} overrides[] = {
    {CLIENT_PRODUCER, "producer.override."},
    {CLIENT_CONSUMER, "consumer.override."},
    {CLIENT_ADMIN, "admin.override."},
};

#define OVERRIDES (sizeof(overrides) / sizeof(overrides[0]))

static bool is_allowed(const struct worker_config *worker, const char *key)
{
    static const char *const principal[] = {"sasl.jaas.config", "sasl.mechanism",
                                            "security.protocol", NULL};
    const char *const *list = principal;

    if (worker->override_policy == WORKER_OVERRIDE_ALL ||
        worker->override_policy == WORKER_OVERRIDE_NONE)
        return worker->override_policy == WORKER_OVERRIDE_ALL;
    if (worker->override_policy == WORKER_OVERRIDE_ALLOWLIST)
        list = (const char *const *)worker->override_allowlist;
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static bool creates_topics(const struct run *run)
{
    for (size_t i = 0; i < run->in->config->count; i++)
        if (strncmp(run->in->config->entries[i].key, "topic.creation.", 15) == 0)
            return true;
    return false;
}

/* Which clients a connector of this kind and configuration has. */
static bool uses(const struct run *run, enum client_kind kind)
{
    bool dead_letters = is_sink(run) && !is_blank(get(run, "errors.deadletterqueue.topic.name"));

    if (kind == CLIENT_PRODUCER)
        return !is_sink(run) || dead_letters;
    if (kind == CLIENT_CONSUMER)
        return is_sink(run);
    return dead_letters || creates_topics(run);
}

/* What can't be honoured is refused here, and not found out by the running task. */
static void check_client(struct run *run, enum client_kind kind, const char *first)
{
    struct client_conf_layers layers = {
        .kind = kind, .worker = &run->in->worker->props, .connector = run->in->config};
    struct props java, mapped;
    struct mr_error err = {0};

    props_init(&java);
    props_init(&mapped);
    mr_assert(client_conf_layer(&layers, &java) == 0);
    if (client_conf_map(kind, &java, &mapped, NULL, NULL, &err) != 0)
        problem(run, first, "%s", err.text);
    props_deinit(&java);
    props_deinit(&mapped);
}

static void check_overrides(struct run *run)
{
    const struct props *config = run->in->config;

    for (size_t o = 0; o < OVERRIDES; o++) {
        size_t len = strlen(overrides[o].prefix), count = 0;
        const char *first = NULL;

        if (!uses(run, overrides[o].kind))
            continue;
        for (size_t i = 0; i < config->count; i++) {
            const char *name = config->entries[i].key;

            if (strncmp(name, overrides[o].prefix, len) != 0 || count++ >= NAMED_MAX)
                continue;
            first = first != NULL ? first : name;
            key_of(run, name)->per_key = true;
            if (!is_allowed(run->in->worker, name + len))
                problem(run, name,
                        "The '%s' policy does not allow '%s' to be overridden in the connector "
                        "configuration.",
                        worker_config_override_name(run->in->worker->override_policy), name + len);
        }
        if (count > NAMED_MAX)
            problem(run, first, "%zu keys below %s are more than %d", count, overrides[o].prefix,
                    NAMED_MAX);
        else if (first != NULL)
            check_client(run, overrides[o].kind, first);
    }
}

/* --- the class --------------------------------------------------------------------------------------------------------------- */

static bool looks_secret(const char *key)
{
    return client_conf_secret(key) || strstr(key, "password") != NULL ||
           strstr(key, "secret") != NULL;
}

/* As Java prints a map; the client sees what it sent, but for what looks secret (the text is logged). */
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

        if (plugin->kind == MR_PLUGIN_SINK || plugin->kind == MR_PLUGIN_SOURCE)
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

static int find_class(struct run *run, struct mr_error *err)
{
    const char *value = get(run, "connector.class");
    char *name;
    int rc = 0;

    if (value == NULL)
        return no_class(run->in->config, err);
    name = trimmed(value);
    run->plugin = run->out->plugin = catalog_find(run->in->catalog, 0, name);
    if (run->plugin == NULL)
        rc = unknown_class(run->in->catalog, name, err);
    free(name);
    return rc;
}

/* --- the doors ------------------------------------------------------------------------------------------------------------------ */

int validate_connector(const struct validate_input *input, struct validate_result *out,
                       struct mr_error *err)
{
    struct run run = {.in = input, .out = out};
    const struct catalog_plugin *found[CONVERTERS];
    int rc;

    memset(out, 0, sizeof(*out));
    rc = find_class(&run, err);
    if (rc != 0 || run.plugin == NULL)
        return rc;
    check_table(&run, conn_config_common);
    check_table(&run, is_sink(&run) ? conn_config_sink : conn_config_source);
    check_name(&run);
    check_version(&run, "connector.class", "connector.plugin.version", run.plugin);
    check_converters(&run, found);
    check_aliases(&run, "transforms");
    check_aliases(&run, "predicates");
    if (is_sink(&run)) {
        check_pattern(&run);
        check_topics(&run);
        check_dead_letters(&run);
    } else {
        check_groups(&run);
        check_exactly_once(&run);
    }
    check_own(&run);
    check_nulls(&run);
    check_overrides(&run);
    for (size_t i = 0; i < CONVERTERS; i++)
        if (found[i] != NULL)
            check_converter_keys(&run, i, found[i]);
    return 0;
}

/* One remark for each, at its first key; none where the value is the default. */
static const struct {
    const char *key;
    bool prefix;
    const char *harmless;
    const char *text;
} without_effect[] = {
    {"topic.creation.", true, "", "topics are created by the broker, with its own settings"},
    {"offsets.storage.topic", false, "", "a standalone worker keeps all offsets in its file"},
    {"errors.retry.timeout", false, "0", "what fails for the moment is not tried again"},
    {"errors.log.enable", false, "false",
     "records that are skipped are counted in the log, not listed"},
};

void validate_remarks(const struct props *config, validate_remark fn, void *arg)
{
    for (size_t w = 0; w < sizeof(without_effect) / sizeof(without_effect[0]); w++) {
        size_t len = strlen(without_effect[w].key) + (without_effect[w].prefix ? 0 : 1);

        for (size_t i = 0; i < config->count; i++) {
            const struct props_entry *e = &config->entries[i];

            if (strncmp(e->key, without_effect[w].key, len) != 0 || is_blank(e->value) ||
                strcasecmp(e->value, without_effect[w].harmless) == 0)
                continue;
            fn(arg, e->key, without_effect[w].text);
            break;
        }
    }
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
    struct validate_input input = {&worker->props, catalog, worker};
    struct run run = {.in = &input, .out = &result};
    int rc = 0;

    for (size_t i = 0; i < CONVERTERS; i++) {
        const struct catalog_plugin *found = find_converter(&run, i);

        if (found != NULL)
            check_converter_keys(&run, i, found);
    }
    for (size_t i = 0; i < result.key_count && rc == 0; i++)
        if (result.keys[i].error_count > 0) {
            char where[512];

            worker_config_where(worker, result.keys[i].name, where, sizeof(where));
            rc = mr_fail(err, MR_ERR_CONFIG, "%s%s", where, result.keys[i].errors[0]);
        }
    validate_deinit(&result);
    return rc;
}
