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

static void forget_tasks(struct standalone_conn *conn)
{
    for (size_t i = 0; i < conn->task_count; i++)
        props_deinit(&conn->tasks[i]);
    free(conn->tasks);
    conn->tasks = NULL;
    conn->task_count = 0;
}

static void free_conn(void *value)
{
    struct standalone_conn *conn = value;

    forget_tasks(conn);
    props_deinit(&conn->config);
    free(conn->name);
    free(conn);
}

static struct standalone_conn *add(struct standalone *sa, const char *name)
{
    struct standalone_conn *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL);
    conn->name = strdup(name);
    mr_assert(conn->name != NULL);
    props_init(&conn->config);
    map_set(sa->conns, name, conn);
    return conn;
}

static void forget(struct standalone *sa, const char *name)
{
    struct standalone_conn *conn = map_remove(sa->conns, name);

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
    const struct standalone_conn *conn = standalone_find(birth->sa, birth->name);

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

void standalone_put(struct standalone *sa, const struct standalone_put *put, connectors_done done,
                    void *arg)
{
    struct standalone_conn *conn = map_get(sa->conns, put->name);
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
    work = (struct lifecycle_work){conn->plugin, &conn->config, conn->target};
    if (birth != NULL)
        connectors_apply(sa->connectors, put->name, &work, on_born, birth);
    else
        connectors_apply(sa->connectors, put->name, &work, done, arg);
}

void standalone_delete(struct standalone *sa, const char *name, connectors_done done, void *arg)
{
    if (refused(sa, name, done, arg))
        return;
    say(name, "deleted");
    forget(sa, name);
    connectors_remove(sa->connectors, name, done, arg);
}

void standalone_target(struct standalone *sa, const char *name, enum target_state target,
                       connectors_done done, void *arg)
{
    struct standalone_conn *conn = map_get(sa->conns, name);

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

static void add_topics(const struct standalone_conn *conn, struct props *config)
{
    static const char *const keys[] = {"topics", "topics.regex"};

    for (size_t i = 0; i < 2; i++) {
        const char *value = props_get(&conn->config, keys[i]);

        if (value != NULL)
            mr_assert(props_set(config, keys[i], value) == 0);
    }
}

void standalone_made(void *arg, const char *name, struct props *configs, size_t count)
{
    struct standalone *sa = arg;
    struct standalone_conn *conn = map_get(sa->conns, name);

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

const struct standalone_conn *standalone_find(const struct standalone *sa, const char *name)
{
    return map_get(sa->conns, name);
}

const struct standalone_conn *standalone_next(const struct standalone *sa, size_t *cursor)
{
    void *value = NULL;

    return map_next(sa->conns, cursor, NULL, &value) ? value : NULL;
}

void standalone_run_on(struct standalone *sa, struct connectors *connectors)
{
    sa->connectors = connectors;
}

struct standalone *standalone_new(void)
{
    struct standalone *sa = calloc(1, sizeof(*sa));

    mr_assert(sa != NULL);
    sa->conns = map_new();
    return sa;
}

void standalone_free(struct standalone **sap)
{
    struct standalone *sa = *sap;

    *sap = NULL;
    if (sa == NULL)
        return;
    map_free(&sa->conns, free_conn);
    free(sa);
}
