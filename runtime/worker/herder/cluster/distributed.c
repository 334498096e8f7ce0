/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a cluster's worker. What is known of connectors is what the config topic says, what
 * is known of states is what the status topic says, wherever these run; what runs here is what the
 * group assigned to this worker.
 *
 *   REST ─► herder ─► cluster_changes ─► cluster_store ─► Kafka
 *                                              │ records that were read, also our own
 *           connectors ◄─ reshare ◄── cluster_topics ─► member: another round, please
 *                ▲
 *                └── cluster_round ◄── member: assigned, revoked
 *
 * Here are the connectors that are known, what of each is to run, and the life of all of it. Loop
 * thread only. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed.h"

#include "base/clock.h"
#include "base/config_ref.h"
#include "base/log.h"
#include "base/text.h"
#include "kafka/client_conf.h"
#include "worker/herder/cluster/distributed_private.h"
#include "worker/herder/cluster/fence_round.h"
#include "worker/supervisor/plugin_pick.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLOSE_MS 2000 /* for status that waits to be written */
#define HEAR_MS 3000  /* a task that starts waits for the words; first they may have to be opened */

const struct config_state *distributed_config(const struct distributed *d)
{
    return cluster_store_config(d->store);
}

/* --- connectors ------------------------------------------------------------------------------- */

struct dist_conn *distributed_conn(const struct distributed *d, const char *name)
{
    return map_get(d->conns, name);
}

static void free_conn(void *value)
{
    struct dist_conn *conn = value;

    task_writer_forget(conn);
    cluster_lost_forget(conn);
    cluster_lost_drop_orphans(conn);
    fence_round_free(&conn->round);
    work_list_deinit(&conn->missing);
    free(conn->missing_trace);
    free(conn->name);
    free(conn);
}

void distributed_forget(struct distributed *d)
{
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, NULL, &value);) {
        struct dist_conn *conn = value;

        if (conn->known || conn->stopping || conn->writing || conn->fencing ||
            conn->orphan_round != NULL || connectors_sharing(d->connectors, conn->name))
            continue;
        map_remove(d->conns, conn->name);
        free_conn(conn);
    }
}

/* A setting, as far as it needs no file to be read. malloc'ed; NULL: not set. */
static char *glance(const struct distributed *d, const struct config_conn *config, const char *key)
{
    const char *value = props_get(config->config, key);

    return value != NULL ? providers_glance(d->parts.config->providers, value) : NULL;
}

static int fail_class(const char *name, struct mr_error *err)
{
    return mr_fail(
        err, MR_ERR_NOT_FOUND,
        "org.apache.kafka.connect.errors.ConnectException: Failed to find any class that "
        "implements Connector and which name matches %.500s on this worker",
        name != NULL ? name : "(none)");
}

/* The class in the version that is asked for; where only that is not here, *plugin is another
 * one. */
static int pick(const struct distributed *d, const struct config_conn *config,
                const struct catalog_plugin **plugin, struct mr_error *err)
{
    char *name = glance(d, config, "connector.class"),
         *version = glance(d, config, "connector.plugin.version");
    struct plugin_wish wish = {.name = name, .version = version};
    struct mr_error why = {0};
    int rc;

    *plugin = name != NULL ? catalog_find(d->parts.catalog, 0, name) : NULL;
    if (*plugin == NULL)
        rc = fail_class(name, err);
    else if ((rc = plugin_pick(d->parts.catalog, &wish, plugin, &why)) != 0)
        mr_fail(err, rc,
                "org.apache.kafka.connect.runtime.isolation.VersionedPluginLoadingException: "
                "%.800s",
                why.text);
    free(name);
    free(version);
    return rc;
}

const struct catalog_plugin *distributed_plugin(const struct distributed *d,
                                                const struct config_conn *config)
{
    const struct catalog_plugin *plugin;

    pick(d, config, &plugin, NULL);
    return plugin;
}

