/* SPDX-License-Identifier: Apache-2.0 */
/* Before a source task of a new set begins under exactly-once, every producer of the last recorded
 * set is fenced, and the new count is recorded: whoever still runs with an older set can't commit
 * any more.
 *
 *   host's task ─► wait ── we lead ──► topic read ──► a round, under way or due ──► topic read
 *                   │                     │                                             │
 *                   │                     └── nothing is pending ─► answered ◄─ count written
 *                   └── somebody else leads: PUT <leader>/connectors/C/fence, signed
 *
 * One round a connector serves all that wait for it. A new set of task configurations ends it: what
 * it counted is old.
 * Invariant: a wait is answered once. Those of our own hosts are patient: what may pass (no leader,
 * a round that was overtaken) is tried again until it is settled; those of other workers, which try
 * again themselves, are not. Loop thread.
 * Spec: KIP-618, DistributedHerder.fenceZombieSourceTasks; reference exactly-once 3. */
#define LOGGER "worker.herder.fence"
#include "worker/herder/cluster/distributed_private.h"

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/text.h"
#include "model/conn_config.h"
#include "worker/herder/cluster/fence_round.h"
#include "worker/herder/cluster/signature.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_MS 250
#define SAY_MS 10000   /* between two lines about what is tried again, and before the first */
#define CALL_MS 120000 /* a round takes 90 s at most, reading and writing around it little */

enum fence_step { ASKING, READING, IN_ROUND, SENT, PAUSED };

/* Somebody who waits. */
struct fence_wait {
    struct fence_wait *next;
    struct distributed *d;
    char *conn;
    bool patient;
    int64_t said_ms;
    enum fence_step step;
    struct loop_timer retry;
    connectors_done done;
    void *arg;
};

static void ask(void *arg);

/* --- answers ---------------------------------------------------------------------------------- */

static void answer(struct fence_wait *wait, const struct mr_error *err)
{
    struct fence_wait **at = &wait->d->fence_waits;

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    loop_timer_cancel(&wait->retry);
    wait->done(wait->arg, err);
    free(wait->conn);
    free(wait);
}

static bool may_pass(const struct mr_error *err)
{
    return err->code == MR_ERR_STATE || err->code == MR_ERR_TIMEOUT || err->code == MR_ERR_IO ||
           err->code == MR_ERR_FULL;
}

/* Another worker hears 409 of what may pass, and tries again; all else fails its task. */
static void settle(struct fence_wait *wait, const struct mr_error *err)
{
    struct mr_error own = err != NULL ? *err : (struct mr_error){0};

    if (err == NULL || !wait->patient || wait->d->closing || !may_pass(err)) {
        own.code = err != NULL && may_pass(err) ? MR_ERR_STATE : own.code;
        answer(wait, err != NULL ? &own : NULL);
        return;
    }
    if (clock_ms() - wait->said_ms >= SAY_MS) {
        log_write_for(LOG_WARN, LOGGER, wait->conn, -1,
                      "its tasks wait for the producers of earlier ones to be fenced: %s",
                      err->text);
        wait->said_ms = clock_ms();
    }
    wait->step = PAUSED;
    loop_timer_start(wait->d->parts.loop, &wait->retry, AGAIN_MS, ask, wait);
}

static void fail(struct fence_wait *wait, int code, const char *text)
{
    struct mr_error err = {0};

    mr_fail(&err, code, "%s", text);
    settle(wait, &err);
}

/* --- a round ---------------------------------------------------------------------------------- */

/* To all that wait for this connector's round. */
static void end_round(struct dist_conn *conn, const struct mr_error *err)
{
    struct distributed *d = conn->d;
    struct fence_wait *next;

    fence_round_free(&conn->round);
    conn->fencing = false;
    for (struct fence_wait *wait = d->fence_waits; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->step == IN_ROUND && strcmp(wait->conn, conn->name) == 0)
            settle(wait, err);
    }
}

static void fail_round(struct dist_conn *conn, int code, const char *text)
{
    struct mr_error err = {0};

    mr_fail(&err, code, "%s", text);
    end_round(conn, &err);
}

/* Of a round that a later one has replaced nobody hears. */
struct fence_note {
    struct distributed *d;
    char *conn;
    uint64_t serial;
};

