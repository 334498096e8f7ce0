/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a broker: the first byte picks request and version, the rest is the body. Whatever it
 * is, it is decoded into memory that is bounded by its length, or refused with words; what was
 * decoded can be read to its last member. The first byte 0xff: the rest are the tokens of a SCRAM
 * login, a line each. */
#include "wire/request.h"
#include "wire/scram.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    enum request_api api;
    int16_t version;
} picks[] = {
    {REQUEST_API_VERSIONS, 0},      {REQUEST_SASL_HANDSHAKE, 1}, {REQUEST_SASL_AUTHENTICATE, 0},
    {REQUEST_SASL_AUTHENTICATE, 1}, {REQUEST_METADATA, 4},       {REQUEST_FIND_COORDINATOR, 1},
    {REQUEST_FIND_COORDINATOR, 2},  {REQUEST_JOIN_GROUP, 2},     {REQUEST_JOIN_GROUP, 3},
    {REQUEST_JOIN_GROUP, 5},        {REQUEST_SYNC_GROUP, 2},     {REQUEST_SYNC_GROUP, 3},
    {REQUEST_HEARTBEAT, 3},         {REQUEST_LEAVE_GROUP, 2},    {REQUEST_DESCRIBE_GROUP, 0},
    {REQUEST_DESCRIBE_GROUP, 1},    {REQUEST_DESCRIBE_GROUP, 3}, {REQUEST_DESCRIBE_GROUP, 4},
    {REQUEST_INIT_PRODUCER_ID, 1},  {REQUEST_LIST_OFFSETS, 2},
};

static volatile size_t sum;

static void read_text(const char *text)
{
    if (text != NULL)
        sum += strlen(text);
}

static void read_bytes(struct codec_bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum += bytes.data[i];
}

static void read_cluster(const struct answer *a)
{
    if (a->api == REQUEST_API_VERSIONS)
        for (size_t i = 0; i < a->api_versions.range_count; i++)
            sum += (size_t)a->api_versions.ranges[i].max;
    if (a->api == REQUEST_SASL_HANDSHAKE)
        for (size_t i = 0; i < a->sasl_handshake.mechanism_count; i++)
            read_text(a->sasl_handshake.mechanisms[i]);
    if (a->api == REQUEST_SASL_AUTHENTICATE) {
        read_text(a->sasl_authenticate.message);
        read_bytes(a->sasl_authenticate.token);
    }
    if (a->api == REQUEST_LIST_OFFSETS)
        for (size_t i = 0; i < a->list_offsets.offset_count; i++)
            sum += (size_t)a->list_offsets.offsets[i].offset;
}

static void read_metadata(const struct answer_metadata *m)
{
    for (size_t i = 0; i < m->broker_count; i++) {
        read_text(m->brokers[i].host);
        if (m->brokers[i].port < 1 || m->brokers[i].port > 65535)
            abort();
    }
    read_text(m->cluster_id);
    for (size_t i = 0; i < m->topic_count; i++) {
        read_text(m->topics[i].name);
        for (size_t k = 0; k < m->topics[i].partition_count; k++)
            sum += (size_t)m->topics[i].partitions[k].leader;
    }
}

static void read_group(const struct answer *a)
{
    if (a->api == REQUEST_FIND_COORDINATOR) {
        read_text(a->find_coordinator.message);
        read_text(a->find_coordinator.broker.host);
    }
    if (a->api == REQUEST_JOIN_GROUP) {
        read_text(a->join_group.protocol);
        read_text(a->join_group.leader);
        read_text(a->join_group.member);
        for (size_t i = 0; i < a->join_group.member_count; i++) {
            read_text(a->join_group.members[i].member);
            read_bytes(a->join_group.members[i].metadata);
        }
    }
    if (a->api == REQUEST_SYNC_GROUP)
        read_bytes(a->sync_group.assignment);
    if (a->api == REQUEST_DESCRIBE_GROUP) {
        read_text(a->describe_group.state);
        read_text(a->describe_group.protocol);
        for (size_t i = 0; i < a->describe_group.member_count; i++) {
            read_text(a->describe_group.members[i].client_host);
            read_bytes(a->describe_group.members[i].assignment);
        }
    }
}

/* No line makes us prove anything to a broker that did not prove itself: three lines at most, and
 * the third must fail. */
static void log_in(const char *lines, size_t size)
{
    struct scram *s = scram_new(&(struct scram_user){
        .name = "user", .password = "pencil", .nonce = "rOprNGfwEbeRWgbNEkqO"});
    struct mr_error err = {0};
    struct buf out;

    buf_init(&out, 1 << 20);
    if (s == NULL || scram_step(s, (struct codec_bytes){0}, &out, &err) != 0)
        abort();
    for (int line = 0; line < 3; line++) {
        const char *end = size > 0 ? memchr(lines, '\n', size) : NULL;
        size_t len = end != NULL ? (size_t)(end - lines) : size;
        int rc = scram_step(s, (struct codec_bytes){(const uint8_t *)lines, len}, &out, &err);

        if (rc < 0 && err.text[0] == '\0')
            abort();
        if (rc != 0)
            break;
        len += end != NULL;
        lines += len;
        size -= len;
    }
    scram_free(&s);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_arena arena;
    struct mr_error err = {0};
    struct answer answer;
    size_t pick;
    int rc;

    if (size < 1)
        return 0;
    if (data[0] == 0xff) {
        log_in((const char *)data + 1, size - 1);
        return 0;
    }
    pick = data[0] % (sizeof(picks) / sizeof(*picks));
    wire_arena_init(&arena, size * 6 + 4096);
    rc = request_decode(picks[pick].api, picks[pick].version, data + 1, size - 1, &arena, &answer,
                        &err);
    if (rc != 0 && (rc != MR_ERR_PROTOCOL || err.text[0] == '\0'))
        abort();
    if (rc == 0) {
        read_cluster(&answer);
        if (answer.api == REQUEST_METADATA)
            read_metadata(&answer.metadata);
        read_group(&answer);
    }
    wire_arena_deinit(&arena);
    return 0;
}
