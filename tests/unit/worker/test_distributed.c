/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's worker: what a round may start and must have stopped, what is written by whom, and
 * who is asked to act. */
#define LOGGER "test"
#include "cluster_world.h"

#include "base/log_levels.h"

static void on_answer(void *arg, const struct herder_answer *got)
{
    struct fixture *f = arg;

    f->answers++;
    f->code = got->err != NULL ? got->err->code : 0;
    snprintf(f->text, sizeof(f->text), "%s", got->message != NULL ? got->message : "");
    snprintf(f->elsewhere, sizeof(f->elsewhere), "%s",
             got->elsewhere == NULL ? "here" : got->elsewhere);
}

static void says(const char *conn, enum state state)
{
    world.events.connector_status(world.arg, conn, state, NULL, "1.0");
}

static void made(const char *conn, int count)
{
    json_t *configs = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(configs, json_pack("{s:s}", "a", "b"));
    world.events.task_configs(world.arg, conn, configs, NULL);
    json_decref(configs);
}

/* --- start and end ---------------------------------------------------------------------------- */

static void the_group_is_joined_once_the_topics_were_read(void **state)
{
    struct fixture *f = *state;

    int64_t since_wall_ms = herder_stage_since(f->herder);
    char trouble[64];

    expect("");
    assert_false(cluster.java_assignor);
    assert_in_range(since_wall_ms, clock_wall_ms() - 60000, clock_wall_ms());
    world.trouble = "no Kafka";
    herder_trouble(f->herder, trouble, sizeof(trouble));
    assert_string_equal(trouble, "no Kafka");
    assert_false(herder_readable(f->herder));
    assert_string_equal(herder_stage(f->herder), "creating the connectors of the command line");
    herder_started(f->herder);
    assert_string_equal(herder_stage(f->herder), "reading the internal topics");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    forget();
    cluster.store.ready(cluster.store_arg, NULL);
    expect("join 1\n");
    assert_true(f->readable && herder_readable(f->herder));
    assert_string_equal(herder_stage(f->herder), "ensuring membership in the cluster");
    round_ends(&(struct round){.assigned = NULL});
    expect("settled 1:\n");
    assert_true(herder_stage_since(f->herder) >= since_wall_ms);
    world.probe_fn(world.probe_arg, "id");
    assert_true(herder_ready(f->herder));
    assert_int_equal(herder_stage_since(f->herder), 0);
}

static int set_up_java(void **state)
{
    int rc;

    snprintf(assignor, sizeof(assignor), "Java");
    rc = set_up(state);
    snprintf(assignor, sizeof(assignor), "millrace");
    return rc;
}

static void the_assignor_is_java_s_where_that_is_set(void **state)
{
    (void)state;
    assert_true(cluster.java_assignor);
}

static void topics_or_a_group_that_fail_end_the_worker(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {.code = MR_ERR_CONFIG};

    cluster.store.ready(cluster.store_arg, &err);
    assert_int_equal(f->failed, MR_ERR_CONFIG);
    expect("");
    err.code = MR_ERR_FATAL;
    cluster.member.failed(cluster.member_arg, &err);
    assert_int_equal(f->failed, MR_ERR_FATAL);
}

static void the_group_is_left_after_the_work_has_ended(void **state)
{
    struct fixture *f = *state;

    create("c");
    join("c:-1", false);
    says("c", STATE_RUNNING);
    forget();
    herder_shutdown(f->herder, on_ended, f);
    expect("drain c\n");
    pass(7900); /* its time and nearly all of the spare; a goodbye has a time of its own */
    died("c");
    pass(0);
    expect("status c -1 UNASSIGNED 1 safe\nleave\n");
    pass(3000);
    assert_false(f->ended);
    cluster.member.left(cluster.member_arg);
    assert_true(f->ended);
}

static void a_goodbye_that_takes_too_long_holds_up_no_end(void **state)
{
    struct fixture *f = *state;

    join(NULL, false);
    herder_shutdown(f->herder, on_ended, f);
    pass(0);
    pass(5000);
    assert_true(f->ended);
}

static void the_lease_goes_to_the_hosts(void **state)
{
    (void)state;
    cluster.member.lease(cluster.member_arg, (struct lease_times){7, 8});
    expect("lease 7 8\n");
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void what_is_assigned_starts_and_says_so(void **state)
{
    (void)state;
    create("c");
    commit("c", 3);
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = "c:-1 c:2"});
    pass(0);
    expect("settled 1: c:-1 c:2\nstart c Src STARTED\n");
    says("c", STATE_RUNNING);
    expect("status c -1 RUNNING 1\nask c 1\n");
    made("c", 3);
    task_says("c", 2, STATE_RUNNING);
    expect("task c 2 STARTED\nstatus c 2 RUNNING 1\n");
}

static void a_round_is_settled_when_what_it_took_has_stopped(void **state)
{
    (void)state;
    create("c");
    commit("c", 4);
    join("c:0 c:1 c:2", false);
    for (int i = 0; i < 3; i++)
        task_says("c", i, STATE_RUNNING);
    forget();
    round_ends(&(struct round){.revoked = "c:0 c:2", .assigned = "c:3", .lease = true});
    expect("stop_task c 0\nstop_task c 2\nlease 1 2\n");
    assert_int_equal(cluster.lease_ms, 2); /* also of what hosts have written */
    task_says("c", 2, STATE_UNASSIGNED);
    expect("status c 2 UNASSIGNED 2 safe\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 2 safe\n"
           "settled 2: c:1 c:3 and again: what was revoked has stopped\ntask c 3 STARTED\n");
}

