/* SPDX-License-Identifier: Apache-2.0 */
/* The room wire/ against a real broker: what a group's coordinator answers to each request in each
 * situation, two lanes, blocking calls, offsets. The error codes are those that a Java client's
 * requests got. */
#include "base/clock.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/unit/secure_kafka.h"
#include "wire/kafka_code.h"
#include "wire/wire_call.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 20000
#define SESSION_MS 10000

/* --- one client ------------------------------------------------------------------------------- */

/* What an answer said, copied. */
struct got {
    bool told;
    int failure; /* of the call; 0: an answer */
    char text[1008];
    int error;
    int generation;
    char protocol[64];
    char leader[256];
    char member[256];
    size_t members;
    char assignment[256];
    int64_t sent_boot_ms;
    struct loop *loop;
};

struct peer {
    struct loop *loop;
    struct wire_conf *conf;
    struct wire_client *client;
    struct coordinator *coordinator;
    const char *group;
};

static struct loop *loop;

static void note(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct got *got = arg;

    assert_true((answer == NULL) != (err == NULL));
    assert_false(got->told);
    got->told = true;
    loop_stop(got->loop);
    if (err != NULL) {
        got->failure = err->code;
        snprintf(got->text, sizeof(got->text), "%s", err->text);
        return;
    }
    got->error = answer->error;
    got->sent_boot_ms = answer->sent_boot_ms;
    if (answer->api == REQUEST_JOIN_GROUP) {
        got->generation = answer->join_group.generation;
        snprintf(got->protocol, sizeof(got->protocol), "%s", answer->join_group.protocol);
        snprintf(got->leader, sizeof(got->leader), "%s", answer->join_group.leader);
        snprintf(got->member, sizeof(got->member), "%s", answer->join_group.member);
        got->members = answer->join_group.member_count;
    }
    if (answer->api == REQUEST_SYNC_GROUP)
        snprintf(got->assignment, sizeof(got->assignment), "%.*s",
                 (int)answer->sync_group.assignment.len,
                 (const char *)answer->sync_group.assignment.data);
}

static void give_up(void *arg)
{
    loop_stop(arg);
}

/* Run the loop until it was told. */
static void await(struct got *got)
{
    struct loop_timer timer = {0};

    loop_timer_start(loop, &timer, CALL_MS + 5000, give_up, loop);
    while (!got->told && timer.slot != 0)
        loop_run(loop);
    loop_timer_cancel(&timer);
    if (!got->told)
        fail_msg("no answer, and no failure either");
    if (got->failure != 0)
        print_message("%s\n", got->text);
}

static void start_on(struct peer *p, enum coordinator_lane lane, const struct request *request,
                     struct got *got)
{
    struct mr_error err = {0};

    *got = (struct got){.loop = loop};
    if (coordinator_call(p->coordinator, lane, request, CALL_MS, note, got, &err) != 0)
        fail_msg("%s", err.text);
}

/* Over MAIN, and again while the coordinator is being found: a new broker makes its topic first. */
static struct got ask(struct peer *p, const struct request *request)
{
    int64_t from_ms = clock_ms();
    enum kafka_code_act act;
    struct got got;

    do {
        start_on(p, COORDINATOR_MAIN, request, &got);
        await(&got);
        assert_int_equal(got.failure, 0);
        act = kafka_code_act((int16_t)got.error);
    } while ((act == KAFKA_CODE_RETRY || act == KAFKA_CODE_REDISCOVER) &&
             clock_ms() - from_ms < CALL_MS);
    return got;
}

static void peer_free(void *arg)
{
    struct peer *p = arg;

    coordinator_free(&p->coordinator);
    wire_client_free(&p->client);
    wire_conf_free(&p->conf);
}

static void set_all(struct props *props, const char *servers, const char *client_id)
{
    props_init(props);
    props_set(props, "bootstrap.servers", servers);
    props_set(props, "client.id", client_id);
    props_set(props, "request.timeout.ms", "15000");
}

static struct peer *peer_with(const struct props *props, const char *group)
{
    struct peer *p = scratch_keep(calloc(1, sizeof(*p)));
    struct mr_error err = {0};

