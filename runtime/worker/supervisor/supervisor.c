/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: who has a host, and what every host is told. The herder's door to processes; the
 * work on one host is in tenant.c (connector, tasks, deadlines) and child.c (process). Worker's
 * loop thread.
 *
 *   herder ─► supervisor ─► tenant ─► child ─► spawn, chan, output
 *      ▲                      │         │
 *      └──── events ──────────┴─────────┘ obituary
 *
 * A connector is in `hosts` from supervisor_start until its host is dead and reaped; `died` is
 * called after it has left, so the herder may start it again from inside. */
#define LOGGER "worker.supervisor"
#include "worker/supervisor/supervisor.h"

#include "base/clock.h"
#include "base/log_levels.h"
#include "base/map.h"
#include "base/provider.h"
#include "base/text.h"
#include "link/inherit.h"
#include "worker/supervisor/catalog.h"
#include "worker/supervisor/nest.h"
#include "worker/supervisor/plugin_finder.h"
#include "worker/supervisor/tenant.h"
#include "worker/supervisor/orphans.h"
#include "worker/supervisor/spawn.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ORPHANS_WAIT_MS 3000
#define SWEEP_MS 50
#define SWEEPS_MIN 3   /* a look may miss one while others go */
#define SWEEPS_MAX 100 /* then the next death tries again */

struct supervisor {
    struct loop *loop;
    struct supervisor_events events;
    struct tenant_owner owner;
    struct nest *nest;
    char *run_dir;
    int64_t hello_ms;
    struct map *hosts;   /* connector → struct tenant */
    int64_t host_number; /* names lock files */
    const struct props *worker;
    const struct catalog *catalog;
    json_t *worker_props; /* of WELCOME */
    json_t *secrets;      /* the same */
    const struct providers *providers;
    int64_t soft_ms; /* of LEASE; 0 = none is needed */
    int64_t hard_ms;
    struct loop_timer sweep;
    int sweeps;
};

/* --- what leftovers of plugins need ----------------------------------------------------------- */

/* Not while a host may be a child of ours already and its number is still on its way. */
static void on_sweep(void *arg)
{
    struct supervisor *sup = arg;
    bool found = nest_busy(sup->nest) || orphans_sweep(spawn_knows) > 0;

    if (++sup->sweeps < (found ? SWEEPS_MAX : SWEEPS_MIN))
        loop_timer_start(sup->loop, &sup->sweep, SWEEP_MS, on_sweep, sup);
}

static void on_strays(void *arg)
{
    struct supervisor *sup = arg;

    sup->sweeps = 0;
    loop_timer_start(sup->loop, &sup->sweep, 0, on_sweep, sup);
}

/* --- what tenant.c asks ----------------------------------------------------------------------- */

static json_t *make_levels(void)
{
    size_t count = 0;
    struct log_logger *list = log_levels_list(&count);
    json_t *levels = json_object();

    for (size_t i = 0; i < count; i++)
        json_object_set_new(levels, list[i].name, json_string(log_level_name(list[i].level)));
    free(list);
    return levels;
}

static json_t *make_welcome(void *arg, const char *lock_path)
{
    struct supervisor *sup = arg;

    return json_pack("{s:i, s:O, s:O, s:s, s:o}", "version", INHERIT_LINK_VERSION, "worker",
                     sup->worker_props, "secrets", sup->secrets, "lock", lock_path, "loggers",
                     make_levels());
}

static json_t *make_lease(void *arg)
{
    struct supervisor *sup = arg;

    return json_pack("{s:I, s:I}", "soft_ms", (json_int_t)sup->soft_ms, "hard_ms",
                     (json_int_t)sup->hard_ms);
}

static void host_gone(void *arg, struct tenant *tenant)
{
    struct supervisor *sup = arg;

    map_remove(sup->hosts, tenant_conn(tenant));
    on_strays(sup);
}

/* --- to one connector ------------------------------------------------------------------------- */

static struct tenant *find_host(const struct supervisor *sup, const char *conn)
{
    loop_assert_owner(sup->loop);
    return map_get(sup->hosts, conn);
}

static int send_take(struct supervisor *sup, const char *conn, enum msg_kind kind, json_t *body)
{
    struct tenant *tenant = find_host(sup, conn);

    if (tenant != NULL)
        return tenant_send_take(tenant, kind, body);
    json_decref(body);
    return MR_ERR_CLOSED;
}

bool supervisor_hosts(const struct supervisor *sup, const char *conn)
{
    return find_host(sup, conn) != NULL;
}

bool supervisor_spent(const struct supervisor *sup, const char *conn)
{
    const struct tenant *tenant = find_host(sup, conn);

    return tenant != NULL && tenant_spent(tenant);
}

static json_t *places_of(const struct supervisor *sup, const char *library,
                         const struct props *config)
{
    struct props seen;
    json_t *places;

    providers_glance_all(sup->providers, config, &seen);
    places = plugin_finder_places(sup->catalog, library, sup->worker, &seen);
    props_deinit(&seen);
    return places;
}

