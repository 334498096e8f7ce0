/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator, wire_client, wire_route: a coordinator that is found, moves, is gone, or never was;
 * bootstrap brokers that are down; calls that wait, and each told once. Two stubs play two
 * brokers. */
#include "wire_rig.h"

#include "base/clock.h"
#include "wire/coordinator.h"
#include "wire/kafka_code.h"

static struct stub_broker *other;
static struct wire_client *client;
static struct coordinator *coordinator;
static int known_count;
static int lost_count;
static char lost_text[1008];

/* What both brokers do; changed by tests, read by the stubs' threads. */
struct cluster {
    atomic_int port;       /* of the coordinator; 0: it is the one that was asked */
    atomic_int find_error; /* of FindCoordinator */
    atomic_int find_times; /* that many times, then none */
    atomic_int finds;      /* asked so far */
    atomic_int code[2];    /* of group requests, by broker */
    atomic_int code_times; /* that many times, then 0 */
    atomic_int group[2];   /* group requests so far, by broker */
    atomic_int mute;       /* group requests get no answer */
    atomic_int close;      /* group requests end the connection, that many times */
    atomic_int metadata_port;
    atomic_int deaf; /* 1 + the broker that never answers FindCoordinator */
};

static struct cluster cluster;

struct broker {
    int number;
    int port;
};

static struct broker brokers[2] = {{.number = 0}, {.number = 1}};

static void answer_find(struct broker *me, struct stub_reply *reply)
{
    int port = cluster.port != 0 ? cluster.port : me->port;
    int error = 0;

    cluster.finds++;
    if (cluster.find_times > 0) {
        cluster.find_times--;
        error = cluster.find_error;
    }
    codec_put_i32(&reply->body, 0);
    codec_put_i16(&reply->body, (int16_t)error);
    codec_put_text(&reply->body, error != 0 ? "words of the broker" : NULL);
    codec_put_i32(&reply->body, error != 0 ? -1 : 1);
    codec_put_text(&reply->body, error != 0 ? "" : "127.0.0.1");
    codec_put_i32(&reply->body, error != 0 ? -1 : port);
}

static void answer(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct broker *me = arg;
    int metadata_port = cluster.metadata_port;
    int code = cluster.code[me->number];

    if (request->key == 10) {
        answer_find(me, reply);
        reply->nothing = cluster.deaf == me->number + 1;
        return;
    }
    if (request->key == 18 || request->key == 3) {
        stub_broker_fine(&metadata_port, request, reply);
        return;
    }
    cluster.group[me->number]++;
    if (cluster.close > 0) {
        cluster.close--;
        reply->nothing = true;
        reply->close = true;
        return;
    }
    reply->nothing = cluster.mute != 0;
    if (code != 0 && cluster.code_times > 0) {
        cluster.code_times--;
        codec_put_i32(&reply->body, 0);
        codec_put_i16(&reply->body, (int16_t)code);
        return;
    }
    stub_broker_fine(NULL, request, reply);
}

static void on_changed(void *arg, const struct mr_error *err)
{
    if (err == NULL) {
        known_count++;
        return;
    }
    lost_count++;
    snprintf(lost_text, sizeof(lost_text), "%s", err->text);
}

static void make(const struct wire_conf *conf)
{
    static const struct coordinator_events events = {.changed = on_changed};

    client = wire_client_new(rig_loop, conf, NULL);
    coordinator =
        coordinator_new(client, &(struct coordinator_to){.key = "g", .type = REQUEST_KEY_GROUP},
                        &events, NULL, NULL);
    assert_true(client != NULL && coordinator != NULL);
}

static int setup(void **state)
{
    rig_setup(state);
    memset((void *)&cluster, 0, sizeof(cluster));
    known_count = 0;
    lost_count = 0;
    lost_text[0] = '\0';
    rig_stub = stub_broker_start(&(struct stub_options){.answer = answer, .arg = &brokers[0]});
    other = stub_broker_start(&(struct stub_options){.answer = answer, .arg = &brokers[1]});
    brokers[0].port = stub_broker_port(rig_stub);
    brokers[1].port = stub_broker_port(other);
    return 0;
}