/* `a` and `b` were deleted, or are without tasks: nothing of them stops. `c` runs. */
static void what_has_nothing_to_stop_settles_for_nobody_else(void **state)
{
    (void)state;
    create("a");
    create("b");
    create("c");
    commit("c", 2);
    join("a:-1 b:-1 c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    record("connector-a", NULL);
    died("a");
    forget();
    round_ends(&(struct round){.revoked = "a:-1 c:1"});
    expect("stop_task c 1\n");
    task_says("c", 1, STATE_UNASSIGNED);
    assert_non_null(strstr(world.journal, "settled 2: b:-1 c:0 and again"));
}

static void a_stop_of_everything_waits_for_everything(void **state)
{
    (void)state;
    create("a");
    create("c");
    commit("c", 1);
    join("a:-1 c:0", false);
    task_says("c", 0, STATE_RUNNING);
    record("connector-a", NULL);
    died("a");
    forget();
    cluster.member.stop_all(cluster.member_arg, 9);
    expect("drain c\n");
    died("c");
    assert_non_null(strstr(world.journal, "stopped 9\n"));
}

static void what_a_lost_round_took_away_comes_back(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    round_ends(&(struct round){.revoked = "c:1"});
    cluster.member.lost(cluster.member_arg, "test");
    expect("stop_task c 1\n");
    task_says("c", 1, STATE_UNASSIGNED);
    expect("status c 1 UNASSIGNED 2 safe\n"); /* the member joins as if nothing had been taken */
    round_ends(&(struct round){.assigned = NULL});
    pass(0);
    expect("task c 1 STARTED\nsettled 3: c:0 c:1\n");
}

static void what_a_round_took_away_comes_back_while_it_still_stops(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    round_ends(&(struct round){.revoked = "c:1"});
    forget();
    round_ends(&(struct round){.assigned = NULL}); /* joined without having settled the last */
    expect("");
    task_says("c", 1, STATE_UNASSIGNED);
    pass(0);
    assert_non_null(strstr(world.journal, "settled 3: c:0 c:1\n"));
    assert_non_null(strstr(world.journal, "task c 1 STARTED\n"));
}

static void what_the_leader_was_not_told_of_is_not_ours(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    round_ends(&(struct round){.joined_with = "c:0"});
    expect("stop_task c 1\n");
    task_says("c", 1, STATE_UNASSIGNED);
    expect("status c 1 UNASSIGNED 2 safe\nsettled 2: c:0\n");
}

static void a_worker_that_lags_reads_on_before_it_starts_anything(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    expect("refresh\n");
    record("target-state-x", "{\"state\":\"PAUSED\"}");
    answer(0);
    pass(0);
    expect("settled 2: c:0\nstart c Src STARTED for tasks\ntask c 0 STARTED\n");
}

static void a_topic_that_cannot_be_read_gives_no_new_work(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    answer(MR_ERR_TIMEOUT);
    pass(ROUND_PACE_STUCK_FIRST_MS - 1);
    expect("refresh\nsettled 2:\n");
    pass(1);
    expect("report: and again: the config topic could not be read\n");
}

static void a_round_of_an_unread_topic_changes_nothing(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0", false);
    round_ends(&(struct round){.mismatch = true, .ahead = 1});
    record("target-state-x", "{\"state\":\"PAUSED\"}");
    answer(0);
    expect("refresh\nsettled 2: c:0\n");
}

static void an_answer_to_an_earlier_round_is_dropped(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join(NULL, false);
    round_ends(&(struct round){.assigned = "c:0", .ahead = 1});
    round_ends(&(struct round){.assigned = NULL});
    expect("refresh\nsettled 3:\n");
    answer(0);
    expect("");
}

static void everything_stops_when_the_protocol_wants_it(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    cluster.member.stop_all(cluster.member_arg, 9);
    expect("drain c\n");
    died("c");
    expect("status c 0 UNASSIGNED 1 safe\nstatus c 1 UNASSIGNED 1 safe\nreport:\nstopped 9\n");
}

static void a_stop_of_everything_that_is_lost_is_undone(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    cluster.member.stop_all(cluster.member_arg, 9);
    cluster.member.lost(cluster.member_arg, "test");
    forget();
    died("c");
    expect("status c 0 UNASSIGNED 1 safe\n");
    round_ends(&(struct round){.assigned = NULL});
    pass(0);
    expect("settled 2: c:0\nstart c Src STARTED for tasks\ntask c 0 STARTED\n");
}

static void a_leader_reads_up_to_the_members_before_it_assigns(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    create("d");
    join(NULL, true);
    cluster.member.lead(cluster.member_arg, 3, 2);
    expect("refresh words\n");
    answer(0);
    expect("lead 3 at 6: c 2 d 0\n");
    cluster.member.lead(cluster.member_arg, 4, 7);
    expect("refresh\nrefresh words\n");
    create("e");
    forget();
    answer(0);
    expect("");
    answer(0);
    expect("lead 4 at 7: c 2 d 0 e 0\n");
}

/* --- what the topic says ---------------------------------------------------------------------- */

static void tasks_of_a_new_set_wait_for_a_round(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:-1 c:0 c:1", false);
    says("c", STATE_RUNNING);
    made("c", 2);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    commit("c", 2);
    expect("stop_task c 0\nstop_task c 1\nreport: and again: tasks were configured, not yet\n");
    world.events.start_check(world.arg, "c", 1, 0, 1);
    expect("checked c 1 no\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 1 safe\n");
    task_says("c", 1, STATE_UNASSIGNED);
    expect("status c 1 UNASSIGNED 1 safe\njoin again\n");
    round_ends(&(struct round){.assigned = NULL});
    expect("task c 0 STARTED\ntask c 1 STARTED\nsettled 2: c:-1 c:0 c:1\n");
    world.events.start_check(world.arg, "c", 2, 0, 1);
    world.events.start_check(world.arg, "c", 3, 0, 0); /* of the old set */
    expect("checked c 2 yes\nchecked c 3 no\n");
}

static void between_two_sets_there_is_nothing_to_restart_yet(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    join("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    commit("c", 1);
    task_says("c", 0, STATE_UNASSIGNED);
    died("c");
    pass(0);
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, MR_ERR_STATE);
}

static void a_set_that_this_round_does_not_know_goes_on_waiting(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:-1", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    commit("c", 1);
    forget();
    round_ends(&(struct round){.assigned = "c:0", .ahead = -1});
    expect("settled 2: c:-1 c:0\n");
    pass(ROUND_PACE_FIRST_MS);
    expect("report: and again: the config topic has gone on\n");
}

static void a_deleted_connector_stops_at_once_and_writes_no_more_states(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    forget();
    record("connector-c", NULL);
    expect("drain c\nreport: and again: a connector was deleted, not yet\n");
    died("c");
    expect("join again\n");
}

static void targets_and_restarts_reach_what_is_here(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:1", false);
    record("target-state-c", "{\"state\":\"PAUSED\"}");
    expect("task_target c 1 PAUSED\n");
    record("restart-connector-c", "{\"include-tasks\":true,\"only-failed\":false}");
    expect("status c 1 RESTARTING 1\nstop_task c 1\n");
    record("restart-connector-elsewhere", "{\"include-tasks\":true,\"only-failed\":false}");
    expect("");
}

static void levels_of_loggers_go_through_the_topic_to_every_worker(void **state)
{
    struct fixture *f = *state;
    struct log_logger logger = {0};

    join(NULL, false);
    assert_true(herder_set_logger(f->herder, "test.level", " warn ", true, on_answer, f));
    expect("write level test.level WARN\n");
    assert_false(log_levels_get("test.level", &logger));
    record("logger-cluster-test.level", "{\"level\":\"WARN\"}");
    record("logger-cluster-test.level", "{\"level\":\"LOUD\"}");
    assert_true(log_levels_get("test.level", &logger));
    assert_int_equal(logger.level, LOG_WARN);
    assert_false(herder_set_logger(f->herder, "test.level", "LOUD", true, on_answer, f));
    expect("");
}

/* The words in the status topic, and their order, as the Java worker was heard to write them. */
static void restarts_are_told_as_connect_tells_them(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    join("c:-1 c:0", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    task_says("c", 0, STATE_RUNNING);
    forget();
    herder_restart(f->herder, "c", false, false, on_answer, f);
    expect("status c -1 UNASSIGNED 1 safe\nstatus c -1 RUNNING 1\nask c 1\n");
    made("c", 1);
    forget();
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("stop_task c 0\n");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 1 safe\ntask c 0 STARTED\n");
    task_says("c", 0, STATE_RUNNING);
    expect("status c 0 RUNNING 1\n");
    host_of("c")->live[0] = false;
    world.events.task_status(world.arg, "c", 0, STATE_FAILED, "boom");
    expect("status c 0 FAILED 1 safe\n");
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("task c 0 STARTED\n");
    host_of("c")->live[0] = false;
    world.events.task_status(world.arg, "c", 0, STATE_FAILED, "boom");
    record("restart-connector-c", "{\"include-tasks\":true,\"only-failed\":true}");
    expect("status c 0 RESTARTING 1\ntask c 0 STARTED\n");
    assert_string_equal(cluster.trace, "none");
}

static void a_class_that_is_not_here_is_failed_and_nothing_else_is_written(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    commit("c", 1);
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = "c:-1 c:0", .leads = true});
    expect("status c -1 FAILED 1 safe\nstatus c 0 FAILED 1 safe\nsettled 1: c:-1 c:0\n"
           "write key of 32 bytes\n");
}

