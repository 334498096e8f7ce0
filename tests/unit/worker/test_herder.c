/* SPDX-License-Identifier: Apache-2.0 */
/* The herder over a supervisor, a loop, a store and a catalog that herder_world.h plays: every path
 * of the state machine, every answer exactly once, the restart policy on a clock that the test
 * turns. What the supervisor is told is a journal. */
#define LOGGER "test"
#include "model/conn_config.h"
#include "base/log.h"
#include "herder_world.h"
#include "worker/herder/herder.h"
#include "worker/herder/standalone.h"

/* --- the fixture ------------------------------------------------------------------------------ */

struct answered {
    int count;
    int code;
    char text[1008];
    bool created;
    json_t *body;
};

struct fixture {
    struct worker_config config;
    struct herder *herder;
    struct answered last, other;
    bool ended;
};

static struct fixture *new_fixture(int restart_max)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct mr_error err = {0};

    memset(&world, 0, sizeof(world));
    world.loop.now_ms = 1000;
    f->config.graceful_ms = 5000;
    f->config.restart_max = restart_max;
    f->config.worker_id = strdup("me:8083");
    f->config.path = "w";
    f->herder = herder_new(&(struct herder_options){.loop = &world.loop,
                                                    .config = &f->config,
                                                    .catalog = (const struct catalog *)&world,
                                                    .open = standalone_open},
                           &err);
    assert_non_null(f->herder);
    return f;
}

static int set_up(void **state)
{
    *state = new_fixture(5);
    return 0;
}

static int set_up_without_restarts(void **state)
{
    *state = new_fixture(0);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    herder_free(&f->herder);
    assert_false(world.store_open);
    assert_false(world.probing);
    assert_null(next_timer(INT64_MAX));
    json_decref(f->last.body);
    json_decref(f->other.body);
    free(f->config.worker_id);
    free(f);
    return 0;
}

static void on_answer(void *arg, const struct herder_answer *answer)
{
    struct answered *a = arg;

    a->count++;
    a->code = answer->err != NULL ? answer->err->code : 0;
    snprintf(a->text, sizeof(a->text), "%s", answer->message != NULL ? answer->message : "");
    a->created = answer->created;
    json_decref(a->body);
    a->body = answer->text != NULL   ? json_loads(answer->text->data, 0, NULL)
              : answer->body != NULL ? json_deep_copy(answer->body)
                                     : NULL;
}

/* keys and values, ended by NULL */
static void put_to(struct fixture *f, struct answered *to, const char *conn,
                   enum target_state initial, bool create, ...)
{
    struct props config;
    struct herder_put put = {
        .conn = conn, .config = &config, .initial = initial, .create_only = create};
    va_list args;
    const char *key;

    props_init(&config);
    assert_int_equal(props_set(&config, "name", conn), 0);
    va_start(args, create);
    while ((key = va_arg(args, const char *)) != NULL)
        assert_int_equal(props_set(&config, key, va_arg(args, const char *)), 0);
    va_end(args);
    herder_put(f->herder, &put, on_answer, to);
    props_deinit(&config);
}

static void source_to(struct fixture *f, struct answered *to, const char *conn,
                      enum target_state initial, bool create)
{
    put_to(f, to, conn, initial, create, "connector.class", "Src", "topic", "t", "tasks.max", "2",
           NULL);
}

static void forget_answers(struct fixture *f)
{
    json_decref(f->last.body);
    memset(&f->last, 0, sizeof(f->last));
}

static void assert_answered(struct fixture *f, int count, int code)
{
    if (f->last.count != count || (count > 0 && f->last.code != code))
        fail_msg("%d answers, the last with code %d '%s'; %d with code %d belong", f->last.count,
                 f->last.code, f->last.text, count, code);
}

static void says(const char *conn, enum state state, const char *trace)
{
    world.events.connector_status(world.arg, conn, state, trace, "1.0");
}

static void task_says(const char *conn, int task, enum state state, const char *trace)
{
    struct host *host = host_of(conn);

    if (host != NULL && task < TASKS_MAX) {
        if (state == STATE_FAILED || state == STATE_UNASSIGNED)
            host->live[task] = false;
        if (state == STATE_UNASSIGNED && host->stopping == task)
            host->stopping = -1;
    }
    world.events.task_status(world.arg, conn, task, state, trace);
}

/* The connector made `count` configurations, marked by `mark`. */
static void made(const char *conn, int count, const char *mark)
{
    json_t *configs = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(configs, json_pack("{s:s, s:i}", "mark", mark, "n", i));
    world.events.task_configs(world.arg, conn, configs, NULL);
    json_decref(configs);
}

static void died(const char *conn, bool expected, int culprit, const char *text)
{
    struct supervisor_death death = {expected, culprit, text};

    assert_non_null(host_of(conn));
    host_of(conn)->conn[0] = '\0';
    world.events.died(world.arg, conn, &death);
}

/* A source with `tasks` tasks that run. */
static void run_source(struct fixture *f, const char *conn, int tasks)
{
    source_to(f, &f->last, conn, TARGET_STARTED, true);
    pass(0);
    says(conn, STATE_RUNNING, NULL);
    made(conn, tasks, "a");
    for (int i = 0; i < tasks; i++)
        task_says(conn, i, STATE_RUNNING, NULL);
    assert_answered(f, 1, 0);
    world.journal[0] = '\0';
    forget_answers(f);
}

/* "RUNNING RUNNING FAILED": connector, then tasks. */
static void assert_states(struct fixture *f, const char *conn, const char *want)
{
    json_t *status = herder_status(f->herder, conn), *tasks = json_object_get(status, "tasks"),
           *task;
    char got[512];
    size_t i;

    assert_non_null(status);
    snprintf(got, sizeof(got), "%s",
             json_string_value(json_object_get(json_object_get(status, "connector"), "state")));
    json_array_foreach(tasks, i, task)
    {
        const char *one = json_string_value(json_object_get(task, "state"));

        snprintf(got + strlen(got), sizeof(got) - strlen(got), " %s", one);
    }
    if (strcmp(got, want) != 0)
        fail_msg("%s is %s; %s belongs", conn, got, want);
    json_decref(status);
}

static void assert_trace(struct fixture *f, const char *conn, int task, const char *want)
{
    json_t *status = herder_status(f->herder, conn);
    const json_t *part = task < 0 ? json_object_get(status, "connector")
                                  : json_array_get(json_object_get(status, "tasks"), (size_t)task);
    const char *trace = json_string_value(json_object_get(part, "trace"));

    if (want == NULL)
        assert_null(trace);
    else
        assert_string_equal(trace, want);
    json_decref(status);
}

static void target(struct fixture *f, const char *conn, enum target_state t)
{
    herder_set_target(f->herder, conn, t, on_answer, &f->last);
}

/* --- create ----------------------------------------------------------------------------------- */

static void a_create_is_answered_when_its_tasks_were_told_to_start(void **state)
{
    struct fixture *f = *state;
    json_t *want;

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    assert_states(f, "c", "UNASSIGNED");
    pass(0);
    expect("start c Src STARTED\n");
    says("c", STATE_RUNNING, NULL);
    expect("ask c 2\n");
    assert_answered(f, 0, 0);
    made("c", 2, "a");
    expect("task c 0 STARTED\ntask c 1 STARTED\n");
    assert_answered(f, 1, 0);
    assert_true(f->last.created);
    want = json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:[{s:s, s:i}, {s:s, s:i}], s:s}", "name", "c",
                     "config", "name", "c", "connector.class", "Src", "topic", "t", "tasks.max",
                     "2", "tasks", "connector", "c", "task", 0, "connector", "c", "task", 1, "type",
                     "source");
    assert_true(json_equal(f->last.body, want));
    json_decref(want);
    assert_states(f, "c", "RUNNING UNASSIGNED UNASSIGNED");
    task_says("c", 0, STATE_RUNNING, NULL);
    assert_states(f, "c", "RUNNING RUNNING UNASSIGNED");
}

static void task_configurations_get_what_connect_adds(void **state)
{
    struct fixture *f = *state;
    json_t *tasks, *want;

    put_to(f, &f->last, "s", TARGET_STARTED, true, "connector.class", "Snk", "topics", "a,b", NULL);
    pass(0);
    says("s", STATE_RUNNING, NULL);
    made("s", 1, "m");
    tasks = herder_tasks(f->herder, "s");
    want = json_pack("[{s:{s:s, s:i}, s:{s:s, s:s, s:s, s:s}}]", "id", "connector", "s", "task", 0,
                     "config", "mark", "m", "n", "0", "task.class", "org.example.SnkTask", "topics",
                     "a,b");
    assert_true(json_equal(tasks, want));
    json_decref(tasks);
    json_decref(want);
}

static void a_connector_created_stopped_starts_nothing(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STOPPED, true);
    assert_answered(f, 1, 0);
    pass(0);
    expect("");
    assert_states(f, "c", "STOPPED");
    target(f, "c", TARGET_STARTED);
    pass(0);
    expect("start c Src STARTED\n");
}

static void a_connector_created_paused_makes_tasks_when_it_is_resumed(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_PAUSED, true);
    pass(0);
    expect("start c Src PAUSED\n");
    says("c", STATE_PAUSED, NULL);
    assert_answered(f, 1, 0);
    assert_states(f, "c", "PAUSED");
    target(f, "c", TARGET_STARTED);
    assert_answered(f, 2, 0);
    expect("target c STARTED\n");
    says("c", STATE_RUNNING, NULL);
    expect("ask c 2\n");
    made("c", 1, "a");
    expect("task c 0 STARTED\n");
}

static void an_existing_name_is_refused_after_validation(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    source_to(f, &f->last, "c", TARGET_STARTED, true);
    assert_answered(f, 1, MR_ERR_EXISTS);
    assert_string_equal(f->last.text, "Connector c already exists");
    put_to(f, &f->last, "c", TARGET_STARTED, true, "connector.class", "Src", NULL);
    assert_answered(f, 2, MR_ERR_CONFIG);
    assert_string_equal(
        f->last.text, "Connector configuration is invalid and contains the following 1 error(s):\n"
                      "Missing required configuration \"topic\" which has no default value.\n"
                      "You can also find the above list of errors at the endpoint "
                      "`/connector-plugins/{connectorType}/config/validate`");
    expect("");
}

