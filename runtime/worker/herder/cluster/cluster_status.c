/* SPDX-License-Identifier: Apache-2.0 */
/* What this worker writes to the status topic: states of what is here, as they change, and again
 * where another hand wrote over them; and as the leader the tombstones of what is no more. Nothing
 * here waits; the store writes when there is time, the newest of each. Called by distributed.c,
 * cluster_topics.c and cluster_round.c; loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define REPAIR_MS 1000 /* what is on its way, ours too, has come by then */
#define REPAIRS_MAX 5  /* of one state, in so long: who writes against us is not fought for ever */
#define REPAIRS_MAX_MS 600000

/* A state that a later owner may have overtaken. */
static bool is_late_word(enum state state)
{
    return state == STATE_UNASSIGNED || state == STATE_FAILED;
}

/* What was deleted, or is no task any more, gets no state: the leader has removed it, or will. */
static bool exists(const struct distributed *d, const char *conn, int task)
{
    const struct config_conn *config = config_state_conn(distributed_config(d), conn);

    return config != NULL && (task < config->task_count || config->target == TARGET_STOPPED);
}

/* A word about something here; trace: borrowed for the call of `put`. */
static struct status word_of(const struct distributed *d, const char *conn, enum state state,
                             const char *trace)
{
    const struct lifecycle *lc = connectors_find(d->connectors, conn);
    struct lifecycle_view view = {.version = NULL};

    if (lc != NULL && state != STATE_RESTARTING)
        lifecycle_view(lc, &view);
    return (struct status){.state = state,
                           .generation = (int)d->generation,
                           .worker_id = d->parts.config->worker_id,
                           .trace = (char *)(uintptr_t)trace,
                           .version = (char *)(uintptr_t)view.version};
}

static void items_here(const struct distributed *d, const char *conn, struct work_list *out)
{
    for (size_t i = 0; i < d->allocation.count; i++)
        for (size_t t = 0;
             strcmp(d->allocation.entries[i].conn, conn) == 0 && t < d->allocation.entries[i].count;
             t++)
            mr_assert(work_list_add(out, conn, d->allocation.entries[i].tasks[t]) == 0);
}

static struct status word_of_missing(const struct distributed *d, const struct dist_conn *conn)
{
    struct status word = word_of(d, conn->name, STATE_FAILED, conn->missing_trace);

    word.version = NULL; /* of one that ran before */
    return word;
}

static void tell_missing(struct distributed *d, const struct dist_conn *conn)
{
    struct status word = word_of_missing(d, conn);

    log_write_for(LOG_ERROR, LOGGER, conn->name, -1, "%s", conn->missing_trace);
    for (size_t i = 0; i < conn->missing.count; i++)
        for (size_t t = 0; t < conn->missing.entries[i].count; t++)
            cluster_store_put_status(d->store, conn->name, conn->missing.entries[i].tasks[t], &word,
                                     true);
}

/* Told anew of whatever has come here since: meanwhile another worker, that has the class, may have
 * run it. */
void cluster_status_missing(struct distributed *d, struct dist_conn *conn, const char *trace)
{
    struct work_list here = {0};
    bool told = conn->missing_told == conn->serial;

    items_here(d, conn->name, &here);
    told = told && work_list_same(&here, &conn->missing);
    work_list_deinit(&conn->missing);
    conn->missing = here;
    conn->missing_told = conn->serial;
    text_replace(&conn->missing_trace, trace);
    if (!told && here.items > 0)
        tell_missing(d, conn);
}

/* --- what another hand wrote ------------------------------------------------------------------ */

static const struct status *status_of(const struct distributed *d, const char *conn, int task)
{
    const struct status_state *all = cluster_store_status(d->store);

    return task < 0 ? status_state_connector(all, conn) : status_state_task(all, conn, task);
}

/* Its class is not installed here, and that was told. */
static bool is_missing(const struct dist_conn *conn, int task)
{
    return conn != NULL && conn->missing_told == conn->serial &&
           work_list_has(&conn->missing, conn->name, task);
}

/* How it stands by what runs here; false: nothing of it does, or nothing was said yet. */
static bool runs(const struct distributed *d, const char *conn, int task, struct status *word)
{
    const struct lifecycle *lc = connectors_find(d->connectors, conn);
    const struct task_life *life;
    struct lifecycle_view view;

    if (lc == NULL)
        return false;
    lifecycle_view(lc, &view);
    life = task >= 0 ? task_life_find(view.tasks, task) : NULL;
    if (task >= 0 && life == NULL)
        return false;
    *word = word_of(d, conn, life != NULL ? life->state : view.state,
                    life != NULL ? life->trace : view.trace);
    return word->state != STATE_UNASSIGNED;
}

