/* SPDX-License-Identifier: Apache-2.0 */
/* Members of one group against a real broker, and one group with the Java worker: worker/group/
 * without the rest of a worker. A small herder beside each member does at once what it is told. */
#include "base/clock.h"
#include "base/log.h"
#include "base/props.h"
#include "support/http.h"
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "wire/coordinator.h"
#include "wire/kafka_code.h"
#include "worker/group/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 5
#define ROUND_MS 10000
#define OFFSET 40 /* of a config topic that nobody reads here */

/* --- members, each with its herder ------------------------------------------------------------ */

struct node {
    struct member *member;
    struct work_list held;
    char id[128];
    int64_t generation;
    int64_t offset;
    enum connect_kind kind;
    bool leads;
    bool stuck;       /* does not act on what it is assigned */
    bool cannot_read; /* the config topic has no more for it */
    bool left;
    bool failed;
    char error[512];
    size_t stopped; /* items that were taken away so far */
    int lost;
    int rounds;
    int mismatches;
    int64_t hard_ms;
};

static struct {
    struct loop *loop;
    const char *servers;
    const char *group;
    struct node nodes[NODES];
    const char *conn[8];
    int32_t tasks[8];
    size_t conns;
    char leavers[NODES][128];
    size_t leaver_count;
    int64_t session_ms;
    int64_t delay_ms;
    int64_t rebalance_ms;
    const char *ghost_file;
    int64_t offset; /* that members report at first */
    enum connect_kind kind;
} cluster;

static void report(struct node *node, int64_t settled, const char *rejoin)
{
    struct member_word word = {&node->held, node->offset, settled, rejoin, NULL};

    assert_int_equal(member_report(node->member, &word), 0);
}

static void on_identity(void *arg, const char *id)
{
    snprintf(((struct node *)arg)->id, sizeof(((struct node *)arg)->id), "%s", id);
}

static void on_rebalancing(void *arg)
{
    (void)arg;
}

static void on_stop_all(void *arg, int64_t ask)
{
    struct node *node = arg;

    node->stopped += node->held.items;
    work_list_deinit(&node->held);
    report(node, -1, NULL);
    assert_int_equal(member_stopped(node->member, ask), 0);
}

static void on_lead(void *arg, int64_t ask, int64_t min_offset)
{
    struct node *node = arg;
    bool reads_on = !node->cannot_read && min_offset > node->offset;
    struct lead_snapshot *snapshot = lead_snapshot_new(reads_on ? min_offset : node->offset);

    for (size_t i = 0; i < cluster.conns; i++)
        assert_int_equal(lead_snapshot_add(snapshot, cluster.conn[i], cluster.tasks[i]), 0);
    for (size_t i = 0; i < cluster.leaver_count; i++)
        assert_int_equal(lead_snapshot_add_leaver(snapshot, cluster.leavers[i]), 0);
    assert_int_equal(member_lead_take(node->member, ask, snapshot), 0);
}

static void on_led(void *arg, int64_t generation, const struct lead *lead)
{
    (void)arg;
    (void)generation;
    assert_true(lead->count > 0);
}

static void take_away(struct node *node, const struct work_list *revoked)
{
    for (size_t e = 0; e < revoked->count; e++)
        for (size_t t = 0; t < revoked->entries[e].count; t++)
            node->stopped += work_list_remove(&node->held, revoked->entries[e].conn,
                                              revoked->entries[e].tasks[t]);
}

static void on_assigned(void *arg, const struct member_round *round)
{
    struct node *node = arg;
    const struct connect_assignment *a = round->assignment;

    node->rounds++;
    node->generation = round->generation;
    node->kind = round->kind;
    node->leads = round->leads;
    node->hard_ms = round->lease.hard_ms;
    node->mismatches += a->error != 0;
    if (a->error != 0)
        return;
    if (round->kind == CONNECT_EAGER)
        assert_int_equal(node->held.items, 0);
    take_away(node, &a->revoked);
    assert_int_equal(work_list_merge(&node->held, &a->assigned), 0);
    if (node->offset < a->offset)
        node->offset = a->offset;
    if (!node->stuck)
        report(node, round->generation, a->revoked.items > 0 ? "work was revoked" : NULL);
}

static void on_lost(void *arg, const char *why)
{
    (void)why;
    ((struct node *)arg)->lost++;
}

