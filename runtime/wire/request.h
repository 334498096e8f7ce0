/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that this room speaks, as values, and their answers. Encoding and decoding are pure.
 *
 * One struct a request and one an answer, whatever the version on the wire: what an older version
 * lacks is NULL, -1 or 0 in the answer, and is left out of the request. Texts end with NUL and are
 * UTF-8; bytes have a length.
 * Spec: reference group-protocol 1 to 3 (non-flexible versions only). */
#ifndef WIRE_REQUEST_H
#define WIRE_REQUEST_H

#include "wire/codec.h"

enum request_api {
    REQUEST_API_VERSIONS,
    REQUEST_SASL_HANDSHAKE,
    REQUEST_SASL_AUTHENTICATE,
    REQUEST_METADATA,
    REQUEST_FIND_COORDINATOR,
    REQUEST_JOIN_GROUP,
    REQUEST_SYNC_GROUP,
    REQUEST_HEARTBEAT,
    REQUEST_LEAVE_GROUP,
    REQUEST_DESCRIBE_GROUP,
    REQUEST_INIT_PRODUCER_ID,
    REQUEST_LIST_OFFSETS,
    REQUEST_API_COUNT
};

/* --- requests: everything borrowed for the call that takes it --------------------------------- */

struct request_sasl_handshake {
    const char *mechanism;
};

struct request_sasl_authenticate {
    struct codec_bytes token;
};

/* Brokers always come with the answer; topics are never created. */
struct request_metadata {
    const char *const *topics;
    size_t topic_count; /* 0: brokers only */
};

enum request_key_type { REQUEST_KEY_GROUP = 0, REQUEST_KEY_TRANSACTION = 1 };

struct request_find_coordinator {
    const char *key;
    enum request_key_type type;
};

struct request_protocol {
    const char *name;
    struct codec_bytes metadata;
};

struct request_join_group {
    const char *group;
    int32_t session_timeout_ms;
    int32_t rebalance_timeout_ms;
    const char *member; /* "": none yet */
    const char *protocol_type;
    const struct request_protocol *protocols; /* best first */
    size_t protocol_count;
};

struct request_assignment {
    const char *member;
    struct codec_bytes assignment;
};

struct request_sync_group {
    const char *group;
    int32_t generation;
    const char *member;
    const struct request_assignment *assignments; /* the leader's; followers: none */
    size_t assignment_count;
};

struct request_heartbeat {
    const char *group;
    int32_t generation;
    const char *member;
};

struct request_leave_group {
    const char *group;
    const char *member;
};

struct request_describe_group {
    const char *group;
};

struct request_init_producer_id {
    const char *transactional_id;
    int32_t transaction_timeout_ms;
};

#define REQUEST_LATEST (-1)
#define REQUEST_EARLIEST (-2)

/* Goes to the leader of all these partitions. */
struct request_list_offsets {
    const char *topic;
    const int32_t *partitions;
    size_t partition_count;
    int64_t timestamp; /* REQUEST_LATEST, REQUEST_EARLIEST, or wall-clock ms */
    bool committed;    /* the last stable offset in place of the high watermark */
};

struct request {
    enum request_api api;
    union {
        struct request_sasl_handshake sasl_handshake;
        struct request_sasl_authenticate sasl_authenticate;
        struct request_metadata metadata;
        struct request_find_coordinator find_coordinator;
        struct request_join_group join_group;
        struct request_sync_group sync_group;
        struct request_heartbeat heartbeat;
        struct request_leave_group leave_group;
        struct request_describe_group describe_group;
        struct request_init_producer_id init_producer_id;
        struct request_list_offsets list_offsets;
    };
};

/* --- answers: everything borrowed from the answer's arena and frame --------------------------- */

struct answer_range {
    int16_t key; /* as on the wire */
    int16_t min;
    int16_t max;
};

struct answer_api_versions {
    const struct answer_range *ranges;
    size_t range_count;
};

struct answer_sasl_handshake {
    const char *const *mechanisms; /* what the broker enables */
    size_t mechanism_count;
};

struct answer_sasl_authenticate {
    const char *message; /* with an error; may be NULL */
    struct codec_bytes token;
    int64_t session_lifetime_ms; /* 0: for ever */
};

struct answer_broker {
    int32_t id;
    const char *host;
    int32_t port; /* 1 to 65535 */
};

struct answer_partition {
    int16_t error;
    int32_t index;
    int32_t leader; /* -1: none */
};

