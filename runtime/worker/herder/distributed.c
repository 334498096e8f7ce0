/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a cluster's worker. What is known of connectors is what the config topic says, what is known of states is what the
 * status topic says, wherever these run; what runs here is what the group assigned to this worker.
 *
 *   REST ─► herder ─► put, remove, target, restart ─► cluster_store ─► Kafka
 *                                                          │ records that were read, also our own
 *                        connectors ◄─ reshare ◄── on_config ─► member: another round, please
 *                             ▲
 *                             └── cluster_round ◄── member: assigned, revoked
 *
 * A change is answered when the topic has it; what it does comes back as a record, on every worker alike. Loop thread only; every
 * `done` runs exactly once, at the latest when the store is closed. */
#define LOGGER "worker.herder"
#include "worker/herder/distributed.h"

#include "base/clock.h"
#include "base/config_ref.h"
#include "base/log.h"
#include "kafka/client_conf.h"
#include "worker/herder/distributed_private.h"
#include "worker/herder/fence_round.h"
#include "worker/herder/log_control.h"
#include "worker/herder/signature.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLOSE_MS 2000 /* for status that waits to be written */
#define HEAR_MS 3000  /* a task that starts waits for the words; first they may have to be opened */

static struct distributed *self_of(struct conn_source *source)
{
    return (struct distributed *)source;
}

static const struct distributed *self_in(const struct conn_source *source)
{
    return (const struct distributed *)source;
}

const struct config_state *distributed_config(const struct distributed *d)
{
    return cluster_store_config(d->store);
}

/* --- connectors ------------------------------------------------------------------------------------------------------- */

struct dist_conn *distributed_conn(const struct distributed *d, const char *name)
{
    return map_get(d->conns, name);
}

static struct dist_conn *conn_of(struct distributed *d, const char *name)
{
    struct dist_conn *conn = map_get(d->conns, name);

    if (conn != NULL)
        return conn;
    conn = calloc(1, sizeof(*conn));
    mr_assert(conn != NULL);
    conn->d = d;
    conn->name = strdup(name);
    mr_assert(conn->name != NULL);
    map_set(d->conns, name, conn);
    return conn;
}

static void free_conn(void *value)
{
    struct dist_conn *conn = value;

    task_writer_forget(conn);
    cluster_lost_forget(conn);
    fence_round_free(&conn->round);
    work_list_deinit(&conn->missing);
    free(conn->name);
    free(conn);
}

void distributed_forget(struct distributed *d)
{
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, NULL, &value);) {
        struct dist_conn *conn = value;

        if (conn->known || conn->stopping || conn->writing || conn->fencing ||
            connectors_sharing(d->connectors, conn->name))
            continue;
        map_remove(d->conns, conn->name);
        free_conn(conn);
    }
}

const struct catalog_plugin *distributed_plugin(const struct distributed *d,
                                                const struct config_conn *config)
{
    const char *name = props_get(config->config, "connector.class");
    const struct catalog_plugin *plugin = NULL;
    char *seen;

    if (name == NULL || !config_ref_any(name))
        return name != NULL ? catalog_find(d->parts.catalog, 0, name) : NULL;
    seen = providers_glance(d->parts.config->providers, name);
    plugin = catalog_find(d->parts.catalog, 0, seen);
    free(seen);
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
    const struct distributed *d = self_in(source);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);

    if (config != NULL)
        show(d, config, out);
    return config != NULL;
}

static bool on_next(const struct conn_source *source, size_t *cursor, struct source_conn *out)
{
    const struct distributed *d = self_in(source);
    const struct config_conn *config = config_state_next(distributed_config(d), cursor);

    if (config != NULL)
        show(d, config, out);
    return config != NULL;
}

static const struct props *on_task(const struct conn_source *source, const char *name, int task)
{
    return config_state_task(config_state_conn(distributed_config(self_in(source)), name), task);
}

static bool on_state(const struct conn_source *source, const char *name, int task,
                     struct source_state *out)
{
    const struct status_state *states = cluster_store_status(self_in(source)->store);
    const struct status *status =
        task < 0 ? status_state_connector(states, name) : status_state_task(states, name, task);

    if (status != NULL)
        *out =
            (struct source_state){status->state, status->worker_id, status->trace, status->version};
    return status != NULL;
}

static int on_next_task(const struct conn_source *source, const char *name, int after)
{
    return status_state_next_task(cluster_store_status(self_in(source)->store), name, after);
}

/* --- who acts --------------------------------------------------------------------------------------------------------- */

static int stale(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_STATE,
                   "Cannot complete request momentarily due to stale configuration (typically "
                   "caused by a concurrent config change)");
}

