/* SPDX-License-Identifier: Apache-2.0 */
/* What the herder shows, in any state and at once: connectors, tasks and topics as the source knows
 * them (conn_source.h), plugins, loggers, and what is to be said of a configuration, which alone
 * may wait for plugin code (judge.h). Bodies are made by view.c and validate_reply.c. Nothing is
 * changed but the topics that are forgotten. Called by REST; loop thread. */
#include "worker/herder/herder_private.h"

#include "model/topic_tracking.h"
#include "worker/herder/log_control.h"
#include "worker/herder/view.h"
#include "worker/supervisor/plugin_pick.h"

#include <stdlib.h>

json_t *herder_root(struct herder *herder)
{
    return view_root(herder->cluster_id);
}

bool herder_knows(struct herder *herder, const char *conn)
{
    struct source_conn out;

    return herder->source->find(herder->source, conn, &out);
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

json_t *herder_marked_status(const struct herder *herder, const char *conn,
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

json_t *herder_status(struct herder *herder, const char *name)
{
    static const struct connectors_plan nothing = {.connector = false};

    return herder_marked_status(herder, name, &nothing);
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
    json_t *body = err == NULL ? validate_reply(input, result) : NULL;
    struct mr_error told = {0};

    /* A reference's file: here the class is named, too. */
    if (err != NULL && err->code == MR_ERR_IO)
        mr_fail(&told, MR_ERR_IO, "org.apache.kafka.common.config.ConfigException: %s", err->text);
    else if (err == NULL && body == NULL)
        mr_fail(&told, MR_ERR_NOMEM, "out of memory");
    if (told.code != 0)
        err = &told;
    asked->done(asked->arg, &(struct herder_answer){.err = err,
                                                    .message = err != NULL ? err->text : NULL,
                                                    .body = body});
    json_decref(body);
    free(asked);
}

void herder_validate(struct herder *herder, const struct props *config, herder_done done, void *arg)
{
    struct validation_asked *asked = calloc(1, sizeof(*asked));

    mr_assert(asked != NULL);
    *asked = (struct validation_asked){done, arg};
    judge_config(herder->judge, config, on_judged, asked);
}

/* plugin: of any version; the one asked for comes back in it. */
static int pick_version(const struct catalog *catalog, const struct catalog_plugin **plugin,
                        const char *version, struct mr_error *err)
{
    struct plugin_wish wish = {
        .kind = (*plugin)->kind, .name = (*plugin)->java_class, .version = version};
    struct mr_error why = {0};
    int rc = plugin_pick(catalog, &wish, plugin, &why);

    if (rc == 0)
        return 0;
    if (rc == MR_ERR_CONFIG)
        return mr_fail(err, rc, "Invalid version specification: %s", version);
    return mr_fail(err, MR_ERR_CONFIG, "%s", why.text);
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
    else if (pick_version(herder->catalog, &found, version, err) == 0)
        return validate_definitions(herder->catalog, found);
    return NULL;
}

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
