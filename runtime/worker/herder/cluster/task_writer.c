/* SPDX-License-Identifier: Apache-2.0 */
/* From the task configurations that a connector here has made to the config topic: compared with
 * what stands there, and written if they differ, by us if we lead, else by the leader (POST
 * /connectors/C/tasks, signed).
 *
 *   made ─► the same: the tasks go on
 *      └──► written, or sent ─► done: the commit has come back, tasks are held, and start after
 *                          │    the next round
 *                          └──► failed: the tasks go on with what they have; made and compared anew
 *                               after a while, or a round
 *
 * Who does not lead can't send the set of a connector whose name is longer than a path may be, no
 * more than a Java worker can, which alone creates such: it says so once, and has it made anew
 * until it leads.
 *
 * A set that came torn to the topic, as when its writer was cut off, or another hand wrote, runs
 * nowhere: whoever has the connector makes it anew. One set of a connector is under way at a time.
 * Spec: DistributedHerder.reconfigureConnector; runtime-behaviour 6. Loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/log.h"
#include "model/conn_config.h"
#include "worker/herder/cluster/signature.h"
#include "worker/herder/task_config.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_FIRST_MS 250 /* doubling, up to */
#define AGAIN_LAST_MS 60000
#define BODY_MAX ((size_t)32 << 20)

static bool differ(const struct config_conn *config, const struct props *configs, size_t count)
{
    if ((size_t)config_state_tasks(config) != count || config->inconsistent ||
        config->applied == NULL || !props_equal(config->applied, config->config))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!props_equal(config_state_task(config, (int)i), &configs[i]))
            return true;
    return false;
}

/* --- afterwards ------------------------------------------------------------------------------- */

static void on_retry(void *arg)
{
    struct dist_conn *conn = arg;

    connectors_ask_again(conn->d->connectors, conn->name);
}

static void retry_later(struct dist_conn *conn)
{
    conn->backoff_ms = conn->backoff_ms == 0 ? AGAIN_FIRST_MS : conn->backoff_ms * 2;
    if (conn->backoff_ms > AGAIN_LAST_MS)
        conn->backoff_ms = AGAIN_LAST_MS;
    loop_timer_start(conn->d->parts.loop, &conn->retry, conn->backoff_ms, on_retry, conn);
}

static void written(struct dist_conn *conn, const char *error)
{
    struct distributed *d = conn->d;
    bool again = conn->again;

    conn->writing = conn->again = false;
    if (d->closing)
        return;
    if (error == NULL) {
        conn->backoff_ms = 0;
        conn->kept = false;
    } else {
        log_write_for(LOG_WARN, LOGGER, conn->name, -1,
                      "the configurations of its tasks could not be written, and are tried again: "
                      "%s",
                      error);
        retry_later(conn);
    }
    connectors_keep(d->connectors, conn->name);
    if (error == NULL && again)
        connectors_ask_again(d->connectors, conn->name);
}

static void on_stored(void *arg, const struct mr_error *err)
{
    written(arg, err != NULL ? err->text : NULL);
}

static void on_answered(void *arg, const struct peer_answer *answer)
{
    char text[512];

    if (answer->status >= 200 && answer->status < 300) {
        written(arg, NULL);
        return;
    }
    if (answer->status == 0)
        snprintf(text, sizeof(text), "the leader does not answer: %s", answer->error);
    else
        snprintf(text, sizeof(text), "the leader answers %d: %.300s", answer->status, answer->body);
    written(arg, text);
}

/* While a round is open a leader refuses; the delay is for one that hears of its end after us. How
 * long the next failure waits stays, so that rounds without an end make no storm of tries. */
void task_writer_round_over(struct distributed *d)
{
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, NULL, &value);) {
        struct dist_conn *conn = value;

        if (conn->retry.slot != 0)
            loop_timer_start(d->parts.loop, &conn->retry, AGAIN_FIRST_MS, on_retry, conn);
    }
}