static bool is_lease_over(const struct distributed *d)
{
    return d->lease_ms != 0 && clock_boot_ms() >= d->lease_ms;
}

static int on_who(const struct conn_source *source, enum source_deed deed, const char *name,
                  int task, const char **url, struct mr_error *err)
{
    const struct distributed *d = self_in(source);
    bool over = is_lease_over(d);

    *url = d->leads || deed == SOURCE_ANYBODY ? NULL : d->leader_url;
    /* After a freeze somebody else may lead, and be asked instead of us; and what we know may be long past. */
    if (over && (d->leads || deed == SOURCE_ANYBODY))
        return stale(err);
    if (deed == SOURCE_ANYBODY || deed == SOURCE_LEADS)
        return 0;
    if (d->rebalancing)
        return stale(err);
    if (deed == SOURCE_OWNS && work_list_has(&d->allocation, name, task))
        *url = NULL;
    else if (deed == SOURCE_OWNS && d->leads)
        *url = cluster_round_owner(d, name, task);
    return 0;
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

/* rejoin: NULL none. */
static void report(struct distributed *d, const char *rejoin)
{
    member_report(d->member,
                  &(struct member_word){.offset = config_state_offset(distributed_config(d)),
                                        .settled = -1,
                                        .rejoin = rejoin,
                                        .stopping = distributed_stopping(d)});
}

void distributed_rejoin(struct distributed *d, const char *why)
{
    report(d, why);
}

/* --- changes ---------------------------------------------------------------------------------------------------------- */

/* One write, with what the client is told when it fails. */
struct writing {
    struct distributed *d;
    char *conn;
    const char *failure;
    connectors_done done;
    void *arg;
};

static struct writing *writing_new(struct conn_source *source, const char *conn,
                                   const char *failure, connectors_done done, void *arg)
{
    struct writing *writing = calloc(1, sizeof(*writing));

    mr_assert(writing != NULL);
    *writing = (struct writing){self_of(source), strdup(conn), failure, done, arg};
    mr_assert(writing->conn != NULL);
    return writing;
}

static void on_written(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;
    struct mr_error told = {0};

    if (err != NULL && err->code == MR_ERR_CLOSED)
        mr_fail(&told, MR_ERR_CLOSED, "Worker is shutting down");
    else if (err != NULL)
        mr_fail(&told, MR_ERR_FATAL, "%s: %s", writing->failure, err->text);
    if (writing->done != NULL)
        writing->done(writing->arg, err != NULL ? &told : NULL);
    free(writing->conn);
    free(writing);
}

static void on_put(struct conn_source *source, const struct source_put *put, connectors_done done,
                   void *arg)
{
    cluster_store_put_connector(
        self_of(source)->store, put->name, put->config, put->target, on_written,
        writing_new(source, put->name, "Error writing connector configuration to Kafka", done,
                    arg));
}

static void on_remove(struct conn_source *source, const char *name, connectors_done done, void *arg)
{
    cluster_store_remove_connector(
        self_of(source)->store, name, on_written,
        writing_new(source, name, "Error removing connector configuration from Kafka", done, arg));
}

/* A store that closes answers what it has, and takes nothing more. */
static bool went_wrong(struct writing *writing, const struct mr_error *err)
{
    static const struct mr_error closed = {.code = MR_ERR_CLOSED};

    if (err == NULL && writing->d->store != NULL)
        return false;
    on_written(writing, err != NULL ? err : &closed);
    return true;
}

static void on_stop_targeted(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;

    if (!went_wrong(writing, err))
        cluster_store_refresh(writing->d->store, CLUSTER_STORE_WRITE_MS, on_written, writing);
}

static void on_stop_emptied(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;

    if (!went_wrong(writing, err))
        cluster_store_put_target(writing->d->store, writing->conn, TARGET_STOPPED, on_stop_targeted,
                                 writing);
}

/* A stop takes the tasks away first: an empty set, then the target state, then all of it is read. */
static void on_target(struct conn_source *source, const char *name, enum target_state target,
                      connectors_done done, void *arg)
{
    struct writing *writing =
        writing_new(source, name, "Error writing target state to Kafka", done, arg);

    if (target == TARGET_STOPPED)
        cluster_store_put_tasks(self_of(source)->store, name, NULL, 0, on_stop_emptied, writing);
    else
        cluster_store_put_target(self_of(source)->store, name, target, on_written, writing);
}

/* What is to be restarted is given to this worker, but between two sets of its tasks nothing of it runs. */
static bool is_between(const struct distributed *d, const char *name, connectors_done done,
                       void *arg)
{
    struct mr_error err = {0};

    if (connectors_has(d->connectors, name))
        return false;
    stale(&err);
    if (done != NULL)
        done(arg, &err);
    return true;
}

static void on_restart(struct conn_source *source, const char *name,
                       const struct connectors_plan *plan, connectors_done done, void *arg)
{
    struct distributed *d = self_of(source);

    if (!plan->tasks && !plan->only_failed && is_between(d, name, done, arg))
        return;
    if (!plan->tasks && !plan->only_failed)
        connectors_restart(d->connectors, name, plan, done, arg);
    else
        cluster_store_put_restart(
            d->store, name, plan->tasks, plan->only_failed, on_written,
            writing_new(source, name, "Failed to write to config topic", done, arg));
}

static void on_restart_task(struct conn_source *source, const char *name, int task,
                            connectors_done done, void *arg)
{
    if (!is_between(self_of(source), name, done, arg))
        connectors_restart_task(self_of(source)->connectors, name, task, done, arg);
}

static void on_tasks(struct conn_source *source, const char *name, const struct props *tasks,
                     size_t count, connectors_done done, void *arg)
{
    cluster_store_put_tasks(
        self_of(source)->store, name, tasks, count, on_written,
        writing_new(source, name, "Error writing task configurations to Kafka", done, arg));
}

static void on_logger(struct conn_source *source, const char *name, const char *level,
                      connectors_done done, void *arg)
{
    cluster_store_put_logger(
        self_of(source)->store, name, level, on_written,
        writing_new(source, name, "Error writing logger level to Kafka", done, arg));
}

static int on_signed(const struct conn_source *source, const struct herder_claim *claim,
                     struct mr_error *err)
{
    const struct distributed *d = self_in(source);

    if (d->joined && d->kind != CONNECT_SESSIONED)
        return 0;
    return signature_check(claim, config_state_session_key(distributed_config(d)),
                           &d->parts.config->cluster, err);
}

/* --- what is to run here ---------------------------------------------------------------------------------------------- */

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
    struct distributed *d = self_of(source);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);
    struct dist_conn *conn = distributed_conn(d, name);

    if (config == NULL || conn == NULL)
        return;
    out->plugin = distributed_plugin(d, config);
    if (out->plugin != NULL)
        want(d, conn, config, out);
    else
        cluster_status_missing(d, conn, props_get(config->config, "connector.class"));
}

