/* SPDX-License-Identifier: Apache-2.0 */
/* The herder: REST's and the command line's door to everything that runs. It validates, hands changes to the source of
 * configurations (conn_source.h: standalone.c or distributed.c), and answers reads from memory, in any state.
 *
 *   rest ──► herder ──► judge ──► validate, plugin_check
 *              │  └──► source (what should run)     ──► connectors (in order) ──► lifecycle (state machine) ──► supervisor
 *              │                                             ▲                                                     │ events
 *              └──► offset_desk ◄──► store thread            └─────────────────────────────────────────────────────┘
 *
 * Loop thread only; nothing here blocks. Every `done` runs exactly once. */
#define LOGGER "worker.herder"
#include "worker/herder/herder.h"

#include "base/log.h"
#include "model/conn_config.h"
#include "model/topic_tracking.h"
#include "worker/herder/cluster_probe.h"
#include "worker/herder/offset_desk.h"
#include "worker/herder/start_desk.h"
#include "worker/herder/conn_source.h"
#include "worker/herder/judge.h"
#include "worker/herder/offset_changes.h"
#include "worker/herder/log_control.h"
#include "worker/herder/sink_members.h"
#include "worker/herder/view.h"

#define MESSAGE_MAX ((size_t)16 << 20)
#define SHUTDOWN_SPARE_MS \
    3000 /* over the graceful timeout, before hosts that are left are left to be killed */
#define LEAVE_MS 5000 /* the member gives up after 3 s by itself */
#define HELLO_MS 10000

#define say(conn, task, ...) log_write_for(LOG_INFO, LOGGER, conn, task, __VA_ARGS__)

