/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster's worker says to the others beside Connect's protocol, what it does when it hears
 * such words, and how often it asks for rounds. */
#define LOGGER "test"
#include "cluster_world.h"

/* --- what others say, and who they are -------------------------------------------------------- */

static char *text(const char *of)
{
    char *copy = strdup(of);

    assert_non_null(copy);
    return copy;
}

static struct word leaving(const char *member, int64_t generation)
{
    char url[64];

    snprintf(url, sizeof(url), "http://%s:8083/", member);
    return (struct word){.kind = WORD_LEAVING,
                         .member = text(member),
                         .url = text(url),
                         .generation = generation,
                         .stopped = true,
                         .said_wall_ms = clock_wall_ms()};
}

/* The topic has it; fresh: just now. */
static void hear(struct word word, bool fresh)
{
    if (fresh && !word.tombstone)
        cluster.store.word(cluster.store_arg, &word);
    word_state_apply(cluster.words, &word);
    word_deinit(&word);
}

static void take_back(const char *member)
{
    hear((struct word){.kind = WORD_LEAVING, .member = text(member), .tombstone = true}, false);
}

/* We lead a round of these members, each with a URL of its own unless it is given: "m2
 * other=http://x/". */
static void leads(const char *members)
{
    struct lead_member list[8] = {{0}};
    struct lead lead = {.members = list};
    char *copy = text(members), *rest = NULL;

    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        struct lead_member *member = &list[lead.count++];
        char *url = strchr(word, '=');

        if (url != NULL)
            *url++ = '\0';
        member->id = word;
        member->readable = true;
        member->metadata.url = url != NULL ? url : word;
    }
    cluster.member.led(cluster.member_arg, cluster.generation + 1, &lead);
    round_ends(&(struct round){.leads = true});
    free(copy);
}

static void lead_asked(int64_t ask)
{
    cluster.member.lead(cluster.member_arg, ask, 0);
    answer(0); /* the words were read */
}

static void joined(const char *assigned, bool leader)
{
    join(assigned, leader);
    cluster.member.identity(cluster.member_arg, "m2");
}

/* --- goodbye ---------------------------------------------------------------------------------- */

static void shutdown_begins(struct fixture *f)
{
    herder_shutdown(f->herder, on_ended, f);
    pass(0);
}

