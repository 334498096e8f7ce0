/* SPDX-License-Identifier: Apache-2.0 */
/* The herder: REST's and the command line's door to everything that runs. It judges changes and
 * hands them to the source of configurations (herder_changes.c; conn_source.h: standalone.c or
 * distributed.c), answers reads from memory (herder_reads.c), and hears what hosts tell. Here it is
 * put together, begun and ended, and the supervisor's events go where they belong.
 *
 *   rest ──► herder ──► judge ──► validate, plugin_check
 *              │  └──► source ──► connectors ──► lifecycle ──► supervisor
 *              │       (what      (in order)     (state           │ events
 *              │     should run)      ▲         machine)          │
 *              └──► host_desk         └───────────────────────────┘
 *
 * Loop thread only; nothing here blocks. */
#define LOGGER "worker.herder"
#include "worker/herder/herder_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "model/topic_tracking.h"

#include <stdlib.h>
#include <string.h>

#define SHUTDOWN_SPARE_MS 3000 /* over the graceful timeout: then hosts that are left are killed */
#define LEAVE_MS 5000          /* the member gives up after 3 s by itself */
#define HELLO_MS 10000

/* --- events ----------------------------------------------------------------------------------- */

static void on_connector(void *arg, const char *conn, enum state state, const char *trace,
                         const char *version)
{
    connectors_on_connector(((struct herder *)arg)->connectors, conn, state, trace, version);
}

static void on_configs(void *arg, const char *conn, const json_t *configs, const char *error)
{
    connectors_on_configs(((struct herder *)arg)->connectors, conn, configs, error);
}

static void on_made(void *arg, const char *conn, struct props *configs, size_t count)
{
    struct herder *herder = arg;

    herder->source->made(herder->source, conn, configs, count);
}

static void on_told(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    struct herder *herder = arg;

    herder->source->told(herder->source, conn, task, state, trace);
}

static void on_orphaned(void *arg, const struct lifecycle_orphans *orphans)
{
    struct herder *herder = arg;

    herder->source->orphaned(herder->source, orphans);
}

static void on_share(void *arg, const char *conn, struct share *out)
{
    struct herder *herder = arg;

    herder->source->share(herder->source, conn, out);
}

static void on_shared(void *arg, const char *conn)
{
    struct herder *herder = arg;

    herder->source->shared(herder->source, conn);
}

static void on_task(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    connectors_on_task(((struct herder *)arg)->connectors, conn, task, state, trace);
}

static void on_task_member(void *arg, const char *conn, int task, const char *member)
{
    struct herder *herder = arg;

    sink_members_joined(herder->sink_members, herder->source, conn, task, member);
}

static void on_offsets_get(void *arg, const char *conn, int64_t id, const json_t *partitions)
{
    host_desk_get(&((struct herder *)arg)->desk, conn, id, partitions);
}

static void on_offsets_put(void *arg, const char *conn, int64_t id, const json_t *entries)
{
    host_desk_put(&((struct herder *)arg)->desk, conn, id, entries);
}

static void on_topic_used(void *arg, const char *conn, int task, const char *topic)
{
    struct herder *herder = arg;

    if (topic_tracking_wanted(&herder->config->props))
        herder->source->topic_used(herder->source, conn, task, topic);
}

static void on_start_check(void *arg, const char *conn, int64_t id, int task, int64_t generation)
{
    host_desk_check(&((struct herder *)arg)->desk, conn, id, task, generation);
}

static void on_fence(void *arg, const char *conn, int64_t id)
{
    host_desk_fence(&((struct herder *)arg)->desk, conn, id);
}

/* What is here of it starts again; each worker hears of its own share. */
static void on_config_stale(void *arg, const char *conn)
{
    static const struct connectors_plan all = {.connector = true, .tasks = true};

    connectors_restart(((struct herder *)arg)->connectors, conn, &all, NULL, NULL);
}

