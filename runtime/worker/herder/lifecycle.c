/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one connector here, as a state machine over the supervisor. Called by connectors.c (requests and events) and
 * by its own timer; on the worker's loop.
 *
 *                apply, target, restart                 RUNNING                  made, run
 *      IDLE ───────────────► DUE ─────► STARTING ───────────────► ASKING ──────────────────► UP ◄─────► STOPPING_TASK
 *       ▲        (next round)  ▲  begin    │ PAUSED               │  ▲ "not ready": again    │  restart_task  │
 *       │                      │           └──────────────────────┼──┼──────────────────────►│               │
 *       │                      │                                  │  └─── resumed, restart ──┤               │
 *       │        ┌─────────────┴───────── died, for a task that would not stop ◄──────────────┼───────────────┘
 *       │        │ time is up        died                         │ FAILED                   │
 *       │     WAITING ◄────────────────────────────────────────── any with a host             │
 *       │        │ the policy gave up                             │                          │
 *       │        ▼                                                ▼                          ▼
 *       │      DOWN ◄────────────────────────────────────────  DRAINING ◄── stop, end, apply, restart: whatever runs
 *       └───────────────────────────────────────── stopped ───────┘ (to DUE where a start follows)
 *
 * Moves: begin, ask, lifecycle_run, drain, drained, crash, and the functions named after events.
 * Invariants: a host exists exactly in STARTING to UP, STOPPING_TASK and DRAINING; a successor starts only after `died`
 * (promise 3), and never from inside a call of the supervisor's. A task that FAILED by its own error stays FAILED until a
 * request revives it; one whose host died starts again with it. */
#define LOGGER "worker.herder"
#include "worker/herder/lifecycle.h"

#include "base/log.h"
#include "model/conn_config.h"
#include "worker/supervisor/restart_policy.h"

#define ASK_AGAIN_FIRST_MS 250 /* task configurations that are not ready: doubling, up to */
#define ASK_AGAIN_LAST_MS 60000

enum phase { IDLE, DUE, STARTING, ASKING, UP, STOPPING_TASK, DRAINING, WAITING, DOWN };
enum next { NEXT_START, NEXT_REST, NEXT_DOWN }; /* after DRAINING */

struct task {
    struct props config;
    enum state state;
    char *trace;
    bool alive;  /* its host runs it: not FAILED or UNASSIGNED since it was started */
    bool failed; /* by an error of its own */
};

struct lifecycle {
    char *name;
    const struct lifecycle_env *env;
    const struct catalog_plugin *plugin;
    struct props config;
    enum target_state target;
    enum phase phase;
    enum next next;
    enum state state;
    char *trace;
    char *version;
    struct task *tasks;
    size_t task_count;
    bool fresh; /* a new configuration: no task's FAILED counts any more */
    bool stale; /* the tasks' configurations are older than the connector's: changed while paused */
    int stopping; /* the task of STOPPING_TASK */
    struct restart_policy policy;
    struct loop_timer timer; /* of DUE, WAITING, and ASKING again */
    int64_t ask_again_ms;
    bool settled;
    struct mr_error result;
};

static void begin(void *arg);

/* --- small ---------------------------------------------------------------------------------------------------------- */

static void set_text(char **to, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    free(*to);
    *to = copy;
}

static void set_state(struct lifecycle *lc, enum state state, const char *trace)
{
    if (lc->state != state)
        log_write_for(state == STATE_FAILED ? LOG_ERROR : LOG_INFO, LOGGER, lc->name, -1,
                      "connector is %s", state_name(state));
    lc->state = state;
    if (trace != lc->trace)
        set_text(&lc->trace, trace);
}

static void set_task(struct lifecycle *lc, size_t i, enum state state, const char *trace)
{
    struct task *task = &lc->tasks[i];

    if (task->state != state)
        log_write_for(state == STATE_FAILED ? LOG_ERROR : LOG_INFO, LOGGER, lc->name, (int)i,
                      "task is %s", state_name(state));
    task->state = state;
    if (trace != task->trace)
        set_text(&task->trace, trace);
}