static void a_class_that_is_here_in_another_version_is_failed(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"Src\","
                          "\"connector.plugin.version\":\"[2,)\"}}");
    commit("c", 1);
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = "c:-1 c:0", .leads = true});
    expect("status c -1 FAILED 1 safe\nstatus c 0 FAILED 1 safe\nsettled 1: c:-1 c:0\n"
           "write key of 32 bytes\n");
    assert_non_null(strstr(cluster.trace, ".isolation.Versioned")); /* as much as is kept of it */
}

/* Another worker may have run it meanwhile, and shown that. */
static void a_class_that_is_not_here_is_failed_whenever_it_comes_here(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    commit("c", 1);
    cluster.store.ready(cluster.store_arg, NULL);
    round_ends(&(struct round){.assigned = "c:-1"});
    round_ends(&(struct round){0});
    forget();
    round_ends(&(struct round){.revoked = "c:-1"});
    forget();
    round_ends(&(struct round){.assigned = "c:0"});
    expect("status c 0 FAILED 4 safe\nsettled 4: c:0\n");
    forget();
    round_ends(&(struct round){.revoked = "c:0", .assigned = "c:-1"});
    expect("status c -1 FAILED 5 safe\nsettled 5: c:-1 and again: what was revoked has stopped\n");
}

static void a_class_that_is_gone_is_failed_once_what_ran_has_ended(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:-1 c:0", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    task_says("c", 0, STATE_RUNNING);
    forget();
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    expect("drain c\n");
    died("c");
    expect("status c 0 UNASSIGNED 1 safe\nstatus c -1 UNASSIGNED 1 safe\n"
           "status c -1 FAILED 1 safe\nstatus c 0 FAILED 1 safe\n");
}