static void on_died(void *arg, const char *conn, const struct supervisor_death *death)
{
    connectors_on_died(((struct herder *)arg)->connectors, conn, death);
}

static const struct supervisor_events supervisor_events = {
    .connector_status = on_connector,
    .task_configs = on_configs,
    .task_status = on_task,
    .task_member = on_task_member,
    .offsets_get = on_offsets_get,
    .offsets_put = on_offsets_put,
    .start_check = on_start_check,
    .fence = on_fence,
    .topic_used = on_topic_used,
    .config_stale = on_config_stale,
    .died = on_died,
};

/* --- how it stands ---------------------------------------------------------------------------- */

static const char *source_stage(const struct herder *herder)
{
    return herder->source->stage != NULL ? herder->source->stage(herder->source) : NULL;
}

bool herder_readable(const struct herder *herder)
{
    return herder->source->readable == NULL || herder->source->readable(herder->source);
}

bool herder_ready(const struct herder *herder)
{
    return herder->started && herder->cluster_id != NULL && !herder->stopping &&
           source_stage(herder) == NULL;
}

const char *herder_unwell(const struct herder *herder)
{
    return herder->source->unwell != NULL ? herder->source->unwell(herder->source) : NULL;
}

const char *herder_stage(const struct herder *herder)
{
    if (herder->stopping)
        return "ending connectors and tasks";
    if (!herder->started)
        return "creating the connectors of the command line";
    if (source_stage(herder) != NULL)
        return source_stage(herder);
    return herder->cluster_id == NULL ? "waiting for the Kafka cluster to answer"
                                      : "waiting for requests and events";
}

int64_t herder_stage_since(const struct herder *herder)
{
    return herder_ready(herder) ? 0 : herder->stage_wall_ms;
}

void herder_trouble(const struct herder *herder, char *out, size_t size)
{
    cluster_probe_trouble(herder->probe, out, size);
}

static void tell_ready(const struct herder *herder)
{
    if (herder_ready(herder))
        log_info("start-up is over: %s, Kafka cluster %s",
                 herder->config->worker_id != NULL ? herder->config->worker_id : "",
                 herder->cluster_id);
}

static void on_cluster_id(void *arg, const char *id)
{
    struct herder *herder = arg;

    herder->cluster_id = text_dup(id);
    tell_ready(herder);
}

struct peer *herder_peer(const struct herder *herder)
{
    return herder->source->peer;
}

