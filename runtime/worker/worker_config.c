/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's properties file: a table of keys, each with type, default, range and the field it fills; then what needs
 * more than one key or a look outside (listeners, folders, client security). Everything wrong is collected and told with
 * file and line. Called once at start, before any thread; the result never changes after that.
 *
 * A key that no table has is material for plugins or a typing error: warned about, with the nearest known name. Keys whose
 * silent loss would open a door or change a guarantee (REST extensions, config providers, exactly-once) end the start. */
#define LOGGER "worker.config"
#include "worker/worker_config.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/nearest.h"
#include "kafka/client_conf.h"
#include "model/config_def.h"
#include "model/task_times.h"
#include "worker/run_dir.h"

#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

#define DEFAULT_SERVERS "localhost:9092"
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
    {{"bootstrap.servers", MR_CFG_LIST, MR_CFG_NON_EMPTY, .fallback = DEFAULT_SERVERS}, CHECKED},
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
    NUMBER("millrace.restart.max", MR_CFG_INT, "5", 0, 100, STORED(restart_max)),
    {{"millrace.log.level", MR_CFG_STRING, .fallback = "INFO",
      .choices = "~TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF"},
     STORED(log_level)},
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
     CHECKED},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Known, but nothing that this worker does; told once. */
static const struct {
    const char *key;
    const char *why;
} without_effect[] = {
    {"admin.listeners", "there is no separate administration listener yet"},
    {"access.control.allow.origin", "no CORS headers are sent, so browsers refuse other origins"},
    {"access.control.allow.methods", "no CORS headers are sent"},
    {"response.http.headers.config", "the headers are not added to answers"},
    {"metric.reporters", "metrics are not reported"},
    {"internal.key.converter", "removed from Kafka Connect; the internal format is fixed"},
    {"internal.value.converter", "removed from Kafka Connect; the internal format is fixed"},
};

/* What would be dangerous to ignore. A value that equals `harmless` (any case), or an empty one, is let pass. */
static const struct {
    const char *key;
    const char *harmless;
    const char *remedy;
} refused[] = {
    {"rest.extension.classes", "",
     "REST extensions are not supported yet, and without them the API would stand open: remove the "
     "key, and put an authenticating proxy before a listener on localhost"},
    {"config.providers", "",
     "config providers are not supported yet, and their ${...} would be taken literally: remove "
     "the key, "
     "and write the values out"},
    {"exactly.once.source.support", "disabled",
     "exactly-once delivery from sources is not supported yet: remove the key, or set "
     "it to disabled"},
};

static const char *const prefixes[] = {
    "producer.",
    "consumer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.providers.",
    "metrics.context.",
    "metrics.jmx.",
    "listeners.https.",
    "admin.listeners.https.",
};

/* The same for keys below these: settings of internal topics. */
static const char *const topic_prefixes[] = {"config.storage.", "offset.storage.",
                                             "status.storage."};

/* --- what is wrong ------------------------------------------------------------------------------------------------ */

struct problems {
    const struct worker_config *config;
    struct buf text;
    const char *told; /* key of the setting that was found wrong last */
    bool cluster;
};

void worker_config_where(const struct worker_config *config, const char *key, char *out,
                         size_t size)
{
    const struct props_entry *entry = key != NULL ? props_find(&config->props, key) : NULL;

    if (entry != NULL && entry->line > 0)
        snprintf(out, size, "%s:%d: ", config->path, entry->line);
    else
        snprintf(out, size, "%s: ", config->path[0] != '\0' ? config->path : "no worker file");
}

const char *worker_config_servers(const struct worker_config *config)
{
    const char *servers = props_get(&config->props, "bootstrap.servers");

    return servers != NULL ? servers : DEFAULT_SERVERS;
}

static void problem(void *arg, const char *key, const char *text)
{
    struct problems *problems = arg;
    char where[512];

    worker_config_where(problems->config, key, where, sizeof(where));
    buf_printf(&problems->text, "%s%s%s", problems->text.len > 0 ? "; " : "", where, text);
}