static void a_leader_tidies_states_of_what_is_no_more(void **state)
{
    struct status_record rec = {.kind = STATUS_TASK,
                                .conn = strdup("gone"),
                                .task = 1,
                                .status = {.state = STATE_RUNNING, .worker_id = strdup("x:1")}};

    (void)state;
    status_state_apply(cluster.status, &rec);
    status_record_deinit(&rec);
    join(NULL, false);
    round_ends(&(struct round){.leads = true});
    expect("settled 2:\nstatus gone 1 gone\nwrite key of 32 bytes\n");
}

static void a_state_comes(int task, bool gone)
{
    struct status_record rec = {.kind = task < 0 ? STATUS_CONNECTOR : STATUS_TASK,
                                .tombstone = gone,
                                .conn = strdup("c"),
                                .task = task,
                                .status = {.state = STATE_RUNNING, .worker_id = strdup("me:1")}};

    status_state_apply(cluster.status, &rec);
    status_record_deinit(&rec);
    cluster.store.status(cluster.store_arg, "c", task);
}

/* A record of that state of task 0 of c, or of c (-1), is read. */
static void status_is_read(int task, enum state state, const char *worker_id, int generation)
{
    struct status_record rec = {
        .kind = task < 0 ? STATUS_CONNECTOR : STATUS_TASK,
        .conn = strdup("c"),
        .status = {.state = state, .worker_id = strdup(worker_id), .generation = generation}};

    status_state_apply(cluster.status, &rec);
    status_record_deinit(&rec);
    cluster.store.status(cluster.store_arg, "c", task);
}

static void task_0_runs(struct fixture *f)
{
    create("c");
    commit("c", 1);
    join("c:-1 c:0", false);
    says("c", STATE_RUNNING);
    made("c", 1);
    task_says("c", 0, STATE_RUNNING);
    status_is_read(0, STATE_RUNNING, "me:8083", 1);
    forget();
}

static void a_state_that_another_hand_wrote_is_written_again(void **state)
{
    task_0_runs(*state);
    status_is_read(0, STATE_FAILED, "x:1", 99);
    expect("");
    pass(1000);
    expect("status c 0 RUNNING 1\n");
    status_is_read(0, STATE_RUNNING, "me:8083", 1);
    status_is_read(0, STATE_FAILED, "me:8083", 1); /* in our name */
    pass(1000);
    expect("status c 0 RUNNING 1\n");
    status_is_read(0, STATE_RUNNING, "me:8083", 1);
    a_state_comes(0, true);
    pass(1000);
    expect("status c 0 RUNNING 1\n");
    status_is_read(0, STATE_RUNNING, "me:8083", 1);
    status_is_read(-1, STATE_FAILED, "x:1", 1); /* and the connector */
    pass(1000);
    expect("status c -1 RUNNING 1\n");
    status_is_read(-1, STATE_RUNNING, "me:8083", 1);
    host_of("c")->live[0] = false;
    world.events.task_status(world.arg, "c", 0, STATE_FAILED, "boom");
    status_is_read(0, STATE_FAILED, "me:8083", 1);
    status_is_read(0, STATE_RUNNING, "x:1", 99);
    forget();
    pass(1000);
    expect("status c 0 FAILED 1\n"); /* though a newer one stands there: it is ours */
    assert_string_equal(cluster.trace, "boom");
}

static void states_on_their_way_and_those_of_others_are_left_alone(void **state)
{
    struct fixture *f = *state;

    task_0_runs(f);
    status_is_read(0, STATE_UNASSIGNED, "me:8083", 1); /* ours, and the next is on its way */
    pass(500);
    status_is_read(0, STATE_RUNNING, "me:8083", 1);
    pass(5000);
    expect("");
    status_is_read(0, STATE_FAILED, "x:1", 1); /* but here it moves on meanwhile */
    task_says("c", 0, STATE_PAUSED);
    forget();
    pass(5000);
    expect("");
    cluster.member.rebalancing(cluster.member_arg);
    status_is_read(0, STATE_RUNNING, "x:1", 2); /* it may be x's by now */
    pass(5000);
    expect("");
    round_ends(&(struct round){.revoked = "c:0"});
    task_says("c", 0, STATE_UNASSIGNED);
    forget();
    pass(5000);
    assert_null(strstr(world.journal, "status c 0"));
}

