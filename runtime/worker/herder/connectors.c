/* SPDX-License-Identifier: Apache-2.0 */
/* Between requests and the lifecycles of connectors: a queue of changes for each. The front change
 * is begun when the one before it needs nothing more:
 *
 *   the connector is  free     ending (bounded)  starting (as long as the plugin likes)
 *   apply, remove,    begins   waits             begins: the start under way is overtaken, its
 *   stop, restart                                asker is told that it was done, which it was
 *   pause, resume     begins   waits             begins, beside the start
 *   restart a task    begins   waits             waits, or is refused where one of the first row is
 *                                                behind it
 *
 * A share (share.h) is looked at after what is queued, whenever nothing is ending: not a queue but
 * a mark, since only what is wanted at that time counts.
 *
 * So nothing waits for plugin code that a later request wants to end, and every `done` runs exactly
 * once: at once, when the lifecycle settles, when overtaken, or at shutdown. After any call into a
 * lifecycle `go_on` looks what that brought; an entry is only freed by reap, at the end of the
 * outermost call. Loop thread only. */
#define LOGGER "worker.herder"
#include "worker/herder/connectors.h"

#include "base/log.h"
#include "base/map.h"
#include "base/text.h"

enum kind { APPLY, REMOVE, TARGET, RESTART, RESTART_TASK };

struct change {
    enum kind kind;
    const struct catalog_plugin *plugin; /* APPLY */
    struct props config;
    enum target_state target;    /* APPLY, TARGET */
    struct connectors_plan plan; /* RESTART */
    int *tasks;                  /* RESTART: those chosen, ended by -1 */
    bool connector;              /* RESTART: it is chosen */
    int task;                    /* RESTART_TASK */
    connectors_done done;
    void *arg;
    struct change *next;
};

struct entry {
    char *name;
    struct lifecycle *lc;
    struct change *first;
    struct change **last;
    size_t queued;
    struct change *active; /* begun, and not over before the lifecycle settles */
    int depth;             /* of calls that hold this entry */
    bool removed;          /* to be freed unless something is queued */
    bool reshare;          /* what is wanted of it may have changed */
    bool telling;          /* that it is shared as wanted is still to be told */
    bool asking;           /* its tasks are to be made anew, once nothing of it ends */
};

struct connectors {
    struct connectors_options options;
    struct lifecycle_env env;
    struct map *entries;
    bool closing;
    loop_fn closed_fn;
    void *closed_arg;
    struct loop_timer closed_timer;
};

static void go_on(struct connectors *all, struct entry *entry);

/* --- changes ---------------------------------------------------------------------------------- */

static void answer(connectors_done done, void *arg, const struct mr_error *err)
{
    if (done != NULL)
        done(arg, err != NULL && err->code != 0 ? err : NULL);
}

static void finish(struct change *change, const struct mr_error *err)
{
    answer(change->done, change->arg, err);
    props_deinit(&change->config);
    free(change->tasks);
    free(change);
}

static void finish_active(struct entry *entry, const struct mr_error *err)
{
    struct change *change = entry->active;

    entry->active = NULL;
    if (change != NULL)
        finish(change, err);
}

static bool ends_a_start(const struct change *change)
{
    return change->kind == APPLY || change->kind == REMOVE || change->kind == RESTART ||
           (change->kind == TARGET && change->target == TARGET_STOPPED);
}

static bool behind_is_one_that_ends(const struct change *change)
{
    for (change = change->next; change != NULL; change = change->next)
        if (ends_a_start(change))
            return true;
    return false;
}

/* --- doing them ------------------------------------------------------------------------------- */

/* Those chosen start again, whether they run or not; of the FAILED ones no more than that is
 * asked. */
static void restart_tasks(struct entry *entry, const struct change *change)
{
    for (size_t i = 0; change->tasks != NULL && change->tasks[i] >= 0; i++)
        if (change->connector || change->plan.only_failed)
            lifecycle_revive(entry->lc, change->tasks[i]);
        else
            lifecycle_restart_task(entry->lc, change->tasks[i]);
}

