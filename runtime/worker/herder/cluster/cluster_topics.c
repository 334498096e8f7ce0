/* SPDX-License-Identifier: Apache-2.0 */
/* What the topics say, and what each record makes a cluster's worker do, whoever wrote it.
 *
 *   cluster_store ─► on_config ─► connectors: reshare, restart ; cluster_round: another one, please
 *                ├─► on_status, on_topic, on_word ─► cluster_status, supervisor, cluster_words
 *                └─► on_ready: all was read once; the member joins the group
 *
 * What is to run here no record says alone: it is looked at anew (conn_source.h's share), so
 * records may come in any number. Events of the store; loop thread. */
#define LOGGER "worker.herder"
#include "worker/herder/cluster/distributed_private.h"

#include "base/log.h"
#include "base/text.h"
#include "worker/herder/log_control.h"

#include <stdlib.h>
#include <string.h>

static struct dist_conn *conn_of(struct distributed *d, const char *name)
{
    struct dist_conn *conn = map_get(d->conns, name);

    if (conn != NULL)
        return conn;
    conn = calloc(1, sizeof(*conn));
    mr_assert(conn != NULL);
    conn->d = d;
    conn->name = text_dup(name);
    map_set(d->conns, name, conn);
    return conn;
}

static void on_updated(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);
    bool known = conn->known;

    conn->known = true;
    conn->serial = ++d->serials;
    connectors_reshare(d->connectors, conn->name);
    if (!known)
        cluster_round_want(d, "a connector was created");
}

static void on_removed(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);

    conn->known = false;
    task_writer_forget(conn);
    connectors_reshare(d->connectors, conn->name);
    conn->stopping = connectors_sharing(d->connectors, conn->name);
    cluster_round_want(d, "a connector was deleted");
}

/* Tasks of the old set stop everywhere before those of the new one start anywhere. */
static void on_committed(struct distributed *d, const struct config_change *change)
{
    struct dist_conn *conn = conn_of(d, change->name);

    cluster_fence_cancel(conn);
    conn->held = true;
    conn->held_offset = config_state_offset(distributed_config(d));
    connectors_reshare(d->connectors, conn->name);
    conn->stopping = connectors_sharing(d->connectors, conn->name);
    if (config_state_conn(distributed_config(d), conn->name)->inconsistent)
        task_writer_torn(conn);
    cluster_round_want(d, "tasks were configured");
}

static void on_targeted(struct distributed *d, const struct config_change *change)
{
    connectors_reshare(d->connectors, change->name);
}

static void on_restarting(struct distributed *d, const struct config_change *change)
{
    struct connectors_plan plan = {
        .connector = true, .tasks = change->include_tasks, .only_failed = change->only_failed};

    connectors_restart(d->connectors, change->name, &plan, NULL, NULL);
}

static void on_keyed(struct distributed *d, const struct config_change *change)
{
    (void)change;
    key_keeper_look(d);
}

static void on_logging(struct distributed *d, const struct config_change *change)
{
    log_control_heard(d->parts.sup, change->name, change->level);
}

static void on_config(void *arg, const struct config_change *change)
{
    static void (*const acts[])(struct distributed *, const struct config_change *) = {
        [CONFIG_UPDATED] = on_updated,       [CONFIG_REMOVED] = on_removed,
        [CONFIG_TASKS] = on_committed,       [CONFIG_TARGETED] = on_targeted,
        [CONFIG_RESTARTING] = on_restarting, [CONFIG_KEYED] = on_keyed,
        [CONFIG_LOGGING] = on_logging,       [CONFIG_FENCED] = NULL,
    };
    struct distributed *d = arg;

    if (d->closing)
        return;
    if ((size_t)change->kind < sizeof(acts) / sizeof(acts[0]) && acts[change->kind] != NULL)
        acts[change->kind](d, change);
    distributed_report(d, NULL);
}

static void on_status(void *arg, const char *conn, int task)
{
    cluster_status_read(arg, conn, task);
}

/* What runs goes on, from memory, and so does the group, as long as all stand where we do: after a
 * topic was deleted that is worth more than an end that would begin with no connectors at all.
 * cluster_round.c sees when others have gone on. */
static void on_lost(void *arg, const char *topic, const struct mr_error *err)
{
    struct distributed *d = arg;
    const char *config = props_get(&d->parts.config->props, "config.storage.topic");

    log_error("the topic %s is lost, and what needs it fails from now on: %s", topic, err->text);
    if (d->lost == NULL)
        mr_assert(asprintf(&d->lost, "The topic %s is lost.", topic) > 0);
    if (config == NULL || strcmp(topic, config) != 0)
        return;
    d->config_lost = true;
    log_error("connectors go on as they are, and can't be changed. Keep what GET "
              "/connectors?expand=info shows; once %s is there again (one partition, "
              "cleanup.policy=compact), start all workers of the group %s again and create them "
              "anew",
              topic, d->parts.config->cluster.group_id);
}

static void on_word(void *arg, const struct word *word)
{
    cluster_words_heard(arg, word);
}

/* Whether it still leads another round tells. */
static void on_unclaimed(void *arg)
{
    struct distributed *d = arg;

    if (d->leads && !d->closing)
        cluster_round_want(d, "its right to write as the leader is in doubt");
}

static void on_ready(void *arg, const struct mr_error *err)
{
    struct distributed *d = arg;
    const struct config_conn *config;

    if (err != NULL) {
        d->parts.failed(d->parts.arg, err);
        return;
    }
    for (size_t i = 0; (config = config_state_next(distributed_config(d), &i)) != NULL;) {
        struct dist_conn *conn = conn_of(d, config->name);

        conn->known = true;
        conn->serial = ++d->serials;
    }
    d->replayed = true;
    d->parts.readable(d->parts.arg);
    log_info("connectors in the config topic: %zu; joins group %s",
             config_state_count(distributed_config(d)), d->parts.config->cluster.group_id);
    member_start(d->member, config_state_offset(distributed_config(d)));
}

static void on_topic(void *arg, const char *conn, const char *topic, bool gone)
{
    struct distributed *d = arg;

    (void)topic;
    if (gone && !d->closing)
        (void)supervisor_forget_topics(d->parts.sup, conn);
}

const struct cluster_store_events cluster_topics_events = {
    .ready = on_ready,
    .config = on_config,
    .status = on_status,
    .topic = on_topic,
    .word = on_word,
    .unclaimed = on_unclaimed,
    .lost = on_lost,
};
