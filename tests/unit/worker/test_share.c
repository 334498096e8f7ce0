/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's share of connectors, over the supervisor and the clock of herder_world.h: what runs
 * follows what is wanted, one thing at a time and without touching what need not move; and at
 * random, that it always gets there. */
#define LOGGER "test"
#include "base/log.h"
#include "herder_world.h"
#include "worker/herder/connectors.h"

/* --- the fixture ------------------------------------------------------------------------------ */

struct fixture {
    struct connectors *all;
    struct props config;
    struct props task; /* of all tasks */
    struct reconcile_input in;
    int32_t tasks[TASKS_MAX];
    char told[16384]; /* "c RUNNING\n", "c 1 FAILED\n" */
    int made;
    int shared; /* calls */
    bool keep;  /* answer `made` at once */
};

static void on_made(void *arg, const char *conn, struct props *configs, size_t count)
{
    struct fixture *f = arg;

    (void)configs;
    f->made = (int)count;
    if (f->keep)
        connectors_keep(f->all, conn);
}

static void on_told(void *arg, const char *conn, int task, enum state state, const char *trace)
{
    struct fixture *f = arg;
    size_t len = strlen(f->told);

    (void)trace;
    if (len > sizeof(f->told) / 2)
        len = 0;
    if (task < 0)
        snprintf(f->told + len, sizeof(f->told) - len, "%s %s\n", conn, state_name(state));
    else
        snprintf(f->told + len, sizeof(f->told) - len, "%s %d %s\n", conn, task, state_name(state));
}

static void on_share(void *arg, const char *conn, struct share *out)
{
    struct fixture *f = arg;

    (void)conn;
    out->plugin = &plugins[1];
    reconcile_want(&f->in, &out->want);
    out->configs = calloc(out->want.task_count + 1, sizeof(*out->configs));
    for (size_t i = 0; i < out->want.task_count; i++)
        out->configs[i] = &f->task;
}

static void on_shared(void *arg, const char *conn)
{
    (void)conn;
    ((struct fixture *)arg)->shared++;
}

static void wants(struct fixture *f, bool object, const char *tasks)
{
    f->in.object = object;
    f->in.tasks = f->tasks;
    f->in.assigned = strlen(tasks);
    for (size_t i = 0; i < f->in.assigned; i++)
        f->tasks[i] = tasks[i] - '0';
    connectors_reshare(f->all, "c");
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct connectors_options options = {.loop = &world.loop,
                                         .sup = (struct supervisor *)&world,
                                         .restart_max = 5,
                                         .made = on_made,
                                         .told = on_told,
                                         .share = on_share,
                                         .shared = on_shared,
                                         .arg = f};

    memset(&world, 0, sizeof(world));
    world.loop.now_ms = 1000;
    props_init(&f->config);
    props_init(&f->task);
    props_set(&f->config, "topic", "t");
    props_set(&f->task, "task.class", "T");
    f->in = (struct reconcile_input){.config = &f->config, .serial = 1, .task_count = TASKS_MAX};
    f->keep = true;
    f->all = connectors_new(&options);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    connectors_free(&f->all);
    props_deinit(&f->config);
    props_deinit(&f->task);
    free(f);
    return 0;
}

static void died(struct fixture *f, bool expected, int culprit)
{
    memset(host_of("c"), 0, sizeof(struct host));
    connectors_on_died(f->all, "c", &(struct supervisor_death){expected, culprit, "the host died"});
}

static void task_says(struct fixture *f, int task, enum state state)
{
    struct host *host = host_of("c");

    if (state == STATE_UNASSIGNED || state == STATE_FAILED)
        host->live[task] = false;
    if (state == STATE_UNASSIGNED && host->stopping == task)
        host->stopping = -1;
    host->asked[task] = host->asked[task] && state != STATE_UNASSIGNED;
    connectors_on_task(f->all, "c", task, state, NULL);
}

static void says(struct fixture *f, enum state state)
{
    connectors_on_connector(f->all, "c", state, state == STATE_FAILED ? "x.Y: no" : NULL, "1.0");
}

static void made(struct fixture *f, size_t count)
{
    json_t *configs = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(configs, json_pack("{s:s}", "a", "b"));
    connectors_on_configs(f->all, "c", configs, NULL);
    json_decref(configs);
}

static void expect_told(struct fixture *f, const char *want)
{
    if (strcmp(f->told, want) != 0)
        fail_msg("told was\n%swhere this belongs\n%s", f->told, want);
    f->told[0] = '\0';
}

