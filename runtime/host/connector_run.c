/* SPDX-License-Identifier: Apache-2.0 */
/* One connector object in a host, on a thread of its own. Made and told by hosted.c (control
 * thread); everything that can run plugin code, from the library's constructors on, happens on the
 * connector thread.
 *
 *   CLOSED ─open ok─► RUNNING ⇄ PAUSED ⇄ STOPPED          CLOSED ─open fails─► FAILED
 *                      (connector_run_target)              any of them ─task configs fail─► FAILED
 *                                                          FAILED ─target STOPPED─► STOPPED
 *
 * A host that holds tasks alone has the library open and no object: that begins with the first
 * target. As in Connect, FAILED is left by STOPPED only; a connector that never opened is opened
 * anew when it leaves STOPPED. The thread is detached: destructors that a library ties to the end
 * of a thread may hang, and nobody waits for them. */
#include "host/connector_run.h"

#include "base/clock.h"
#include "base/config_ref.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/thread.h"
#include "host/host_api.h"
#include "host/host_references.h"
#include "host/thread_guard.h"
#include "host/trace.h"
#include "model/conn_config.h"
#include "model/topic_groups.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#define LOGGER "host.connector"
#define COMMANDS_MAX 64
#define TTL_MIN_MS 100    /* what a provider may ask for is not more often than that */
#define AGAIN_MIN_MS 5000 /* nor what it has failed to give: each try may cost a process */

struct connector_run {
    /* Set before the thread starts, constant after that. */
    char *name;
    char *library;
    char *class_name;
    struct props config; /* as it is stored */
    const struct props *worker;
    const struct providers *providers;
    struct black_box *box;
    size_t box_slot;
    const struct connector_run_events *events;
    void *arg;
    struct queue *commands;
    atomic_bool ending; /* set before the queue is closed */
    /* The thread's own. */
    enum target_state target;
    bool tasks_only; /* there is no object to tell of yet */
    enum state state;
    const struct plugin *plugin; /* NULL: not open */
    struct props resolved;       /* config, as of the last start or question */
    struct props held;           /* config, as of the start of what runs here */
    int64_t again_ms;            /* when references are to be looked up again; INT64_MAX: never */
    int64_t ttl_ms;              /* and how long that was then */
    struct instance instance;
};

struct command {
    void (*act)(struct connector_run *run, int number);
    int number;
};

/* --- the connector thread --------------------------------------------------------------------- */

static void set_state(struct connector_run *run, enum state state, const char *trace)
{
    run->state = state;
    run->events->status(run->arg, run, state, trace,
                        run->plugin == NULL ? NULL : run->plugin->version);
}

static void set_failed(struct connector_run *run, const struct mr_error *err, const char *call)
{
    char where[600];
    char trace[TRACE_MAX];

    snprintf(where, sizeof(where), "%s of connector %.250s (%.250s)", call, run->name,
             run->class_name);
    log_error("connector failed in %s: %s", call, err->text);
    set_state(run, STATE_FAILED, trace_write(trace, sizeof(trace), err, where));
}

static enum state state_for(enum target_state target)
{
    static const enum state states[] = {[TARGET_STARTED] = STATE_RUNNING,
                                        [TARGET_PAUSED] = STATE_PAUSED,
                                        [TARGET_STOPPED] = STATE_STOPPED};

    return states[target];
}

/* What a source's tasks will create topics by: a mistake in it fails the connector, as in
 * Connect. */
static int check_topics(const struct connector_run *run, const struct plugin *plugin,
                        struct mr_error *err)
{
    struct topic_groups groups;
    int rc;

    if (run->tasks_only || plugin->kind != MR_PLUGIN_SOURCE || run->worker == NULL ||
        !topic_groups_wanted(run->worker, &run->resolved))
        return 0;
    rc = topic_groups_read(&run->resolved, &groups, err);
    topic_groups_deinit(&groups);
    return rc;
}

/* A provider may say how long its values hold; a user, that nothing is to come of it. */
static void look_again_in(struct connector_run *run, const struct props *resolved, int64_t ttl_ms)
{
    struct config_value reload = {0};
    bool wanted = conn_config_get("config.action.reload", resolved, &reload, NULL) != 0 ||
                  reload.text == NULL || strcasecmp(reload.text, "none") != 0;

    config_value_deinit(&reload);
    run->ttl_ms = ttl_ms < TTL_MIN_MS ? TTL_MIN_MS : ttl_ms;
    run->again_ms = wanted && ttl_ms != INT64_MAX ? clock_ms() + run->ttl_ms : INT64_MAX;
}

static int resolve_into(const struct connector_run *run, int64_t *ttl_ms, struct props *out,
                        struct mr_error *err)
{
    struct host_references of = {
        .providers = run->providers, .config = &run->config, .ttl_ms = ttl_ms, .tell = true};

    return host_references_resolve(&of, out, err);
}

/* References are looked up anew: what they name may have changed since. */
static int resolve(struct connector_run *run, struct mr_error *err)
{
    struct props resolved;
    int64_t ttl_ms = INT64_MAX;
    int rc = resolve_into(run, &ttl_ms, &resolved, err);

    if (rc != 0)
        return rc;
    look_again_in(run, &resolved, ttl_ms);
    props_deinit(&run->resolved);
    run->resolved = resolved;
    return 0;
}

