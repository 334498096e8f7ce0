/* SPDX-License-Identifier: Apache-2.0 */
/* wire_call: blocking calls insist while it may help, and end when it does not or the time is
 * over. */
#include "wire/wire_call.h"
#include "wire_rig.h"

#include "base/clock.h"

static struct wire_call *call;
static struct mr_error err;

/* Codes of the requests with one key, in order; behind the last one 0. */
struct script {
    int16_t key;
    int16_t codes[4];
    atomic_int came;
    int port;
    bool no_leader;
    bool no_topic;
};

static struct script script;

static void put_topic(struct buf *out)
{
    codec_put_i32(out, 0);
    codec_put_count(out, 1);
    codec_put_i32(out, 1);
    codec_put_text(out, "127.0.0.1");
    codec_put_i32(out, script.port);
    codec_put_text(out, NULL);
    codec_put_text(out, "the-cluster");
    codec_put_i32(out, 1);
    codec_put_count(out, script.no_topic ? 0 : 1);
    if (script.no_topic)
        return;
    codec_put_i16(out, 0);
    codec_put_text(out, "t");
    codec_put_bool(out, false);
    codec_put_count(out, 2);
    for (int32_t i = 0; i < 2; i++) {
        codec_put_i16(out, 0);
        codec_put_i32(out, i);
        codec_put_i32(out, script.no_leader ? -1 : 1);
        codec_put_count(out, 0);
        codec_put_count(out, 0);
    }
}

static void put_offsets(struct buf *out, int16_t code)
{
    codec_put_i32(out, 0);
    codec_put_count(out, 1);
    codec_put_text(out, "t");
    codec_put_count(out, 2);
    for (int32_t i = 0; i < 2; i++) {
        codec_put_i32(out, i);
        codec_put_i16(out, i == 1 ? code : 0);
        codec_put_i64(out, -1);
        codec_put_i64(out, 100 + i);
    }
}

static void answer(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    bool mine = request->key == script.key;
    int n = mine ? script.came++ : 0;
    int16_t code = mine && n < 4 ? script.codes[n] : 0;

    if (request->key == 3)
        put_topic(&reply->body);
    else if (request->key == 2)
        put_offsets(&reply->body, code);
    else if (code == 0)
        stub_broker_fine(&script.port, request, reply);
    else {
        codec_put_i32(&reply->body, 0);
        codec_put_i16(&reply->body, code);
        if (request->key == 22) {
            codec_put_i64(&reply->body, -1);
            codec_put_i16(&reply->body, -1);
        }
    }
}

static int setup(void **state)
{
    char servers[32];
    struct props p;

    rig_setup(state);
    memset(&script, 0, sizeof(script));
    memset(&err, 0, sizeof(err));
    rig_stub = stub_broker_start(&(struct stub_options){.answer = answer});
    script.port = stub_broker_port(rig_stub);
    snprintf(servers, sizeof(servers), "127.0.0.1:%d", script.port);
    props_init(&p);
    props_set(&p, "bootstrap.servers", servers);
    props_set(&p, "retry.backoff.ms", "5");
    call = wire_call_new(&p, &err);
    props_deinit(&p);
    return call == NULL;
}

static int teardown(void **state)
{
    wire_call_free(&call);
    return rig_teardown(state);
}

static int fence(int64_t timeout_ms)
{
    return wire_call_fence(
        call, &(struct wire_call_fence){.transactional_id = "t", .transaction_timeout_ms = 1},
        timeout_ms, &err);
}

