/* SPDX-License-Identifier: Apache-2.0 */
/* broker_conn: one connection to a broker that may answer anything. Each call is told once, in
 * time, and what was wrong is said with host and port. */
#include "wire_rig.h"

#include "base/clock.h"
#include "wire/broker_conn.h"

#include <poll.h>

static struct broker_conn *conn;
static int ready_count;
static int closed_count;
static struct mr_error closed_err;
static bool free_when_closed;

static void on_ready(void *arg)
{
    ready_count++;
}

static void on_closed(void *arg, const struct mr_error *err)
{
    closed_count++;
    closed_err = *err;
    if (free_when_closed)
        broker_conn_free(&conn);
}

static void open_to(const struct wire_conf *conf, const char *host, uint16_t port)
{
    static const struct broker_conn_events events = {.ready = on_ready, .closed = on_closed};
    struct mr_error err = {0};

    ready_count = 0;
    closed_count = 0;
    free_when_closed = false;
    memset(&closed_err, 0, sizeof(closed_err));
    conn = broker_conn_new(rig_loop, conf, &(struct broker_conn_to){.host = host, .port = port},
                           &events, NULL, &err);
    if (conn == NULL)
        fail_msg("%s", err.text);
}

static bool is_up(void *arg)
{
    return ready_count > 0 || closed_count > 0;
}

static bool is_closed(void *arg)
{
    return closed_count > 0;
}

static void open_stub(stub_answer_fn answer, void *arg, const char *key, const char *value)
{
    rig_stub = stub_broker_start(&(struct stub_options){.answer = answer, .arg = arg});
    open_to(rig_conf(key, value, NULL), "127.0.0.1", stub_broker_port(rig_stub));
    rig_run_until(is_up, NULL, "ready or closed");
}

static int teardown(void **state)
{
    broker_conn_free(&conn);
    return rig_teardown(state);
}

#define test(f) cmocka_unit_test_setup_teardown(f, rig_setup, teardown)

