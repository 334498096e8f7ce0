/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one connector here, as a state machine over the supervisor. Called by connectors.c
 * (requests and events) and by its own timer; on the worker's loop.
 *
 *                apply, target, restart                 RUNNING                 made, run or keep
 *      IDLE ───────────────► DUE ─────► STARTING ───────────────► ASKING ──────────────────► UP
 *       ▲        (next round)  ▲  begin    │ PAUSED               │  ▲ "not ready": again    │ ▲
 *       │                      │           └──────────────────────┼──┼──────────────────────►│ │
 *       │                      │                                  │  └─── resumed, restart ──┤ │ *
 *       │        ┌─────────────┴───────── died, for a task that would not stop ◄──────────────┤
 *       │        │ time is up        died                         │ FAILED                   │
 *       │     WAITING ◄────────────────────────────────────────── any with a host             │
 *       │        │ the policy gave up                             │                          │
 *       │        ▼                                                ▼                          ▼
 *       │      DOWN ◄────────────────────────────────────────  DRAINING ◄── stop, end, apply …
 *       └───────────────────────────────────────── stopped ───────┘ (to DUE where a start follows,
 *                                                                    to WAITING from a spent host)
 *                                                            * begin, of a share without the object
 *
 * Beside it, in STARTING to UP, each task goes its own way (task_life.c), and several may be
 * stopping.
 *
 * Moves: begin, lifecycle_drain, drained, crash, the functions named after events, and those of
 * lifecycle_asking.c and lifecycle_share.c.
 * Invariants: a host exists exactly in STARTING to UP and DRAINING; a successor starts only after
 * `died` (promise 3), and never from inside a call of the supervisor's. A task that FAILED by its
 * own error stays FAILED until a request revives it; one whose host died starts again with it. The
 * same holds for the object of a share, whose tasks run on without it. */
#define LOGGER "worker.herder"
#include "worker/herder/lifecycle_private.h"

#include "base/log.h"
#include "base/text.h"

static void begin(void *arg);

/* --- small ------------------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

void lifecycle_show(struct lifecycle *lc, enum state state, const char *trace)
{
    if (!lc->object || (lc->state == state && same_text(lc->trace, trace)))
        return;
    if (lc->state != state)
        log_write_for(state == STATE_FAILED ? LOG_ERROR : LOG_INFO, LOGGER, lc->name, -1,
                      "connector is %s", state_name(state));
    lc->state = state;
    if (trace != lc->trace)
        text_replace(&lc->trace, trace);
    if (lc->env->told != NULL)
        lc->env->told(lc->env->arg, lc->name, -1, state, lc->trace);
}

static void on_told(void *arg, int task, enum state state, const char *trace)
{
    struct lifecycle *lc = arg;

    if (lc->env->told != NULL)
        lc->env->told(lc->env->arg, lc->name, task, state, trace);
}

void lifecycle_settle(struct lifecycle *lc, const struct mr_error *err)
{
    lc->settled = true;
    if (err != NULL)
        lc->result = *err;
    else
        err_clear(&lc->result);
}

/* What a trace says is wrong: its first line, without the error's class before it
 * ("org.example.SomeException: "). */
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
    lifecycle_settle(lc, &err);
}