static int send_connector(const struct supervisor *sup, struct tenant *tenant,
                          const struct supervisor_connector *spec, struct mr_error *err)
{
    json_t *body = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:o}", "conn", spec->conn, "library", spec->library, "class",
        spec->class_name, "config", json_from_props(spec->config), "target",
        target_state_name(spec->target), "plugins", places_of(sup, spec->library, spec->config));
    int rc;

    if (body == NULL)
        return mr_fail(err, MR_ERR_CONFIG,
                       "the configuration of connector %.200s is not valid UTF-8", spec->conn);
    if (spec->tasks_only)
        json_object_set_new(body, "object", json_false());
    rc = tenant_send_take(tenant, MSG_CONNECTOR_START, body);
    if (rc == MR_ERR_TOO_LARGE)
        return mr_fail(err, rc,
                       "the configuration of connector %.200s is too large: at most %u bytes",
                       spec->conn, msg_rule(MSG_CONNECTOR_START)->max_body);
    return rc == 0 ? 0
                   : mr_fail(err, rc, "the host process of connector %.200s is gone", spec->conn);
}

int supervisor_start(struct supervisor *sup, const struct supervisor_connector *spec,
                     struct mr_error *err)
{
    struct child_options options = {
        .nest = sup->nest, .name = spec->conn, .hello_ms = sup->hello_ms};
    char lock_path[PATH_MAX];
    struct tenant *tenant;
    int rc;

    if (find_host(sup, spec->conn) != NULL)
        return mr_fail(err, MR_ERR_STATE, "connector %.200s still has a host process", spec->conn);
    if (!orphans_lock_path(sup->run_dir, ++sup->host_number, lock_path, sizeof(lock_path)))
        return mr_fail(err, MR_ERR_CONFIG, "millrace.run.dir is too long: %.200s", sup->run_dir);
    tenant = tenant_new(sup->loop, &options, &sup->owner, lock_path, err);
    if (tenant == NULL)
        return err != NULL && err->code != 0 ? err->code : MR_ERR_IO;
    rc = send_connector(sup, tenant, spec, err);
    if (rc != 0) {
        tenant_free(&tenant);
        return rc;
    }
    map_set(sup->hosts, spec->conn, tenant);
    return 0;
}

int supervisor_target(struct supervisor *sup, const char *conn, enum target_state target)
{
    return send_take(sup, conn, MSG_CONNECTOR_TARGET,
                     json_pack("{s:s, s:s}", "conn", conn, "target", target_state_name(target)));
}

int supervisor_ask_task_configs(struct supervisor *sup, const char *conn, int max)
{
    return send_take(sup, conn, MSG_TASK_CONFIGS,
                     json_pack("{s:s, s:i}", "conn", conn, "max", max));
}

int supervisor_start_task(struct supervisor *sup, const char *conn, int task,
                          const struct props *config, enum target_state target, int64_t generation)
{
    struct tenant *tenant = find_host(sup, conn);

    if (tenant == NULL)
        return MR_ERR_CLOSED;
    return tenant_start_task_take(tenant, task, generation,
                                  json_pack("{s:s, s:i, s:o, s:s, s:I}", "conn", conn, "task", task,
                                            "config", json_from_props(config), "target",
                                            target_state_name(target), "generation",
                                            (json_int_t)generation));
}

int supervisor_task_target(struct supervisor *sup, const char *conn, int task,
                           enum target_state target)
{
    return send_take(sup, conn, MSG_TASK_TARGET,
                     json_pack("{s:s, s:i, s:s}", "conn", conn, "task", task, "target",
                               target_state_name(target)));
}

int supervisor_forget_topics(struct supervisor *sup, const char *conn)
{
    struct tenant *tenant = find_host(sup, conn);

    return tenant == NULL ? MR_ERR_CLOSED : tenant_forget_topics(tenant);
}

int supervisor_stop_task(struct supervisor *sup, const char *conn, int task)
{
    struct tenant *tenant = find_host(sup, conn);

    return tenant == NULL ? MR_ERR_CLOSED : tenant_stop_task(tenant, task);
}

int supervisor_drain(struct supervisor *sup, const char *conn)
{
    struct tenant *tenant = find_host(sup, conn);

    if (tenant == NULL)
        return MR_ERR_CLOSED;
    tenant_drain(tenant);
    return 0;
}

static void answer_take(struct supervisor *sup, const char *conn,
                        const struct tenant_answer *answer)
{
    struct tenant *tenant = find_host(sup, conn);

    if (tenant != NULL)
        tenant_answer_take(tenant, answer);
    else
        json_decref(answer->entries);
}

void supervisor_offsets_take(struct supervisor *sup, const char *conn, int64_t id, json_t *entries,
                             const char *error)
{
    answer_take(sup, conn, &(struct tenant_answer){.id = id, .entries = entries, .error = error});
}

