/* SPDX-License-Identifier: Apache-2.0 */
/* Under exactly-once a task that fell silent may have left a transaction open. Readers of committed
 * offsets wait for its end, and so does every source task that starts anywhere, for as long as
 * transaction.timeout.ms. Its successor would take its id over, but comes only after
 * scheduled.rebalance.max.delay.ms. So a leader does it as soon as a round shows the loss.
 *
 *   led ── source tasks, configured, that nobody has or still stops ──► fence_round ─► the log
 *           └── none, or we lead no more: what is under way is called off
 *
 * A worker does the same, leader or not, for tasks of its own whose host died: those that wait for
 * their next start, that are given up, stopped or deleted; and for those that fail before they have
 * run here: all may have died where they ran before. Not without a lease, nor for what was
 * given away meanwhile: somebody may run it. Who begins calls it off, and so does a round that takes
 * work of this connector away; that comes too late for the one request under way, and then the task
 * begins once more.
 *
 * Once a loss: what fails is not tried again, transaction.timeout.ms ends it. Called by
 * cluster_round.c, and distributed.c when a connector goes; loop thread. */
#include "worker/herder/cluster/distributed_private.h"
#include "worker/herder/cluster/fence_round.h"

#include <stdlib.h>
#include <strings.h>

#define LOGGER "worker.herder.fence"
#include "base/log.h"

static bool is_stopping(const struct lead *lead, const char *conn, int task)
{
    for (size_t i = 0; i < lead->count; i++)
        if (lead->members[i].share != NULL &&
            work_list_has(&lead->members[i].share->revoked, conn, task))
            return true;
    return false;
}

static void find_lost(const struct dist_conn *conn, const struct lead *lead, struct work_list *out)
{
    const struct distributed *d = conn->d;
    const struct config_conn *config = config_state_conn(distributed_config(d), conn->name);
    const struct catalog_plugin *plugin = config != NULL ? distributed_plugin(d, config) : NULL;

    if (plugin == NULL || (plugin->kind != MR_PLUGIN_SOURCE && !plugin->emits))
        return;
    for (int task = 0; task < config_state_tasks(config); task++)
        if (cluster_round_owner(d, conn->name, task)[0] == '\0' &&
            !is_stopping(lead, conn->name, task))
            mr_assert(work_list_add(out, conn->name, task) == 0);
}

static void on_fenced(void *arg, const struct mr_error *err)
{
    struct dist_conn *conn = arg;

    if (err != NULL)
        log_write_for(LOG_WARN, LOGGER, conn->name, -1,
                      "transactions that its lost tasks may have left open end by "
                      "transaction.timeout.ms: %s",
                      err->text);
    fence_round_free(&conn->lost_round);
}

static void fence(struct dist_conn *conn)
{
    const struct distributed *d = conn->d;
    const struct config_conn *config = config_state_conn(distributed_config(d), conn->name);
    const struct fence_order order = {.worker = &d->parts.config->props,
                                      .connector = config->config,
                                      .providers = d->parts.config->providers,
                                      .group = d->parts.config->cluster.group_id,
                                      .conn = conn->name,
                                      .tasks = conn->lost.entries[0].tasks,
                                      .count = conn->lost.entries[0].count};
    struct mr_error err = {0};

    log_write_for(LOG_INFO, LOGGER, conn->name, -1,
                  "%zu of its tasks are lost: their transactions are ended", order.count);
    conn->lost_round = fence_round_new(d->parts.loop, &order, on_fenced, conn, &err);
    if (conn->lost_round == NULL)
        on_fenced(conn, &err);
}

void cluster_lost_forget(struct dist_conn *conn)
{
    fence_round_free(&conn->lost_round);
    work_list_deinit(&conn->lost);
}

static void look(struct dist_conn *conn, const struct lead *lead)
{
    struct work_list lost = {0};

    find_lost(conn, lead, &lost);
    if (work_list_same(&lost, &conn->lost)) {
        work_list_deinit(&lost);
        return;
    }
    cluster_lost_forget(conn);
    conn->lost = lost;
    if (lost.count > 0)
        fence(conn);
}