static void a_worker_says_that_it_leaves_once_its_work_has_stopped(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    joined("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    forget();
    shutdown_begins(f);
    expect("drain c\n");
    died("c");
    pass(0);
    expect("status c 0 UNASSIGNED 1 safe\n"
           "say leaving-m2 {\"member\":\"m2\",\"url\":\"http://me:8083/\",\"generation\":1,"
           "\"work\":\"stopped\"}\n");
    answer(0);
    expect("leave\n");
    cluster.member.left(cluster.member_arg);
    assert_true(f->ended);
}

static void it_leaves_all_the_same_when_that_can_not_be_said(void **state)
{
    struct fixture *f = *state;

    joined(NULL, false);
    shutdown_begins(f);
    forget();
    answer(MR_ERR_UNSUPPORTED);
    expect("leave\n");
}

static void it_leaves_all_the_same_when_nobody_confirms_it(void **state)
{
    struct fixture *f = *state;

    joined(NULL, false);
    shutdown_begins(f);
    forget();
    pass(999);
    expect("");
    pass(1);
    expect("leave\n");
    answer(0); /* late */
    expect("");
}

static void who_is_no_member_says_nothing(void **state)
{
    struct fixture *f = *state;

    joined(NULL, false);
    cluster.member.lost(cluster.member_arg, "why");
    shutdown_begins(f);
    expect("leave\n");
}

/* --- hearing it ------------------------------------------------------------------------------- */

static void everybody_joins_again_when_a_worker_leaves(void **state)
{
    (void)state;
    joined(NULL, false);
    hear(leaving("m1", 1), true);
    expect("report: and again: a worker leaves\n");
    hear(leaving("m2", 1), true); /* that is us */
    hear(leaving("m3", 0), true); /* that was dealt with in the round we are in */
    hear(leaving("m4", 1), false);
    expect("");
}

static void a_leader_tells_leavers_from_the_lost(void **state)
{
    (void)state;
    joined(NULL, true);
    hear(leaving("m1", 0), false);
    hear((struct word){.kind = WORD_LEAVING, .member = text("m5"), .url = text("u")}, false);
    cluster.member.lead(cluster.member_arg, 7, 0);
    expect("refresh words\n");
    hear(leaving("m3", 1), false); /* is read before the answer */
    answer(0);
    expect("lead 7 at 1: without m1 without m3\n");
}

static void a_leader_goes_on_when_the_words_can_not_be_read(void **state)
{
    (void)state;
    joined(NULL, true);
    cluster.member.lead(cluster.member_arg, 7, 0);
    forget();
    answer(MR_ERR_TIMEOUT);
    expect("lead 7 at 1:\n");
}

static void who_leads_anew_remembers_nobody_and_needs_no_words(void **state)
{
    (void)state;
    joined(NULL, false);
    hear(leaving("m1", 0), false);
    cluster.member.lead(cluster.member_arg, 7, -1);
    expect("lead 7 at -1: without m1\n");
}

static void a_leader_takes_back_what_a_round_has_dealt_with(void **state)
{
    (void)state;
    joined(NULL, true);
    hear(leaving("m1", 1), false);
    hear(leaving("m3", 1), false);
    lead_asked(7);
    hear(leaving("m4", 1), false); /* too late for this round */
    forget();
    leads("m2 m3"); /* m3 is still there */
    expect("settled 2:\nsay leaving-m1 no more\n");
    take_back("m1");
    lead_asked(8);
    forget();
    leads("m2");
    expect("settled 3:\nsay leaving-m3 no more\nsay leaving-m4 no more\n");
    lead_asked(9);
    forget();
}

static void a_goodbye_during_a_round_makes_the_leader_make_another(void **state)
{
    (void)state;
    joined(NULL, true);
    cluster.member.rebalancing(cluster.member_arg);
    lead_asked(7);
    hear(leaving("m1", 1), true);
    forget();
    leads("m1 m2");
    expect("settled 2: and again: a worker leaves\n");
    cluster.member.rebalancing(cluster.member_arg);
    lead_asked(8);
    forget();
    leads("m2");
    expect("settled 3:\nsay leaving-m1 no more\n");
}

static void a_goodbye_that_the_leader_read_in_time_needs_no_other_round(void **state)
{
    (void)state;
    joined(NULL, true);
    cluster.member.rebalancing(cluster.member_arg);
    hear(leaving("m1", 1), true);
    lead_asked(7);
    forget();
    leads("m2");
    expect("settled 2:\nsay leaving-m1 no more\n");
}

/* Under a leader of Java nobody else would. */
static void a_worker_takes_back_what_its_predecessor_said_and_what_is_old(void **state)
{
    struct word old = leaving("m8", 3);
    struct word mine = leaving("me", 3);

    (void)state;
    cluster.store.ready(cluster.store_arg, NULL);
    cluster.member.identity(cluster.member_arg, "m2");
    old.said_wall_ms -= (int64_t)25 * 60 * 60 * 1000;
    hear(old, false);
    hear(mine, false);
    hear(leaving("m9", 3), false);
    forget();
    round_ends(&(struct round){0});
    expect("settled 1:\nsay leaving-m8 no more\nsay leaving-me no more\n");
}

/* --- round wanted ----------------------------------------------------------------------------- */

static void what_was_revoked_has_stopped_and_everybody_is_told(void **state)
{
    (void)state;
    create("c");
    commit("c", 2);
    joined("c:0 c:1", false);
    task_says("c", 0, STATE_RUNNING);
    task_says("c", 1, STATE_RUNNING);
    forget();
    round_ends(&(struct round){.revoked = "c:0"});
    task_says("c", 0, STATE_UNASSIGNED);
    expect("stop_task c 0\nstatus c 0 UNASSIGNED 2 safe\n"
           "settled 2: c:1 and again: what was revoked has stopped\n"
           "say round-wanted {\"member\":\"m2\",\"generation\":2}\n");
}

static void a_round_is_joined_for_another_only_if_it_is_this_one(void **state)
{
    (void)state;
    joined(NULL, false);
    hear((struct word){.kind = WORD_ROUND, .member = text("m1"), .generation = 0}, true);
    hear((struct word){.kind = WORD_ROUND, .member = text("m2"), .generation = 1}, true);
    expect("");
    hear((struct word){.kind = WORD_ROUND, .member = text("m1"), .generation = 1}, true);
    expect("report: and again: another worker wants a round\n");
    cluster.member.rebalancing(cluster.member_arg);
    hear((struct word){.kind = WORD_ROUND, .member = text("m1"), .generation = 1}, true);
    expect("");
}

/* --- twins ------------------------------------------------------------------------------------ */

static void a_leader_tells_twins_once(void **state)
{
    (void)state;
    joined(NULL, true);
    lead_asked(7);
    forget();
    leads("m1=http://x/ m2 m3=http://x/ m4= m5=");
    expect("say twins {\"members\":[\"m1\",\"m3\"],\"url\":\"http://x/\"}\nsettled 2:\n");
    leads("m1=http://x/ m2 m3=http://x/");
    expect("settled 3:\n");
    leads("m1=http://x/ m2");
    leads("m1=http://x/ m2 m3=http://x/");
    expect("settled 4:\nsay twins {\"members\":[\"m1\",\"m3\"],\"url\":\"http://x/\"}\n"
           "settled 5:\n");
}

static int twins_named;

static void on_line(const char *line, size_t len)
{
    static const char text[] = "another live worker of the group g";

    twins_named += memmem(line, len, text, sizeof(text) - 1) != NULL;
}

static void twins_are(const char *a, const char *b)
{
    hear((struct word){.kind = WORD_TWINS,
                       .member = text(a),
                       .other = text(b),
                       .url = text("http://me:8083/")},
         true);
}

static void each_twin_is_named_once(void **state)
{
    (void)state;
    joined(NULL, false);
    cluster.member.identity(cluster.member_arg, "m2");
    twins_named = 0;
    log_set_level(LOG_ERROR);
    log_witness(on_line);
    twins_are("m3", "m2");
    twins_are("m3", "m2"); /* of another leader */
    assert_int_equal(twins_named, 1);
    twins_are("m4", "m2"); /* set right, and wrong again */
    log_witness(NULL);
    log_set_level(LOG_OFF);
    assert_int_equal(twins_named, 2);
}

/* --- two clusters, one topic ------------------------------------------------------------------ */

static int strangers_named;

static void on_stranger_line(const char *line, size_t len)
{
    static const char text[] = "it is no member of group g";

    strangers_named += memmem(line, len, text, sizeof(text) - 1) != NULL;
}

static void status_says(const char *worker, enum state state)
{
    struct status_record rec = {
        .kind = STATUS_TASK,
        .conn = text("c"),
        .task = 0,
        .status = {.state = state, .generation = 1, .worker_id = text(worker)}};

    status_state_apply(cluster.status, &rec);
    status_record_deinit(&rec);
    cluster.store.status(cluster.store_arg, "c", 0);
}

static void a_worker_of_another_cluster_is_named_once(void **state)
{
    (void)state;
    joined(NULL, true);
    leads("m1=http://x:1/ m2=https://me:8083/");
    strangers_named = 0;
    log_set_level(LOG_ERROR);
    log_witness(on_stranger_line);
    status_says("x:1", STATE_RUNNING);
    status_says("me:8083", STATE_RUNNING);
    status_says("y:1", STATE_UNASSIGNED); /* the last word of one that left */
    assert_int_equal(strangers_named, 0);
    status_says("y:1", STATE_RUNNING);
    status_says("y:1", STATE_RUNNING);
    assert_int_equal(strangers_named, 1);
    leads("m2=https://me:8083/ m3=http://y:1/");
    status_says("y:1", STATE_RUNNING);
    log_witness(NULL);
    log_set_level(LOG_OFF);
    assert_int_equal(strangers_named, 1);
}

/* --- storms ----------------------------------------------------------------------------------- */

static size_t rounds_asked_for(void)
{
    size_t count = 0;

    for (const char *at = world.journal; (at = strstr(at, "and again: ")) != NULL; at++)
        count++;
    return count;
}

/* A create each 20 ms, and a round that ends at once when it is asked for. */
static void many_creates_make_few_rounds(void **state)
{
    size_t rounds = 0;
    char name[16];

    (void)state;
    joined(NULL, false);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        create(name);
        if (rounds_asked_for() > 0) {
            rounds++;
            cluster.member.rebalancing(cluster.member_arg);
            round_ends(&(struct round){0});
        }
        forget();
        pass(20);
    }
    if (rounds < 3 || rounds > 10)
        fail_msg("%zu rounds", rounds);
}