/* --- what plugin code must be asked ----------------------------------------------------------- */

static void picky_to(struct fixture *f, struct answered *to, const char *conn, const char *mood)
{
    put_to(f, to, conn, TARGET_STARTED, true, "connector.class", "Src", "topic", "t", "transforms",
           "a,a.b", "transforms.a.type", "Picky", "transforms.a.mood", mood, "transforms.a.number",
           "x", "transforms.a.b.type", "Picky", "transforms.a.b.taste", "sweet", NULL);
}

static void expect_question(const char *want)
{
    char *got = json_text(world.question);

    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}

static json_t *problem(int stage, const char *key, const char *member, const char *text)
{
    return json_pack("[{s:i, s:s, s:s}]", "stage", stage, "key", key, member, text);
}

static void plugin_code_is_asked_of_what_is_sound_so_far(void **state)
{
    struct fixture *f = *state;
    json_t *answer = problem(1, "taste", "error", "It is not that sweet.");

    picky_to(f, &f->last, "c", "so so");
    assert_answered(f, 0, 0);
    expect_question(
        "[{\"prefix\":\"transforms.a.\",\"library\":\"/p/picky.so\",\"class\":\"Picky\","
        "\"kind\":4,\"config\":{\"mood\":\"so so\"},\"keys\":[\"mood\"]},"
        "{\"prefix\":\"transforms.a.b.\",\"library\":\"/p/picky.so\",\"class\":\"Picky\","
        "\"kind\":4,\"config\":{\"taste\":\"sweet\"},\"keys\":[\"mood\",\"number\","
        "\"taste\"]}]");
    check_answers(answer);
    assert_answered(f, 1, MR_ERR_CONFIG);
    assert_string_equal(
        f->last.text, "Connector configuration is invalid and contains the following 2 error(s):\n"
                      "Invalid value x for configuration transforms.a.number: Not a number of type "
                      "INT\nIt is not that sweet.\n"
                      "You can also find the above list of errors at the endpoint "
                      "`/connector-plugins/{connectorType}/config/validate`");
    expect("");
    assert_false(herder_knows(f->herder, "c"));
    json_decref(answer);
}

/* First its connector's keys, with all of the configuration to see; then those of transforms. */
static void a_connector_s_own_code_is_asked_too(void **state)
{
    struct fixture *f = *state;
    json_t *answer = problem(0, "mood", "error", "It does not go with that taste.");

    put_to(f, &f->last, "c", TARGET_STARTED, true, "connector.class", "PickySrc", "mood", "so so",
           "number", "x", "transforms", "a", "transforms.a.type", "Picky", NULL);
    expect_question("[{\"prefix\":\"\",\"library\":\"/p/picky.so\",\"class\":\"PickySrc\","
                    "\"kind\":1,\"config\":{\"name\":\"c\",\"connector.class\":\"PickySrc\","
                    "\"mood\":\"so so\",\"number\":\"x\",\"transforms\":\"a\","
                    "\"transforms.a.type\":\"Picky\"},\"keys\":[\"mood\"]},"
                    "{\"prefix\":\"transforms.a.\",\"library\":\"/p/picky.so\",\"class\":"
                    "\"Picky\",\"kind\":4,\"config\":{},\"keys\":[\"mood\",\"number\"]}]");
    check_answers(answer);
    assert_answered(f, 1, MR_ERR_CONFIG);
    assert_string_equal(
        f->last.text, "Connector configuration is invalid and contains the following 2 error(s):\n"
                      "It does not go with that taste.\n"
                      "Invalid value x for configuration number: Not a number of type INT\n"
                      "You can also find the above list of errors at the endpoint "
                      "`/connector-plugins/{connectorType}/config/validate`");
    expect("");
    json_decref(answer);
}

static void a_put_goes_on_when_plugin_code_has_nothing_against_it(void **state)
{
    struct fixture *f = *state;
    json_t *none = json_array();

    put_to(f, &f->last, "c", TARGET_STARTED, true, "connector.class", "Src", "topic", "t",
           "transforms", "a", "transforms.a.type", "Picky", NULL);
    expect_question(
        "[{\"prefix\":\"transforms.a.\",\"library\":\"/p/picky.so\",\"class\":\"Picky\","
        "\"kind\":4,\"config\":{},\"keys\":[\"mood\",\"number\"]}]");
    source_to(f, &f->other, "d", TARGET_STARTED, true); /* others don't wait */
    pass(0);
    expect("start d Src STARTED\n");
    check_answers(none);
    pass(0);
    expect("start c Src STARTED\n");
    assert_answered(f, 0, 0);
    json_decref(none);
}

/* The world may have moved on meanwhile. */
static void a_create_that_was_overtaken_is_refused(void **state)
{
    struct fixture *f = *state;
    json_t *none = json_array();

    put_to(f, &f->last, "c", TARGET_STARTED, true, "connector.class", "Src", "topic", "t",
           "transforms", "a", "transforms.a.type", "Picky", NULL);
    source_to(f, &f->other, "c", TARGET_STARTED, true);
    pass(0);
    world.journal[0] = '\0';
    check_answers(none);
    assert_answered(f, 1, MR_ERR_EXISTS);
    expect("");
    json_decref(none);
}

static void a_check_that_breaks_is_its_key_s_problem(void **state)
{
    struct fixture *f = *state;
    json_t *answer = problem(0, "mood", "broken", "its class was killed by signal 11 (SIGSEGV)");
    struct props config;
    const json_t *configs, *one;
    size_t i, told = 0;

    props_init(&config);
    assert_int_equal(props_set(&config, "name", "v"), 0);
    assert_int_equal(props_set(&config, "connector.class", "Src"), 0);
    assert_int_equal(props_set(&config, "topic", "t"), 0);
    assert_int_equal(props_set(&config, "transforms", "a"), 0);
    assert_int_equal(props_set(&config, "transforms.a.type", "Picky"), 0);
    herder_validate(f->herder, &config, on_answer, &f->last);
    props_deinit(&config);
    assert_answered(f, 0, 0);
    check_answers(answer);
    assert_answered(f, 1, 0);
    assert_int_equal(json_integer_value(json_object_get(f->last.body, "error_count")), 1);
    configs = json_object_get(f->last.body, "configs");
    json_array_foreach(configs, i, one)
    {
        const json_t *value = json_object_get(one, "value");
        const json_t *error = json_array_get(json_object_get(value, "errors"), 0);

        if (error == NULL)
            continue;
        told++;
        assert_string_equal(json_string_value(json_object_get(value, "name")), "transforms.a.mood");
        assert_string_equal(json_string_value(error),
                            "Configuration transforms.a.mood could not be checked: its class was "
                            "killed by signal 11 (SIGSEGV)");
    }
    assert_int_equal(told, 1);
    json_decref(answer);
}

static void who_waits_for_plugin_code_is_answered_at_the_end(void **state)
{
    struct fixture *f = *state;

    picky_to(f, &f->last, "c", "good");
    herder_free(&f->herder);
    assert_answered(f, 1, MR_ERR_CLOSED);
}

static void a_failed_first_start_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    says("c", STATE_FAILED, "org.example.ConnectException: no such file\n\tat start");
    assert_states(f, "c", "FAILED");
    assert_answered(f, 0, 0);
    world.journal[0] = '\0';
    died("c", true, -1, "drained");
    assert_answered(f, 1, MR_ERR_FATAL);
    assert_string_equal(f->last.text, "no such file");
    assert_false(herder_knows(f->herder, "c"));
    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    expect("start c Src STARTED\n");
}

static void task_configurations_that_fail_fail_the_create(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    says("c", STATE_RUNNING, NULL);
    world.events.task_configs(world.arg, "c", NULL, "no tables");
    says("c", STATE_FAILED, "ConnectException: no tables");
    died("c", true, -1, "drained");
    assert_answered(f, 1, MR_ERR_FATAL);
    assert_string_equal(f->last.text, "ConnectException: no tables");
    assert_null(herder_status(f->herder, "c"));
}

static void task_configurations_that_are_not_ready_are_asked_for_again(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    says("c", STATE_RUNNING, NULL);
    world.journal[0] = '\0';
    world.events.task_configs(world.arg, "c", NULL, "not yet");
    pass(249);
    expect("");
    pass(1);
    expect("ask c 2\n");
    assert_answered(f, 1, 0); /* it runs; its tasks come later */
    world.events.task_configs(world.arg, "c", NULL, "not yet");
    pass(499);
    expect("");
    pass(1);
    expect("ask c 2\n");
    for (int i = 0; i < 20; i++) {
        world.events.task_configs(world.arg, "c", NULL, "not yet");
        pass(60000);
        expect("ask c 2\n");
    }
    made("c", 1, "a");
    expect("task c 0 STARTED\n");
    assert_states(f, "c", "RUNNING UNASSIGNED");
}

static void configurations_that_are_no_texts_fail_the_connector(void **state)
{
    struct fixture *f = *state;
    json_t *configs = json_pack("[{s:s}, {s:[]}]", "a", "b", "a");

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    says("c", STATE_RUNNING, NULL);
    world.events.task_configs(world.arg, "c", configs, NULL);
    json_decref(configs);
    died("c", true, -1, "drained");
    assert_answered(f, 1, MR_ERR_FATAL);
    assert_memory_equal(f->last.text, "task configuration 1 is unusable", 32);
}

/* --- update ----------------------------------------------------------------------------------- */

static void an_update_drains_and_then_starts_anew(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    put_to(f, &f->last, "c", TARGET_STOPPED, false, "connector.class", "Src", "topic", "new", NULL);
    expect("drain c\n");
    assert_answered(f, 0, 0);
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    died("c", true, -1, "drained");
    expect(""); /* never from inside the supervisor's call */
    pass(0);
    expect("start c Src STARTED\n"); /* its target is its own, not that of the request */
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "b");
    expect("ask c 1\ntask c 0 STARTED\ntask c 1 STARTED\n");
    assert_answered(f, 1, 0);
    assert_false(f->last.created);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(f->last.body, "config"), "topic")),
        "new");
    assert_states(f, "c", "RUNNING UNASSIGNED UNASSIGNED");
}

