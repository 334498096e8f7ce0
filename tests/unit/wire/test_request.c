/* SPDX-License-Identifier: Apache-2.0 */
/* request: bytes as a broker wants them, answers as one gives them; every truncation and absurd
 * count of every answer in every version; which version is chosen; copies. */
#include "base/utf8.h"
#include "wire/request_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wire_arena arena;
static struct mr_error err;

/* --- hex -------------------------------------------------------------------------------------- */

/* "0a 'text' 0b": bytes in hex, texts in quotes. */
static void put_hex(struct buf *out, const char *hex)
{
    while (*hex != '\0') {
        if (*hex == ' ') {
            hex++;
        } else if (*hex == '\'') {
            for (hex++; *hex != '\''; hex++)
                buf_putc(out, *hex);
            hex++;
        } else {
            char byte[3] = {hex[0], hex[1], '\0'};

            buf_putc(out, (char)strtol(byte, NULL, 16));
            hex += 2;
        }
    }
}

static void assert_bytes(const struct request *request, int16_t version, const char *hex)
{
    struct request_header header = {.version = version, .correlation_id = 1, .client_id = "c"};
    struct buf expected;
    struct buf out;
    char *text = strdup(hex);

    buf_init(&expected, 10000);
    buf_init(&out, 10000);
    put_hex(&expected, text);
    assert_int_equal(request_encode(request, &header, &out, &err), 0);
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(out.data, expected.data, out.len);
    buf_deinit(&expected);
    buf_deinit(&out);
    free(text);
}

static int decode(enum request_api api, int16_t version, const char *hex, struct answer *out)
{
    struct buf bytes;
    void *exact;
    int rc;

    memset(&err, 0, sizeof(err));
    wire_arena_deinit(&arena);
    wire_arena_init(&arena, 100000);
    buf_init(&bytes, 10000);
    put_hex(&bytes, hex);
    exact = wire_arena_get(&arena, bytes.len, 1);
    if (bytes.len > 0)
        memcpy(exact, bytes.data, bytes.len);
    rc = request_decode(api, version, exact, bytes.len, &arena, out, &err);
    if (rc != 0 && err.text[0] == '\0')
        fail_msg("no text for %d", rc);
    buf_deinit(&bytes);
    return rc;
}

/* --- requests --------------------------------------------------------------------------------- */

#define META31 "'0123456789012345678901234567890'"
#define META27 "'012345678901234567890123456'"

static const struct codec_bytes meta31 = {(const uint8_t *)"0123456789012345678901234567890", 31};
static const struct codec_bytes meta27 = {(const uint8_t *)"012345678901234567890123456", 27};

static struct request join(void)
{
    static struct request_protocol protocols[3];

    protocols[0] = (struct request_protocol){"sessioned", meta31};
    protocols[1] = (struct request_protocol){"compatible", meta31};
    protocols[2] = (struct request_protocol){"default", meta27};
    return (struct request){.api = REQUEST_JOIN_GROUP,
                            .join_group = {.group = "g1",
                                           .session_timeout_ms = 10000,
                                           .rebalance_timeout_ms = 60000,
                                           .member = "",
                                           .protocol_type = "connect",
                                           .protocols = protocols,
                                           .protocol_count = 3}};
}

#define PROTOCOLS \
    "0007 'connect' 00000003 0009 'sessioned' 0000001f " META31 \
    " 000a 'compatible' 0000001f " META31 " 0007 'default' 0000001b " META27

static void a_join_has_the_bytes_of_java(void **state)
{
    struct request request = join();

    assert_bytes(&request, 5,
                 "000000ad 000b 0005 00000001 0001 'c' 0002 'g1' 00002710 0000ea60 0000 "
                 "ffff " PROTOCOLS);
    assert_bytes(
        &request, 3,
        "000000ab 000b 0003 00000001 0001 'c' 0002 'g1' 00002710 0000ea60 0000 " PROTOCOLS);
}