bool lifecycle_settled(struct lifecycle *lc, struct mr_error *err)
{
    bool settled = lc->settled;

    if (settled && err != NULL)
        *err = lc->result;
    lc->settled = false;
    return settled;
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

bool lifecycle_serves(const struct lifecycle *lc)
{
    return lc->phase >= STARTING && lc->phase <= UP;
}

/* --- starting --------------------------------------------------------------------------------- */

static void start_soon(struct lifecycle *lc)
{
    lc->phase = DUE;
    loop_timer_start(lc->env->loop, &lc->timer, 0, begin, lc);
}

static void show_dead(struct lifecycle *lc, enum state state, const char *trace)
{
    if (!lc->object_down)
        lifecycle_show(lc, state, trace);
    task_life_show_all(&lc->tasks, state, trace);
}

/* Nothing of a share that was given up starts again because something is added to it. */
static void give_up(struct lifecycle *lc)
{
    lc->phase = DOWN;
    lc->object_down = lc->shared;
    for (size_t i = 0; lc->shared && i < lc->tasks.count; i++)
        lc->tasks.list[i].failed = true;
}

/* Those that start at once take their ids over themselves. */
static void tell_orphans(struct lifecycle *lc)
{
    struct lifecycle_orphans orphans = {lc->name, lc->plugin, &lc->config, NULL, 0};
    int32_t *tasks = calloc(lc->tasks.count + 1, sizeof(*tasks));

    mr_assert(tasks != NULL);
    orphans.tasks = tasks;
    orphans.count = task_life_take_open(&lc->tasks, tasks);
    if (orphans.count > 0 && lc->env->orphaned != NULL)
        lc->env->orphaned(lc->env->arg, &orphans);
    free(tasks);
}

static void wait_to_start(struct lifecycle *lc, int64_t delay_ms)
{
    lc->phase = WAITING;
    loop_timer_start(lc->env->loop, &lc->timer, delay_ms, begin, lc);
}

/* The host is gone, or could not be made, and nobody asked for it. */
static void crash(struct lifecycle *lc, const char *text)
{
    int64_t delay = restart_policy_died(&lc->policy, loop_now_ms(lc->env->loop));

    if (delay != 0)
        tell_orphans(lc);
    if (delay < 0) {
        show_dead(lc, STATE_FAILED, text);
        give_up(lc);
    } else {
        log_write_for(LOG_WARN, LOGGER, lc->name, -1,
                      "starts again in %.3g s (death %d of at most %d in %d minutes)",
                      (double)delay / 1000, lc->policy.count, lc->policy.max,
                      RESTART_POLICY_WINDOW_MS / 60000);
        show_dead(lc, STATE_RESTARTING, text);
        wait_to_start(lc, delay);
    }
    lifecycle_settle(lc, NULL);
}

/* Tasks of a share need not wait for the object, unless it is about to make them anew. */
static void begin_tasks(struct lifecycle *lc, bool object)
{
    if (lc->shared && !(object && lc->fresh))
        task_life_start_idle(&lc->tasks, lc->target);
    if (!object)
        lifecycle_settle(lc, NULL);
}

static void begin(void *arg)
{
    struct lifecycle *lc = arg;
    bool object = lc->object && !lc->object_down;
    struct supervisor_connector spec = {.conn = lc->name,
                                        .library = lc->plugin->library,
                                        .class_name = lc->plugin->name,
                                        .config = &lc->config,
                                        .target = lc->target,
                                        .tasks_only = !object};
    struct mr_error err = {0};

    /* Whoever begins takes over by itself what its ids have open. */
    if (lc->env->orphaned != NULL)
        lc->env->orphaned(lc->env->arg,
                          &(struct lifecycle_orphans){lc->name, lc->plugin, &lc->config, NULL, 0});
    lc->phase = object ? STARTING : UP;
    lc->host_failed = lc->gave_up = false;
    lc->ask_again_ms = LIFECYCLE_ASK_AGAIN_MS;
    text_replace(&lc->version, lc->plugin->version);
    if (supervisor_start(lc->env->sup, &spec, &err) != 0) {
        log_write_for(LOG_ERROR, LOGGER, lc->name, -1, "cannot start its process: %s", err.text);
        crash(lc, err.text);
    } else {
        begin_tasks(lc, object);
    }
    lc->env->moved(lc->env->arg, lc->name);
}

/* What was to start again with the connector does not: a request to start it starts them too. */
static void fail_restarting(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->tasks.count; i++)
        if (!lc->tasks.list[i].alive && lc->tasks.list[i].state == STATE_RESTARTING)
            task_life_show(&lc->tasks, &lc->tasks.list[i], STATE_FAILED, lc->trace);
}