static void an_update_that_changes_nothing_starts_what_failed_too(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    source_to(f, &f->last, "c", TARGET_STARTED, false);
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "a");
    expect("drain c\nstart c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
    assert_answered(f, 1, 0);
    assert_states(f, "c", "RUNNING UNASSIGNED UNASSIGNED");
    assert_trace(f, "c", 1, NULL);
}

static void an_update_whose_start_fails_keeps_the_new_configuration(void **state)
{
    struct fixture *f = *state;
    json_t *config;

    run_source(f, "c", 1);
    put_to(f, &f->last, "c", TARGET_STARTED, false, "connector.class", "Src", "topic", "bad", NULL);
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_FAILED, "X: bad");
    died("c", true, -1, "drained");
    assert_answered(f, 1, MR_ERR_FATAL);
    assert_states(f, "c", "FAILED UNASSIGNED");
    assert_trace(f, "c", -1, "X: bad");
    config = herder_config(f->herder, "c");
    assert_string_equal(json_string_value(json_object_get(config, "topic")), "bad");
    json_decref(config);
}

static void an_update_while_paused_leaves_the_tasks_for_the_resume(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    target(f, "c", TARGET_PAUSED);
    says("c", STATE_PAUSED, NULL);
    world.journal[0] = '\0';
    source_to(f, &f->last, "c", TARGET_STARTED, false);
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_PAUSED, NULL);
    expect("drain c\nstart c Src PAUSED\n");
    assert_answered(f, 2, 0);
    assert_states(f, "c", "PAUSED PAUSED PAUSED");
    target(f, "c", TARGET_STARTED);
    says("c", STATE_RUNNING, NULL);
    made("c", 1, "new");
    expect("target c STARTED\nask c 2\ntask c 0 STARTED\n");
    assert_states(f, "c", "RUNNING PAUSED");
}

static void a_patch_merges_and_null_removes(void **state)
{
    struct fixture *f = *state;
    struct props changes;
    json_t *config, *want;

    run_source(f, "c", 1);
    props_init(&changes);
    assert_int_equal(props_set(&changes, "tasks.max", NULL), 0);
    assert_int_equal(props_set(&changes, "extra", "1"), 0);
    herder_patch(f->herder, "c", &changes, on_answer, &f->last);
    config = herder_config(f->herder, "c");
    want = json_pack("{s:s, s:s, s:s, s:s}", "name", "c", "connector.class", "Src", "topic", "t",
                     "extra", "1");
    assert_true(json_equal(config, want));
    json_decref(config);
    json_decref(want);
    herder_patch(f->herder, "x", &changes, on_answer, &f->last);
    assert_answered(f, 1, MR_ERR_NOT_FOUND);
    assert_string_equal(f->last.text, "Connector x not found");
    props_deinit(&changes);
}

static void patches_do_not_add_up_to_more_keys_than_a_request_may_have(void **state)
{
    struct fixture *f = *state;
    struct props changes;
    char key[32];

    run_source(f, "c", 1);
    props_init(&changes);
    for (int i = 0; i < CONN_CONFIG_KEYS_MAX; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(props_set(&changes, key, "v"), 0);
    }
    herder_patch(f->herder, "c", &changes, on_answer, &f->last);
    assert_answered(f, 1, MR_ERR_CONFIG);
    assert_string_equal(f->last.text, "A connector's configuration may have at most 4096 keys");
    props_deinit(&changes);
}

/* The host takes no larger number, and would end at one. */
static void a_host_is_asked_for_no_more_tasks_than_it_can_count(void **state)
{
    struct fixture *f = *state;

    put_to(f, &f->last, "c", TARGET_STARTED, true, "connector.class", "Src", "topic", "t",
           "tasks.max", "2147483647", NULL);
    pass(0);
    says("c", STATE_RUNNING, NULL);
    expect("start c Src STARTED\nask c 1000000\n");
}

/* --- pause, resume, stop, delete -------------------------------------------------------------- */

static void pause_and_resume_are_answered_at_once(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    target(f, "c", TARGET_PAUSED);
    assert_answered(f, 1, 0);
    expect("target c PAUSED\ntask_target c 0 PAUSED\n");
    says("c", STATE_PAUSED, NULL);
    task_says("c", 0, STATE_PAUSED, NULL);
    assert_states(f, "c", "PAUSED PAUSED FAILED");
    target(f, "c", TARGET_PAUSED);
    assert_answered(f, 2, 0);
    expect("");
    target(f, "c", TARGET_STARTED);
    expect("target c STARTED\ntask_target c 0 STARTED\n");
    says("c", STATE_RUNNING, NULL);
    task_says("c", 0, STATE_RUNNING, NULL);
    expect("ask c 2\n");
    made("c", 2, "a");
    expect(""); /* the same configurations: nobody is disturbed, FAILED stays FAILED */
    assert_states(f, "c", "RUNNING RUNNING FAILED");
    assert_trace(f, "c", 1, "boom");
}

static void configurations_that_changed_while_paused_take_effect_on_resume(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    target(f, "c", TARGET_PAUSED);
    says("c", STATE_PAUSED, NULL);
    target(f, "c", TARGET_STARTED);
    says("c", STATE_RUNNING, NULL);
    world.journal[0] = '\0';
    made("c", 2, "b");
    expect("drain c\n");
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "b");
    expect("start c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
}

static void stop_ends_the_process_and_forgets_the_tasks(void **state)
{
    struct fixture *f = *state;
    json_t *tasks;

    run_source(f, "c", 2);
    target(f, "c", TARGET_STOPPED);
    expect("drain c\n");
    tasks = herder_tasks(f->herder, "c");
    assert_int_equal(json_array_size(tasks), 0);
    json_decref(tasks);
    assert_answered(f, 0, 0);
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    died("c", true, -1, "drained");
    assert_answered(f, 1, 0);
    assert_states(f, "c", "STOPPED");
    target(f, "c", TARGET_STOPPED);
    assert_answered(f, 2, 0);
    pass(100000);
    expect("");
    target(f, "c", TARGET_STARTED);
    assert_answered(f, 3, 0);
    pass(0);
    expect("start c Src STARTED\n");
}

static void a_resume_that_comes_while_stopping_wins(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    target(f, "c", TARGET_STOPPED);
    target(f, "c", TARGET_STARTED);
    assert_answered(f, 0, 0);
    died("c", true, -1, "drained");
    assert_answered(f, 2, 0);
    pass(0);
    expect("drain c\nstart c Src STARTED\n");
}

static void a_paused_connector_that_was_stopped_has_no_tasks(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    target(f, "c", TARGET_STOPPED);
    died("c", true, -1, "drained");
    target(f, "c", TARGET_PAUSED);
    pass(0);
    says("c", STATE_PAUSED, NULL);
    expect("drain c\nstart c Src PAUSED\n");
    assert_states(f, "c", "PAUSED");
}

static void a_deleted_connector_is_unknown_at_once_and_answered_when_gone(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    herder_delete(f->herder, "c", on_answer, &f->last);
    assert_null(herder_status(f->herder, "c"));
    assert_null(herder_info(f->herder, "c"));
    assert_answered(f, 0, 0);
    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    expect("drain c\n"); /* the successor waits */
    died("c", true, -1, "drained");
    assert_answered(f, 1, 0);
    pass(0);
    expect("start c Src STARTED\n");
    says("c", STATE_RUNNING, NULL);
    made("c", 1, "a");
    assert_answered(f, 2, 0);
    assert_true(f->last.created);
    herder_delete(f->herder, "nope", on_answer, &f->last);
    assert_answered(f, 3, MR_ERR_NOT_FOUND);
    assert_string_equal(f->last.text, "Connector nope not found");
}

static void what_is_unknown_is_told_in_connects_words(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int what;
        const char *text;
    } cases[] = {{0, "Unknown connector x"},   {1, "Connector x not found"},
                 {2, "Unknown connector: x"},  {3, "Unknown connector: x"},
                 {4, "Connector x not found"}, {5, "Task c-1 not found"},
                 {6, "Task c--1 not found"}};

    run_source(f, "c", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        switch (cases[i].what) {
        case 0:
            target(f, "x", TARGET_PAUSED);
            break;
        case 1:
            herder_restart(f->herder, "x", false, false, on_answer, &f->last);
            break;
        case 2:
            herder_restart(f->herder, "x", true, false, on_answer, &f->last);
            break;
        case 3:
            herder_restart(f->herder, "x", false, true, on_answer, &f->last);
            break;
        case 4:
            herder_restart_task(f->herder, "x", 0, on_answer, &f->last);
            break;
        case 5:
            herder_restart_task(f->herder, "c", 1, on_answer, &f->last);
            break;
        default:
            herder_restart_task(f->herder, "c", -1, on_answer, &f->last);
            break;
        }
        assert_answered(f, (int)i + 1, MR_ERR_NOT_FOUND);
        assert_string_equal(f->last.text, cases[i].text);
    }
    expect("");
}

/* --- restart ---------------------------------------------------------------------------------- */

static void a_plain_restart_leaves_running_tasks_alone(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    expect("ask c 2\n");
    assert_answered(f, 0, 0);
    made("c", 2, "a");
    expect("");
    assert_answered(f, 1, 0);
    assert_null(f->last.body);
    assert_states(f, "c", "RUNNING RUNNING FAILED");
}

static void a_plain_restart_of_a_failed_connector_starts_it_anew(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    says("c", STATE_FAILED, "X: gone");
    assert_states(f, "c", "FAILED RUNNING FAILED");
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "a");
    expect("drain c\nstart c Src STARTED\nask c 2\ntask c 0 STARTED\n");
    assert_answered(f, 1, 0);
    assert_states(f, "c", "RUNNING UNASSIGNED FAILED");
}