static void on_lease(void *arg, struct lease_times times)
{
    ((struct node *)arg)->hard_ms = times.hard_ms;
}

static void on_left(void *arg)
{
    ((struct node *)arg)->left = true;
}

static void on_failed(void *arg, const struct mr_error *err)
{
    struct node *node = arg;

    node->failed = true;
    snprintf(node->error, sizeof(node->error), "%.511s", err->text);
}

static const struct member_events events = {
    .identity = on_identity,
    .rebalancing = on_rebalancing,
    .stop_all = on_stop_all,
    .lead = on_lead,
    .led = on_led,
    .assigned = on_assigned,
    .lost = on_lost,
    .lease = on_lease,
    .left = on_left,
    .failed = on_failed,
};

static void put_props(struct props *props, const char *client)
{
    props_init(props);
    assert_int_equal(props_set(props, "bootstrap.servers", cluster.servers), 0);
    assert_int_equal(props_set(props, "client.id", client), 0);
    assert_int_equal(props_set(props, "reconnect.backoff.max.ms", "500"), 0);
}

static struct node *join(int i)
{
    struct node *node = &cluster.nodes[i];
    struct mr_error err = {0};
    struct props props;
    struct member_options options = {
        .kafka = &props,
        .group = cluster.group,
        .url = scratch_text("http://127.0.0.1:%d/", 18000 + i),
        .kind = cluster.kind,
        .session_ms = cluster.session_ms,
        .heartbeat_ms = cluster.session_ms / 10,
        .rebalance_ms = cluster.rebalance_ms,
        .graceful_ms = 5000,
        .max_delay_ms = cluster.delay_ms,
        .sync_ms = 3000,
        .retry_backoff_ms = 100,
        .ghost_file = cluster.ghost_file,
    };

