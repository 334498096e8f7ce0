/* SPDX-License-Identifier: Apache-2.0 */
/* Before a source task begins under exactly-once: who fences its predecessors, once, and what is
 * recorded of it. */
#define LOGGER "test"
#include "cluster_world.h"

static void on_answer(void *arg, const struct herder_answer *got)
{
    struct fixture *f = arg;

    f->answers++;
    f->code = got->err != NULL ? got->err->code : 0;
    snprintf(f->text, sizeof(f->text), "%s", got->message != NULL ? got->message : "");
    snprintf(f->elsewhere, sizeof(f->elsewhere), "%s",
             got->elsewhere == NULL ? "here" : got->elsewhere);
}

/* The ids of the round under way are fenced, or are not. */
static void fenced(int code)
{
    fence_round_done fn = cluster.fence_fn;
    struct mr_error err = {.code = code, .text = "no right"};

    assert_non_null(fn);
    cluster.fence_fn = NULL;
    fn(cluster.fence_arg, code != 0 ? &err : NULL);
}

static void host_asks(int id)
{
    world.events.fence(world.arg, "c", id);
}

static void count_record(int count)
{
    char value[64];

    snprintf(value, sizeof(value), "{\"task-count\":%d}", count);
    record("tasks-fencing-c", value);
}

/* A connector with this record and then this many tasks, and we lead. before < 0: no record. */
static void lead_with(int before, int now)
{
    create("c");
    if (before >= 0)
        count_record(before);
    commit("c", now);
    join("c:-1 c:0", true);
}

/* --- the leader ------------------------------------------------------------------------------- */

static void the_first_set_is_recorded_and_fences_nobody(void **state)
{
    (void)state;
    lead_with(-1, 2);
    host_asks(1);
    expect("refresh\n");
    answer(0);
    expect("write count c 2\n");
    count_record(2);
    expect("");
    answer(0);
    expect("fenced c 1 ok\n");
}

static void every_producer_of_the_last_set_is_fenced_before_the_new_count_is_written(void **state)
{
    (void)state;
    lead_with(3, 1);
    host_asks(1);
    answer(0);
    expect("refresh\nfence g-c-0 to 2\n");
    fenced(0);
    expect("refresh\n");
    answer(0);
    expect("write count c 1\n");
    count_record(1);
    answer(0);
    expect("fenced c 1 ok\n");
}

static void one_task_after_one_takes_its_id_over_itself(void **state)
{
    (void)state;
    lead_with(1, 1);
    host_asks(1);
    answer(0);
    expect("refresh\nwrite count c 1\n");
}

static void what_is_settled_is_answered_at_once(void **state)
{
    (void)state;
    lead_with(-1, 2);
    count_record(2);
    host_asks(1);
    answer(0);
    expect("refresh\nfenced c 1 ok\n");
}

static void one_round_serves_all_that_wait(void **state)
{
    (void)state;
    lead_with(2, 2);
    host_asks(1);
    answer(0);
    host_asks(2);
    answer(0);
    expect("refresh\nfence g-c-0 to 1\nrefresh\n");
    fenced(0);
    answer(0);
    count_record(2);
    answer(0);
    assert_non_null(strstr(world.journal, "fenced c 1 ok\n"));
    assert_non_null(strstr(world.journal, "fenced c 2 ok\n"));
}

static void an_id_that_cannot_be_fenced_lets_nothing_start(void **state)
{
    (void)state;
    lead_with(2, 2);
    host_asks(1);
    answer(0);
    forget();
    fenced(MR_ERR_FATAL);
    expect("fenced c 1 no right\n");
    host_asks(2);
    answer(0);
    expect("refresh\nfence g-c-0 to 1\n");
}