static void group_requests_have_their_bytes(void **state)
{
    static const struct request_assignment assignments[] = {{"m1", {(const uint8_t *)"ab", 2}},
                                                            {"m2", {0}}};
    struct request sync = {.api = REQUEST_SYNC_GROUP,
                           .sync_group = {.group = "g",
                                          .generation = 7,
                                          .member = "m1",
                                          .assignments = assignments,
                                          .assignment_count = 2}};
    struct request heartbeat = {.api = REQUEST_HEARTBEAT,
                                .heartbeat = {.group = "g", .generation = 7, .member = "m"}};
    struct request leave = {.api = REQUEST_LEAVE_GROUP,
                            .leave_group = {.group = "g", .member = "m"}};
    struct request find = {.api = REQUEST_FIND_COORDINATOR,
                           .find_coordinator = {.key = "t", .type = REQUEST_KEY_TRANSACTION}};
    struct request describe = {.api = REQUEST_DESCRIBE_GROUP, .describe_group.group = "g"};

    assert_bytes(&sync, 3,
                 "0000002e 000e 0003 00000001 0001 'c' 0001 'g' 00000007 0002 'm1' ffff 00000002 "
                 "0002 'm1' 00000002 'ab' 0002 'm2' 00000000");
    assert_bytes(&sync, 2,
                 "0000002c 000e 0002 00000001 0001 'c' 0001 'g' 00000007 0002 'm1' 00000002 "
                 "0002 'm1' 00000002 'ab' 0002 'm2' 00000000");
    assert_bytes(&heartbeat, 3,
                 "00000017 000c 0003 00000001 0001 'c' 0001 'g' 00000007 0001 'm' ffff");
    assert_bytes(&heartbeat, 2, "00000015 000c 0002 00000001 0001 'c' 0001 'g' 00000007 0001 'm'");
    assert_bytes(&leave, 2, "00000011 000d 0002 00000001 0001 'c' 0001 'g' 0001 'm'");
    assert_bytes(&find, 2, "0000000f 000a 0002 00000001 0001 'c' 0001 't' 01");
    assert_bytes(&describe, 4, "00000013 000f 0004 00000001 0001 'c' 00000001 0001 'g' 00");
    assert_bytes(&describe, 0, "00000012 000f 0000 00000001 0001 'c' 00000001 0001 'g'");
}

static void other_requests_have_their_bytes(void **state)
{
    static const int32_t partitions[] = {0, 3};
    static const char *const topics[] = {"t"};
    struct request offsets = {.api = REQUEST_LIST_OFFSETS,
                              .list_offsets = {.topic = "t",
                                               .partitions = partitions,
                                               .partition_count = 2,
                                               .timestamp = REQUEST_LATEST,
                                               .committed = true}};
    struct request init = {
        .api = REQUEST_INIT_PRODUCER_ID,
        .init_producer_id = {.transactional_id = "t", .transaction_timeout_ms = 10}};
    struct request metadata = {.api = REQUEST_METADATA};
    struct request token = {.api = REQUEST_SASL_AUTHENTICATE,
                            .sasl_authenticate.token = {(const uint8_t *)"\0u\0p", 4}};
    struct request handshake = {.api = REQUEST_SASL_HANDSHAKE, .sasl_handshake.mechanism = "PLAIN"};

    assert_bytes(&offsets, 2,
                 "00000033 0002 0002 00000001 0001 'c' ffffffff 01 00000001 0001 't' 00000002 "
                 "00000000 ffffffffffffffff 00000003 ffffffffffffffff");
    assert_bytes(&init, 1, "00000012 0016 0001 00000001 0001 'c' 0001 't' 0000000a");
    assert_bytes(&metadata, 4, "00000010 0003 0004 00000001 0001 'c' 00000000 00");
    metadata.metadata = (struct request_metadata){.topics = topics, .topic_count = 1};
    assert_bytes(&metadata, 4, "00000013 0003 0004 00000001 0001 'c' 00000001 0001 't' 00");
    assert_bytes(&token, 1, "00000013 0024 0001 00000001 0001 'c' 00000004 00 'u' 00 'p'");
    assert_bytes(&handshake, 1, "00000012 0011 0001 00000001 0001 'c' 0005 'PLAIN'");
    assert_bytes(&(struct request){.api = REQUEST_API_VERSIONS}, 0,
                 "0000000b 0012 0000 00000001 0001 'c'");
}