/* --- ending ----------------------------------------------------------------------------------- */

static void leave(struct lifecycle *lc)
{
    task_life_show_all(&lc->tasks, STATE_UNASSIGNED, NULL);
    task_life_forget(&lc->tasks);
    lifecycle_show(lc, STATE_UNASSIGNED, NULL);
    lc->phase = IDLE;
    lc->serial = 0;
    lc->object_down = false;
    lifecycle_settle(lc, NULL);
}

static void drained(struct lifecycle *lc)
{
    task_life_hostless(&lc->tasks);
    if (lc->next != NEXT_START && (lc->next != NEXT_WAIT || lc->wait_ms > 0))
        tell_orphans(lc);
    for (size_t i = 0; i < lc->tasks.count; i++)
        if (!lc->tasks.list[i].failed && lc->tasks.list[i].state != STATE_RESTARTING)
            task_life_show(&lc->tasks, &lc->tasks.list[i], STATE_UNASSIGNED, NULL);
    if (lc->next == NEXT_START) {
        if (lc->state != STATE_RESTARTING && lc->state != STATE_STOPPED && !lc->object_down)
            lifecycle_show(lc, STATE_UNASSIGNED, NULL);
        start_soon(lc);
    } else if (lc->next == NEXT_WAIT) {
        wait_to_start(lc, lc->wait_ms);
        lifecycle_settle(lc, NULL);
    } else if (lc->next == NEXT_REST) {
        lc->phase = IDLE;
        if (lc->target == TARGET_STOPPED)
            task_life_forget(&lc->tasks);
        lifecycle_show(lc, lc->target == TARGET_STOPPED ? STATE_STOPPED : STATE_UNASSIGNED, NULL);
        lifecycle_settle(lc, NULL);
    } else if (lc->next == NEXT_LEAVE) {
        leave(lc);
    } else {
        lc->phase = DOWN;
        fail_restarting(lc);
        settle_failed(lc, lc->trace != NULL ? lc->trace : "the connector failed");
    }
}

void lifecycle_drain(struct lifecycle *lc, enum next next)
{
    bool host = has_host(lc);

    loop_timer_cancel(&lc->timer);
    task_life_draining(&lc->tasks);
    lc->next = next;
    if (lc->phase == DRAINING && host)
        return;
    lc->phase = DRAINING;
    if (!host || (supervisor_drain(lc->env->sup, lc->name) != 0 &&
                  !supervisor_hosts(lc->env->sup, lc->name)))
        drained(lc);
}

void lifecycle_tasks_alone(struct lifecycle *lc)
{
    lc->phase = UP;
    lc->fresh = false;
    if (lc->shared)
        task_life_start_idle(&lc->tasks, lc->target);
}