static void show(const struct distributed *d, const struct config_conn *config,
                 struct source_conn *out)
{
    *out = (struct source_conn){.name = config->name,
                                .plugin = distributed_plugin(d, config),
                                .config = config->config,
                                .target = config->target,
                                .task_count = (size_t)config_state_tasks(config)};
}

static bool on_find(const struct conn_source *source, const char *name, struct source_conn *out)
{
    const struct distributed *d = distributed_in(source);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);

    if (config != NULL)
        show(d, config, out);
    return config != NULL;
}

static bool on_next(const struct conn_source *source, size_t *cursor, struct source_conn *out)
{
    const struct distributed *d = distributed_in(source);
    const struct config_conn *config = config_state_next(distributed_config(d), cursor);

    if (config != NULL)
        show(d, config, out);
    return config != NULL;
}

static const struct props *on_task(const struct conn_source *source, const char *name, int task)
{
    return config_state_task(config_state_conn(distributed_config(distributed_in(source)), name),
                             task);
}

static bool on_state(const struct conn_source *source, const char *name, int task,
                     struct source_state *out)
{
    const struct status_state *states = cluster_store_status(distributed_in(source)->store);
    const struct status *status =
        task < 0 ? status_state_connector(states, name) : status_state_task(states, name, task);

    if (status != NULL)
        *out =
            (struct source_state){status->state, status->worker_id, status->trace, status->version};
    return status != NULL;
}

static int on_next_task(const struct conn_source *source, const char *name, int after)
{
    return status_state_next_task(cluster_store_status(distributed_in(source)->store), name, after);
}

bool distributed_lease_over(const struct distributed *d)
{
    return d->lease_ms != 0 && clock_boot_ms() >= d->lease_ms;
}

const char *distributed_stopping(const struct distributed *d)
{
    const char *name;
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, &name, &value);)
        if (((struct dist_conn *)value)->stopping)
            return name;
    return NULL;
}

void distributed_report(struct distributed *d, const char *rejoin)
{
    member_report(d->member,
                  &(struct member_word){.offset = config_state_offset(distributed_config(d)),
                                        .settled = -1,
                                        .rejoin = rejoin,
                                        .stopping = distributed_stopping(d)});
}

/* --- what is to run here ---------------------------------------------------------------------- */

/* What the group has assigned of this connector: the object, and numbers into *tasks, malloc'ed. */
static size_t assigned_of(const struct distributed *d, const char *name, bool *object,
                          int32_t **tasks)
{
    size_t n = 0;

    *object = false;
    *tasks = calloc(d->allocation.items + 1, sizeof(**tasks));
    mr_assert(*tasks != NULL);
    for (size_t i = 0; i < d->allocation.count; i++) {
        const struct work_entry *entry = &d->allocation.entries[i];

        if (strcmp(entry->conn, name) != 0)
            continue;
        for (size_t t = 0; t < entry->count; t++)
            if (entry->tasks[t] == WORK_LIST_CONNECTOR)
                *object = true;
            else
                (*tasks)[n++] = entry->tasks[t];
    }
    return n;
}

static void want(const struct distributed *d, const struct dist_conn *conn,
                 const struct config_conn *config, struct share *out)
{
    struct reconcile_input in = {.config = config->config,
                                 .serial = conn->serial,
                                 .target = config->target,
                                 .generation = config->generation,
                                 .task_count = config_state_tasks(config),
                                 .held = conn->held};
    int32_t *tasks;

    in.assigned = assigned_of(d, conn->name, &in.object, &tasks);
    in.tasks = tasks;
    reconcile_want(&in, &out->want);
    free(tasks);
    out->configs = calloc(out->want.task_count + 1, sizeof(*out->configs));
    mr_assert(out->configs != NULL);
    for (size_t i = 0; i < out->want.task_count; i++)
        out->configs[i] = config_state_task(config, out->want.tasks[i]);
}