static void a_new_set_ends_the_round_of_the_old_one(void **state)
{
    (void)state;
    lead_with(2, 2);
    host_asks(1);
    answer(0);
    forget();
    commit("c", 3);
    assert_non_null(strstr(world.journal, "fence off\n"));
    assert_null(strstr(world.journal, "fenced"));
    forget();
    pass(250); /* ours is patient */
    answer(0);
    expect("refresh\nfence g-c-0 to 1\n");
}

static void a_set_that_came_during_the_last_read_is_not_recorded(void **state)
{
    struct fixture *f = *state;

    lead_with(2, 2);
    herder_fence(f->herder, "c", on_answer, f);
    answer(0);
    fenced(0);
    forget();
    commit("c", 3);
    assert_int_equal(f->code, MR_ERR_STATE);
    assert_non_null(strstr(f->text, "new set of task configs"));
    answer(0); /* of a round that is no more */
    assert_null(strstr(world.journal, "write count"));
}

static void a_topic_that_cannot_be_read_is_read_again(void **state)
{
    (void)state;
    lead_with(-1, 1);
    host_asks(1);
    answer(MR_ERR_TIMEOUT);
    pass(249);
    expect("refresh\n");
    pass(1);
    expect("refresh\n");
}

static void another_worker_hears_of_what_may_pass_and_of_what_does_not(void **state)
{
    struct fixture *f = *state;

    lead_with(2, 2);
    herder_fence(f->herder, "c", on_answer, f);
    answer(MR_ERR_TIMEOUT);
    assert_int_equal(f->code, MR_ERR_STATE);
    herder_fence(f->herder, "c", on_answer, f);
    answer(0);
    fenced(MR_ERR_FATAL);
    assert_int_equal(f->code, MR_ERR_FATAL);
    assert_int_equal(f->answers, 2);
}

static void what_is_no_source_has_nothing_to_fence(void **state)
{
    struct fixture *f = *state;

    record("connector-s", "{\"properties\":{\"connector.class\":\"Snk\",\"topics\":\"t\"}}");
    lead_with(-1, 1);
    herder_fence(f->herder, "s", on_answer, f);
    answer(0);
    assert_int_equal(f->code, MR_ERR_CONFIG);
    herder_fence(f->herder, "unknown", on_answer, f);
    answer(0);
    assert_int_equal(f->code, MR_ERR_NOT_FOUND);
    assert_int_equal(f->answers, 2);
}

static void a_new_leader_claims_the_writes_and_one_in_doubt_asks_for_a_round(void **state)
{
    (void)state;
    join(NULL, false);
    assert_int_equal(cluster.claims, 0);
    round_ends(&(struct round){.leads = true});
    assert_int_equal(cluster.claims, 1);
    assert_int_equal(cluster.claims_anew, 1);
    pass(0);
    forget();
    cluster.store.unclaimed(cluster.store_arg);
    pass(1000);
    assert_non_null(strstr(world.journal, "its right to write as the leader is in doubt"));
    round_ends(&(struct round){.leads = true});
    assert_int_equal(cluster.claims, 2);
    assert_int_equal(cluster.claims_anew, 1);
    round_ends(&(struct round){.leads = false});
    cluster.store.unclaimed(cluster.store_arg);
    round_ends(&(struct round){.leads = true});
    assert_int_equal(cluster.claims_anew, 2);
}

/* --- a follower ------------------------------------------------------------------------------- */

static void a_follower_asks_the_leader_signed_and_again_until_it_is_settled(void **state)
{
    static const struct peer_answer busy = {.status = 409, .body = "no"}, yes = {.status = 204};

    (void)state;
    create("c");
    record("session-key", "{\"key\":\"AAAA\",\"algorithm\":\"HmacSHA256\","
                          "\"creation-timestamp\":1}");
    commit("c", 1);
    join("c:0", false);
    host_asks(1);
    expect("PUT http://leader:1/connectors/c/fence  signed\n");
    cluster.peer_fn(cluster.peer_arg, &busy);
    expect("");
    pass(250);
    expect("PUT http://leader:1/connectors/c/fence  signed\n");
    cluster.peer_fn(cluster.peer_arg, &yes);
    expect("fenced c 1 ok\n");
}