    p->group = group;
    p->conf = wire_conf_new(props, &err);
    if (p->conf == NULL)
        fail_msg("%s", err.text);
    p->client = wire_client_new(loop, p->conf, &err);
    p->coordinator = coordinator_new(
        p->client, &(struct coordinator_to){.key = group, .type = REQUEST_KEY_GROUP}, NULL, NULL,
        &err);
    assert_non_null(p->coordinator);
    scratch_at_end(peer_free, p);
    return p;
}

static struct peer *peer_new(const char *client_id, const char *group)
{
    struct props props;
    struct peer *p;

    set_all(&props, kafka_run_servers(), client_id);
    p = peer_with(&props, group);
    props_deinit(&props);
    return p;
}

static int setup(void **state)
{
    scratch_setup(state);
    loop = loop_new(NULL);
    return loop == NULL;
}

static int teardown(void **state)
{
    int rc = scratch_teardown(state);

    loop_free(&loop);
    return rc;
}

/* --- requests --------------------------------------------------------------------------------- */

struct join {
    const char *member;
    const char *metadata;
    const char *protocol; /* NULL: sessioned */
    const char *type;     /* NULL: connect */
    int session_ms;       /* 0: SESSION_MS */
    size_t protocols;     /* 0: one */
    bool none;            /* no protocols */
};

static struct request join_request(const struct peer *p, const struct join *j,
                                   struct request_protocol *protocol)
{
    *protocol =
        (struct request_protocol){.name = j->protocol != NULL ? j->protocol : "sessioned",
                                  .metadata = {(const uint8_t *)j->metadata, strlen(j->metadata)}};
    return (struct request){
        .api = REQUEST_JOIN_GROUP,
        .join_group = {.group = p->group,
                       .session_timeout_ms = j->session_ms != 0 ? j->session_ms : SESSION_MS,
                       .rebalance_timeout_ms = 15000,
                       .member = j->member,
                       .protocol_type = j->type != NULL ? j->type : "connect",
                       .protocols = protocol,
                       .protocol_count = j->none ? 0 : 1}};
}

static struct got join(struct peer *p, const struct join *j)
{
    struct request_protocol protocol;
    struct request request = join_request(p, j, &protocol);

    return ask(p, &request);
}

static void start_join(struct peer *p, const struct join *j, struct got *got)
{
    struct request_protocol protocol;
    struct request request = join_request(p, j, &protocol);

    start_on(p, COORDINATOR_MAIN, &request, got);
}

static struct request heartbeat_request(const struct peer *p, int generation, const char *member)
{
    return (struct request){
        .api = REQUEST_HEARTBEAT,
        .heartbeat = {.group = p->group, .generation = generation, .member = member}};
}

static int heartbeat(struct peer *p, int generation, const char *member)
{
    struct request request = heartbeat_request(p, generation, member);

    return ask(p, &request).error;
}

static struct request sync_request(const struct peer *p, int generation, const char *member)
{
    return (struct request){
        .api = REQUEST_SYNC_GROUP,
        .sync_group = {.group = p->group, .generation = generation, .member = member}};
}

static struct got sync_as(struct peer *p, int generation, const char *member, const char *to,
                          const char *bytes)
{
    struct request_assignment one = {.member = to,
                                     .assignment = {(const uint8_t *)bytes, strlen(bytes)}};
    struct request request = sync_request(p, generation, member);

    if (to != NULL) {
        request.sync_group.assignments = &one;
        request.sync_group.assignment_count = 1;
    }
    return ask(p, &request);
}