static void on_share(struct conn_source *source, const char *name, struct share *out)
{
    struct distributed *d = distributed_of(source);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);
    struct dist_conn *conn = distributed_conn(d, name);

    if (config == NULL || conn == NULL)
        return;
    if (pick(d, config, &out->plugin, NULL) == 0)
        want(d, conn, config, out);
    else
        out->plugin = NULL;
}

/* Told when what ran with an earlier configuration has ended, so that this is the last word. */
static void look_for_class(struct distributed *d, struct dist_conn *conn)
{
    const struct config_conn *config = config_state_conn(distributed_config(d), conn->name);
    const struct catalog_plugin *plugin;
    struct mr_error err = {0};

    if (config != NULL && pick(d, config, &plugin, &err) != 0)
        cluster_status_missing(d, conn, err.text);
}

static void on_shared(struct conn_source *source, const char *name)
{
    struct distributed *d = distributed_of(source);
    struct dist_conn *conn = distributed_conn(d, name);

    if (conn != NULL)
        look_for_class(d, conn);
    if (conn != NULL && conn->stopping && !connectors_sharing(d->connectors, name)) {
        conn->stopping = false;
        if (!d->closing)
            distributed_report(d, NULL);
    }
    cluster_round_go_on(d);
}

static bool on_may_start(const struct conn_source *source, const char *name, int task,
                         int64_t generation)
{
    const struct distributed *d = distributed_in(source);
    const struct dist_conn *conn = distributed_conn(d, name);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);

    if (config == NULL || conn == NULL || conn->held || config->generation != generation ||
        task >= config_state_tasks(config) || !work_list_has(&d->allocation, name, task) ||
        !connectors_may_start(d->connectors, name, task))
        return false;
    cluster_lost_call_off(d, name);
    return true;
}

static void on_joined(struct conn_source *source, const char *task, const char *member)
{
    cluster_words_joined(distributed_of(source), task, member);
}

static const char *on_member(const struct conn_source *source, const char *task)
{
    return word_state_consumer(cluster_store_words(distributed_in(source)->store), task);
}

static void on_hear(struct conn_source *source, connectors_done done, void *arg)
{
    cluster_store_refresh_words(distributed_of(source)->store, HEAR_MS, done, arg);
}

static void on_made(struct conn_source *source, const char *conn, struct props *configs,
                    size_t count)
{
    task_writer_made(distributed_of(source), conn, configs, count);
}

static void on_told(struct conn_source *source, const char *conn, int task, enum state state,
                    const char *trace)
{
    cluster_status_told(distributed_of(source), conn, task, state, trace);
}

static void on_orphaned(struct conn_source *source, const struct lifecycle_orphans *orphans)
{
    cluster_lost_orphaned(distributed_of(source), orphans);
}

/* --- life ------------------------------------------------------------------------------------- */

bool distributed_in_transactions(const struct distributed *d, const struct catalog_plugin *plugin)
{
    return plugin->emits || (plugin->kind == MR_PLUGIN_SOURCE &&
                             strcasecmp(d->parts.config->cluster.exactly_once, "enabled") == 0);
}

/* The topic says what is used, on every worker: a host here tells of it once, and again after it
 * was taken off the list. */
static void on_topic_used(struct conn_source *source, const char *conn, int task, const char *topic)
{
    struct distributed *d = distributed_of(source);
    const struct config_conn *config = config_state_conn(distributed_config(d), conn);
    const struct catalog_plugin *plugin;

    if (config == NULL)
        return;
    plugin = distributed_plugin(d, config);
    if (plugin != NULL && distributed_in_transactions(d, plugin))
        cluster_store_look_at_topic(d->store, topic);
    if (!status_state_uses(cluster_store_status(d->store), conn, topic))
        cluster_store_put_topic(d->store, conn, topic, task);
}

static const char *on_next_topic(const struct conn_source *source, const char *name, size_t *cursor)
{
    return status_state_next_topic(cluster_store_status(distributed_in(source)->store), name,
                                   cursor);
}

static void on_forget_topics(struct conn_source *source, const char *name)
{
    cluster_status_forget_topics(distributed_of(source), name);
}