static void a_request_that_is_too_large_leaves_the_buffer_as_it_was(void **state)
{
    struct request request = join();
    struct request_protocol huge = {"p", {calloc(1, 20u << 20), 20u << 20}};
    struct request_header header = {.version = 5};
    struct buf out;

    buf_init(&out, 64u << 20);
    buf_puts(&out, "before");
    request.join_group.protocols = &huge;
    request.join_group.protocol_count = 1;
    assert_int_equal(request_encode(&request, &header, &out, &err), MR_ERR_TOO_LARGE);
    assert_int_equal(out.len, 6);
    assert_null(request_copy_new(&request));
    free((void *)(uintptr_t)huge.metadata.data);
    buf_deinit(&out);
}

/* --- answers: one good one for each request and version --------------------------------------- */

#define MEMBER5 "0002 'm1' ffff 00000003 'abc' 0002 'm2' 0001 'i' 00000000"
#define MEMBER3 "0002 'm1' 00000003 'abc' 0002 'm2' 00000000"
#define DESCRIBED "0000 0001 'g' 0006 'Stable' 0007 'connect' 0007 'default' 00000001"
#define PARTS "00000001 0000 00000000 00000002 00000001 00000002 00000001 00000002"

static const struct good {
    enum request_api api;
    int16_t version;
    const char *hex;
} goods[] = {
    {REQUEST_API_VERSIONS, 0, "0000 00000002 000b 0002 0009 0012 0000 0004"},
    {REQUEST_SASL_HANDSHAKE, 1, "0000 00000002 0005 'PLAIN' 000d 'SCRAM-SHA-256'"},
    {REQUEST_SASL_AUTHENTICATE, 0, "003a 0002 'no' 00000000"},
    {REQUEST_SASL_AUTHENTICATE, 1, "0000 ffff 00000002 'v=' 0000000000002710"},
    {REQUEST_METADATA, 4,
     "00000007 00000002 00000001 0004 'host' 00002384 ffff 00000002 0003 '::1' 00002385 0001 'r' "
     "0002 "
     "'id' 00000001 00000001 0000 0001 't' 00 " PARTS},
    {REQUEST_FIND_COORDINATOR, 1, "00000000 000f ffff ffffffff 0000 ffffffff"},
    {REQUEST_FIND_COORDINATOR, 2, "00000000 0000 0004 'NONE' 00000001 0004 'host' 00002384"},
    {REQUEST_JOIN_GROUP, 2,
     "00000000 0000 00000005 0001 'p' 0002 'm1' 0002 'm1' 00000002 " MEMBER3},
    {REQUEST_JOIN_GROUP, 3,
     "00000000 0000 00000005 0001 'p' 0002 'm1' 0002 'm1' 00000002 " MEMBER3},
    {REQUEST_JOIN_GROUP, 5,
     "00000000 0000 00000005 0001 'p' 0002 'm1' 0002 'm1' 00000002 " MEMBER5},
    {REQUEST_SYNC_GROUP, 2, "00000000 0000 00000002 'as'"},
    {REQUEST_SYNC_GROUP, 3, "00000000 001b 00000000"},
    {REQUEST_HEARTBEAT, 2, "00000000 001b"},
    {REQUEST_HEARTBEAT, 3, "00000064 0000"},
    {REQUEST_LEAVE_GROUP, 1, "00000000 0019"},
    {REQUEST_LEAVE_GROUP, 2, "00000000 0000"},
    {REQUEST_DESCRIBE_GROUP, 0,
     "00000001 " DESCRIBED " 0002 'm1' 0001 'c' 0002 '/h' 00000001 'x' 00000001 'y'"},
    {REQUEST_DESCRIBE_GROUP, 1,
     "00000000 00000001 " DESCRIBED " 0002 'm1' 0001 'c' 0002 '/h' 00000001 'x' 00000001 'y'"},
    {REQUEST_DESCRIBE_GROUP, 2,
     "00000000 00000001 " DESCRIBED " 0002 'm1' 0001 'c' 0002 '/h' 00000001 'x' 00000001 'y'"},
    {REQUEST_DESCRIBE_GROUP, 3,
     "00000000 00000001 " DESCRIBED
     " 0002 'm1' 0001 'c' 0002 '/h' 00000001 'x' 00000001 'y' 80000000"},
    {REQUEST_DESCRIBE_GROUP, 4,
     "00000000 00000001 " DESCRIBED
     " 0002 'm1' ffff 0001 'c' 0002 '/h' 00000001 'x' 00000001 'y' 80000000"},
    {REQUEST_INIT_PRODUCER_ID, 0, "00000000 0000 0000000000000007 0001"},
    {REQUEST_INIT_PRODUCER_ID, 1, "00000000 0033 ffffffffffffffff ffff"},
    {REQUEST_LIST_OFFSETS, 2,
     "00000000 00000001 0001 't' 00000002 00000000 0000 ffffffffffffffff 0000000000000009 00000003 "
     "0006 "
     "ffffffffffffffff ffffffffffffffff"},
};