static struct fence_note *note_new(const struct dist_conn *conn)
{
    struct fence_note *note = calloc(1, sizeof(*note));

    mr_assert(note != NULL);
    *note = (struct fence_note){conn->d, text_dup(conn->name), conn->fence_serial};
    return note;
}

/* The connector, if its round is still that one. */
static struct dist_conn *note_take(struct fence_note *note)
{
    struct dist_conn *conn = distributed_conn(note->d, note->conn);
    bool current = conn != NULL && conn->fencing && conn->fence_serial == note->serial;

    free(note->conn);
    free(note);
    return current ? conn : NULL;
}

static void on_recorded(void *arg, const struct mr_error *err)
{
    struct dist_conn *conn = note_take(arg);

    CRASH_POINT(ROUND_NOTED);
    if (conn != NULL)
        end_round(conn, err);
}

static void record(struct dist_conn *conn)
{
    struct distributed *d = conn->d;
    const struct config_conn *config = config_state_conn(distributed_config(d), conn->name);

    CRASH_POINT(ROUND_FENCED);
    cluster_store_put_task_count(d->store, conn->name, config_state_tasks(config), on_recorded,
                                 note_new(conn));
}

static void on_reread(void *arg, const struct mr_error *err)
{
    struct dist_conn *conn = note_take(arg);
    const struct config_conn *config;

    if (conn == NULL)
        return;
    config = config_state_conn(distributed_config(conn->d), conn->name);
    if (err != NULL)
        fail_round(conn, MR_ERR_TIMEOUT,
                   "Failed to read to end of config topic after performing zombie fencing");
    else if (config == NULL || config->generation != conn->fence_generation)
        fail_round(conn, MR_ERR_STATE,
                   "Fencing failed because new task configurations were generated for the "
                   "connector");
    else
        record(conn);
}

static void on_fenced(void *arg, const struct mr_error *err)
{
    struct dist_conn *conn = arg;
    struct distributed *d = conn->d;

    if (err != NULL) {
        struct mr_error own = *err;

        end_round(conn, &own);
        return;
    }
    fence_round_free(&conn->round);
    cluster_store_refresh(d->store, d->parts.config->cluster.sync_ms, on_reread, note_new(conn));
}

static void begin_round(struct dist_conn *conn, const struct config_conn *config)
{
    struct distributed *d = conn->d;
    int earlier = config->task_count_record > 0 ? config->task_count_record : 0;
    struct fence_order order = {.worker = &d->parts.config->props,
                                .connector = config->config,
                                .providers = d->parts.config->providers,
                                .group = d->parts.config->cluster.group_id,
                                .conn = conn->name,
                                .count = (size_t)earlier};
    struct mr_error err = {0};

    conn->fencing = true;
    conn->fence_serial++;
    conn->fence_generation = config->generation;
    /* One task before and one now: the new one takes the id over itself. */
    if (earlier == 0 || (earlier == 1 && config_state_tasks(config) == 1)) {
        record(conn);
        return;
    }
    log_write_for(LOG_INFO, LOGGER, conn->name, -1, "fences the producers of %d earlier tasks",
                  earlier);
    conn->round = fence_round_new(d->parts.loop, &order, on_fenced, conn, &err);
    if (conn->round == NULL)
        end_round(conn, &err);
}

void cluster_fence_cancel(struct dist_conn *conn)
{
    if (conn->fencing)
        fail_round(conn, MR_ERR_STATE,
                   "Failed to complete zombie fencing because a new set of task configs was "
                   "generated");
}

/* --- the leader's part ------------------------------------------------------------------------ */

static void judge(struct fence_wait *wait)
{
    struct distributed *d = wait->d;
    const struct config_conn *config = config_state_conn(distributed_config(d), wait->conn);
    struct dist_conn *conn = distributed_conn(d, wait->conn);
    const struct catalog_plugin *plugin = config != NULL ? distributed_plugin(d, config) : NULL;
    char text[1200];

    if (config == NULL || conn == NULL) {
        snprintf(text, sizeof(text), "Connector %.1000s not found", wait->conn);
        fail(wait, MR_ERR_NOT_FOUND, text);
    } else if (plugin == NULL) {
        snprintf(text, sizeof(text),
                 "Connector %.1000s can't be fenced: its plugin is not installed on this worker, "
                 "which leads",
                 wait->conn);
        fail(wait, MR_ERR_STATE, text);
    } else if (plugin->kind != MR_PLUGIN_SOURCE && !plugin->emits) {
        snprintf(text, sizeof(text), "Connector %.1000s is not a source connector", wait->conn);
        fail(wait, MR_ERR_CONFIG, text);
    } else if (!config->pending_fencing && !conn->fencing) {
        answer(wait, NULL);
    } else {
        wait->step = IN_ROUND;
        if (!conn->fencing)
            begin_round(conn, config);
    }
}