static void call(const struct request *request, int64_t timeout_ms, struct rig_call *c)
{
    struct mr_error err = {0};

    if (broker_conn_call(conn, request, timeout_ms, rig_note, c, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(c->told, 0);
}

/* --- good brokers ----------------------------------------------------------------------------- */

static void a_call_is_answered(void **state)
{
    struct request request = rig_join();
    struct rig_call c = {0};
    int64_t before;

    open_stub(NULL, NULL, NULL, NULL);
    assert_int_equal(ready_count, 1);
    assert_true(broker_conn_ready(conn));
    before = clock_boot_ms();
    call(&request, 5000, &c);
    rig_await(&c);
    assert_int_equal(c.error, 0);
    assert_int_equal(c.api, REQUEST_JOIN_GROUP);
    assert_string_equal(c.member, "me");
    assert_true(c.sent_boot_ms >= before && c.sent_boot_ms <= clock_boot_ms());
    assert_int_equal(closed_count, 0);
}

static void pieces(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    stub_broker_fine(arg, request, reply);
    reply->pieces = true;
}

static void answers_may_come_one_byte_at_a_time(void **state)
{
    struct request request = rig_join();
    struct rig_call c[3] = {0};

    open_stub(pieces, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++)
        call(&request, 5000, &c[i]);
    for (int i = 0; i < 3; i++)
        rig_await(&c[i]);
    assert_int_equal(c[2].error, 0);
}

/* Answers are held until three requests are there, then sent as one run of bytes. */
static void together(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    static int32_t first_id;

    if (request->key == 18) {
        stub_broker_fine(arg, request, reply);
        return;
    }
    reply->raw = true;
    if (request->number == 1)
        first_id = request->id;
    if (request->number != 3) {
        reply->nothing = true;
        return;
    }
    for (int32_t i = 0; i < 3; i++) {
        codec_put_i32(&reply->body, 10);
        codec_put_i32(&reply->body, first_id + i);
        codec_put_i32(&reply->body, 0);
        codec_put_i16(&reply->body, (int16_t)(20 + i));
    }
}

static void many_answers_may_come_at_once(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c[3] = {0};

    open_stub(together, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++)
        call(&request, 5000, &c[i]);
    for (int i = 0; i < 3; i++) {
        rig_await(&c[i]);
        assert_int_equal(c[i].error, 20 + i);
    }
}

static void big(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    char *bytes = calloc(1, 4 << 20);

    if (request->key != 14) {
        stub_broker_fine(arg, request, reply);
    } else {
        codec_put_i32(&reply->body, 0);
        codec_put_i16(&reply->body, 0);
        codec_put_bytes(&reply->body, (struct codec_bytes){(uint8_t *)bytes, 4 << 20});
    }
    free(bytes);
}

/* Both ways more than a socket's buffers take. */
static void large_requests_and_answers_pass(void **state)
{
    struct request_assignment assignment = {.member = "me",
                                            .assignment = {calloc(1, 8 << 20), 8 << 20}};
    struct request request = {.api = REQUEST_SYNC_GROUP,
                              .sync_group = {.group = "g",
                                             .generation = 1,
                                             .member = "me",
                                             .assignments = &assignment,
                                             .assignment_count = 1}};
    struct rig_call c = {0};

    open_stub(big, NULL, NULL, NULL);
    call(&request, 9000, &c);
    rig_await(&c);
    assert_int_equal(c.error, 0);
    free((void *)(uintptr_t)assignment.assignment.data);
}

/* --- bad brokers ------------------------------------------------------------------------------ */

/* What an answer to a heartbeat may be instead of one. */
struct bad {
    const char *name;
    const char *bytes; /* raw */
    size_t len;
    int32_t add; /* to the correlation id, when bytes is NULL */
    bool close;
    int code;         /* of the call */
    const char *word; /* in its text */
};

static void badly(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    const struct bad *bad = arg;

    stub_broker_fine(NULL, request, reply);
    if (request->key == 18)
        return;
    reply->add = bad->add;
    reply->close = bad->close;
    if (bad->bytes == NULL)
        return;
    reply->raw = true;
    buf_reset(&reply->body);
    buf_append(&reply->body, bad->bytes, bad->len);
}

#define BYTES(text) .bytes = text, .len = sizeof(text) - 1

static const struct bad bads[] = {
    {"garbage", BYTES("\xde\xad\xbe\xef\xca\xfe\xba\xbe"), .code = MR_ERR_PROTOCOL,
     .word = "announced an answer of"},
    {"negative", BYTES("\xff\xff\xff\xff"), .code = MR_ERR_PROTOCOL, .word = "of -1 bytes"},
    {"zero", BYTES("\0\0\0\0"), .code = MR_ERR_PROTOCOL, .word = "of 0 bytes"},
    {"three", BYTES("\0\0\0\3abc"), .code = MR_ERR_PROTOCOL, .word = "of 3 bytes"},
    {"too large", BYTES("\x01\0\0\1"), .code = MR_ERR_PROTOCOL, .word = "16777217"},
    {"TLS alert", BYTES("\x15\x03\x03\0\2\2\x28"), .code = MR_ERR_PROTOCOL,
     .word = "security.protocol"},
    {"HTTP", BYTES("HTTP/1.1 400 Bad Request\r\n"), .code = MR_ERR_PROTOCOL, .word = "HTTP"},
    {"another's id", .add = 7, .code = MR_ERR_PROTOCOL, .word = "(Heartbeat) is due"},
    {"an old id", .add = -1, .code = MR_ERR_PROTOCOL, .word = "correlation id"},
    {"half a size", BYTES("\0\0"), .close = true, .code = MR_ERR_CLOSED, .word = "closed"},
    {"half a frame", BYTES("\0\0\0\x0a\0\0\0"), .close = true, .code = MR_ERR_CLOSED,
     .word = "closed"},
    {"a close", BYTES(""), .close = true, .code = MR_ERR_CLOSED, .word = "closed"},
    {"too short a body", BYTES("\0\0\0\x09\0\0\0\1\0\0\0\0\0"), .code = MR_ERR_PROTOCOL,
     .word = "Heartbeat version 3, 5 bytes, can't be read"},
    {"too long a body", BYTES("\0\0\0\x0b\0\0\0\1\0\0\0\0\0\0\0"), .code = MR_ERR_PROTOCOL,
     .word = "left over"},
    {"an answer too many", BYTES("\0\0\0\x0a\0\0\0\1\0\0\0\0\0\0\0\0\0\x0a\0\0\0\2\0\0\0\0\0\0"),
     .code = 0, .word = "nobody asked for"},
};

static void a_broker_that_breaks_the_protocol_is_left(void **state)
{
    struct request request = rig_heartbeat();

    for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
        struct rig_call c = {0};
        struct rig_call behind = {0};
        char address[32];

        open_stub(badly, (void *)(uintptr_t)&bads[i], NULL, NULL);
        snprintf(address, sizeof(address), "127.0.0.1:%u", stub_broker_port(rig_stub));
        call(&request, 5000, &c);
        if (bads[i].code != 0)
            call(&request, 5000, &behind);
        rig_run_until(is_closed, NULL, bads[i].name);
        assert_int_equal(c.told, 1);
        if (c.failed != bads[i].code)
            fail_msg("%s: %d, %s", bads[i].name, c.failed, c.text);
        rig_has(closed_err.text, bads[i].word);
        rig_has(closed_err.text, address);
        if (bads[i].code != 0) {
            rig_has(c.text, bads[i].word);
            assert_int_equal(behind.told, 1);
            assert_int_equal(behind.failed, bads[i].code);
        }
        assert_int_equal(closed_count, 1);
        assert_false(broker_conn_ready(conn));
        assert_int_equal(broker_conn_call(conn, &request, 1, rig_note, NULL, NULL), MR_ERR_STATE);
        broker_conn_free(&conn);
        stub_broker_stop(&rig_stub);
    }
}

static void mute(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    stub_broker_fine(NULL, request, reply);
    reply->nothing = request->number >= *(int *)arg;
}

static void half(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    stub_broker_fine(NULL, request, reply);
    if (request->key == 18)
        return;
    reply->raw = true;
    buf_reset(&reply->body);
    buf_append(&reply->body, "\0\0\0\x0a\0\0", 6);
}

static void nothing_hangs_past_its_deadline(void **state)
{
    struct request request = rig_heartbeat();
    int mute_from = 1;

    for (int i = 0; i < 2; i++) {
        struct rig_call c = {0};
        struct rig_call other = {0};
        int64_t from_ms;

        open_stub(i == 0 ? mute : half, &mute_from, NULL, NULL);
        from_ms = clock_ms();
        call(&request, 60000, &other);
        call(&request, 80, &c);
        rig_await(&c);
        assert_int_equal(c.failed, MR_ERR_TIMEOUT);
        rig_has(c.text, "did not answer Heartbeat within 80 ms");
        assert_true(clock_ms() - from_ms >= 80);
        rig_run_until(is_closed, NULL, "closed");
        assert_int_equal(other.failed, MR_ERR_CLOSED);
        assert_int_equal(closed_err.code, MR_ERR_TIMEOUT);
        broker_conn_free(&conn);
        stub_broker_stop(&rig_stub);
    }
}

static void a_broker_that_never_says_what_it_speaks_is_left(void **state)
{
    int mute_from = 0;

    open_stub(mute, &mute_from, "socket.connection.setup.timeout.ms", "100");
    assert_int_equal(closed_count, 1);
    rig_has(closed_err.text, "within 100 ms");
    assert_int_equal(ready_count, 0);
}

static void closes_at_once(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    reply->nothing = true;
    reply->close = true;
}

static void a_broker_that_closes_at_once_hints_at_the_protocol(void **state)
{
    open_stub(closes_at_once, NULL, NULL, NULL);
    assert_int_equal(closed_err.code, MR_ERR_CLOSED);
    rig_has(closed_err.text, "security.protocol");
}

static void nobody_there_is_an_error(void **state)
{
    uint16_t port;

    rig_stub = stub_broker_start(&(struct stub_options){0});
    port = stub_broker_port(rig_stub);
    stub_broker_stop(&rig_stub);
    open_to(rig_conf(NULL), "127.0.0.1", port);
    assert_int_equal(closed_count, 0); /* not from inside */
    rig_run_until(is_closed, NULL, "closed");
    assert_int_equal(closed_err.code, MR_ERR_IO);
    rig_has(closed_err.text, "refused");
    broker_conn_free(&conn);
    open_to(rig_conf(NULL), "no-such-host.invalid", 9092);
    rig_run_until(is_closed, NULL, "closed");
    assert_int_equal(closed_err.code, MR_ERR_IO);
    rig_has(closed_err.text, "no-such-host.invalid");
}

static void a_name_is_resolved_and_its_addresses_are_tried(void **state)
{
    rig_stub = stub_broker_start(&(struct stub_options){0});
    open_to(rig_conf(NULL), "localhost", stub_broker_port(rig_stub)); /* ::1 may come first */
    rig_run_until(is_up, NULL, "ready");
    assert_int_equal(ready_count, 1);
    rig_has(broker_conn_name(conn), "localhost:");
    broker_conn_free(&conn);
    open_to(rig_conf(NULL), "localhost", stub_broker_port(rig_stub));
    broker_conn_free(&conn); /* while it is being resolved */
    rig_run_for(30);
}

/* --- codes and versions ----------------------------------------------------------------------- */

struct coded {
    atomic_int code;
};

/* An answer with that code to whatever was asked, in the version that was asked. */
static void coded(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct buf *out = &reply->body;
    int16_t code = (int16_t)((struct coded *)arg)->code;

    if (request->key == 18) {
        stub_broker_fine(NULL, request, reply);
        return;
    }
    codec_put_i32(out, 0);
    if (request->key == 15)
        codec_put_count(out, 1);
    if (request->key == 2) {
        codec_put_count(out, 1);
        codec_put_text(out, "t");
        codec_put_count(out, 1);
        codec_put_i32(out, 0);
    }
    codec_put_i16(out, code);
    switch (request->key) {
    case 10:
        codec_put_text(out, "words");
        codec_put_i32(out, code == 0 ? 1 : -1);
        codec_put_text(out, code == 0 ? "h" : "");
        codec_put_i32(out, code == 0 ? 1 : -1);
        break;
    case 11:
        codec_put_i32(out, -1);
        codec_put_text(out, "");
        codec_put_text(out, "");
        codec_put_text(out, "new-id");
        codec_put_count(out, 0);
        break;
    case 14:
        codec_put_count(out, 0);
        break;
    case 15:
        for (int i = 0; i < 4; i++)
            codec_put_text(out, "");
        codec_put_count(out, 0);
        codec_put_i32(out, 0);
        break;
    case 22:
        codec_put_i64(out, -1);
        codec_put_i16(out, -1);
        break;
    case 2:
        codec_put_i64(out, -1);
        codec_put_i64(out, -1);
        break;
    default:
        break;
    }
}

static void every_code_to_every_request_is_an_answer(void **state)
{
    static const int32_t zero = 0;
    struct request requests[] = {
        rig_join(),
        rig_heartbeat(),
        {.api = REQUEST_SYNC_GROUP, .sync_group = {.group = "g", .member = "m"}},
        {.api = REQUEST_LEAVE_GROUP, .leave_group = {.group = "g", .member = "m"}},
        {.api = REQUEST_DESCRIBE_GROUP, .describe_group.group = "g"},
        {.api = REQUEST_FIND_COORDINATOR, .find_coordinator.key = "g"},
        {.api = REQUEST_INIT_PRODUCER_ID, .init_producer_id.transactional_id = "t"},
        {.api = REQUEST_LIST_OFFSETS,
         .list_offsets = {.topic = "t", .partitions = &zero, .partition_count = 1}},
    };
    struct coded codes = {0};

    open_stub(coded, &codes, NULL, NULL);
    for (int code = -2; code <= 140; code++)
        for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
            struct rig_call c = {0};

            codes.code = code;
            call(&requests[i], 5000, &c);
            rig_await(&c);
            if (c.failed != 0)
                fail_msg("%s, %d: %s", request_name(requests[i].api), code, c.text);
            assert_int_equal(c.error, requests[i].api == REQUEST_LIST_OFFSETS ? 0 : code);
            if (requests[i].api == REQUEST_JOIN_GROUP)
                assert_string_equal(c.member, "new-id");
        }
    assert_int_equal(closed_count, 0);
    assert_int_equal(stub_broker_connections(rig_stub), 1);
}

