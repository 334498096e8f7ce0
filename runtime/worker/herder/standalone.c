/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations of a standalone worker, in memory: what the herder stores here is what runs,
 * at once. This is the whole difference between the two modes that the rest of the herder sees: a
 * change is stored, then connectors.c is told; task configurations that a connector made are
 * stored, then run. Loop thread only. */
#define LOGGER "worker.herder"
#include "worker/herder/standalone.h"

#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "model/topic_tracking.h"
#include "worker/herder/task_config.h"
#include "worker/store/local_store.h"
#include "worker/supervisor/supervisor.h"

#define say(name, ...) log_write_for(LOG_INFO, LOGGER, name, -1, __VA_ARGS__)

/* serial: of the configuration: another one with each put */
struct stored {
    char *name;
    const struct catalog_plugin *plugin;
    struct props config;
    enum target_state target;
    uint64_t serial;
    struct props *tasks;
    size_t task_count;
    struct map *topics; /* that it has used: → anything */
};

struct standalone {
    struct conn_source source;
    const struct worker_config *config;
    struct local_store *store;
    struct supervisor *sup;
    struct map *conns;
    uint64_t serial;
    struct connectors *connectors;
};

/* A first start that is under way. */
struct birth {
    struct standalone *sa;
    char *name;
    uint64_t serial;
    connectors_done done;
    void *arg;
};

static void forget_tasks(struct stored *conn)
{
    for (size_t i = 0; i < conn->task_count; i++)
        props_deinit(&conn->tasks[i]);
    free(conn->tasks);
    conn->tasks = NULL;
    conn->task_count = 0;
}

static void free_conn(void *value)
{
    struct stored *conn = value;

    forget_tasks(conn);
    props_deinit(&conn->config);
    map_free(&conn->topics, NULL);
    free(conn->name);
    free(conn);
}

static struct standalone *self_of(struct conn_source *source)
{
    return (struct standalone *)source;
}

static struct stored *add(struct standalone *sa, const char *name)
{
    struct stored *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL);
    conn->name = text_dup(name);
    props_init(&conn->config);
    conn->topics = map_new();
    map_set(sa->conns, name, conn);
    return conn;
}

static void forget(struct standalone *sa, const char *name)
{
    struct stored *conn = map_remove(sa->conns, name);

    if (conn != NULL)
        free_conn(conn);
}

static void birth_free(struct birth *birth)
{
    free(birth->name);
    free(birth);
}

static void on_born(void *arg, const struct mr_error *err)
{
    struct birth *birth = arg;
    const struct stored *conn = map_get(birth->sa->conns, birth->name);

    if (err != NULL && conn != NULL && conn->serial == birth->serial) {
        log_write_for(LOG_ERROR, LOGGER, birth->name, -1, "not created, since its start failed: %s",
                      err->text);
        forget(birth->sa, birth->name);
        connectors_remove(birth->sa->connectors, birth->name, NULL, NULL);
    }
    birth->done(birth->arg, err);
    birth_free(birth);
}

static bool refused(const struct standalone *sa, const char *name, connectors_done done, void *arg)
{
    struct mr_error err = {0};

    if (connectors_may_change(sa->connectors, name, &err) == 0)
        return false;
    done(arg, &err);
    return true;
}

static struct birth *birth_new(struct standalone *sa, const char *name, connectors_done done,
                               void *arg)
{
    struct birth *birth = calloc(1, sizeof(*birth));

    mr_assert(birth != NULL);
    *birth = (struct birth){
        .sa = sa, .name = text_dup(name), .serial = sa->serial, .done = done, .arg = arg};
    return birth;
}