void lifecycle_fail(struct lifecycle *lc, const char *trace)
{
    lifecycle_show(lc, STATE_FAILED, trace);
    lc->object_down = lc->shared;
    if (lc->shared ? lc->tasks.count > 0 : task_life_any_alive(&lc->tasks)) {
        lifecycle_tasks_alone(lc);
        if (!lc->shared)
            fail_restarting(lc);
        settle_failed(lc, trace);
        return;
    }
    lifecycle_drain(lc, NEXT_DOWN);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Started, and not to run yet: tasks of before come back paused, new ones are made when it is
 * resumed. */
static void up_without_asking(struct lifecycle *lc)
{
    lc->phase = UP;
    if (lc->shared)
        lifecycle_tasks_alone(lc);
    else if (!lc->stale && lc->target == TARGET_PAUSED)
        task_life_start_idle(&lc->tasks, lc->target);
    for (size_t i = 0; lc->stale && i < lc->tasks.count; i++)
        task_life_show(&lc->tasks, &lc->tasks.list[i], STATE_PAUSED, NULL);
    lifecycle_settle(lc, NULL);
}

static void on_started(struct lifecycle *lc, enum state state)
{
    lifecycle_show(lc, state, NULL);
    if (state == STATE_RUNNING && lc->target == TARGET_STARTED)
        lifecycle_asking_begin(lc);
    else
        up_without_asking(lc);
}

void lifecycle_on_connector(struct lifecycle *lc, enum state state, const char *trace,
                            const char *version)
{
    enum state before = lc->state;

    if (!lifecycle_serves(lc))
        return;
    lc->host_failed = lc->host_failed || state == STATE_FAILED;
    if (!lc->object || lc->object_down)
        return;
    if (version != NULL)
        text_replace(&lc->version, version);
    if (state == STATE_FAILED && (lc->phase == STARTING || lc->phase == ASKING)) {
        loop_timer_cancel(&lc->timer);
        lifecycle_fail(lc, trace != NULL ? trace : "the connector failed");
    } else if (state == STATE_FAILED) {
        lifecycle_show(lc, state, trace);
        lc->object_down = lc->shared;
    } else if (state != STATE_RUNNING && state != STATE_PAUSED) {
        return;
    } else if (lc->phase == STARTING) {
        on_started(lc, state);
    } else {
        lifecycle_show(lc, state, NULL);
        if (state == STATE_RUNNING && before != STATE_RUNNING && lc->phase == UP &&
            lc->target == TARGET_STARTED)
            lifecycle_asking_begin(lc); /* resumed: what changed while paused takes effect */
    }
}

static void on_task_stopped(struct lifecycle *lc, struct task_life *task)
{
    enum task_life_stop then = task->stop;

    task->alive = false;
    task->stop = TASK_LIFE_GOES_ON;
    if (then == TASK_LIFE_LEAVES) {
        task_life_show(&lc->tasks, task, STATE_UNASSIGNED, NULL);
        task_life_remove(&lc->tasks, task->number);
    } else {
        if (task->state != STATE_RESTARTING)
            task_life_show(&lc->tasks, task, STATE_UNASSIGNED, NULL);
        task_life_start(&lc->tasks, task, lc->target);
    }
    if (lifecycle_busy(lc) == LIFECYCLE_FREE)
        lifecycle_settle(lc, NULL);
}

/* It FAILED in a host that is spent: the policy decides, as over a death, whether all goes on in a
 * new one. If not, its siblings run on here until somebody starts it again. */
static bool goes_on_elsewhere(struct lifecycle *lc, struct task_life *task, const char *trace)
{
    int64_t delay;

    if (lc->gave_up || !task->alive || !lifecycle_serves(lc) ||
        !supervisor_spent(lc->env->sup, lc->name))
        return false;
    delay = restart_policy_died(&lc->policy, loop_now_ms(lc->env->loop));
    lc->gave_up = delay < 0;
    if (lc->gave_up)
        return false;
    log_write_for(LOG_WARN, LOGGER, lc->name, task->number,
                  "the task used up what its process may hold: a new process begins in %.3g s "
                  "(number %d of at most %d in %d minutes), with all tasks of the connector",
                  (double)delay / 1000, lc->policy.count, lc->policy.max,
                  RESTART_POLICY_WINDOW_MS / 60000);
    task->alive = false;
    lc->wait_ms = delay;
    show_dead(lc, STATE_RESTARTING, trace);
    lifecycle_drain(lc, NEXT_WAIT);
    return true;
}

void lifecycle_on_task(struct lifecycle *lc, int number, enum state state, const char *trace)
{
    struct task_life *task = task_life_find(&lc->tasks, number);

    if (task == NULL || lc->phase < STARTING || lc->phase > DRAINING)
        return;
    if (state == STATE_UNASSIGNED && lifecycle_serves(lc) && task->stop != TASK_LIFE_GOES_ON)
        on_task_stopped(lc, task);
    else if (state == STATE_FAILED && goes_on_elsewhere(lc, task, trace))
        return;
    else
        task_life_on_state(&lc->tasks, task, state, trace);
    if (state == STATE_FAILED)
        tell_orphans(lc);
}

/* Its siblings were ended with it, and start with it again at once: no fault of theirs, so no state
 * of fault. */
static void on_killed_for_task(struct lifecycle *lc, const struct supervisor_death *death)
{
    log_write_for(LOG_WARN, LOGGER, lc->name, death->culprit,
                  "the task would not stop, so its process was ended%s",
                  lc->tasks.count > 0 ? "; all tasks that the connector has here start again" : "");
    show_dead(lc, STATE_RESTARTING, death->text);
    start_soon(lc);
}

/* A task was to start in it (task_life_start). */
static void on_spent_gone(struct lifecycle *lc)
{
    log_write_for(LOG_INFO, LOGGER, lc->name, -1,
                  "its used up process has ended: all tasks of the connector start in a new one");
    show_dead(lc, STATE_RESTARTING, NULL);
    start_soon(lc);
}

void lifecycle_on_died(struct lifecycle *lc, const struct supervisor_death *death)
{
    bool stopping = task_life_any_stopping(&lc->tasks);

    if (lc->phase < STARTING || lc->phase > DRAINING)
        return;
    loop_timer_cancel(&lc->timer);
    if (lc->phase == DRAINING) {
        drained(lc);
        return;
    }
    task_life_hostless(&lc->tasks);
    if (stopping && death->culprit >= 0)
        on_killed_for_task(lc, death);
    else if (death->expected)
        on_spent_gone(lc);
    else
        crash(lc, death->text);
}

bool lifecycle_may_start(const struct lifecycle *lc, int number)
{
    const struct task_life *task = task_life_find(&lc->tasks, number);

    return lifecycle_serves(lc) && lc->target != TARGET_STOPPED && task != NULL && task->alive;
}

/* --- requests --------------------------------------------------------------------------------- */

/* There is nothing to be started again: stopped, or no longer this worker's. */
static bool rests(const struct lifecycle *lc)
{
    return lc->target == TARGET_STOPPED || (lc->shared && lc->serial == 0);
}

static void start_over(struct lifecycle *lc)
{
    lc->object_down = false;
    restart_policy_reset(&lc->policy);
    lifecycle_drain(lc, NEXT_START);
}

static void stop(struct lifecycle *lc)
{
    lc->target = TARGET_STOPPED;
    lc->object_down = false;
    restart_policy_reset(&lc->policy);
    lifecycle_drain(lc, NEXT_REST);
}

void lifecycle_apply(struct lifecycle *lc, const struct lifecycle_work *work)
{
    lc->plugin = work->plugin;
    props_deinit(&lc->config);
    mr_assert(props_copy(&lc->config, work->config) == 0);
    lc->target = work->target;
    lc->shared = work->shared;
    lc->object = !work->shared || work->object;
    lc->serial = work->serial;
    lc->fresh = true;
    lc->stale = !work->shared && work->target == TARGET_PAUSED;
    text_replace(&lc->version, work->plugin->version);
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
        lifecycle_drain(lc, NEXT_START);
    } else if (lifecycle_serves(lc)) {
        if (lc->object && !lc->object_down)
            supervisor_target(lc->env->sup, lc->name, target);
        task_life_target(&lc->tasks, target);
    }
}

