/* SPDX-License-Identifier: Apache-2.0 */
/* What this worker writes to the status topic: states of what is here, as they change, and as the
 * leader the tombstones of what is no more. Nothing here waits; the store writes when there is
 * time, the newest of each. Called by distributed.c, cluster_topics.c and cluster_round.c; loop
 * thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

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

static const char *version_of(const struct distributed *d, const char *conn)
{
    const struct lifecycle *lc = connectors_find(d->connectors, conn);
    struct lifecycle_view view;

    if (lc == NULL)
        return NULL;
    lifecycle_view(lc, &view);
    return view.version;
}

static void put(struct distributed *d, const char *conn, int task, enum state state,
                const char *trace, const char *version)
{
    struct status status = {.state = state,
                            .generation = (int)d->generation,
                            .worker_id = d->parts.config->worker_id,
                            .trace = (char *)(uintptr_t)trace,
                            .version = (char *)(uintptr_t)version};

    cluster_store_put_status(d->store, conn, task, &status, is_late_word(state));
}

void cluster_status_told(struct distributed *d, const char *conn, int task, enum state state,
                         const char *trace)
{
    if (exists(d, conn, task))
        put(d, conn, task, state, trace, state == STATE_RESTARTING ? NULL : version_of(d, conn));
}

static void items_here(const struct distributed *d, const char *conn, struct work_list *out)
{
    for (size_t i = 0; i < d->allocation.count; i++)
        for (size_t t = 0;
             strcmp(d->allocation.entries[i].conn, conn) == 0 && t < d->allocation.entries[i].count;
             t++)
            mr_assert(work_list_add(out, conn, d->allocation.entries[i].tasks[t]) == 0);
}

static void tell_missing(struct distributed *d, const struct dist_conn *conn, const char *trace)
{
    log_write_for(LOG_ERROR, LOGGER, conn->name, -1, "%s", trace);
    for (size_t i = 0; i < conn->missing.count; i++)
        for (size_t t = 0; t < conn->missing.entries[i].count; t++)
            put(d, conn->name, conn->missing.entries[i].tasks[t], STATE_FAILED, trace, NULL);
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
    if (!told && here.items > 0)
        tell_missing(d, conn, trace);
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
    const struct status_state *all = cluster_store_status(d->store);
    const struct status *status =
        task < 0 ? status_state_connector(all, conn) : status_state_task(all, conn, task);

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
}
