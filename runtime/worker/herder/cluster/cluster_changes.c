/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that a client or another worker asks of a cluster: whose they are, and what is written
 * for them.
 *
 *   herder ─► who: here, there, or not now
 *          ─► put, remove, target, … ─► cluster_store ─► Kafka ─► done, once the topic has it
 *
 * What a change does is no matter here: it comes back as a record (cluster_topics.c), on every
 * worker alike. Once the lease is over none of it is ours to do. The functions are the source's
 * (conn_source.h); every `done` runs exactly once, at the latest when the store is closed. Loop
 * thread. */
#include "worker/herder/cluster/distributed_private.h"

#include "base/text.h"
#include "worker/herder/cluster/signature.h"

#include <stdlib.h>
#include <string.h>

/* --- who acts --------------------------------------------------------------------------------- */

static int stale(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_STATE,
                   "Cannot complete request momentarily due to stale configuration (typically "
                   "caused by a concurrent config change)");
}

static int on_who(const struct conn_source *source, enum source_deed deed, const char *name,
                  int task, const char **url, struct mr_error *err)
{
    const struct distributed *d = distributed_in(source);
    bool over = distributed_lease_over(d);

    *url = d->leads || deed == SOURCE_ANYBODY ? NULL : d->leader_url;
    /* After a freeze somebody else may lead, and be asked instead of us; and what we know may be
     * long past. */
    if (over && (d->leads || deed == SOURCE_ANYBODY))
        return stale(err);
    if (deed == SOURCE_ANYBODY || deed == SOURCE_LEADS)
        return 0;
    if (d->rebalancing)
        return stale(err);
    if (deed == SOURCE_OWNS && work_list_has(&d->allocation, name, task))
        *url = NULL;
    else if (deed == SOURCE_OWNS && d->leads)
        *url = cluster_round_owner(d, name, task);
    return 0;
}

static int on_signed(const struct conn_source *source, const struct herder_claim *claim,
                     struct mr_error *err)
{
    const struct distributed *d = distributed_in(source);

