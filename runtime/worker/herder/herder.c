/* SPDX-License-Identifier: Apache-2.0 */
/* The herder: REST's and the command line's door to everything that runs. It validates, hands changes to the source of
 * configurations (conn_source.h; standalone.c here), and answers reads from memory, in any state.
 *
 *   rest ──► herder ──► validate
 *              │  └──► standalone (what should run) ──► connectors (in order) ──► lifecycle (state machine) ──► supervisor
 *              │                                             ▲                                                     │ events
 *              └──► offset_desk ◄──► store thread            └─────────────────────────────────────────────────────┘
 *
 * Loop thread only; nothing here blocks. Every `done` runs exactly once. */
#define LOGGER "worker.herder"
#include "worker/herder/herder.h"

#include "base/log.h"
#include "worker/herder/cluster_probe.h"
#include "worker/herder/offset_desk.h"
#include "worker/herder/standalone.h"
#include "worker/herder/validate.h"
#include "worker/herder/view.h"
#include "worker/store/local_store.h"

#define MESSAGE_MAX ((size_t)16 << 20)
#define SHUTDOWN_SPARE_MS \
    3000 /* over the graceful timeout, before hosts that are left are left to be killed */
#define HELLO_MS 10000

#define say(conn, task, ...) log_write_for(LOG_INFO, LOGGER, conn, task, __VA_ARGS__)

struct herder {
    struct loop *loop;
    const struct worker_config *config;
    const struct catalog *catalog;
    struct supervisor *sup;
    struct local_store *store;
    struct offset_desk desk;
    struct connectors *connectors;
    struct conn_source *source;
    struct cluster_probe *probe;
    char *cluster_id; /* NULL: not known yet */
    bool started;
    bool stopping;
    loop_fn stopped_fn;
    void *stopped_arg;
    struct loop_timer stop_guard;
};

/* A change under way. */
struct pending {
    struct herder *herder;
    char *conn;
    herder_done done;
    void *arg;
    bool created;
    json_t *info; /* what a put answers when the connector is gone by then */
};

/* --- answers ---------------------------------------------------------------------------------------------------------- */

static void refuse_with(herder_done done, void *arg, const struct mr_error *err,
                        const char *message)
{
    struct herder_answer answer = {.err = err, .message = message != NULL ? message : err->text};

    done(arg, &answer);
}

static MR_PRINTF(4, 5)
void refuse(herder_done done, void *arg, int code, const char *fmt, ...)
{
    struct mr_error err = {.code = code};
    va_list args;

    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    refuse_with(done, arg, &err, NULL);
}

static struct pending *pending_new(struct herder *herder, const char *conn, herder_done done,
                                   void *arg)
{
    struct pending *pending = calloc(1, sizeof(*pending));

    mr_assert(pending != NULL);
    *pending = (struct pending){.herder = herder, .conn = strdup(conn), .done = done, .arg = arg};
    mr_assert(pending->conn != NULL);
    return pending;
}

static void pending_end(struct pending *pending, const struct herder_answer *answer)
{
    pending->done(pending->arg, answer);
    json_decref(pending->info);
    free(pending->conn);
    free(pending);
}

/* Changes that answer nothing but that they are done. */
static void on_done(void *arg, const struct mr_error *err)
{
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};

    pending_end(arg, &answer);
}

static void on_put(void *arg, const struct mr_error *err)
{
    struct pending *pending = arg;
    struct herder_answer answer = {
        .err = err, .message = err != NULL ? err->text : NULL, .created = pending->created};
    json_t *info = err == NULL ? herder_info(pending->herder, pending->conn) : NULL;

    answer.body = err != NULL ? NULL : info != NULL ? info : pending->info;
    pending_end(pending, &answer);
    json_decref(info);
}

static const struct source_conn *known(const struct herder *herder, const char *conn)
{
    return herder->source->find(herder->source, conn);
}

/* --- changes ---------------------------------------------------------------------------------------------------------- */

static void on_remark(void *arg, const char *key, const char *text)
{
    log_write_for(LOG_WARN, LOGGER, arg, -1, "%s has no effect: %s", key, text);
}