static void a_restart_of_a_connector_that_is_stopped_or_paused_does_not_run_it(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STOPPED, true);
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    assert_answered(f, 2, 0);
    herder_restart(f->herder, "c", true, false, on_answer, &f->last);
    assert_answered(f, 3, 0);
    pass(0);
    expect("");
    assert_states(f, "c", "STOPPED");
    target(f, "c", TARGET_PAUSED);
    pass(0);
    says("c", STATE_PAUSED, NULL);
    world.journal[0] = '\0';
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    assert_answered(f, 5, 0);
    expect("");
}

static void a_restart_with_tasks_answers_what_it_is_going_to_do(void **state)
{
    struct fixture *f = *state;
    json_t *tasks;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    herder_restart(f->herder, "c", true, false, on_answer, &f->last);
    assert_answered(f, 1, 0);
    tasks = json_object_get(f->last.body, "tasks");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(f->last.body, "connector"), "state")),
        "RESTARTING");
    assert_string_equal(json_string_value(json_object_get(json_array_get(tasks, 0), "state")),
                        "RESTARTING");
    assert_string_equal(json_string_value(json_object_get(json_array_get(tasks, 1), "trace")),
                        "boom");
    expect("drain c\n");
    died("c", true, -1, "drained");
    assert_states(f, "c", "RESTARTING RESTARTING RESTARTING");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "a");
    expect("start c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
    task_says("c", 1, STATE_RUNNING, NULL);
    assert_trace(f, "c", 1, NULL);
}

/* Values that a config provider wanted to be read again are others now. */
static void a_stale_configuration_starts_connector_and_tasks_again(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    world.events.config_stale(world.arg, "c");
    expect("drain c\n");
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 1, "a");
    expect("start c Src STARTED\nask c 2\ntask c 0 STARTED\n");
    task_says("c", 0, STATE_RUNNING, NULL);
    assert_states(f, "c", "RUNNING RUNNING");
    world.events.config_stale(world.arg, "nobody");
    expect("");
}

static void a_restart_of_failed_tasks_disturbs_no_other(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 3);
    herder_restart(f->herder, "c", true, true, on_answer, &f->last);
    expect("");
    assert_answered(f, 1, 0);
    task_says("c", 1, STATE_FAILED, "boom");
    herder_restart(f->herder, "c", true, true, on_answer, &f->last);
    assert_answered(f, 2, 0);
    expect("task c 1 STARTED\n");
    assert_states(f, "c", "RUNNING RUNNING RESTARTING RUNNING");
    herder_restart(f->herder, "c", false, true, on_answer, &f->last);
    expect("");
}

static void a_restart_of_what_failed_takes_the_connector_and_its_failed_tasks(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 0, STATE_FAILED, "boom");
    says("c", STATE_FAILED, "X");
    herder_restart(f->herder, "c", true, true, on_answer, &f->last);
    assert_states(f, "c", "RESTARTING RESTARTING RUNNING");
    died("c", true, -1, "drained");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 2, "a");
    expect("drain c\nstart c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
}

/* As in Connect: RESTARTING is said of what was asked for by parts only. */
static void a_plain_restart_of_what_failed_is_unassigned_meanwhile(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    task_says("c", 0, STATE_FAILED, "boom");
    says("c", STATE_FAILED, "X: gone");
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    died("c", true, -1, "drained");
    assert_states(f, "c", "UNASSIGNED FAILED");
}

static void saying_running_twice_asks_for_no_second_set_of_tasks(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    says("c", STATE_RUNNING, NULL);
    expect("");
}

static void one_task_restarts_alone(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    herder_restart_task(f->herder, "c", 1, on_answer, &f->last);
    expect("stop_task c 1\n");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
    assert_answered(f, 0, 0);
    task_says("c", 1, STATE_UNASSIGNED, NULL);
    expect("task c 1 STARTED\n");
    assert_states(f, "c", "RUNNING RUNNING UNASSIGNED");
    assert_answered(f, 1, 0);
    task_says("c", 1, STATE_FAILED, "boom");
    herder_restart_task(f->herder, "c", 1, on_answer, &f->last);
    expect("task c 1 STARTED\n");
    assert_answered(f, 2, 0);
}

static void a_task_that_fails_while_it_is_stopped_starts_all_the_same(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    herder_restart_task(f->herder, "c", 0, on_answer, &f->last);
    task_says("c", 0, STATE_FAILED, "boom");
    assert_answered(f, 0, 0);
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    expect("stop_task c 0\ntask c 0 STARTED\n");
    assert_answered(f, 1, 0);
}

static void a_task_that_will_not_stop_costs_its_siblings_no_failure(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 3);
    task_says("c", 2, STATE_FAILED, "boom");
    for (int i = 0; i < 10; i++) { /* and counts for no policy, however often */
        herder_restart_task(f->herder, "c", 0, on_answer, &f->last);
        died("c", false, 0, "killed: task 0 would not stop");
        assert_states(f, "c", "RESTARTING RESTARTING RESTARTING FAILED");
        world.journal[0] = '\0';
        pass(0);
        says("c", STATE_RUNNING, NULL);
        made("c", 3, "a");
        expect("start c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
        assert_answered(f, i + 1, 0);
    }
    assert_trace(f, "c", 2, "boom");
}

static void a_task_that_failed_and_then_would_not_end_starts_again(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    herder_restart_task(f->herder, "c", 0, on_answer, &f->last);
    task_says("c", 0, STATE_FAILED, "boom");
    died("c", false, 0, "killed: task 0 would not stop");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 1, "a");
    expect("stop_task c 0\nstart c Src STARTED\nask c 2\ntask c 0 STARTED\n");
    assert_answered(f, 1, 0);
}

/* --- crashes ---------------------------------------------------------------------------------- */

static void come_up(const char *conn)
{
    says(conn, STATE_RUNNING, NULL);
    made(conn, 2, "a");
    task_says(conn, 0, STATE_RUNNING, NULL);
    task_says(conn, 1, STATE_RUNNING, NULL);
}

static void a_crashed_host_starts_again_by_the_policy_and_then_fails(void **state)
{
    static const int64_t delays[] = {0, 1000, 5000, 30000, 30000};
    struct fixture *f = *state;

    run_source(f, "c", 2);
    for (int i = 0; i < 5; i++) {
        died("c", false, -1, "killed by signal 11 in poll");
        assert_states(f, "c", "RESTARTING RESTARTING RESTARTING");
        assert_trace(f, "c", -1, "killed by signal 11 in poll");
        assert_trace(f, "c", 1, "killed by signal 11 in poll");
        world.journal[0] = '\0';
        if (delays[i] > 0)
            pass(delays[i] - 1);
        expect("");
        pass(delays[i] > 0 ? 1 : 0);
        expect("start c Src STARTED\n");
        come_up("c");
        assert_states(f, "c", "RUNNING RUNNING RUNNING");
        assert_trace(f, "c", 0, NULL);
    }
    died("c", false, -1, "the last one");
    assert_states(f, "c", "FAILED FAILED FAILED");
    assert_trace(f, "c", -1, "the last one");
    assert_trace(f, "c", 0, "the last one");
    world.journal[0] = '\0';
    pass(10000000);
    expect("");
    target(f, "c", TARGET_PAUSED); /* revives nothing */
    target(f, "c", TARGET_STARTED);
    pass(0);
    expect("");
    herder_restart_task(f->herder, "c", 0, on_answer, &f->last);
    pass(0);
    expect("start c Src STARTED\n"); /* its sibling, which did not fail by itself, comes with it */
    come_up("c");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
    died("c", false, -1, "again"); /* by hand the count begins anew */
    pass(0);
    expect("ask c 2\ntask c 0 STARTED\ntask c 1 STARTED\nstart c Src STARTED\n");
}

/* Connect's worker would never be: what one process may hold is a limit of ours. */
static void a_task_that_used_up_its_process_goes_on_in_a_new_one(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    host_of("c")->spent = true;
    task_says("c", 1, STATE_FAILED, "too many schemas");
    expect("drain c\n"); /* its sibling ends in order */
    assert_states(f, "c", "RESTARTING RESTARTING RESTARTING");
    assert_trace(f, "c", 1, "too many schemas");
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    died("c", true, -1, "drained");
    assert_states(f, "c", "RESTARTING RESTARTING RESTARTING");
    pass(0);
    expect("start c Src STARTED\n");
    come_up("c");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
    assert_trace(f, "c", 1, NULL);
}

/* A count that begins anew when the policy gives up would give each sibling five processes. */
static void siblings_in_a_used_up_process_get_no_new_one_once_the_policy_gave_up(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    for (int i = 0; i < 5; i++) {
        host_of("c")->spent = true;
        task_says("c", 1, STATE_FAILED, "too many schemas");
        task_says("c", 0, STATE_UNASSIGNED, NULL);
        died("c", true, -1, "drained");
        pass(30000);
        come_up("c");
        assert_states(f, "c", "RUNNING RUNNING RUNNING");
    }
    world.journal[0] = '\0';
    host_of("c")->spent = true;
    task_says("c", 1, STATE_FAILED, "too many schemas");
    assert_states(f, "c", "RUNNING RUNNING FAILED");
    task_says("c", 0, STATE_FAILED, "boom");
    assert_states(f, "c", "RUNNING FAILED FAILED");
    expect("");
    herder_restart_task(f->herder, "c", 0, on_answer, &f->last);
    expect("drain c\n");
    died("c", true, -1, "drained");
    pass(0);
    come_up("c");
    world.journal[0] = '\0';
    host_of("c")->spent = true; /* in the next process the policy is asked again */
    task_says("c", 0, STATE_FAILED, "too many schemas");
    expect("drain c\n");
}

static void a_restart_of_a_task_that_used_up_its_process_begins_in_a_new_one(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 3); /* the policy has no restarts */
    task_says("c", 2, STATE_FAILED, "boom");
    host_of("c")->spent = true;
    task_says("c", 1, STATE_FAILED, "too many schemas");
    expect("");
    assert_states(f, "c", "RUNNING RUNNING FAILED FAILED");
    herder_restart_task(f->herder, "c", 1, on_answer, &f->last);
    expect("drain c\n");
    assert_answered(f, 1, 0);
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    died("c", true, -1, "drained");
    assert_states(f, "c", "RESTARTING RESTARTING RESTARTING FAILED");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    made("c", 3, "a");
    expect("start c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 STARTED\n");
    assert_trace(f, "c", 2, "boom");
}