static void restart(struct entry *entry, const struct change *change)
{
    if (change->connector && change->plan.tasks && !change->plan.only_failed) {
        lifecycle_restart_all(entry->lc);
        return;
    }
    restart_tasks(entry, change);
    if (change->connector)
        lifecycle_restart(entry->lc);
    else if (change->tasks != NULL && change->tasks[0] >= 0)
        lifecycle_start_revived(entry->lc);
}

static void perform(struct entry *entry, struct change *change)
{
    struct lifecycle_work work = {
        .plugin = change->plugin, .config = &change->config, .target = change->target};

    switch (change->kind) {
    case APPLY:
        entry->removed = false;
        lifecycle_apply(entry->lc, &work);
        break;
    case REMOVE:
        entry->removed = true;
        lifecycle_end(entry->lc);
        break;
    case TARGET:
        lifecycle_target(entry->lc, change->target);
        break;
    case RESTART:
        restart(entry, change);
        break;
    case RESTART_TASK:
        lifecycle_restart_task(entry->lc, change->task);
        break;
    }
}

static struct change *pop(struct entry *entry)
{
    struct change *change = entry->first;

    entry->first = change->next;
    if (entry->first == NULL)
        entry->last = &entry->first;
    entry->queued--;
    change->next = NULL;
    return change;
}

static void refuse_task(const struct entry *entry, struct change *change)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_STATE,
            "Task %s-%d is not restarted: a later request starts, stops or deletes its connector",
            entry->name, change->task);
    finish(change, &err);
}

/* Begin the front change if it may; false: it has to wait. */
static bool begin_next(struct entry *entry)
{
    enum lifecycle_busy busy = lifecycle_busy(entry->lc);
    struct change *change = entry->first;
    bool beside = change->kind == TARGET && change->target != TARGET_STOPPED;

    if (busy == LIFECYCLE_ENDING)
        return false;
    if (busy == LIFECYCLE_STARTING && change->kind == RESTART_TASK) {
        if (!behind_is_one_that_ends(change))
            return false;
        refuse_task(entry, pop(entry));
        return true;
    }
    change = pop(entry);
    if (beside) {
        perform(entry, change);
        finish(change, NULL);
        return true;
    }
    finish_active(entry, NULL);
    lifecycle_settled(entry->lc, NULL); /* of before */
    entry->active = change;
    perform(entry, change);
    if (entry->active == change && lifecycle_busy(entry->lc) == LIFECYCLE_FREE) {
        struct mr_error err = {0};

        lifecycle_settled(entry->lc, &err);
        finish_active(entry, &err);
    }
    return true;
}