#define GOODS (sizeof(goods) / sizeof(*goods))

static struct answer answer_of(enum request_api api, int16_t version)
{
    struct answer answer;

    for (size_t i = 0; i < GOODS; i++)
        if (goods[i].api == api && goods[i].version == version) {
            if (decode(api, version, goods[i].hex, &answer) != 0)
                fail_msg("%s", err.text);
            return answer;
        }
    fail_msg("no such answer");
    abort();
}

static void group_answers_are_read(void **state)
{
    struct answer a = answer_of(REQUEST_JOIN_GROUP, 5);

    assert_int_equal(a.join_group.generation, 5);
    assert_string_equal(a.join_group.protocol, "p");
    assert_string_equal(a.join_group.leader, "m1");
    assert_string_equal(a.join_group.member, "m1");
    assert_int_equal(a.join_group.member_count, 2);
    assert_memory_equal(a.join_group.members[0].metadata.data, "abc", 3);
    assert_string_equal(a.join_group.members[1].member, "m2");
    a = answer_of(REQUEST_JOIN_GROUP, 2);
    assert_int_equal(a.join_group.members[0].metadata.len, 3);
    a = answer_of(REQUEST_SYNC_GROUP, 2);
    assert_int_equal(a.sync_group.assignment.len, 2);
    a = answer_of(REQUEST_SYNC_GROUP, 3);
    assert_int_equal(a.error, 27);
    a = answer_of(REQUEST_HEARTBEAT, 3);
    assert_int_equal(a.throttle_ms, 100);
    a = answer_of(REQUEST_LEAVE_GROUP, 1);
    assert_int_equal(a.error, 25);
    for (int16_t version = 0; version <= 4; version++) {
        a = answer_of(REQUEST_DESCRIBE_GROUP, version);
        assert_string_equal(a.describe_group.state, "Stable");
        assert_int_equal(a.describe_group.member_count, 1);
        assert_string_equal(a.describe_group.members[0].client_id, "c");
        assert_string_equal(a.describe_group.members[0].client_host, "/h");
        assert_memory_equal(a.describe_group.members[0].assignment.data, "y", 1);
    }
}