void herder_started(struct herder *herder)
{
    herder->started = true;
    herder->stage_wall_ms = clock_wall_ms();
    tell_ready(herder);
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_stopped(void *arg)
{
    struct herder *herder = arg;
    loop_fn fn = herder->stopped_fn;

    herder->stopped_fn = NULL;
    loop_timer_cancel(&herder->stop_guard);
    if (fn != NULL)
        fn(herder->stopped_arg);
}

static void on_stop_guard(void *arg)
{
    struct herder *herder = arg;

    log_error("%zu connectors did not end in time: their processes are killed",
              connectors_hosts(herder->connectors));
    on_stopped(herder);
}

static void on_leave_guard(void *arg)
{
    log_warn("leaving the cluster took too long: the others wait this worker's session out");
    on_stopped(arg);
}

/* Nothing runs any more: a cluster is told that we leave, which has a time of its own. */
static void on_connectors_ended(void *arg)
{
    struct herder *herder = arg;

    if (herder->source->shutdown == NULL) {
        on_stopped(herder);
        return;
    }
    loop_timer_start(herder->loop, &herder->stop_guard, LEAVE_MS, on_leave_guard, herder);
    herder->source->shutdown(herder->source, on_stopped, herder);
}

void herder_shutdown(struct herder *herder, loop_fn fn, void *arg)
{
    herder->stopping = true;
    herder->stage_wall_ms = clock_wall_ms();
    herder->stopped_fn = fn;
    herder->stopped_arg = arg;
    cluster_probe_stop(herder->probe);
    loop_timer_start(herder->loop, &herder->stop_guard,
                     herder->config->graceful_ms + SHUTDOWN_SPARE_MS, on_stop_guard, herder);
    connectors_shutdown(herder->connectors, on_connectors_ended, herder);
}

static void on_source_failed(void *arg, const struct mr_error *err)
{
    struct herder *herder = arg;

    herder->failed(herder->mode_arg, err);
}

static void on_source_readable(void *arg)
{
    struct herder *herder = arg;

    herder->stage_wall_ms = clock_wall_ms();
    herder->readable(herder->mode_arg);
}

static int open_parts(struct herder *herder, const struct herder_options *options,
                      struct mr_error *err)
{
    struct supervisor_options sup = {.exe = "/proc/self/exe",
                                     .run_dir = herder->config->run_dir,
                                     .worker_props = &herder->config->props,
                                     .secrets = herder->config->secrets,
                                     .providers = herder->config->providers,
                                     .catalog = herder->catalog,
                                     .graceful_ms = herder->config->graceful_ms,
                                     .hello_ms = HELLO_MS};
    struct source_parts parts = {.loop = herder->loop,
                                 .config = herder->config,
                                 .catalog = herder->catalog,
                                 .readable = on_source_readable,
                                 .failed = on_source_failed,
                                 .arg = herder};

    herder->sup = supervisor_new(herder->loop, &sup, &supervisor_events, herder, err);
    parts.sup = herder->sup;
    if (herder->sup == NULL || (herder->source = options->open(&parts, err)) == NULL)
        return -1;
    herder->probe = cluster_probe_start(herder->loop, herder->config, on_cluster_id, herder, err);
    return herder->probe != NULL ? 0 : -1;
}

static void open_connectors(struct herder *herder)
{
    bool shares = herder->source->share != NULL;
    struct connectors_options options = {.loop = herder->loop,
                                         .sup = herder->sup,
                                         .restart_max = herder->config->restart_max,
                                         .made = on_made,
                                         .told = shares ? on_told : NULL,
                                         .orphaned = shares ? on_orphaned : NULL,
                                         .share = shares ? on_share : NULL,
                                         .shared = shares ? on_shared : NULL,
                                         .arg = herder};

    herder->connectors = connectors_new(&options);
    herder->source->run_on(herder->source, herder->connectors);
}

struct herder *herder_new(const struct herder_options *options, struct mr_error *err)
{
    struct herder *herder = calloc(1, sizeof(*herder));

    mr_assert(herder != NULL);
    herder->sink_members = map_new();
    herder->stage_wall_ms = clock_wall_ms();
    herder->loop = options->loop;
    herder->config = options->config;
    herder->catalog = options->catalog;
    herder->failed = options->failed;
    herder->readable = options->readable;
    herder->mode_arg = options->arg;
    if (open_parts(herder, options, err) != 0) {
        herder_free(&herder);
        return NULL;
    }
    herder->desk =
        (struct host_desk){herder->loop, herder->sup, herder->source, herder->sink_members};
    herder->judge = judge_new(herder->loop, herder->catalog, herder->config);
    herder->offsets = offset_changes_new(herder->loop, herder->source, herder->config);
    open_connectors(herder);
    return herder;
}

void herder_free(struct herder **herderp)
{
    struct herder *herder = *herderp;

    *herderp = NULL;
    if (herder == NULL)
        return;
    herder->stopping = true;
    loop_timer_cancel(&herder->stop_guard);
    cluster_probe_free(&herder->probe);
    judge_free(&herder->judge);
    connectors_free(&herder->connectors);
    if (herder->offsets != NULL)
        offset_changes_stop(herder->offsets);
    if (herder->source != NULL)
        herder->source->free(herder->source); /* its last answers go to hosts, and to these: */
    offset_changes_free(&herder->offsets);
    supervisor_free(&herder->sup);
    map_free(&herder->sink_members, free);
    free(herder->cluster_id);
    free(herder);
}