static void settle(struct lifecycle *lc, const struct mr_error *err)
{
    lc->settled = true;
    if (err != NULL)
        lc->result = *err;
    else
        err_clear(&lc->result);
}

/* What a trace says is wrong: its first line, without the error's class before it ("org.example.SomeException: "). */
static const char *reason_of(const char *trace, int *len)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$";
    size_t word = strspn(trace, name);

    if (memchr(trace, '.', word) != NULL && strncmp(trace + word, ": ", 2) == 0)
        trace += word + 2;
    *len = (int)strcspn(trace, "\n");
    return trace;
}

static void settle_failed(struct lifecycle *lc, const char *trace)
{
    struct mr_error err = {0};
    const char *reason;
    int len;

    reason = reason_of(trace, &len);
    mr_fail(&err, MR_ERR_FATAL, "%.*s", len, reason);
    settle(lc, &err);
}

bool lifecycle_settled(struct lifecycle *lc, struct mr_error *err)
{
    bool settled = lc->settled;

    if (settled && err != NULL)
        *err = lc->result;
    lc->settled = false;
    return settled;
}

static void forget_tasks(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++) {
        props_deinit(&lc->tasks[i].config);
        free(lc->tasks[i].trace);
    }
    free(lc->tasks);
    lc->tasks = NULL;
    lc->task_count = 0;
}

static bool has_host(const struct lifecycle *lc)
{
    return (lc->phase >= STARTING && lc->phase <= DRAINING) &&
           supervisor_hosts(lc->env->sup, lc->name);
}

bool lifecycle_hosted(const struct lifecycle *lc)
{
    return has_host(lc);
}

static int tasks_max(const struct lifecycle *lc)
{
    struct config_value value;

    return conn_config_get("tasks.max", &lc->config, &value, NULL) == 0 ? (int)value.i : 1;
}

/* --- starting ------------------------------------------------------------------------------------------------------- */

static void start_soon(struct lifecycle *lc)
{
    lc->phase = DUE;
    loop_timer_start(lc->env->loop, &lc->timer, 0, begin, lc);
}

static void show_dead(struct lifecycle *lc, enum state state, const char *trace)
{
    set_state(lc, state, trace);
    for (size_t i = 0; i < lc->task_count; i++)
        if (!lc->tasks[i].failed)
            set_task(lc, i, state, trace);
}

/* The host is gone, or could not be made, and nobody asked for it. */
static void crash(struct lifecycle *lc, const char *text)
{
    int64_t delay = restart_policy_died(&lc->policy, loop_now_ms(lc->env->loop));

    if (delay < 0) {
        lc->phase = DOWN;
        show_dead(lc, STATE_FAILED, text);
    } else {
        log_write_for(LOG_WARN, LOGGER, lc->name, -1,
                      "starts again in %.3g s (death %d of at most %d in %d minutes)",
                      (double)delay / 1000, lc->policy.count, lc->policy.max,
                      RESTART_POLICY_WINDOW_MS / 60000);
        lc->phase = WAITING;
        show_dead(lc, STATE_RESTARTING, text);
        loop_timer_start(lc->env->loop, &lc->timer, delay, begin, lc);
    }
    settle(lc, NULL);
}

static void begin(void *arg)
{
    struct lifecycle *lc = arg;
    struct supervisor_connector spec = {.conn = lc->name,
                                        .library = lc->plugin->library,
                                        .class_name = lc->plugin->name,
                                        .config = &lc->config,
                                        .target = lc->target};
    struct mr_error err = {0};

    lc->phase = STARTING;
    lc->ask_again_ms = ASK_AGAIN_FIRST_MS;
    set_text(&lc->version, lc->plugin->version);
    if (supervisor_start(lc->env->sup, &spec, &err) != 0) {
        log_write_for(LOG_ERROR, LOGGER, lc->name, -1, "cannot start its process: %s", err.text);
        crash(lc, err.text);
    }
    lc->env->moved(lc->env->arg, lc->name);
}

