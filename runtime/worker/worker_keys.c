/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a worker's properties file: tables, each row with type, default, range and the field
 * it fills, and what is said of a key that stands in none.
 *
 * A key that no table has is material for plugins or a typing error: warned about, with the nearest
 * known name. Keys whose silent loss would open a door or change a guarantee (exactly-once) end the
 * start. */
#define LOGGER "worker.config"
#include "worker/worker_keys.h"

#include "base/log.h"
#include "base/nearest.h"
#include "kafka/client_conf.h"
#include "model/config_def.h"
#include "model/task_times.h"

#include <strings.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define STORED(field) offsetof(struct worker_config, field) + 1
#define CHECKED 0 /* a known key: typed and checked, read elsewhere or later */

#define CONVERTER(name) \
    { \
        {name, MR_CFG_CLASS, MR_CFG_REQUIRED, .doc = ""}, CHECKED \
    }
#define TEXT(name, value) \
    { \
        {name, MR_CFG_STRING, .fallback = value}, CHECKED \
    }
#define LIST(name, value) \
    { \
        {name, MR_CFG_LIST, .fallback = value}, CHECKED \
    }
#define FLAG(name, value) \
    { \
        {name, MR_CFG_BOOLEAN, .fallback = value}, CHECKED \
    }
#define NUMBER(name, kind, value, least, most, place) \
    { \
        {name, kind, .fallback = value, .has_range = true, .min = least, .max = most}, place \
    }

static const struct setting {
    struct mr_config_key key;
    size_t place; /* STORED: LONG, INT or STRING goes into that field */
} settings[] = {
    {{"bootstrap.servers", MR_CFG_LIST, MR_CFG_NON_EMPTY, .fallback = WORKER_KEYS_SERVERS},
     CHECKED},
    {{"client.dns.lookup", MR_CFG_STRING, .fallback = "use_all_dns_ips",
      .choices = "use_all_dns_ips|resolve_canonical_bootstrap_servers_only"},
     CHECKED},
    CONVERTER("key.converter"),
    CONVERTER("value.converter"),
    {{"header.converter", MR_CFG_CLASS,
      .fallback = "org.apache.kafka.connect.storage.SimpleHeaderConverter"},
     CHECKED},
    NUMBER(TASK_TIMES_GRACEFUL, MR_CFG_LONG, TASK_TIMES_GRACEFUL_DEFAULT, TASK_TIMES_GRACEFUL_MIN,
           TASK_TIMES_GRACEFUL_MAX, STORED(graceful_ms)),
    NUMBER(TASK_TIMES_FLUSH_INTERVAL, MR_CFG_LONG, TASK_TIMES_FLUSH_INTERVAL_DEFAULT,
           TASK_TIMES_FLUSH_INTERVAL_MIN, TASK_TIMES_FLUSH_INTERVAL_MAX, STORED(offset_flush_ms)),
    NUMBER(TASK_TIMES_FLUSH_TIMEOUT, MR_CFG_LONG, TASK_TIMES_FLUSH_TIMEOUT_DEFAULT,
           TASK_TIMES_FLUSH_TIMEOUT_MIN, TASK_TIMES_FLUSH_TIMEOUT_MAX, CHECKED),
    LIST("plugin.path", NULL),
    {{"plugin.discovery", MR_CFG_STRING, .fallback = "hybrid_warn",
      .choices = "~ONLY_SCAN|HYBRID_WARN|HYBRID_FAIL|SERVICE_LOAD"},
     CHECKED},
    LIST("config.providers", ""),
    TEXT("key.converter.plugin.version", NULL),
    TEXT("value.converter.plugin.version", NULL),
    TEXT("header.converter.plugin.version", NULL),
    TEXT("connector.client.config.override.policy", "All"),
    LIST("connector.client.config.override.allowlist", ""),
    NUMBER("metrics.sample.window.ms", MR_CFG_LONG, "30000", 0, INT64_MAX, CHECKED),
    NUMBER("metrics.num.samples", MR_CFG_INT, "2", 1, INT32_MAX, CHECKED),
    {{"metrics.recording.level", MR_CFG_STRING, .fallback = "INFO", .choices = "INFO|DEBUG"},
     CHECKED},
    LIST("metric.reporters", ""),
    FLAG("topic.creation.enable", "true"),
    FLAG("topic.tracking.enable", "true"),
    FLAG("topic.tracking.allow.reset", "true"),
    LIST("listeners", NULL),
    TEXT("rest.advertised.host.name", NULL),
    {{"rest.advertised.port", MR_CFG_INT, .fallback = NULL}, CHECKED},
    TEXT("rest.advertised.listener", NULL),
    LIST("admin.listeners", NULL),
    LIST("rest.extension.classes", ""),
    TEXT("access.control.allow.origin", ""),
    TEXT("access.control.allow.methods", ""),
    TEXT("response.http.headers.config", ""),
    {{"ssl.client.auth", MR_CFG_STRING, .fallback = "none", .choices = "required|requested|none"},
     CHECKED},
    NUMBER("millrace.services.timeout.ms", MR_CFG_LONG, "10000", 100, 60000, STORED(services_ms)),
    NUMBER("millrace.restart.max", MR_CFG_INT, "5", 0, 100, STORED(restart_max)),
    {{"millrace.log.level", MR_CFG_STRING, .fallback = "INFO",
      .choices = "~TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF"},
     STORED(log_level)},
    TEXT("millrace.rest.users.file", NULL),
    {{"millrace.run.dir", MR_CFG_STRING, MR_CFG_NON_EMPTY, .fallback = NULL}, STORED(run_dir)},
};