    *node = (struct node){.offset = cluster.offset};
    put_props(&props, scratch_text("node-%d", i));
    node->member = member_new(cluster.loop, &options, &events, node, &err);
    props_deinit(&props);
    if (node->member == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(member_start(node->member, cluster.offset), 0);
    return node;
}

/* As kill -9: no word to anybody. */
static void vanish(int i)
{
    member_free(&cluster.nodes[i].member);
    work_list_deinit(&cluster.nodes[i].held);
}

static void say_goodbye(int i)
{
    memcpy(cluster.leavers[cluster.leaver_count++], cluster.nodes[i].id,
           sizeof(cluster.leavers[0]));
    work_list_deinit(&cluster.nodes[i].held);
    assert_int_equal(member_leave(cluster.nodes[i].member), 0);
}

/* --- running the worker's loop ---------------------------------------------------------------- */

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

static void run_ms(int64_t ms)
{
    struct loop_timer timer = {0};

    loop_timer_start(cluster.loop, &timer, ms, stop_loop, cluster.loop);
    loop_run(cluster.loop);
}

#define run_until(ms, expression) \
    ({ \
        int64_t until_from = clock_ms(); \
        while (!(expression)) { \
            if (clock_ms() - until_from > (ms)) \
                fail_msg("not within %d ms: %s", (int)(ms), #expression); \
            run_ms(2); \
        } \
        clock_ms() - until_from; \
    })

static void end_cluster(void *arg)
{
    (void)arg;
    for (int i = 0; i < NODES; i++)
        vanish(i);
    loop_free(&cluster.loop);
}

static void begin(const char *servers)
{
    memset(&cluster, 0, sizeof(cluster));
    log_set_level(LOG_ERROR);
    cluster.loop = loop_new(NULL);
    cluster.servers = servers;
    cluster.group = scratch_name("group");
    cluster.session_ms = 3000;
    cluster.offset = OFFSET;
    cluster.rebalance_ms = 20000;
    cluster.kind = CONNECT_SESSIONED;
    scratch_at_end(end_cluster, NULL);
}

static void configure(const char *conn, int32_t tasks)
{
    cluster.conn[cluster.conns] = conn;
    cluster.tasks[cluster.conns++] = tasks;
}

static size_t configured(void)
{
    size_t count = 0;

    for (size_t i = 0; i < cluster.conns; i++)
        count += 1 + (size_t)cluster.tasks[i];
    return count;
}

/* Everything is held once, evenly, in one generation. */
static bool settled(void)
{
    size_t held = 0;
    size_t low = SIZE_MAX;
    size_t high = 0;
    int64_t generation = -1;

    for (int i = 0; i < NODES; i++) {
        struct node *node = &cluster.nodes[i];

        if (node->member == NULL || node->left)
            continue;
        if (generation >= 0 && node->generation != generation)
            return false;
        generation = node->generation;
        held += node->held.items;
        low = node->held.items < low ? node->held.items : low;
        high = node->held.items > high ? node->held.items : high;
    }
    return generation > 0 && held == configured() && high - low <= 1;
}

/* --- what the broker says --------------------------------------------------------------------- */

struct described {
    bool done;
    char state[64];
    char type[64];
    char protocol[64];
    size_t members;
    struct buf metadata; /* of the first member */
};

static void on_described(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct described *out = arg;

    if (err != NULL)
        fail_msg("DescribeGroups: %s", err->text);
    out->done = true;
    snprintf(out->state, sizeof(out->state), "%s", answer->describe_group.state);
    snprintf(out->type, sizeof(out->type), "%s", answer->describe_group.protocol_type);
    snprintf(out->protocol, sizeof(out->protocol), "%s", answer->describe_group.protocol);
    out->members = answer->describe_group.member_count;
    if (out->members > 0)
        buf_append(&out->metadata, answer->describe_group.members[0].metadata.data,
                   answer->describe_group.members[0].metadata.len);
}

static void describe(struct described *out)
{
    struct coordinator_to to = {cluster.group, REQUEST_KEY_GROUP};
    struct request request = {.api = REQUEST_DESCRIBE_GROUP, .describe_group = {cluster.group}};
    struct props props;
    struct wire_conf *conf;
    struct wire_client *client;
    struct coordinator *coordinator;

    memset(out, 0, sizeof(*out));
    buf_init(&out->metadata, 1 << 20);
    put_props(&props, "describer");
    conf = wire_conf_new(&props, NULL);
    client = wire_client_new(cluster.loop, conf, NULL);
    coordinator = coordinator_new(client, &to, NULL, NULL, NULL);
    assert_int_equal(
        coordinator_call(coordinator, COORDINATOR_MAIN, &request, 10000, on_described, out, NULL),
        0);
    run_until(10000, out->done);
    coordinator_free(&coordinator);
    wire_client_free(&client);
    wire_conf_free(&conf);
    props_deinit(&props);
}

/* --- one to three members --------------------------------------------------------------------- */

static void one_member_leads_and_is_seen_as_a_connect_worker(void **state)
{
    struct connect_metadata metadata = {
        .version = 2, .url = (char *)"http://127.0.0.1:18000/", .offset = OFFSET};
    struct described described;
    struct buf expected;

    (void)state;
    begin(kafka_run_servers());
    configure("c", 2);
    join(0);
    run_until(ROUND_MS, settled());
    assert_true(cluster.nodes[0].leads);
    assert_int_equal(cluster.nodes[0].kind, CONNECT_SESSIONED);
    assert_true(cluster.nodes[0].hard_ms > clock_boot_ms());
    describe(&described);
    assert_string_equal(described.state, "Stable");
    assert_string_equal(described.type, "connect");
    assert_string_equal(described.protocol, "sessioned");
    assert_int_equal(described.members, 1);
    buf_init(&expected, 1 << 20);
    assert_int_equal(connect_protocol_write_metadata(&expected, &metadata), 0);
    assert_int_equal(described.metadata.len, expected.len);
    assert_memory_equal(described.metadata.data, expected.data, expected.len);
    buf_deinit(&expected);
    buf_deinit(&described.metadata);
}

static void three_members_share_and_a_fourth_takes_only_its_part(void **state)
{
    size_t stopped = 0;

    (void)state;
    begin(kafka_run_servers());
    configure("a", 7);
    configure("b", 4);
    for (int i = 0; i < 3; i++)
        join(i);
    run_until(ROUND_MS, settled());
    for (int i = 0; i < 3; i++)
        stopped += cluster.nodes[i].stopped;
    join(3);
    run_until(ROUND_MS, settled());
    for (int i = 0; i < 4; i++)
        stopped -= cluster.nodes[i].stopped;
    assert_in_range((size_t)0 - stopped, 3, 4);
    assert_int_equal(cluster.nodes[3].stopped, 0);
}

/* Work of one that says goodbye runs elsewhere in a second; the delay of five minutes is not waited
 * for. */
static void goodbye_moves_work_within_a_second(void **state)
{
    size_t stopped;
    int64_t ms;

    (void)state;
    begin(kafka_run_servers());
    cluster.delay_ms = 300000;
    configure("a", 5);
    for (int i = 0; i < 3; i++)
        join(i);
    run_until(ROUND_MS, settled());
    stopped = cluster.nodes[1].stopped;
    say_goodbye(2);
    ms = run_until(ROUND_MS, cluster.nodes[2].left && settled());
    assert_true(ms < 1000);
    say_goodbye(0); /* the leader, as it happens */
    ms = run_until(ROUND_MS, cluster.nodes[0].left && settled());
    assert_true(ms < 1000);
    assert_int_equal(cluster.nodes[1].held.items, 6);
    assert_int_equal(cluster.nodes[1].stopped, stopped);
}

static void a_killed_member_is_replaced_after_session_and_delay(void **state)
{
    int64_t ms;
    int killed;

    (void)state;
    begin(kafka_run_servers());
    cluster.delay_ms = 1000;
    configure("a", 5);
    for (int i = 0; i < 3; i++)
        join(i);
    run_until(ROUND_MS, settled());
    killed = cluster.nodes[0].leads ? 1 : 0; /* a follower: the leader knows what is missing */
    vanish(killed);
    ms = run_until(ROUND_MS, settled());
    assert_in_range(ms, 3000, 3000 + 1000 + 1000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster.nodes[i].lost, 0);
}

/* Killed and started again, the members of before are in the way for a session: unless they are
 * made to leave. */
static void the_ghost_of_a_killed_member_does_not_hold_up_its_successor(void **state)
{
    int64_t ms;

    (void)state;
    begin(kafka_run_servers());
    cluster.session_ms = 10000;
    cluster.ghost_file = scratch_path("member");
    configure("a", 3);
    join(0);
    run_until(ROUND_MS, settled());
    vanish(0);
    join(0);
    ms = run_until(ROUND_MS, settled());
    assert_true(ms < 1500);
}

/* --- parked joins ----------------------------------------------------------------------------- */

/* One member does not act on its assignment for longer than a session; the others wait in
 * JoinGroup, and keep their lease. */
static void a_slow_member_costs_the_others_no_lease(void **state)
{
    int64_t generation;
    int64_t end;

    (void)state;
    begin(kafka_run_servers());
    cluster.session_ms = 2000;
    configure("a", 5);
    for (int i = 0; i < 3; i++)
        join(i);
    run_until(ROUND_MS, settled());
    generation = cluster.nodes[1].generation;
    cluster.nodes[1].stuck = true;
    join(3);
    run_until(ROUND_MS, cluster.nodes[1].generation > generation && cluster.nodes[3].rounds > 0);
    end = clock_ms() + 5000;
    report(&cluster.nodes[0], -1, "test");
    while (clock_ms() < end) {
        run_ms(50);
        for (int i = 0; i < 4; i++)
            assert_true(cluster.nodes[i].hard_ms > clock_boot_ms());
    }
    cluster.nodes[1].stuck = false;
    report(&cluster.nodes[1], cluster.nodes[1].generation, "at last");
    run_until(ROUND_MS, settled());
    for (int i = 0; i < 4; i++)
        assert_int_equal(cluster.nodes[i].lost, 0);
}

/* --- faults ----------------------------------------------------------------------------------- */

static void a_broker_that_restarts_costs_no_work(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    size_t stopped[2];
    int64_t generation;

    (void)state;
    begin(kafka_run_servers_of(kafka));
    cluster.session_ms = 10000;
    configure("a", 5);
    for (int i = 0; i < 2; i++)
        join(i);
    run_until(ROUND_MS, settled());
    generation = cluster.nodes[0].generation;
    for (int i = 0; i < 2; i++)
        stopped[i] = cluster.nodes[i].stopped;
    kafka_run_do(kafka, "kill 1");
    run_ms(500);
    kafka_run_do(kafka, "restart 1");
    configure("b", 2);
    report(&cluster.nodes[0], -1, "a connector came");
    report(&cluster.nodes[1], -1, "a connector came");
    run_until(30000, cluster.nodes[0].generation > generation && settled());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cluster.nodes[i].stopped, stopped[i]);
        assert_int_equal(cluster.nodes[i].lost, 0);
    }
}

