/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's properties file: the keys of worker_keys.c, then what needs more than one key or a
 * look outside (listeners, folders, client security). Everything wrong is collected and told with
 * file and line. Called once at start, before any thread; the result never changes after that. */
#define LOGGER "worker.config"
#include "worker/worker_config.h"

#include "base/log.h"
#include "base/text.h"
#include "kafka/client_conf.h"
#include "model/config_def.h"
#include "model/override_policy.h"
#include "wire/wire_conf.h"
#include "worker/run_dir.h"
#include "worker/worker_keys.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/services.h"
#include "worker/worker_references.h"

#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

#define CLUSTER_KILL_MS 1000 /* that a host has beyond its graceful time */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- places ----------------------------------------------------------------------------------- */

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

    return servers != NULL ? servers : WORKER_KEYS_SERVERS;
}

/* --- listeners -------------------------------------------------------------------------------- */

static const char listeners_key[] = "listeners";
static const char admin_key[] = "admin.listeners";

/* scheme://host:port; host may be empty or an IPv6 address in brackets. */
static const char *read_listener(const char *text, struct worker_listener *out)
{
    const char *colon = strstr(text, "://"), *host, *port;
    size_t host_len;
    char *end;
    long number;

    if (worker_keys_blank(text))
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
    out->host = text_dup_len(host, host_len);
    return NULL;
}

static void add_listener(struct worker_config *config, const char *key, const char *text,
                         struct problems *problems)
{
    struct worker_listener listener = {.admin = key == admin_key};
    const char *wrong = read_listener(text, &listener);
    size_t same = 0;

    for (size_t i = 0; i < config->listener_count; i++)
        same += config->listeners[i].admin == listener.admin;
    if (wrong != NULL) {
        worker_keys_problem_of(problems, key, "Invalid value %s for configuration %s: %s", text,
                               key, wrong);
    } else if (same == WORKER_CONFIG_LISTENERS) {
        worker_keys_problem_of(problems, key, "more than %d listeners", WORKER_CONFIG_LISTENERS);
        free(listener.host);
    } else {
        config->listeners[config->listener_count++] = listener;
    }
}

/* admin.listeners: absent, /admin is served where all is; empty, nowhere. */
static void read_admin_listeners(struct worker_config *config, struct problems *problems)
{
    static const struct mr_config_key key = {admin_key, MR_CFG_LIST, .flags = 0};
    const char *given = props_get(&config->props, admin_key);
    struct config_value list = {0};

    config->admin_apart = given != NULL;
    if (given == NULL || worker_keys_blank(given) ||
        config_def_check(&key, &config->props, &list, NULL, NULL) != 0)
        return;
    for (size_t i = 0; i < list.item_count; i++)
        add_listener(config, admin_key, list.items[i], problems);
    config_value_deinit(&list);
}

static void read_listeners(struct worker_config *config, struct problems *problems)
{
    static const struct mr_config_key key = {"listeners", MR_CFG_LIST, .flags = 0};
    struct config_value list = {0};

    if (props_get(&config->props, "listeners") == NULL && problems->cluster) {
        add_listener(config, listeners_key, "http://:8083", problems);
        log_warn("listeners is not set: REST is served on every address of this machine, port "
                 "8083, to anybody who reaches it; set listeners to the address that the other "
                 "workers and clients use");
    } else if (props_get(&config->props, "listeners") == NULL) {
        add_listener(config, listeners_key, "http://localhost:8083", problems);
        log_info("listeners is not set: REST is served on localhost:8083 only");
    } else if (config_def_check(&key, &config->props, &list, NULL, NULL) == 0 &&
               list.item_count == 0) {
        worker_keys_problem(problems, "listeners",
                            "Invalid value for listeners, at least one URL is expected, ex: "
                            "http://localhost:8080,https://localhost:8443.");
    }
    for (size_t i = 0; i < list.item_count; i++)
        add_listener(config, listeners_key, list.items[i], problems);
    config_value_deinit(&list);
}