struct old {
    atomic_int heartbeat_version;
    int16_t ranges[3][3];
};

static void old_broker(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct old *old = arg;

    if (request->key != 18) {
        old->heartbeat_version = request->version;
        stub_broker_fine(NULL, request, reply);
        return;
    }
    codec_put_i16(&reply->body, 0);
    codec_put_count(&reply->body, 3);
    for (size_t i = 0; i < 9; i++)
        codec_put_i16(&reply->body, old->ranges[i / 3][i % 3]);
}

static void versions_are_those_of_both(void **state)
{
    struct old old = {.ranges = {{12, 0, 2}, {11, 6, 9}, {14, 0, 1}}};
    struct request heartbeat = rig_heartbeat();
    struct request join = rig_join();
    struct request leave = {.api = REQUEST_LEAVE_GROUP,
                            .leave_group = {.group = "g", .member = "m"}};
    struct mr_error err = {0};
    struct rig_call c = {0};

    open_stub(old_broker, &old, NULL, NULL);
    call(&heartbeat, 5000, &c);
    rig_await(&c);
    assert_int_equal(old.heartbeat_version, 2);
    assert_int_equal(broker_conn_call(conn, &join, 5000, rig_note, &c, &err), MR_ERR_UNSUPPORTED);
    rig_has(err.text, "versions 6 to 9 of the request JoinGroup");
    memset(&err, 0, sizeof(err));
    assert_int_equal(broker_conn_call(conn, &leave, 5000, rig_note, &c, &err), MR_ERR_UNSUPPORTED);
    rig_has(err.text, "LeaveGroup");
    assert_int_equal(closed_count, 0);
}