/* Go for what is wanted of it here, if that may be done now; false: nothing was done. */
static bool share(struct connectors *all, struct entry *entry)
{
    struct share share = {0};

    if (!entry->reshare || all->closing || lifecycle_busy(entry->lc) == LIFECYCLE_ENDING)
        return false;
    entry->reshare = false;
    entry->telling = true;
    all->options.share(all->options.arg, entry->name, &share);
    entry->removed = !share_bring_about(entry->lc, &share);
    share_deinit(&share);
    return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

static void free_entry(void *value)
{
    struct entry *entry = value;

    lifecycle_free(&entry->lc);
    free(entry->name);
    free(entry);
}

/* Everybody who waits is told; no change is taken from now on, also not by those who are told. */
static void close_requests(struct connectors *all)
{
    struct mr_error err = {0};
    void *value;

    mr_fail(&err, MR_ERR_CLOSED, "Worker is shutting down");
    all->closing = true;
    for (size_t i = 0; map_next(all->entries, &i, NULL, &value);) {
        struct entry *entry = value;

        entry->depth++; /* stays, whatever the answers do */
        finish_active(entry, &err);
        while (entry->first != NULL)
            finish(pop(entry), &err);
        entry->depth--;
    }
}

static void closed(void *arg)
{
    struct connectors *all = arg;

    loop_fn fn = all->closed_fn;

    all->closed_fn = NULL;
    fn(all->closed_arg);
}

static void look_whether_closed(struct connectors *all)
{
    void *value;

    if (!all->closing || all->closed_fn == NULL || all->closed_timer.slot != 0)
        return;
    for (size_t i = 0; map_next(all->entries, &i, NULL, &value);)
        if (lifecycle_busy(((struct entry *)value)->lc) != LIFECYCLE_FREE)
            return;
    loop_timer_start(all->options.loop, &all->closed_timer, 0, closed, all);
}

/* Nothing ends any more that is not wanted here: told once. true: that has brought something
 * new. */
static bool tell_shared(struct connectors *all, struct entry *entry)
{
    if (!entry->telling || entry->reshare || lifecycle_busy(entry->lc) == LIFECYCLE_ENDING)
        return false;
    entry->telling = false;
    all->options.shared(all->options.arg, entry->name);
    return entry->reshare || entry->first != NULL;
}

/* A start that is under way asks by itself. */
static bool ask(struct entry *entry)
{
    if (!entry->asking || lifecycle_busy(entry->lc) == LIFECYCLE_ENDING)
        return false;
    entry->asking = false;
    lifecycle_asking_again(entry->lc);
    return true;
}

/* The outermost call lets an entry go that was removed and has nothing to do. */
static void reap(struct connectors *all, struct entry *entry)
{
    if (entry->removed && !entry->reshare && entry->first == NULL && entry->active == NULL &&
        lifecycle_busy(entry->lc) == LIFECYCLE_FREE) {
        map_remove(all->entries, entry->name);
        free_entry(entry);
    }
}

static void go_on(struct connectors *all, struct entry *entry)
{
    struct mr_error err = {0};

    if (entry->depth > 0)
        return; /* the outer call looks again */
    entry->depth++;
    do {
        if (lifecycle_settled(entry->lc, &err))
            finish_active(entry, &err);
    } while ((entry->first != NULL && begin_next(entry)) || share(all, entry) ||
             tell_shared(all, entry) || ask(entry));
    entry->depth--;
    reap(all, entry);
    look_whether_closed(all);
}

static void on_made(void *arg, const char *conn, struct props *configs, size_t count)
{
    struct connectors *all = arg;

    all->options.made(all->options.arg, conn, configs, count);
}

static void on_told(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    struct connectors *all = arg;

    if (all->options.told != NULL)
        all->options.told(all->options.arg, conn, task, state, trace);
}

static void on_orphaned(void *arg, const struct lifecycle_orphans *orphans)
{
    struct connectors *all = arg;

    if (all->options.orphaned != NULL)
        all->options.orphaned(all->options.arg, orphans);
}

static void on_moved(void *arg, const char *conn)
{
    struct connectors *all = arg;
    struct entry *entry = map_get(all->entries, conn);

    if (entry != NULL)
        go_on(all, entry);
}

static struct entry *find(const struct connectors *all, const char *name)
{
    loop_assert_owner(all->options.loop);
    return map_get(all->entries, name);
}

static struct entry *add(struct connectors *all, const char *name)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    mr_assert(entry != NULL);
    entry->name = text_dup(name);
    entry->last = &entry->first;
    entry->lc = lifecycle_new(name, &all->env);
    map_set(all->entries, name, entry);
    return entry;
}

int connectors_may_change(const struct connectors *all, const char *name, struct mr_error *err)
{
    const struct entry *entry = find(all, name);

    if (all->closing)
        return mr_fail(err, MR_ERR_CLOSED, "Worker is shutting down");
    if (entry == NULL && map_count(all->entries) >= CONNECTORS_MAX)
        return mr_fail(err, MR_ERR_FULL, "this worker runs %d connectors and takes no more",
                       CONNECTORS_MAX);
    if (entry != NULL && entry->queued >= CONNECTORS_QUEUED_MAX)
        return mr_fail(err, MR_ERR_FULL,
                       "%d changes already wait for connector %s: try again later",
                       CONNECTORS_QUEUED_MAX, name);
    return 0;
}

