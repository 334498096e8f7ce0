/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of a cluster's worker about one connector. Asked by share.c whenever something
 * changed that it may depend on; what must come before or after what (stop before the rejoin, the
 * fence before the start) is the caller's order of asking.
 *
 *   a deleted connector               nothing of it runs, whatever the assignment still says (no
 *                                     zombie tasks)
 *   inconsistent, STOPPED, held       no tasks
 *   a new configuration               the object's process begins anew; a process that has tasks
 *                                     alone goes on with what it was given until a task is to start
 *                                     in it
 *   a new set of task configurations  its tasks start again
 *   a new target state                what runs is told, nothing begins anew
 *   FAILED                            is like running: only a request or a new configuration starts
 *                                     it again */
#include "worker/herder/reconcile.h"

#include <stdlib.h>

static int *numbers_new(size_t count)
{
    int *list = calloc(count + 1, sizeof(*list));

    mr_assert(list != NULL);
    return list;
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* --- what is to run --------------------------------------------------------------------------- */

static void want_tasks(const struct reconcile_input *in, struct reconcile_want *out)
{
    size_t kept = 0;

    out->tasks = numbers_new(in->assigned);
    if (in->held || in->target == TARGET_STOPPED)
        return;
    for (size_t i = 0; i < in->assigned; i++)
        if (in->tasks[i] >= 0 && in->tasks[i] < in->task_count)
            out->tasks[kept++] = in->tasks[i];
    qsort(out->tasks, kept, sizeof(*out->tasks), by_number);
    for (size_t i = 0; i < kept; i++)
        if (i == 0 || out->tasks[i] != out->tasks[i - 1])
            out->tasks[out->task_count++] = out->tasks[i];
}

void reconcile_want(const struct reconcile_input *in, struct reconcile_want *out)
{
    *out = (struct reconcile_want){0};
    if (in->config == NULL)
        return;
    want_tasks(in, out);
    out->object = in->object;
    out->target = in->target;
    out->serial = in->serial;
    out->generation = in->generation;
    out->config = out->object || out->task_count > 0 ? in->config : NULL;
}

void reconcile_want_deinit(struct reconcile_want *want)
{
    free(want->tasks);
    want->tasks = NULL;
    want->task_count = 0;
}

/* --- what is to be done ----------------------------------------------------------------------- */

static void compare_tasks(const struct reconcile_want *want, const struct reconcile_have *have,
                          struct reconcile_plan *out)
{
    size_t w = 0, h = 0;

    while (w < want->task_count || h < have->task_count) {
        int wanted = w < want->task_count ? want->tasks[w] : INT32_MAX;
        int here = h < have->task_count ? have->tasks[h].number : INT32_MAX;

        if (here < wanted) {
            out->drop[out->drop_count++] = here;
            h++;
        } else {
            if (wanted < here || have->tasks[h].generation != want->generation)
                out->put[out->put_count++] = wanted;
            h += here == wanted;
            w++;
        }
    }
}

/* Does the process that is there serve for what is wanted? */
static bool process_serves(const struct reconcile_want *want, const struct reconcile_have *have,
                           const struct reconcile_plan *plan)
{
    if (have->serial == 0)
        return false;
    if (have->serial == want->serial)
        return true;
    return !want->object && (plan->put_count == 0 || props_equal(have->config, want->config));
}

void reconcile_plan(const struct reconcile_want *want, const struct reconcile_have *have,
                    struct reconcile_plan *out)
{
    *out = (struct reconcile_plan){.drop = numbers_new(have->task_count),
                                   .put = numbers_new(want->task_count)};
    if (want->config == NULL) {
        out->act = have->serial != 0 ? RECONCILE_REMOVE : RECONCILE_CHANGE;
        return;
    }
    compare_tasks(want, have, out);
    if (!process_serves(want, have, out)) {
        out->act = RECONCILE_APPLY;
        return;
    }
    out->move_object = want->object != have->object;
    out->retarget = want->target != have->target;
}

void reconcile_plan_deinit(struct reconcile_plan *plan)
{
    free(plan->drop);
    free(plan->put);
    plan->drop = plan->put = NULL;
}

bool reconcile_is_nothing(const struct reconcile_plan *plan)
{
    return plan->act == RECONCILE_CHANGE && !plan->retarget && !plan->move_object &&
           plan->drop_count == 0 && plan->put_count == 0;
}