static void a_fence_waits_for_the_open_transaction(void **state)
{
    script = (struct script){.key = 22, .codes = {51, 16, 14}, .port = script.port};
    if (fence(5000) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(script.came, 4);
}

static void a_fence_that_is_forbidden_ends_at_once(void **state)
{
    script = (struct script){.key = 22, .codes = {53}, .port = script.port};
    assert_int_equal(fence(60000), MR_ERR_FATAL);
    rig_has(err.text, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
    rig_has(err.text, "InitProducerId");
    assert_int_equal(script.came, 1);
}

static void what_goes_on_failing_ends_in_time_with_its_reason(void **state)
{
    int64_t from_ms = clock_ms();

    script = (struct script){.key = 3, .no_leader = true, .port = script.port};
    assert_int_equal(
        wire_call_offsets(call,
                          &(struct request_list_offsets){
                              .topic = "t", .partitions = (int32_t[]){0, 1}, .partition_count = 2},
                          200, (int64_t[]){0, 0}, &err),
        MR_ERR_IO);
    rig_has(err.text, "partition 0 of topic t has no leader");
    assert_true(clock_ms() - from_ms >= 190 && clock_ms() - from_ms < 4000);
    assert_true(script.came > 2);
}

static void count(void *arg, const struct answer_described_member *member)
{
    assert_string_equal(member->member, "sink-0-abc");
    (*(int *)arg)++;
}

static void members_are_picked_by_client_id(void **state)
{
    int counts[3] = {0};
    const char *const ids[] = {"sink-0", "sink-00", NULL};

    for (int i = 0; i < 3; i++)
        assert_int_equal(wire_call_members(
                             call,
                             &(struct wire_call_members){
                                 .group = "g", .client_id = ids[i], .fn = count, .arg = &counts[i]},
                             5000, &err),
                         0);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[2], 1);
    assert_int_equal(stub_broker_connections(rig_stub), 2); /* shared by the calls */
}

static void a_member_that_is_gone_has_left(void **state)
{
    script = (struct script){.key = 13, .codes = {25, 69, 30}, .port = script.port};
    assert_int_equal(wire_call_leave(call, "g", "m", 5000, &err), 0);
    assert_int_equal(wire_call_leave(call, "g", "m", 5000, &err), 0);
    assert_int_equal(wire_call_leave(call, "g", "m", 5000, &err), MR_ERR_FATAL);
    rig_has(err.text, "GROUP_AUTHORIZATION_FAILED");
}

static void offsets_come_in_the_order_asked(void **state)
{
    int64_t offsets[] = {-7, -7};
    struct request_list_offsets what = {.topic = "t",
                                        .partitions = (const int32_t[]){1, 0},
                                        .partition_count = 2,
                                        .timestamp = REQUEST_LATEST};

    script = (struct script){.key = 2, .codes = {6, 5}, .port = script.port}; /* leaders move */
    assert_int_equal(wire_call_offsets(call, &what, 5000, offsets, &err), 0);
    assert_int_equal(offsets[0], 101);
    assert_int_equal(offsets[1], 100);
    assert_int_equal(script.came, 3);
    script = (struct script){.key = 2, .codes = {29}, .port = script.port};
    offsets[0] = -7;
    assert_int_equal(wire_call_offsets(call, &what, 5000, offsets, &err), MR_ERR_FATAL);
    assert_int_equal(offsets[0], -7);
    memset(&err, 0, sizeof(err));
    script.no_topic = true;
    assert_int_equal(wire_call_offsets(call, &what, 5000, offsets, &err), MR_ERR_PROTOCOL);
}

static void the_cluster_id_must_fit(void **state)
{
    char id[12];

    assert_int_equal(wire_call_cluster_id(call, 5000, id, sizeof(id), &err), 0);
    assert_string_equal(id, "the-cluster");
    assert_int_equal(wire_call_cluster_id(call, 5000, id, sizeof(id) - 1, &err), MR_ERR_TOO_LARGE);
    assert_string_equal(id, "the-cluster");
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_fence_waits_for_the_open_transaction),
        test(a_fence_that_is_forbidden_ends_at_once),
        test(what_goes_on_failing_ends_in_time_with_its_reason),
        test(members_are_picked_by_client_id),
        test(a_member_that_is_gone_has_left),
        test(offsets_come_in_the_order_asked),
        test(the_cluster_id_must_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
