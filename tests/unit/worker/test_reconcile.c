/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about a worker's share of a connector: the rules one by one, and then random sequences
 * of changes against a model that only knows what must never and what must at last be. */
#include "worker/herder/reconcile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct props a_config(const char *value)
{
    struct props props;

    props_init(&props);
    assert_int_equal(props_set(&props, "k", value), 0);
    return props;
}

static const int32_t all[] = {0, 1, 2, 3};

/* Connector object and tasks 0 to 3 of four are here. */
static struct reconcile_input whole(const struct props *config)
{
    return (struct reconcile_input){.config = config,
                                    .serial = 1,
                                    .target = TARGET_STARTED,
                                    .generation = 5,
                                    .task_count = 4,
                                    .object = true,
                                    .tasks = all,
                                    .assigned = 4};
}

static void assert_wants(const struct reconcile_input *in, bool object, size_t tasks)
{
    struct reconcile_want want;

    reconcile_want(in, &want);
    assert_int_equal(want.object, object);
    assert_int_equal(want.task_count, tasks);
    assert_true((want.config != NULL) == (object || tasks > 0));
    reconcile_want_deinit(&want);
}

static void what_is_assigned_runs(void **state)
{
    struct props config = a_config("a");
    struct reconcile_input in = whole(&config);

    (void)state;
    assert_wants(&in, true, 4);
    in.assigned = 2;
    in.object = false;
    assert_wants(&in, false, 2);
    props_deinit(&config);
}

static void tasks_of_a_deleted_connector_never_run(void **state)
{
    struct reconcile_input in = whole(NULL);

    (void)state;
    assert_wants(&in, false, 0);
}

static void tasks_do_not_run_while_inconsistent_stopped_or_held(void **state)
{
    struct props config = a_config("a");
    struct reconcile_input in = whole(&config);

    (void)state;
    in.task_count = 0;
    assert_wants(&in, true, 0);
    in = whole(&config);
    in.target = TARGET_STOPPED;
    assert_wants(&in, true, 0);
    in = whole(&config);
    in.held = true;
    assert_wants(&in, true, 0);
    in.object = false;
    assert_wants(&in, false, 0);
    props_deinit(&config);
}

static void numbers_that_are_no_tasks_do_not_run(void **state)
{
    static const int32_t odd[] = {3, 4, -1, 3, 0, INT32_MAX, INT32_MIN};
    struct props config = a_config("a");
    struct reconcile_input in = whole(&config);
    struct reconcile_want want;

    (void)state;
    in.tasks = odd;
    in.assigned = 7;
    reconcile_want(&in, &want);
    assert_int_equal(want.task_count, 2);
    assert_int_equal(want.tasks[0], 0);
    assert_int_equal(want.tasks[1], 3);
    reconcile_want_deinit(&want);
    props_deinit(&config);
}

/* --- a worker that does what is planned ------------------------------------------------------- */

#define TASKS 6

struct model {
    struct props config;
    uint64_t serial;
    enum target_state target;
    bool object;
    struct reconcile_task tasks[TASKS];
    size_t count;
    int starts[TASKS]; /* by the last plan */
    int stops[TASKS];
    bool begun; /* anew, by the last plan */
};

static void drop(struct model *model, int number)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->tasks[i].number == number) {
            memmove(&model->tasks[i], &model->tasks[i + 1],
                    (model->count - i - 1) * sizeof(model->tasks[0]));
            model->count--;
            return;
        }
    fail_msg("task %d is dropped and was not here", number);
}

static void put(struct model *model, int number, int64_t generation)
{
    size_t i = 0;

    while (i < model->count && model->tasks[i].number < number)
        i++;
    if (i == model->count || model->tasks[i].number != number) {
        memmove(&model->tasks[i + 1], &model->tasks[i],
                (model->count - i) * sizeof(model->tasks[0]));
        model->count++;
    }
    model->tasks[i] = (struct reconcile_task){number, generation};
}

static void plan_for(const struct reconcile_want *want, const struct model *model,
                     struct reconcile_plan *plan)
{
    reconcile_plan(want,
                   &(struct reconcile_have){&model->config, model->serial, model->target,
                                            model->object, model->tasks, model->count},
                   plan);
}

static void carry_out(struct model *model, const struct reconcile_want *want)
{
    struct reconcile_plan plan;

    memset(model->starts, 0, sizeof(model->starts));
    memset(model->stops, 0, sizeof(model->stops));
    plan_for(want, model, &plan);
    model->begun = plan.act == RECONCILE_APPLY;
    for (size_t i = 0; i < plan.drop_count; i++) {
        drop(model, plan.drop[i]);
        model->stops[plan.drop[i]]++;
    }
    if (plan.act == RECONCILE_REMOVE) {
        model->serial = 0;
        model->object = false;
        model->count = 0;
    }
    if (plan.act == RECONCILE_APPLY) {
        props_deinit(&model->config);
        props_copy(&model->config, want->config);
        model->serial = want->serial;
        model->target = want->target;
        model->object = want->object;
    }
    if (plan.retarget)
        model->target = want->target;
    if (plan.move_object)
        model->object = want->object;
    for (size_t i = 0; i < plan.put_count; i++) {
        put(model, plan.put[i], want->generation);
        model->starts[plan.put[i]]++;
    }
    reconcile_plan_deinit(&plan);
}