static void what_the_leader_refuses_for_good_fails_the_task(void **state)
{
    static const struct peer_answer no = {.status = 500, .body = "unknown"};

    (void)state;
    create("c");
    commit("c", 1);
    join("c:0", false);
    host_asks(1);
    forget();
    cluster.peer_fn(cluster.peer_arg, &no);
    expect("fenced c 1 the leader answers 500: unknown\n");
}

/* As with a Java worker, which alone creates such a connector. */
static void a_name_that_no_path_takes_fails_the_task(void **state)
{
    static const char *const told =
        " 1 the connector's name takes 9000 bytes in the path of a request, and workers read 8000 "
        "at most\n";
    char name[9001] = "";

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    create("c");
    join("c:0", false);
    world.events.fence(world.arg, name, 1);
    assert_ptr_equal(strstr(world.journal, "fenced n"), world.journal);
    assert_non_null(strstr(world.journal, told));
}

static void a_follower_sends_other_workers_on(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    join("c:0", false);
    herder_fence(f->herder, "c", on_answer, f);
    assert_string_equal(f->elsewhere, "http://leader:1/");
}

/* --- the end ---------------------------------------------------------------------------------- */

static void who_waits_when_the_worker_ends_is_answered(void **state)
{
    struct fixture *f = *state;

    lead_with(2, 2);
    host_asks(1);
    answer(0);
    host_asks(2);
    answer(MR_ERR_TIMEOUT); /* and pauses */
    host_asks(3);           /* and reads */
    forget();
    herder_free(&f->herder);
    for (int id = 1; id <= 3; id++) {
        char line[64];

        snprintf(line, sizeof(line), "fenced c %d ", id);
        assert_non_null(strstr(world.journal, line));
    }
}

/* --- whether a task may begin ----------------------------------------------------------------- */

static int set_up_enabled(void **state)
{
    snprintf(support, sizeof(support), "ENABLED");
    return set_up(state);
}

static int tear_down_enabled(void **state)
{
    snprintf(support, sizeof(support), "disabled");
    return tear_down(state);
}

static void a_start_is_judged_by_the_topic_as_it_is_then(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    join("c:-1 c:0", false);
    world.events.connector_status(world.arg, "c", STATE_RUNNING, NULL, "1.0");
    task_says("c", 0, STATE_RUNNING);
    forget();
    world.events.start_check(world.arg, "c", 7, 0, 0);
    expect("refresh\n");
    answer(MR_ERR_TIMEOUT);
    expect("");
    pass(500);
    expect("refresh\n");
    commit("c", 1);
    forget();
    answer(0);
    expect("checked c 7 no\n");
}

/* --- tasks that are lost ---------------------------------------------------------------------- */

/* A round that we led gave this to the only member, which still stops that. */
static void led(const char *owned, const char *revoked, int error)
{
    struct assignor_share share = {0};
    struct lead_member member = {.id = (char *)(uintptr_t) "m2",
                                 .readable = true,
                                 .metadata = {.url = (char *)(uintptr_t) "http://me:8083/"},
                                 .share = error == 0 ? &share : NULL};

    read_list(&share.owned, owned);
    read_list(&share.revoked, revoked);
    cluster.member.led(cluster.member_arg, cluster.generation + 1,
                       &(struct lead){.members = &member, .count = 1, .error = (int16_t)error});
    work_list_deinit(&share.owned);
    work_list_deinit(&share.revoked);
}

static void transactions_of_lost_tasks_are_ended_once(void **state)
{
    (void)state;
    lead_with(3, 3);
    led("c:-1 c:0", "c:2", 0);
    expect("fence g-c-1\n"); /* 2 stops in order */
    led("c:-1 c:0", "c:2", 0);
    expect("");
    fenced(0);
    led("c:-1 c:0", "", 0);
    expect("fence g-c-1\nfence g-c-2\n");
    fenced(MR_ERR_FATAL); /* as good as it gets */
    led("c:-1 c:0", "", 0);
    expect("");
    led("c:-1 c:0 c:1 c:2", "", 0);
    expect("");
    led("c:-1 c:0 c:2", "", 0);
    expect("fence g-c-1\n"); /* another loss */
    fenced(0);
}