static void refuses_versions(void *arg, const struct stub_request *request,
                             struct stub_reply *reply)
{
    codec_put_i16(&reply->body, 35);
    codec_put_count(&reply->body, 0);
}

static void a_broker_without_our_api_versions_is_unsupported(void **state)
{
    open_stub(refuses_versions, NULL, NULL, NULL);
    assert_int_equal(closed_err.code, MR_ERR_UNSUPPORTED);
    rig_has(closed_err.text, "UNSUPPORTED_VERSION");
}

/* --- throttle, limits, and being freed -------------------------------------------------------- */

struct slow {
    atomic_llong came_ms[4];
};

static void throttled(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct slow *slow = arg;

    if (request->key == 18) {
        stub_broker_fine(NULL, request, reply);
        return;
    }
    if (request->number < 4)
        slow->came_ms[request->number] = request->came_ms;
    codec_put_i32(&reply->body, request->number == 1 ? 200 : 0);
    codec_put_i16(&reply->body, 0);
}

static void a_throttle_holds_back_what_follows(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c[3] = {0};
    struct slow slow = {0};
    int64_t told_boot_ms;

    open_stub(throttled, &slow, NULL, NULL);
    call(&request, 5000, &c[0]);
    rig_await(&c[0]);
    told_boot_ms = clock_boot_ms();
    call(&request, 50, &c[1]); /* its time passes before it may be sent */
    call(&request, 5000, &c[2]);
    rig_await(&c[2]);
    assert_int_equal(c[1].failed, MR_ERR_TIMEOUT);
    assert_int_equal(closed_count, 0); /* the connection knows nothing of it */
    assert_true(slow.came_ms[2] - slow.came_ms[1] >= 195);
    assert_int_equal(slow.came_ms[3], 0);
    /* When it went out, not when it was given. */
    assert_true(c[2].sent_boot_ms - told_boot_ms >= 195);
}