/* The object is nothing but its configuration: made anew, its tasks looked at anew. Shown as
 * Connect shows it. */
static void restart_object(struct lifecycle *lc)
{
    enum state state = lc->state;

    lifecycle_show(lc, STATE_UNASSIGNED, NULL);
    lifecycle_show(lc, state, NULL);
    if (lc->target == TARGET_STARTED)
        lifecycle_asking_begin(lc);
}

void lifecycle_restart(struct lifecycle *lc)
{
    if (rests(lc))
        return;
    if (lc->phase != UP || (lc->state != STATE_RUNNING && lc->state != STATE_PAUSED))
        start_over(lc);
    else
        restart_object(lc);
}

void lifecycle_restart_all(struct lifecycle *lc)
{
    lc->fresh = true;
    for (size_t i = 0; i < lc->tasks.count; i++)
        lc->tasks.list[i].failed = false;
    if (!rests(lc))
        start_over(lc);
}

void lifecycle_revive(struct lifecycle *lc, int number)
{
    struct task_life *task = task_life_find(&lc->tasks, number);

    if (task != NULL)
        task->failed = false;
}

void lifecycle_start_revived(struct lifecycle *lc)
{
    if (rests(lc))
        return;
    if (lc->phase == UP && !lc->stale)
        task_life_start_idle(&lc->tasks, lc->target);
    else if (lc->phase == DOWN && lc->shared)
        lifecycle_drain(lc, NEXT_START);
    else if (lc->phase == DOWN || lc->phase == WAITING)
        start_over(lc);
}

