/* SPDX-License-Identifier: Apache-2.0 */
/* A connector of a host, as the control thread sees it: from commands to its thread
 * (connector_run.c), and from its thread's notes to frames. Its tasks wait until its library is
 * open, and fail with its text when it is refused. */
#include "host/hosted_private.h"

#include "base/log.h"
#include "base/text.h"
#include "model/topic_tracking.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.control"

struct conn_note {
    struct conn *conn;
    void (*read)(struct conn_note *note);
    const struct plugin *plugin;
    enum state state;
    char *text; /* trace or error */
    const char *version;
    json_t *configs;
};

static void read_conn_note(void *arg)
{
    struct conn_note *note = arg;

    note->read(note);
    json_decref(note->configs);
    free(note->text);
    free(note);
}

static struct conn_note *conn_note_new(struct conn *conn, void (*read)(struct conn_note *),
                                       const char *text)
{
    struct conn_note *note = calloc(1, sizeof(*note));

    mr_assert(note != NULL);
    note->conn = conn;
    note->read = read;
    note->text = text_dup(text);
    return note;
}

static void conn_note_post(struct conn_note *note)
{
    int rc = loop_post(note->conn->hosted->opt.loop, read_conn_note, note);

    mr_assert(rc == 0);
}

static void read_loaded(struct conn_note *note)
{
    free(note->conn->refused);
    note->conn->refused = NULL;
    note->conn->plugin = note->plugin;
    hosted_task_launch_waiting(note->conn);
}

static void on_loaded(void *arg, struct connector_run *run, const struct plugin *plugin)
{
    struct conn_note *note = conn_note_new(arg, read_loaded, NULL);

    (void)run;
    note->plugin = plugin;
    conn_note_post(note);
}

static void read_conn_status(struct conn_note *note)
{
    struct conn *conn = note->conn;
    json_t *body = json_pack("{s:s, s:s}", "conn", conn->name, "state", state_name(note->state));

    hosted_set_text(body, "trace", note->text);
    hosted_set_text(body, "version", note->version);
    hosted_send(conn->hosted, MSG_CONNECTOR_STATUS, body);
    if (note->state == STATE_FAILED && conn->plugin == NULL) {
        text_replace(&conn->refused, note->text);
        hosted_task_launch_waiting(conn);
    }
}

static void on_conn_status(void *arg, struct connector_run *run, enum state state,
                           const char *trace, const char *version)
{
    struct conn_note *note = conn_note_new(arg, read_conn_status, trace);

    (void)run;
    note->state = state;
    note->version = version;
    conn_note_post(note);
}

static void read_stale(struct conn_note *note)
{
    hosted_send(note->conn->hosted, MSG_CONFIG_STALE, json_pack("{s:s}", "conn", note->conn->name));
}

static void on_stale(void *arg, struct connector_run *run)
{
    (void)run;
    conn_note_post(conn_note_new(arg, read_stale, NULL));
}

static void send_configs_error(struct conn *conn, const char *error)
{
    json_t *body = json_pack("{s:s}", "conn", conn->name);

    hosted_set_text(body, "error", error);
    hosted_send(conn->hosted, MSG_TASK_CONFIGS_READY, body);
}

/* FAILED as well, or the worker would ask again for ever. */
static void refuse_large_configs(struct conn *conn)
{
    static const char text[] =
        "the task configurations are together larger than the link to the worker carries";
    json_t *body = json_pack("{s:s, s:s, s:s}", "conn", conn->name, "state",
                             state_name(STATE_FAILED), "trace", text);

    send_configs_error(conn, text);
    hosted_send(conn->hosted, MSG_CONNECTOR_STATUS, body);
}

static void read_configs(struct conn_note *note)
{
    struct conn *conn = note->conn;
    json_t *body;
    int rc;

    if (note->configs == NULL) {
        send_configs_error(conn, note->text);
        return;
    }
    body = json_pack("{s:s, s:O}", "conn", conn->name, "configs", note->configs);
    rc = hosted_send(conn->hosted, MSG_TASK_CONFIGS_READY, body);
    if (rc == MR_ERR_TOO_LARGE)
        refuse_large_configs(conn);
}