static void deaths_are_forgotten_after_ten_minutes(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    for (int i = 0; i < 20; i++) {
        died("c", false, -1, "x");
        pass(0);
        come_up("c");
        pass(600000);
        assert_states(f, "c", "RUNNING RUNNING RUNNING");
    }
}

static void without_restarts_a_crash_fails_at_once(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    died("c", false, -1, "exit code 3");
    assert_states(f, "c", "FAILED FAILED FAILED");
    assert_trace(f, "c", 1, "exit code 3");
}

static void a_task_that_failed_by_itself_stays_failed_over_a_crash(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    task_says("c", 1, STATE_FAILED, "boom");
    died("c", false, -1, "crash");
    assert_states(f, "c", "RESTARTING RESTARTING FAILED");
    pass(0);
    says("c", STATE_RUNNING, NULL);
    world.journal[0] = '\0';
    made("c", 2, "a");
    expect("task c 0 STARTED\n");
    assert_states(f, "c", "RUNNING RESTARTING FAILED");
    assert_trace(f, "c", 1, "boom");
}

static void tasks_fail_with_a_connector_that_fails_after_a_crash(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    died("c", false, -1, "killed by signal 9");
    assert_states(f, "c", "RESTARTING RESTARTING RESTARTING");
    pass(0);
    says("c", STATE_FAILED, "NotFoundException: no library");
    died("c", true, -1, "drained");
    assert_states(f, "c", "FAILED FAILED FAILED");
    assert_trace(f, "c", 0, "NotFoundException: no library");
    assert_trace(f, "c", 1, "NotFoundException: no library");
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    pass(0);
    come_up("c");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
}

static void a_crash_during_a_create_is_no_failure_of_the_create(void **state)
{
    struct fixture *f = *state;

    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    died("c", false, -1, "crash in tasks");
    assert_answered(f, 1, 0);
    assert_true(f->last.created);
    assert_states(f, "c", "RESTARTING");
    assert_trace(f, "c", -1, "crash in tasks");
    pass(0);
    come_up("c");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
}

static void a_process_that_cannot_be_made_is_tried_again(void **state)
{
    struct fixture *f = *state;

    world.start_rc = MR_ERR_IO;
    source_to(f, &f->last, "c", TARGET_STARTED, true);
    pass(0);
    assert_answered(f, 1, 0);
    assert_states(f, "c", "RESTARTING");
    assert_trace(f, "c", -1, "no more processes");
    world.start_rc = 0;
    pass(1000);
    come_up("c");
    assert_states(f, "c", "RUNNING RUNNING RUNNING");
}

static void a_paused_connector_comes_back_paused(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    target(f, "c", TARGET_PAUSED);
    says("c", STATE_PAUSED, NULL);
    died("c", false, -1, "crash");
    world.journal[0] = '\0';
    pass(0);
    says("c", STATE_PAUSED, NULL);
    expect("start c Src PAUSED\ntask c 0 PAUSED\ntask c 1 PAUSED\n");
}

static void requests_end_the_wait_for_a_restart(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    died("c", false, -1, "x");
    pass(0);
    died("c", false, -1, "x"); /* now it waits a second */
    world.journal[0] = '\0';
    herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    pass(0);
    expect("start c Src STARTED\n");
    died("c", false, -1, "x");
    pass(0);
    died("c", false, -1, "x");
    world.journal[0] = '\0';
    target(f, "c", TARGET_STOPPED);
    assert_states(f, "c", "STOPPED");
    pass(100000);
    expect("");
}

/* --- order ------------------------------------------------------------------------------------ */

static void a_start_that_hangs_is_overtaken_by_a_later_request(void **state)
{
    struct fixture *f = *state;
    struct answered first = {0};

    source_to(f, &first, "c", TARGET_STARTED, true);
    pass(0);
    source_to(f, &f->last, "c", TARGET_STARTED, false);
    assert_int_equal(first.count, 1); /* it was created */
    assert_int_equal(first.code, 0);
    assert_true(first.created);
    assert_answered(f, 0, 0);
    died("c", true, -1, "killed");
    pass(0);
    come_up("c");
    assert_answered(f, 1, 0);
    assert_false(f->last.created);
    expect("start c Src STARTED\ndrain c\nstart c Src STARTED\nask c 2\ntask c 0 STARTED\ntask c 1 "
           "STARTED\n");
    json_decref(first.body);
}

static void a_hung_start_can_be_deleted_and_its_asker_still_sees_what_it_made(void **state)
{
    struct fixture *f = *state;
    struct answered first = {0};

    source_to(f, &first, "c", TARGET_STARTED, true);
    pass(0);
    herder_delete(f->herder, "c", on_answer, &f->last);
    assert_int_equal(first.count, 1);
    assert_string_equal(json_string_value(json_object_get(first.body, "name")), "c");
    assert_answered(f, 0, 0);
    died("c", true, -1, "killed");
    assert_answered(f, 1, 0);
    json_decref(first.body);
}

static void a_pause_does_not_wait_for_a_start(void **state)
{
    struct fixture *f = *state;
    struct answered first = {0};

    source_to(f, &first, "c", TARGET_STARTED, true);
    pass(0);
    target(f, "c", TARGET_PAUSED);
    assert_answered(f, 1, 0);
    assert_int_equal(first.count, 0);
    expect("start c Src STARTED\ntarget c PAUSED\n");
    says("c", STATE_RUNNING, NULL); /* the frames have crossed */
    says("c", STATE_PAUSED, NULL);
    assert_int_equal(first.count, 1);
    expect("");
    assert_states(f, "c", "PAUSED");
    json_decref(first.body);
}

static void a_task_restart_waits_for_the_start_unless_something_ends_it(void **state)
{
    struct fixture *f = *state;
    struct answered restart = {0}, put = {0};

    run_source(f, "c", 2);
    source_to(f, &put, "c", TARGET_STARTED, false);
    herder_restart_task(f->herder, "c", 0, on_answer, &restart);
    died("c", true, -1, "drained");
    pass(0);
    assert_int_equal(restart.count, 0);
    says("c", STATE_RUNNING, NULL);
    world.journal[0] = '\0';
    made("c", 2, "a");
    expect("task c 0 STARTED\ntask c 1 STARTED\nstop_task c 0\n");
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    assert_int_equal(restart.count, 1);
    assert_int_equal(restart.code, 0);
    source_to(f, &put, "c", TARGET_STARTED, false);
    died("c", true, -1, "drained");
    pass(0);
    herder_restart_task(f->herder, "c", 0, on_answer, &restart);
    herder_delete(f->herder, "c", on_answer, &f->last);
    assert_int_equal(restart.count, 2);
    assert_int_equal(restart.code, MR_ERR_STATE);
    json_decref(put.body);
}

static void waiting_changes_are_bounded_and_none_is_lost(void **state)
{
    struct fixture *f = *state;
    struct answered full = {0};

    run_source(f, "c", 1);
    source_to(f, &f->last, "c", TARGET_STARTED, false); /* drains */
    for (int i = 0; i < 64; i++)
        herder_restart(f->herder, "c", false, false, on_answer, &f->last);
    assert_answered(f, 0, 0);
    herder_restart(f->herder, "c", false, false, on_answer, &full);
    assert_int_equal(full.code, MR_ERR_FULL);
    source_to(f, &full, "c", TARGET_STARTED, false);
    assert_int_equal(full.code, MR_ERR_FULL);
    herder_delete(f->herder, "c", on_answer, &full);
    assert_int_equal(full.code, MR_ERR_FULL);
    assert_true(herder_knows(f->herder, "c"));
    for (int i = 0; i < 100 && f->last.count < 65; i++) {
        if (host_of("c") != NULL && host_of("c")->draining)
            died("c", true, -1, "drained");
        pass(0);
        if (host_of("c") != NULL && !host_of("c")->draining)
            come_up("c");
    }
    assert_answered(f, 65, 0);
}

/* --- shutdown --------------------------------------------------------------------------------- */

static void on_end(void *arg)
{
    struct fixture *f = arg;

    assert_false(f->ended);
    f->ended = true;
}

static void shutdown_answers_everything_and_waits_for_every_host(void **state)
{
    struct fixture *f = *state;
    struct answered a = {0}, b = {0};

    run_source(f, "c", 1);
    run_source(f, "d", 1);
    source_to(f, &a, "d", TARGET_STARTED, false);
    source_to(f, &b, "d", TARGET_STARTED, false);
    source_to(f, &f->last, "w", TARGET_STARTED, true);
    pass(0);
    died("w", false, -1, "x");
    pass(0);
    died("w", false, -1, "x"); /* waits for its restart */
    world.journal[0] = '\0';
    herder_shutdown(f->herder, on_end, f);
    assert_false(world.probing);
    assert_false(world.joined); /* nothing is waited for before the hosts are drained */
    expect("drain c\n");
    assert_int_equal(a.count, 1);
    assert_int_equal(a.code, MR_ERR_CLOSED);
    assert_null(a.body);
    assert_int_equal(b.count, 1);
    assert_string_equal(b.text, "Worker is shutting down");
    forget_answers(f);
    source_to(f, &f->last, "n", TARGET_STARTED, true);
    assert_answered(f, 1, MR_ERR_CLOSED);
    assert_false(herder_knows(f->herder, "n"));
    died("c", true, -1, "drained");
    pass(1000);
    assert_false(f->ended);
    died("d", true, -1, "drained");
    pass(0);
    assert_true(f->ended);
    pass(100000);
    expect("");
}

static void shutdown_does_not_wait_for_ever(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    herder_shutdown(f->herder, on_end, f);
    pass(7999);
    assert_false(f->ended);
    pass(1);
    assert_true(f->ended);
}