static int teardown(void **state)
{
    coordinator_free(&coordinator);
    wire_client_free(&client);
    stub_broker_stop(&other);
    return rig_teardown(state);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void call_on(enum coordinator_lane lane, int64_t timeout_ms, struct rig_call *c)
{
    struct request request = rig_heartbeat();
    struct mr_error err = {0};

    if (coordinator_call(coordinator, lane, &request, timeout_ms, rig_note, c, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(c->told, 0);
}

static struct rig_call ask(void)
{
    struct rig_call c = {0};

    call_on(COORDINATOR_MAIN, 5000, &c);
    rig_await(&c);
    return c;
}

static bool is_known(void *arg)
{
    return known_count > *(int *)arg;
}

static bool is_lost(void *arg)
{
    return lost_count > *(int *)arg;
}

/* Whoever has not yet been told that it is known is not told that it was lost. */
static void ask_until_known(void)
{
    assert_int_equal(ask().error, 0);
    rig_run_until(is_known, &(int){0}, "known");
}

/* --- found ------------------------------------------------------------------------------------ */

static void the_coordinator_is_found_when_it_is_needed(void **state)
{
    char name[32];

    make(rig_conf(NULL));
    cluster.port = brokers[1].port;
    rig_run_for(30);
    assert_int_equal(stub_broker_connections(rig_stub), 0);
    assert_false(coordinator_known(coordinator));
    assert_string_equal(coordinator_name(coordinator), "");
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.group[0], 0);
    assert_int_equal(cluster.group[1], 1);
    assert_true(coordinator_known(coordinator));
    snprintf(name, sizeof(name), "127.0.0.1:%d", brokers[1].port);
    assert_string_equal(coordinator_name(coordinator), name);
    rig_run_until(is_known, &(int){0}, "known");
    assert_int_equal(lost_count, 0);
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.finds, 1);
    assert_string_equal(wire_client_cluster_id(client), "the-cluster");
}

static void lanes_are_two_connections(void **state)
{
    struct rig_call parked = {0};
    struct rig_call beat = {0};

    make(rig_conf(NULL));
    cluster.mute = 1;
    call_on(COORDINATOR_MAIN, 5000, &parked);
    while (cluster.group[0] == 0)
        rig_run_for(2);
    cluster.mute = 0;
    call_on(COORDINATOR_SIDE, 5000, &beat);
    rig_await(&beat);
    assert_int_equal(beat.error, 0);
    assert_int_equal(parked.told, 0);
    assert_int_equal(cluster.finds, 1);
    assert_int_equal(stub_broker_connections(rig_stub), 3);
    coordinator_free(&coordinator);
    assert_int_equal(parked.failed, MR_ERR_CLOSED);
}

static void finding_goes_on_while_no_coordinator_is_named(void **state)
{
    make(rig_conf("retry.backoff.ms", "5", NULL));
    cluster.find_error = KAFKA_CODE_COORDINATOR_NOT_AVAILABLE;
    cluster.find_times = 3;
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.finds, 4);
}

static void a_group_that_may_not_be_used_is_fatal(void **state)
{
    struct rig_call c;

    make(rig_conf(NULL));
    cluster.find_error = KAFKA_CODE_GROUP_AUTHORIZATION_FAILED;
    cluster.find_times = 1;
    c = ask();
    assert_int_equal(c.failed, MR_ERR_FATAL);
    rig_has(c.text, "GROUP_AUTHORIZATION_FAILED");
    rig_has(c.text, "words of the broker");
    rig_has(c.text, "ACLs");
    assert_int_equal(ask().error, 0); /* the next one is tried anew */
}

static void the_reason_is_told_when_the_time_is_over(void **state)
{
    struct rig_call c = {0};
    int64_t from_ms = clock_ms();

    make(rig_conf("retry.backoff.ms", "5", NULL));
    cluster.find_error = KAFKA_CODE_COORDINATOR_NOT_AVAILABLE;
    cluster.find_times = 1000000;
    call_on(COORDINATOR_SIDE, 1000, &c);
    rig_await(&c);
    assert_int_equal(c.failed, MR_ERR_IO);
    rig_has(c.text, "Heartbeat could not be sent within 1000 ms");
    rig_has(c.text, "COORDINATOR_NOT_AVAILABLE");
    assert_true(clock_ms() - from_ms >= 1000 && clock_ms() - from_ms < 6000);
    rig_run_for(20);
    from_ms = cluster.finds;
    rig_run_for(60);
    assert_true(cluster.finds - from_ms <= 1); /* nobody waits: nobody looks */
}

