/* SPDX-License-Identifier: Apache-2.0 */
/* The configurations of a standalone worker, in memory: what the herder stores here is what runs, at once. This is the whole
 * difference between the two modes that the rest of the herder sees: a change is stored, then connectors.c is told; task
 * configurations that a connector made are stored, then run. Loop thread only. */
#define LOGGER "worker.herder"
#include "worker/herder/standalone.h"

#include "base/log.h"
#include "base/map.h"

#define say(name, ...) log_write_for(LOG_INFO, LOGGER, name, -1, __VA_ARGS__)

struct standalone {
    struct conn_source source;
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

static void forget_tasks(struct source_conn *conn)
{
    for (size_t i = 0; i < conn->task_count; i++)
        props_deinit(&conn->tasks[i]);
    free(conn->tasks);
    conn->tasks = NULL;
    conn->task_count = 0;
}

static void free_conn(void *value)
{
    struct source_conn *conn = value;

    forget_tasks(conn);
    props_deinit(&conn->config);
    free(conn->name);
    free(conn);
}

static struct standalone *self_of(struct conn_source *source)
{
    return (struct standalone *)source;
}

static struct source_conn *add(struct standalone *sa, const char *name)
{
    struct source_conn *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL);
    conn->name = strdup(name);
    mr_assert(conn->name != NULL);
    props_init(&conn->config);
    map_set(sa->conns, name, conn);
    return conn;
}

static void forget(struct standalone *sa, const char *name)
{
    struct source_conn *conn = map_remove(sa->conns, name);

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
    const struct source_conn *conn = map_get(birth->sa->conns, birth->name);

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
        .sa = sa, .name = strdup(name), .serial = sa->serial, .done = done, .arg = arg};
    mr_assert(birth->name != NULL);
    return birth;
}

static void on_put(struct conn_source *source, const struct source_put *put, connectors_done done,
                   void *arg)
{
    struct standalone *sa = self_of(source);
    struct source_conn *conn = map_get(sa->conns, put->name);
    struct birth *birth = NULL;
    struct lifecycle_work work;

    if (refused(sa, put->name, done, arg))
        return;
    sa->serial++;
    if (conn == NULL) {
        conn = add(sa, put->name);
        conn->target = put->target;
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
    struct source_conn *conn = map_get(sa->conns, name);

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

/* The class of its tasks, as Connect writes it into their configurations. */
static void add_task_class(const struct catalog_plugin *plugin, struct props *config)
{
    static const char suffix[] = "Connector";
    size_t len = strlen(plugin->java_class), end = sizeof(suffix) - 1;
    char *name = NULL;

    if (len > end && strcmp(plugin->java_class + len - end, suffix) == 0)
        len -= end;
    mr_assert(asprintf(&name, "%.*sTask", (int)len, plugin->java_class) > 0);
    mr_assert(props_set(config, "task.class", name) == 0);
    free(name);
}

static void add_topics(const struct source_conn *conn, struct props *config)
{
    static const char *const keys[] = {"topics", "topics.regex"};

    for (size_t i = 0; i < 2; i++) {
        const char *value = props_get(&conn->config, keys[i]);

        if (value != NULL)
            mr_assert(props_set(config, keys[i], value) == 0);
    }
}

static void on_made(struct conn_source *source, const char *name, struct props *configs,
                    size_t count)
{
    struct standalone *sa = self_of(source);
    struct source_conn *conn = map_get(sa->conns, name);

    if (conn == NULL)
        return; /* deleted meanwhile: its host is about to end */
    for (size_t i = 0; i < count; i++) {
        add_task_class(conn->plugin, &configs[i]);
        if (conn->plugin->kind == MR_PLUGIN_SINK)
            add_topics(conn, &configs[i]);
    }
    forget_tasks(conn);
    conn->tasks = calloc(count + 1, sizeof(*conn->tasks));
    mr_assert(conn->tasks != NULL);
    for (size_t i = 0; i < count; i++)
        mr_assert(props_copy(&conn->tasks[conn->task_count++], &configs[i]) == 0);
    connectors_run(sa->connectors, name, configs, count);
}

static const struct source_conn *find(const struct conn_source *source, const char *name)
{
    return map_get(((const struct standalone *)source)->conns, name);
}

static const struct source_conn *next(const struct conn_source *source, size_t *cursor)
{
    void *value = NULL;

    return map_next(((const struct standalone *)source)->conns, cursor, NULL, &value) ? value
                                                                                      : NULL;
}

static void run_on(struct conn_source *source, struct connectors *connectors)
{
    self_of(source)->connectors = connectors;
}

static void on_free(struct conn_source *source)
{
    struct standalone *sa = self_of(source);

    map_free(&sa->conns, free_conn);
    free(sa);
}

struct conn_source *standalone_new(void)
{
    struct standalone *sa = calloc(1, sizeof(*sa));

    mr_assert(sa != NULL);
    sa->source = (struct conn_source){.run_on = run_on,
                                      .find = find,
                                      .next = next,
                                      .put = on_put,
                                      .remove = on_remove,
                                      .target = on_target,
                                      .made = on_made,
                                      .free = on_free};
    sa->conns = map_new();
    return &sa->source;
}