static void shutdown_of_nothing_is_over_in_the_next_round(void **state)
{
    struct fixture *f = *state;

    herder_shutdown(f->herder, on_end, f);
    assert_false(f->ended);
    pass(0);
    assert_true(f->ended);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void a_sink_tasks_next_life_knows_its_member_of_the_group(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 2);
    world.events.task_member(world.arg, "c", 1, "m-1");
    world.events.task_member(world.arg, "c", 1, "m-2");
    world.events.start_check(world.arg, "c", 1, 0, 0);
    world.events.start_check(world.arg, "c", 2, 1, 0);
    expect("checked c 1 yes\nchecked c 2 yes [\"m-2\"]\n");
}

static void only_tasks_that_run_here_may_start(void **state)
{
    struct fixture *f = *state;

    world.events.start_check(world.arg, "c", 1, 0, 0);
    expect("checked c 1 no\n");
    run_source(f, "c", 2);
    world.events.start_check(world.arg, "c", 2, 1, 0);
    world.events.start_check(world.arg, "c", 3, 2, 0);
    world.events.start_check(world.arg, "c", 4, -1, 0);
    expect("checked c 2 yes\nchecked c 3 no\nchecked c 4 no\n");
    task_says("c", 1, STATE_FAILED, "x");
    world.events.start_check(world.arg, "c", 5, 1, 0);
    target(f, "c", TARGET_STOPPED);
    world.events.start_check(world.arg, "c", 6, 0, 0);
    expect("checked c 5 no\ndrain c\nchecked c 6 no\n");
    world.events.fence(world.arg, "c", 7);
    expect("fenced c 7 exactly-once needs a distributed worker, and this one is standalone\n");
}

static void events_about_strangers_change_nothing(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    world.events.task_status(world.arg, "c", 7, STATE_FAILED, "x");
    world.events.task_status(world.arg, "c", -1, STATE_FAILED, "x");
    world.events.task_status(world.arg, "nope", 0, STATE_FAILED, "x");
    world.events.connector_status(world.arg, "nope", STATE_FAILED, "x", NULL);
    made("c", 3, "unasked");
    made("nope", 3, "unasked");
    expect("");
    assert_states(f, "c", "RUNNING RUNNING");
}

static void offsets_are_asked_for_under_the_connector_s_own_name(void **state)
{
    struct fixture *f = *state;

    world.events.offsets_get(world.arg, "c", 7, NULL);
    world.read_fn(world.store_arg, json_array(), NULL);
    world.events.offsets_put(world.arg, "c", 8, NULL);
    world.written_fn(world.store_arg, "disk full");
    expect("get c\noffsets c 7 ok\nput c\nstored c 8 disk full\n");
    assert_non_null(f->herder);
}

/* It may have been asked before this worker was frozen, and a successor have stored more since. */
static void offsets_are_not_stored_once_the_lease_is_over(void **state)
{
    (void)state;
    world.lease_over = true;
    world.events.offsets_put(world.arg, "c", 8, NULL);
    expect("stored c 8 this worker's place in its group is in doubt\n");
    world.lease_over = false;
    world.events.offsets_put(world.arg, "c", 9, NULL);
    expect("put c\n");
    world.written_fn(world.store_arg, NULL);
}

static void readiness_waits_for_the_command_line_and_for_kafka(void **state)
{
    struct fixture *f = *state;
    json_t *root = herder_root(f->herder);

    assert_string_equal(json_string_value(json_object_get(root, "version")), "4.3.1");
    assert_true(json_is_null(json_object_get(root, "kafka_cluster_id")));
    json_decref(root);
    assert_false(herder_ready(f->herder));
    assert_string_equal(herder_stage(f->herder), "creating the connectors of the command line");
    herder_started(f->herder);
    assert_false(herder_ready(f->herder));
    assert_string_equal(herder_stage(f->herder), "waiting for the Kafka cluster to answer");
    world.probe_fn(world.probe_arg, "abc");
    assert_true(herder_ready(f->herder));
    root = herder_root(f->herder);
    assert_string_equal(json_string_value(json_object_get(root, "kafka_cluster_id")), "abc");
    json_decref(root);
}

static void plugins_are_listed_in_connects_order(void **state)
{
    struct fixture *f = *state;
    json_t *list = herder_plugins(f->herder, true), *want;

    want = json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}]", "class",
                     "org.example.SnkConnector", "type", "sink", "version", "2.0", "class",
                     "org.example.SrcConnector", "type", "source", "version", "1.0", "class",
                     "org.example.PickySrcConnector", "type", "source", "version", "1.0");
    assert_true(json_equal(list, want));
    json_decref(list);
    json_decref(want);
    list = herder_plugins(f->herder, false);
    assert_int_equal(json_array_size(list), 6);
    assert_null(json_object_get(json_array_get(list, 4), "version"));
    json_decref(list);
}

static void a_trace_of_any_bytes_can_be_shown(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    task_says("c", 0, STATE_FAILED, "caf\xe9 \xff");
    assert_trace(f, "c", 0, "caf? ?");
}

/* --- at random -------------------------------------------------------------------------------- */

static uint32_t seed;

static int dice(int sides)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)sides);
}

static const char *const names[] = {"a", "b"};

/* A host does one thing that a host may do now. */
static void host_moves(struct host *host)
{
    const char *conn = host->conn;
    int task = dice(3);
    char name[128];

    snprintf(name, sizeof(name), "%s", conn);
    switch (dice(host->draining ? 4 : 9)) {
    case 0:
        died(name, host->draining, host->stopping >= 0 && dice(2) ? host->stopping : -1, "x");
        break;
    case 1:
        if (host->stopping >= 0)
            task_says(name, host->stopping, STATE_UNASSIGNED, NULL);
        break;
    case 2:
        host->spent = host->spent || dice(3) == 0;
        if (host->live[task])
            task_says(name, task, STATE_FAILED, "boom");
        break;
    case 3:
        if (host->live[task])
            task_says(name, task, STATE_RUNNING, NULL);
        break;
    case 4:
        says(name, STATE_FAILED, "X");
        break;
    case 5:
        says(name, STATE_PAUSED, NULL);
        break;
    case 6:
        world.events.task_configs(world.arg, name, NULL, "not yet");
        break;
    case 7:
        says(name, STATE_RUNNING, NULL);
        break;
    default:
        made(name, dice(4), dice(4) == 0 ? "b" : "a");
        break;
    }
}

static void somebody_asks(struct fixture *f, struct answered *to)
{
    const char *conn = names[dice(2)];

    switch (dice(9)) {
    case 0:
        source_to(f, to, conn, (enum target_state)dice(3), dice(2) != 0);
        break;
    case 1:
        source_to(f, to, conn, TARGET_STARTED, false);
        break;
    case 2:
        herder_delete(f->herder, conn, on_answer, to);
        break;
    case 3:
        herder_set_target(f->herder, conn, TARGET_STARTED, on_answer, to);
        break;
    case 4:
        herder_set_target(f->herder, conn, (enum target_state)dice(3), on_answer, to);
        break;
    case 5:
        herder_restart(f->herder, conn, false, false, on_answer, to);
        break;
    case 6:
        herder_restart(f->herder, conn, dice(2) != 0, true, on_answer, to);
        break;
    case 7:
        herder_restart(f->herder, conn, true, false, on_answer, to);
        break;
    default:
        herder_restart_task(f->herder, conn, dice(3), on_answer, to);
        break;
    }
}

static void read_everything(struct fixture *f)
{
    for (size_t i = 0; i < 2; i++) {
        json_t *status = herder_status(f->herder, names[i]),
               *info = herder_info(f->herder, names[i]);
        json_t *config = herder_config(f->herder, names[i]),
               *tasks = herder_tasks(f->herder, names[i]);

        assert_true((status != NULL) == herder_knows(f->herder, names[i]));
        assert_true((status != NULL) == (info != NULL) && (info != NULL) == (config != NULL) &&
                    (config != NULL) == (tasks != NULL));
        json_decref(status);
        json_decref(info);
        json_decref(config);
        json_decref(tasks);
    }
    world.journal[0] = '\0';
}

#define ASKED_MAX 200

static void any_order_of_requests_and_events_answers_each_request_once(void **state)
{
    for (uint32_t run = 0; run < 300; run++) {
        struct fixture *f = new_fixture(dice(3));
        struct answered asked[ASKED_MAX] = {{0}};
        void *end = f;
        int n = 0;

        seed = run;
        for (int step = 0; step < 400; step++) {
            int what = dice(4);

            if (what == 0 && n < ASKED_MAX)
                somebody_asks(f, &asked[n++]);
            else if (what == 1)
                pass(dice(3) == 0 ? 30000 : dice(300));
            else if (host_of(names[what % 2]) != NULL)
                host_moves(host_of(names[what % 2]));
            read_everything(f);
        }
        herder_shutdown(f->herder, on_end, f);
        for (size_t i = 0; i < 2; i++)
            if (host_of(names[i]) != NULL) {
                assert_true(host_of(names[i])->draining);
                died(names[i], true, -1, "drained");
            }
        pass(0);
        assert_true(f->ended);
        for (int i = 0; i < n; i++) {
            if (asked[i].count != 1)
                fail_msg("run %u: request %d was answered %d times", run, i, asked[i].count);
            json_decref(asked[i].body);
        }
        tear_down(&end);
    }
}

/* --- offsets ---------------------------------------------------------------------------------- */

#define NOT_STOPPED \
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be " \
    "done for the specified connector by issuing a 'PUT' request to the '/connectors/c/stop' " \
    "endpoint"

static void change(struct fixture *f, const char *entries)
{
    json_t *list = entries != NULL ? json_loads(entries, 0, NULL) : NULL;

    forget_answers(f);
    herder_change_offsets(f->herder, "c", list, on_answer, &f->last);
}

/* The answer to a change or a read: body, or code and text. */
static void assert_body(struct fixture *f, const char *want)
{
    char *text = json_text(f->last.body);

    assert_answered(f, 1, 0);
    assert_string_equal(text, want);
    free(text);
}

