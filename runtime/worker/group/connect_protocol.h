/* SPDX-License-Identifier: Apache-2.0 */
/* What Connect workers put into the bytes that a group carries for them: a member's metadata, and
 * what the leader assigns to it. A pure codec: the bytes that it writes are those of the Java
 * worker, the bytes that it accepts are those that Java's reader accepts.
 * Spec: Kafka's ConnectProtocol (version 0), IncrementalCooperativeConnectProtocol (1, 2). */
#ifndef WORKER_GROUP_CONNECT_PROTOCOL_H
#define WORKER_GROUP_CONNECT_PROTOCOL_H

#include "base/buf.h"
#include "worker/group/work_list.h"

#define CONNECT_PROTOCOL_TYPE "connect"
/* Of one metadata or assignment, in both directions. */
#define CONNECT_PROTOCOL_MAX_BYTES (4u << 20)
#define CONNECT_PROTOCOL_MAX_ITEMS 50000u /* of a list that is read: connectors, and tasks */

/* The sub-protocols. The number is the version in the bytes. */
enum connect_kind {
    CONNECT_EAGER,      /* "default" */
    CONNECT_COMPATIBLE, /* "compatible": cooperative */
    CONNECT_SESSIONED   /* "sessioned": cooperative, and internal REST calls are signed */
};

#define CONNECT_KINDS 3

const char *connect_protocol_name(enum connect_kind kind);
/* By the name in an answer; false: none of ours. */
bool connect_protocol_kind(const char *name, enum connect_kind *kind);

enum connect_error { CONNECT_OK = 0, CONNECT_CONFIG_MISMATCH = 1 };

/* version     0 to 2 when written; as it stood in the bytes when read (0 to 32767)
 * error       enum connect_error, or what else a leader may send
 * leader      its member id; leader_url: where its REST answers; never NULL once read
 * offset      of the config topic, that the assignment was made for
 * revoked     and delay_ms: empty and 0 in version 0; delay_ms may be negative when read */
struct connect_assignment {
    int16_t version;
    int16_t error;
    char *leader;
    char *leader_url;
    int64_t offset;
    struct work_list assigned;
    struct work_list revoked;
    int32_t delay_ms;
};

/* allocation  what the member holds: an assignment of its last round whose `assigned` counts; NULL
 *             none */
struct connect_metadata {
    int16_t version;
    char *url;
    int64_t offset;
    struct connect_assignment *allocation;
};

void connect_protocol_assignment_deinit(struct connect_assignment *assignment);
void connect_protocol_metadata_deinit(struct connect_metadata *metadata); /* the allocation too */

/* Append the bytes to out; NULL texts count as "". 0, MR_ERR_FULL (out's cap), MR_ERR_TOO_LARGE (a
 * text above 32767 bytes) or MR_ERR_NOMEM: then out holds a part. */
int connect_protocol_write_assignment(struct buf *out, const struct connect_assignment *assignment);
int connect_protocol_write_metadata(struct buf *out, const struct connect_metadata *metadata);

/* Read len bytes into *out, which is overwritten and to be deinitialised; on failure it is left
 * alone.
 *
 * eager  read as the "default" protocol does: the lists of other protocols are not looked at
 *
 * MR_ERR_PROTOCOL names the field. Fields that are missing at the end are null or 0 (from the
 * assigned list on, of the cooperative form; the allocation), bytes behind the last field are
 * ignored, so are versions above the known ones. */
int connect_protocol_read_assignment(const void *data, size_t len, bool eager,
                                     struct connect_assignment *out, struct mr_error *err);
int connect_protocol_read_metadata(const void *data, size_t len, bool eager,
                                   struct connect_metadata *out, struct mr_error *err);

#endif