/* Java: 120 rounds a second. */
static void a_member_whose_offset_is_ahead_makes_no_storm(void **state)
{
    struct node *leader = &cluster.nodes[0];
    struct node *ahead = &cluster.nodes[1];
    int64_t ms;

    (void)state;
    begin(kafka_run_servers());
    configure("a", 3);
    join(0);
    run_until(ROUND_MS, settled());
    join(1);
    run_until(ROUND_MS, settled());
    assert_true(leader->leads);
    leader->cannot_read = true;
    leader->rounds = 0;
    ahead->offset = OFFSET + 5000;
    report(ahead, -1, "it is ahead");
    run_ms(2000);
    assert_in_range(leader->mismatches, 1, 8);
    assert_int_equal(leader->rounds, leader->mismatches);
    ahead->offset = OFFSET;
    report(ahead, -1, NULL);
    ms = run_until(ROUND_MS, settled() && leader->rounds > leader->mismatches);
    assert_true(ms < 6000);
}

struct consumer {
    struct coordinator *coordinator;
    bool joined;
};

static void ask_to_join(struct consumer *consumer, const char *member);

static void on_consumer(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct consumer *consumer = arg;

    assert_null(err);
    if (answer->error == KAFKA_CODE_MEMBER_ID_REQUIRED)
        ask_to_join(consumer, answer->join_group.member);
    else
        consumer->joined = answer->error == 0;
}