void lifecycle_restart_task(struct lifecycle *lc, int number)
{
    struct task_life *task = task_life_find(&lc->tasks, number);

    if (task == NULL)
        return;
    if (lc->phase != UP || !task->alive) {
        lifecycle_revive(lc, number);
        lifecycle_start_revived(lc);
        return;
    }
    task_life_stop(&lc->tasks, task, TASK_LIFE_AGAIN);
}

void lifecycle_end(struct lifecycle *lc)
{
    lifecycle_drain(lc, lc->shared ? NEXT_LEAVE : NEXT_REST);
}

void lifecycle_mark_restarting(struct lifecycle *lc, int task)
{
    struct task_life *it = task_life_find(&lc->tasks, task);

    if (task < 0)
        lifecycle_show(lc, STATE_RESTARTING, lc->shared ? NULL : lc->trace);
    else if (it != NULL)
        task_life_show(&lc->tasks, it, STATE_RESTARTING, lc->shared ? NULL : it->trace);
}

void lifecycle_have(const struct lifecycle *lc, struct lifecycle_have *out)
{
    *out = (struct lifecycle_have){&lc->config, lc->serial, lc->object, lc->target, &lc->tasks};
}

/* --- life, and looks -------------------------------------------------------------------------- */

enum lifecycle_busy lifecycle_busy(const struct lifecycle *lc)
{
    static const enum lifecycle_busy busy[] = {
        [IDLE] = LIFECYCLE_FREE,       [DUE] = LIFECYCLE_STARTING, [STARTING] = LIFECYCLE_STARTING,
        [ASKING] = LIFECYCLE_STARTING, [UP] = LIFECYCLE_FREE,      [DRAINING] = LIFECYCLE_ENDING,
        [WAITING] = LIFECYCLE_FREE,    [DOWN] = LIFECYCLE_FREE,
    };

    return task_life_any_stopping(&lc->tasks) ? LIFECYCLE_ENDING : busy[lc->phase];
}

void lifecycle_view(const struct lifecycle *lc, struct lifecycle_view *out)
{
    *out = (struct lifecycle_view){lc->state, lc->trace, lc->version, &lc->tasks};
}

struct lifecycle *lifecycle_new(const char *name, const struct lifecycle_env *env)
{
    struct lifecycle *lc = calloc(1, sizeof(*lc));

    mr_assert(lc != NULL);
    lc->name = text_dup(name);
    lc->env = env;
    lc->policy.max = env->restart_max;
    lc->object = true;
    lc->tasks = (struct task_lives){.conn = lc->name, .sup = env->sup, .told = on_told, .arg = lc};
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
    task_life_forget(&lc->tasks);
    props_deinit(&lc->config);
    free(lc->trace);
    free(lc->version);
    free(lc->name);
    free(lc);
}