/* Object and tasks 0 and 1 run. */
static void run_both(struct fixture *f)
{
    wants(f, true, "01");
    pass(0);
    says(f, STATE_RUNNING);
    made(f, 2);
    task_says(f, 0, STATE_RUNNING);
    task_says(f, 1, STATE_RUNNING);
    expect("start c Src STARTED\nask c 1\ntask c 0 STARTED\ntask c 1 STARTED\n");
    expect_told(f, "c RUNNING\nc 0 RUNNING\nc 1 RUNNING\n");
}

/* --- one by one ------------------------------------------------------------------------------- */

static void tasks_run_where_the_connector_is_not(void **state)
{
    struct fixture *f = *state;

    wants(f, false, "41");
    pass(0);
    expect("start c Src STARTED for tasks\ntask c 1 STARTED\ntask c 4 STARTED\n");
    assert_true(connectors_may_start(f->all, "c", 4));
    assert_false(connectors_may_start(f->all, "c", 0));
    task_says(f, 4, STATE_RUNNING);
    says(f, STATE_RUNNING); /* not its to say */
    expect_told(f, "c 4 RUNNING\n");
}

static void the_connector_runs_without_tasks(void **state)
{
    struct fixture *f = *state;

    wants(f, true, "");
    pass(0);
    says(f, STATE_RUNNING);
    made(f, 3);
    assert_int_equal(f->made, 3);
    expect("start c Src STARTED\nask c 1\n");
    expect_told(f, "c RUNNING\n");
}

static void revoked_tasks_stop_side_by_side_and_their_siblings_run_on(void **state)
{
    struct fixture *f = *state;

    wants(f, true, "012");
    pass(0);
    says(f, STATE_RUNNING);
    made(f, 3);
    for (int i = 0; i < 3; i++)
        task_says(f, i, STATE_RUNNING);
    world.journal[0] = f->told[0] = '\0';
    f->shared = 0;
    wants(f, true, "1");
    expect("stop_task c 0\nstop_task c 2\n");
    assert_true(connectors_sharing(f->all, "c"));
    task_says(f, 2, STATE_UNASSIGNED);
    assert_int_equal(f->shared, 0);
    task_says(f, 0, STATE_UNASSIGNED);
    assert_int_equal(f->shared, 1);
    assert_false(connectors_sharing(f->all, "c"));
    expect_told(f, "c 2 UNASSIGNED\nc 0 UNASSIGNED\n");
    expect("");
}

static void the_connector_goes_and_comes_beside_running_tasks(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    wants(f, false, "01");
    expect("");
    expect_told(f, "c UNASSIGNED\n");
    wants(f, true, "01");
    expect("target c STARTED\n");
    says(f, STATE_RUNNING);
    made(f, 2);
    expect("ask c 1\n");
    expect_told(f, "c RUNNING\n");
}

static void nothing_left_ends_the_process_and_is_told(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    wants(f, false, "");
    expect("drain c\n");
    assert_true(connectors_sharing(f->all, "c"));
    died(f, true, -1);
    expect_told(f, "c 0 UNASSIGNED\nc 1 UNASSIGNED\nc UNASSIGNED\n");
    assert_null(connectors_find(f->all, "c"));
}

static void what_comes_back_while_it_ends_starts_after_the_end(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    wants(f, false, "");
    wants(f, false, "1");
    expect("drain c\n");
    died(f, true, -1);
    pass(0);
    expect("start c Src STARTED for tasks\ntask c 1 STARTED\n");
}

static void a_new_configuration_holds_tasks_until_they_are_made(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    f->keep = false;
    f->in.serial++;
    wants(f, true, "01");
    died(f, true, -1);
    pass(0);
    says(f, STATE_RUNNING);
    expect("drain c\nstart c Src STARTED\nask c 1\n");
    made(f, 2);
    connectors_keep(f->all, "c");
    expect("task c 0 STARTED\ntask c 1 STARTED\n");
}

static void tasks_run_on_when_the_connector_fails(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    f->in.serial++;
    wants(f, true, "01");
    died(f, true, -1);
    pass(0);
    says(f, STATE_FAILED);
    expect("drain c\nstart c Src STARTED\ntask c 0 STARTED\ntask c 1 STARTED\n");
    died(f, false, -1); /* and the tasks come back after a crash, without it */
    pass(0);
    expect("start c Src STARTED for tasks\ntask c 0 STARTED\ntask c 1 STARTED\n");
    assert_non_null(strstr(f->told, "c FAILED\n"));
    assert_null(strstr(f->told, "c RESTARTING\n"));
}