static void ask_to_join(struct consumer *consumer, const char *member)
{
    struct request_protocol range = {"range", {(const uint8_t *)"", 0}};
    struct request request = {
        .api = REQUEST_JOIN_GROUP,
        .join_group = {cluster.group, 10000, 10000, member, "consumer", &range, 1}};

    assert_int_equal(coordinator_call(consumer->coordinator, COORDINATOR_MAIN, &request, 10000,
                                      on_consumer, consumer, NULL),
                     0);
}

static void a_group_of_consumers_is_refused_in_words(void **state)
{
    struct coordinator_to to;
    struct consumer consumer = {0};
    struct props props;
    struct wire_conf *conf;
    struct wire_client *client;

    (void)state;
    begin(kafka_run_servers());
    put_props(&props, "consumer");
    to = (struct coordinator_to){cluster.group, REQUEST_KEY_GROUP};
    conf = wire_conf_new(&props, NULL);
    client = wire_client_new(cluster.loop, conf, NULL);
    consumer.coordinator = coordinator_new(client, &to, NULL, NULL, NULL);
    ask_to_join(&consumer, "");
    run_until(ROUND_MS, consumer.joined);
    join(0);
    run_until(ROUND_MS, cluster.nodes[0].failed);
    assert_non_null(strstr(cluster.nodes[0].error, "INCONSISTENT_GROUP_PROTOCOL"));
    coordinator_free(&consumer.coordinator);
    wire_client_free(&client);
    wire_conf_free(&conf);
    props_deinit(&props);
}

/* --- other protocols, other workers ----------------------------------------------------------- */

static void an_eager_member_downgrades_the_group_and_nothing_runs_twice(void **state)
{
    (void)state;
    begin(kafka_run_servers());
    configure("a", 5);
    join(0);
    run_until(ROUND_MS, settled());
    cluster.kind = CONNECT_EAGER;
    join(1);
    run_until(ROUND_MS, settled());
    assert_int_equal(cluster.nodes[0].kind, CONNECT_EAGER);
    assert_int_equal(cluster.nodes[0].stopped, 6); /* all, before the others were given theirs */
    vanish(1);
    run_until(ROUND_MS, settled());
    assert_int_equal(cluster.nodes[0].kind, CONNECT_SESSIONED);
}

/* kafka.sh for the test's own broker, while the members' herders go on. Gives what it printed. */
static const char *script(const char *verb)
{
    const char *log = scratch_path(scratch_name("script"));
    const char *command =
        scratch_text("CONNECT_EXTRA='exactly.once.source.support=disabled' KAFKA_RUN='%s' "
                     "'%s/tests/kafka/kafka.sh' %s",
                     scratch_path("kafka"), TEST_SOURCE, verb);
    const char *argv[] = {"bash", "-c", command, NULL};
    struct process *process = process_start(argv, log, NULL);

    run_until(100000, !process_running(process));
    return scratch_read(log, NULL);
}