void supervisor_start_checked_take(struct supervisor *sup, const char *conn, int64_t id, bool ok,
                                   json_t *left)
{
    answer_take(sup, conn, &(struct tenant_answer){.id = id, .ok = ok, .entries = left});
}

void supervisor_fenced(struct supervisor *sup, const char *conn, int64_t id, const char *error)
{
    answer_take(sup, conn, &(struct tenant_answer){.id = id, .error = error});
}

void supervisor_offsets_stored(struct supervisor *sup, const char *conn, int64_t id,
                               const char *error)
{
    supervisor_offsets_take(sup, conn, id, NULL, error);
}

/* --- to all ----------------------------------------------------------------------------------- */

void supervisor_lease(struct supervisor *sup, int64_t soft_ms, int64_t hard_ms)
{
    void *value;

    loop_assert_owner(sup->loop);
    sup->soft_ms = soft_ms;
    sup->hard_ms = hard_ms;
    for (size_t i = 0; map_next(sup->hosts, &i, NULL, &value);)
        if (child_greeted(tenant_child(value)))
            child_send_take(tenant_child(value), MSG_LEASE, make_lease(sup));
}

void supervisor_log_levels(struct supervisor *sup)
{
    void *value;

    loop_assert_owner(sup->loop);
    for (size_t i = 0; map_next(sup->hosts, &i, NULL, &value);)
        if (child_greeted(tenant_child(value)))
            child_send_take(tenant_child(value), MSG_LOG_LEVELS,
                            json_pack("{s:o}", "loggers", make_levels()));
}

bool supervisor_leased(const struct supervisor *sup)
{
    return sup->hard_ms == 0 || clock_boot_ms() < sup->hard_ms;
}

json_t *supervisor_describe(const struct supervisor *sup)
{
    json_t *list = json_array();
    void *value;

    loop_assert_owner(sup->loop);
    for (size_t i = 0; map_next(sup->hosts, &i, NULL, &value);) {
        const struct child *child = tenant_child(value);

        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:I, s:I}", "conn",
                                              tenant_conn(value), "pid", (int)child_pid(child),
                                              "state", child_state_name(child), "stdout_dropped",
                                              (json_int_t)child_dropped_bytes(child), "silent_ms",
                                              (json_int_t)child_silent_ms(child)));
    }
    return list;
}

int supervisor_bury_orphans(const char *run_dir, int cancel_fd, struct mr_error *err)
{
    return orphans_bury(run_dir, ORPHANS_WAIT_MS, cancel_fd, err);
}

static json_t *json_from_secrets(const struct secrets *secrets)
{
    json_t *object = json_object();
    const char *reference, *value;

    for (size_t i = 0; secrets != NULL && secrets_at(secrets, i, &reference, &value); i++)
        json_object_set_new(object, reference, json_string(value));
    return object;
}

/* --- life ------------------------------------------------------------------------------------- */

struct supervisor *supervisor_new(struct loop *loop, const struct supervisor_options *options,
                                  const struct supervisor_events *events, void *arg,
                                  struct mr_error *err)
{
    struct supervisor *sup = calloc(1, sizeof(*sup));

    mr_assert(sup != NULL);
    sup->loop = loop;
    sup->events = *events;
    sup->owner = (struct tenant_owner){.events = &sup->events,
                                       .events_arg = arg,
                                       .welcome = make_welcome,
                                       .lease = make_lease,
                                       .gone = host_gone,
                                       .arg = sup,
                                       .graceful_ms = options->graceful_ms};
    sup->nest = nest_new(
        loop, &(struct nest_options){.exe = options->exe, .strays = on_strays, .arg = sup});
    sup->run_dir = text_dup(options->run_dir);
    sup->hello_ms = options->hello_ms > 0 ? options->hello_ms : 10000;
    sup->hosts = map_new();
    sup->worker = options->worker_props;
    sup->catalog = options->catalog;
    sup->providers = options->providers;
    sup->worker_props = json_from_props(options->worker_props);
    sup->secrets = json_from_secrets(options->secrets);
    if (sup->run_dir == NULL || sup->worker_props == NULL) {
        mr_fail(err, MR_ERR_CONFIG, "the worker's properties are not valid UTF-8");
        supervisor_free(&sup);
        return NULL;
    }
    orphans_adopt();
    return sup;
}

static void free_tenant(void *value)
{
    struct tenant *tenant = value;

    tenant_free(&tenant);
}

void supervisor_free(struct supervisor **supp)
{
    struct supervisor *sup = *supp;

    *supp = NULL;
    if (sup == NULL)
        return;
    map_free(&sup->hosts, free_tenant);
    nest_free(&sup->nest);
    loop_timer_cancel(&sup->sweep);
    orphans_sweep(spawn_knows); /* what a nest that was ended left */
    json_decref(sup->worker_props);
    json_decref(sup->secrets);
    free(sup->run_dir);
    free(sup);
}