struct herder {
    struct loop *loop;
    const struct worker_config *config;
    const struct catalog *catalog;
    struct supervisor *sup;
    struct offset_desk desk;
    struct start_desk starts;
    struct connectors *connectors;
    struct judge *judge;
    struct conn_source *source;
    struct offset_changes *offsets;
    struct cluster_probe *probe;
    struct map *sink_members; /* "CONN-TASK" → text; sink_members.h */
    char *cluster_id;         /* NULL: not known yet */
    bool started;
    bool stopping;
    loop_fn stopped_fn;
    void *stopped_arg;
    struct loop_timer stop_guard;
    void (*readable)(void *arg);
    void (*failed)(void *arg, const struct mr_error *err);
    void *mode_arg;
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

static bool known(const struct herder *herder, const char *conn)
{
    struct source_conn out;

    return herder->source->find(herder->source, conn, &out);
}

/* Is this change done by another worker, or not now by anybody? Then that is answered. */
static bool elsewhere(const struct herder *herder, enum source_deed deed, const char *conn,
                      int task, herder_done done, void *arg)
{
    struct herder_answer answer = {0};
    struct mr_error err = {0};
    const char *url = NULL;

    if (herder->source->who == NULL)
        return false;
    if (herder->source->who(herder->source, deed, conn, task, &url, &err) != 0) {
        refuse_with(done, arg, &err, NULL);
        return true;
    }
    answer.elsewhere = url;
    if (url != NULL)
        done(arg, &answer);
    return url != NULL;
}

/* --- changes ---------------------------------------------------------------------------------------------------------- */

static void on_remark(void *arg, const char *key, const char *text)
{
    log_write_for(LOG_WARN, LOGGER, arg, -1, "%s has no effect: %s", key, text);
}

/* A put whose configuration is being judged. */
struct put_asked {
    struct herder *herder;
    struct herder_put put; /* names are its own; config: the judge's */
    herder_done done;
    void *arg;
};

/* Is the configuration valid? If not, the client is told all that is wrong with it. */
static bool is_valid(const struct validate_result *result, herder_done done, void *arg)
{
    struct mr_error err = {0};
    struct buf message;

    if (validate_error_count(result) == 0)
        return true;
    buf_init(&message, MESSAGE_MAX);
    mr_fail(&err, MR_ERR_CONFIG, "%s",
            validate_message(result, &message) == 0 ? message.data
                                                    : "Connector configuration is invalid");
    refuse_with(done, arg, &err, message.failed ? NULL : message.data);
    buf_deinit(&message);
    return false;
}

static void put_valid(struct herder *herder, const struct herder_put *put,
                      const struct catalog_plugin *plugin, herder_done done, void *arg)
{
    struct source_put store = {.name = put->conn,
                               .plugin = plugin,
                               .config = put->config,
                               .target = put->no_initial ? NULL : &put->initial};
    struct source_conn before = {.name = put->conn, .plugin = plugin, .config = put->config};
    struct pending *pending;
    bool created;

    if (elsewhere(herder, SOURCE_LEADS, put->conn, -1, done, arg))
        return;
    created = !herder->source->find(herder->source, put->conn, &before);
    if (put->create_only && !created) {
        refuse(done, arg, MR_ERR_EXISTS, "Connector %s already exists", put->conn);
        return;
    }
    pending = pending_new(herder, put->conn, done, arg);
    pending->created = created;
    before.config = put->config;
    before.plugin = plugin;
    pending->info = view_info(&before);
    herder->source->put(herder->source, &store, on_put, pending);
}

static void on_put_judged(void *arg, const struct validate_input *input,
                          const struct validate_result *result, const struct mr_error *err)
{
    struct put_asked *asked = arg;

    if (err != NULL) {
        refuse_with(asked->done, asked->arg, err, NULL);
    } else if (is_valid(result, asked->done, asked->arg)) {
        asked->put.config = input->raw != NULL ? input->raw : input->config;
        validate_remarks(input->config, result, on_remark, (void *)(uintptr_t)asked->put.conn);
        put_valid(asked->herder, &asked->put, result->plugin, asked->done, asked->arg);
    }
    free((char *)(uintptr_t)asked->put.conn);
    free(asked);
}

void herder_put(struct herder *herder, const struct herder_put *put, herder_done done, void *arg)
{
    struct put_asked *asked = calloc(1, sizeof(*asked));

    mr_assert(asked != NULL);
    *asked = (struct put_asked){herder, *put, done, arg};
    asked->put.conn = strdup(put->conn);
    mr_assert(asked->put.conn != NULL);
    judge_config(herder->judge, put->config, on_put_judged, asked);
}

static void merge(struct props *config, const struct props *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->entries[i].value == NULL)
            props_remove(config, changes->entries[i].key);
        else
            mr_assert(props_set(config, changes->entries[i].key, changes->entries[i].value) == 0);
    }
}

void herder_patch(struct herder *herder, const char *conn, const struct props *changes,
                  herder_done done, void *arg)
{
    struct herder_put put = {.conn = conn, .no_initial = true};
    struct source_conn stored;
    struct props merged;

    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!herder->source->find(herder->source, conn, &stored)) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
        return;
    }
    mr_assert(props_copy(&merged, stored.config) == 0);
    merge(&merged, changes);
    put.config = &merged;
    if (merged.count > CONN_CONFIG_KEYS_MAX)
        refuse(done, arg, MR_ERR_CONFIG, "A connector's configuration may have at most %d keys",
               CONN_CONFIG_KEYS_MAX);
    else
        herder_put(herder, &put, done, arg);
    props_deinit(&merged);
}

void herder_delete(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!known(herder, conn))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    else
        herder->source->remove(herder->source, conn, on_done, pending_new(herder, conn, done, arg));
}

void herder_set_target(struct herder *herder, const char *conn, enum target_state target,
                       herder_done done, void *arg)
{
    enum source_deed deed = target == TARGET_STOPPED ? SOURCE_LEADS : SOURCE_ANYBODY;

    if (!known(herder, conn))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Unknown connector %s", conn);
    else if (!elsewhere(herder, deed, conn, -1, done, arg))
        herder->source->target(herder->source, conn, target, on_done,
                               pending_new(herder, conn, done, arg));
}