static void a_new_set_starts_tasks_again_in_their_process(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    f->in.held = true;
    wants(f, true, "01");
    expect("stop_task c 0\nstop_task c 1\n");
    task_says(f, 0, STATE_UNASSIGNED);
    task_says(f, 1, STATE_UNASSIGNED);
    f->in.held = false;
    f->in.generation++;
    wants(f, true, "02");
    expect("task c 0 STARTED\ntask c 2 STARTED\n");
}

static void failed_tasks_keep_their_place_until_a_new_set(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    task_says(f, 1, STATE_FAILED);
    wants(f, true, "01");
    expect("");
    f->in.generation++;
    wants(f, true, "01");
    expect("stop_task c 0\ntask c 1 STARTED\n");
    task_says(f, 0, STATE_UNASSIGNED);
    expect("task c 0 STARTED\n");
}

static void a_failed_task_that_is_revoked_says_no_more(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    task_says(f, 1, STATE_FAILED);
    f->told[0] = '\0';
    wants(f, true, "0");
    expect_told(f, "");
    expect("");
}

static void stop_and_resume(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    f->in.target = TARGET_STOPPED;
    wants(f, true, "01");
    expect("stop_task c 0\nstop_task c 1\ndrain c\n");
    died(f, true, -1);
    expect_told(f, "c 1 UNASSIGNED\nc 0 UNASSIGNED\nc STOPPED\n");
    f->in.target = TARGET_STARTED;
    wants(f, true, "");
    pass(0);
    says(f, STATE_RUNNING);
    expect("start c Src STARTED\nask c 1\n");
}

static void pause_reaches_tasks_without_their_connector(void **state)
{
    struct fixture *f = *state;

    wants(f, false, "3");
    pass(0);
    world.journal[0] = '\0';
    f->in.target = TARGET_PAUSED;
    connectors_reshare(f->all, "c");
    expect("task_target c 3 PAUSED\n");
}

static void a_task_that_will_not_leave_costs_its_siblings_a_restart_only(void **state)
{
    struct fixture *f = *state;

    run_both(f);
    wants(f, true, "0");
    died(f, false, 1);
    pass(0);
    expect("stop_task c 1\nstart c Src STARTED\ntask c 0 STARTED\n");
    expect_told(f, "c 1 UNASSIGNED\nc RESTARTING\nc 0 RESTARTING\n");
}

static void what_crashed_too_often_stays_failed_beside_newcomers(void **state)
{
    struct fixture *f = *state;

    wants(f, false, "0");
    for (int i = 0; i < 6; i++) {
        pass(60000);
        died(f, false, -1);
    }
    assert_non_null(strstr(f->told, "c 0 FAILED\n"));
    world.journal[0] = '\0';
    wants(f, false, "01");
    pass(0);
    expect("start c Src STARTED for tasks\ntask c 1 STARTED\n");
}

static void restart_of_everything_touches_what_is_here(void **state)
{
    struct fixture *f = *state;

    wants(f, false, "13");
    pass(0);
    world.journal[0] = '\0';
    connectors_restart(f->all, "c", &(struct connectors_plan){.connector = true, .tasks = true},
                       NULL, NULL);
    expect("stop_task c 1\nstop_task c 3\n");
    task_says(f, 3, STATE_UNASSIGNED);
    task_says(f, 1, STATE_UNASSIGNED);
    expect("task c 3 STARTED\ntask c 1 STARTED\n");
}

/* --- at random -------------------------------------------------------------------------------- */

static unsigned seed;

static int dice(int sides)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)sides);
}

static void host_moves(struct fixture *f)
{
    struct host *host = host_of("c");
    int task = dice(TASKS_MAX);

    switch (dice(host->draining ? 3 : 8)) {
    case 0:
        if (host->draining || dice(8) == 0)
            died(f, host->draining, host->asked[task] ? task : -1);
        break;
    case 1:
    case 2:
        if (host->asked[task])
            task_says(f, task, STATE_UNASSIGNED);
        break;
    case 3:
        host->spent = host->spent || dice(8) == 0;
        if (host->live[task])
            task_says(f, task, dice(4) == 0 ? STATE_FAILED : STATE_RUNNING);
        break;
    case 4:
        if (host->object)
            says(f, dice(5) == 0 ? STATE_FAILED : STATE_RUNNING);
        break;
    default:
        if (host->object)
            made(f, (size_t)dice(4));
    }
}