struct answer_topic {
    int16_t error;
    const char *name;
    const struct answer_partition *partitions;
    size_t partition_count;
};

struct answer_metadata {
    const struct answer_broker *brokers;
    size_t broker_count;
    const char *cluster_id; /* may be NULL */
    int32_t controller;
    const struct answer_topic *topics;
    size_t topic_count;
};

struct answer_find_coordinator {
    const char *message;         /* with an error; may be NULL */
    struct answer_broker broker; /* id -1, host "" and port -1 with an error */
};

struct answer_join_member {
    const char *member;
    struct codec_bytes metadata;
};

struct answer_join_group {
    int32_t generation;
    const char *protocol; /* "" with an error */
    const char *leader;
    const char *member; /* also with MEMBER_ID_REQUIRED: the id to join with */
    const struct answer_join_member *members; /* the leader's only */
    size_t member_count;
};

struct answer_sync_group {
    struct codec_bytes assignment; /* no bytes: the leader gave us none */
};

struct answer_described_member {
    const char *member;
    const char *client_id;
    const char *client_host;
    struct codec_bytes metadata;
    struct codec_bytes assignment;
};

struct answer_describe_group {
    const char *state; /* "Stable", "Empty", "Dead" (no such group) … */
    const char *protocol_type;
    const char *protocol;
    const struct answer_described_member *members;
    size_t member_count;
};

struct answer_init_producer_id {
    int64_t producer_id;
    int16_t epoch;
};

struct answer_offset {
    int32_t partition;
    int16_t error;
    int64_t timestamp;
    int64_t offset;
};

struct answer_list_offsets {
    const struct answer_offset *offsets;
    size_t offset_count;
};

struct answer {
    enum request_api api;
    /* Kafka's code of the whole answer; 0 where the answer has codes of its own in parts. */
    int16_t error;
    int32_t throttle_ms; /* already honoured by the connection */
    /* CLOCK_BOOTTIME before the first byte of the request went out: what a lease counts from. */
    int64_t sent_boot_ms;
    union {
        struct answer_api_versions api_versions;
        struct answer_sasl_handshake sasl_handshake;
        struct answer_sasl_authenticate sasl_authenticate;
        struct answer_metadata metadata;
        struct answer_find_coordinator find_coordinator;
        struct answer_join_group join_group;
        struct answer_sync_group sync_group;
        struct answer_describe_group describe_group;
        struct answer_init_producer_id init_producer_id;
        struct answer_list_offsets list_offsets;
    };
};

/* Told once for every call that was taken, on the loop's thread, never from inside the call that
 * took it; it may free what the call went through. Exactly one of answer and err is NULL; both are
 * gone when this returns. err->code says how it failed:
 *   MR_ERR_TIMEOUT      no answer within the call's time; the broker may still have acted
 *   MR_ERR_CLOSED       the connection ended, or the caller freed what it called through; the same
 *   MR_ERR_PROTOCOL     the broker broke the protocol; the connection was ended for it
 *   MR_ERR_IO           no broker could be reached
 *   MR_ERR_UNSUPPORTED  the broker speaks no version of this request that we speak
 *   MR_ERR_FATAL        login or certificate were refused: will not get better by itself
 * The last two are fatal, the others may be tried again. An answer whose `error` is not 0 is an
 * answer. */
typedef void (*answer_fn)(void *arg, const struct answer *answer, const struct mr_error *err);

/* --- the table -------------------------------------------------------------------------------- */

const char *request_name(enum request_api api); /* "JoinGroup" */
int16_t request_key(enum request_api api);      /* as on the wire */

/* The best version that both know, or MR_ERR_UNSUPPORTED naming the request and both ranges. range
 * NULL: the broker does not know the request at all. who: the broker, for the error. */
int request_version(enum request_api api, const struct answer_range *range, const char *who,
                    int16_t *version, struct mr_error *err);

/* The whole frame, appended to out: size, header, body. MR_ERR_TOO_LARGE (out is as before
 * then). */
struct request_header {
    int16_t version;
    int32_t correlation_id;
    const char *client_id; /* may be NULL */
};
int request_encode(const struct request *request, const struct request_header *header,
                   struct buf *out, struct mr_error *err);

/* The body of an answer (behind the correlation id), len bytes which outlive what is decoded.
 * MR_ERR_PROTOCOL names the request and what is wrong; out is then not written. */
int request_decode(enum request_api api, int16_t version, const void *data, size_t len,
                   struct wire_arena *arena, struct answer *out, struct mr_error *err);

#endif