static void other_answers_are_read(void **state)
{
    struct answer a = answer_of(REQUEST_METADATA, 4);

    assert_int_equal(a.throttle_ms, 7);
    assert_int_equal(a.metadata.broker_count, 2);
    assert_string_equal(a.metadata.brokers[1].host, "::1");
    assert_int_equal(a.metadata.brokers[1].port, 9093);
    assert_string_equal(a.metadata.cluster_id, "id");
    assert_int_equal(a.metadata.topics[0].partitions[0].leader, 2);
    a = answer_of(REQUEST_FIND_COORDINATOR, 2);
    assert_string_equal(a.find_coordinator.broker.host, "host");
    assert_int_equal(a.find_coordinator.broker.port, 9092);
    a = answer_of(REQUEST_FIND_COORDINATOR, 1);
    assert_int_equal(a.error, 15);
    assert_int_equal(a.find_coordinator.broker.port, -1);
    a = answer_of(REQUEST_LIST_OFFSETS, 2);
    assert_int_equal(a.list_offsets.offset_count, 2);
    assert_int_equal(a.list_offsets.offsets[0].offset, 9);
    assert_int_equal(a.list_offsets.offsets[1].error, 6);
    a = answer_of(REQUEST_INIT_PRODUCER_ID, 0);
    assert_int_equal(a.init_producer_id.producer_id, 7);
    assert_int_equal(a.init_producer_id.epoch, 1);
    a = answer_of(REQUEST_SASL_AUTHENTICATE, 1);
    assert_int_equal(a.sasl_authenticate.session_lifetime_ms, 10000);
    a = answer_of(REQUEST_SASL_AUTHENTICATE, 0);
    assert_string_equal(a.sasl_authenticate.message, "no");
    a = answer_of(REQUEST_SASL_HANDSHAKE, 1);
    assert_string_equal(a.sasl_handshake.mechanisms[1], "SCRAM-SHA-256");
    a = answer_of(REQUEST_API_VERSIONS, 0);
    assert_int_equal(a.api_versions.ranges[0].max, 9);
}

/* From memory that ends where the bytes end, so that a sanitizer sees any step beyond. */
static int decode_exactly(const struct good *good, const char *data, size_t len)
{
    char *exact = malloc(len > 0 ? len : 1);
    struct answer answer;
    int rc;

    memcpy(exact, data, len);
    memset(&err, 0, sizeof(err));
    wire_arena_deinit(&arena);
    wire_arena_init(&arena, len * 6 + 4096);
    rc = request_decode(good->api, good->version, exact, len, &arena, &answer, &err);
    free(exact);
    return rc;
}

static void every_truncation_is_an_error_and_a_byte_too_many_too(void **state)
{
    for (size_t i = 0; i < GOODS; i++) {
        struct buf bytes;

        buf_init(&bytes, 10000);
        put_hex(&bytes, goods[i].hex);
        assert_int_equal(decode_exactly(&goods[i], bytes.data, bytes.len), 0);
        for (size_t len = 0; len < bytes.len; len++) {
            assert_int_equal(decode_exactly(&goods[i], bytes.data, len), MR_ERR_PROTOCOL);
            assert_non_null(strstr(err.text, request_name(goods[i].api)));
        }
        buf_putc(&bytes, 'x');
        assert_int_equal(decode_exactly(&goods[i], bytes.data, bytes.len), MR_ERR_PROTOCOL);
        assert_non_null(strstr(err.text, "left over"));
        buf_deinit(&bytes);
    }
}

/* Every four bytes in turn become an absurd number: an error, or an answer that only differs. */
static void absurd_counts_take_no_memory(void **state)
{
    static const char *const absurd[] = {"\x7f\xff\xff\xff", "\x80\0\0\0", "\xff\xff\xff\xfe",
                                         "\0\xff\xff\xff"};

    for (size_t i = 0; i < GOODS; i++)
        for (size_t k = 0; k < 4; k++) {
            struct buf bytes;

            buf_init(&bytes, 10000);
            put_hex(&bytes, goods[i].hex);
            for (size_t at = 0; at + 4 <= bytes.len; at++) {
                char kept[4];

                memcpy(kept, bytes.data + at, 4);
                memcpy(bytes.data + at, absurd[k], 4);
                decode_exactly(&goods[i], bytes.data, bytes.len);
                assert_true(arena.used <= bytes.len * 6 + 4096);
                memcpy(bytes.data + at, kept, 4);
            }
            buf_deinit(&bytes);
        }
}

/* Wherever memory ends, it is an error; with enough of it, none. */
static void memory_that_runs_out_at_any_step_is_an_error(void **state)
{
    for (size_t i = 0; i < GOODS; i++) {
        struct buf bytes;
        int rc = MR_ERR_PROTOCOL;

        buf_init(&bytes, 10000);
        put_hex(&bytes, goods[i].hex);
        for (size_t max = 0; max < 1000; max++) {
            struct answer answer;

            wire_arena_deinit(&arena);
            wire_arena_init(&arena, max);
            rc = request_decode(goods[i].api, goods[i].version, bytes.data, bytes.len, &arena,
                                &answer, NULL);
            assert_true(rc == 0 || rc == MR_ERR_PROTOCOL);
        }
        assert_int_equal(rc, 0);
        buf_deinit(&bytes);
    }
}