    if (d->joined && d->kind != CONNECT_SESSIONED)
        return 0;
    return signature_check(claim, config_state_session_key(distributed_config(d)),
                           &d->parts.config->cluster, err);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* One write, with what the client is told when it fails. */
struct writing {
    struct distributed *d;
    char *conn;
    const char *failure;
    connectors_done done;
    void *arg;
};

static struct writing *writing_new(struct conn_source *source, const char *conn,
                                   const char *failure, connectors_done done, void *arg)
{
    struct writing *writing = calloc(1, sizeof(*writing));

    mr_assert(writing != NULL);
    *writing = (struct writing){distributed_of(source), conn != NULL ? text_dup(conn) : NULL,
                                failure, done, arg};
    return writing;
}

static void on_written(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;
    struct mr_error told = {0};

    if (err != NULL && err->code == MR_ERR_CLOSED)
        mr_fail(&told, MR_ERR_CLOSED, "Worker is shutting down");
    else if (err != NULL)
        mr_fail(&told, MR_ERR_FATAL, "%s: %s", writing->failure, err->text);
    if (writing->done != NULL)
        writing->done(writing->arg, err != NULL ? &told : NULL);
    free(writing->conn);
    free(writing);
}

static void on_put(struct conn_source *source, const struct source_put *put, connectors_done done,
                   void *arg)
{
    cluster_store_put_connector(
        distributed_of(source)->store, put->name, put->config, put->target, on_written,
        writing_new(source, put->name, "Error writing connector configuration to Kafka", done,
                    arg));
}

static void on_remove(struct conn_source *source, const char *name, connectors_done done, void *arg)
{
    cluster_store_remove_connector(
        distributed_of(source)->store, name, on_written,
        writing_new(source, name, "Error removing connector configuration from Kafka", done, arg));
}

/* A store that closes answers what it has, and takes nothing more. */
static bool went_wrong(struct writing *writing, const struct mr_error *err)
{
    static const struct mr_error closed = {.code = MR_ERR_CLOSED};

    if (err == NULL && writing->d->store != NULL)
        return false;
    on_written(writing, err != NULL ? err : &closed);
    return true;
}

static void on_stop_targeted(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;

    if (!went_wrong(writing, err))
        cluster_store_refresh(writing->d->store, CLUSTER_STORE_WRITE_MS, on_written, writing);
}

static void on_stop_emptied(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;

    if (!went_wrong(writing, err))
        cluster_store_put_target(writing->d->store, writing->conn, TARGET_STOPPED, on_stop_targeted,
                                 writing);
}

/* A stop takes the tasks away first: an empty set, then the target state, then all of it is
 * read. */
static void on_target(struct conn_source *source, const char *name, enum target_state target,
                      connectors_done done, void *arg)
{
    struct writing *writing =
        writing_new(source, name, "Error writing target state to Kafka", done, arg);

    if (target == TARGET_STOPPED)
        cluster_store_put_tasks(distributed_of(source)->store, name, NULL, 0, on_stop_emptied,
                                writing);
    else
        cluster_store_put_target(distributed_of(source)->store, name, target, on_written, writing);
}

/* What is to be restarted is given to this worker, but between two sets of its tasks nothing of it
 * runs. */
static bool is_between(const struct distributed *d, const char *name, connectors_done done,
                       void *arg)
{
    struct mr_error err = {0};

    if (connectors_has(d->connectors, name))
        return false;
    stale(&err);
    if (done != NULL)
        done(arg, &err);
    return true;
}

static void on_restart(struct conn_source *source, const char *name,
                       const struct connectors_plan *plan, connectors_done done, void *arg)
{
    struct distributed *d = distributed_of(source);

    if (!plan->tasks && !plan->only_failed && is_between(d, name, done, arg))
        return;
    if (!plan->tasks && !plan->only_failed)
        connectors_restart(d->connectors, name, plan, done, arg);
    else
        cluster_store_put_restart(
            d->store, name, plan->tasks, plan->only_failed, on_written,
            writing_new(source, name, "Failed to write to config topic", done, arg));
}

static void on_restart_task(struct conn_source *source, const char *name, int task,
                            connectors_done done, void *arg)
{
    if (!is_between(distributed_of(source), name, done, arg))
        connectors_restart_task(distributed_of(source)->connectors, name, task, done, arg);
}

static void on_tasks(struct conn_source *source, const char *name, const struct props *tasks,
                     size_t count, connectors_done done, void *arg)
{
    cluster_store_put_tasks(
        distributed_of(source)->store, name, tasks, count, on_written,
        writing_new(source, name, "Error writing task configurations to Kafka", done, arg));
}

static void on_logger(struct conn_source *source, const char *name, const char *level,
                      connectors_done done, void *arg)
{
    cluster_store_put_logger(
        distributed_of(source)->store, name, level, on_written,
        writing_new(source, name, "Error writing logger level to Kafka", done, arg));
}

static void on_freshened(void *arg, const struct mr_error *err)
{
    struct writing *writing = arg;
    const struct dist_conn *conn =
        writing->conn != NULL ? distributed_conn(writing->d, writing->conn) : NULL;
    struct mr_error told = {0};

    /* Until the round that took its tasks away is over, one may still run, and commit. */
    if (err == NULL && writing->conn != NULL &&
        (writing->d->rebalancing || (conn != NULL && (conn->held || conn->stopping))))
        stale(&told);
    if (told.code == 0) {
        on_written(writing, err);
        return;
    }
    writing->done(writing->arg, &told);
    free(writing->conn);
    free(writing);
}

static void on_freshen(struct conn_source *source, const char *name, connectors_done done,
                       void *arg)
{
    cluster_store_refresh(distributed_of(source)->store, CLUSTER_STORE_WRITE_MS, on_freshened,
                          writing_new(source, name,
                                      name != NULL ? "Failed to read to end of config topic before "
                                                     "modifying connector offsets"
                                                   : "Failed to read to end of config topic",
                                      done, arg));
}

void cluster_changes_serve(struct conn_source *source)
{
    source->who = on_who;
    source->put = on_put;
    source->remove = on_remove;
    source->target = on_target;
    source->restart = on_restart;
    source->restart_task = on_restart_task;
    source->tasks = on_tasks;
    source->logger = on_logger;
    source->is_signed = on_signed;
    source->freshen = on_freshen;
}