static void start_task(struct lifecycle *lc, size_t i)
{
    struct task *task = &lc->tasks[i];
    int rc = supervisor_start_task(lc->env->sup, lc->name, (int)i, &task->config, lc->target, 0);

    task->failed = false;
    task->alive = rc == 0;
    if (rc != 0 && rc != MR_ERR_CLOSED) { /* closed: `died` follows */
        task->failed = true;
        set_task(lc, i, STATE_FAILED,
                 rc == MR_ERR_TOO_LARGE ? "the task's configuration is too large for its process"
                                        : "the task's process does not take it");
    }
}

static void start_idle_tasks(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++)
        if (!lc->tasks[i].alive && !lc->tasks[i].failed)
            start_task(lc, i);
}

/* What was to start again with the connector does not: a request to start it starts them too. */
static void fail_restarting(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++)
        if (!lc->tasks[i].alive && lc->tasks[i].state == STATE_RESTARTING)
            set_task(lc, i, STATE_FAILED, lc->trace);
}

/* --- ending --------------------------------------------------------------------------------------------------------- */

static void drained(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++) {
        lc->tasks[i].alive = false;
        if (!lc->tasks[i].failed && lc->tasks[i].state != STATE_RESTARTING)
            set_task(lc, i, STATE_UNASSIGNED, NULL);
    }
    if (lc->next == NEXT_START) {
        if (lc->state == STATE_FAILED)
            set_state(lc, STATE_RESTARTING, lc->trace);
        start_soon(lc);
    } else if (lc->next == NEXT_REST) {
        lc->phase = IDLE;
        if (lc->target == TARGET_STOPPED)
            forget_tasks(lc);
        set_state(lc, lc->target == TARGET_STOPPED ? STATE_STOPPED : STATE_UNASSIGNED, NULL);
        settle(lc, NULL);
    } else {
        lc->phase = DOWN;
        fail_restarting(lc);
        settle_failed(lc, lc->trace != NULL ? lc->trace : "the connector failed");
    }
}

/* End whatever runs, then go on with `next`. */
static void drain(struct lifecycle *lc, enum next next)
{
    bool host = has_host(lc);

    loop_timer_cancel(&lc->timer);
    lc->next = next;
    if (lc->phase == DRAINING && host)
        return;
    lc->phase = DRAINING;
    if (!host || (supervisor_drain(lc->env->sup, lc->name) != 0 &&
                  !supervisor_hosts(lc->env->sup, lc->name)))
        drained(lc);
}

/* The connector itself can't run: the host serves nobody, unless tasks of before run in it. */
static void fail(struct lifecycle *lc, const char *trace)
{
    set_state(lc, STATE_FAILED, trace);
    for (size_t i = 0; i < lc->task_count; i++)
        if (lc->tasks[i].alive) {
            lc->phase = UP;
            fail_restarting(lc);
            settle_failed(lc, trace);
            return;
        }
    drain(lc, NEXT_DOWN);
}

/* --- the tasks' configurations -------------------------------------------------------------------------------------- */

static void ask(void *arg)
{
    struct lifecycle *lc = arg;

    lc->phase = ASKING;
    supervisor_ask_task_configs(lc->env->sup, lc->name, tasks_max(lc)); /* closed: `died` follows */
}

static void ask_again(void *arg)
{
    struct lifecycle *lc = arg;

    ask(lc);
    settle(lc, NULL); /* no failure, only later: whoever waits for the start is told that it runs */
    lc->env->moved(lc->env->arg, lc->name);
}

static bool same_configs(const struct lifecycle *lc, const struct props *configs, size_t count)
{
    if (count != lc->task_count || lc->stale)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!props_equal(&lc->tasks[i].config, &configs[i]))
            return false;
    return true;
}

static bool any_alive(const struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++)
        if (lc->tasks[i].alive)
            return true;
    return false;
}

/* A new configuration, also one that says the same, or a restart of everything: what failed of before starts again. */
static void forget_failures(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->task_count; i++)
        if (lc->tasks[i].failed) {
            lc->tasks[i].failed = false;
            set_task(lc, i, STATE_UNASSIGNED, NULL);
        }
    lc->fresh = false;
}