/* --- moved and lost --------------------------------------------------------------------------- */

static void a_coordinator_that_moved_is_followed(void **state)
{
    static const int codes[] = {KAFKA_CODE_NOT_COORDINATOR, KAFKA_CODE_COORDINATOR_NOT_AVAILABLE};

    for (int i = 0; i < 2; i++) {
        known_count = 0;
        lost_count = 0;
        make(rig_conf(NULL));
        cluster.port = brokers[0].port;
        cluster.finds = 0;
        ask_until_known();
        cluster.port = brokers[1].port;
        cluster.code[0] = codes[i];
        cluster.code_times = 1;
        assert_int_equal(ask().error, codes[i]); /* handed on */
        assert_false(coordinator_known(coordinator));
        rig_run_until(is_lost, &(int){0}, "lost");
        rig_has(lost_text, kafka_code_name((int16_t)codes[i]));
        assert_int_equal(ask().error, 0);
        assert_int_equal(cluster.group[1], i + 1);
        assert_int_equal(cluster.finds, 2);
        coordinator_free(&coordinator);
        wire_client_free(&client);
    }
}

static void other_codes_lose_nobody(void **state)
{
    make(rig_conf(NULL));
    assert_int_equal(ask().error, 0);
    cluster.code[0] = KAFKA_CODE_REBALANCE_IN_PROGRESS;
    cluster.code_times = 1;
    assert_int_equal(ask().error, KAFKA_CODE_REBALANCE_IN_PROGRESS);
    assert_true(coordinator_known(coordinator));
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.finds, 1);
}

static void a_lost_connection_fails_what_was_sent_and_is_made_anew(void **state)
{
    struct rig_call c;

    make(rig_conf("reconnect.backoff.ms", "1", NULL));
    ask_until_known();
    cluster.close = 1;
    c = ask();
    assert_int_equal(c.failed, MR_ERR_CLOSED);
    assert_int_equal(cluster.group[0], 2); /* not sent twice */
    rig_run_until(is_lost, &(int){0}, "lost");
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.finds, 2);
}

static void a_dead_broker_is_left_for_a_living_one(void **state)
{
    struct rig_call c = {0};
    char servers[64];

    snprintf(servers, sizeof(servers), "127.0.0.1:%d,127.0.0.1:%d", brokers[0].port,
             brokers[1].port);
    make(rig_conf("bootstrap.servers", servers, "reconnect.backoff.ms", "1", "retry.backoff.ms",
                  "5", NULL));
    cluster.port = brokers[0].port;
    assert_int_equal(ask().error, 0);
    cluster.mute = 1;
    call_on(COORDINATOR_MAIN, 8000, &c);
    while (cluster.group[0] < 2)
        rig_run_for(2);
    stub_broker_stop(&rig_stub);
    rig_await(&c);
    assert_int_equal(c.failed, MR_ERR_CLOSED);
    /* The cluster goes on naming the dead one for a while. */
    memset(&c, 0, sizeof(c));
    cluster.mute = 0;
    call_on(COORDINATOR_MAIN, 8000, &c);
    while (cluster.finds < 3)
        rig_run_for(2);
    assert_int_equal(c.told, 0);
    cluster.port = brokers[1].port;
    rig_await(&c);
    assert_int_equal(c.error, 0);
    assert_int_equal(cluster.group[1], 1);
}

static void the_member_may_say_that_it_is_lost(void **state)
{
    struct rig_call c = {0};

    make(rig_conf(NULL));
    ask_until_known();
    cluster.mute = 1;
    call_on(COORDINATOR_MAIN, 5000, &c);
    coordinator_lost(coordinator, "no heartbeat was answered");
    assert_int_equal(c.told, 1);
    assert_int_equal(c.failed, MR_ERR_CLOSED);
    assert_int_equal(lost_count, 0); /* not from inside */
    rig_run_until(is_lost, &(int){0}, "lost");
    rig_has(lost_text, "no heartbeat was answered");
    cluster.mute = 0;
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.finds, 2);
    coordinator_lost(coordinator, "again");
    coordinator_lost(coordinator, "and again");
    rig_run_until(is_lost, &(int){1}, "lost");
}