static void on_shared(struct conn_source *source, const char *name)
{
    struct distributed *d = self_of(source);
    struct dist_conn *conn = distributed_conn(d, name);

    if (conn != NULL && conn->stopping && !connectors_sharing(d->connectors, name)) {
        conn->stopping = false;
        if (!d->closing)
            report(d, NULL);
    }
    cluster_round_go_on(d);
}

static bool on_may_start(const struct conn_source *source, const char *name, int task,
                         int64_t generation)
{
    const struct distributed *d = self_in(source);
    const struct dist_conn *conn = distributed_conn(d, name);
    const struct config_conn *config = config_state_conn(distributed_config(d), name);

    return config != NULL && conn != NULL && !conn->held && config->generation == generation &&
           task < config_state_tasks(config) && work_list_has(&d->allocation, name, task) &&
           connectors_may_start(d->connectors, name, task);
}

static void on_joined(struct conn_source *source, const char *task, const char *member)
{
    cluster_words_joined(self_of(source), task, member);
}

static const char *on_member(const struct conn_source *source, const char *task)
{
    return word_state_consumer(cluster_store_words(self_in(source)->store), task);
}

static void on_hear(struct conn_source *source, connectors_done done, void *arg)
{
    cluster_store_refresh_words(self_of(source)->store, HEAR_MS, done, arg);
}

static void on_made(struct conn_source *source, const char *conn, struct props *configs,
                    size_t count)
{
    task_writer_made(self_of(source), conn, configs, count);
}

static void on_told(struct conn_source *source, const char *conn, int task, enum state state,
                    const char *trace)
{
    cluster_status_told(self_of(source), conn, task, state, trace);
}

/* --- what the topics say ------------------------------------------------------------------------------------------------ */

static void on_updated(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);
    bool known = conn->known;

    conn->known = true;
    conn->serial = ++d->serials;
    connectors_reshare(d->connectors, conn->name);
    if (!known)
        cluster_round_want(d, "a connector was created");
}

static void on_removed(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);

    conn->known = false;
    task_writer_forget(conn);
    connectors_reshare(d->connectors, conn->name);
    conn->stopping = connectors_sharing(d->connectors, conn->name);
    cluster_round_want(d, "a connector was deleted");
}