/* Their time has come. What can't be read now changes nothing: what runs goes on, and they are
 * looked up again after as long a time, or a longer one. */
static void look_again(struct connector_run *run)
{
    struct mr_error err = {0};
    struct props now;
    int64_t ttl_ms = INT64_MAX;

    if (resolve_into(run, &ttl_ms, &now, &err) != 0) {
        log_warn("what its configuration refers to was to be read again, and it goes on with what "
                 "it has: %s",
                 err.text);
        run->again_ms = clock_ms() + (run->ttl_ms > AGAIN_MIN_MS ? run->ttl_ms : AGAIN_MIN_MS);
        return;
    }
    look_again_in(run, &now, ttl_ms);
    if (props_equal(&now, &run->held)) {
        props_deinit(&now);
        return;
    }
    log_info("what its configuration refers to has changed: it is started again");
    props_deinit(&run->held);
    run->held = now;
    run->events->stale(run->arg, run);
}

static int open_instance(struct connector_run *run, const struct plugin *plugin,
                         struct mr_error *err)
{
    int rc = instance_init(&run->instance, plugin, &run->resolved, err);

    run->instance.connector = run->name;
    return rc;
}

static int open_connector(struct connector_run *run, struct mr_error *err)
{
    const struct plugin *plugin;
    int rc;

    black_box_enter(run->box, run->box_slot, run->name, -1, "load");
    plugin = plugin_load_find(run->library, 0, run->class_name, err);
    black_box_leave(run->box, run->box_slot);
    if (plugin == NULL)
        return err->code;
    rc = resolve(run, err);
    if (rc == 0) {
        props_deinit(&run->held);
        mr_assert(props_copy(&run->held, &run->resolved) == 0);
        rc = check_topics(run, plugin, err);
    }
    if (rc == 0)
        rc = open_instance(run, plugin, err);
    if (rc != 0)
        return rc;
    run->plugin = plugin;
    run->events->loaded(run->arg, run, plugin);
    return 0;
}

/* Bring the connector to its target, opening it first where that was not done. */
static void settle(struct connector_run *run)
{
    struct mr_error err = {0};

    if (run->plugin == NULL ? open_connector(run, &err) != 0
                            : check_topics(run, run->plugin, &err) != 0) {
        set_failed(run, &err, "start");
        return;
    }
    if (!run->tasks_only)
        set_state(run, state_for(run->target), NULL);
}

static void do_target(struct connector_run *run, int number)
{
    run->target = (enum target_state)number;
    run->tasks_only = false;
    if (run->target == TARGET_STOPPED)
        set_state(run, STATE_STOPPED, NULL);
    else if (run->state == STATE_FAILED)
        log_warn("connector stays FAILED: it must be restarted or stopped before it can be %s",
                 run->target == TARGET_PAUSED ? "paused" : "resumed");
    else
        settle(run);
}

static bool too_many(const struct connector_run *run, size_t count, int max, struct mr_error *err)
{
    struct config_value enforce;
    bool lax =
        conn_config_get("tasks.max.enforce", &run->resolved, &enforce, NULL) == 0 && enforce.i == 0;

    if (count <= (size_t)max)
        return false;
    if (lax) {
        log_warn("the connector has generated %zu tasks, which is greater than %d, the maximum "
                 "number of tasks it is "
                 "configured to create",
                 count, max);
        return false;
    }
    mr_fail(err, MR_ERR_FATAL,
            "The connector %s has generated %zu tasks, which is greater than %d, the maximum "
            "number of tasks it is "
            "configured to create. This behavior should be considered a bug and is disallowed. If "
            "necessary, it can be "
            "permitted by reconfiguring the connector with 'tasks.max.enforce' set to false; "
            "however, this option will "
            "be removed in a future release of Kafka Connect.",
            run->name, count, max);
    return true;
}

/* A reference is nothing to the worker, which asks for so many tasks. */
static int max_of(const struct connector_run *run, int max)
{
    struct config_value value;

    if (!config_ref_any(props_get(&run->config, "tasks.max")) ||
        conn_config_get("tasks.max", &run->resolved, &value, NULL) != 0)
        return max;
    return value.i < CONN_CONFIG_TASKS_MAX ? (int)value.i : CONN_CONFIG_TASKS_MAX;
}