/* Is the configuration valid? If not, the client is told all that is wrong with it. */
static const struct catalog_plugin *
valid_plugin(struct herder *herder, const struct herder_put *put, herder_done done, void *arg)
{
    struct validate_input input = {
        .config = put->config, .catalog = herder->catalog, .worker = herder->config};
    const struct catalog_plugin *plugin = NULL;
    struct validate_result result;
    struct mr_error err = {0};
    struct buf message;

    buf_init(&message, MESSAGE_MAX);
    if (validate_connector(&input, &result, &err) != 0) {
        refuse_with(done, arg, &err, NULL);
    } else if (validate_error_count(&result) > 0) {
        mr_fail(&err, MR_ERR_CONFIG, "%s",
                validate_message(&result, &message) == 0 ? message.data
                                                         : "Connector configuration is invalid");
        refuse_with(done, arg, &err, message.failed ? NULL : message.data);
    } else {
        plugin = result.plugin;
        validate_remarks(put->config, &result, on_remark, (void *)(uintptr_t)put->conn);
    }
    validate_deinit(&result);
    buf_deinit(&message);
    return plugin;
}

void herder_put(struct herder *herder, const struct herder_put *put, herder_done done, void *arg)
{
    const struct catalog_plugin *plugin = valid_plugin(herder, put, done, arg);
    struct source_put store = {
        .name = put->conn, .plugin = plugin, .config = put->config, .target = put->initial};
    struct pending *pending;

    if (plugin == NULL)
        return;
    if (put->create_only && known(herder, put->conn) != NULL) {
        refuse(done, arg, MR_ERR_EXISTS, "Connector %s already exists", put->conn);
        return;
    }
    pending = pending_new(herder, put->conn, done, arg);
    pending->created = known(herder, put->conn) == NULL;
    pending->info = view_info(put->conn, put->config, plugin, 0);
    herder->source->put(herder->source, &store, on_put, pending);
}

void herder_patch(struct herder *herder, const char *conn, const struct props *changes,
                  herder_done done, void *arg)
{
    const struct source_conn *stored = known(herder, conn);
    struct herder_put put = {.conn = conn};
    struct props merged;

    if (stored == NULL) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
        return;
    }
    mr_assert(props_copy(&merged, &stored->config) == 0);
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->entries[i].value == NULL)
            props_remove(&merged, changes->entries[i].key);
        else
            mr_assert(props_set(&merged, changes->entries[i].key, changes->entries[i].value) == 0);
    }
    put.config = &merged;
    herder_put(herder, &put, done, arg);
    props_deinit(&merged);
}

void herder_delete(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    if (known(herder, conn) == NULL)
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    else
        herder->source->remove(herder->source, conn, on_done, pending_new(herder, conn, done, arg));
}

void herder_set_target(struct herder *herder, const char *conn, enum target_state target,
                       herder_done done, void *arg)
{
    if (known(herder, conn) == NULL)
        refuse(done, arg, MR_ERR_NOT_FOUND, "Unknown connector %s", conn);
    else
        herder->source->target(herder->source, conn, target, on_done,
                               pending_new(herder, conn, done, arg));
}

/* A restart by plan is answered with the states as they are marked, before anything restarts. */
static void on_plan(void *arg, const struct mr_error *err)
{
    struct pending *pending = arg;
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};
    json_t *status = err == NULL ? herder_status(pending->herder, pending->conn) : NULL;

    answer.body = status;
    pending_end(pending, &answer);
    json_decref(status);
}

void herder_restart(struct herder *herder, const char *conn, bool include_tasks, bool only_failed,
                    herder_done done, void *arg)
{
    struct connectors_plan plan = {
        .connector = true, .tasks = include_tasks, .only_failed = only_failed};
    bool flagged = include_tasks || only_failed;

    if (known(herder, conn) == NULL) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               flagged ? "Unknown connector: %s" : "Connector %s not found", conn);
        return;
    }
    say(conn, -1, "restart of the connector%s%s", include_tasks ? " and its tasks" : "",
        only_failed ? ", of what is FAILED" : "");
    connectors_restart(herder->connectors, conn, &plan, flagged ? on_plan : on_done,
                       pending_new(herder, conn, done, arg));
}

void herder_restart_task(struct herder *herder, const char *conn, int task, herder_done done,
                         void *arg)
{
    const struct source_conn *stored = known(herder, conn);

    if (stored == NULL) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    } else if (task < 0 || (size_t)task >= stored->task_count) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Task %s-%d not found", conn, task);
    } else {
        say(conn, task, "restart of the task");
        connectors_restart_task(herder->connectors, conn, task, on_done,
                                pending_new(herder, conn, done, arg));
    }
}