/* The state of a connector with those parts of it that a restart means shown as RESTARTING. A deleted one has its state until that
 * is removed too: who waits for its end may use the name again then. */
static json_t *marked_status(const struct herder *herder, const char *conn,
                             const struct connectors_plan *plan)
{
    struct source_conn stored;
    struct source_state state;
    json_t *status;

    if (!herder->source->state(herder->source, conn, -1, &state))
        return NULL;
    if (!herder->source->find(herder->source, conn, &stored))
        stored.plugin = NULL;
    if (plan->connector && (!plan->only_failed || state.state == STATE_FAILED))
        state.state = STATE_RESTARTING;
    status = view_status(conn, &state, stored.plugin);
    for (int t = -1; (t = herder->source->next_task(herder->source, conn, t)) >= 0;) {
        herder->source->state(herder->source, conn, t, &state);
        if (plan->tasks && (!plan->only_failed || state.state == STATE_FAILED))
            state.state = STATE_RESTARTING;
        view_add_task(status, t, &state);
    }
    return status;
}

/* A restart by plan is answered with the states as they are marked, before anything restarts. */
static void on_plan(void *arg, const struct mr_error *err)
{
    struct pending *pending = arg;
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};
    json_t *status = NULL;

    if (err == NULL)
        status = pending->info != NULL ? json_incref(pending->info)
                                       : herder_status(pending->herder, pending->conn);
    answer.body = status;
    pending_end(pending, &answer);
    json_decref(status);
}

static void restart_by_plan(struct herder *herder, const char *conn,
                            const struct connectors_plan *plan, herder_done done, void *arg)
{
    json_t *marked = herder->source->marks ? NULL : marked_status(herder, conn, plan);
    struct pending *pending;

    if (marked == NULL && !herder->source->marks) {
        refuse(done, arg, MR_ERR_NOT_FOUND, "Status for connector %s not found", conn);
        return;
    }
    pending = pending_new(herder, conn, done, arg);
    pending->info = marked;
    herder->source->restart(herder->source, conn, plan, on_plan, pending);
}

void herder_restart(struct herder *herder, const char *conn, bool include_tasks, bool only_failed,
                    herder_done done, void *arg)
{
    struct connectors_plan plan = {
        .connector = true, .tasks = include_tasks, .only_failed = only_failed};
    bool flagged = include_tasks || only_failed;

    if (!known(herder, conn)) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               flagged || herder->source->who != NULL ? "Unknown connector: %s"
                                                      : "Connector %s not found",
               conn);
        return;
    }
    if (elsewhere(herder, flagged ? SOURCE_LEADS_SETTLED : SOURCE_OWNS, conn, -1, done, arg))
        return;
    say(conn, -1, "restart of the connector%s%s", include_tasks ? " and its tasks" : "",
        only_failed ? ", of what is FAILED" : "");
    if (flagged)
        restart_by_plan(herder, conn, &plan, done, arg);
    else
        herder->source->restart(herder->source, conn, &plan, on_done,
                                pending_new(herder, conn, done, arg));
}

void herder_restart_task(struct herder *herder, const char *conn, int task, herder_done done,
                         void *arg)
{
    bool cluster = herder->source->who != NULL;
    struct source_conn stored;

    if (!herder->source->find(herder->source, conn, &stored)) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               cluster ? "Unknown connector: %s" : "Connector %s not found", conn);
    } else if (task < 0 || (size_t)task >= stored.task_count) {
        refuse(done, arg, MR_ERR_NOT_FOUND,
               cluster ? "Unknown task: %s-%d" : "Task %s-%d not found", conn, task);
    } else if (!elsewhere(herder, SOURCE_OWNS, conn, task, done, arg)) {
        say(conn, task, "restart of the task");
        herder->source->restart_task(herder->source, conn, task, on_done,
                                     pending_new(herder, conn, done, arg));
    }
}