static void somebody_wants(struct fixture *f)
{
    char tasks[TASKS_MAX + 1] = "";

    switch (dice(7)) {
    case 0:
        f->in.serial++;
        break;
    case 1:
        f->in.generation++;
        break;
    case 2:
        f->in.target = (enum target_state)dice(3);
        break;
    case 3:
        f->in.held = dice(2) == 0;
        break;
    case 4:
        f->in.config = dice(3) == 0 ? NULL : &f->config;
        break;
    case 5:
        connectors_restart_task(f->all, "c", dice(TASKS_MAX), NULL, NULL);
        connectors_restart(f->all, "c", &(struct connectors_plan){true, dice(2) == 0, dice(2) == 0},
                           NULL, NULL);
        return;
    default:
        for (int i = 0; i < TASKS_MAX; i++)
            if (dice(2) == 0)
                tasks[strlen(tasks)] = (char)('0' + i);
        wants(f, dice(2) == 0, tasks);
        return;
    }
    connectors_reshare(f->all, "c");
}

/* Everything answers, in order; then what runs must be what is wanted, but for what FAILED. */
static void come_to_rest(struct fixture *f)
{
    for (int round = 0; round < 30; round++) {
        struct host *host;

        pass(60000);
        if ((host = host_of("c")) == NULL)
            continue;
        if (host->draining) {
            died(f, true, -1);
            continue;
        }
        for (int i = 0; i < TASKS_MAX; i++)
            if (host_of("c") != NULL && host_of("c")->asked[i])
                task_says(f, i, STATE_UNASSIGNED);
        if (host_of("c") != NULL && host_of("c")->object && !host_of("c")->draining)
            says(f, f->in.target == TARGET_PAUSED ? STATE_PAUSED : STATE_RUNNING);
        if (host_of("c") != NULL && host_of("c")->object)
            made(f, 2);
    }
}

static void assert_runs(struct fixture *f)
{
    const struct lifecycle *lc = connectors_find(f->all, "c");
    struct host *host = host_of("c");
    struct reconcile_want want;
    struct lifecycle_have have;

    assert_false(connectors_sharing(f->all, "c"));
    reconcile_want(&f->in, &want);
    if (want.config == NULL) {
        assert_null(host);
        assert_null(lc);
        reconcile_want_deinit(&want);
        return;
    }
    lifecycle_have(lc, &have);
    assert_true(have.object == want.object);
    assert_int_equal(have.tasks->count, want.task_count);
    for (size_t i = 0; i < want.task_count; i++) {
        const struct task_life *task = &have.tasks->list[i];

        assert_int_equal(task->number, want.tasks[i]);
        assert_int_equal(task->generation, want.generation);
        assert_true(task->failed || (host != NULL && host->live[task->number]));
    }
    for (int i = 0; host != NULL && i < TASKS_MAX; i++)
        assert_true(!host->live[i] || task_life_find(have.tasks, i) != NULL);
    reconcile_want_deinit(&want);
}

static void any_sequence_of_wishes_and_events_comes_to_what_is_wanted(void **state)
{
    (void)state;
    log_set_level(LOG_OFF);
    for (unsigned run = 1; run <= 3000; run++) {
        void *fresh = NULL;
        struct fixture *f;

        set_up(&fresh);
        f = fresh;
        seed = run;
        for (int step = 0; step < 120; step++) {
            if (dice(4) == 0)
                somebody_wants(f);
            else if (dice(3) == 0)
                pass(dice(3) == 0 ? 0 : dice(40000));
            else if (host_of("c") != NULL)
                host_moves(f);
            world.journal[0] = '\0';
        }
        come_to_rest(f);
        assert_runs(f);
        tear_down(&fresh);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(tasks_run_where_the_connector_is_not),
        test(the_connector_runs_without_tasks),
        test(revoked_tasks_stop_side_by_side_and_their_siblings_run_on),
        test(the_connector_goes_and_comes_beside_running_tasks),
        test(nothing_left_ends_the_process_and_is_told),
        test(what_comes_back_while_it_ends_starts_after_the_end),
        test(a_new_configuration_holds_tasks_until_they_are_made),
        test(tasks_run_on_when_the_connector_fails),
        test(a_new_set_starts_tasks_again_in_their_process),
        test(failed_tasks_keep_their_place_until_a_new_set),
        test(a_failed_task_that_is_revoked_says_no_more),
        test(stop_and_resume),
        test(pause_reaches_tasks_without_their_connector),
        test(a_task_that_will_not_leave_costs_its_siblings_a_restart_only),
        test(what_crashed_too_often_stays_failed_beside_newcomers),
        test(restart_of_everything_touches_what_is_here),
        cmocka_unit_test(any_sequence_of_wishes_and_events_comes_to_what_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
