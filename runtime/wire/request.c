/* SPDX-License-Identifier: Apache-2.0 */
/* The table of requests: key and versions on the wire, encoder, decoder; and what is the same for
 * all of them.
 *
 * broker_conn.c asks for the version that it and the broker have in common, has the frame made, and
 * the body of the answer decoded. Only versions of the table are ever sent: bit n of `versions`
 * stands for version n. Pure. */
#include "request_private.h"

#include <string.h>

#define MAX_REQUEST (16u * 1024 * 1024)

static const struct row {
    const char *name;
    int16_t key;
    uint16_t versions;
    request_encoder *encode;
    request_decoder *decode;
} table[REQUEST_API_COUNT] = {
    [REQUEST_API_VERSIONS] = {"ApiVersions", 18, 1 << 0, request_cluster_encode_nothing,
                              request_cluster_decode_api_versions},
    [REQUEST_SASL_HANDSHAKE] = {"SaslHandshake", 17, 1 << 1, request_sasl_encode_handshake,
                                request_sasl_decode_handshake},
    [REQUEST_SASL_AUTHENTICATE] = {"SaslAuthenticate", 36, 1 << 0 | 1 << 1,
                                   request_sasl_encode_authenticate,
                                   request_sasl_decode_authenticate},
    [REQUEST_METADATA] = {"Metadata", 3, 1 << 4, request_cluster_encode_metadata,
                          request_cluster_decode_metadata},
    [REQUEST_FIND_COORDINATOR] = {"FindCoordinator", 10, 1 << 1 | 1 << 2, request_group_encode_find,
                                  request_group_decode_find},
    [REQUEST_JOIN_GROUP] = {"JoinGroup", 11, 1 << 2 | 1 << 3 | 1 << 5, request_group_encode_join,
                            request_group_decode_join},
    [REQUEST_SYNC_GROUP] = {"SyncGroup", 14, 1 << 2 | 1 << 3, request_group_encode_sync,
                            request_group_decode_sync},
    [REQUEST_HEARTBEAT] = {"Heartbeat", 12, 1 << 2 | 1 << 3, request_group_encode_heartbeat,
                           request_group_decode_heartbeat},
    [REQUEST_LEAVE_GROUP] = {"LeaveGroup", 13, 1 << 1 | 1 << 2, request_group_encode_leave,
                             request_group_decode_leave},
    [REQUEST_DESCRIBE_GROUP] = {"DescribeGroups", 15, 0x1f, request_group_encode_describe,
                                request_group_decode_describe},
    [REQUEST_INIT_PRODUCER_ID] = {"InitProducerId", 22, 1 << 0 | 1 << 1,
                                  request_cluster_encode_init_producer_id,
                                  request_cluster_decode_init_producer_id},
    [REQUEST_LIST_OFFSETS] = {"ListOffsets", 2, 1 << 2, request_cluster_encode_list_offsets,
                              request_cluster_decode_list_offsets},
};

const char *request_name(enum request_api api)
{
    return table[api].name;
}

int16_t request_key(enum request_api api)
{
    return table[api].key;
}

static int highest(uint16_t versions)
{
    int n = -1;

    for (; versions != 0; versions >>= 1)
        n++;
    return n;
}

static int lowest(uint16_t versions)
{
    return __builtin_ctz(versions);
}

int request_version(enum request_api api, const struct answer_range *range, const char *who,
                    int16_t *version, struct mr_error *err)
{
    uint16_t ours = table[api].versions;

    for (int n = highest(ours); range != NULL && n >= 0; n--)
        if ((ours >> n & 1) != 0 && n >= range->min && n <= range->max) {
            *version = (int16_t)n;
            return 0;
        }
    if (range == NULL)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "broker %s does not know the request %s: it is older than Kafka 2.0", who,
                       table[api].name);
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "broker %s takes versions %d to %d of the request %s, Millrace speaks %d to %d",
                   who, range->min, range->max, table[api].name, lowest(ours), highest(ours));
}

/* --- frames ----------------------------------------------------------------------------------- */

static void write_size(struct buf *out, size_t at)
{
    uint32_t size = (uint32_t)(out->len - at - 4);

    for (int i = 0; i < 4; i++)
        out->data[at + (size_t)i] = (char)(size >> (24 - 8 * i));
}

/* Into a buffer of its own first: out may hold frames before it, and must be as it was when this
 * one is too large. */
int request_encode(const struct request *request, const struct request_header *header,
                   struct buf *out, struct mr_error *err)
{
    const struct row *row = &table[request->api];
    struct buf frame;
    int rc;

    mr_assert((row->versions >> header->version & 1) != 0);
    buf_init(&frame, MAX_REQUEST);
    codec_put_i32(&frame, 0);
    codec_put_i16(&frame, row->key);
    codec_put_i16(&frame, header->version);
    codec_put_i32(&frame, header->correlation_id);
    codec_put_text(&frame, header->client_id);
    row->encode(request, header->version, &frame);
    if (!frame.failed)
        write_size(&frame, 0);
    rc = frame.failed ? MR_ERR_TOO_LARGE : buf_append(out, frame.data, frame.len);
    buf_deinit(&frame);
    return rc == 0 ? 0
                   : mr_fail(err, MR_ERR_TOO_LARGE,
                             "the request %s is larger than %u bytes, or a text in it than 32767",
                             row->name, MAX_REQUEST);
}

int request_decode(enum request_api api, int16_t version, const void *data, size_t len,
                   struct wire_arena *arena, struct answer *out, struct mr_error *err)
{
    struct answer answer = {.api = api};
    struct mr_error why = {0};
    struct codec_reader r;

    codec_reader_init(&r, data, len, arena);
    table[api].decode(&r, version, &answer);
    if (codec_reader_end(&r, &why) != 0)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "the answer to %s version %d, %zu bytes, can't be read: %s", table[api].name,
                       version, len, why.text);
    *out = answer;
    return 0;
}