/* --- lists ------------------------------------------------------------------------------------ */

static void append(char ***list, size_t *count, const char *item)
{
    *list = realloc(*list, (*count + 2) * sizeof(**list));
    mr_assert(*list != NULL);
    (*list)[*count] = text_dup(item);
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

/* The shell expands ~ on a command line and nobody does in a file, so the folder would be missed in
 * silence. */
static void check_plugin_path(const struct worker_config *config, struct problems *problems)
{
    for (char **folder = config->plugin_path; *folder != NULL; folder++)
        if ((*folder)[0] == '~')
            worker_keys_problem_of(
                problems, "plugin.path",
                "Invalid value %s for configuration plugin.path: ~ is not expanded in a "
                "file, write the folder's whole path",
                *folder);
}

/* This binary's own plugins are beside it after a build, in lib/millrace/plugins after an
 * installation. */
static void set_plugin_path(struct worker_config *config)
{
    static const char *const places[] = {"plugins", "../lib/millrace/plugins"};
    char exe[PATH_MAX], folder[PATH_MAX + 32], *slash;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    struct stat st;
    size_t count;

    config->plugin_path = list_of(config, "plugin.path", &count);
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

/* --- the override policy ---------------------------------------------------------------------- */

static void check_policy(const struct worker_config *config, struct problems *problems)
{
    const char *given = props_get(&config->props, "connector.client.config.override.policy");

    if (given != NULL && override_policy_known(given) == NULL)
        worker_keys_problem_of(
            problems, "connector.client.config.override.policy",
            "Invalid value %s for configuration "
            "connector.client.config.override.policy: policies are All, None, Principal and "
            "Allowlist",
            given);
}

/* --- Kafka clients ---------------------------------------------------------------------------- */

/* The entry of the file that gave a client this setting: with the client's prefix, or without (what
 * all clients share, and everything of the admin client); NULL when it is none of the file's. */
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

/* The admin client gets the whole file: what it says of the worker's metrics and providers is no
 * news. */
static void on_client_remark(void *arg, const char *name, const char *text)
{
    const struct client_remarks *remarks = arg;
    const struct props_entry *entry =
        client_entry(remarks->config, remarks->prefix, name, strlen(name));
    const char *key = entry != NULL ? entry->key : name;
    char where[512];

    if (strncmp(key, "metric", 6) == 0 || strncmp(key, "config.providers", 16) == 0)
        return;
    worker_config_where(remarks->config, key, where, sizeof(where));
    log_warn("%s%s: %s", where, key, text);
}

/* The entry that a refusal of client settings is about: the first word, behind "for configuration"
 * where that stands (a value may stand before it), that names one. */
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

/* What the worker's own client of the group, which speaks less than librdkafka, makes of the same
 * settings. */
static int check_group_client(const struct props *java, struct mr_error *err)
{
    struct wire_conf *conf = wire_conf_new(java, err);
    int rc = conf != NULL ? 0 : MR_ERR_CONFIG;

    wire_conf_free(&conf);
    return rc;
}

/* Security that can't be honoured ends the start, and not the first connector (or, worse, nothing).
 * What all clients take from one line is said once. */
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
        if ((kind == CLIENT_ADMIN && problems->cluster && check_group_client(&java, &err) != 0) ||
            client_conf_map(layers.kind, &java, &mapped, on_client_remark, &remarks, &err) != 0) {
            const struct props_entry *entry = refused_entry(config, clients[kind].prefix, err.text);

            if (entry == NULL)
                worker_keys_problem_of(problems, NULL, "%s%s", clients[kind].what, err.text);
            else if (entry != said)
                worker_keys_problem_of(problems, entry->key, "%s", err.text);
            said = entry;
        }
        props_deinit(&java);
        props_deinit(&mapped);
    }
}