static void on_read(void *arg, const struct mr_error *err)
{
    struct fence_wait *wait = arg;

    if (wait->d->closing || (err != NULL && err->code == MR_ERR_CLOSED))
        fail(wait, MR_ERR_CLOSED, "Worker is shutting down");
    else if (err != NULL)
        fail(wait, MR_ERR_TIMEOUT,
             "Failed to read to end of config topic before performing zombie fencing");
    else
        judge(wait);
}

/* --- to the leader ---------------------------------------------------------------------------- */

static void on_answered(void *arg, const struct peer_answer *answered)
{
    struct fence_wait *wait = arg;
    int status = answered->status;
    char text[700];

    if (status >= 200 && status < 300) {
        answer(wait, NULL);
        return;
    }
    if (status == 0)
        snprintf(text, sizeof(text), "the leader does not answer: %.500s", answered->error);
    else
        snprintf(text, sizeof(text), "the leader answers %d: %.500s", status, answered->body);
    fail(wait, status == 400 || status == 404 || status == 500 ? MR_ERR_FATAL : MR_ERR_STATE, text);
}

static void send(struct fence_wait *wait)
{
    struct distributed *d = wait->d;
    const struct config_session_key *key = config_state_session_key(distributed_config(d));
    const char *algorithm = d->parts.config->cluster.signature_algorithm;
    char *name, *path = NULL, *url, *signature = NULL;
    struct mr_error err = {0};

    if (conn_config_check_path(wait->conn, &err) != 0) {
        settle(wait, &err);
        return;
    }
    name = peer_escape(wait->conn);
    mr_assert(asprintf(&path, "/connectors/%s/fence", name) > 0);
    url = peer_url(d->leader_url, path);
    if (key != NULL)
        signature = signature_make(key, algorithm, "", 0, NULL);
    wait->step = SENT;
    peer_send(d->peer,
              &(struct peer_request){.url = url,
                                     .method = "PUT",
                                     .signature = signature,
                                     .signature_algorithm = signature != NULL ? algorithm : NULL,
                                     .timeout_ms = CALL_MS},
              on_answered, wait);
    free(signature);
    free(url);
    free(path);
    free(name);
}

/* --- the door --------------------------------------------------------------------------------- */

static void ask(void *arg)
{
    struct fence_wait *wait = arg;
    struct distributed *d = wait->d;

    wait->step = ASKING;
    if (d->closing) {
        fail(wait, MR_ERR_CLOSED, "Worker is shutting down");
    } else if (d->leads) {
        wait->step = READING;
        cluster_store_refresh(d->store, d->parts.config->cluster.sync_ms, on_read, wait);
    } else if (d->leader_url[0] != '\0' && wait->patient) {
        send(wait);
    } else {
        fail(wait, MR_ERR_STATE, "the group has no leader that is known here");
    }
}

void cluster_fence(struct distributed *d, const char *conn, bool patient, connectors_done done,
                   void *arg)
{
    struct fence_wait *wait = calloc(1, sizeof(*wait));

    mr_assert(wait != NULL);
    *wait = (struct fence_wait){.next = d->fence_waits,
                                .d = d,
                                .patient = patient,
                                .said_ms = clock_ms(),
                                .done = done,
                                .arg = arg};
    wait->conn = text_dup(conn);
    d->fence_waits = wait;
    ask(wait);
}

/* Before store and peers end: those that wait for them are answered by them. */
void cluster_fence_end(struct distributed *d)
{
    struct fence_wait *next;
    const char *name;
    void *value;

    for (size_t i = 0; map_next(d->conns, &i, &name, &value);)
        cluster_fence_cancel(value);
    for (struct fence_wait *wait = d->fence_waits; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->step == PAUSED)
            fail(wait, MR_ERR_CLOSED, "Worker is shutting down");
    }
}