static MR_PRINTF(3, 4)
void problem_of(struct problems *problems, const char *key, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    problem(problems, key, text);
}

/* --- single keys -------------------------------------------------------------------------------------------------- */

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
        problem(problems, key, text);
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

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n\f")] == '\0';
}

static void check_refused(struct worker_config *config, struct problems *problems)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        const char *value = props_get(&config->props, refused[i].key);

        if (value != NULL && !is_blank(value) && strcasecmp(value, refused[i].harmless) != 0)
            problem_of(problems, refused[i].key, "%s: %s", refused[i].key, refused[i].remedy);
    }
}

/* --- listeners ---------------------------------------------------------------------------------------------------- */

/* scheme://host:port; host may be empty or an IPv6 address in brackets. */
static const char *read_listener(const char *text, struct worker_listener *out)
{
    const char *colon = strstr(text, "://"), *host, *port;
    size_t host_len;
    char *end;
    long number;

    if (is_blank(text))
        return "Empty URL found when parsing listeners list.";
    host = colon != NULL ? colon + 3 : text;
    port = strrchr(host, ':');
    if (colon == NULL || port == NULL || strchr(port, ']') != NULL)
        return "Listener doesn't have the right format (protocol://hostname:port).";
    host_len = (size_t)(port - host);
    number = strtol(port + 1, &end, 10);
    if (port[1] < '0' || port[1] > '9' || (*end != '\0' && strcmp(end, "/") != 0) || number < 0 ||
        number > 65535 || memchr(host, '/', host_len) != NULL)
        return "Listener doesn't have the right format (protocol://hostname:port).";
    out->https = strncasecmp(text, "https://", 8) == 0;
    if (!out->https && strncasecmp(text, "http://", 7) != 0)
        return "Listener protocol must be either \"http\" or \"https\".";
    if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    }
    out->port = (int)number;
    out->host = strndup(host, host_len);
    mr_assert(out->host != NULL);
    return NULL;
}

static void add_listener(struct worker_config *config, const char *text, struct problems *problems)
{
    struct worker_listener listener = {0};
    const char *wrong = read_listener(text, &listener);

    if (wrong != NULL) {
        problem_of(problems, "listeners", "Invalid value %s for configuration listeners: %s", text,
                   wrong);
    } else if (config->listener_count == WORKER_CONFIG_LISTENERS) {
        problem_of(problems, "listeners", "more than %d listeners", WORKER_CONFIG_LISTENERS);
        free(listener.host);
    } else {
        config->listeners[config->listener_count++] = listener;
    }
}