static void an_idle_side_lane_may_close(void **state)
{
    struct rig_call c = {0};

    make(rig_conf("reconnect.backoff.ms", "1", NULL));
    assert_int_equal(ask().error, 0);
    cluster.close = 1;
    call_on(COORDINATOR_SIDE, 5000, &c);
    rig_await(&c);
    assert_int_equal(c.failed, MR_ERR_CLOSED);
    assert_true(coordinator_known(coordinator));
    memset(&c, 0, sizeof(c));
    call_on(COORDINATOR_SIDE, 5000, &c);
    rig_await(&c);
    assert_int_equal(c.error, 0);
    assert_int_equal(cluster.finds, 1);
}

static void a_deadline_ends_its_lane_and_no_call_of_the_other(void **state)
{
    struct rig_call slow = {0};
    struct rig_call quick = {0};
    struct rig_call behind = {0};

    make(rig_conf(NULL));
    assert_int_equal(ask().error, 0);
    cluster.mute = 1;
    call_on(COORDINATOR_MAIN, 8000, &slow);
    call_on(COORDINATOR_SIDE, 150, &quick);
    call_on(COORDINATOR_SIDE, 8000, &behind);
    rig_await(&quick);
    rig_await(&behind);
    assert_int_equal(quick.failed, MR_ERR_TIMEOUT);
    assert_int_equal(behind.failed, MR_ERR_CLOSED);
    assert_int_equal(slow.told, 0);
    assert_true(coordinator_known(coordinator));
    coordinator_free(&coordinator);
    assert_int_equal(slow.failed, MR_ERR_CLOSED);
}

/* --- bootstrap -------------------------------------------------------------------------------- */

static int dead_port(void)
{
    struct stub_broker *stub = stub_broker_start(&(struct stub_options){0});
    int port = stub_broker_port(stub);

    stub_broker_stop(&stub);
    return port;
}

static void one_of_bootstrap_servers_is_enough(void **state)
{
    char servers[128];
    int dead = dead_port();

    snprintf(servers, sizeof(servers),
             "127.0.0.1:%d,no-such-host.invalid:1,127.0.0.1:%d,localhost:%d", dead, brokers[0].port,
             dead);
    for (int i = 0; i < 5; i++) {
        make(rig_conf("bootstrap.servers", servers, "reconnect.backoff.ms", "5", NULL));
        assert_int_equal(ask().error, 0);
        coordinator_free(&coordinator);
        wire_client_free(&client);
    }
}

static void a_broker_that_answers_no_lookup_is_left_for_another(void **state)
{
    char servers[64];

    snprintf(servers, sizeof(servers), "127.0.0.1:%d,127.0.0.1:%d", brokers[0].port,
             brokers[1].port);
    cluster.deaf = 1;
    cluster.port = brokers[1].port;
    for (int i = 0; i < 4; i++) { /* either may be asked first */
        make(rig_conf("bootstrap.servers", servers, "request.timeout.ms", "150", NULL));
        assert_int_equal(ask().error, 0);
        coordinator_free(&coordinator);
        wire_client_free(&client);
    }
}

static void brokers_that_are_learnt_take_over(void **state)
{
    make(rig_conf("reconnect.backoff.ms", "1", NULL));
    cluster.port = brokers[0].port;
    cluster.metadata_port = brokers[1].port;
    ask_until_known();
    while (wire_client_cluster_id(client) == NULL)
        rig_run_for(2);
    cluster.port = brokers[1].port;
    stub_broker_stop(&rig_stub); /* the coordinator, and the only one of bootstrap.servers */
    rig_run_until(is_lost, &(int){0}, "lost");
    assert_int_equal(ask().error, 0);
    assert_int_equal(cluster.group[1], 1);
}

static void nobody_there_costs_few_attempts(void **state)
{
    struct rig_call c = {0};
    char servers[64];

    snprintf(servers, sizeof(servers), "127.0.0.1:%d", dead_port());
    make(rig_conf("bootstrap.servers", servers, NULL));
    call_on(COORDINATOR_MAIN, 1000, &c);
    rig_await(&c);
    assert_int_equal(c.failed, MR_ERR_IO);
    rig_has(c.text, "refused");
    rig_has(c.text, servers);
}