static void who_has_work_again_or_leads_no_more_fences_nobody(void **state)
{
    (void)state;
    lead_with(2, 2);
    led("c:-1 c:0", "", 0);
    expect("fence g-c-1\n");
    led("c:-1 c:0 c:1", "", 0);
    expect("fence off\n");
    led("c:-1 c:0", "", 0);
    expect("fence g-c-1\n");
    round_ends(&(struct round){.assigned = ""});
    assert_non_null(strstr(world.journal, "fence off\n"));
    forget();
}

static void a_round_that_assigned_nothing_loses_nothing(void **state)
{
    (void)state;
    lead_with(1, 1);
    led("", "", CONNECT_CONFIG_MISMATCH);
    expect("");
}

static void without_transactions_nothing_is_ended(void **state)
{
    (void)state;
    lead_with(1, 1);
    led("", "", 0);
    expect("");
}

/* --- tasks whose host died here --------------------------------------------------------------- */

/* Two tasks of a source here, which run; the second said so before a host died. */
static void run_two(void)
{
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
}

/* What was fenced since the last look, in order. */
static void fenced_are(const char *lines)
{
    char got[256] = "";

    for (const char *at = world.journal; (at = strstr(at, "fence ")) != NULL; at++)
        if (at == world.journal || at[-1] == '\n')
            strncat(got, at, strcspn(at, "\n") + 1);
    assert_string_equal(got, lines);
    forget();
}

static void what_a_dead_host_left_open_is_ended_before_the_next_start_in_a_while(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    fenced_are(""); /* it begins at once, and takes its ids over */
    died("c");
    fenced_are("fence g-c-0\nfence g-c-1\n");
    fenced(0);
    pass(1000);
    task_says("c", 0, STATE_RUNNING);
    died("c");
    fenced_are("fence g-c-0\nfence g-c-1\n");
    pass(4999);
    fenced_are("");
    pass(1); /* that long no answer came */
    fenced_are("fence off\n");
}

/* A single task starts again, and asks for no fence of its own, as a sink that emits. */
static void who_may_start_is_not_fenced_any_more(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    task_says("c", 0, STATE_FAILED);
    fenced_are("fence g-c-0\n");
    world.events.start_check(world.arg, "c", 7, 1, 0);
    answer(0);
    fenced_are("fence off\n");
}

static void what_is_given_away_meanwhile_is_not_ended(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    died("c");
    fenced_are("fence g-c-0\nfence g-c-1\n");
    round_ends(&(struct round){.revoked = "c:1"});
    fenced_are("fence off\n");
}

static void what_is_stopped_before_it_began_again_leaves_nothing_open(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    task_says("c", 1, STATE_RUNNING);
    record("target-state-c", "{\"state\":\"STOPPED\"}");
    task_says("c", 0, STATE_UNASSIGNED);
    task_says("c", 1, STATE_UNASSIGNED);
    died("c");
    fenced_are("fence g-c-0\n");
    fenced(MR_ERR_FATAL); /* as good as it gets */
}

static void what_fails_before_it_began_again_leaves_nothing_open(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    task_says("c", 0, STATE_FAILED);
    fenced_are("fence g-c-0\n");
    fenced(0);
}

/* The round of the first is not over when the second fails. */
static void what_fails_one_after_another_leaves_nothing_open(void **state)
{
    (void)state;
    run_two();
    died("c");
    pass(0);
    task_says("c", 1, STATE_FAILED);
    fenced_are("fence g-c-1\n");
    task_says("c", 0, STATE_FAILED);
    fenced_are("fence off\nfence g-c-1\nfence g-c-0\n");
    fenced(0);
}