static void assert_refused(struct fixture *f, int code, const char *text)
{
    assert_answered(f, 1, code);
    assert_string_equal(f->last.text, text);
}

static void stop_source(struct fixture *f)
{
    run_source(f, "c", 1);
    target(f, "c", TARGET_STOPPED);
    pass(0);
    task_says("c", 0, STATE_UNASSIGNED, NULL);
    says("c", STATE_STOPPED, NULL);
    forget_answers(f);
    world.journal[0] = '\0';
}

static void stopped_sink(struct fixture *f)
{
    put_to(f, &f->last, "c", TARGET_STOPPED, true, "connector.class", "Snk", "topics", "t", NULL);
    pass(0);
    says("c", STATE_STOPPED, NULL);
    assert_answered(f, 1, 0);
    forget_answers(f);
    world.journal[0] = '\0';
}

/* What the connector's code was asked with. */
static void assert_asked(const char *member, const char *want)
{
    char *text;

    assert_non_null(world.question);
    text = json_dumps(json_object_get(json_array_get(world.question, 0), member),
                      JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, want);
    free(text);
}

static void code_says(const char *problem)
{
    json_t *problems = json_loads(problem, 0, NULL);

    assert_non_null(problems);
    check_answers(problems);
    json_decref(problems);
}

static void offsets_of_a_source_are_read_in_any_state(void **state)
{
    struct fixture *f = *state;

    herder_offsets(f->herder, "c", on_answer, &f->last);
    assert_refused(f, MR_ERR_NOT_FOUND, "Connector c not found");
    forget_answers(f);
    run_source(f, "c", 1);
    herder_offsets(f->herder, "c", on_answer, &f->last);
    expect("list c\n");
    world.read_fn(world.store_arg, json_pack("[[{s:s}, {s:i}]]", "file", "x", "p", 4), NULL);
    assert_body(f, "{\"offsets\":[{\"partition\":{\"file\":\"x\"},\"offset\":{\"p\":4}}]}");
    forget_answers(f);
    herder_offsets(f->herder, "c", on_answer, &f->last);
    world.read_fn(world.store_arg, NULL, "the disk is gone");
    assert_refused(f, MR_ERR_FATAL, "Failed to retrieve offsets for source connector c");
}

static void offsets_change_only_where_nothing_runs(void **state)
{
    struct fixture *f = *state;

    change(f, "[[null,null]]");
    assert_refused(f, MR_ERR_NOT_FOUND, "Connector c not found");
    forget_answers(f);
    run_source(f, "c", 1);
    change(f, "[[null,null]]");
    assert_refused(f, MR_ERR_CONFIG, NOT_STOPPED);
    change(f, NULL);
    assert_refused(f, MR_ERR_CONFIG, NOT_STOPPED);
    target(f, "c", TARGET_PAUSED);
    change(f, NULL);
    assert_refused(f, MR_ERR_CONFIG, NOT_STOPPED);
    assert_null(world.question);
}

static void a_source_s_offsets_are_stored_once_its_code_agrees(void **state)
{
    struct fixture *f = *state;

    stop_source(f);
    change(f, "[[{\"file\":\"x\"},{\"p\":4}],[null,null]]");
    assert_asked("offsets", "[[{\"file\":\"x\"},{\"p\":4}],[null,null]]");
    assert_asked("library", "\"/p/src.so\"");
    expect("");
    code_says("[]");
    expect("put c\n");
    assert_int_equal(f->last.count, 0);
    world.written_fn(world.store_arg, NULL);
    assert_body(f,
                "{\"message\":\"The offsets for this connector have been altered successfully\"}");
    change(f, "[[{},{\"p\":4}]]");
    code_says("[]");
    world.written_fn(world.store_arg, "the disk is full");
    assert_refused(f, MR_ERR_FATAL, "Failed to modify offsets for source connector c");
}

static void a_reset_of_a_source_forgets_all_that_is_stored(void **state)
{
    struct fixture *f = *state;

    stop_source(f);
    change(f, NULL);
    expect("list c\n");
    world.read_fn(world.store_arg, json_pack("[[{s:i}, {s:i}]]", "a", 1, "p", 4), NULL);
    assert_asked("offsets", "[[{\"a\":1},null]]");
    code_says("[{\"stage\":0,\"key\":\"offsets\",\"error\":\"none\",\"code\":-6}]");
    expect("put c\n");
    world.written_fn(world.store_arg, NULL);
    assert_body(f, "{\"message\":\"The Connect framework-managed offsets for this connector have "
                   "been reset successfully. However, if this connector manages offsets "
                   "externally, they will need to be manually reset in the system that the "
                   "connector uses.\"}");
    change(f, NULL);
    world.read_fn(world.store_arg, json_array(), NULL);
    code_says("[]");
    assert_answered(f, 1, 0); /* there was nothing to write */
}

static void what_a_connector_refuses_is_not_stored(void **state)
{
    struct fixture *f = *state;

    stop_source(f);
    change(f, "[[{},{\"p\":4}]]");
    code_says("[{\"error\":\"p must be odd\",\"code\":-2}]");
    assert_refused(f, MR_ERR_FATAL, "p must be odd");
    change(f, "[[{},{\"p\":4}]]");
    code_says("[{\"error\":\"x\",\"code\":-5}]");
    assert_refused(f, MR_ERR_FATAL,
                   "Failed to modify offsets for connector c because it doesn't support external "
                   "modification of offsets");
    change(f, "[[{},{\"p\":4}]]");
    code_says("[{\"broken\":\"its class took longer than 20 s\"}]");
    assert_refused(f, MR_ERR_FATAL,
                   "Failed to modify offsets for connector c: its class took longer than 20 s");
    change(f, "[[{},{\"p\":[]}]]");
    assert_refused(f, MR_ERR_DATA,
                   "Offsets may only contain primitive types as values, but field p contains "
                   "ARRAY");
    assert_null(world.question);
    expect("");
}

static void a_connector_that_is_resumed_meanwhile_keeps_its_offsets(void **state)
{
    struct fixture *f = *state;

    stop_source(f);
    change(f, "[[{},{\"p\":4}]]");
    target(f, "c", TARGET_STARTED);
    world.journal[0] = '\0';
    forget_answers(f);
    code_says("[]");
    assert_refused(f, MR_ERR_CONFIG, NOT_STOPPED);
    assert_null(strstr(world.journal, "put"));
}

#define T0 "{\"kafka_topic\":\"t\",\"kafka_partition\":0}"

static void offsets_of_a_sink_are_its_group_s(void **state)
{
    const struct group_offset committed = {(char *)(uintptr_t) "t", 0, 9};
    struct fixture *f = *state;

    stopped_sink(f);
    herder_offsets(f->herder, "c", on_answer, &f->last);
    expect("list connect-c by connector-worker-adminclient-c:\n");
    group_answers(&committed, 1, 0);
    assert_body(f, "{\"offsets\":[{\"partition\":{\"kafka_partition\":0,\"kafka_topic\":\"t\"},"
                   "\"offset\":{\"kafka_offset\":9}}]}");
    forget_answers(f);
    herder_offsets(f->herder, "c", on_answer, &f->last);
    group_answers(NULL, 0, MR_ERR_RETRY);
    assert_refused(f, MR_ERR_FATAL,
                   "Failed to retrieve consumer group offsets for sink connector c");
    world.journal[0] = '\0';
    change(f, "[[" T0
              ",{\"kafka_offset\":\"5\"}],[{\"kafka_topic\":\"t\",\"kafka_partition\":1},null]]");
    assert_asked("offsets", "[[\"t\",0,5],[\"t\",1,-1]]");
    code_says("[]");
    expect("change connect-c by connector-worker-adminclient-c: t-0=5 t-1=-1\n");
    group_answers(NULL, 0, 0);
    assert_body(f,
                "{\"message\":\"The offsets for this connector have been altered successfully\"}");
    change(f, NULL);
    expect("list connect-c by connector-worker-adminclient-c:\n");
    group_answers(&committed, 1, 0);
    assert_asked("offsets", "[[\"t\",0,-1]]");
    code_says("[]");
    expect("drop connect-c by connector-worker-adminclient-c:\n");
    group_answers(NULL, 0, 0);
    assert_body(f, "{\"message\":\"The offsets for this connector have been reset successfully\"}");
}

static void a_sink_s_offsets_that_can_not_be_changed_are_told_as_connect_does(void **state)
{
    struct fixture *f = *state;

    stopped_sink(f);
    change(f, "[[" T0 ",{}]]");
    assert_refused(f, MR_ERR_CONFIG,
                   "The offset for a sink connector should either be null or "
                   "contain the key 'kafka_offset'");
    change(f, "[[" T0 ",{\"kafka_offset\":-1}]]");
    assert_refused(f, MR_ERR_FATAL, "Failed to modify offsets for sink connector c");
    change(f, "[[" T0 ",null]]");
    code_says("[]");
    group_answers(NULL, 0, MR_ERR_NOT_FOUND);
    assert_refused(f, MR_ERR_FATAL, "Failed to alter consumer group offsets for connector c");
    change(f, "[[" T0 ",null]]");
    code_says("[]");
    group_answers(NULL, 0, MR_ERR_STATE);
    assert_refused(f, MR_ERR_FATAL,
                   "Failed to alter consumer group offsets for connector c either because its "
                   "tasks haven't stopped completely yet or the connector was resumed before the "
                   "request to alter its offsets could be successfully completed. If the connector "
                   "is in a stopped state, this operation can be safely retried. If it doesn't "
                   "eventually succeed, the Connect cluster may need to be restarted to get rid of "
                   "the zombie sink tasks.");
    change(f, NULL);
    group_answers(NULL, 0, 0);
    code_says("[]");
    group_answers(NULL, 0, MR_ERR_IO);
    assert_refused(f, MR_ERR_FATAL, "Failed to reset consumer group offsets for connector c");
}

