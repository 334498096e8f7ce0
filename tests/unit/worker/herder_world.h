/* SPDX-License-Identifier: Apache-2.0 */
/* A supervisor, a loop, a store, Kafka and plugins that a test of the herder plays: what the
 * supervisor is told is a journal, and time passes when the test says so. Included by one .c of a
 * test binary, which then links none of the real ones. */
#ifndef TESTS_HERDER_WORLD_H
#define TESTS_HERDER_WORLD_H

#include "base/loop.h"
#include "no_services.h"
#include "worker/herder/offsets/offset_jobs.h"
#include "worker/herder/offsets/sink_offsets.h"
#include "worker/herder/cluster_probe.h"
#include "worker/store/local_store.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/plugin_check.h"
#include "worker/supervisor/supervisor.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOSTS_MAX 16
#define TIMERS_MAX 64
#define TASKS_MAX 8

struct loop {
    int64_t now_ms;
    struct loop_timer *timers[TIMERS_MAX];
};

struct host {
    char conn[128];
    bool draining;
    bool spent;
    bool live[TASKS_MAX];
    bool asked[TASKS_MAX]; /* to stop, and not answered yet */
    int stopping;          /* the last task of these, -1 none */
    bool object;           /* it has a connector object, or will */
};

static struct world {
    struct loop loop;
    struct supervisor_events events;
    void *arg;
    struct host hosts[HOSTS_MAX];
    int start_rc; /* of the next starts */
    char journal[65536];
    cluster_probe_fn probe_fn;
    void *probe_arg;
    bool probing;
    const char *trouble; /* of the probe's */
    bool joined;         /* the probe's thread was waited for */
    local_store_read_fn read_fn;
    local_store_written_fn written_fn;
    void *store_arg;
    bool store_open;
    bool lease_over;
    json_t *question; /* of a class that judges its values; NULL: none is asked */
    plugin_check_done check_done;
    void *check_arg;
    json_t *written;              /* a question that is to be asked */
    bool jobs_wait;               /* what is done beside the loop does not come to its end */
    struct offset_job job;        /* that waits */
    sink_offsets_done group_done; /* of what Kafka is asked about a group; NULL: nothing is */
    void *group_arg;
} world;

static MR_PRINTF(1, 2)
void note(const char *fmt, ...)
{
    size_t len = strlen(world.journal);
    va_list args;

    va_start(args, fmt);
    vsnprintf(world.journal + len, sizeof(world.journal) - len, fmt, args);
    va_end(args);
}

static void expect(const char *want)
{
    if (strcmp(world.journal, want) != 0)
        fail_msg("the supervisor was told\n%swhere this belongs\n%s", world.journal, want);
    world.journal[0] = '\0';
}

void loop_assert_owner(const struct loop *loop)
{
    assert_non_null(loop);
}

int64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_ms;
}

void loop_timer_cancel(struct loop_timer *timer)
{
    if (timer->slot > 0)
        timer->loop->timers[timer->slot - 1] = NULL;
    timer->slot = 0;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms, loop_fn fn,
                      void *arg)
{
    size_t slot = 0;

    loop_timer_cancel(timer);
    while (loop->timers[slot] != NULL)
        assert_true(++slot < TIMERS_MAX);
    *timer = (struct loop_timer){loop, fn, arg, loop->now_ms + delay_ms, slot + 1};
    loop->timers[slot] = timer;
}

/* Nothing here has a descriptor; what wire/ would have is linked for the check of settings
 * alone. */
struct loop_fd *loop_fd_add(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg,
                            struct mr_error *err)
{
    fail_msg("a descriptor is watched");
    return NULL;
}

void loop_fd_events(struct loop_fd *fd, uint32_t events)
{
    fail_msg("a descriptor is watched");
}

void loop_fd_remove(struct loop_fd **fd)
{
    fail_msg("a descriptor is watched");
}

static struct loop_timer *next_timer(int64_t until_ms)
{
    struct loop_timer *next = NULL;

    for (size_t i = 0; i < TIMERS_MAX; i++) {
        struct loop_timer *timer = world.loop.timers[i];

        if (timer != NULL && timer->due_ms <= until_ms &&
            (next == NULL || timer->due_ms < next->due_ms))
            next = timer;
    }
    return next;
}

/* Let time pass; timers run at their time. */
static void pass(int64_t ms)
{
    int64_t until = world.loop.now_ms + ms;
    struct loop_timer *timer;

    while ((timer = next_timer(until)) != NULL) {
        loop_fn fn = timer->fn;
        void *arg = timer->arg;

        if (timer->due_ms > world.loop.now_ms)
            world.loop.now_ms = timer->due_ms;
        loop_timer_cancel(timer);
        fn(arg);
    }
    world.loop.now_ms = until;
}