static void on_task_configs(void *arg, struct connector_run *run, json_t *configs,
                            const char *error)
{
    struct conn_note *note = conn_note_new(arg, read_configs, error);

    (void)run;
    note->configs = configs;
    conn_note_post(note);
}

static void read_conn_ended(struct conn_note *note)
{
    struct hosted *h = note->conn->hosted;

    connector_run_free(&note->conn->run);
    h->opt.ended(h->opt.arg);
}

static void on_conn_ended(void *arg, struct connector_run *run)
{
    (void)run;
    conn_note_post(conn_note_new(arg, read_conn_ended, NULL));
}

static const struct connector_run_events run_events = {
    .loaded = on_loaded,
    .status = on_conn_status,
    .stale = on_stale,
    .task_configs = on_task_configs,
    .ended = on_conn_ended,
};

void hosted_connector_free(void *arg)
{
    struct conn *conn = arg;

    hosted_slot_give(conn->hosted, conn->slot);
    json_decref(conn->plugins);
    map_free(&conn->topics, NULL);
    props_deinit(&conn->config);
    free(conn->refused);
    free(conn->name);
    free(conn);
}

/* Several tasks may use one topic: the worker hears of it once. */
void hosted_connector_topic(struct conn *conn, int task, const char *topic)
{
    if (map_get(conn->topics, topic) != NULL || map_count(conn->topics) >= TOPIC_TRACKING_MAX)
        return;
    map_set(conn->topics, topic, conn);
    hosted_send(conn->hosted, MSG_TOPIC_USED,
                json_pack("{s:s, s:i, s:s}", "conn", conn->name, "task", task, "topic", topic));
}

int hosted_connector_forget_topics(struct hosted *h, const char *name, struct mr_error *err)
{
    struct conn *conn = hosted_find(h, name, err);

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    map_free(&conn->topics, NULL);
    conn->topics = map_new();
    hosted_task_forget_topics(conn);
    return 0;
}

static struct conn *conn_new(struct hosted *h, const struct hosted_connector *spec)
{
    struct conn *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL && props_copy(&conn->config, spec->config) == 0);
    conn->hosted = h;
    conn->name = text_dup(spec->name);
    conn->plugins = spec->plugins == NULL ? json_object() : json_deep_copy(spec->plugins);
    mr_assert(conn->plugins != NULL);
    conn->slot = hosted_slot_take(h);
    conn->topics = map_new();
    return conn;
}

int hosted_connector_start(struct hosted *h, const struct hosted_connector *spec,
                           struct mr_error *err)
{
    struct conn *conn;

    if (map_get(h->conns, spec->name) != NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "connector %.200s is here already", spec->name);
    conn = conn_new(h, spec);
    conn->run = connector_run_new(&(struct connector_run_spec){.name = spec->name,
                                                               .library = spec->library,
                                                               .class_name = spec->class_name,
                                                               .config = spec->config,
                                                               .worker = h->opt.worker,
                                                               .providers = h->opt.providers,
                                                               .target = spec->target,
                                                               .tasks_only = spec->tasks_only,
                                                               .box = h->opt.box,
                                                               .box_slot = conn->slot,
                                                               .events = &run_events,
                                                               .arg = conn},
                                  err);
    if (conn->run == NULL) {
        hosted_connector_free(conn);
        return MR_ERR_NOMEM;
    }
    map_set(h->conns, spec->name, conn);
    return 0;
}

int hosted_connector_target(struct hosted *h, const char *name, enum target_state target,
                            struct mr_error *err)
{
    struct conn *conn = hosted_find(h, name, err);

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    if (conn->run != NULL && connector_run_target(conn->run, target) != 0)
        log_write_for(LOG_WARN, LOGGER, name, -1,
                      "the connector hangs in plugin code: its target state %s is not applied",
                      target_state_name(target));
    return 0;
}

int hosted_connector_task_configs(struct hosted *h, const char *name, int max, struct mr_error *err)
{
    struct conn *conn = hosted_find(h, name, err);

    if (conn == NULL)
        return MR_ERR_PROTOCOL;
    if (conn->run == NULL || connector_run_task_configs(conn->run, max) != 0)
        send_configs_error(conn,
                           "the connector hangs in plugin code, too many questions wait for it");
    return 0;
}