static void only_so_many_calls_wait(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c[BROKER_CONN_MAX_CALLS] = {0};
    struct mr_error err = {0};
    int mute_from = 1;

    open_stub(mute, &mute_from, NULL, NULL);
    for (size_t i = 0; i < BROKER_CONN_MAX_CALLS; i++)
        call(&request, 5000, &c[i]);
    assert_int_equal(broker_conn_call(conn, &request, 5000, rig_note, NULL, &err), MR_ERR_FULL);
    broker_conn_free(&conn);
    for (size_t i = 0; i < BROKER_CONN_MAX_CALLS; i++) {
        assert_int_equal(c[i].told, 1);
        assert_int_equal(c[i].failed, MR_ERR_CLOSED);
    }
    assert_int_equal(closed_count, 0);
}

static void free_conn(void *arg)
{
    broker_conn_free(&conn);
}

static void a_connection_may_be_freed_by_any_callback(void **state)
{
    struct request request = rig_heartbeat();
    struct rig_call c = {.then = free_conn};
    struct rig_call behind = {0};
    struct rig_call late = {.then = free_conn};
    int mute_from = 1;

    open_stub(NULL, NULL, NULL, NULL);
    call(&request, 5000, &c);
    call(&request, 5000, &behind);
    rig_await(&c);
    assert_int_equal(c.error, 0);
    assert_int_equal(behind.failed, MR_ERR_CLOSED);
    assert_null(conn);
    stub_broker_stop(&rig_stub);

    open_stub(mute, &mute_from, NULL, NULL);
    memset(&behind, 0, sizeof(behind));
    call(&request, 20, &late);
    call(&request, 5000, &behind);
    rig_await(&late);
    assert_int_equal(late.failed, MR_ERR_TIMEOUT);
    assert_int_equal(behind.failed, MR_ERR_CLOSED);
    assert_int_equal(closed_count, 0);
    stub_broker_stop(&rig_stub);

    open_stub(mute, &mute_from, NULL, NULL);
    memset(&behind, 0, sizeof(behind));
    free_when_closed = true;
    call(&request, 5000, &behind);
    stub_broker_stop(&rig_stub);
    rig_run_until(is_closed, NULL, "closed");
    assert_null(conn);
    assert_int_equal(behind.failed, MR_ERR_CLOSED);
}