/* --- the supervisor --------------------------------------------------------------------------- */

struct plugin_check *plugin_check_new(struct loop *loop, const char *exe, int64_t patience_ms)
{
    return (struct plugin_check *)&world;
}

/* The answer to what is asked of plugin code now; NULL: it is called off. */
static void check_answers(const json_t *problems)
{
    json_t *question = world.question;

    assert_non_null(question);
    world.question = NULL;
    world.check_done(world.check_arg, json_deep_copy(problems));
    json_decref(question);
}

void plugin_check_free(struct plugin_check **pc)
{
    if (world.question != NULL)
        check_answers(NULL);
    *pc = NULL;
}

void plugin_check_ask(struct plugin_check *pc, json_t *question, plugin_check_done done, void *arg)
{
    assert_null(world.question);
    world.question = question;
    world.check_done = done;
    world.check_arg = arg;
}

/* What it is written to is kept in its place. */
int plugin_check_write(const json_t *question, struct mr_error *err)
{
    assert_null(world.written);
    world.written = json_deep_copy(question);
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void plugin_check_ask_written(struct plugin_check *pc, json_t *question, int fd,
                              plugin_check_done done, void *arg)
{
    assert_true(fd >= 0);
    close(fd);
    json_decref(question);
    question = world.written;
    world.written = NULL;
    plugin_check_ask(pc, question, done, arg);
}

static struct host *host_of(const char *conn)
{
    for (size_t i = 0; i < HOSTS_MAX; i++)
        if (strcmp(world.hosts[i].conn, conn) == 0)
            return &world.hosts[i];
    return NULL;
}

struct supervisor *supervisor_new(struct loop *loop, const struct supervisor_options *options,
                                  const struct supervisor_events *events, void *arg,
                                  struct mr_error *err)
{
    world.events = *events;
    world.arg = arg;
    return (struct supervisor *)&world;
}

void supervisor_free(struct supervisor **sup)
{
    *sup = NULL;
}

bool supervisor_hosts(const struct supervisor *sup, const char *conn)
{
    return host_of(conn) != NULL;
}

bool supervisor_spent(const struct supervisor *sup, const char *conn)
{
    const struct host *host = host_of(conn);

    return host != NULL && host->spent && !host->draining;
}

int supervisor_start(struct supervisor *sup, const struct supervisor_connector *spec,
                     struct mr_error *err)
{
    struct host *host = host_of("");

    assert_null(host_of(spec->conn)); /* promise 3: never beside its predecessor */
    note("start %s %s %s%s\n", spec->conn, spec->class_name, target_state_name(spec->target),
         spec->tasks_only ? " for tasks" : "");
    if (world.start_rc != 0)
        return mr_fail(err, world.start_rc, "no more processes");
    memset(host, 0, sizeof(*host));
    snprintf(host->conn, sizeof(host->conn), "%s", spec->conn);
    host->stopping = -1;
    host->object = !spec->tasks_only;
    return 0;
}

static struct host *serving(const char *conn)
{
    struct host *host = host_of(conn);

    return host != NULL && !host->draining ? host : NULL;
}

int supervisor_target(struct supervisor *sup, const char *conn, enum target_state target)
{
    note("target %s %s\n", conn, target_state_name(target));
    if (host_of(conn) != NULL)
        host_of(conn)->object = true;
    return serving(conn) != NULL ? 0 : MR_ERR_CLOSED;
}

int supervisor_ask_task_configs(struct supervisor *sup, const char *conn, int max)
{
    note("ask %s %d\n", conn, max);
    return serving(conn) != NULL ? 0 : MR_ERR_CLOSED;
}

int supervisor_start_task(struct supervisor *sup, const char *conn, int task,
                          const struct props *config, enum target_state target, int64_t generation)
{
    struct host *host = serving(conn);

    note("task %s %d %s\n", conn, task, target_state_name(target));
    assert_non_null(props_get(config, "task.class"));
    if (host == NULL)
        return MR_ERR_CLOSED;
    assert_false(host->live[task]); /* no task twice */
    assert_int_not_equal(host->stopping, task);
    host->live[task] = true;
    return 0;
}

int supervisor_task_target(struct supervisor *sup, const char *conn, int task,
                           enum target_state target)
{
    note("task_target %s %d %s\n", conn, task, target_state_name(target));
    return serving(conn) != NULL ? 0 : MR_ERR_CLOSED;
}

int supervisor_stop_task(struct supervisor *sup, const char *conn, int task)
{
    note("stop_task %s %d\n", conn, task);
    if (serving(conn) == NULL)
        return MR_ERR_CLOSED;
    host_of(conn)->stopping = task;
    host_of(conn)->asked[task] = true;
    return 0;
}

int supervisor_forget_topics(struct supervisor *sup, const char *conn)
{
    note("forget topics %s\n", conn);
    return serving(conn) != NULL ? 0 : MR_ERR_CLOSED;
}

int supervisor_drain(struct supervisor *sup, const char *conn)
{
    note("drain %s\n", conn);
    if (host_of(conn) == NULL)
        return MR_ERR_CLOSED;
    host_of(conn)->draining = true;
    return 0;
}

void supervisor_offsets_take(struct supervisor *sup, const char *conn, int64_t id, json_t *entries,
                             const char *error)
{
    note("offsets %s %d %s\n", conn, (int)id, error != NULL ? error : "ok");
    json_decref(entries);
}

void supervisor_log_levels(struct supervisor *sup)
{
    (void)sup;
}

bool supervisor_leased(const struct supervisor *sup)
{
    (void)sup;
    return !world.lease_over;
}

void supervisor_offsets_stored(struct supervisor *sup, const char *conn, int64_t id,
                               const char *error)
{
    note("stored %s %d %s\n", conn, (int)id, error != NULL ? error : "ok");
}

void supervisor_start_checked_take(struct supervisor *sup, const char *conn, int64_t id, bool ok,
                                   json_t *left)
{
    char *ids = left != NULL ? json_dumps(left, JSON_COMPACT) : NULL;

    note("checked %s %d %s%s%s\n", conn, (int)id, ok ? "yes" : "no", ids != NULL ? " " : "",
         ids != NULL ? ids : "");
    free(ids);
    json_decref(left);
}

void supervisor_fenced(struct supervisor *sup, const char *conn, int64_t id, const char *error)
{
    note("fenced %s %d %s\n", conn, (int)id, error != NULL ? error : "ok");
}

/* --- offsets ---------------------------------------------------------------------------------- */

struct offset_jobs *offset_jobs_new(struct loop *loop)
{
    return (struct offset_jobs *)&world;
}

/* Done at once, or where it is to wait, never. */
void offset_jobs_run(struct offset_jobs *jobs, const struct offset_job *job)
{
    assert_null(world.job.work);
    if (world.jobs_wait) {
        world.job = *job;
    } else {
        job->work(job->arg);
        job->back(job->arg, true);
    }
}

void offset_jobs_free(struct offset_jobs **jobs)
{
    if (world.job.work != NULL)
        world.job.back(world.job.arg, false);
    world.job = (struct offset_job){0};
    *jobs = NULL;
}

struct sink_offsets *sink_offsets_new(struct loop *loop, int64_t timeout_ms)
{
    return (struct sink_offsets *)&world;
}

/* Kafka's answer to what is asked of a group now. */
static void group_answers(const struct group_offset *list, size_t count, int code)
{
    sink_offsets_done done = world.group_done;
    struct mr_error err = {.code = code, .text = "Kafka says no"};
    struct group_offset *taken = NULL;

    assert_non_null(done);
    world.group_done = NULL;
    for (size_t i = 0; i < count; i++)
        if (list != NULL && (taken = realloc(taken, (i + 1) * sizeof(*taken))) != NULL)
            taken[i] =
                (struct group_offset){strdup(list[i].topic), list[i].partition, list[i].offset};
    done(world.group_arg, taken, count, code != 0 ? &err : NULL);
}

void sink_offsets_free(struct sink_offsets **so)
{
    if (world.group_done != NULL)
        group_answers(NULL, 0, MR_ERR_CLOSED);
    *so = NULL;
}

void sink_offsets_ask(struct sink_offsets *so, const struct sink_offsets_job *job,
                      sink_offsets_done done, void *arg)
{
    static const char *const acts[] = {"list", "change", "drop"};

    assert_null(world.group_done);
    note("%s %s by %s:", acts[job->act], job->group, props_get(job->client, "client.id"));
    for (size_t i = 0; i < job->count; i++)
        note(" %s-%d=%d", job->changes[i].topic, (int)job->changes[i].partition,
             (int)job->changes[i].offset);
    note("\n");
    world.group_done = done;
    world.group_arg = arg;
}

/* --- store, Kafka, plugins -------------------------------------------------------------------- */

struct local_store *local_store_open(const char *path, struct loop *loop, struct mr_error *err)
{
    world.store_open = true;
    return (struct local_store *)&world;
}

void local_store_close(struct local_store **store)
{
    world.store_open = world.store_open && *store == NULL;
    *store = NULL;
}

void local_store_get(struct local_store *store, const char *conn, const json_t *partitions,
                     local_store_read_fn fn, void *arg)
{
    note("get %s\n", conn);
    world.read_fn = fn;
    world.store_arg = arg;
}

void local_store_list(struct local_store *store, const char *conn, local_store_read_fn fn,
                      void *arg)
{
    note("list %s\n", conn);
    world.read_fn = fn;
    world.store_arg = arg;
}

void local_store_put(struct local_store *store, const char *conn, json_t *entries,
                     local_store_written_fn fn, void *arg)
{
    note("put %s\n", conn);
    json_decref(entries);
    world.written_fn = fn;
    world.store_arg = arg;
}

struct cluster_probe *cluster_probe_start(struct loop *loop, const struct worker_config *config,
                                          cluster_probe_fn fn, void *arg, struct mr_error *err)
{
    world.probe_fn = fn;
    world.probe_arg = arg;
    world.probing = true;
    return (struct cluster_probe *)&world;
}

void cluster_probe_trouble(struct cluster_probe *probe, char *out, size_t size)
{
    snprintf(out, size, "%s", world.trouble != NULL ? world.trouble : "");
}

void cluster_probe_stop(struct cluster_probe *probe)
{
    world.probing = false;
}

void cluster_probe_free(struct cluster_probe **probe)
{
    world.joined = world.joined || *probe != NULL;
    world.probing = false;
    *probe = NULL;
}

static const struct mr_config_key source_keys[] = {
    {"topic", MR_CFG_STRING, MR_CFG_REQUIRED, .fallback = NULL}, {0}};
static const struct mr_config_key no_keys[] = {{0}};
static const struct mr_config_key picky_keys[] = {{"mood", MR_CFG_STRING, .fallback = "good"},
                                                  {"taste", MR_CFG_STRING, .fallback = NULL},
                                                  {"number", MR_CFG_INT, .fallback = "1"},
                                                  {0}};
static const char *const no_aliases[] = {NULL};

static const struct catalog_plugin plugins[] = {
    {.name = "Snk",
     .version = "2.0",
     .library = "/p/snk.so",
     .kind = MR_PLUGIN_SINK,
     .aliases = no_aliases,
     .keys = no_keys,
     .java_class = "org.example.SnkConnector"},
    {.name = "Src",
     .version = "1.0",
     .library = "/p/src.so",
     .kind = MR_PLUGIN_SOURCE,
     .aliases = no_aliases,
     .keys = source_keys,
     .java_class = "org.example.SrcConnector"},
    {.name = "PickySrc",
     .version = "1.0",
     .library = "/p/picky.so",
     .kind = MR_PLUGIN_SOURCE,
     .aliases = no_aliases,
     .keys = picky_keys,
     .checks = true,
     .java_class = "org.example.PickySrcConnector"},
    {.name = "StringConverter",
     .library = "/p/c.so",
     .kind = MR_PLUGIN_CONVERTER,
     .aliases = no_aliases,
     .keys = no_keys,
     .java_class = "org.example.StringConverter"},
    {.name = "Picky",
     .version = "1.0",
     .library = "/p/picky.so",
     .kind = MR_PLUGIN_TRANSFORM,
     .aliases = no_aliases,
     .keys = picky_keys,
     .checks = true,
     .java_class = "org.example.Picky"},
    {.name = "Snk", /* the same library in a second folder */
     .version = "2.0",
     .library = "/q/snk.so",
     .kind = MR_PLUGIN_SINK,
     .aliases = no_aliases,
     .keys = no_keys,
     .java_class = "org.example.SnkConnector"},
};

#define PLUGINS (sizeof(plugins) / sizeof(plugins[0]))

size_t catalog_count(const struct catalog *cat)
{
    return PLUGINS;
}

const struct catalog_plugin *catalog_at(const struct catalog *cat, size_t i)
{
    return &plugins[i];
}

const struct catalog_plugin *catalog_find(const struct catalog *cat, uint32_t kind,
                                          const char *name)
{
    for (size_t i = 0; i < PLUGINS; i++)
        if (strcmp(plugins[i].name, name) == 0 && (kind == 0 ? i < 3 : plugins[i].kind == kind))
            return &plugins[i];
    return NULL;
}

#endif