static void an_answer_about_something_else_is_refused(void **state)
{
    struct answer a = {.error = 77};

    assert_int_equal(decode(REQUEST_DESCRIBE_GROUP, 1, "00000000 00000000", &a), MR_ERR_PROTOCOL);
    assert_int_equal(a.error, 77); /* not written */
    assert_int_equal(decode(REQUEST_LIST_OFFSETS, 2, "00000000 00000000", &a), MR_ERR_PROTOCOL);
    assert_int_equal(
        decode(REQUEST_FIND_COORDINATOR, 2, "00000000 0000 ffff 00000001 0001 'h' 00000000", &a),
        MR_ERR_PROTOCOL);
    assert_int_equal(
        decode(REQUEST_FIND_COORDINATOR, 2, "00000000 0000 ffff 00000001 0000 00002384", &a),
        MR_ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "no host"));
}

/* --- versions --------------------------------------------------------------------------------- */

static int chosen(enum request_api api, int16_t min, int16_t max)
{
    struct answer_range range = {.key = request_key(api), .min = min, .max = max};
    int16_t version;

    memset(&err, 0, sizeof(err));
    return request_version(api, &range, "b:1", &version, &err) == 0 ? version : err.code;
}

static void the_best_version_of_both_is_chosen(void **state)
{
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 0, 9), 5); /* 4.3.1 */
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 2, 9), 5); /* 4.0.0 */
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 0, 4), 3); /* 2.2 */
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 0, 3), 3); /* 2.0 */
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 0, 2), 2);
    assert_int_equal(chosen(REQUEST_HEARTBEAT, 0, 2), 2);
    assert_int_equal(chosen(REQUEST_DESCRIBE_GROUP, 0, 6), 4);
    assert_int_equal(chosen(REQUEST_DESCRIBE_GROUP, 0, 2), 2);
    assert_int_equal(chosen(REQUEST_SASL_AUTHENTICATE, 0, 0), 0);
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 6, 9), MR_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "broker b:1 takes versions 6 to 9 of the request JoinGroup, "
                                  "Millrace speaks 2 to 5");
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 4, 4), MR_ERR_UNSUPPORTED);
    assert_int_equal(chosen(REQUEST_JOIN_GROUP, 9, 0), MR_ERR_UNSUPPORTED);
    memset(&err, 0, sizeof(err));
    assert_int_equal(request_version(REQUEST_HEARTBEAT, NULL, "b:1", &(int16_t){0}, &err),
                     MR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "Heartbeat"));
}