/* --- logins ----------------------------------------------------------------------------------- */

struct login {
    atomic_int handshakes;
    atomic_int tokens;
    atomic_int between; /* calls that came between a handshake and its token */
    atomic_int gate;    /* the second handshake is answered when this is 0 */
    int handshake_error;
    int token_error;
    const char *message;
    int64_t lifetime_ms;
};

static void login(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct login *l = arg;
    struct buf *out = &reply->body;

    if (request->key == 17) {
        l->handshakes++;
        while (l->handshakes == 2 && l->gate != 0)
            poll(NULL, 0, 1);
        codec_put_i16(out, (int16_t)l->handshake_error);
        codec_put_count(out, 2);
        codec_put_text(out, "SCRAM-SHA-512");
        codec_put_text(out, "GSSAPI");
    } else if (request->key == 36) {
        l->tokens++;
        codec_put_i16(out, (int16_t)l->token_error);
        codec_put_text(out, l->message);
        codec_put_count(out, 0);
        codec_put_i64(out, l->lifetime_ms);
    } else {
        l->between += l->handshakes != l->tokens;
        stub_broker_fine(NULL, request, reply);
    }
}

static void open_login(struct login *l, const char *mechanism)
{
    rig_stub = stub_broker_start(&(struct stub_options){.answer = login, .arg = l});
    open_to(rig_conf("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism,
                     "sasl.jaas.config", "ScramLoginModule required username=u password=hunter2;",
                     NULL),
            "127.0.0.1", stub_broker_port(rig_stub));
    rig_run_until(is_up, NULL, "ready or closed");
}