static void a_change_in_an_open_round_asks_for_none_if_that_round_knows_it(void **state)
{
    (void)state;
    joined(NULL, false);
    create("a");
    expect("report: and again: a connector was created\n");
    cluster.member.rebalancing(cluster.member_arg);
    create("b");
    round_ends(&(struct round){0});
    pass(10000);
    expect("settled 2:\n");
    cluster.member.rebalancing(cluster.member_arg);
    create("c");
    round_ends(&(struct round){.ahead = -1});
    pass(10000);
    expect("settled 3:\nreport: and again: the config topic has gone on\n");
}

static void deleted_connectors_are_forgotten(void **state)
{
    struct distributed *d = cluster.store_arg;
    char name[16], key[32];

    (void)state;
    joined(NULL, false);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        snprintf(key, sizeof(key), "connector-c%d", i);
        create(name);
        record(key, NULL);
    }
    create("stays");
    round_ends(&(struct round){0});
    assert_int_equal(map_count(d->conns), 1);
}

/* --- a config topic that is gone -------------------------------------------------------------- */

static void lose_config(struct fixture *f)
{
    struct mr_error err = {.code = MR_ERR_FATAL, .text = "it was deleted"};

    assert_int_equal(props_set(&f->config.props, "config.storage.topic", "cfg"), 0);
    cluster.store.lost(cluster.store_arg, "cfg", &err);
}