/* Nothing is known of who had it before. */
static void what_fails_before_it_ever_ran_here_leaves_nothing_open(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    join("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    forget();
    task_says("c", 1, STATE_FAILED);
    fenced_are("fence g-c-1\n");
    fenced(0);
    task_says("c", 0, STATE_FAILED);
    fenced_are("");
}

static void a_deleted_connector_whose_host_was_killed_leaves_nothing_open(void **state)
{
    (void)state;
    run_two();
    task_says("c", 1, STATE_UNASSIGNED);
    record("connector-c", NULL);
    died("c");
    fenced_are("fence g-c-0\n");
    fenced(0);
}

static void an_orderly_end_leaves_nothing_open(void **state)
{
    (void)state;
    run_two();
    record("target-state-c", "{\"state\":\"STOPPED\"}");
    task_says("c", 0, STATE_UNASSIGNED);
    task_says("c", 1, STATE_UNASSIGNED);
    died("c");
    fenced_are("");
}

static void what_is_somebody_elses_by_now_is_not_ended(void **state)
{
    (void)state;
    run_two();
    round_ends(&(struct round){.revoked = "c:0 c:1"});
    died("c");
    fenced_are("");
}

static void without_transactions_a_dead_host_left_nothing_open(void **state)
{
    (void)state;
    run_two();
    record("target-state-c", "{\"state\":\"STOPPED\"}");
    died("c");
    fenced_are("");
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define test_enabled(name) cmocka_unit_test_setup_teardown(name, set_up_enabled, tear_down_enabled)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_first_set_is_recorded_and_fences_nobody),
        test(every_producer_of_the_last_set_is_fenced_before_the_new_count_is_written),
        test(one_task_after_one_takes_its_id_over_itself),
        test(what_is_settled_is_answered_at_once),
        test(one_round_serves_all_that_wait),
        test(an_id_that_cannot_be_fenced_lets_nothing_start),
        test(a_new_set_ends_the_round_of_the_old_one),
        test(a_set_that_came_during_the_last_read_is_not_recorded),
        test(a_topic_that_cannot_be_read_is_read_again),
        test(another_worker_hears_of_what_may_pass_and_of_what_does_not),
        test(what_is_no_source_has_nothing_to_fence),
        test(a_new_leader_claims_the_writes_and_one_in_doubt_asks_for_a_round),
        test(a_follower_asks_the_leader_signed_and_again_until_it_is_settled),
        test(what_the_leader_refuses_for_good_fails_the_task),
        test(a_name_that_no_path_takes_fails_the_task),
        test(a_follower_sends_other_workers_on),
        test(who_waits_when_the_worker_ends_is_answered),
        test_enabled(a_start_is_judged_by_the_topic_as_it_is_then),
        test_enabled(transactions_of_lost_tasks_are_ended_once),
        test_enabled(who_has_work_again_or_leads_no_more_fences_nobody),
        test_enabled(a_round_that_assigned_nothing_loses_nothing),
        test(without_transactions_nothing_is_ended),
        test_enabled(what_a_dead_host_left_open_is_ended_before_the_next_start_in_a_while),
        test_enabled(who_may_start_is_not_fenced_any_more),
        test_enabled(what_is_given_away_meanwhile_is_not_ended),
        test_enabled(what_is_stopped_before_it_began_again_leaves_nothing_open),
        test_enabled(what_fails_before_it_began_again_leaves_nothing_open),
        test_enabled(what_fails_one_after_another_leaves_nothing_open),
        test_enabled(what_fails_before_it_ever_ran_here_leaves_nothing_open),
        test_enabled(a_deleted_connector_whose_host_was_killed_leaves_nothing_open),
        test_enabled(an_orderly_end_leaves_nothing_open),
        test_enabled(what_is_somebody_elses_by_now_is_not_ended),
        test(without_transactions_a_dead_host_left_nothing_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