static void a_login_comes_before_the_first_call(void **state)
{
    struct request request = rig_heartbeat();
    struct login l = {0};
    struct rig_call c = {0};

    open_login(&l, "PLAIN");
    assert_int_equal(ready_count, 1);
    assert_int_equal(l.handshakes, 1);
    assert_int_equal(l.tokens, 1);
    call(&request, 5000, &c);
    rig_await(&c);
    assert_int_equal(c.error, 0);
}

static void a_refused_login_is_fatal_and_says_why(void **state)
{
    struct login l = {.handshake_error = 33};

    open_login(&l, "PLAIN");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "it takes SCRAM-SHA-512, GSSAPI");
    broker_conn_free(&conn);
    stub_broker_stop(&rig_stub);
    l = (struct login){.token_error = 58, .message = "Authentication failed: bad user"};
    open_login(&l, "PLAIN");
    assert_int_equal(closed_err.code, MR_ERR_FATAL);
    rig_has(closed_err.text, "Authentication failed: bad user");
    assert_null(strstr(closed_err.text, "hunter2"));
    broker_conn_free(&conn);
    stub_broker_stop(&rig_stub);
    l = (struct login){.token_error = 7};
    open_login(&l, "PLAIN");
    assert_int_equal(closed_err.code, MR_ERR_IO); /* worth another try */
    broker_conn_free(&conn);
    stub_broker_stop(&rig_stub);
    l = (struct login){0};
    open_login(&l, "SCRAM-SHA-256"); /* accepts without having proved anything */
    assert_int_equal(ready_count, 0);
    assert_int_equal(closed_err.code, MR_ERR_PROTOCOL);
    rig_has(closed_err.text, "SCRAM");
}

static bool renewed(void *arg)
{
    return ((struct login *)arg)->handshakes >= 3;
}

static void a_login_is_renewed_before_it_ends(void **state)
{
    struct request request = rig_heartbeat();
    struct login l = {.lifetime_ms = 1300};
    struct rig_call c[2] = {0};

    open_login(&l, "PLAIN");
    call(&request, 5000, &c[0]);
    rig_run_until(renewed, &l, "two renewals");
    assert_int_equal(c[0].error, 0);
    call(&request, 5000, &c[1]);
    rig_await(&c[1]);
    assert_int_equal(c[1].error, 0);
    assert_int_equal(stub_broker_connections(rig_stub), 1);
    assert_int_equal(ready_count, 1);
    assert_int_equal(closed_count, 0);
}

static bool renewing(void *arg)
{
    return ((struct login *)arg)->handshakes == 2;
}

static void calls_wait_while_a_login_is_renewed(void **state)
{
    struct request request = rig_heartbeat();
    struct login l = {.lifetime_ms = 1300, .gate = 1};
    struct rig_call c = {0};

    open_login(&l, "PLAIN");
    rig_run_until(renewing, &l, "a renewal");
    assert_true(broker_conn_ready(conn));
    call(&request, 5000, &c);
    rig_run_for(20);
    assert_int_equal(c.told, 0);
    l.gate = 0;
    rig_await(&c);
    assert_int_equal(c.error, 0);
    assert_int_equal(l.between, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_call_is_answered),
        test(answers_may_come_one_byte_at_a_time),
        test(many_answers_may_come_at_once),
        test(large_requests_and_answers_pass),
        test(a_broker_that_breaks_the_protocol_is_left),
        test(nothing_hangs_past_its_deadline),
        test(a_broker_that_never_says_what_it_speaks_is_left),
        test(a_broker_that_closes_at_once_hints_at_the_protocol),
        test(nobody_there_is_an_error),
        test(a_name_is_resolved_and_its_addresses_are_tried),
        test(every_code_to_every_request_is_an_answer),
        test(versions_are_those_of_both),
        test(a_broker_without_our_api_versions_is_unsupported),
        test(a_throttle_holds_back_what_follows),
        test(only_so_many_calls_wait),
        test(a_connection_may_be_freed_by_any_callback),
        test(a_login_comes_before_the_first_call),
        test(a_refused_login_is_fatal_and_says_why),
        test(a_login_is_renewed_before_it_ends),
        test(calls_wait_while_a_login_is_renewed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