static void a_sink_s_own_settings_name_group_and_client(void **state)
{
    struct fixture *f = *state;

    put_to(f, &f->last, "c", TARGET_STOPPED, true, "connector.class", "Snk", "topics", "t",
           "consumer.override.group.id", "mine", "admin.override.client.id", "me", NULL);
    pass(0);
    says("c", STATE_STOPPED, NULL);
    world.journal[0] = '\0';
    forget_answers(f);
    herder_offsets(f->herder, "c", on_answer, &f->last);
    expect("list mine by me:\n");
    group_answers(NULL, 0, 0);
    assert_body(f, "{\"offsets\":[]}");
}

static void what_waits_for_offsets_is_answered_when_the_worker_ends(void **state)
{
    struct fixture *f = *state;

    stopped_sink(f);
    change(f, "[[" T0 ",null]]");
    herder_offsets(f->herder, "c", on_answer, &f->other);
    herder_free(&f->herder);
    assert_answered(f, 1, MR_ERR_CLOSED);
    assert_int_equal(f->other.count, 1);
    assert_int_equal(f->other.code, MR_ERR_CLOSED);
}

static void what_is_written_beside_the_loop_is_answered_when_the_worker_ends(void **state)
{
    struct fixture *f = *state;

    run_source(f, "c", 1);
    forget_answers(f);
    world.jobs_wait = true;
    herder_offsets(f->herder, "c", on_answer, &f->last);
    world.read_fn(world.store_arg, json_pack("[[{s:s}, {s:i}]]", "file", "x", "p", 4), NULL);
    assert_int_equal(f->last.count, 0);
    herder_free(&f->herder);
    assert_refused(f, MR_ERR_CLOSED, "Worker is shutting down");
}

/* --- topics ----------------------------------------------------------------------------------- */

static void assert_topics(struct fixture *f, const char *want)
{
    struct mr_error err = {0};
    json_t *topics = herder_topics(f->herder, "c", &err);
    char *text = json_text(topics);

    assert_string_equal(text, want);
    free(text);
    json_decref(topics);
}

static void topics_that_are_used_are_known_until_they_are_reset_or_the_connector_goes(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    run_source(f, "c", 1);
    world.events.topic_used(world.arg, "c", 0, "t");
    world.events.topic_used(world.arg, "c", 0, "u");
    world.events.topic_used(world.arg, "nobody", 0, "v");
    assert_topics(f, "{\"c\":{\"topics\":[\"t\",\"u\"]}}");
    assert_int_equal(herder_reset_topics(f->herder, "c", &err), 0);
    expect("forget topics c\n");
    assert_topics(f, "{\"c\":{\"topics\":[]}}");
    world.events.topic_used(world.arg, "c", 0, "u");
    assert_topics(f, "{\"c\":{\"topics\":[\"u\"]}}");
    herder_delete(f->herder, "c", on_answer, &f->last);
    assert_topics(f, "{\"c\":{\"topics\":[]}}");
}

static void topics_are_not_kept_and_not_reset_where_the_worker_says_so(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    run_source(f, "c", 1);
    assert_int_equal(props_set(&f->config.props, "topic.tracking.allow.reset", "false"), 0);
    world.events.topic_used(world.arg, "c", 0, "t");
    assert_int_equal(herder_reset_topics(f->herder, "c", &err), MR_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "Topic tracking reset is disabled.");
    assert_topics(f, "{\"c\":{\"topics\":[\"t\"]}}");
    assert_int_equal(props_set(&f->config.props, "topic.tracking.enable", "FALSE"), 0);
    err_clear(&err);
    assert_int_equal(herder_reset_topics(f->herder, "c", &err), MR_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "Topic tracking is disabled.");
    err_clear(&err);
    assert_null(herder_topics(f->herder, "c", &err));
    assert_string_equal(err.text, "Topic tracking is disabled.");
    props_deinit(&f->config.props);
}

#define herder_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        herder_test(a_create_is_answered_when_its_tasks_were_told_to_start),
        herder_test(task_configurations_get_what_connect_adds),
        herder_test(a_connector_created_stopped_starts_nothing),
        herder_test(a_connector_created_paused_makes_tasks_when_it_is_resumed),
        herder_test(an_existing_name_is_refused_after_validation),
        herder_test(plugin_code_is_asked_of_what_is_sound_so_far),
        herder_test(a_connector_s_own_code_is_asked_too),
        herder_test(a_put_goes_on_when_plugin_code_has_nothing_against_it),
        herder_test(a_create_that_was_overtaken_is_refused),
        herder_test(a_check_that_breaks_is_its_key_s_problem),
        herder_test(who_waits_for_plugin_code_is_answered_at_the_end),
        herder_test(a_failed_first_start_leaves_nothing_behind),
        herder_test(task_configurations_that_fail_fail_the_create),
        herder_test(task_configurations_that_are_not_ready_are_asked_for_again),
        herder_test(configurations_that_are_no_texts_fail_the_connector),
        herder_test(an_update_drains_and_then_starts_anew),
        herder_test(an_update_that_changes_nothing_starts_what_failed_too),
        herder_test(an_update_whose_start_fails_keeps_the_new_configuration),
        herder_test(an_update_while_paused_leaves_the_tasks_for_the_resume),
        herder_test(a_patch_merges_and_null_removes),
        herder_test(patches_do_not_add_up_to_more_keys_than_a_request_may_have),
        herder_test(a_host_is_asked_for_no_more_tasks_than_it_can_count),
        herder_test(pause_and_resume_are_answered_at_once),
        herder_test(configurations_that_changed_while_paused_take_effect_on_resume),
        herder_test(stop_ends_the_process_and_forgets_the_tasks),
        herder_test(a_resume_that_comes_while_stopping_wins),
        herder_test(a_paused_connector_that_was_stopped_has_no_tasks),
        herder_test(a_deleted_connector_is_unknown_at_once_and_answered_when_gone),
        herder_test(what_is_unknown_is_told_in_connects_words),
        herder_test(a_plain_restart_leaves_running_tasks_alone),
        herder_test(a_plain_restart_of_a_failed_connector_starts_it_anew),
        herder_test(a_restart_of_a_connector_that_is_stopped_or_paused_does_not_run_it),
        herder_test(a_restart_with_tasks_answers_what_it_is_going_to_do),
        herder_test(a_stale_configuration_starts_connector_and_tasks_again),
        herder_test(a_restart_of_failed_tasks_disturbs_no_other),
        herder_test(a_restart_of_what_failed_takes_the_connector_and_its_failed_tasks),
        herder_test(a_plain_restart_of_what_failed_is_unassigned_meanwhile),
        herder_test(saying_running_twice_asks_for_no_second_set_of_tasks),
        herder_test(a_task_that_failed_and_then_would_not_end_starts_again),
        herder_test(one_task_restarts_alone),
        herder_test(a_task_that_fails_while_it_is_stopped_starts_all_the_same),
        herder_test(a_task_that_will_not_stop_costs_its_siblings_no_failure),
        herder_test(a_crashed_host_starts_again_by_the_policy_and_then_fails),
        herder_test(a_task_that_used_up_its_process_goes_on_in_a_new_one),
        herder_test(siblings_in_a_used_up_process_get_no_new_one_once_the_policy_gave_up),
        cmocka_unit_test_setup_teardown(
            a_restart_of_a_task_that_used_up_its_process_begins_in_a_new_one,
            set_up_without_restarts, tear_down),
        herder_test(deaths_are_forgotten_after_ten_minutes),
        herder_test(a_task_that_failed_by_itself_stays_failed_over_a_crash),
        herder_test(tasks_fail_with_a_connector_that_fails_after_a_crash),
        herder_test(a_crash_during_a_create_is_no_failure_of_the_create),
        herder_test(a_process_that_cannot_be_made_is_tried_again),
        herder_test(a_paused_connector_comes_back_paused),
        herder_test(requests_end_the_wait_for_a_restart),
        herder_test(a_start_that_hangs_is_overtaken_by_a_later_request),
        herder_test(a_hung_start_can_be_deleted_and_its_asker_still_sees_what_it_made),
        herder_test(a_pause_does_not_wait_for_a_start),
        herder_test(a_task_restart_waits_for_the_start_unless_something_ends_it),
        herder_test(waiting_changes_are_bounded_and_none_is_lost),
        herder_test(shutdown_answers_everything_and_waits_for_every_host),
        herder_test(shutdown_does_not_wait_for_ever),
        herder_test(shutdown_of_nothing_is_over_in_the_next_round),
        herder_test(a_sink_tasks_next_life_knows_its_member_of_the_group),
        herder_test(only_tasks_that_run_here_may_start),
        herder_test(events_about_strangers_change_nothing),
        herder_test(offsets_are_asked_for_under_the_connector_s_own_name),
        herder_test(offsets_are_not_stored_once_the_lease_is_over),
        herder_test(readiness_waits_for_the_command_line_and_for_kafka),
        herder_test(plugins_are_listed_in_connects_order),
        herder_test(a_trace_of_any_bytes_can_be_shown),
        herder_test(offsets_of_a_source_are_read_in_any_state),
        herder_test(offsets_change_only_where_nothing_runs),
        herder_test(a_source_s_offsets_are_stored_once_its_code_agrees),
        herder_test(a_reset_of_a_source_forgets_all_that_is_stored),
        herder_test(what_a_connector_refuses_is_not_stored),
        herder_test(a_connector_that_is_resumed_meanwhile_keeps_its_offsets),
        herder_test(offsets_of_a_sink_are_its_group_s),
        herder_test(a_sink_s_offsets_that_can_not_be_changed_are_told_as_connect_does),
        herder_test(a_sink_s_own_settings_name_group_and_client),
        herder_test(what_waits_for_offsets_is_answered_when_the_worker_ends),
        herder_test(what_is_written_beside_the_loop_is_answered_when_the_worker_ends),
        herder_test(topics_that_are_used_are_known_until_they_are_reset_or_the_connector_goes),
        herder_test(topics_are_not_kept_and_not_reset_where_the_worker_says_so),
        cmocka_unit_test_setup_teardown(without_restarts_a_crash_fails_at_once,
                                        set_up_without_restarts, tear_down),
        cmocka_unit_test(any_order_of_requests_and_events_answers_each_request_once),
    };

    log_set_level(LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