static const char *on_stage(const struct conn_source *source)
{
    const struct distributed *d = distributed_in(source);

    if (!d->replayed)
        return "reading the internal topics";
    return d->joined ? NULL : "ensuring membership in the cluster";
}

/* What failed connectors do to their tasks is no matter here. */
static const char *on_unwell(const struct conn_source *source)
{
    const struct distributed *d = distributed_in(source);

    return distributed_lease_over(d)
               ? "The group's coordinator has answered no heartbeat for session.timeout.ms."
               : d->lost;
}

static bool on_readable(const struct conn_source *source)
{
    return distributed_in(source)->replayed;
}

static void run_on(struct conn_source *source, struct connectors *connectors)
{
    distributed_of(source)->connectors = connectors;
}

static void on_shutdown(struct conn_source *source, loop_fn fn, void *arg)
{
    struct distributed *d = distributed_of(source);

    d->closing = true;
    loop_timer_cancel(&d->key_timer);
    loop_timer_cancel(&d->repair_timer);
    loop_timer_cancel(&d->wish_timer);
    if (!d->replayed) {
        fn(arg);
        return;
    }
    d->left_fn = fn;
    d->left_arg = arg;
    cluster_words_goodbye(d);
}

static void on_free(struct conn_source *source)
{
    struct distributed *d = distributed_of(source);

    d->closing = d->leaving = true;
    loop_timer_cancel(&d->key_timer);
    loop_timer_cancel(&d->wish_timer);
    loop_timer_cancel(&d->goodbye_timer);
    cluster_fence_end(d);
    member_free(&d->member);
    peer_free(&d->peer);
    worker_https_deinit(&d->https);
    if (d->store != NULL)
        cluster_store_close(&d->store, clock_ms() + CLOSE_MS);
    cluster_round_deinit(d);
    map_free(&d->conns, free_conn);
    map_free(&d->leavers, NULL);
    cluster_status_deinit(d);
    free(d->member_id);
    free(d->twin);
    free(d->lost);
    free(d->url);
    free(d);
}

static enum connect_kind kind_of(const struct worker_cluster *cluster)
{
    if (strcasecmp(cluster->protocol, "eager") == 0)
        return CONNECT_EAGER;
    return strcasecmp(cluster->protocol, "compatible") == 0 ? CONNECT_COMPATIBLE
                                                            : CONNECT_SESSIONED;
}

/* The member's own client: the worker's top-level settings, under Java's client id. */
static void client_settings(const struct distributed *d, struct props *out)
{
    const struct worker_config *config = d->parts.config;
    char *id = NULL;

    mr_assert(props_copy(out, &config->props) == 0);
    if (props_get(out, "bootstrap.servers") == NULL)
        mr_assert(props_set(out, "bootstrap.servers", worker_config_servers(config)) == 0);
    if (config->cluster.client_id[0] != '\0')
        id = text_dup(config->cluster.client_id);
    else
        mr_assert(asprintf(&id, "connect-%s", config->worker_id) > 0);
    mr_assert(props_set(out, "client.id", id) == 0);
    free(id);
}

static struct member *open_member(struct distributed *d, struct mr_error *err)
{
    const struct worker_cluster *cluster = &d->parts.config->cluster;
    struct props kafka;
    struct member_options options = {.kafka = &kafka,
                                     .group = cluster->group_id,
                                     .url = d->url,
                                     .kind = kind_of(cluster),
                                     .java_assignor = strcasecmp(cluster->assignor, "java") == 0,
                                     .session_ms = cluster->session_ms,
                                     .heartbeat_ms = cluster->heartbeat_ms,
                                     .rebalance_ms = cluster->rebalance_ms,
                                     .graceful_ms = d->parts.config->graceful_ms,
                                     .max_delay_ms = cluster->max_delay_ms,
                                     .sync_ms = cluster->sync_ms,
                                     .retry_backoff_ms = cluster->retry_backoff_ms};
    struct member *member;
    char *ghost = NULL;