/* --- reads ------------------------------------------------------------------------------------------------------------ */

json_t *herder_root(struct herder *herder)
{
    return view_root(herder->cluster_id);
}

bool herder_ready(const struct herder *herder)
{
    return herder->started && herder->cluster_id != NULL && !herder->stopping;
}

const char *herder_stage(const struct herder *herder)
{
    if (herder->stopping)
        return "ending connectors and tasks";
    if (!herder->started)
        return "creating the connectors of the command line";
    return herder->cluster_id == NULL ? "waiting for the Kafka cluster to answer"
                                      : "waiting for requests and events";
}

json_t *herder_names(struct herder *herder)
{
    json_t *names = json_array();
    const struct source_conn *conn;

    for (size_t i = 0; (conn = herder->source->next(herder->source, &i)) != NULL;)
        json_array_append_new(names, json_string(conn->name));
    return names;
}

json_t *herder_info(struct herder *herder, const char *name)
{
    const struct source_conn *conn = known(herder, name);

    return conn != NULL ? view_info(conn->name, &conn->config, conn->plugin, conn->task_count)
                        : NULL;
}

json_t *herder_config(struct herder *herder, const char *name)
{
    const struct source_conn *conn = known(herder, name);

    return conn != NULL ? json_from_props(&conn->config) : NULL;
}

static const struct lifecycle *lifecycle_of(const struct herder *herder, const char *name)
{
    return known(herder, name) != NULL ? connectors_find(herder->connectors, name) : NULL;
}

json_t *herder_status(struct herder *herder, const char *name)
{
    const struct lifecycle *lc = lifecycle_of(herder, name);

    return lc != NULL
               ? view_status(name, lc, known(herder, name)->plugin, herder->config->worker_id)
               : NULL;
}

json_t *herder_tasks(struct herder *herder, const char *name)
{
    const struct source_conn *conn = known(herder, name);

    return conn != NULL ? view_tasks(name, conn->tasks, conn->task_count) : NULL;
}

json_t *herder_task_status(struct herder *herder, const char *name, int task)
{
    const struct lifecycle *lc = lifecycle_of(herder, name);

    return lc != NULL ? view_task_status(lc, task, herder->config->worker_id) : NULL;
}

json_t *herder_plugins(struct herder *herder, bool connectors_only)
{
    return view_plugins(herder->catalog, connectors_only);
}