static void the_word_about_a_class_that_is_not_here_holds_too(void **state)
{
    (void)state;
    record("connector-c", "{\"properties\":{\"connector.class\":\"org.x.None\"}}");
    commit("c", 1);
    join("c:-1 c:0", false);
    status_is_read(0, STATE_FAILED, "me:8083", 1);
    status_is_read(0, STATE_RUNNING, "x:1", 1);
    pass(1000);
    expect("status c 0 FAILED 1\n");
    assert_non_null(strstr(cluster.trace, "org.apache.kafka.connect.errors.ConnectException"));
}

static void who_writes_again_and_again_is_not_fought_for_ever(void **state)
{
    task_0_runs(*state);
    for (int i = 0; i < 20; i++) {
        status_is_read(0, STATE_FAILED, "x:1", 1);
        pass(1000);
        status_is_read(0, STATE_RUNNING, "me:8083", 1);
    }
    expect("status c 0 RUNNING 1\nstatus c 0 RUNNING 1\nstatus c 0 RUNNING 1\n"
           "status c 0 RUNNING 1\nstatus c 0 RUNNING 1\n");
    status_is_read(0, STATE_FAILED, "x:1", 1);
    pass(500000);
    expect("");
    pass(120000);
    expect("status c 0 RUNNING 1\n");
}

static void a_deleted_connector_keeps_its_state_until_its_tasks_have_none(void **state)
{
    struct fixture *f = *state;
    json_t *status;

    join(NULL, true);
    for (int task = -1; task < 2; task++)
        a_state_comes(task, false);
    round_ends(&(struct round){.leads = true});
    assert_non_null(strstr(world.journal, "status c 0 gone\nstatus c 1 gone\n"));
    assert_null(strstr(world.journal, "status c -1 gone"));
    forget();
    a_state_comes(0, true);
    expect("");
    status = herder_status(f->herder, "c");
    assert_string_equal(json_string_value(json_object_get(status, "type")), "unknown");
    json_decref(status);
    a_state_comes(1, true);
    expect("status c -1 gone\n");
    a_state_comes(-1, true);
    expect("");
    assert_null(herder_status(f->herder, "c"));
}

/* --- offsets ---------------------------------------------------------------------------------- */

static void change_offsets(struct fixture *f)
{
    f->answers = 0;
    herder_change_offsets(f->herder, "c", json_pack("[[{s:i}, n]]", "a", 1), on_answer, f);
}