/* Tasks of the old set stop everywhere before those of the new one start anywhere. */
static void on_committed(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);

    cluster_fence_cancel(conn);
    conn->held = true;
    conn->held_offset = config_state_offset(distributed_config(d));
    connectors_reshare(d->connectors, conn->name);
    conn->stopping = connectors_sharing(d->connectors, conn->name);
    cluster_round_want(d, "tasks were configured");
}

static void on_targeted(struct distributed *d, const struct config_change *change)
{
    connectors_reshare(d->connectors, change->name);
}

static void on_restarting(struct distributed *d, const struct config_change *change)
{
    struct connectors_plan plan = {
        .connector = true, .tasks = change->include_tasks, .only_failed = change->only_failed};

    connectors_restart(d->connectors, change->name, &plan, NULL, NULL);
}

static void on_keyed(struct distributed *d, const struct config_change *change)
{
    (void)change;
    key_keeper_look(d);
}

static void on_logging(struct distributed *d, const struct config_change *change)
{
    log_control_heard(d->parts.sup, change->name, change->level);
}

static void on_config(void *arg, const struct config_change *change)
{
    static void (*const acts[])(struct distributed *, const struct config_change *) = {
        [CONFIG_UPDATED] = on_updated,       [CONFIG_REMOVED] = on_removed,
        [CONFIG_TASKS] = on_committed,       [CONFIG_TARGETED] = on_targeted,
        [CONFIG_RESTARTING] = on_restarting, [CONFIG_KEYED] = on_keyed,
        [CONFIG_LOGGING] = on_logging,       [CONFIG_FENCED] = NULL,
    };
    struct distributed *d = arg;

    if (d->closing)
        return;
    if ((size_t)change->kind < sizeof(acts) / sizeof(acts[0]) && acts[change->kind] != NULL)
        acts[change->kind](d, change);
    report(d, NULL);
}

static void on_status(void *arg, const char *conn, int task)
{
    cluster_status_read(arg, conn, task);
}

/* What runs goes on, from memory, and so does the group, as long as all stand where we do: after a topic was deleted that is worth
 * more than an end that would begin with no connectors at all. cluster_round.c sees when others have gone on. */
static void on_lost(void *arg, const char *topic, const struct mr_error *err)
{
    struct distributed *d = arg;
    const char *config = props_get(&d->parts.config->props, "config.storage.topic");

    log_error("the topic %s is lost, and what needs it fails from now on: %s", topic, err->text);
    if (config == NULL || strcmp(topic, config) != 0)
        return;
    d->config_lost = true;
    log_error("connectors go on as they are, and can't be changed. Keep what GET "
              "/connectors?expand=info shows; once %s is there again (one partition, "
              "cleanup.policy=compact), start all workers of the group %s again and create them "
              "anew",
              topic, d->parts.config->cluster.group_id);
}

static void on_word(void *arg, const struct word *word)
{
    cluster_words_heard(arg, word);
}

/* Whether it still leads another round tells. */
static void on_unclaimed(void *arg)
{
    struct distributed *d = arg;

    if (d->leads && !d->closing)
        cluster_round_want(d, "its right to write as the leader is in doubt");
}