static void take_configs(struct lifecycle *lc, const struct props *configs, size_t count)
{
    struct task *tasks = calloc(count + 1, sizeof(*tasks));

    mr_assert(tasks != NULL);
    for (size_t i = 0; i < count; i++) {
        struct task *before = i < lc->task_count ? &lc->tasks[i] : NULL;

        mr_assert(props_copy(&tasks[i].config, &configs[i]) == 0);
        tasks[i].state = STATE_UNASSIGNED;
        if (before == NULL)
            continue;
        tasks[i].state = before->state;
        tasks[i].failed = before->failed;
        tasks[i].trace = before->trace;
        before->trace = NULL;
    }
    forget_tasks(lc);
    lc->tasks = tasks;
    lc->task_count = count;
    lc->stale = false;
}

void lifecycle_run(struct lifecycle *lc, const struct props *configs, size_t count)
{
    if (lc->phase != ASKING)
        return;
    if (!same_configs(lc, configs, count) && any_alive(lc)) {
        drain(lc, NEXT_START); /* to be asked again by a host without tasks */
        return;
    }
    if (lc->fresh)
        forget_failures(lc);
    if (!same_configs(lc, configs, count))
        take_configs(lc, configs, count);
    lc->phase = UP;
    start_idle_tasks(lc);
    settle(lc, NULL);
}

void lifecycle_on_configs(struct lifecycle *lc, const json_t *configs, const char *error)
{
    size_t count = json_array_size(configs), made = 0;
    struct props *list;
    struct mr_error err = {0};

    if (lc->phase != ASKING)
        return;
    if (error != NULL) {
        /* FAILED follows at once, unless the plugin asked to be asked again. */
        log_write_for(LOG_WARN, LOGGER, lc->name, -1, "no task configurations: %s", error);
        loop_timer_start(lc->env->loop, &lc->timer, lc->ask_again_ms, ask_again, lc);
        lc->ask_again_ms =
            lc->ask_again_ms * 2 < ASK_AGAIN_LAST_MS ? lc->ask_again_ms * 2 : ASK_AGAIN_LAST_MS;
        return;
    }
    list = calloc(count + 1, sizeof(*list));
    mr_assert(list != NULL);
    while (made < count && err.code == 0) {
        props_init(&list[made]);
        json_to_props(json_array_get(configs, made), &list[made], &err);
        made++;
    }
    if (err.code == 0) {
        lc->ask_again_ms = ASK_AGAIN_FIRST_MS;
        lc->env->made(lc->env->arg, lc->name, list, count);
    } else {
        err_prefix(&err, "task configuration %zu is unusable", made - 1);
        fail(lc, err.text);
    }
    while (made > 0)
        props_deinit(&list[--made]);
    free(list);
}

/* --- events --------------------------------------------------------------------------------------------------------- */

/* Started, and not to run yet: tasks of before come back paused, new ones are made when it is resumed. */
static void up_without_asking(struct lifecycle *lc)
{
    lc->phase = UP;
    if (!lc->stale && lc->target == TARGET_PAUSED)
        start_idle_tasks(lc);
    for (size_t i = 0; lc->stale && i < lc->task_count; i++)
        set_task(lc, i, STATE_PAUSED, NULL);
    settle(lc, NULL);
}

static void on_started(struct lifecycle *lc, enum state state)
{
    set_state(lc, state, NULL);
    if (state == STATE_RUNNING && lc->target == TARGET_STARTED)
        ask(lc);
    else
        up_without_asking(lc);
}

void lifecycle_on_connector(struct lifecycle *lc, enum state state, const char *trace,
                            const char *version)
{
    enum state before = lc->state;

    if (lc->phase < STARTING || lc->phase > STOPPING_TASK)
        return;
    if (version != NULL)
        set_text(&lc->version, version);
    if (state == STATE_FAILED && (lc->phase == STARTING || lc->phase == ASKING)) {
        loop_timer_cancel(&lc->timer);
        fail(lc, trace != NULL ? trace : "the connector failed");
    } else if (state == STATE_FAILED) {
        set_state(lc, state, trace);
    } else if (state != STATE_RUNNING && state != STATE_PAUSED) {
        return;
    } else if (lc->phase == STARTING) {
        on_started(lc, state);
    } else {
        set_state(lc, state, NULL);
        if (state == STATE_RUNNING && before != STATE_RUNNING && lc->phase == UP &&
            lc->target == TARGET_STARTED)
            ask(lc); /* resumed: what changed while paused takes effect */
    }
}

