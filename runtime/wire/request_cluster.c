/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about the cluster: ApiVersions, Metadata, ListOffsets, InitProducerId, to bytes and
 * back.
 *
 * One encoder and one decoder each, called through the table of request.c; the layouts are those of
 * reference group-protocol 3. Decoders run to their end whatever comes: after a fault counts are 0
 * and texts "". Pure. */
#include "request_private.h"

void request_cluster_encode_nothing(const struct request *request, int16_t version, struct buf *out)
{
    (void)request;
    (void)version;
    (void)out;
}

/* --- ApiVersions v0 --------------------------------------------------------------------------- */

void request_cluster_decode_api_versions(struct codec_reader *r, int16_t version,
                                         struct answer *out)
{
    size_t count;
    struct answer_range *ranges;

    (void)version;
    out->error = codec_get_i16(r);
    ranges = codec_get_array(r, 6, sizeof(*ranges), &count);
    for (size_t i = 0; i < count; i++) {
        ranges[i].key = codec_get_i16(r);
        ranges[i].min = codec_get_i16(r);
        ranges[i].max = codec_get_i16(r);
    }
    out->api_versions = (struct answer_api_versions){.ranges = ranges, .range_count = count};
}

/* --- Metadata v4 ------------------------------------------------------------------------------ */

void request_cluster_encode_metadata(const struct request *request, int16_t version,
                                     struct buf *out)
{
    const struct request_metadata *m = &request->metadata;

    (void)version;
    codec_put_count(out, m->topic_count);
    for (size_t i = 0; i < m->topic_count; i++)
        codec_put_text(out, m->topics[i]);
    codec_put_bool(out, false);
}

void request_cluster_get_address(struct codec_reader *r, struct answer_broker *out)
{
    out->host = codec_get_text(r);
    out->port = codec_get_i32(r);
    if (r->fault == NULL && (out->host[0] == '\0' || out->port < 1 || out->port > 65535))
        codec_fault(r, "a broker has no host or no port that can be");
}

static void skip_numbers(struct codec_reader *r)
{
    size_t count = codec_get_count(r, 4);

    for (size_t i = 0; i < count; i++)
        codec_get_i32(r);
}

static void get_brokers(struct codec_reader *r, struct answer_metadata *m)
{
    struct answer_broker *brokers = codec_get_array(r, 12, sizeof(*brokers), &m->broker_count);

    for (size_t i = 0; i < m->broker_count; i++) {
        brokers[i].id = codec_get_i32(r);
        request_cluster_get_address(r, &brokers[i]);
        codec_skip_text(r); /* rack */
    }
    m->brokers = brokers;
}

static void get_partitions(struct codec_reader *r, struct answer_topic *topic)
{
    struct answer_partition *parts =
        codec_get_array(r, 18, sizeof(*parts), &topic->partition_count);

    for (size_t i = 0; i < topic->partition_count; i++) {
        parts[i].error = codec_get_i16(r);
        parts[i].index = codec_get_i32(r);
        parts[i].leader = codec_get_i32(r);
        skip_numbers(r); /* replicas */
        skip_numbers(r); /* in sync */
    }
    topic->partitions = parts;
}

void request_cluster_decode_metadata(struct codec_reader *r, int16_t version, struct answer *out)
{
    struct answer_metadata *m = &out->metadata;
    struct answer_topic *topics;

    (void)version;
    out->throttle_ms = codec_get_i32(r);
    get_brokers(r, m);
    m->cluster_id = codec_get_null_text(r);
    m->controller = codec_get_i32(r);
    topics = codec_get_array(r, 9, sizeof(*topics), &m->topic_count);
    for (size_t i = 0; i < m->topic_count; i++) {
        topics[i].error = codec_get_i16(r);
        topics[i].name = codec_get_text(r);
        codec_get_bool(r); /* internal */
        get_partitions(r, &topics[i]);
    }
    m->topics = topics;
}

/* --- ListOffsets v2 --------------------------------------------------------------------------- */

void request_cluster_encode_list_offsets(const struct request *request, int16_t version,
                                         struct buf *out)
{
    const struct request_list_offsets *l = &request->list_offsets;

    (void)version;
    codec_put_i32(out, -1); /* no replica */
    codec_put_i8(out, l->committed);
    codec_put_count(out, 1);
    codec_put_text(out, l->topic);
    codec_put_count(out, l->partition_count);
    for (size_t i = 0; i < l->partition_count; i++) {
        codec_put_i32(out, l->partitions[i]);
        codec_put_i64(out, l->timestamp);
    }
}

void request_cluster_decode_list_offsets(struct codec_reader *r, int16_t version,
                                         struct answer *out)
{
    struct answer_list_offsets *l = &out->list_offsets;
    struct answer_offset *offsets;

    (void)version;
    out->throttle_ms = codec_get_i32(r);
    if (codec_get_count(r, 6) != 1) {
        codec_fault(r, "it does not name the one topic that was asked for");
        return;
    }
    codec_skip_text(r);
    offsets = codec_get_array(r, 22, sizeof(*offsets), &l->offset_count);
    for (size_t i = 0; i < l->offset_count; i++) {
        offsets[i].partition = codec_get_i32(r);
        offsets[i].error = codec_get_i16(r);
        offsets[i].timestamp = codec_get_i64(r);
        offsets[i].offset = codec_get_i64(r);
    }
    l->offsets = offsets;
}

/* --- InitProducerId v0, v1 -------------------------------------------------------------------- */

void request_cluster_encode_init_producer_id(const struct request *request, int16_t version,
                                             struct buf *out)
{
    (void)version;
    codec_put_text(out, request->init_producer_id.transactional_id);
    codec_put_i32(out, request->init_producer_id.transaction_timeout_ms);
}

void request_cluster_decode_init_producer_id(struct codec_reader *r, int16_t version,
                                             struct answer *out)
{
    (void)version;
    out->throttle_ms = codec_get_i32(r);
    out->error = codec_get_i16(r);
    out->init_producer_id.producer_id = codec_get_i64(r);
    out->init_producer_id.epoch = codec_get_i16(r);
}