/* Texts and bytes that are gone once their original is. */
static const char *fleeting(struct wire_arena *from, const char *text)
{
    char *copy = wire_arena_get(from, strlen(text) + 1, 1);

    memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static struct codec_bytes fleeting_bytes(struct wire_arena *from, const char *text)
{
    return (struct codec_bytes){(const uint8_t *)fleeting(from, text), strlen(text)};
}

static struct request fleeting_request(struct wire_arena *from, enum request_api api)
{
    struct request r = {.api = api};
    struct request_protocol *protocol = wire_arena_get(from, 1, sizeof(*protocol));
    struct request_assignment *assignment = wire_arena_get(from, 1, sizeof(*assignment));
    const char **topics = wire_arena_get(from, 1, sizeof(*topics));
    int32_t *partitions = wire_arena_get(from, 2, sizeof(*partitions));
    const char *a = fleeting(from, "first");
    const char *b = fleeting(from, "second");

    *protocol = (struct request_protocol){fleeting(from, "name"), fleeting_bytes(from, "meta")};
    *assignment = (struct request_assignment){fleeting(from, "m"), fleeting_bytes(from, "bytes")};
    topics[0] = fleeting(from, "topic");
    partitions[1] = 9;
    switch (api) {
    case REQUEST_SASL_HANDSHAKE:
        r.sasl_handshake.mechanism = a;
        break;
    case REQUEST_SASL_AUTHENTICATE:
        r.sasl_authenticate.token = fleeting_bytes(from, "token");
        break;
    case REQUEST_METADATA:
        r.metadata = (struct request_metadata){.topics = topics, .topic_count = 1};
        break;
    case REQUEST_FIND_COORDINATOR:
        r.find_coordinator.key = a;
        break;
    case REQUEST_JOIN_GROUP:
        r.join_group = (struct request_join_group){.group = a,
                                                   .member = b,
                                                   .protocol_type = fleeting(from, "connect"),
                                                   .protocols = protocol,
                                                   .protocol_count = 1};
        break;
    case REQUEST_SYNC_GROUP:
        r.sync_group = (struct request_sync_group){
            .group = a, .member = b, .assignments = assignment, .assignment_count = 1};
        break;
    case REQUEST_HEARTBEAT:
        r.heartbeat = (struct request_heartbeat){.group = a, .member = b};
        break;
    case REQUEST_LEAVE_GROUP:
        r.leave_group = (struct request_leave_group){.group = a, .member = b};
        break;
    case REQUEST_DESCRIBE_GROUP:
        r.describe_group.group = a;
        break;
    case REQUEST_INIT_PRODUCER_ID:
        r.init_producer_id.transactional_id = a;
        break;
    case REQUEST_LIST_OFFSETS:
        r.list_offsets = (struct request_list_offsets){
            .topic = a, .partitions = partitions, .partition_count = 2};
        break;
    default:
        break;
    }
    return r;
}

static void a_copy_gives_the_same_bytes_without_its_original(void **state)
{
    static const int16_t versions[REQUEST_API_COUNT] = {
        [REQUEST_SASL_HANDSHAKE] = 1, [REQUEST_SASL_AUTHENTICATE] = 1,
        [REQUEST_METADATA] = 4,       [REQUEST_FIND_COORDINATOR] = 2,
        [REQUEST_JOIN_GROUP] = 5,     [REQUEST_SYNC_GROUP] = 3,
        [REQUEST_HEARTBEAT] = 3,      [REQUEST_LEAVE_GROUP] = 2,
        [REQUEST_DESCRIBE_GROUP] = 4, [REQUEST_INIT_PRODUCER_ID] = 1,
        [REQUEST_LIST_OFFSETS] = 2};

    for (int api = 0; api < REQUEST_API_COUNT; api++) {
        struct request_header header = {.version = versions[api], .client_id = "c"};
        struct wire_arena from;
        struct request request;
        struct request_copy *copy;
        struct buf a;
        struct buf b;

        wire_arena_init(&from, 4000);
        buf_init(&a, 10000);
        buf_init(&b, 10000);
        request = fleeting_request(&from, (enum request_api)api);
        assert_int_equal(request_encode(&request, &header, &a, NULL), 0);
        copy = request_copy_new(&request);
        wire_arena_deinit(&from);
        wire_arena_init(&from, 4000);
        memset(wire_arena_get(&from, 1, 3500), 'x', 3500); /* most likely where they were */
        assert_int_equal(request_encode(&copy->request, &header, &b, NULL), 0);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
        request_copy_free(&copy);
        wire_arena_deinit(&from);
        buf_deinit(&a);
        buf_deinit(&b);
    }
}

static int forget(void **state)
{
    wire_arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_has_the_bytes_of_java),
        cmocka_unit_test(group_requests_have_their_bytes),
        cmocka_unit_test(other_requests_have_their_bytes),
        cmocka_unit_test(a_request_that_is_too_large_leaves_the_buffer_as_it_was),
        cmocka_unit_test(group_answers_are_read),
        cmocka_unit_test(other_answers_are_read),
        cmocka_unit_test(every_truncation_is_an_error_and_a_byte_too_many_too),
        cmocka_unit_test(absurd_counts_take_no_memory),
        cmocka_unit_test(memory_that_runs_out_at_any_step_is_an_error),
        cmocka_unit_test(an_answer_about_something_else_is_refused),
        cmocka_unit_test(the_best_version_of_both_is_chosen),
        cmocka_unit_test(a_copy_gives_the_same_bytes_without_its_original),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
