/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks' configurations, which the connector object makes: asked for when it runs, made, and
 * answered by what is to run. Called by lifecycle.c, whose drawing shows where ASKING stands, and
 * by connectors.c with what came of it; on the worker's loop.
 *
 *   begin ─► host ─► made ─► env->made ─► run (standalone) or keep (a share: what is here goes on)
 *     ▲                │
 *     └────────────────┘ "not ready": after 0.25 s, and twice as long each time */
#define LOGGER "worker.herder"
#include "worker/herder/lifecycle_private.h"

#include "base/log.h"
#include "model/conn_config.h"

#define LAST_MS 60000 /* between two questions */

static int tasks_max(const struct lifecycle *lc)
{
    struct config_value value;

    if (conn_config_get("tasks.max", &lc->config, &value, NULL) != 0)
        return 1;
    return value.i < CONN_CONFIG_TASKS_MAX ? (int)value.i : CONN_CONFIG_TASKS_MAX;
}

void lifecycle_asking_begin(struct lifecycle *lc)
{
    lc->phase = ASKING;
    supervisor_ask_task_configs(lc->env->sup, lc->name, tasks_max(lc)); /* closed: `died` follows */
}

static void ask_again(void *arg)
{
    struct lifecycle *lc = arg;

    lifecycle_asking_begin(lc);
    /* No failure, only later: whoever waits for the start is told that it runs. */
    lifecycle_settle(lc, NULL);
    lc->env->moved(lc->env->arg, lc->name);
}

/* A new configuration, also one that says the same, or a restart of everything: what failed of
 * before starts again. */
static void forget_failures(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->tasks.count; i++)
        if (lc->tasks.list[i].failed) {
            lc->tasks.list[i].failed = false;
            task_life_show(&lc->tasks, &lc->tasks.list[i], STATE_UNASSIGNED, NULL);
        }
    lc->fresh = false;
}

void lifecycle_asking_run(struct lifecycle *lc, const struct props *configs, size_t count)
{
    bool same = !lc->stale && task_life_same(&lc->tasks, configs, count);

    if (lc->phase != ASKING)
        return;
    if (!same && task_life_any_alive(&lc->tasks)) {
        lifecycle_drain(lc, NEXT_START); /* to be asked again by a host without tasks */
        return;
    }
    if (lc->fresh)
        forget_failures(lc);
    if (!same)
        task_life_replace(&lc->tasks, configs, count);
    lc->stale = false;
    lc->phase = UP;
    task_life_start_idle(&lc->tasks, lc->target);
    lifecycle_settle(lc, NULL);
}

void lifecycle_asking_keep(struct lifecycle *lc)
{
    if (lc->phase != ASKING)
        return;
    lifecycle_tasks_alone(lc);
    lifecycle_settle(lc, NULL);
}

void lifecycle_asking_again(struct lifecycle *lc)
{
    if (lc->phase == UP && lc->object && lc->state == STATE_RUNNING && lc->target == TARGET_STARTED)
        lifecycle_asking_begin(lc);
}

void lifecycle_asking_made(struct lifecycle *lc, const json_t *configs, const char *error)
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
        lc->ask_again_ms = lc->ask_again_ms * 2 < LAST_MS ? lc->ask_again_ms * 2 : LAST_MS;
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
        lc->ask_again_ms = LIFECYCLE_ASK_AGAIN_MS;
        lc->env->made(lc->env->arg, lc->name, list, count);
    } else {
        err_prefix(&err, "task configuration %zu is unusable", made - 1);
        lifecycle_fail(lc, err.text);
    }
    while (made > 0)
        props_deinit(&list[--made]);
    free(list);
}