static json_t *json_from_configs(const struct props *raw, struct props *configs, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < count; i++) {
        host_references_restore(raw, &configs[i]);
        if (json_array_append_new(array, json_from_props(&configs[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

/* Values that have changed at their provider make another instance of the connector, as a restart
 * does in Java. */
static int renew(struct connector_run *run, struct mr_error *err)
{
    struct props before;
    int rc = 0;

    if (!providers_refer_any(run->providers, &run->config))
        return 0;
    mr_assert(props_copy(&before, &run->resolved) == 0);
    rc = resolve(run, err);
    if (rc == 0 && !props_equal(&before, &run->resolved)) {
        instance_deinit(&run->instance);
        rc = open_instance(run, run->plugin, err);
    }
    props_deinit(&before);
    return rc;
}

/* NULL with err when there are none to give. */
static json_t *ask_task_configs(struct connector_run *run, int max, struct mr_error *err)
{
    struct props *configs = NULL;
    size_t count = 0;
    json_t *array = NULL;
    int rc;

    rc = renew(run, err);
    if (rc != 0)
        return NULL;
    max = max_of(run, max);
    black_box_enter(run->box, run->box_slot, run->name, -1, "tasks");
    rc = instance_task_configs(&run->instance, max, &configs, &count, err);
    black_box_leave(run->box, run->box_slot);
    if (rc != 0)
        return NULL;
    if (!too_many(run, count, max, err)) {
        array = json_from_configs(&run->config, configs, count);
        if (array == NULL)
            mr_fail(err, MR_ERR_NOMEM, "out of memory for %zu task configurations", count);
    }
    instance_task_configs_free(configs, count);
    return array;
}

static void do_task_configs(struct connector_run *run, int max)
{
    struct mr_error err = {0};
    json_t *configs;

    if (run->plugin == NULL) {
        run->events->task_configs(run->arg, run, NULL, "the connector is not running");
        return;
    }
    configs = ask_task_configs(run, max, &err);
    run->events->task_configs(run->arg, run, configs, configs != NULL ? NULL : err.text);
    /* A connector that is "not ready yet" is asked again by the worker; any other failure is
     * final. */
    if (configs == NULL && err.code != MR_ERR_RETRY)
        set_failed(run, &err, "tasks");
}

/* Looks references up where their time comes while it waits; NULL: there is no more. */
static struct command *next_command(struct connector_run *run)
{
    struct command *command;

    for (;;) {
        int64_t wait_ms = run->again_ms == INT64_MAX ? -1 : run->again_ms - clock_ms();

        command = queue_pop(run->commands, run->again_ms != INT64_MAX && wait_ms < 0 ? 0 : wait_ms);
        if (command != NULL || atomic_load(&run->ending))
            return command;
        if (clock_ms() >= run->again_ms)
            look_again(run);
    }
}

static void *thread_main(void *arg)
{
    struct connector_run *run = arg;
    struct command *command;

    thread_guard_enter(run->box_slot);
    log_context(run->name, -1);
    settle(run);
    while ((command = next_command(run)) != NULL) {
        command->act(run, command->number);
        free(command);
    }
    if (run->plugin != NULL)
        instance_deinit(&run->instance);
    log_context(NULL, -1);
    thread_guard_leave();
    run->events->ended(run->arg, run);
    return NULL;
}

/* --- control ---------------------------------------------------------------------------------- */

static int push(struct connector_run *run, void (*act)(struct connector_run *, int), int number)
{
    struct command *command = malloc(sizeof(*command));
    int rc;

    if (command == NULL)
        return MR_ERR_NOMEM;
    *command = (struct command){.act = act, .number = number};
    rc = queue_push(run->commands, command);
    if (rc != 0)
        free(command);
    return rc;
}

int connector_run_target(struct connector_run *run, enum target_state target)
{
    return push(run, do_target, (int)target);
}

int connector_run_task_configs(struct connector_run *run, int max)
{
    return push(run, do_task_configs, max);
}

void connector_run_end(struct connector_run *run)
{
    atomic_store(&run->ending, true);
    queue_close(run->commands);
}

static int start_thread(struct connector_run *run, struct mr_error *err)
{
    int rc = thread_start_aside(thread_main, run);

    return rc == 0
               ? 0
               : mr_fail(err, MR_ERR_IO, "cannot start the connector's thread: %s", strerror(rc));
}

struct connector_run *connector_run_new(const struct connector_run_spec *spec, struct mr_error *err)
{
    struct connector_run *run = calloc(1, sizeof(*run));

    if (run != NULL) {
        run->name = strdup(spec->name);
        run->library = strdup(spec->library);
        run->class_name = strdup(spec->class_name);
        run->worker = spec->worker;
        run->providers = spec->providers;
        run->box = spec->box;
        run->box_slot = spec->box_slot;
        run->events = spec->events;
        run->arg = spec->arg;
        run->target = spec->target;
        run->tasks_only = spec->tasks_only;
        run->commands = queue_new(COMMANDS_MAX);
        run->again_ms = INT64_MAX;
        atomic_init(&run->ending, false);
    }
    if (run == NULL || run->name == NULL || run->library == NULL || run->class_name == NULL ||
        props_copy(&run->config, spec->config) != 0)
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
    else if (start_thread(run, err) == 0)
        return run;
    connector_run_free(&run);
    return NULL;
}

void connector_run_free(struct connector_run **rp)
{
    struct connector_run *run = *rp;

    *rp = NULL;
    if (run == NULL)
        return;
    queue_free(&run->commands, free);
    props_deinit(&run->config);
    props_deinit(&run->resolved);
    props_deinit(&run->held);
    free(run->name);
    free(run->library);
    free(run->class_name);
    free(run);
}