static const struct setting standalone_settings[] = {
    {{"offset.storage.file.filename", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
      .fallback = NULL},
     STORED(offset_file)},
};

#define TOPIC(name) \
    { \
        {name, MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY, .fallback = NULL}, CHECKED \
    }
#define REPLICATION(name) \
    { \
        {name, MR_CFG_SHORT, .fallback = "3", .has_range = true, .min = -1, .max = INT16_MAX}, \
            CHECKED \
    }

static const struct setting cluster_settings[] = {
    {{"millrace.assignor", MR_CFG_STRING, .fallback = "millrace", .choices = "~MILLRACE|JAVA"},
     STORED(cluster.assignor)},
    {{"millrace.state.dir", MR_CFG_STRING, MR_CFG_NON_EMPTY, .fallback = NULL}, STORED(state_dir)},
    {{"group.id", MR_CFG_STRING, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY, .fallback = NULL},
     STORED(cluster.group_id)},
    NUMBER("session.timeout.ms", MR_CFG_INT, "10000", 1, INT32_MAX, STORED(cluster.session_ms)),
    NUMBER("heartbeat.interval.ms", MR_CFG_INT, "3000", 1, INT32_MAX, STORED(cluster.heartbeat_ms)),
    NUMBER("rebalance.timeout.ms", MR_CFG_INT, "60000", 1, INT32_MAX, STORED(cluster.rebalance_ms)),
    NUMBER("worker.sync.timeout.ms", MR_CFG_INT, "3000", 1, INT32_MAX, STORED(cluster.sync_ms)),
    NUMBER("worker.unsync.backoff.ms", MR_CFG_INT, "300000", 0, INT32_MAX, CHECKED),
    NUMBER("scheduled.rebalance.max.delay.ms", MR_CFG_INT, "300000", 0, INT32_MAX,
           STORED(cluster.max_delay_ms)),
    NUMBER("retry.backoff.ms", MR_CFG_LONG, "100", 0, INT32_MAX, STORED(cluster.retry_backoff_ms)),
    {{"connect.protocol", MR_CFG_STRING, .fallback = "sessioned",
      .choices = "~EAGER|COMPATIBLE|SESSIONED"},
     STORED(cluster.protocol)},
    {{"client.id", MR_CFG_STRING, .fallback = ""}, STORED(cluster.client_id)},
    NUMBER("inter.worker.key.ttl.ms", MR_CFG_INT, "3600000", 0, INT32_MAX,
           STORED(cluster.key_ttl_ms)),
    {{"inter.worker.key.size", MR_CFG_INT, .fallback = NULL}, STORED(cluster.key_bits)},
    {{"inter.worker.key.generation.algorithm", MR_CFG_STRING, .fallback = "HmacSHA256"},
     STORED(cluster.key_algorithm)},
    {{"inter.worker.signature.algorithm", MR_CFG_STRING, .fallback = "HmacSHA256"},
     STORED(cluster.signature_algorithm)},
    {{"inter.worker.verification.algorithms", MR_CFG_LIST, MR_CFG_NON_EMPTY,
      .fallback = "HmacSHA256"},
     CHECKED},
    TOPIC("config.storage.topic"),
    REPLICATION("config.storage.replication.factor"),
    TOPIC("offset.storage.topic"),
    NUMBER("offset.storage.partitions", MR_CFG_INT, "25", -1, INT32_MAX, CHECKED),
    REPLICATION("offset.storage.replication.factor"),
    TOPIC("status.storage.topic"),
    NUMBER("status.storage.partitions", MR_CFG_INT, "5", -1, INT32_MAX, CHECKED),
    REPLICATION("status.storage.replication.factor"),
    {{"exactly.once.source.support", MR_CFG_STRING, .fallback = "disabled",
      .choices = "~DISABLED|PREPARING|ENABLED"},
     STORED(cluster.exactly_once)},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Known, but nothing that this worker does; told once. */
static const struct {
    const char *key;
    const char *why;
} without_effect[] = {
    {"metric.reporters", "metrics are not reported"},
    {"internal.key.converter", "removed from Kafka Connect; the internal format is fixed"},
    {"internal.value.converter", "removed from Kafka Connect; the internal format is fixed"},
};

/* What would be dangerous to ignore. A value that equals `harmless` (any case), or an empty one, is
 * let pass. */
static const struct {
    const char *key;
    const char *harmless;
    const char *remedy;
    bool alone; /* refused of a standalone worker only */
} refused[] = {
    {"exactly.once.source.support", "disabled",
     "a standalone worker can't deliver exactly once from sources: start it by `millrace worker`, "
     "or set this to disabled",
     true},
};

static const char *const prefixes[] = {
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.providers.",
    "millrace.rest.filter.",
    "metrics.context.",
    "metrics.jmx.",
    "listeners.https.",
    "admin.listeners.https.",
};

/* The same for keys below these: settings of internal topics. */
static const char *const topic_prefixes[] = {"config.storage.", "offset.storage.",
                                             "status.storage."};

/* --- what is wrong ---------------------------------------------------------------------------- */

/* Of an error's text, with what says that there are more. */
#define TOLD_BYTES (sizeof(((struct mr_error *)0)->text) - sizeof("; ; and 1000 more"))

void worker_keys_problem(void *arg, const char *key, const char *text)
{
    struct problems *problems = arg;
    size_t told = problems->text.len;
    char where[512];

    worker_config_where(problems->config, key, where, sizeof(where));
    if (told > 0 && (problems->untold > 0 || told + strlen(where) + strlen(text) > TOLD_BYTES))
        problems->untold++;
    else
        buf_printf(&problems->text, "%s%s%s", told > 0 ? "; " : "", where, text);
}

void worker_keys_problem_of(struct problems *problems, const char *key, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    worker_keys_problem(problems, key, text);
}

/* --- single keys ------------------------------------------------------------------------------ */

static void store(struct worker_config *config, const struct setting *setting,
                  struct config_value *value)
{
    void *field = (char *)config + setting->place - 1;

    if (setting->key.type == MR_CFG_LONG) {
        memcpy(field, &value->i, sizeof(value->i));
    } else if (setting->key.type == MR_CFG_INT) {
        int number = (int)value->i;

        memcpy(field, &number, sizeof(number));
    } else {
        memcpy(field, &value->text, sizeof(value->text));
        value->text = NULL;
    }
}

/* One mistake is told once, though a value that does not parse fails its range too. */
static void setting_problem(void *arg, const char *key, const char *text)
{
    struct problems *problems = arg;

    if (problems->told == NULL || strcmp(problems->told, key) != 0)
        worker_keys_problem(problems, key, text);
    problems->told = key;
}

static void check_table(struct worker_config *config, const struct setting *table, size_t count,
                        struct problems *problems)
{
    for (size_t i = 0; i < count; i++) {
        struct config_value value = {0};

        if (config_def_check(&table[i].key, &config->props, &value, setting_problem, problems) ==
                0 &&
            table[i].place != CHECKED)
            store(config, &table[i], &value);
        config_value_deinit(&value);
    }
}

static void check_settings(struct worker_config *config, struct problems *problems)
{
    check_table(config, settings, SETTINGS, problems);
    if (problems->cluster)
        check_table(config, cluster_settings, COUNT(cluster_settings), problems);
    else
        check_table(config, standalone_settings, COUNT(standalone_settings), problems);
}

bool worker_keys_blank(const char *text)
{
    return text[strspn(text, " \t\r\n\f")] == '\0';
}

static bool is_refused(const struct worker_config *config, size_t i, bool cluster)
{
    const char *value = props_get(&config->props, refused[i].key);

    return !(refused[i].alone && cluster) && value != NULL && !worker_keys_blank(value) &&
           strcasecmp(value, refused[i].harmless) != 0;
}

static void check_refused(struct worker_config *config, struct problems *problems)
{
    for (size_t i = 0; i < COUNT(refused); i++)
        if (is_refused(config, i, config->cluster.group_id != NULL))
            worker_keys_problem_of(problems, refused[i].key, "%s: %s", refused[i].key,
                                   refused[i].remedy);
}

void worker_keys_check(struct worker_config *config, struct problems *problems)
{
    check_settings(config, problems);
    check_refused(config, problems);
}

/* --- unknown keys ----------------------------------------------------------------------------- */

static const char **known_names(void)
{
    const char *const *client = client_conf_names(CLIENT_ADMIN);
    size_t n = 0, clients = 0;
    const char **names;

    while (client[clients] != NULL)
        clients++;
    names = calloc(SETTINGS + COUNT(cluster_settings) + COUNT(standalone_settings) +
                       COUNT(without_effect) + clients + 1,
                   sizeof(*names));
    mr_assert(names != NULL);
    for (size_t i = 0; i < SETTINGS; i++)
        names[n++] = settings[i].key.name;
    for (size_t i = 0; i < COUNT(cluster_settings); i++)
        names[n++] = cluster_settings[i].key.name;
    for (size_t i = 0; i < COUNT(standalone_settings); i++)
        names[n++] = standalone_settings[i].key.name;
    for (size_t i = 0; i < COUNT(without_effect); i++)
        names[n++] = without_effect[i].key;
    for (size_t i = 0; i < clients; i++)
        names[n++] = client[i];
    return names;
}

static bool has_prefix(const char *const *list, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(key, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static bool contains(const char *const *names, size_t count, const char *key)
{
    for (size_t i = 0; i < count && names[i] != NULL; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static bool in_table(const struct setting *table, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].key.name, key) == 0)
            return true;
    return false;
}

/* A setting of the other kind of worker, or one of an internal topic where there is none. Keys that
 * clients know too have their effect there. */
static const char *other_mode(const char *key, bool cluster, const char *const *names)
{
    if (cluster)
        return in_table(standalone_settings, COUNT(standalone_settings), key) ? "standalone" : NULL;
    if (contains(client_conf_names(CLIENT_ADMIN), SIZE_MAX, key))
        return NULL;
    return in_table(cluster_settings, COUNT(cluster_settings), key) ||
                   (has_prefix(topic_prefixes, COUNT(topic_prefixes), key) &&
                    !contains(names, SIZE_MAX, key))
               ? "distributed"
               : NULL;
}

static void warn_about(const struct worker_config *config, const char *key,
                       const char *const *names, bool cluster)
{
    char where[512];
    const char *near, *other;

    worker_config_where(config, key, where, sizeof(where));
    for (size_t i = 0; i < COUNT(without_effect); i++)
        if (strcmp(without_effect[i].key, key) == 0) {
            log_warn("%s%s has no effect: %s", where, key, without_effect[i].why);
            return;
        }
    for (size_t i = 0; i < COUNT(refused); i++)
        if (strcmp(refused[i].key, key) == 0 && is_refused(config, i, cluster))
            return;
    if (has_prefix(prefixes, COUNT(prefixes), key))
        return;
    other = other_mode(key, cluster, names);
    if (other != NULL) {
        log_warn("%s%s is a setting of %s workers: it has no effect here", where, key, other);
        return;
    }
    if (contains(names, SIZE_MAX, key) ||
        (cluster && has_prefix(topic_prefixes, COUNT(topic_prefixes), key)))
        return;
    near = nearest_name(key, names);
    log_warn("%sunknown key %s%s%s%s", where, key, near != NULL ? ": did you mean " : "",
             near != NULL ? near : "", near != NULL ? "?" : "");
}

void worker_keys_warn(const struct worker_config *config, bool cluster)
{
    const char **names = known_names();

    for (size_t i = 0; i < config->props.count; i++)
        warn_about(config, config->props.entries[i].key, names, cluster);
    free(names);
}