    mr_assert(asprintf(&ghost, "%s/member", d->parts.config->state_dir) > 0);
    options.ghost_file = ghost;
    client_settings(d, &kafka);
    member = member_new(d->parts.loop, &options, &cluster_round_events, d, err);
    props_deinit(&kafka);
    free(ghost);
    return member;
}

static void on_fence(struct conn_source *source, const char *name, bool patient,
                     connectors_done done, void *arg)
{
    if (patient)
        cluster_lost_call_off(distributed_of(source), name);
    cluster_fence(distributed_of(source), name, patient, done, arg);
}

static void on_sync(struct conn_source *source, connectors_done done, void *arg)
{
    struct distributed *d = distributed_of(source);

    cluster_store_refresh(d->store, d->parts.config->cluster.sync_ms, done, arg);
}

/* What changes something is cluster_changes_serve's. */
static const struct conn_source table = {
    .run_on = run_on,
    .find = on_find,
    .next = on_next,
    .task = on_task,
    .state = on_state,
    .next_task = on_next_task,
    .made = on_made,
    .told = on_told,
    .orphaned = on_orphaned,
    .share = on_share,
    .shared = on_shared,
    .may_start = on_may_start,
    .joined = on_joined,
    .member = on_member,
    .hear = on_hear,
    .fence = on_fence,
    .readable = on_readable,
    .stage = on_stage,
    .unwell = on_unwell,
    .topic_used = on_topic_used,
    .next_topic = on_next_topic,
    .forget_topics = on_forget_topics,
    .shutdown = on_shutdown,
    .free = on_free,
};

/* What this worker's own listeners have, also where it has none by https: others may. */
static const struct worker_https *peer_tls(struct distributed *d)
{
    const struct props *props = &d->parts.config->props;
    struct mr_error err = {0};
    bool asked = false;

    for (size_t i = 0; i < props->count && !asked; i++)
        asked = strncmp(props->entries[i].key, "ssl.", 4) == 0 ||
                strncmp(props->entries[i].key, WORKER_HTTPS_MAIN, strlen(WORKER_HTTPS_MAIN)) == 0;
    if (!asked)
        return NULL;
    if (worker_https_load(d->parts.config, WORKER_HTTPS_MAIN, &d->https, &err) == 0)
        return &d->https;
    log_warn("calls to other workers by https trust the system's authorities only: %s", err.text);
    return NULL;
}

struct conn_source *distributed_open(const struct source_parts *parts, struct mr_error *err)
{
    struct distributed *d = calloc(1, sizeof(*d));
    struct cluster_store_options options = {
        .loop = parts->loop, .worker = &parts->config->props, .arg = d};

    mr_assert(d != NULL);
    d->source = table;
    cluster_changes_serve(&d->source);
    d->parts = *parts;
    d->generation = d->stop_ask = -1;
    d->rebalancing = true;
    d->conns = map_new();
    d->owners = map_new();
    d->members = map_new();
    d->stranger = text_dup("");
    d->leavers = map_new();
    d->repairs = map_new();
    d->pace.offset = -1;
    d->member_id = text_dup("");
    d->leader_url = text_dup("");
    d->twin = text_dup("");
    mr_assert(asprintf(&d->url, "%s://%s/", parts->config->advertises_https ? "https" : "http",
                       parts->config->worker_id) > 0);
    d->peer = peer_new(parts->loop, peer_tls(d), err);
    if (d->peer != NULL)
        d->member = open_member(d, err);
    if (d->member != NULL)
        d->store = cluster_store_open(&options, &cluster_topics_events, err);
    if (d->store == NULL) {
        on_free(&d->source);
        return NULL;
    }
    d->source.offsets = cluster_store_offsets(d->store);
    if (strcasecmp(parts->config->cluster.exactly_once, "enabled") == 0)
        d->source.sync = on_sync;
    d->source.peer = d->peer;
    return &d->source;
}