static void a_login_that_breaks_off_is_tried_again_with_back_off(void **state)
{
    struct rig_call c = {0};
    int64_t from_ms = clock_ms();

    make(rig_conf("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "SCRAM-SHA-512",
                  "sasl.jaas.config", "ScramLoginModule required username=u password=p;", NULL));
    /* The stubs answer tokens with code 0 and nothing in it. */
    call_on(COORDINATOR_MAIN, 30000, &c);
    rig_run_for(300);
    assert_int_equal(c.told, 0); /* a malformed login may be an accident: again, with back-off */
    assert_true(stub_broker_connections(rig_stub) < 20);
    coordinator_free(&coordinator);
    assert_int_equal(c.failed, MR_ERR_CLOSED);
    assert_true(clock_ms() - from_ms < 5000);
}

/* --- limits and being freed ------------------------------------------------------------------- */

static void only_so_many_calls_wait(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c[64] = {0};
    struct mr_error err = {0};

    make(rig_conf(NULL));
    for (int i = 0; i < 64; i++)
        call_on(COORDINATOR_MAIN, 5000, &c[i]);
    assert_int_equal(
        coordinator_call(coordinator, COORDINATOR_MAIN, &request, 5000, rig_note, &c[0], &err),
        MR_ERR_FULL);
    for (int i = 0; i < 64; i++) {
        rig_await(&c[i]);
        assert_int_equal(c[i].error, 0);
    }
}

static void free_all(void *arg)
{
    coordinator_free(&coordinator);
    wire_client_free(&client);
}

static void any_answer_may_free_everything(void **state)
{
    static const char *const ways[] = {"fine", "code", "closed", "fatal", "timeout", "waiting"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct rig_call c = {.then = free_all};
        struct rig_call behind = {0};
        struct rig_call side = {0};

        memset((void *)&cluster, 0, sizeof(cluster));
        make(rig_conf("retry.backoff.ms", "5", NULL));
        if (i != 3 && i != 5)
            assert_int_equal(ask().error, 0);
        cluster.code[0] = i == 1 ? KAFKA_CODE_NOT_COORDINATOR : 0;
        cluster.code_times = 1;
        cluster.close = i == 2;
        cluster.mute = i == 4;
        cluster.find_error =
            i == 3 ? KAFKA_CODE_GROUP_AUTHORIZATION_FAILED : KAFKA_CODE_COORDINATOR_NOT_AVAILABLE;
        cluster.find_times = i == 3 || i == 5 ? 1000 : 0;
        call_on(COORDINATOR_MAIN, i >= 4 ? 50 : 5000, &c);
        call_on(COORDINATOR_MAIN, 5000, &behind);
        call_on(COORDINATOR_SIDE, 5000, &side);
        rig_await(&c);
        rig_await(&behind);
        rig_await(&side);
        assert_null(coordinator);
        rig_run_for(20);
        if (i == 0)
            assert_int_equal(c.error, 0);
    }
}

/* --- chaos ------------------------------------------------------------------------------------ */

#define CHAOS_CALLS 400
/* How long after its deadline a call may be told at most: the machine may be busy. */
#define CHAOS_MS 3000

struct chaos_call {
    struct rig_call call;
    int64_t due_ms;
    int64_t told_ms;
};

static unsigned chaos_seed;

static int chaos_roll(int below)
{
    static __thread unsigned own;

    if (own == 0)
        own = chaos_seed ^ (unsigned)(uintptr_t)&own;
    return rand_r(&own) % below;
}