/* What was said last of what is ours; false: it is not, or nothing was said yet. */
static bool stands(const struct distributed *d, const char *conn, int task, struct status *word)
{
    const struct dist_conn *known = distributed_conn(d, conn);

    if (!exists(d, conn, task) || !work_list_has(&d->allocation, conn, task))
        return false;
    if (!is_missing(known, task))
        return runs(d, conn, task, word);
    *word = word_of_missing(d, known);
    return true;
}

static bool overwritten(const struct distributed *d, const char *conn, int task)
{
    const struct status *there = status_of(d, conn, task);
    struct status ours;

    return stands(d, conn, task, &ours) &&
           (there == NULL || there->state != ours.state || there->worker_id == NULL ||
            strcmp(there->worker_id, ours.worker_id) != 0);
}

static void tell_repair(const struct distributed *d, const char *conn, int task, enum state state,
                        bool last)
{
    const struct status *there = status_of(d, conn, task);
    const char *whose = there != NULL ? there->worker_id : NULL;

    log_write_for(
        last ? LOG_ERROR : LOG_WARN, LOGGER, conn, task,
        "%s here, and in the status topic %s, by %.200s: written again%s", state_name(state),
        there != NULL ? state_name(there->state) : "gone", whose != NULL ? whose : "nobody",
        last ? ", for the last time in ten minutes: find out who writes it, and end that" : "");
}

/* One state that was read as somebody else's word. */
struct repair {
    int task;
    bool due;  /* to be looked at, and nothing was said here since it was read */
    int count; /* of times that it was written again since repairs_since_ms */
    char conn[];
};

static struct repair *repair_of(struct distributed *d, const char *conn, int task, bool make)
{
    struct repair *repair;
    char *key = NULL;

    mr_assert(asprintf(&key, "%d %s", task, conn) > 0);
    repair = map_get(d->repairs, key);
    if (repair == NULL && make) {
        repair = calloc(1, sizeof(*repair) + strlen(conn) + 1);
        mr_assert(repair != NULL);
        repair->task = task;
        memcpy(repair->conn, conn, strlen(conn));
        map_set(d->repairs, key, repair);
    }
    free(key);
    return repair;
}

static void write_again(struct distributed *d, struct repair *repair)
{
    struct status word;

    repair->due =
        stands(d, repair->conn, repair->task, &word) && overwritten(d, repair->conn, repair->task);
    if (!repair->due || repair->count == REPAIRS_MAX)
        return;
    repair->due = false;
    repair->count++;
    tell_repair(d, repair->conn, repair->task, word.state, repair->count == REPAIRS_MAX);
    cluster_store_put_status(d->store, repair->conn, repair->task, &word, false);
}

/* Counted anew: what is still due was given up. */
static void begin_anew(struct distributed *d)
{
    struct map *before = d->repairs;
    void *value;

    d->repairs = map_new();
    d->repairs_since_ms = loop_now_ms(d->parts.loop);
    for (size_t i = 0; map_next(before, &i, NULL, &value);) {
        const struct repair *repair = value;

        if (repair->due)
            repair_of(d, repair->conn, repair->task, true)->due = true;
    }
    map_free(&before, free);
}

static void look_again(struct distributed *d, int64_t ms);

/* Whose it is, is settled: it is ours. */
static bool settled(const struct distributed *d)
{
    return !d->rebalancing && d->step == DIST_IDLE && !distributed_lease_over(d);
}

static void on_look(void *arg)
{
    struct distributed *d = arg;
    bool given_up = false;
    void *value;

    if (!settled(d)) {
        look_again(d, REPAIR_MS);
        return;
    }
    if (loop_now_ms(d->parts.loop) - d->repairs_since_ms >= REPAIRS_MAX_MS)
        begin_anew(d);
    for (size_t i = 0; map_next(d->repairs, &i, NULL, &value);) {
        struct repair *repair = value;

        if (repair->due)
            write_again(d, repair);
        given_up |= repair->due;
    }
    if (given_up)
        look_again(d, REPAIRS_MAX_MS);
}

static void look_again(struct distributed *d, int64_t ms)
{
    loop_timer_start(d->parts.loop, &d->repair_timer, ms, on_look, d);
}

