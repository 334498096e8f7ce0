/* SPDX-License-Identifier: Apache-2.0 */
/* What the files behind request.h share: one encoder and one decoder a request. */
#ifndef WIRE_REQUEST_PRIVATE_H
#define WIRE_REQUEST_PRIVATE_H

#include "wire/request.h"

/* Append the body of that version. */
typedef void request_encoder(const struct request *request, int16_t version, struct buf *out);
/* Read the body of that version: faults stay in r. Fills error, throttle_ms and the request's own
 * part of out. */
typedef void request_decoder(struct codec_reader *r, int16_t version, struct answer *out);

/* request_cluster.c */
request_encoder request_cluster_encode_nothing, request_cluster_encode_metadata,
    request_cluster_encode_list_offsets, request_cluster_encode_init_producer_id;
request_decoder request_cluster_decode_api_versions, request_cluster_decode_metadata,
    request_cluster_decode_list_offsets, request_cluster_decode_init_producer_id;

/* request_sasl.c */
request_encoder request_sasl_encode_handshake, request_sasl_encode_authenticate;
request_decoder request_sasl_decode_handshake, request_sasl_decode_authenticate;

/* request_group.c */
request_encoder request_group_encode_find, request_group_encode_join, request_group_encode_sync,
    request_group_encode_heartbeat, request_group_encode_leave, request_group_encode_describe;
request_decoder request_group_decode_find, request_group_decode_join, request_group_decode_sync,
    request_group_decode_heartbeat, request_group_decode_leave, request_group_decode_describe;

/* request_copy.c: a copy that owns all it needs; NULL out of memory. For calls that wait. */
struct request_copy {
    struct request request;
    struct wire_arena arena;
};
struct request_copy *request_copy_new(const struct request *request);
void request_copy_free(struct request_copy **copy);

/* A broker's host and port: a port outside 1 to 65535 is a fault. */
void request_cluster_get_address(struct codec_reader *r, struct answer_broker *out);

#endif