static void read_listeners(struct worker_config *config, struct problems *problems)
{
    static const struct mr_config_key key = {"listeners", MR_CFG_LIST, .flags = 0};
    struct config_value list = {0};

    if (props_get(&config->props, "listeners") == NULL && problems->cluster) {
        add_listener(config, "http://:8083", problems);
        log_warn("listeners is not set: REST is served on every address of this machine, port "
                 "8083, to anybody who reaches it; set listeners to the address that the other "
                 "workers and clients use");
    } else if (props_get(&config->props, "listeners") == NULL) {
        add_listener(config, "http://localhost:8083", problems);
        log_info("listeners is not set: REST is served on localhost:8083 only");
    } else if (config_def_check(&key, &config->props, &list, NULL, NULL) == 0 &&
               list.item_count == 0) {
        problem(problems, "listeners",
                "Invalid value for listeners, at least one URL is expected, ex: "
                "http://localhost:8080,https://localhost:8443.");
    }
    for (size_t i = 0; i < list.item_count; i++)
        add_listener(config, list.items[i], problems);
    config_value_deinit(&list);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void append(char ***list, size_t *count, const char *item)
{
    *list = realloc(*list, (*count + 2) * sizeof(**list));
    mr_assert(*list != NULL);
    (*list)[*count] = strdup(item);
    mr_assert((*list)[*count] != NULL);
    (*list)[++*count] = NULL;
}

static char **list_of(const struct worker_config *config, const char *name, size_t *count)
{
    struct mr_config_key key = {name, MR_CFG_LIST, .fallback = ""};
    struct config_value value = {0};
    char **list = calloc(1, sizeof(*list));

    mr_assert(list != NULL);
    *count = 0;
    if (config_def_check(&key, &config->props, &value, NULL, NULL) == 0)
        for (size_t i = 0; i < value.item_count; i++)
            if (value.items[i][0] != '\0')
                append(&list, count, value.items[i]);
    config_value_deinit(&value);
    return list;
}

/* The shell expands ~ on a command line and nobody does in a file, so the folder would be missed in silence. */
static void check_plugin_path(const struct worker_config *config, struct problems *problems)
{
    for (char **folder = config->plugin_path; *folder != NULL; folder++)
        if ((*folder)[0] == '~')
            problem_of(problems, "plugin.path",
                       "Invalid value %s for configuration plugin.path: ~ is not expanded in a "
                       "file, write the folder's whole path",
                       *folder);
}

/* Where this binary's own plugins are: beside it after a build, in lib/millrace/plugins after an installation. */
static void add_bundled(struct worker_config *config, size_t count)
{
    static const char *const places[] = {"plugins", "../lib/millrace/plugins"};
    char exe[PATH_MAX], folder[PATH_MAX + 32], *slash;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    struct stat st;

    if (n <= 0)
        return;
    exe[n] = '\0';
    slash = strrchr(exe, '/');
    for (size_t i = 0; slash != NULL && i < COUNT(places); i++) {
        snprintf(folder, sizeof(folder), "%.*s%s", (int)(slash - exe + 1), exe, places[i]);
        if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
            append(&config->plugin_path, &count, folder);
    }
}

/* --- the override policy ------------------------------------------------------------------------------------------- */

static const char *const policies[] = {
    [WORKER_OVERRIDE_ALL] = "All",
    [WORKER_OVERRIDE_NONE] = "None",
    [WORKER_OVERRIDE_PRINCIPAL] = "Principal",
    [WORKER_OVERRIDE_ALLOWLIST] = "Allowlist",
};

const char *worker_config_override_name(enum worker_override policy)
{
    return policies[policy];
}

/* By its short name, or by the Java class that has it ("….policy.NoneConnectorClientConfigOverridePolicy"). */
static void read_policy(struct worker_config *config, struct problems *problems)
{
    const char *given = props_get(&config->props, "connector.client.config.override.policy");
    const char *dot = given != NULL ? strrchr(given, '.') : NULL,
               *name = dot != NULL ? dot + 1 : given;

    for (size_t i = 0; name != NULL && i < COUNT(policies); i++) {
        size_t len = strlen(policies[i]);
        const char *rest = name + len;

        if (strncmp(name, policies[i], len) == 0 &&
            (is_blank(rest) || strcmp(rest, "ConnectorClientConfigOverridePolicy") == 0)) {
            config->override_policy = (enum worker_override)i;
            return;
        }
    }
    if (given != NULL)
        problem_of(problems, "connector.client.config.override.policy",
                   "Invalid value %s for configuration "
                   "connector.client.config.override.policy: policies are All, None, Principal and "
                   "Allowlist",
                   given);
}

/* --- Kafka clients ------------------------------------------------------------------------------------------------- */

/* The entry of the file that gave a client this setting: with the client's prefix, or without (what all clients share, and
 * everything of the admin client); NULL when it is none of the file's. */
static const struct props_entry *client_entry(const struct worker_config *config,
                                              const char *prefix, const char *name, size_t len)
{
    const struct props_entry *entry;
    char key[256];

    snprintf(key, sizeof(key), "%s%.*s", prefix, (int)len, name);
    entry = props_find(&config->props, key);
    return entry != NULL ? entry : props_find(&config->props, key + strlen(prefix));
}

struct client_remarks {
    const struct worker_config *config;
    const char *prefix;
};

/* The admin client gets the whole file: what it says of the worker's metrics is no news. */
static void on_client_remark(void *arg, const char *name, const char *text)
{
    const struct client_remarks *remarks = arg;
    const struct props_entry *entry =
        client_entry(remarks->config, remarks->prefix, name, strlen(name));
    const char *key = entry != NULL ? entry->key : name;
    char where[512];

    if (strncmp(key, "metric", 6) == 0)
        return;
    worker_config_where(remarks->config, key, where, sizeof(where));
    log_warn("%s%s: %s", where, key, text);
}

/* The entry that a refusal of client settings is about: the first word, behind "for configuration" where that stands (a
 * value may stand before it), that names one. */
static const struct props_entry *refused_entry(const struct worker_config *config,
                                               const char *prefix, const char *text)
{
    static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *at = strstr(text, " for configuration ");

    for (at = at != NULL ? at : text; *at != '\0';) {
        size_t len = strspn(at, name_chars);
        const struct props_entry *entry = client_entry(config, prefix, at, len);

        if (len > 0 && entry != NULL)
            return entry;
        at += len > 0 ? len : 1;
    }
    return NULL;
}

/* Security that can't be honoured ends the start, and not the first connector (or, worse, nothing). What all clients take
 * from one line is said once. */
static void check_clients(struct worker_config *config, struct problems *problems)
{
    static const struct {
        const char *prefix, *what;
    } clients[] = {[CLIENT_PRODUCER] = {"producer.", "settings of producers: "},
                   [CLIENT_CONSUMER] = {"consumer.", "settings of consumers: "},
                   [CLIENT_ADMIN] = {"admin.", "settings of admin clients: "}};
    const struct props_entry *said = NULL;

    for (int kind = CLIENT_PRODUCER; kind <= CLIENT_ADMIN; kind++) {
        struct client_conf_layers layers = {.kind = (enum client_kind)kind,
                                            .worker = &config->props};
        struct client_remarks remarks = {config, clients[kind].prefix};
        struct props java, mapped;
        struct mr_error err = {0};

        props_init(&java);
        props_init(&mapped);
        mr_assert(client_conf_layer(&layers, &java) == 0);
        if (client_conf_map(layers.kind, &java, &mapped, on_client_remark, &remarks, &err) != 0) {
            const struct props_entry *entry = refused_entry(config, clients[kind].prefix, err.text);

            if (entry == NULL)
                problem_of(problems, NULL, "%s%s", clients[kind].what, err.text);
            else if (entry != said)
                problem_of(problems, entry->key, "%s", err.text);
            said = entry;
        }
        props_deinit(&java);
        props_deinit(&mapped);
    }
}

/* --- unknown keys -------------------------------------------------------------------------------------------------- */

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

/* A setting of the other kind of worker, or one of an internal topic where there is none. Keys that clients know too have their
 * effect there. */
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

/* --- of a cluster -------------------------------------------------------------------------------------------------- */

static bool is_mac(const char *name)
{
    static const char *const macs[] = {"HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384",
                                       "HmacSHA512"};

    for (size_t i = 0; i < COUNT(macs); i++)
        if (strcasecmp(macs[i], name) == 0)
            return true;
    return false;
}

static void check_mac(const char *key, const char *name, struct problems *problems)
{
    if (name != NULL && !is_mac(name))
        problem_of(problems, key,
                   "Invalid value %s for configuration %s: known are HmacSHA1, HmacSHA224, "
                   "HmacSHA256, HmacSHA384 and HmacSHA512",
                   name, key);
}

static void check_keys(struct worker_cluster *cluster, struct problems *problems)
{
    bool verifies = false;

    check_mac("inter.worker.key.generation.algorithm", cluster->key_algorithm, problems);
    check_mac("inter.worker.signature.algorithm", cluster->signature_algorithm, problems);
    for (char **name = cluster->verification_algorithms; *name != NULL; name++) {
        check_mac("inter.worker.verification.algorithms", *name, problems);
        verifies = verifies || cluster->signature_algorithm == NULL ||
                   strcmp(*name, cluster->signature_algorithm) == 0;
    }
    if (!verifies)
        problem(problems, "inter.worker.verification.algorithms",
                "Signature algorithm must be present in inter.worker.verification.algorithms list");
    if (cluster->key_bits != 0 && (cluster->key_bits < 40 || cluster->key_bits > 4096))
        problem_of(problems, "inter.worker.key.size",
                   "Invalid value %d for configuration inter.worker.key.size: a key has 40 to 4096 "
                   "bits",
                   cluster->key_bits);
}

static void check_cluster(struct worker_config *config, struct problems *problems)
{
    struct worker_cluster *cluster = &config->cluster;
    size_t count;

    cluster->verification_algorithms =
        props_get(&config->props, "inter.worker.verification.algorithms") != NULL
            ? list_of(config, "inter.worker.verification.algorithms", &count)
            : calloc(2, sizeof(char *));
    mr_assert(cluster->verification_algorithms != NULL);
    if (props_get(&config->props, "inter.worker.verification.algorithms") == NULL)
        cluster->verification_algorithms[0] = strdup("HmacSHA256");
    if (cluster->heartbeat_ms >= cluster->session_ms && cluster->session_ms > 0)
        problem(problems, "heartbeat.interval.ms",
                "Heartbeat must be set lower than the session timeout");
    check_keys(cluster, problems);
}

/* Workers of one cluster on one machine differ by where they listen. */
static void default_run_dir(struct worker_config *config)
{
    const char *listeners = props_get(&config->props, "listeners");
    char *name = NULL;

    if (config->offset_file != NULL) {
        config->run_dir = run_dir_default(config->offset_file);
    } else if (config->cluster.group_id != NULL) {
        mr_assert(asprintf(&name, "%s %s", config->cluster.group_id,
                           listeners != NULL ? listeners : "") > 0);
        config->run_dir = run_dir_default(name);
        free(name);
    }
}

/* --- the door ------------------------------------------------------------------------------------------------------ */

static void check_all(struct worker_config *config, struct problems *problems)
{
    const char **names = known_names();
    size_t count;

    for (size_t i = 0; i < config->props.count; i++)
        warn_about(config, config->props.entries[i].key, names, problems->cluster);
    free(names);
    check_settings(config, problems);
    check_refused(config, problems);
    read_listeners(config, problems);
    read_policy(config, problems);
    config->override_allowlist =
        list_of(config, "connector.client.config.override.allowlist", &count);
    config->plugin_path = list_of(config, "plugin.path", &count);
    check_plugin_path(config, problems);
    add_bundled(config, count);
    if (problems->cluster)
        check_cluster(config, problems);
    if (config->run_dir == NULL)
        default_run_dir(config);
    check_clients(config, problems);
}

static int load(struct worker_config *config, const char *path, bool cluster, struct mr_error *err)
{
    struct problems problems = {.config = config, .cluster = cluster};
    int rc = 0;

    memset(config, 0, sizeof(*config));
    config->path = path;
    props_init(&config->props);
    if (path[0] != '\0')
        rc = props_load(&config->props, path, err);
    if (rc == 0) {
        buf_init(&problems.text, 65536);
        check_all(config, &problems);
        if (problems.text.len > 0)
            rc = mr_fail(err, MR_ERR_CONFIG, "%s", problems.text.data);
        buf_deinit(&problems.text);
    }
    if (rc != 0)
        worker_config_deinit(config);
    return rc;
}

int worker_config_load(struct worker_config *config, const char *path, struct mr_error *err)
{
    return load(config, path, false, err);
}

int worker_config_load_cluster(struct worker_config *config, const char *path, struct mr_error *err)
{
    return load(config, path, true, err);
}

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

void worker_config_deinit(struct worker_config *config)
{
    props_deinit(&config->props);
    for (size_t i = 0; i < config->listener_count; i++)
        free(config->listeners[i].host);
    free(config->worker_id);
    free(config->run_dir);
    free(config->log_level);
    free(config->offset_file);
    free_list(config->plugin_path);
    free_list(config->override_allowlist);
    free(config->cluster.group_id);
    free(config->cluster.protocol);
    free(config->cluster.client_id);
    free(config->cluster.key_algorithm);
    free(config->cluster.signature_algorithm);
    free_list(config->cluster.verification_algorithms);
    memset(config, 0, sizeof(*config));
}