/* Not at once: a record may be overtaken by one that is on its way. */
static void look_for_other_hands(struct distributed *d, const char *conn, int task)
{
    if (d->closing || !overwritten(d, conn, task))
        return;
    repair_of(d, conn, task, true)->due = true;
    if (d->repair_timer.slot == 0 ||
        d->repair_timer.due_ms > loop_now_ms(d->parts.loop) + REPAIR_MS)
        look_again(d, REPAIR_MS);
}

void cluster_status_told(struct distributed *d, const char *conn, int task, enum state state,
                         const char *trace)
{
    struct status word = word_of(d, conn, state, trace);
    struct repair *repair = repair_of(d, conn, task, false);

    if (repair != NULL)
        repair->due = false;
    if (exists(d, conn, task))
        cluster_store_put_status(d->store, conn, task, &word, is_late_word(state));
}

void cluster_status_deinit(struct distributed *d)
{
    loop_timer_cancel(&d->repair_timer);
    map_free(&d->repairs, free);
}

/* --- the leader's ----------------------------------------------------------------------------- */

static void remove_tasks(struct distributed *d, const char *conn, int from)
{
    const struct status_state *states = cluster_store_status(d->store);

    for (int t = from - 1; (t = status_state_next_task(states, conn, t)) >= 0;)
        cluster_store_remove_status(d->store, conn, t);
}

/* The connector's own state goes once its tasks' states have gone: whoever sees it gone may use the
 * name again, and sees no task of before. */
static void remove_state(struct distributed *d, const char *conn)
{
    const struct status_state *states = cluster_store_status(d->store);

    if (status_state_next_task(states, conn, -1) < 0 &&
        status_state_connector(states, conn) != NULL)
        cluster_store_remove_status(d->store, conn, -1);
}

void cluster_status_forget_topics(struct distributed *d, const char *conn)
{
    const struct status_state *states = cluster_store_status(d->store);
    const char *topic;

    for (size_t i = 0; (topic = status_state_next_topic(states, conn, &i)) != NULL;)
        cluster_store_remove_topic(d->store, conn, topic);
}

static void remove_all(struct distributed *d, const char *conn)
{
    remove_tasks(d, conn, 0);
    remove_state(d, conn);
    cluster_status_forget_topics(d, conn);
}

void cluster_status_tidy(struct distributed *d)
{
    const char *conn;

    for (size_t i = 0;
         (conn = status_state_next_conn(cluster_store_status(d->store), &i)) != NULL;) {
        const struct config_conn *config = config_state_conn(distributed_config(d), conn);

        if (config == NULL)
            remove_all(d, conn);
        else if (!config->inconsistent)
            remove_tasks(d, conn, config->task_count);
    }
}

/* --- two clusters, one topic ------------------------------------------------------------------ */

static bool is_member(const struct distributed *d, const char *worker_id)
{
    char url[1024];

    snprintf(url, sizeof(url), "http://%s/", worker_id);
    if (map_get(d->members, url) != NULL)
        return true;
    snprintf(url, sizeof(url), "https://%s/", worker_id);
    return map_get(d->members, url) != NULL;
}

/* Only the leader knows all members, and only between rounds. Whoever left has said UNASSIGNED, so
 * RUNNING is said by those that run. */
static void look_for_strangers(struct distributed *d, const char *conn, int task)
{
    const struct status *status = status_of(d, conn, task);

    if (!d->leads || d->rebalancing || d->step != DIST_IDLE || d->closing || status == NULL ||
        status->state != STATE_RUNNING || status->worker_id == NULL ||
        is_member(d, status->worker_id) || strcmp(d->stranger, status->worker_id) == 0)
        return;
    text_replace(&d->stranger, status->worker_id);
    log_error("worker %s says in the topic %s that connector %s runs there, but it is no member of "
              "group %s: it was cut off from the group, or another cluster uses the same topics, "
              "which destroys the work of both: give each its own "
              "config.storage.topic, offset.storage.topic and status.storage.topic",
              status->worker_id, props_get(&d->parts.config->props, "status.storage.topic"), conn,
              d->parts.config->cluster.group_id);
}

void cluster_status_read(struct distributed *d, const char *conn, int task)
{
    if (d->leads && task >= 0 && config_state_conn(distributed_config(d), conn) == NULL &&
        status_state_task(cluster_store_status(d->store), conn, task) == NULL)
        remove_state(d, conn);
    look_for_strangers(d, conn, task);
    look_for_other_hands(d, conn, task);
}