/* Queue a change; change is taken. */
static void enqueue_take(struct connectors *all, const char *name, struct change *change)
{
    struct entry *entry = find(all, name);
    struct mr_error err = {0};

    if (connectors_may_change(all, name, &err) == 0 && entry == NULL && change->kind != APPLY)
        mr_fail(&err, MR_ERR_NOT_FOUND, "Connector %s not found", name);
    if (err.code != 0) {
        finish(change, &err);
        return;
    }
    if (entry == NULL)
        entry = add(all, name);
    *entry->last = change;
    entry->last = &change->next;
    entry->queued++;
    go_on(all, entry);
}

static struct change *change_new(enum kind kind, connectors_done done, void *arg)
{
    struct change *change = calloc(1, sizeof(*change));

    mr_assert(change != NULL);
    change->kind = kind;
    change->done = done;
    change->arg = arg;
    props_init(&change->config);
    return change;
}

/* --- requests --------------------------------------------------------------------------------- */

void connectors_apply(struct connectors *all, const char *name, const struct lifecycle_work *work,
                      connectors_done done, void *arg)
{
    struct change *change = change_new(APPLY, done, arg);

    change->plugin = work->plugin;
    change->target = work->target;
    mr_assert(props_copy(&change->config, work->config) == 0);
    enqueue_take(all, name, change);
}

void connectors_remove(struct connectors *all, const char *name, connectors_done done, void *arg)
{
    enqueue_take(all, name, change_new(REMOVE, done, arg));
}

void connectors_target(struct connectors *all, const char *name, enum target_state target,
                       connectors_done done, void *arg)
{
    struct change *change = change_new(TARGET, done, arg);

    change->target = target;
    enqueue_take(all, name, change);
}

void connectors_restart_task(struct connectors *all, const char *name, int task,
                             connectors_done done, void *arg)
{
    struct change *change = change_new(RESTART_TASK, done, arg);

    change->task = task;
    enqueue_take(all, name, change);
}

/* Which parts are meant, by their states now: the answer shows these, whatever happens until the
 * change's turn. */
static void choose(struct change *change, struct lifecycle *lc)
{
    struct lifecycle_have have;
    struct lifecycle_view view;
    size_t n = 0;

    lifecycle_view(lc, &view);
    lifecycle_have(lc, &have);
    change->connector = change->plan.connector && have.object &&
                        (!change->plan.only_failed || view.state == STATE_FAILED);
    change->tasks = calloc(view.tasks->count + 1, sizeof(*change->tasks));
    mr_assert(change->tasks != NULL);
    for (size_t i = 0; change->plan.tasks && i < view.tasks->count; i++) {
        const struct task_life *task = &view.tasks->list[i];

        if (!change->plan.only_failed || task->state == STATE_FAILED)
            change->tasks[n++] = task->number;
    }
    change->tasks[n] = -1;
}

static void mark(const struct change *change, struct lifecycle *lc)
{
    struct lifecycle_view view;

    lifecycle_view(lc, &view);
    if (view.state == STATE_STOPPED)
        return; /* there is nothing to restart, and nothing would take the mark away */
    if (change->connector)
        lifecycle_mark_restarting(lc, -1);
    for (size_t i = 0; change->tasks[i] >= 0; i++)
        lifecycle_mark_restarting(lc, change->tasks[i]);
}

void connectors_restart(struct connectors *all, const char *name,
                        const struct connectors_plan *plan, connectors_done done, void *arg)
{
    struct change *change = change_new(RESTART, done, arg);
    struct entry *entry = find(all, name);
    bool plain = !plan->tasks && !plan->only_failed;

    change->plan = *plan;
    if (entry != NULL && connectors_may_change(all, name, NULL) == 0) {
        choose(change, entry->lc);
        if (!plain) {
            mark(change, entry->lc);
            answer(done, arg, NULL);
            change->done = NULL;
        }
    }
    enqueue_take(all, name, change);
}

void connectors_run(struct connectors *all, const char *name, const struct props *configs,
                    size_t count)
{
    struct entry *entry = find(all, name);

    if (entry == NULL)
        return;
    lifecycle_asking_run(entry->lc, configs, count);
    go_on(all, entry);
}