/* Mostly right; one in five something else. */
static void chaotic(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct broker *me = arg;
    int port = brokers[chaos_roll(2)].port;

    if (request->key == 10)
        answer_find(&brokers[chaos_roll(2)], reply);
    else
        stub_broker_fine(&port, request, reply);
    switch (chaos_roll(me->number == 0 ? 30 : 40)) {
    case 0:
        reply->close = true;
        break;
    case 1:
        reply->nothing = true;
        reply->close = true;
        break;
    case 2:
        reply->nothing = true;
        break;
    case 3:
        reply->add = 1;
        break;
    case 4:
        reply->pieces = true;
        break;
    case 5:
        reply->raw = true; /* the body without a header */
        break;
    case 6:
        buf_consume(&reply->body, 1);
        break;
    case 7:
        buf_reset(&reply->body);
        codec_put_i32(&reply->body, chaos_roll(3));
        codec_put_i16(&reply->body, (int16_t)(14 + chaos_roll(3)));
        break;
    default:
        break;
    }
}

static void chaos_told(void *arg)
{
    ((struct chaos_call *)arg)->told_ms = clock_ms();
}

static bool all_told(void *arg)
{
    struct chaos_call *calls = arg;

    for (int i = 0; i < CHAOS_CALLS; i++)
        if (calls[i].due_ms != 0 && calls[i].call.told == 0)
            return false;
    return true;
}

static void whatever_brokers_do_each_call_is_told_once_and_in_time(void **state)
{
    static struct chaos_call calls[CHAOS_CALLS];
    const char *given = getenv("SEED");
    int answers = 0;

    chaos_seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)clock_wall_ms();
    print_message("SEED=%u\n", chaos_seed);
    memset(calls, 0, sizeof(calls));
    stub_broker_stop(&other);
    stub_broker_stop(&rig_stub);
    rig_stub = stub_broker_start(&(struct stub_options){.answer = chaotic, .arg = &brokers[0]});
    other = stub_broker_start(&(struct stub_options){.answer = chaotic, .arg = &brokers[1]});
    brokers[0].port = stub_broker_port(rig_stub);
    brokers[1].port = stub_broker_port(other);
    make(rig_conf("reconnect.backoff.ms", "1", "reconnect.backoff.max.ms", "20", "retry.backoff.ms",
                  "2", "request.timeout.ms", "100", "socket.connection.setup.timeout.ms", "100",
                  NULL));
    for (int i = 0; i < CHAOS_CALLS; i++) {
        struct request request = chaos_roll(2) == 0 ? rig_heartbeat() : rig_join();
        int64_t ms = 5 + chaos_roll(200);

        calls[i].call.then = chaos_told;
        calls[i].call.then_arg = &calls[i];
        if (coordinator_call(coordinator, (enum coordinator_lane)chaos_roll(2), &request, ms,
                             rig_note, &calls[i], NULL) == 0)
            calls[i].due_ms = clock_ms() + ms;
        if (chaos_roll(40) == 0)
            coordinator_lost(coordinator, "chaos");
        rig_run_for(chaos_roll(6));
    }
    rig_run_until(all_told, calls, "all calls told");
    for (int i = 0; i < CHAOS_CALLS; i++) {
        answers += calls[i].due_ms != 0 && calls[i].call.failed == 0;
        if (calls[i].due_ms != 0 && calls[i].told_ms > calls[i].due_ms + CHAOS_MS)
            fail_msg("told %d ms late: %s", (int)(calls[i].told_ms - calls[i].due_ms),
                     calls[i].call.text);
    }
    assert_true(answers > CHAOS_CALLS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_coordinator_is_found_when_it_is_needed),
        test(lanes_are_two_connections),
        test(finding_goes_on_while_no_coordinator_is_named),
        test(a_group_that_may_not_be_used_is_fatal),
        test(the_reason_is_told_when_the_time_is_over),
        test(a_coordinator_that_moved_is_followed),
        test(other_codes_lose_nobody),
        test(a_lost_connection_fails_what_was_sent_and_is_made_anew),
        test(a_dead_broker_is_left_for_a_living_one),
        test(the_member_may_say_that_it_is_lost),
        test(an_idle_side_lane_may_close),
        test(a_deadline_ends_its_lane_and_no_call_of_the_other),
        test(one_of_bootstrap_servers_is_enough),
        test(a_broker_that_answers_no_lookup_is_left_for_another),
        test(brokers_that_are_learnt_take_over),
        test(nobody_there_costs_few_attempts),
        test(a_login_that_breaks_off_is_tried_again_with_back_off),
        test(only_so_many_calls_wait),
        test(any_answer_may_free_everything),
        test(whatever_brokers_do_each_call_is_told_once_and_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