/* A Java worker of the group "mixed"; its URL. */
static const char *java_worker(void)
{
    const char *out = script("connect mixed");
    const char *url = strstr(out, "http://");

    if (url == NULL)
        fail_msg("the Java worker did not start: %s", out);
    return scratch_text("%.*s", (int)strcspn(url, "\n"), url);
}

static const char *const java_conns[] = {"f1", "f2", "f3"};

static const char *state_of(const char *url, const char *conn, const char *path)
{
    return http_at(http_get(scratch_text("%s/connectors/%s/status", url, conn)).json, path);
}

static void make_connectors(const char *url)
{
    for (int i = 0; i < 3; i++) {
        const char *body =
            scratch_text("{\"name\": \"%s\", \"config\": {\"connector.class\": "
                         "\"FileStreamSource\", \"tasks.max\": \"1\", \"file\": \"%s\", "
                         "\"topic\": \"%s\"}}",
                         java_conns[i], scratch_path("in.txt"), scratch_name("topic"));

        assert_int_equal(http_call("POST", scratch_text("%s/connectors", url), body).status, 201);
    }
    for (int i = 0; i < 3; i++)
        run_until(30000, strcmp(state_of(url, java_conns[i], "tasks.0.state"), "RUNNING") == 0);
}

static bool java_runs_what_node_does_not(const char *url)
{
    for (int i = 0; i < 3; i++)
        if (!work_list_has(&cluster.nodes[0].held, java_conns[i], 0) &&
            strcmp(state_of(url, java_conns[i], "tasks.0.state"), "RUNNING") != 0)
            return false;
    return true;
}

static size_t node_tasks(void)
{
    size_t count = 0;

    for (int i = 0; i < 3; i++)
        count += work_list_has(&cluster.nodes[0].held, java_conns[i], 0);
    return count;
}

/* Java leads: it gives our member its part, and takes it back when that leaves. Then ours leads,
 * and gives Java its part. */
static void java_and_ours_share_a_group_whoever_leads(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    const char *url;

    (void)state;
    begin(kafka_run_servers_of(kafka));
    cluster.group = "mixed";
    cluster.session_ms = 10000;
    url = java_worker();
    make_connectors(url);
    cluster.offset = -1; /* too low does no harm: the assignment tells */
    join(0);
    /* Java keeps one of three of each kind more. */
    run_until(30000, cluster.nodes[0].held.items == 2);
    assert_false(cluster.nodes[0].leads);
    assert_int_equal(cluster.nodes[0].kind, CONNECT_SESSIONED);
    assert_int_equal(node_tasks(), 1);
    say_goodbye(0);
    run_until(30000, cluster.nodes[0].left && java_runs_what_node_does_not(url));
    script("end mixed");
    vanish(0);
    for (int i = 0; i < 3; i++)
        configure(java_conns[i], 1);
    join(0);
    run_until(30000, cluster.nodes[0].held.items == 6);
    assert_true(cluster.nodes[0].leads);
    url = java_worker();
    run_until(30000, cluster.nodes[0].held.items == 3 && java_runs_what_node_does_not(url));
    assert_true(cluster.nodes[0].leads);
    assert_in_range(node_tasks(), 1, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scratch_test(one_member_leads_and_is_seen_as_a_connect_worker),
        scratch_test(three_members_share_and_a_fourth_takes_only_its_part),
        scratch_test(goodbye_moves_work_within_a_second),
        scratch_test(a_killed_member_is_replaced_after_session_and_delay),
        scratch_test(the_ghost_of_a_killed_member_does_not_hold_up_its_successor),
        scratch_test(a_slow_member_costs_the_others_no_lease),
        scratch_test(a_broker_that_restarts_costs_no_work),
        scratch_test(a_member_whose_offset_is_ahead_makes_no_storm),
        scratch_test(a_group_of_consumers_is_refused_in_words),
        scratch_test(an_eager_member_downgrades_the_group_and_nothing_runs_twice),
        scratch_test(java_and_ours_share_a_group_whoever_leads),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