static void without_the_config_topic_work_and_group_go_on(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 2);
    joined("c:0", false);
    task_says("c", 0, STATE_RUNNING);
    lose_config(f);
    forget();
    round_ends(&(struct round){.assigned = "c:1"});
    pass(60000);
    expect("task c 1 STARTED\nsettled 2: c:0 c:1\n");
    round_ends(&(struct round){.mismatch = true, .ahead = -1});
    assert_int_equal(f->failed, 0);
}

static void who_lost_it_alone_ends_and_leaves_its_work_to_the_others(void **state)
{
    struct fixture *f = *state;

    create("c");
    commit("c", 1);
    joined("c:0", false);
    lose_config(f);
    round_ends(&(struct round){.ahead = 3});
    assert_int_equal(f->failed, 0);
    answer(MR_ERR_FATAL);
    assert_int_equal(f->failed, MR_ERR_FATAL);
}

/* --- consumers of sink tasks ------------------------------------------------------------------ */

#define SNK \
    "{\"properties\":{\"connector.class\":\"Snk\",\"topics\":\"t\"," \
    "\"name\":\"c\"}}"

static void sink_runs_here(void)
{
    record("connector-c", SNK);
    commit("c", 1);
    joined("c:0", false);
    forget();
}

static void starts(int64_t question)
{
    world.events.start_check(world.arg, "c", question, 0, 0);
    expect("refresh words\n");
}

static void told(const char *task, const char *member)
{
    hear((struct word){.kind = WORD_CONSUMER, .other = text(task), .member = text(member)}, true);
}

static void a_sink_task_may_make_its_own_predecessors_leave(void **state)
{
    (void)state;
    sink_runs_here();
    starts(1);
    answer(0);
    expect("checked c 1 yes\n"); /* nobody is known */
    world.events.task_member(world.arg, "c", 0, "here-1");
    expect("say consumer-c-0 {\"member\":\"here-1\"}\n");
    answer(0);
    starts(2);
    answer(0);
    expect("checked c 2 yes [\"here-1\"]\n");
    starts(3);
    told("c-0", "there-1"); /* a worker that has just started reads it only now */
    told("c-1", "there-2");
    answer(0);
    expect("checked c 3 yes [\"here-1\",\"there-1\"]\n");
    told("c-0", "here-1");
    starts(4);
    answer(0);
    expect("checked c 4 yes [\"here-1\"]\n");
}