static int leave(struct peer *p, const char *member)
{
    struct request request = {.api = REQUEST_LEAVE_GROUP,
                              .leave_group = {.group = p->group, .member = member}};

    return ask(p, &request).error;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void an_unknown_group_is_answered_as_java_is(void **state)
{
    struct peer *p = peer_new("one", scratch_name("group"));

    /* First what waits for a coordinator that is loading; a heartbeat would be answered with 0. */
    assert_int_equal(leave(p, "ghost"), KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_int_equal(heartbeat(p, 1, "ghost"), KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_int_equal(sync_as(p, 1, "ghost", NULL, "").error, KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_int_equal(join(p, &(struct join){.member = "ghost-1", .metadata = "x"}).error,
                     KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_int_equal(join(p, &(struct join){.member = "", .metadata = "x", .none = true}).error,
                     KAFKA_CODE_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join(p, &(struct join){.member = "", .metadata = "x", .type = ""}).error,
                     KAFKA_CODE_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(
        join(p, &(struct join){.member = "", .metadata = "x", .session_ms = 100000000}).error,
        KAFKA_CODE_INVALID_SESSION_TIMEOUT);
}

static void a_member_lives_through_a_round(void **state)
{
    struct peer *p = peer_new("one", scratch_name("group"));
    struct got first = join(p, &(struct join){.member = "", .metadata = "x"});
    struct got second;
    int generation;

    assert_int_equal(first.error, KAFKA_CODE_MEMBER_ID_REQUIRED);
    assert_memory_equal(first.member, "one-", 4);
    assert_int_equal(heartbeat(p, -1, first.member), KAFKA_CODE_UNKNOWN_MEMBER_ID);
    second = join(p, &(struct join){.member = first.member, .metadata = "x"});
    assert_int_equal(second.error, 0);
    assert_string_equal(second.leader, first.member);
    assert_string_equal(second.protocol, "sessioned");
    assert_int_equal(second.members, 1);
    generation = second.generation;
    assert_int_equal(heartbeat(p, generation, first.member), 0);
    assert_int_equal(heartbeat(p, generation + 1, first.member), KAFKA_CODE_ILLEGAL_GENERATION);
    assert_int_equal(sync_as(p, generation + 1, first.member, NULL, "").error,
                     KAFKA_CODE_ILLEGAL_GENERATION);
    assert_string_equal(sync_as(p, generation, first.member, first.member, "mine").assignment,
                        "mine");
    assert_string_equal(sync_as(p, generation, first.member, NULL, "").assignment, "mine");
    assert_int_equal(heartbeat(p, generation, first.member), 0);
    assert_int_equal(heartbeat(p, generation, "ghost"), KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(p, first.member), 0);
    assert_int_equal(heartbeat(p, generation, first.member), KAFKA_CODE_UNKNOWN_MEMBER_ID);
}

/* Joined, and the round is over: the id. */
static const char *lone_member(struct peer *p, int *generation)
{
    struct got got = join(p, &(struct join){.member = "", .metadata = "x"});
    const char *member = scratch_text("%s", got.member);

    got = join(p, &(struct join){.member = member, .metadata = "x"});
    assert_int_equal(got.error, 0);
    *generation = got.generation;
    assert_int_equal(sync_as(p, got.generation, member, member, "L").error, 0);
    return member;
}

static void heartbeats_pass_a_join_that_is_parked(void **state)
{
    const char *group = scratch_name("group");
    struct peer *one = peer_new("one", group);
    struct peer *two = peer_new("two", group);
    int generation;
    const char *first = lone_member(one, &generation);
    struct got parked;
    struct got beat;
    struct got mine;
    const char *second;
    struct request request;
    int64_t before;

    second = scratch_text("%s", join(two, &(struct join){.member = "", .metadata = "y"}).member);
    start_join(two, &(struct join){.member = second, .metadata = "y"}, &parked);
    wait_until(5000, heartbeat(one, generation, first) == KAFKA_CODE_REBALANCE_IN_PROGRESS);
    assert_false(parked.told);
    /* The other's join is parked on MAIN: SIDE goes by it. It has no generation yet. */
    request = heartbeat_request(two, -1, second);
    before = clock_boot_ms();
    start_on(two, COORDINATOR_SIDE, &request, &beat);
    await(&beat);
    assert_int_equal(beat.failure, 0);
    assert_true(beat.sent_boot_ms >= before && beat.sent_boot_ms <= clock_boot_ms());
    assert_false(parked.told);

    mine = join(one, &(struct join){.member = first, .metadata = "x"});
    await(&parked);
    assert_int_equal(mine.error, 0);
    assert_int_equal(parked.error, 0);
    assert_int_equal(mine.generation, parked.generation);
    assert_string_equal(parked.leader, first);
    assert_string_equal(parked.member, second);
    assert_int_equal(mine.members, 2);
    assert_int_equal(parked.members, 0);
    /* No entry for the follower: it is given no bytes. */
    request = sync_request(two, parked.generation, second);
    start_on(two, COORDINATOR_MAIN, &request, &parked);
    assert_string_equal(sync_as(one, mine.generation, first, first, "L").assignment, "L");
    await(&parked);
    assert_int_equal(parked.error, 0);
    assert_string_equal(parked.assignment, "");
    assert_int_equal(
        join(two, &(struct join){.member = "", .metadata = "y", .type = "other"}).error,
        KAFKA_CODE_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(
        join(two, &(struct join){.member = "", .metadata = "y", .protocol = "mine"}).error,
        KAFKA_CODE_INCONSISTENT_GROUP_PROTOCOL);
}

static void count_member(void *arg, const struct answer_described_member *member)
{
    char *text = arg;

    snprintf(text, 256, "%s", member->member);
}

static struct wire_call *blocking(const char *servers)
{
    struct mr_error err = {0};
    struct props props;
    struct wire_call *call;

    set_all(&props, servers, "tool");
    call = wire_call_new(&props, &err);
    if (call == NULL)
        fail_msg("%s", err.text);
    props_deinit(&props);
    return call;
}

#define assert_done(expression) \
    do { \
        if ((expression) != 0) \
            fail_msg("%s: %s", #expression, err.text); \
    } while (0)

static void a_member_is_found_and_made_to_leave(void **state)
{
    const char *group = scratch_name("group");
    struct peer *p = peer_new("one", group);
    struct wire_call *call = blocking(kafka_run_servers());
    struct mr_error err = {0};
    char found[256] = "";
    char cluster[64];
    int generation;
    const char *member = lone_member(p, &generation);
    struct wire_call_members what = {
        .group = group, .client_id = "two", .fn = count_member, .arg = found};

    assert_done(wire_call_members(call, &what, CALL_MS, &err));
    assert_string_equal(found, "");
    what.client_id = "one";
    assert_done(wire_call_members(call, &what, CALL_MS, &err));
    assert_string_equal(found, member);
    assert_done(wire_call_leave(call, group, member, CALL_MS, &err));
    assert_int_equal(heartbeat(p, generation, member), KAFKA_CODE_UNKNOWN_MEMBER_ID);
    assert_done(wire_call_leave(call, group, member, CALL_MS, &err));
    what.group = scratch_name("nobody");
    assert_done(wire_call_members(call, &what, CALL_MS, &err));
    assert_done(wire_call_cluster_id(call, CALL_MS, cluster, sizeof(cluster), &err));
    assert_int_equal(strlen(cluster), 22);
    assert_done(wire_call_fence(
        call, &(struct wire_call_fence){.transactional_id = group, .transaction_timeout_ms = 60000},
        CALL_MS, &err));
    assert_int_equal(wire_call_fence(call,
                                     &(struct wire_call_fence){.transactional_id = group,
                                                               .transaction_timeout_ms = INT32_MAX},
                                     CALL_MS, &err),
                     MR_ERR_FATAL);
    assert_non_null(strstr(err.text, "INVALID_TRANSACTION_TIMEOUT"));
    wire_call_free(&call);
}

static void ends_of_partitions_are_told_by_their_leaders(void **state)
{
    const char *topic = scratch_name("topic");
    struct wire_call *call = blocking(kafka_run_servers());
    struct mr_error err = {0};
    int32_t partitions[] = {0};
    int64_t offsets[] = {-5};
    struct request_list_offsets what = {.topic = topic,
                                        .partitions = partitions,
                                        .partition_count = 1,
                                        .timestamp = REQUEST_LATEST};

    topic_produce_lines(kafka_run_servers(), topic, (const char *const[]){"a", "b", "c"}, 3);
    assert_done(wire_call_offsets(call, &what, CALL_MS, offsets, &err));
    assert_int_equal(offsets[0], 3);
    what.committed = true;
    what.timestamp = REQUEST_EARLIEST;
    assert_done(wire_call_offsets(call, &what, CALL_MS, offsets, &err));
    assert_int_equal(offsets[0], 0);
    partitions[0] = 7;
    assert_int_equal(wire_call_offsets(call, &what, 1500, offsets, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "partition 7"));
    wire_call_free(&call);
}

/* --- a listener with TLS and logins ----------------------------------------------------------- */

#define REAUTH_MS 10000

static struct secure_kafka secure_broker(void)
{
    struct secure_kafka s = secure_kafka_start(REAUTH_MS, "user_alice=\"secret\"", "");

    for (int i = 0; i < 2; i++)
        kafka_run_do(s.kafka,
                     scratch_text("tool kafka.admin.ConfigCommand --bootstrap-server %s --alter "
                                  "--entity-type users --entity-name alice --add-config "
                                  "'%s=[password=secret]'",
                                  s.open, i == 0 ? "SCRAM-SHA-256" : "SCRAM-SHA-512"));
    return s;
}

static struct peer *secure_peer(const struct secure_kafka *secure, const char *mechanism,
                                const char *jaas)
{
    struct props props;
    struct peer *p;

    set_all(&props, secure->servers, mechanism);
    props_set(&props, "security.protocol", "SASL_SSL");
    props_set(&props, "ssl.truststore.type", "PEM");
    props_set(&props, "ssl.truststore.certificates", secure->authority);
    props_set(&props, "sasl.mechanism", mechanism);
    props_set(&props, "sasl.jaas.config", jaas);
    p = peer_with(&props, scratch_name(mechanism));
    props_deinit(&props);
    return p;
}

#define PLAIN_LOGIN "org.apache.kafka.common.security.plain.PlainLoginModule required "
#define SCRAM_LOGIN "org.apache.kafka.common.security.scram.ScramLoginModule required "
#define OAUTH_LOGIN "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "

static const char *const logins[][2] = {
    {"PLAIN", PLAIN_LOGIN "username=alice password=secret;"},
    {"SCRAM-SHA-256", SCRAM_LOGIN "username=alice password=secret;"},
    {"SCRAM-SHA-512", SCRAM_LOGIN "username=alice password=secret;"},
    {"OAUTHBEARER", OAUTH_LOGIN "unsecuredLoginStringClaim_sub=alice;"},
};

#define LOGINS (sizeof(logins) / sizeof(*logins))

/* Beyond the end of the session each goes on over the connection that it has. */
static void logins_over_tls_are_renewed(const struct secure_kafka *secure)
{
    struct peer *peers[LOGINS];
    const char *members[LOGINS];
    int generations[LOGINS];
    int64_t from_ms = clock_ms();

    for (size_t i = 0; i < LOGINS; i++) {
        peers[i] = secure_peer(secure, logins[i][0], logins[i][1]);
        members[i] = lone_member(peers[i], &generations[i]);
    }
    while (clock_ms() - from_ms < REAUTH_MS + 2500) {
        for (size_t i = 0; i < LOGINS; i++) {
            assert_int_equal(heartbeat(peers[i], generations[i], members[i]), 0);
            assert_true(coordinator_known(peers[i]->coordinator));
        }
        scratch_pause(200);
    }
}

static void wrong_logins_are_fatal(const struct secure_kafka *secure)
{
    static const char *const wrong[][2] = {
        {"PLAIN", PLAIN_LOGIN "username=alice password=wrong;"},
        {"SCRAM-SHA-256", SCRAM_LOGIN "username=alice password=wrong;"},
        {"SCRAM-SHA-512", SCRAM_LOGIN "username=nobody password=secret;"},
        {"OAUTHBEARER", OAUTH_LOGIN "unsecuredLoginStringClaim_sub=\"\";"},
    };

    for (size_t i = 0; i < LOGINS; i++) {
        struct peer *p = secure_peer(secure, wrong[i][0], wrong[i][1]);
        struct request request = heartbeat_request(p, 1, "ghost");
        struct got got;

        start_on(p, COORDINATOR_MAIN, &request, &got);
        await(&got);
        assert_int_equal(got.failure, MR_ERR_FATAL);
        assert_null(strstr(got.text, "secret"));
    }
}

static void tls_and_logins_work_with_a_real_broker(void **state)
{
    struct secure_kafka secure = secure_broker();

    wrong_logins_are_fatal(&secure);
    logins_over_tls_are_renewed(&secure);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(an_unknown_group_is_answered_as_java_is),
        test(a_member_lives_through_a_round),
        test(heartbeats_pass_a_join_that_is_parked),
        test(a_member_is_found_and_made_to_leave),
        test(ends_of_partitions_are_told_by_their_leaders),
        test(tls_and_logins_work_with_a_real_broker),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