static void on_task_stopped(struct lifecycle *lc, size_t i)
{
    lc->phase = UP;
    start_task(lc, i);
    settle(lc, NULL);
}

void lifecycle_on_task(struct lifecycle *lc, int number, enum state state, const char *trace)
{
    size_t i = (size_t)number;

    if (number < 0 || i >= lc->task_count || lc->phase < ASKING || lc->phase > DRAINING)
        return;
    if (state == STATE_UNASSIGNED && lc->phase == STOPPING_TASK && number == lc->stopping) {
        lc->tasks[i].alive = false;
        on_task_stopped(lc, i);
        return;
    }
    if (!lc->tasks[i].alive)
        return;
    if (state == STATE_FAILED || state == STATE_UNASSIGNED)
        lc->tasks[i].alive = false;
    lc->tasks[i].failed = state == STATE_FAILED;
    if (state == STATE_UNASSIGNED && lc->tasks[i].state == STATE_RESTARTING)
        return; /* it ended to restart: shown until it has */
    set_task(lc, i, state, trace);
}

/* Its siblings were ended with it, and start with it again at once: no fault of theirs, so no state of fault. */
static void on_killed_for_task(struct lifecycle *lc, const struct supervisor_death *death)
{
    log_write_for(LOG_WARN, LOGGER, lc->name, lc->stopping,
                  "the task would not stop, so its process was ended; all tasks of "
                  "the connector start again");
    for (size_t i = 0; i < lc->task_count; i++)
        if (!lc->tasks[i].failed)
            set_task(lc, i, STATE_RESTARTING, death->text);
    set_state(lc, STATE_RESTARTING, death->text);
    start_soon(lc);
}

void lifecycle_on_died(struct lifecycle *lc, const struct supervisor_death *death)
{
    enum phase phase = lc->phase;

    if (phase < STARTING || phase > DRAINING)
        return;
    loop_timer_cancel(&lc->timer);
    for (size_t i = 0; i < lc->task_count; i++)
        lc->tasks[i].alive = false;
    if (phase == DRAINING) {
        drained(lc);
    } else if (phase == STOPPING_TASK && death->culprit >= 0) {
        lc->tasks[lc->stopping].failed = false;
        on_killed_for_task(lc, death);
    } else {
        crash(lc, death->text);
    }
}