void herder_offsets(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    offset_changes_read(herder->offsets, conn, done, arg);
}

void herder_change_offsets(struct herder *herder, const char *conn, const json_t *entries,
                           herder_done done, void *arg)
{
    offset_changes_apply(herder->offsets, conn, entries, done, arg);
}

int herder_check_claim(const struct herder *herder, const struct herder_claim *claim,
                       struct mr_error *err)
{
    if (herder->source->is_signed != NULL)
        return herder->source->is_signed(herder->source, claim, err);
    mr_fail(err, MR_ERR_UNSUPPORTED,
            "Kafka Connect in standalone mode does not support externally setting task "
            "configurations.");
    return 500;
}

void herder_put_tasks(struct herder *herder, const char *conn, const struct props *configs,
                      size_t count, herder_done done, void *arg)
{
    struct source_conn stored;

    if (elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        return;
    if (!herder->source->find(herder->source, conn, &stored))
        refuse(done, arg, MR_ERR_NOT_FOUND, "Connector %s not found", conn);
    else if (stored.target == TARGET_STOPPED && count > 0)
        refuse(done, arg, MR_ERR_CONFIG,
               "Cannot submit non-empty set of task configs for stopped connector %s", conn);
    else
        herder->source->tasks(herder->source, conn, configs, count, on_done,
                              pending_new(herder, conn, done, arg));
}

void herder_fence(struct herder *herder, const char *conn, herder_done done, void *arg)
{
    if (herder->source->fence == NULL)
        refuse(done, arg, MR_ERR_FATAL,
               "Kafka Connect in standalone mode does not support exactly-once source connectors.");
    else if (!elsewhere(herder, SOURCE_LEADS, conn, -1, done, arg))
        herder->source->fence(herder->source, conn, false, on_done,
                              pending_new(herder, conn, done, arg));
}

struct peer *herder_peer(const struct herder *herder)
{
    return herder->source->peer;
}

/* --- reads ------------------------------------------------------------------------------------------------------------ */

json_t *herder_root(struct herder *herder)
{
    return view_root(herder->cluster_id);
}

static const char *source_stage(const struct herder *herder)
{
    return herder->source->stage != NULL ? herder->source->stage(herder->source) : NULL;
}

bool herder_readable(const struct herder *herder)
{
    return herder->source->readable == NULL || herder->source->readable(herder->source);
}

bool herder_ready(const struct herder *herder)
{
    return herder->started && herder->cluster_id != NULL && !herder->stopping &&
           source_stage(herder) == NULL;
}

const char *herder_unwell(const struct herder *herder)
{
    return herder->source->unwell != NULL ? herder->source->unwell(herder->source) : NULL;
}

const char *herder_stage(const struct herder *herder)
{
    if (herder->stopping)
        return "ending connectors and tasks";
    if (!herder->started)
        return "creating the connectors of the command line";
    if (source_stage(herder) != NULL)
        return source_stage(herder);
    return herder->cluster_id == NULL ? "waiting for the Kafka cluster to answer"
                                      : "waiting for requests and events";
}

json_t *herder_names(struct herder *herder)
{
    json_t *names = json_array();
    struct source_conn conn;

    for (size_t i = 0; herder->source->next(herder->source, &i, &conn);)
        json_array_append_new(names, json_string(conn.name));
    return names;
}

json_t *herder_info(struct herder *herder, const char *name)
{
    struct source_conn conn;

    return herder->source->find(herder->source, name, &conn) ? view_info(&conn) : NULL;
}

json_t *herder_config(struct herder *herder, const char *name)
{
    struct source_conn conn;

    return herder->source->find(herder->source, name, &conn) ? json_from_props(conn.config) : NULL;
}

json_t *herder_status(struct herder *herder, const char *name)
{
    static const struct connectors_plan nothing = {.connector = false};

    return marked_status(herder, name, &nothing);
}

json_t *herder_tasks(struct herder *herder, const char *name)
{
    struct source_conn conn;
    json_t *list;

    if (!herder->source->find(herder->source, name, &conn))
        return NULL;
    list = json_array();
    for (int i = 0; i < (int)conn.task_count; i++)
        json_array_append_new(
            list, view_task_config(name, i, herder->source->task(herder->source, name, i)));
    return list;
}

json_t *herder_task_status(struct herder *herder, const char *name, int task)
{
    struct source_state state;

    return task >= 0 && herder->source->state(herder->source, name, task, &state)
               ? view_task(task, &state)
               : NULL;
}

json_t *herder_plugins(struct herder *herder, bool connectors_only)
{
    return view_plugins(herder->catalog, connectors_only);
}

json_t *herder_topics(struct herder *herder, const char *conn, struct mr_error *err)
{
    json_t *topics;
    const char *topic;

    if (!topic_tracking_wanted(&herder->config->props)) {
        mr_fail(err, MR_ERR_UNSUPPORTED, "Topic tracking is disabled.");
        return NULL;
    }
    topics = json_array();
    for (size_t i = 0; (topic = herder->source->next_topic(herder->source, conn, &i)) != NULL;)
        json_array_append_new(topics, json_string(topic));
    return json_pack("{s:{s:o}}", conn, "topics", topics);
}

int herder_reset_topics(struct herder *herder, const char *conn, struct mr_error *err)
{
    if (!topic_tracking_wanted(&herder->config->props))
        return mr_fail(err, MR_ERR_UNSUPPORTED, "Topic tracking is disabled.");
    if (!topic_tracking_resets(&herder->config->props))
        return mr_fail(err, MR_ERR_UNSUPPORTED, "Topic tracking reset is disabled.");
    herder->source->forget_topics(herder->source, conn);
    return 0;
}

/* A validation that waits for plugin code. */
struct validation_asked {
    herder_done done;
    void *arg;
};

static void on_judged(void *arg, const struct validate_input *input,
                      const struct validate_result *result, const struct mr_error *err)
{
    struct validation_asked *asked = arg;
    struct herder_answer answer = {.err = err, .message = err != NULL ? err->text : NULL};
    struct mr_error unread = {0};

    if (err != NULL &&
        err->code == MR_ERR_IO) { /* a reference's file; this endpoint names the class, too */
        mr_fail(&unread, MR_ERR_IO, "org.apache.kafka.common.config.ConfigException: %s",
                err->text);
        answer.err = &unread;
        answer.message = unread.text;
    }
    answer.body = err == NULL ? validate_reply(input, result) : NULL;
    if (err == NULL && answer.body == NULL)
        refuse(asked->done, asked->arg, MR_ERR_NOMEM, "out of memory");
    else
        asked->done(asked->arg, &answer);
    json_decref((json_t *)(uintptr_t)answer.body);
    free(asked);
}

void herder_validate(struct herder *herder, const struct props *config, herder_done done, void *arg)
{
    struct validation_asked *asked = calloc(1, sizeof(*asked));

    mr_assert(asked != NULL);
    *asked = (struct validation_asked){done, arg};
    judge_config(herder->judge, config, on_judged, asked);
}

json_t *herder_plugin_keys(struct herder *herder, const char *plugin, const char *version,
                           struct mr_error *err)
{
    const struct catalog_plugin *found = catalog_find(herder->catalog, 0, plugin);

    for (uint32_t kind = MR_PLUGIN_CONVERTER; found == NULL && kind <= MR_PLUGIN_HEADER_CONVERTER;
         kind++)
        found = catalog_find(herder->catalog, kind, plugin);
    if (found == NULL)
        mr_fail(err, MR_ERR_NOT_FOUND, "Unknown plugin %s.", plugin);
    else if (validate_version(found, version, err) == 0)
        return validate_definitions(found);
    return NULL;
}

bool herder_knows(struct herder *herder, const char *conn)
{
    return known(herder, conn);
}

/* --- loggers ---------------------------------------------------------------------------------------------------------- */

json_t *herder_loggers(struct herder *herder)
{
    (void)herder;
    return log_control_list();
}

json_t *herder_logger(struct herder *herder, const char *name)
{
    (void)herder;
    return log_control_get(name);
}

static void set_here(struct herder *herder, const char *name, enum log_level level,
                     herder_done done, void *arg)
{
    struct mr_error err = {0};
    json_t *changed = log_control_set(herder->sup, name, level, &err);
    struct herder_answer answer = {.body = changed};

    if (changed == NULL)
        refuse_with(done, arg, &err, NULL);
    else
        done(arg, &answer);
    json_decref(changed);
}

bool herder_set_logger(struct herder *herder, const char *name, const char *level,
                       bool whole_cluster, herder_done done, void *arg)
{
    enum log_level parsed;

    if (!log_control_level(level, &parsed))
        return false;
    if (whole_cluster && herder->source->logger != NULL)
        herder->source->logger(herder->source, name, log_level_name(parsed), on_done,
                               pending_new(herder, name, done, arg));
    else
        set_here(herder, name, parsed, done, arg);
    return true;
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

static void on_told(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    struct herder *herder = arg;

    herder->source->told(herder->source, conn, task, state, trace);
}

static void on_share(void *arg, const char *conn, struct share *out)
{
    struct herder *herder = arg;

    herder->source->share(herder->source, conn, out);
}

static void on_shared(void *arg, const char *conn)
{
    struct herder *herder = arg;

    herder->source->shared(herder->source, conn);
}

static void on_task(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    connectors_on_task(((struct herder *)arg)->connectors, conn, task, state, trace);
}

static void on_task_member(void *arg, const char *conn, int task, const char *member)
{
    struct herder *herder = arg;

    sink_members_joined(herder->sink_members, herder->source, conn, task, member);
}

static void on_offsets_get(void *arg, const char *conn, int64_t id, const json_t *partitions)
{
    offset_desk_get(&((struct herder *)arg)->desk, conn, id, partitions);
}

static void on_offsets_put(void *arg, const char *conn, int64_t id, const json_t *entries)
{
    offset_desk_put(&((struct herder *)arg)->desk, conn, id, entries);
}

static void on_topic_used(void *arg, const char *conn, int task, const char *topic)
{
    struct herder *herder = arg;

    if (topic_tracking_wanted(&herder->config->props))
        herder->source->topic_used(herder->source, conn, task, topic);
}

static void on_start_check(void *arg, const char *conn, int64_t id, int task, int64_t generation)
{
    start_desk_check(&((struct herder *)arg)->starts, conn, id, task, generation);
}

static void on_fence(void *arg, const char *conn, int64_t id)
{
    start_desk_fence(&((struct herder *)arg)->starts, conn, id);
}

static void on_died(void *arg, const char *conn, const struct supervisor_death *death)
{
    connectors_on_died(((struct herder *)arg)->connectors, conn, death);
}

static const struct supervisor_events supervisor_events = {
    .connector_status = on_connector,
    .task_configs = on_configs,
    .task_status = on_task,
    .task_member = on_task_member,
    .offsets_get = on_offsets_get,
    .offsets_put = on_offsets_put,
    .start_check = on_start_check,
    .fence = on_fence,
    .topic_used = on_topic_used,
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

static void on_leave_guard(void *arg)
{
    log_warn("leaving the cluster took too long: the others wait this worker's session out");
    on_stopped(arg);
}

/* Nothing runs any more: a cluster is told that we leave, which has a time of its own. */
static void on_connectors_ended(void *arg)
{
    struct herder *herder = arg;

    if (herder->source->shutdown == NULL) {
        on_stopped(herder);
        return;
    }
    loop_timer_start(herder->loop, &herder->stop_guard, LEAVE_MS, on_leave_guard, herder);
    herder->source->shutdown(herder->source, on_stopped, herder);
}

void herder_shutdown(struct herder *herder, loop_fn fn, void *arg)
{
    herder->stopping = true;
    herder->stopped_fn = fn;
    herder->stopped_arg = arg;
    cluster_probe_stop(herder->probe);
    loop_timer_start(herder->loop, &herder->stop_guard,
                     herder->config->graceful_ms + SHUTDOWN_SPARE_MS, on_stop_guard, herder);
    connectors_shutdown(herder->connectors, on_connectors_ended, herder);
}

static void on_source_failed(void *arg, const struct mr_error *err)
{
    struct herder *herder = arg;

    herder->failed(herder->mode_arg, err);
}

static void on_source_readable(void *arg)
{
    struct herder *herder = arg;

    herder->readable(herder->mode_arg);
}

static int open_parts(struct herder *herder, const struct herder_options *options,
                      struct mr_error *err)
{
    struct supervisor_options sup = {.exe = "/proc/self/exe",
                                     .run_dir = herder->config->run_dir,
                                     .worker_props = &herder->config->props,
                                     .secrets = herder->config->secrets,
                                     .providers = herder->config->providers,
                                     .catalog = herder->catalog,
                                     .graceful_ms = herder->config->graceful_ms,
                                     .hello_ms = HELLO_MS};
    struct source_parts parts = {.loop = herder->loop,
                                 .config = herder->config,
                                 .catalog = herder->catalog,
                                 .readable = on_source_readable,
                                 .failed = on_source_failed,
                                 .arg = herder};

    herder->sup = supervisor_new(herder->loop, &sup, &supervisor_events, herder, err);
    parts.sup = herder->sup;
    if (herder->sup == NULL || (herder->source = options->open(&parts, err)) == NULL)
        return -1;
    herder->probe = cluster_probe_start(herder->loop, herder->config, on_cluster_id, herder, err);
    return herder->probe != NULL ? 0 : -1;
}

static void open_connectors(struct herder *herder)
{
    bool shares = herder->source->share != NULL;
    struct connectors_options options = {.loop = herder->loop,
                                         .sup = herder->sup,
                                         .restart_max = herder->config->restart_max,
                                         .made = on_made,
                                         .told = shares ? on_told : NULL,
                                         .share = shares ? on_share : NULL,
                                         .shared = shares ? on_shared : NULL,
                                         .arg = herder};

    herder->connectors = connectors_new(&options);
    herder->source->run_on(herder->source, herder->connectors);
}

struct herder *herder_new(const struct herder_options *options, struct mr_error *err)
{
    struct herder *herder = calloc(1, sizeof(*herder));

    mr_assert(herder != NULL);
    herder->sink_members = map_new();
    herder->loop = options->loop;
    herder->config = options->config;
    herder->catalog = options->catalog;
    herder->failed = options->failed;
    herder->readable = options->readable;
    herder->mode_arg = options->arg;
    if (open_parts(herder, options, err) != 0) {
        herder_free(&herder);
        return NULL;
    }
    herder->desk = (struct offset_desk){herder->sup, herder->source->offsets};
    herder->starts =
        (struct start_desk){herder->loop, herder->sup, herder->source, herder->sink_members};
    herder->judge = judge_new(herder->loop, herder->catalog, herder->config);
    herder->offsets = offset_changes_new(herder->loop, herder->source, herder->config);
    open_connectors(herder);
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
    judge_free(&herder->judge);
    connectors_free(&herder->connectors);
    if (herder->offsets != NULL)
        offset_changes_stop(herder->offsets);
    if (herder->source != NULL)
        herder->source->free(herder->source); /* its last answers go to hosts, and to these: */
    offset_changes_free(&herder->offsets);
    supervisor_free(&herder->sup);
    map_free(&herder->sink_members, free);
    free(herder->cluster_id);
    free(herder);
}