void task_writer_torn(struct dist_conn *conn)
{
    if (!conn->writing && work_list_has(&conn->d->allocation, conn->name, WORK_LIST_CONNECTOR))
        retry_later(conn);
}

/* --- to the leader ---------------------------------------------------------------------------- */

static void body_of(const struct props *configs, size_t count, struct buf *out)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_from_props(&configs[i]));
    buf_init(out, BODY_MAX);
    json_write(out, list);
    json_decref(list);
}

static char *url_of(const struct distributed *d, const char *conn)
{
    char *name = peer_escape(conn), *path = NULL, *url;

    mr_assert(asprintf(&path, "/connectors/%s/tasks", name) > 0);
    url = peer_url(d->leader_url, path);
    free(path);
    free(name);
    return url;
}

static void send(struct dist_conn *conn, const struct buf *body)
{
    struct distributed *d = conn->d;
    const struct config_session_key *key = config_state_session_key(distributed_config(d));
    const char *algorithm = d->parts.config->cluster.signature_algorithm;
    char *url = url_of(d, conn->name), *signature = NULL;

    if (key != NULL)
        signature = signature_make(key, algorithm, body->data, body->len, NULL);
    peer_send(d->peer,
              &(struct peer_request){.url = url,
                                     .method = "POST",
                                     .body = body->data,
                                     .len = body->len,
                                     .signature = signature,
                                     .signature_algorithm = signature != NULL ? algorithm : NULL,
                                     .timeout_ms = CLUSTER_STORE_WRITE_MS},
              on_answered, conn);
    free(signature);
    free(url);
}

static void forward(struct dist_conn *conn, const struct props *configs, size_t count)
{
    struct buf body;

    if (conn->d->leader_url[0] == '\0') {
        written(conn, "the group has no leader that is known here");
        return;
    }
    body_of(configs, count, &body);
    if (body.failed)
        written(conn, "they are too large for a request to the leader");
    else
        send(conn, &body);
    buf_deinit(&body);
}

static void keep(struct dist_conn *conn, const struct mr_error *err)
{
    if (!conn->kept)
        log_write_for(LOG_WARN, LOGGER, conn->name, -1,
                      "its tasks don't run unless this worker leads, since their configurations "
                      "can't be sent to the leader: %s. Create it anew with a shorter name",
                      err->text);
    conn->kept = true;
    connectors_keep(conn->d->connectors, conn->name);
    retry_later(conn);
}

/* --- the door --------------------------------------------------------------------------------- */

static void write_set(struct dist_conn *conn, const struct props *configs, size_t count)
{
    struct distributed *d = conn->d;
    struct mr_error err = {0};

    if (!d->leads && conn_config_check_path(conn->name, &err) != 0) {
        keep(conn, &err);
        return;
    }
    conn->writing = true;
    log_write_for(LOG_INFO, LOGGER, conn->name, -1, "new task configurations: %zu, %s", count,
                  d->leads ? "written" : "sent to the leader");
    if (d->leads)
        cluster_store_put_tasks(d->store, conn->name, configs, count, on_stored, conn);
    else
        forward(conn, configs, count);
}

void task_writer_made(struct distributed *d, const char *name, struct props *configs, size_t count)
{
    const struct config_conn *config = config_state_conn(distributed_config(d), name);
    struct dist_conn *conn = distributed_conn(d, name);
    const struct catalog_plugin *plugin;

    if (config == NULL || conn == NULL)
        return; /* deleted: its host is about to end */
    plugin = distributed_plugin(d, config);
    if (plugin == NULL || config->target != TARGET_STARTED) {
        connectors_keep(d->connectors, name);
        return;
    }
    for (size_t i = 0; i < count; i++)
        task_config_complete(&configs[i], plugin, config->config);
    if (conn->writing)
        conn->again = true; /* `written` has these made anew, and lets the tasks go on */
    else if (differ(config, configs, count))
        write_set(conn, configs, count);
    else
        connectors_keep(d->connectors, name);
}

void task_writer_forget(struct dist_conn *conn)
{
    loop_timer_cancel(&conn->retry);
}