/* --- of a cluster ----------------------------------------------------------------------------- */

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
        worker_keys_problem_of(
            problems, key,
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
        worker_keys_problem(
            problems, "inter.worker.verification.algorithms",
            "Signature algorithm must be present in inter.worker.verification.algorithms list");
    if (cluster->key_bits != 0 && (cluster->key_bits < 40 || cluster->key_bits > 4096))
        worker_keys_problem_of(
            problems, "inter.worker.key.size",
            "Invalid value %d for configuration inter.worker.key.size: a key has 40 to 4096 "
            "bits",
            cluster->key_bits);
}

/* Both are legal, as in Java: the group only waits no longer than that for what stops. */
static void warn_of_overlap(const struct worker_config *config)
{
    int64_t waited_ms = config->cluster.rebalance_ms / 2;
    char where[512];

    if (config->graceful_ms + CLUSTER_KILL_MS <= waited_ms)
        return;
    worker_config_where(config, "task.shutdown.graceful.timeout.ms", where, sizeof(where));
    log_warn("%stask.shutdown.graceful.timeout.ms (%lld) + %d ms is more than half of "
             "rebalance.timeout.ms (%lld): a task that takes so long to stop may run beside its "
             "successor on another worker; raise rebalance.timeout.ms, or lower it",
             where, (long long)config->graceful_ms, CLUSTER_KILL_MS,
             (long long)config->cluster.rebalance_ms);
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
        cluster->verification_algorithms[0] = text_dup("HmacSHA256");
    if (cluster->heartbeat_ms >= cluster->session_ms && cluster->session_ms > 0)
        worker_keys_problem(problems, "heartbeat.interval.ms",
                            "Heartbeat must be set lower than the session timeout");
    check_keys(cluster, problems);
    warn_of_overlap(config);
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

/* What outlives this machine's next start. Beside the locks where the user said where these are. */
static void default_state_dir(struct worker_config *config)
{
    if (props_get(&config->props, "millrace.run.dir") == NULL && config->run_dir != NULL)
        config->state_dir = run_dir_default_state(config->run_dir);
    if (config->state_dir == NULL && config->run_dir != NULL)
        config->state_dir = text_dup(config->run_dir);
}

/* --- the door --------------------------------------------------------------------------------- */

static void check_all(struct worker_config *config, struct problems *problems)
{
    worker_keys_warn(config, problems->cluster);
    worker_keys_check(config, problems);
    read_listeners(config, problems);
    read_admin_listeners(config, problems);
    check_policy(config, problems);
    check_plugin_path(config, problems);
    if (problems->cluster)
        check_cluster(config, problems);
    if (config->run_dir == NULL)
        default_run_dir(config);
    if (problems->cluster && config->state_dir == NULL)
        default_state_dir(config);
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
    config->secrets = secrets_new();
    if (rc == 0) {
        set_plugin_path(config);
        rc = worker_references_resolve(config, err);
    }
    if (rc == 0) {
        buf_init(&problems.text, 65536);
        check_all(config, &problems);
        if (problems.untold > 0)
            buf_printf(&problems.text, "; and %zu more", problems.untold);
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
    providers_free(&config->providers);
    services_free(&config->services);
    if (config->secrets != NULL)
        secrets_free(&config->secrets);
    for (size_t i = 0; i < config->listener_count; i++)
        free(config->listeners[i].host);
    free(config->worker_id);
    free(config->run_dir);
    free(config->state_dir);
    free(config->log_level);
    free(config->offset_file);
    free_list(config->plugin_path);
    catalog_free(&config->found);
    free(config->cluster.group_id);
    free(config->cluster.protocol);
    free(config->cluster.assignor);
    free(config->cluster.exactly_once);
    free(config->cluster.client_id);
    free(config->cluster.key_algorithm);
    free(config->cluster.signature_algorithm);
    free_list(config->cluster.verification_algorithms);
    memset(config, 0, sizeof(*config));
}
