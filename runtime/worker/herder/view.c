/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of REST answers that show what the herder knows. Member order is part of the format:
 * jansson keeps the order of insertion. Our own facts are members of their own at the top level,
 * and never values that clients parse. Called by herder_reads.c and herder_changes.c; pure. */
#include "worker/herder/view.h"

#include "base/text.h"
#include "worker/supervisor/plugin_pick.h"

#ifndef MILLRACE_COMMIT
#define MILLRACE_COMMIT "unknown" /* as Connect says of a build without one */
#endif

static const char *type_name(const struct catalog_plugin *plugin)
{
    if (plugin == NULL)
        return "unknown"; /* what is not installed is neither */
    return plugin->kind == MR_PLUGIN_SINK ? "sink" : "source";
}

json_t *view_root(const char *cluster_id)
{
    return json_pack("{s:s, s:s, s:s?}", "version", VIEW_CONNECT_VERSION, "commit", MILLRACE_COMMIT,
                     "kafka_cluster_id", cluster_id);
}

static json_t *task_id(const char *conn, size_t task)
{
    return json_pack("{s:s, s:I}", "connector", conn, "task", (json_int_t)task);
}

json_t *view_info(const struct source_conn *conn)
{
    json_t *tasks = json_array();

    for (size_t i = 0; i < conn->task_count; i++)
        json_array_append_new(tasks, task_id(conn->name, i));
    return json_pack("{s:s, s:o, s:o, s:s}", "name", conn->name, "config",
                     json_from_props(conn->config), "tasks", tasks, "type",
                     type_name(conn->plugin));
}

json_t *view_task_config(const char *conn, int task, const struct props *config)
{
    return json_pack("{s:o, s:o}", "id", task_id(conn, (size_t)task), "config",
                     json_from_props(config));
}

/* Traces hold what plugins said, in any bytes: what is no UTF-8 becomes '?'. */
static json_t *any_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL)
        return value;
    copy = text_dup(text);
    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

static void add_state(json_t *to, const struct source_state *state)
{
    json_object_set_new(to, "state", json_string(state_name(state->state)));
    json_object_set_new(to, "worker_id",
                        any_text(state->worker_id != NULL ? state->worker_id : ""));
    if (state->version == NULL || strcmp(state->version, "undefined") != 0)
        json_object_set_new(to, "version",
                            state->version != NULL ? any_text(state->version) : json_null());
    if (state->trace != NULL && state->trace[0] != '\0')
        json_object_set_new(to, "trace", any_text(state->trace));
}

json_t *view_task(int task, const struct source_state *state)
{
    json_t *object = json_pack("{s:i}", "id", task);

    add_state(object, state);
    return object;
}

json_t *view_status(const char *conn, const struct source_state *state,
                    const struct catalog_plugin *plugin)
{
    json_t *connector = json_object();

    add_state(connector, state);
    return json_pack("{s:s, s:o, s:[], s:s}", "name", conn, "connector", connector, "tasks", "type",
                     type_name(plugin));
}

void view_add_task(json_t *status, int task, const struct source_state *state)
{
    json_array_append_new(json_object_get(status, "tasks"), view_task(task, state));
}

static void add_plugins(json_t *list, const struct catalog *catalog, uint32_t kind,
                        const char *type)
{
    for (size_t i = 0; i < catalog_count(catalog); i++) {
        const struct catalog_plugin *plugin = catalog_at(catalog, i);
        json_t *object;

        if ((plugin->kind != kind &&
             (kind != MR_PLUGIN_HEADER_CONVERTER || plugin->kind != MR_PLUGIN_CONVERTER)) ||
            !plugin_pick_first_of_version(catalog, i))
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
        add_plugins(list, catalog, MR_PLUGIN_TRANSFORM, "transformation");
        add_plugins(list, catalog, MR_PLUGIN_PREDICATE, "predicate");
        add_plugins(list, catalog, MR_PLUGIN_CONVERTER, "converter");
        add_plugins(list, catalog, MR_PLUGIN_HEADER_CONVERTER, "header_converter");
    }
    return list;
}