static void on_put(struct conn_source *source, const struct source_put *put, connectors_done done,
                   void *arg)
{
    struct standalone *sa = self_of(source);
    struct stored *conn = map_get(sa->conns, put->name);
    struct birth *birth = NULL;
    struct lifecycle_work work;

    if (refused(sa, put->name, done, arg))
        return;
    sa->serial++;
    if (conn == NULL) {
        conn = add(sa, put->name);
        conn->target = put->target != NULL ? *put->target : TARGET_STARTED;
        birth = birth_new(sa, put->name, done, arg);
    }
    say(put->name, "%s: %s %s, target state %s", birth != NULL ? "created" : "new configuration",
        put->plugin->java_class, put->plugin->version != NULL ? put->plugin->version : "",
        target_state_name(conn->target));
    conn->serial = sa->serial;
    conn->plugin = put->plugin;
    props_deinit(&conn->config);
    mr_assert(props_copy(&conn->config, put->config) == 0);
    work = (struct lifecycle_work){
        .plugin = conn->plugin, .config = &conn->config, .target = conn->target};
    if (birth != NULL)
        connectors_apply(sa->connectors, put->name, &work, on_born, birth);
    else
        connectors_apply(sa->connectors, put->name, &work, done, arg);
}

static void on_remove(struct conn_source *source, const char *name, connectors_done done, void *arg)
{
    struct standalone *sa = self_of(source);

    if (refused(sa, name, done, arg))
        return;
    say(name, "deleted");
    forget(sa, name);
    connectors_remove(sa->connectors, name, done, arg);
}

static void on_target(struct conn_source *source, const char *name, enum target_state target,
                      connectors_done done, void *arg)
{
    struct standalone *sa = self_of(source);
    struct stored *conn = map_get(sa->conns, name);

    if (refused(sa, name, done, arg))
        return;
    if (conn != NULL) {
        say(name, "target state %s", target_state_name(target));
        conn->target = target;
        if (target == TARGET_STOPPED)
            forget_tasks(conn);
    }
    connectors_target(sa->connectors, name, target, done, arg);
}

static void on_made(struct conn_source *source, const char *name, struct props *configs,
                    size_t count)
{
    struct standalone *sa = self_of(source);
    struct stored *conn = map_get(sa->conns, name);

    if (conn == NULL)
        return; /* deleted meanwhile: its host is about to end */
    for (size_t i = 0; i < count; i++)
        task_config_complete(&configs[i], conn->plugin, &conn->config);
    forget_tasks(conn);
    conn->tasks = calloc(count + 1, sizeof(*conn->tasks));
    mr_assert(conn->tasks != NULL);
    for (size_t i = 0; i < count; i++)
        mr_assert(props_copy(&conn->tasks[conn->task_count++], &configs[i]) == 0);
    connectors_run(sa->connectors, name, configs, count);
}

static void show(const struct stored *conn, struct source_conn *out)
{
    *out = (struct source_conn){.name = conn->name,
                                .plugin = conn->plugin,
                                .config = &conn->config,
                                .target = conn->target,
                                .task_count = conn->task_count};
}

static bool find(const struct conn_source *source, const char *name, struct source_conn *out)
{
    const struct stored *conn = map_get(((const struct standalone *)source)->conns, name);

    if (conn != NULL)
        show(conn, out);
    return conn != NULL;
}

static bool next(const struct conn_source *source, size_t *cursor, struct source_conn *out)
{
    void *value = NULL;

    if (!map_next(((const struct standalone *)source)->conns, cursor, NULL, &value))
        return false;
    show(value, out);
    return true;
}

static const struct props *on_task(const struct conn_source *source, const char *name, int task)
{
    const struct stored *conn = map_get(((const struct standalone *)source)->conns, name);

    return &conn->tasks[task];
}

/* A connector that was deleted may still be ending: it has no state any more. */
static const struct lifecycle *running(const struct conn_source *source, const char *name)
{
    const struct standalone *sa = (const struct standalone *)source;

    return map_get(sa->conns, name) != NULL ? connectors_find(sa->connectors, name) : NULL;
}

static bool on_state(const struct conn_source *source, const char *name, int task,
                     struct source_state *out)
{
    const struct lifecycle *lc = running(source, name);
    const struct task_life *it = NULL;
    struct lifecycle_view view;

