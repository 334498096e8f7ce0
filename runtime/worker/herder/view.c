/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of REST answers that show what the herder knows. Member order is part of the format: jansson keeps the order of
 * insertion. Our own facts are members of their own at the top level, and never values that clients parse. Called by
 * herder.c; pure. */
#include "worker/herder/view.h"

#ifndef MILLRACE_COMMIT
#define MILLRACE_COMMIT "unknown" /* as Connect says of a build without one */
#endif

static const char *type_name(const struct catalog_plugin *plugin)
{
    return plugin->kind == MR_PLUGIN_SINK ? "sink" : "source";
}

json_t *view_root(const char *cluster_id)
{
    return json_pack("{s:s, s:s, s:s?, s:{s:s}}", "version", VIEW_CONNECT_VERSION, "commit",
                     MILLRACE_COMMIT, "kafka_cluster_id", cluster_id, "millrace", "version",
                     MILLRACE_VERSION);
}

static json_t *task_id(const char *conn, size_t task)
{
    return json_pack("{s:s, s:I}", "connector", conn, "task", (json_int_t)task);
}

json_t *view_info(const char *conn, const struct props *config, const struct catalog_plugin *plugin,
                  size_t task_count)
{
    json_t *tasks = json_array();

    for (size_t i = 0; i < task_count; i++)
        json_array_append_new(tasks, task_id(conn, i));
    return json_pack("{s:s, s:o, s:o, s:s}", "name", conn, "config", json_from_props(config),
                     "tasks", tasks, "type", type_name(plugin));
}

json_t *view_tasks(const char *conn, const struct props *tasks, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:o, s:o}", "id", task_id(conn, i), "config",
                                              json_from_props(&tasks[i])));
    return list;
}

/* Traces hold what plugins said, in any bytes: what is no UTF-8 becomes '?'. */
static json_t *any_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL)
        return value;
    copy = strdup(text);
    mr_assert(copy != NULL);
    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

static void add_state(json_t *to, enum state state, const char *worker_id, const char *version,
                      const char *trace)
{
    json_object_set_new(to, "state", json_string(state_name(state)));
    json_object_set_new(to, "worker_id", json_string(worker_id != NULL ? worker_id : ""));
    if (version != NULL)
        json_object_set_new(to, "version", any_text(version));
    if (trace != NULL && trace[0] != '\0')
        json_object_set_new(to, "trace", any_text(trace));
}

static json_t *task_state(const struct lifecycle_view *view, const struct task_life *task,
                          const char *worker_id)
{
    json_t *object = json_pack("{s:i}", "id", task->number);

    add_state(object, task->state, worker_id, view->version, task->trace);
    return object;
}

json_t *view_status(const char *conn, const struct lifecycle *lc,
                    const struct catalog_plugin *plugin, const char *worker_id)
{
    json_t *connector = json_object(), *tasks = json_array();
    struct lifecycle_view view;

    lifecycle_view(lc, &view);
    add_state(connector, view.state, worker_id, view.version, view.trace);
    for (size_t i = 0; i < view.tasks->count; i++)
        json_array_append_new(tasks, task_state(&view, &view.tasks->list[i], worker_id));
    return json_pack("{s:s, s:o, s:o, s:s}", "name", conn, "connector", connector, "tasks", tasks,
                     "type", type_name(plugin));
}

json_t *view_task_status(const struct lifecycle *lc, int number, const char *worker_id)
{
    struct lifecycle_view view;
    const struct task_life *task;

    lifecycle_view(lc, &view);
    task = task_life_find(view.tasks, number);
    return task != NULL ? task_state(&view, task, worker_id) : NULL;
}

static void add_plugins(json_t *list, const struct catalog *catalog, uint32_t kind,
                        const char *type)
{
    for (size_t i = 0; i < catalog_count(catalog); i++) {
        const struct catalog_plugin *plugin = catalog_at(catalog, i);
        json_t *object;

        if (plugin->kind != kind)
            continue;
        object = json_pack("{s:s, s:s}", "class", plugin->java_class, "type", type);
        if (object != NULL && plugin->version != NULL)
            json_object_set_new(object, "version", json_string(plugin->version));
        json_array_append_new(list, object);
    }
}

json_t *view_plugins(const struct catalog *catalog, bool connectors_only)
{
    json_t *list = json_array();

    add_plugins(list, catalog, MR_PLUGIN_SINK, "sink");
    add_plugins(list, catalog, MR_PLUGIN_SOURCE, "source");
    if (!connectors_only) {
        add_plugins(list, catalog, MR_PLUGIN_CONVERTER, "converter");
        add_plugins(list, catalog, MR_PLUGIN_CONVERTER, "header_converter");
    }
    return list;
}