bool lifecycle_may_start(const struct lifecycle *lc, int task)
{
    return lc->phase >= ASKING && lc->phase <= STOPPING_TASK && lc->target != TARGET_STOPPED &&
           task >= 0 && (size_t)task < lc->task_count && lc->tasks[task].alive;
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

static void start_over(struct lifecycle *lc)
{
    restart_policy_reset(&lc->policy);
    drain(lc, NEXT_START);
}

static void stop(struct lifecycle *lc)
{
    lc->target = TARGET_STOPPED;
    restart_policy_reset(&lc->policy);
    drain(lc, NEXT_REST);
}

void lifecycle_apply(struct lifecycle *lc, const struct lifecycle_work *work)
{
    lc->plugin = work->plugin;
    props_deinit(&lc->config);
    mr_assert(props_copy(&lc->config, work->config) == 0);
    lc->target = work->target;
    lc->fresh = true;
    lc->stale = work->target == TARGET_PAUSED;
    set_text(&lc->version, work->plugin->version);
    if (work->target == TARGET_STOPPED)
        stop(lc);
    else
        start_over(lc);
}

void lifecycle_target(struct lifecycle *lc, enum target_state target)
{
    if (target == TARGET_STOPPED) {
        stop(lc);
        return;
    }
    if (lc->target == target)
        return;
    lc->target = target;
    if (lc->phase == IDLE) {
        lc->fresh = true;
        drain(lc, NEXT_START);
    } else if (lc->phase >= STARTING && lc->phase <= STOPPING_TASK) {
        supervisor_target(lc->env->sup, lc->name, target);
        for (size_t i = 0; i < lc->task_count; i++)
            if (lc->tasks[i].alive)
                supervisor_task_target(lc->env->sup, lc->name, (int)i, target);
    }
}

void lifecycle_restart(struct lifecycle *lc)
{
    if (lc->target == TARGET_STOPPED)
        return;
    if (lc->phase != UP || (lc->state != STATE_RUNNING && lc->state != STATE_PAUSED))
        start_over(lc);
    else if (lc->target == TARGET_STARTED)
        ask(lc); /* the object is nothing but its configuration: made anew, its tasks looked at anew */
}

void lifecycle_restart_all(struct lifecycle *lc)
{
    lc->fresh = true;
    for (size_t i = 0; i < lc->task_count; i++)
        lc->tasks[i].failed = false;
    if (lc->target != TARGET_STOPPED)
        start_over(lc);
}

void lifecycle_revive(struct lifecycle *lc, int task)
{
    if (task >= 0 && (size_t)task < lc->task_count)
        lc->tasks[task].failed = false;
}

void lifecycle_start_revived(struct lifecycle *lc)
{
    if (lc->target == TARGET_STOPPED)
        return;
    if (lc->phase == UP && !lc->stale)
        start_idle_tasks(lc);
    else if (lc->phase == DOWN || lc->phase == WAITING)
        start_over(lc);
}

void lifecycle_restart_task(struct lifecycle *lc, int task)
{
    if (task < 0 || (size_t)task >= lc->task_count)
        return;
    if (lc->phase != UP || !lc->tasks[task].alive) {
        lifecycle_revive(lc, task);
        lifecycle_start_revived(lc);
        return;
    }
    lc->phase = STOPPING_TASK;
    lc->stopping = task;
    set_task(lc, (size_t)task, STATE_RESTARTING, NULL);
    supervisor_stop_task(lc->env->sup, lc->name, task); /* closed: `died` follows */
}

void lifecycle_end(struct lifecycle *lc)
{
    drain(lc, NEXT_REST);
}

void lifecycle_mark_restarting(struct lifecycle *lc, int task)
{
    if (task < 0)
        set_state(lc, STATE_RESTARTING, lc->trace);
    else if ((size_t)task < lc->task_count)
        set_task(lc, (size_t)task, STATE_RESTARTING, lc->tasks[task].trace);
}

/* --- life, and looks ------------------------------------------------------------------------------------------------ */

enum lifecycle_busy lifecycle_busy(const struct lifecycle *lc)
{
    static const enum lifecycle_busy busy[] = {
        [IDLE] = LIFECYCLE_FREE,         [DUE] = LIFECYCLE_STARTING,
        [STARTING] = LIFECYCLE_STARTING, [ASKING] = LIFECYCLE_STARTING,
        [UP] = LIFECYCLE_FREE,           [STOPPING_TASK] = LIFECYCLE_ENDING,
        [DRAINING] = LIFECYCLE_ENDING,   [WAITING] = LIFECYCLE_FREE,
        [DOWN] = LIFECYCLE_FREE,
    };

    return busy[lc->phase];
}

void lifecycle_view(const struct lifecycle *lc, struct lifecycle_view *out)
{
    *out = (struct lifecycle_view){lc->state, lc->trace, lc->version, lc->task_count};
}

void lifecycle_view_task(const struct lifecycle *lc, size_t i, enum state *state,
                         const char **trace)
{
    mr_assert(i < lc->task_count);
    *state = lc->tasks[i].state;
    *trace = lc->tasks[i].trace;
}

struct lifecycle *lifecycle_new(const char *name, const struct lifecycle_env *env)
{
    struct lifecycle *lc = calloc(1, sizeof(*lc));

    mr_assert(lc != NULL);
    lc->name = strdup(name);
    mr_assert(lc->name != NULL);
    lc->env = env;
    lc->policy.max = env->restart_max;
    props_init(&lc->config);
    return lc;
}

void lifecycle_free(struct lifecycle **lcp)
{
    struct lifecycle *lc = *lcp;

    *lcp = NULL;
    if (lc == NULL)
        return;
    loop_timer_cancel(&lc->timer);
    forget_tasks(lc);
    props_deinit(&lc->config);
    free(lc->trace);
    free(lc->version);
    free(lc->name);
    free(lc);
}