static void a_sink_task_starts_when_the_words_can_not_be_read(void **state)
{
    (void)state;
    sink_runs_here();
    starts(1);
    answer(MR_ERR_TIMEOUT);
    expect("checked c 1 yes\n");
    starts(2); /* the worker ends meanwhile */
}

static void joins_as(const char *member)
{
    world.events.task_member(world.arg, "c", 0, member);
}

static void the_newest_consumer_is_told_until_it_is_heard(void **state)
{
    (void)state;
    sink_runs_here();
    joins_as("one");
    expect("say consumer-c-0 {\"member\":\"one\"}\n");
    answer(MR_ERR_TIMEOUT);
    expect("say consumer-c-0 {\"member\":\"one\"}\n");
    joins_as("two");
    expect("say consumer-c-0 {\"member\":\"two\"}\n");
    answer(MR_ERR_TIMEOUT); /* the first one: it would come to stand behind */
    expect("");
    answer(MR_ERR_TIMEOUT);
    expect("say consumer-c-0 {\"member\":\"two\"}\n");
    answer(MR_ERR_UNSUPPORTED); /* no rights: not again */
    expect("");
    joins_as("three");
    for (int i = 0; i < 6; i++) {
        expect("say consumer-c-0 {\"member\":\"three\"}\n");
        answer(MR_ERR_TIMEOUT);
    }
    expect("");
    joins_as("four"); /* under way when the worker ends */
    forget();
}

static void a_source_task_needs_no_words(void **state)
{
    (void)state;
    create("c");
    commit("c", 1);
    joined("c:0", false);
    forget();
    world.events.start_check(world.arg, "c", 1, 0, 0);
    expect("checked c 1 yes\n");
}

static void the_leader_forgets_consumers_of_deleted_connectors(void **state)
{
    (void)state;
    create("c");
    joined(NULL, true);
    hear((struct word){.kind = WORD_CONSUMER, .other = text("c-0"), .member = text("m")}, false);
    hear((struct word){.kind = WORD_CONSUMER, .other = text("gone-0"), .member = text("m")}, false);
    hear((struct word){.kind = WORD_CONSUMER, .other = text("odd"), .member = text("m")}, false);
    forget();
    lead_asked(3);
    forget();
    leads("m2");
    assert_non_null(
        strstr(world.journal, "say consumer-gone-0 no more\nsay consumer-odd no more\n"));
    assert_null(strstr(world.journal, "consumer-c-0"));
    forget();
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_worker_says_that_it_leaves_once_its_work_has_stopped),
        test(it_leaves_all_the_same_when_that_can_not_be_said),
        test(it_leaves_all_the_same_when_nobody_confirms_it),
        test(who_is_no_member_says_nothing),
        test(everybody_joins_again_when_a_worker_leaves),
        test(a_leader_tells_leavers_from_the_lost),
        test(a_sink_task_may_make_its_own_predecessors_leave),
        test(a_sink_task_starts_when_the_words_can_not_be_read),
        test(the_newest_consumer_is_told_until_it_is_heard),
        test(a_source_task_needs_no_words),
        test(the_leader_forgets_consumers_of_deleted_connectors),
        test(a_leader_goes_on_when_the_words_can_not_be_read),
        test(who_leads_anew_remembers_nobody_and_needs_no_words),
        test(a_leader_takes_back_what_a_round_has_dealt_with),
        test(a_goodbye_during_a_round_makes_the_leader_make_another),
        test(a_goodbye_that_the_leader_read_in_time_needs_no_other_round),
        test(a_worker_takes_back_what_its_predecessor_said_and_what_is_old),
        test(what_was_revoked_has_stopped_and_everybody_is_told),
        test(a_round_is_joined_for_another_only_if_it_is_this_one),
        test(a_leader_tells_twins_once),
        test(each_twin_is_named_once),
        test(a_worker_of_another_cluster_is_named_once),
        test(many_creates_make_few_rounds),
        test(a_change_in_an_open_round_asks_for_none_if_that_round_knows_it),
        test(deleted_connectors_are_forgotten),
        test(without_the_config_topic_work_and_group_go_on),
        test(who_lost_it_alone_ends_and_leaves_its_work_to_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