static void offsets_are_the_leader_s_to_change(void **state)
{
    struct fixture *f = *state;

    create("c");
    record("target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    join(NULL, false);
    change_offsets(f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    expect("");
}

static void offsets_wait_for_what_others_wrote_and_for_the_round_of_a_stop(void **state)
{
    static const char stale[] = "Cannot complete request momentarily due to stale configuration "
                                "(typically caused by a concurrent config change)";
    struct fixture *f = *state;

    create("c");
    join("c:-1", true);
    commit("c", 0);
    record("target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    forget();
    change_offsets(f);
    expect("refresh\n");
    answer(0); /* but the round that takes its tasks away is still to come */
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, MR_ERR_STATE);
    assert_string_equal(f->text, stale);
    round_ends(&(struct round){.leads = true});
    forget();
    change_offsets(f);
    record("target-state-c", "{\"state\":\"STARTED\",\"state.v2\":\"STARTED\"}");
    answer(0);
    assert_int_equal(f->code, MR_ERR_CONFIG); /* as was read meanwhile */
    record("target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    change_offsets(f);
    answer(MR_ERR_TIMEOUT);
    assert_int_equal(f->code, MR_ERR_FATAL);
    change_offsets(f);
    answer(0);
    assert_int_equal(f->answers, 0);
    assert_non_null(world.question);
    cluster.member.rebalancing(cluster.member_arg);
    change_offsets(f);
    assert_string_equal(f->text, stale);
}

/* Whatever stops, and whatever round is open: it is told when what was written is known here. */
static void what_others_have_written_is_caught_up_with(void **state)
{
    struct fixture *f = *state;

    create("c");
    join("c:-1", false);
    commit("c", 0);
    cluster.member.rebalancing(cluster.member_arg);
    forget();
    f->answers = 0;
    herder_catch_up(f->herder, on_answer, f);
    expect("refresh\n");
    assert_int_equal(f->answers, 0);
    answer(0);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, 0);
    herder_catch_up(f->herder, on_answer, f);
    answer(MR_ERR_TIMEOUT);
    assert_int_equal(f->code, MR_ERR_FATAL);
    assert_string_equal(f->text, "Failed to read to end of config topic: it says no");
}

/* --- topics ----------------------------------------------------------------------------------- */

/* A record of the status topic about a topic that c uses was read. */
static void topic_record(const char *topic, bool gone)
{
    struct status_record rec = {
        .kind = STATUS_TOPIC, .conn = strdup("c"), .topic = strdup(topic), .tombstone = gone};

    if (status_state_apply(cluster.status, &rec))
        cluster.store.topic(cluster.store_arg, "c", topic, gone);
    status_record_deinit(&rec);
}

static void assert_topics(struct fixture *f, const char *conn, const char *want)
{
    struct mr_error err = {0};
    json_t *topics = herder_topics(f->herder, conn, &err);
    char *text = json_text(topics);

    assert_string_equal(text, want);
    free(text);
    json_decref(topics);
}

static void a_topic_is_written_once_and_told_anew_after_a_reset(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    create("c");
    commit("c", 2);
    join("c:-1 c:0 c:1", false);
    world.events.topic_used(world.arg, "c", 1, "t");
    expect("topic c t of task 1\n");
    assert_topics(f, "c", "{\"c\":{\"topics\":[]}}"); /* not before it is in the topic */
    topic_record("t", false);
    assert_topics(f, "c", "{\"c\":{\"topics\":[\"t\"]}}");
    world.events.topic_used(world.arg, "c", 0, "t");
    expect("");
    assert_int_equal(herder_reset_topics(f->herder, "c", &err), 0);
    expect("topic c t gone\n");
    topic_record("t", true);
    expect("forget topics c\n");
    assert_topics(f, "c", "{\"c\":{\"topics\":[]}}");
    world.events.topic_used(world.arg, "c", 0, "t");
    expect("topic c t of task 0\n");
}

static void topics_of_what_is_deleted_are_not_written(void **state)
{
    struct fixture *f = *state;
    struct mr_error err = {0};

    create("c");
    join("c:-1", false);
    record("connector-c", NULL);
    forget();
    world.events.topic_used(world.arg, "c", 0, "t");
    expect("");
    assert_topics(f, "nobody", "{\"nobody\":{\"topics\":[]}}");
    assert_int_equal(herder_reset_topics(f->herder, "nobody", &err), 0);
    expect("");
}

/* --- sets of tasks ---------------------------------------------------------------------------- */

static void the_leader_writes_what_is_new_and_nothing_else(void **state)
{
    (void)state;
    create("c");
    join("c:-1", true);
    says("c", STATE_RUNNING);
    forget();
    made("c", 2);
    expect("write tasks c 2\n");
    commit("c", 2);
    expect("report: and again: tasks were configured\n");
    answer(0);
    round_ends(&(struct round){.assigned = "c:0", .leads = true});
    expect("task c 0 STARTED\nsettled 2: c:-1 c:0\n");
    world.events.connector_status(world.arg, "c", STATE_PAUSED, NULL, "1.0");
    says("c", STATE_RUNNING);
    forget();
    made("c", 2); /* the same again */
    expect("");
    assert_int_equal(cluster.done_count, 0);
}

static void a_follower_sends_them_signed_and_again_until_they_are_taken(void **state)
{
    static const struct peer_answer no = {.status = 403, .body = "no"}, yes = {.status = 204};

    (void)state;
    create("c");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":1}");
    join("c:-1", false);
    says("c", STATE_RUNNING);
    forget();
    made("c", 1);
    expect("POST http://leader:1/connectors/c/tasks "
           "[{\"a\":\"b\",\"task.class\":\"org.example.SrcTask\"}] signed\n");
    cluster.peer_fn(cluster.peer_arg, &no);
    pass(249);
    expect("");
    pass(1);
    expect("ask c 1\n");
    made("c", 1);
    forget();
    cluster.peer_fn(cluster.peer_arg, &yes);
    pass(100000);
    expect("");
}

/* However often they were refused before: a round that was open is the usual reason. */
static void refused_sets_are_tried_again_soon_after_a_round(void **state)
{
    static const struct peer_answer no = {.status = 409, .body = "not now"};

    (void)state;
    create("c");
    join("c:-1", false);
    says("c", STATE_RUNNING);
    for (int64_t ms = 250; ms < 10000; ms *= 2) {
        made("c", 1);
        cluster.peer_fn(cluster.peer_arg, &no);
        forget();
        pass(ms);
        expect("ask c 1\n");
    }
    made("c", 1);
    cluster.peer_fn(cluster.peer_arg, &no);
    round_ends(&(struct round){0});
    forget();
    pass(250);
    expect("ask c 1\n");
}

static void a_torn_set_is_made_anew_once_the_old_one_has_stopped(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:-1 c:0", true);
    says("c", STATE_RUNNING);
    made("c", 1);
    task_says("c", 0, STATE_RUNNING);
    forget();
    record("commit-c", "{\"tasks\":5}");
    expect("stop_task c 0\nreport: and again: tasks were configured, not yet\n");
    pass(250);
    expect("");
    task_says("c", 0, STATE_UNASSIGNED);
    expect("status c 0 UNASSIGNED 1 safe\njoin again\nask c 1\n");
    made("c", 1);
    expect("write tasks c 1\n");
}

static void a_torn_set_is_nothing_to_who_has_no_object(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    record("commit-c", "{\"tasks\":5}");
    task_says("c", 0, STATE_UNASSIGNED);
    forget();
    pass(1000);
    expect("");
}

static void a_set_that_another_worker_made_is_the_leaders_to_write(void **state)
{
    struct fixture *f = *state;
    struct props none;

    props_init(&none);
    create("c");
    join(NULL, false);
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    round_ends(&(struct round){.leads = true});
    forget();
    herder_put_tasks(f->herder, "x", &none, 1, on_answer, f);
    assert_int_equal(f->code, MR_ERR_NOT_FOUND);
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    expect("write tasks c 1\n");
    answer(0);
    assert_int_equal(f->code, 0);
    record("target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    herder_put_tasks(f->herder, "c", &none, 1, on_answer, f);
    assert_string_equal(f->text,
                        "Cannot submit non-empty set of task configs for stopped connector c");
    assert_int_equal(f->answers, 4);
}

/* --- who acts, and what is written ------------------------------------------------------------ */

static void a_follower_names_the_leader_and_a_leader_the_owner(void **state)
{
    struct fixture *f = *state;
    struct assignor_share share = {0};
    struct lead_member owner = {.readable = true,
                                .metadata = {.url = (char *)(uintptr_t) "http://owner:2/"},
                                .share = &share};
    struct lead lead = {.members = &owner, .count = 1};

    create("c");
    commit("c", 2);
    join("c:0", false);
    herder_delete(f->herder, "c", on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
    herder_restart_task(f->herder, "c", 0, on_answer, f);
    expect("stop_task c 0\n");
    read_list(&share.owned, "c:-1 c:1");
    cluster.member.led(cluster.member_arg, 2, &lead);
    round_ends(&(struct round){.leads = true});
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_string_equal(f->elsewhere, "http://owner:2/");
    herder_restart_task(f->herder, "c", 1, on_answer, f);
    assert_string_equal(f->elsewhere, "http://owner:2/");
    work_list_deinit(&share.owned);
}

/* What was sent to it would wait as long as it is frozen. */
static void a_leader_that_is_another_is_not_waited_for(void **state)
{
    (void)state;
    join(NULL, false);
    forget();
    round_ends(&(struct round){0});
    expect("settled 2:\n");
    round_ends(&(struct round){.leader_url = "http://next:1/"});
    expect("give up http://leader:1/\nsettled 3:\n");
}

/* It was frozen, and somebody else may lead by now. */
static void who_led_does_nothing_more_when_its_lease_is_over(void **state)
{
    struct fixture *f = *state;

    create("c");
    join("c:-1", true);
    forget();
    assert_null(herder_unwell(f->herder));
    cluster.member.lease(cluster.member_arg, (struct lease_times){1, clock_boot_ms()});
    assert_non_null(strstr(herder_unwell(f->herder), "answered no heartbeat"));
    forget();
    herder_delete(f->herder, "c", on_answer, f);
    expect("");
    assert_int_equal(f->code, MR_ERR_STATE);
    cluster.member.lease(cluster.member_arg, (struct lease_times){1, clock_boot_ms() + 60000});
    forget();
    herder_delete(f->herder, "c", on_answer, f);
    expect("write removal c\n");
}

/* What it would act upon may be long past: whether there is such a connector, for one. */
static void nobody_pauses_or_resumes_without_a_lease(void **state)
{
    static const enum target_state targets[] = {TARGET_PAUSED, TARGET_STARTED};
    struct fixture *f = *state;

    create("c");
    join("c:-1", false);
    for (size_t i = 0; i < 2; i++) {
        cluster.member.lease(cluster.member_arg, (struct lease_times){1, clock_boot_ms()});
        forget();
        f->code = 0;
        herder_set_target(f->herder, "c", targets[i], on_answer, f);
        expect("");
        assert_int_equal(f->code, MR_ERR_STATE);
        cluster.member.lease(cluster.member_arg, (struct lease_times){1, clock_boot_ms() + 60000});
        forget();
        herder_set_target(f->herder, "c", targets[i], on_answer, f);
        expect(targets[i] == TARGET_PAUSED ? "write target c PAUSED\n"
                                           : "write target c STARTED\n");
    }
}

static void an_open_round_refuses_what_depends_on_it_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    json_t *info;

    create("c");
    join("c:-1", true);
    cluster.member.rebalancing(cluster.member_arg);
    herder_restart(f->herder, "c", false, false, on_answer, f);
    assert_int_equal(f->code, MR_ERR_STATE);
    assert_non_null(strstr(f->text, "stale configuration"));
    forget();
    herder_delete(f->herder, "c", on_answer, f);
    herder_set_target(f->herder, "c", TARGET_PAUSED, on_answer, f);
    expect("write removal c\nwrite target c PAUSED\n");
    info = herder_info(f->herder, "c");
    assert_non_null(info);
    json_decref(info);
}

static void a_stop_empties_the_set_then_says_so_then_reads(void **state)
{
    struct fixture *f = *state;

    create("c");
    join(NULL, true);
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    expect("write tasks c 0\n");
    answer(0);
    expect("write target c STOPPED\n");
    answer(0);
    expect("refresh\n");
    assert_int_equal(f->answers, 0);
    answer(0);
    assert_int_equal(f->answers, 1);
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    answer(MR_ERR_TIMEOUT);
    assert_string_equal(f->text, "Error writing target state to Kafka: it says no");
}

static void a_stop_that_the_end_of_the_worker_cuts_short_asks_nothing_more(void **state)
{
    struct fixture *f = *state;

    create("c");
    join(NULL, true);
    cluster.confirms = true;
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    herder_set_target(f->herder, "c", TARGET_STOPPED, on_answer, f);
    answer(0); /* that one waits for its target to be written */
    expect("write tasks c 0\nwrite tasks c 0\nwrite target c STOPPED\n");
    herder_free(&f->herder);
    expect("");
}

static void a_create_is_answered_when_the_topic_has_it(void **state)
{
    struct fixture *f = *state;
    struct herder_put put = {.conn = "n", .create_only = true, .initial = TARGET_PAUSED};
    struct props config;

    props_init(&config);
    props_set(&config, "name", "n");
    props_set(&config, "connector.class", "Src");
    props_set(&config, "topic", "t");
    put.config = &config;
    join(NULL, true);
    herder_put(f->herder, &put, on_answer, f);
    expect("write connector n PAUSED\n");
    assert_int_equal(f->answers, 0);
    create("n");
    answer(0);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, 0);
    put.no_initial = true;
    herder_put(f->herder, &put, on_answer, f);
    assert_string_equal(f->text, "Connector n already exists");
    props_deinit(&config);
}

static void only_a_leader_makes_keys_and_makes_them_anew_in_time(void **state)
{
    (void)state;
    cluster.store.ready(cluster.store_arg, NULL);
    forget();
    round_ends(&(struct round){.assigned = NULL});
    expect("settled 1:\n");
    round_ends(&(struct round){.leads = true});
    expect("settled 2:\nwrite key of 32 bytes\n");
    answer(MR_ERR_TIMEOUT);
    pass(1000);
    expect("write key of 32 bytes\n");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":4000000000000}");
    answer(0);
    pass(3599999);
    expect("");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":1000}");
    expect("write key of 32 bytes\n");
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_group_is_joined_once_the_topics_were_read),
        cmocka_unit_test_setup_teardown(the_assignor_is_java_s_where_that_is_set, set_up_java,
                                        tear_down),
        test(topics_or_a_group_that_fail_end_the_worker),
        test(the_group_is_left_after_the_work_has_ended),
        test(a_goodbye_that_takes_too_long_holds_up_no_end),
        test(the_lease_goes_to_the_hosts),
        test(what_is_assigned_starts_and_says_so),
        test(a_round_is_settled_when_what_it_took_has_stopped),
        test(what_has_nothing_to_stop_settles_for_nobody_else),
        test(a_stop_of_everything_waits_for_everything),
        test(what_a_lost_round_took_away_comes_back),
        test(what_a_round_took_away_comes_back_while_it_still_stops),
        test(what_the_leader_was_not_told_of_is_not_ours),
        test(a_worker_that_lags_reads_on_before_it_starts_anything),
        test(a_topic_that_cannot_be_read_gives_no_new_work),
        test(a_round_of_an_unread_topic_changes_nothing),
        test(an_answer_to_an_earlier_round_is_dropped),
        test(everything_stops_when_the_protocol_wants_it),
        test(a_stop_of_everything_that_is_lost_is_undone),
        test(a_leader_reads_up_to_the_members_before_it_assigns),
        test(tasks_of_a_new_set_wait_for_a_round),
        test(between_two_sets_there_is_nothing_to_restart_yet),
        test(a_set_that_this_round_does_not_know_goes_on_waiting),
        test(a_deleted_connector_stops_at_once_and_writes_no_more_states),
        test(targets_and_restarts_reach_what_is_here),
        test(levels_of_loggers_go_through_the_topic_to_every_worker),
        test(restarts_are_told_as_connect_tells_them),
        test(a_class_that_is_not_here_is_failed_and_nothing_else_is_written),
        test(a_class_that_is_here_in_another_version_is_failed),
        test(a_class_that_is_not_here_is_failed_whenever_it_comes_here),
        test(a_class_that_is_gone_is_failed_once_what_ran_has_ended),
        test(a_leader_tidies_states_of_what_is_no_more),
        test(a_state_that_another_hand_wrote_is_written_again),
        test(states_on_their_way_and_those_of_others_are_left_alone),
        test(the_word_about_a_class_that_is_not_here_holds_too),
        test(who_writes_again_and_again_is_not_fought_for_ever),
        test(a_deleted_connector_keeps_its_state_until_its_tasks_have_none),
        test(offsets_are_the_leader_s_to_change),
        test(offsets_wait_for_what_others_wrote_and_for_the_round_of_a_stop),
        test(what_others_have_written_is_caught_up_with),
        test(a_topic_is_written_once_and_told_anew_after_a_reset),
        test(topics_of_what_is_deleted_are_not_written),
        test(the_leader_writes_what_is_new_and_nothing_else),
        test(a_follower_sends_them_signed_and_again_until_they_are_taken),
        test(refused_sets_are_tried_again_soon_after_a_round),
        test(a_torn_set_is_made_anew_once_the_old_one_has_stopped),
        test(a_torn_set_is_nothing_to_who_has_no_object),
        test(a_set_that_another_worker_made_is_the_leaders_to_write),
        test(a_follower_names_the_leader_and_a_leader_the_owner),
        test(a_leader_that_is_another_is_not_waited_for),
        test(who_led_does_nothing_more_when_its_lease_is_over),
        test(nobody_pauses_or_resumes_without_a_lease),
        test(an_open_round_refuses_what_depends_on_it_and_nothing_else),
        test(a_stop_empties_the_set_then_says_so_then_reads),
        test(a_stop_that_the_end_of_the_worker_cuts_short_asks_nothing_more),
        test(a_create_is_answered_when_the_topic_has_it),
        test(only_a_leader_makes_keys_and_makes_them_anew_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