    if (lc == NULL)
        return false;
    lifecycle_view(lc, &view);
    if (task >= 0 && (it = task_life_find(view.tasks, task)) == NULL)
        return false;
    *out =
        (struct source_state){.state = it != NULL ? it->state : view.state,
                              .worker_id = ((const struct standalone *)source)->config->worker_id,
                              .trace = it != NULL ? it->trace : view.trace,
                              .version = view.version};
    return true;
}

static int next_task(const struct conn_source *source, const char *name, int after)
{
    const struct lifecycle *lc = running(source, name);
    struct lifecycle_view view;

    if (lc == NULL)
        return -1;
    lifecycle_view(lc, &view);
    for (size_t i = 0; i < view.tasks->count; i++)
        if (view.tasks->list[i].number > after)
            return view.tasks->list[i].number;
    return -1;
}

static void on_restart(struct conn_source *source, const char *name,
                       const struct connectors_plan *plan, connectors_done done, void *arg)
{
    connectors_restart(self_of(source)->connectors, name, plan, done, arg);
}

static void on_restart_task(struct conn_source *source, const char *name, int task,
                            connectors_done done, void *arg)
{
    connectors_restart_task(self_of(source)->connectors, name, task, done, arg);
}

/* Everything is assigned here: what is known is what holds. */
static bool may_start(const struct conn_source *source, const char *name, int task,
                      int64_t generation)
{
    (void)generation;
    return connectors_may_start(((const struct standalone *)source)->connectors, name, task);
}

static void on_topic_used(struct conn_source *source, const char *name, int task, const char *topic)
{
    struct stored *conn = map_get(self_of(source)->conns, name);

    (void)task;
    if (conn != NULL && map_count(conn->topics) < TOPIC_TRACKING_MAX)
        map_set(conn->topics, topic, conn);
}

static const char *next_topic(const struct conn_source *source, const char *name, size_t *cursor)
{
    const struct stored *conn = map_get(((const struct standalone *)source)->conns, name);
    const char *topic;
    void *value;

    return conn != NULL && map_next(conn->topics, cursor, &topic, &value) ? topic : NULL;
}

static void forget_topics(struct conn_source *source, const char *name)
{
    struct standalone *sa = self_of(source);
    struct stored *conn = map_get(sa->conns, name);

    if (conn == NULL)
        return;
    map_free(&conn->topics, NULL);
    conn->topics = map_new();
    (void)supervisor_forget_topics(sa->sup, name); /* whose host is gone has none to tell of */
}

static void run_on(struct conn_source *source, struct connectors *connectors)
{
    self_of(source)->connectors = connectors;
}

static void on_free(struct conn_source *source)
{
    struct standalone *sa = self_of(source);

    local_store_close(&sa->store);
    map_free(&sa->conns, free_conn);
    free(sa);
}

struct conn_source *standalone_open(const struct source_parts *parts, struct mr_error *err)
{
    struct standalone *sa = calloc(1, sizeof(*sa));

    mr_assert(sa != NULL);
    sa->source = (struct conn_source){.run_on = run_on,
                                      .find = find,
                                      .next = next,
                                      .task = on_task,
                                      .state = on_state,
                                      .next_task = next_task,
                                      .put = on_put,
                                      .remove = on_remove,
                                      .target = on_target,
                                      .restart = on_restart,
                                      .restart_task = on_restart_task,
                                      .made = on_made,
                                      .may_start = may_start,
                                      .topic_used = on_topic_used,
                                      .next_topic = next_topic,
                                      .forget_topics = forget_topics,
                                      .free = on_free,
                                      .marks = true};
    sa->config = parts->config;
    sa->sup = parts->sup;
    sa->conns = map_new();
    sa->store = local_store_open(parts->config->offset_file, parts->loop, err);
    if (sa->store == NULL) {
        err_prefix(err, "offset.storage.file.filename");
        on_free(&sa->source);
        return NULL;
    }
    sa->source.offsets = local_store_offsets(sa->store);
    return &sa->source;
}