void connectors_keep(struct connectors *all, const char *name)
{
    struct entry *entry = find(all, name);

    if (entry == NULL)
        return;
    lifecycle_asking_keep(entry->lc);
    go_on(all, entry);
}

void connectors_ask_again(struct connectors *all, const char *name)
{
    struct entry *entry = find(all, name);

    if (entry == NULL)
        return;
    entry->asking = true;
    go_on(all, entry);
}

void connectors_reshare(struct connectors *all, const char *name)
{
    struct entry *entry = find(all, name);

    if (all->closing)
        return;
    if (entry == NULL)
        entry = add(all, name);
    entry->reshare = true;
    go_on(all, entry);
}

bool connectors_has(const struct connectors *all, const char *name)
{
    return find(all, name) != NULL;
}

bool connectors_sharing(const struct connectors *all, const char *name)
{
    const struct entry *entry = find(all, name);

    return entry != NULL && (entry->reshare || lifecycle_busy(entry->lc) == LIFECYCLE_ENDING);
}

void connectors_shutdown(struct connectors *all, loop_fn fn, void *arg)
{
    void *value;

    close_requests(all);
    all->closed_fn = fn;
    all->closed_arg = arg;
    for (size_t i = 0; map_next(all->entries, &i, NULL, &value);)
        lifecycle_end(((struct entry *)value)->lc);
    look_whether_closed(all);
}

/* --- events ----------------------------------------------------------------------------------- */

void connectors_on_connector(void *arg, const char *conn, enum state state, const char *trace,
                             const char *version)
{
    struct entry *entry = find(arg, conn);

    if (entry == NULL)
        return;
    lifecycle_on_connector(entry->lc, state, trace, version);
    go_on(arg, entry);
}

void connectors_on_configs(void *arg, const char *conn, const json_t *configs, const char *error)
{
    struct entry *entry = find(arg, conn);

    if (entry == NULL)
        return;
    entry->depth++; /* the answer to `made` may come from inside */
    lifecycle_asking_made(entry->lc, configs, error);
    entry->depth--;
    go_on(arg, entry);
}

void connectors_on_task(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    struct entry *entry = find(arg, conn);

    if (entry == NULL)
        return;
    lifecycle_on_task(entry->lc, task, state, trace);
    go_on(arg, entry);
}

bool connectors_may_start(const struct connectors *all, const char *name, int task)
{
    const struct entry *entry = find(all, name);

    return entry != NULL && lifecycle_may_start(entry->lc, task);
}

void connectors_on_died(void *arg, const char *conn, const struct supervisor_death *death)
{
    struct entry *entry = find(arg, conn);

    if (entry == NULL)
        return;
    lifecycle_on_died(entry->lc, death);
    go_on(arg, entry);
}

/* --- life ------------------------------------------------------------------------------------- */

const struct lifecycle *connectors_find(const struct connectors *all, const char *name)
{
    const struct entry *entry = find(all, name);

    return entry != NULL ? entry->lc : NULL;
}

size_t connectors_hosts(const struct connectors *all)
{
    size_t count = 0;
    void *value;

    for (size_t i = 0; map_next(all->entries, &i, NULL, &value);)
        count += lifecycle_hosted(((struct entry *)value)->lc);
    return count;
}

struct connectors *connectors_new(const struct connectors_options *options)
{
    struct connectors *all = calloc(1, sizeof(*all));

    mr_assert(all != NULL);
    all->options = *options;
    all->env = (struct lifecycle_env){.loop = options->loop,
                                      .sup = options->sup,
                                      .restart_max = options->restart_max,
                                      .made = on_made,
                                      .told = on_told,
                                      .orphaned = on_orphaned,
                                      .moved = on_moved,
                                      .arg = all};
    all->entries = map_new();
    return all;
}

void connectors_free(struct connectors **allp)
{
    struct connectors *all = *allp;

    *allp = NULL;
    if (all == NULL)
        return;
    close_requests(all);
    loop_timer_cancel(&all->closed_timer);
    map_free(&all->entries, free_entry);
    free(all);
}