static void assert_reached(const struct model *model, const struct reconcile_want *want)
{
    struct reconcile_plan plan;

    plan_for(want, model, &plan);
    assert_true(reconcile_is_nothing(&plan));
    reconcile_plan_deinit(&plan);
    assert_int_equal(model->count, want->task_count);
    for (size_t i = 0; i < model->count; i++) {
        assert_int_equal(model->tasks[i].number, want->tasks[i]);
        assert_int_equal(model->tasks[i].generation, want->generation);
    }
    assert_true(model->object == want->object);
    if (want->object) {
        assert_int_equal(model->serial, want->serial);
        assert_true(props_equal(&model->config, want->config));
    }
    if (want->config != NULL)
        assert_int_equal(model->target, want->target);
}

static void go(struct model *model, const struct reconcile_input *in)
{
    struct reconcile_want want;

    reconcile_want(in, &want);
    carry_out(model, &want);
    assert_reached(model, &want);
    reconcile_want_deinit(&want);
}

static struct model model_new(void)
{
    struct model model = {0};

    props_init(&model.config);
    return model;
}

static void a_target_state_begins_nothing_anew(void **state)
{
    struct props config = a_config("a");
    struct reconcile_input in = whole(&config);
    struct model model = model_new();

    (void)state;
    go(&model, &in);
    in.target = TARGET_PAUSED;
    go(&model, &in);
    assert_false(model.begun);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(model.starts[i] + model.stops[i], 0);
    props_deinit(&config);
    props_deinit(&model.config);
}

static void a_new_configuration_begins_the_object_anew_and_leaves_other_workers_tasks(void **state)
{
    struct props config = a_config("a"), changed = a_config("b");
    struct reconcile_input in = whole(&config);
    struct model owner = model_new(), other = model_new();

    (void)state;
    go(&owner, &in);
    in.config = &changed;
    in.serial = 2;
    go(&owner, &in);
    assert_true(owner.begun);
    in = whole(&config);
    in.object = false;
    go(&other, &in);
    in.config = &changed;
    in.serial = 2;
    go(&other, &in);
    assert_false(other.begun);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(other.starts[i] + other.stops[i], 0);
    in.generation = 6; /* and its tasks were made anew */
    go(&other, &in);
    assert_true(other.begun);
    assert_int_equal(other.starts[0], 1);
    props_deinit(&config);
    props_deinit(&changed);
    props_deinit(&owner.config);
    props_deinit(&other.config);
}

static void a_new_set_of_tasks_starts_them_again_in_place(void **state)
{
    struct props config = a_config("a");
    struct reconcile_input in = whole(&config);
    struct model model = model_new();

    (void)state;
    go(&model, &in);
    in.generation = 6;
    in.task_count = 3;
    go(&model, &in);
    assert_false(model.begun);
    assert_int_equal(model.starts[2], 1);
    assert_int_equal(model.stops[3], 1);
    props_deinit(&config);
    props_deinit(&model.config);
}

/* --- at random -------------------------------------------------------------------------------- */

static unsigned seed;

static int dice(int sides)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)sides);
}

/* What may happen to a connector in a cluster. unmoved: tasks whose place, set and configuration
 * stay as they were. */
static void change(struct reconcile_input *in, const struct props *configs, int32_t *tasks)
{
    switch (dice(8)) {
    case 0:
        in->config = &configs[dice(3)];
        in->serial++;
        break;
    case 1:
        in->config = dice(3) > 0 ? &configs[dice(3)] : NULL;
        in->serial++;
        break;
    case 2:
        in->target = (enum target_state)dice(3);
        break;
    case 3:
        in->generation++;
        in->task_count = dice(TASKS + 1);
        break;
    case 4:
        in->object = dice(2) == 0;
        break;
    case 5:
        in->held = dice(2) == 0;
        break;
    default:
        in->assigned = (size_t)dice(TASKS + 1);
        for (size_t i = 0; i < in->assigned; i++)
            tasks[i] = dice(TASKS + 2) - 1;
    }
}

static bool has(const struct model *model, int number, int64_t generation)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->tasks[i].number == number && model->tasks[i].generation == generation)
            return true;
    return false;
}

static void every_sequence_leads_to_what_is_wanted(void **state)
{
    struct props configs[] = {a_config("a"), a_config("b"), a_config("a")};

    (void)state;
    for (unsigned run = 1; run <= 2000; run++) {
        int32_t tasks[TASKS] = {0};
        struct reconcile_input in = {.serial = 1, .tasks = tasks};
        struct model model = model_new();

        seed = run;
        for (int step = 0; step < 40; step++) {
            struct model before = model;
            struct reconcile_want want;

            change(&in, configs, tasks);
            reconcile_want(&in, &want);
            assert_true(want.config == NULL || in.config != NULL);
            assert_true(want.task_count == 0 ||
                        (!in.held && in.target != TARGET_STOPPED && in.config != NULL));
            carry_out(&model, &want);
            assert_reached(&model, &want);
            for (int i = 0; i < TASKS && !model.begun; i++) /* what need not move stays */
                if (has(&before, i, in.generation) && has(&model, i, in.generation))
                    assert_int_equal(model.starts[i] + model.stops[i], 0);
            reconcile_want_deinit(&want);
        }
        props_deinit(&model.config);
    }
    for (size_t i = 0; i < 3; i++)
        props_deinit(&configs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_assigned_runs),
        cmocka_unit_test(tasks_of_a_deleted_connector_never_run),
        cmocka_unit_test(tasks_do_not_run_while_inconsistent_stopped_or_held),
        cmocka_unit_test(numbers_that_are_no_tasks_do_not_run),
        cmocka_unit_test(a_target_state_begins_nothing_anew),
        cmocka_unit_test(a_new_configuration_begins_the_object_anew_and_leaves_other_workers_tasks),
        cmocka_unit_test(a_new_set_of_tasks_starts_them_again_in_place),
        cmocka_unit_test(every_sequence_leads_to_what_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