static void on_ready(void *arg, const struct mr_error *err)
{
    struct distributed *d = arg;
    const struct config_conn *config;

    if (err != NULL) {
        d->parts.failed(d->parts.arg, err);
        return;
    }
    for (size_t i = 0; (config = config_state_next(distributed_config(d), &i)) != NULL;) {
        struct dist_conn *conn = conn_of(d, config->name);

        conn->known = true;
        conn->serial = ++d->serials;
    }
    d->replayed = true;
    d->parts.readable(d->parts.arg);
    log_info("%zu connectors in the config topic; joins group %s",
             config_state_count(distributed_config(d)), d->parts.config->cluster.group_id);
    member_start(d->member, config_state_offset(distributed_config(d)));
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

static void on_freshened(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;
    const struct dist_conn *conn = distributed_conn(writing->d, writing->conn);
    struct mr_error told = {0};

    /* Until the round that took its tasks away is over, one may still run, and commit. */
    if (err == NULL &&
        (writing->d->rebalancing || (conn != NULL && (conn->held || conn->stopping))))
        stale(&told);
    if (told.code == 0) {
        on_written(writing, err);
        return;
    }
    writing->done(writing->arg, &told);
    free(writing->conn);
    free(writing);
}

static void on_freshen(struct conn_source *source, const char *name, connectors_done done,
                       void *arg)
{
    cluster_store_refresh(self_of(source)->store, CLUSTER_STORE_WRITE_MS, on_freshened,
                          writing_new(source, name,
                                      "Failed to read to end of config topic before modifying "
                                      "connector offsets",
                                      done, arg));
}

/* The topic says what is used, on every worker: a host here tells of it once, and again after it was taken off the list. */
static void on_topic_used(struct conn_source *source, const char *conn, int task, const char *topic)
{
    struct distributed *d = self_of(source);

    if (config_state_conn(distributed_config(d), conn) != NULL &&
        !status_state_uses(cluster_store_status(d->store), conn, topic))
        cluster_store_put_topic(d->store, conn, topic, task);
}

static const char *on_next_topic(const struct conn_source *source, const char *name, size_t *cursor)
{
    return status_state_next_topic(cluster_store_status(self_in(source)->store), name, cursor);
}

static void on_forget_topics(struct conn_source *source, const char *name)
{
    cluster_status_forget_topics(self_of(source), name);
}

static void on_topic(void *arg, const char *conn, const char *topic, bool gone)
{
    struct distributed *d = arg;

    (void)topic;
    if (gone && !d->closing)
        (void)supervisor_forget_topics(d->parts.sup, conn);
}

static const char *on_stage(const struct conn_source *source)
{
    const struct distributed *d = self_in(source);

    if (!d->replayed)
        return "reading the internal topics";
    return d->joined ? NULL : "ensuring membership in the cluster";
}

/* What failed connectors do to their tasks is no matter here. */
static const char *on_unwell(const struct conn_source *source)
{
    return is_lease_over(self_in(source))
               ? "The group's coordinator has answered no heartbeat for session.timeout.ms."
               : NULL;
}

static bool on_readable(const struct conn_source *source)
{
    return self_in(source)->replayed;
}

static void run_on(struct conn_source *source, struct connectors *connectors)
{
    self_of(source)->connectors = connectors;
}

static void on_shutdown(struct conn_source *source, loop_fn fn, void *arg)
{
    struct distributed *d = self_of(source);

    d->closing = true;
    loop_timer_cancel(&d->key_timer);
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
    struct distributed *d = self_of(source);

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
    free(d->member_id);
    free(d->twin);
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
        id = strdup(config->cluster.client_id);
    else
        mr_assert(asprintf(&id, "connect-%s", config->worker_id) > 0);
    mr_assert(id != NULL && props_set(out, "client.id", id) == 0);
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
    cluster_fence(self_of(source), name, patient, done, arg);
}

static void on_sync(struct conn_source *source, connectors_done done, void *arg)
{
    struct distributed *d = self_of(source);

    cluster_store_refresh(d->store, d->parts.config->cluster.sync_ms, done, arg);
}

static const struct conn_source table = {
    .run_on = run_on,
    .find = on_find,
    .next = on_next,
    .task = on_task,
    .state = on_state,
    .next_task = on_next_task,
    .who = on_who,
    .put = on_put,
    .remove = on_remove,
    .target = on_target,
    .restart = on_restart,
    .restart_task = on_restart_task,
    .tasks = on_tasks,
    .is_signed = on_signed,
    .logger = on_logger,
    .made = on_made,
    .told = on_told,
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
    .freshen = on_freshen,
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
    static const struct cluster_store_events events = {.ready = on_ready,
                                                       .config = on_config,
                                                       .status = on_status,
                                                       .topic = on_topic,
                                                       .word = on_word,
                                                       .unclaimed = on_unclaimed,
                                                       .lost = on_lost};
    struct distributed *d = calloc(1, sizeof(*d));
    struct cluster_store_options options = {
        .loop = parts->loop, .worker = &parts->config->props, .arg = d};

    mr_assert(d != NULL);
    d->source = table;
    d->parts = *parts;
    d->generation = d->stop_ask = -1;
    d->rebalancing = true;
    d->conns = map_new();
    d->owners = map_new();
    d->members = map_new();
    d->stranger = strdup("");
    d->leavers = map_new();
    d->pace.offset = -1;
    d->member_id = strdup("");
    d->leader_url = strdup("");
    d->twin = strdup("");
    mr_assert(d->leader_url != NULL && d->twin != NULL && d->member_id != NULL &&
              d->stranger != NULL &&
              asprintf(&d->url, "%s://%s/", parts->config->advertises_https ? "https" : "http",
                       parts->config->worker_id) > 0);
    d->peer = peer_new(parts->loop, peer_tls(d), err);
    if (d->peer != NULL)
        d->member = open_member(d, err);
    if (d->member != NULL)
        d->store = cluster_store_open(&options, &events, err);
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