/* --- tasks of ours ---------------------------------------------------------------------------- */

/* Those that nobody else may have by now. */
static size_t still_ours(const struct distributed *d, const struct lifecycle_orphans *orphans,
                         int32_t *out)
{
    bool deleted = config_state_conn(distributed_config(d), orphans->conn) == NULL;
    size_t n = 0;

    for (size_t i = 0; i < orphans->count; i++)
        if (deleted || work_list_has(&d->allocation, orphans->conn, orphans->tasks[i]))
            out[n++] = orphans->tasks[i];
    return n;
}

void cluster_lost_drop_orphans(struct dist_conn *conn)
{
    fence_round_free(&conn->orphan_round);
    work_list_deinit(&conn->orphans);
}

static void on_orphans_fenced(void *arg, const struct mr_error *err)
{
    struct dist_conn *conn = arg;

    if (err != NULL)
        log_write_for(LOG_WARN, LOGGER, conn->name, -1,
                      "transactions that its process may have left open end by "
                      "transaction.timeout.ms: %s",
                      err->text);
    cluster_lost_drop_orphans(conn);
}

/* A deleted connector was kept until now. */
static void on_orphans_over(void *arg, const struct mr_error *err)
{
    struct distributed *d = ((struct dist_conn *)arg)->d;

    on_orphans_fenced(arg, err);
    distributed_forget(d);
}

/* The round that is under way goes on within the new one. */
static void fence_orphans(struct dist_conn *conn, const struct lifecycle_orphans *orphans,
                          const int32_t *tasks, size_t count)
{
    const struct worker_config *config = conn->d->parts.config;
    struct fence_order order = {.worker = &config->props,
                                .connector = orphans->config,
                                .providers = config->providers,
                                .group = config->cluster.group_id,
                                .conn = conn->name};
    struct mr_error err = {0};

    for (size_t i = 0; i < count; i++)
        if (!work_list_has(&conn->orphans, conn->name, tasks[i]))
            mr_assert(work_list_add(&conn->orphans, conn->name, tasks[i]) == 0);
    order.tasks = conn->orphans.entries[0].tasks;
    order.count = conn->orphans.entries[0].count;

    log_write_for(LOG_INFO, LOGGER, conn->name, -1,
                  "transactions that %zu of its tasks may have left open are ended", count);
    fence_round_free(&conn->orphan_round);
    conn->orphan_round = fence_round_new(conn->d->parts.loop, &order, on_orphans_over, conn, &err);
    if (conn->orphan_round == NULL)
        on_orphans_fenced(conn, &err);
}

void cluster_lost_call_off(const struct distributed *d, const char *name)
{
    struct dist_conn *conn = distributed_conn(d, name);

    if (conn != NULL)
        cluster_lost_drop_orphans(conn);
}

void cluster_lost_orphaned(struct distributed *d, const struct lifecycle_orphans *orphans)
{
    struct dist_conn *conn = distributed_conn(d, orphans->conn);
    int32_t *tasks;
    size_t count;

    if (orphans->count == 0) {
        cluster_lost_call_off(d, orphans->conn);
        return;
    }
    if (conn == NULL || d->closing || distributed_lease_over(d) ||
        !distributed_in_transactions(d, orphans->plugin))
        return;
    tasks = calloc(orphans->count, sizeof(*tasks));
    mr_assert(tasks != NULL);
    count = still_ours(d, orphans, tasks);
    if (count > 0)
        fence_orphans(conn, orphans, tasks, count);
    free(tasks);
}

/* --- the door --------------------------------------------------------------------------------- */

void cluster_lost_led(struct distributed *d, const struct lead *lead)
{
    void *conn;

    if (lead->error != CONNECT_OK ||
        strcasecmp(d->parts.config->cluster.exactly_once, "enabled") != 0)
        return;
    for (size_t i = 0; map_next(d->conns, &i, NULL, &conn);)
        look(conn, lead);
}