bool herder_knows(struct herder *herder, const char *conn)
{
    return known(herder, conn) != NULL;
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static void on_connector(void *arg, const char *conn, enum state state, const char *trace,
                         const char *version)
{
    connectors_on_connector(((struct herder *)arg)->connectors, conn, state, trace, version);
}

static void on_configs(void *arg, const char *conn, const json_t *configs, const char *error)
{
    connectors_on_configs(((struct herder *)arg)->connectors, conn, configs, error);
}

static void on_made(void *arg, const char *conn, struct props *configs, size_t count)
{
    struct herder *herder = arg;

    herder->source->made(herder->source, conn, configs, count);
}

static void on_task(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    connectors_on_task(((struct herder *)arg)->connectors, conn, task, state, trace);
}

static void on_offsets_get(void *arg, const char *conn, int64_t id, const json_t *partitions)
{
    offset_desk_get(&((struct herder *)arg)->desk, conn, id, partitions);
}

static void on_offsets_put(void *arg, const char *conn, int64_t id, const json_t *entries)
{
    offset_desk_put(&((struct herder *)arg)->desk, conn, id, entries);
}

/* Everything is assigned to a standalone worker: what it knows is what holds. */
static void on_start_check(void *arg, const char *conn, int64_t id, int task, int64_t generation)
{
    struct herder *herder = arg;

    (void)generation;
    supervisor_start_checked(herder->sup, conn, id,
                             connectors_may_start(herder->connectors, conn, task));
}

static void on_fence(void *arg, const char *conn, int64_t id)
{
    supervisor_fenced(((struct herder *)arg)->sup, conn, id,
                      "exactly-once needs a distributed worker, and this one is standalone");
}

static void on_died(void *arg, const char *conn, const struct supervisor_death *death)
{
    connectors_on_died(((struct herder *)arg)->connectors, conn, death);
}

static const struct supervisor_events supervisor_events = {
    .connector_status = on_connector,
    .task_configs = on_configs,
    .task_status = on_task,
    .offsets_get = on_offsets_get,
    .offsets_put = on_offsets_put,
    .start_check = on_start_check,
    .fence = on_fence,
    .died = on_died,
};

static void tell_ready(const struct herder *herder)
{
    if (herder_ready(herder))
        log_info("start-up is over: %s, Kafka cluster %s",
                 herder->config->worker_id != NULL ? herder->config->worker_id : "",
                 herder->cluster_id);
}

static void on_cluster_id(void *arg, const char *id)
{
    struct herder *herder = arg;

    herder->cluster_id = strdup(id);
    mr_assert(herder->cluster_id != NULL);
    tell_ready(herder);
}

void herder_started(struct herder *herder)
{
    herder->started = true;
    tell_ready(herder);
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

static void on_stopped(void *arg)
{
    struct herder *herder = arg;
    loop_fn fn = herder->stopped_fn;

    herder->stopped_fn = NULL;
    loop_timer_cancel(&herder->stop_guard);
    if (fn != NULL)
        fn(herder->stopped_arg);
}

static void on_stop_guard(void *arg)
{
    struct herder *herder = arg;

    log_error("%zu connectors did not end in time: their processes are killed",
              connectors_hosts(herder->connectors));
    on_stopped(herder);
}

void herder_shutdown(struct herder *herder, loop_fn fn, void *arg)
{
    herder->stopping = true;
    herder->stopped_fn = fn;
    herder->stopped_arg = arg;
    cluster_probe_stop(herder->probe);
    loop_timer_start(herder->loop, &herder->stop_guard,
                     herder->config->graceful_ms + SHUTDOWN_SPARE_MS, on_stop_guard, herder);
    connectors_shutdown(herder->connectors, on_stopped, herder);
}

static int open_parts(struct herder *herder, struct mr_error *err)
{
    struct supervisor_options options = {.exe = "/proc/self/exe",
                                         .run_dir = herder->config->run_dir,
                                         .worker_props = &herder->config->props,
                                         .catalog = herder->catalog,
                                         .graceful_ms = herder->config->graceful_ms,
                                         .hello_ms = HELLO_MS};

    herder->store = local_store_open(herder->config->offset_file, herder->loop, err);
    if (herder->store == NULL) {
        err_prefix(err, "offset.storage.file.filename");
        return -1;
    }
    herder->sup = supervisor_new(herder->loop, &options, &supervisor_events, herder, err);
    if (herder->sup == NULL)
        return -1;
    herder->probe = cluster_probe_start(herder->loop, herder->config, on_cluster_id, herder, err);
    return herder->probe != NULL ? 0 : -1;
}

struct herder *herder_new(struct loop *loop, const struct worker_config *config,
                          const struct catalog *catalog, struct mr_error *err)
{
    struct herder *herder = calloc(1, sizeof(*herder));
    struct connectors_options options = {
        .loop = loop, .restart_max = config->restart_max, .made = on_made};

    mr_assert(herder != NULL);
    herder->loop = loop;
    herder->config = config;
    herder->catalog = catalog;
    if (open_parts(herder, err) != 0) {
        herder_free(&herder);
        return NULL;
    }
    herder->desk = (struct offset_desk){herder->sup, local_store_offsets(herder->store)};
    herder->source = standalone_new();
    options.sup = herder->sup;
    options.arg = herder;
    herder->connectors = connectors_new(&options);
    herder->source->run_on(herder->source, herder->connectors);
    return herder;
}

void herder_free(struct herder **herderp)
{
    struct herder *herder = *herderp;

    *herderp = NULL;
    if (herder == NULL)
        return;
    herder->stopping = true;
    loop_timer_cancel(&herder->stop_guard);
    cluster_probe_free(&herder->probe);
    connectors_free(&herder->connectors);
    local_store_close(&herder->store); /* its last answers go to hosts */
    supervisor_free(&herder->sup);
    if (herder->source != NULL)
        herder->source->free(herder->source);
    free(herder->cluster_id);
    free(herder);
}
