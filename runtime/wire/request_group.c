/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to and about a group's coordinator: FindCoordinator, JoinGroup, SyncGroup, Heartbeat,
 * LeaveGroup, DescribeGroups, to bytes and back.
 *
 * Connect has no static members: group_instance_id is always null, and skipped in answers. One
 * group a DescribeGroups, so that the answer has one error. Called through the table of request.c.
 * Pure. */
#include "request_private.h"

/* --- FindCoordinator v1, v2 ------------------------------------------------------------------- */

void request_group_encode_find(const struct request *request, int16_t version, struct buf *out)
{
    (void)version;
    codec_put_text(out, request->find_coordinator.key);
    codec_put_i8(out, (int8_t)request->find_coordinator.type);
}

void request_group_decode_find(struct codec_reader *r, int16_t version, struct answer *out)
{
    struct answer_find_coordinator *f = &out->find_coordinator;

    (void)version;
    out->throttle_ms = codec_get_i32(r);
    out->error = codec_get_i16(r);
    f->message = codec_get_null_text(r);
    f->broker.id = codec_get_i32(r);
    if (out->error == 0) {
        request_cluster_get_address(r, &f->broker);
        return;
    }
    codec_skip_text(r);
    codec_get_i32(r);
    f->broker = (struct answer_broker){.id = -1, .host = "", .port = -1};
}

/* --- JoinGroup v2, v3, v5 --------------------------------------------------------------------- */

void request_group_encode_join(const struct request *request, int16_t version, struct buf *out)
{
    const struct request_join_group *j = &request->join_group;

    codec_put_text(out, j->group);
    codec_put_i32(out, j->session_timeout_ms);
    codec_put_i32(out, j->rebalance_timeout_ms);
    codec_put_text(out, j->member);
    if (version >= 5)
        codec_put_text(out, NULL);
    codec_put_text(out, j->protocol_type);
    codec_put_count(out, j->protocol_count);
    for (size_t i = 0; i < j->protocol_count; i++) {
        codec_put_text(out, j->protocols[i].name);
        codec_put_bytes(out, j->protocols[i].metadata);
    }
}

void request_group_decode_join(struct codec_reader *r, int16_t version, struct answer *out)
{
    struct answer_join_group *j = &out->join_group;
    struct answer_join_member *members;

    out->throttle_ms = codec_get_i32(r);
    out->error = codec_get_i16(r);
    j->generation = codec_get_i32(r);
    j->protocol = codec_get_text(r);
    j->leader = codec_get_text(r);
    j->member = codec_get_text(r);
    members = codec_get_array(r, version >= 5 ? 8 : 6, sizeof(*members), &j->member_count);
    for (size_t i = 0; i < j->member_count; i++) {
        members[i].member = codec_get_text(r);
        if (version >= 5)
            codec_skip_text(r);
        members[i].metadata = codec_get_bytes(r);
    }
    j->members = members;
}

/* --- SyncGroup v2, v3 ------------------------------------------------------------------------- */

void request_group_encode_sync(const struct request *request, int16_t version, struct buf *out)
{
    const struct request_sync_group *s = &request->sync_group;

    codec_put_text(out, s->group);
    codec_put_i32(out, s->generation);
    codec_put_text(out, s->member);
    if (version >= 3)
        codec_put_text(out, NULL);
    codec_put_count(out, s->assignment_count);
    for (size_t i = 0; i < s->assignment_count; i++) {
        codec_put_text(out, s->assignments[i].member);
        codec_put_bytes(out, s->assignments[i].assignment);
    }
}

void request_group_decode_sync(struct codec_reader *r, int16_t version, struct answer *out)
{
    (void)version;
    out->throttle_ms = codec_get_i32(r);
    out->error = codec_get_i16(r);
    out->sync_group.assignment = codec_get_bytes(r);
}

/* --- Heartbeat v2, v3; LeaveGroup v1, v2 ------------------------------------------------------ */

void request_group_encode_heartbeat(const struct request *request, int16_t version, struct buf *out)
{
    codec_put_text(out, request->heartbeat.group);
    codec_put_i32(out, request->heartbeat.generation);
    codec_put_text(out, request->heartbeat.member);
    if (version >= 3)
        codec_put_text(out, NULL);
}

void request_group_decode_heartbeat(struct codec_reader *r, int16_t version, struct answer *out)
{
    (void)version;
    out->throttle_ms = codec_get_i32(r);
    out->error = codec_get_i16(r);
}

void request_group_encode_leave(const struct request *request, int16_t version, struct buf *out)
{
    (void)version;
    codec_put_text(out, request->leave_group.group);
    codec_put_text(out, request->leave_group.member);
}

void request_group_decode_leave(struct codec_reader *r, int16_t version, struct answer *out)
{
    request_group_decode_heartbeat(r, version, out);
}

/* --- DescribeGroups v0 to v4 ------------------------------------------------------------------ */

void request_group_encode_describe(const struct request *request, int16_t version, struct buf *out)
{
    codec_put_count(out, 1);
    codec_put_text(out, request->describe_group.group);
    if (version >= 3)
        codec_put_bool(out, false); /* authorized operations */
}

static void get_described_members(struct codec_reader *r, int16_t version,
                                  struct answer_describe_group *d)
{
    struct answer_described_member *members =
        codec_get_array(r, version >= 4 ? 16 : 14, sizeof(*members), &d->member_count);

    for (size_t i = 0; i < d->member_count; i++) {
        members[i].member = codec_get_text(r);
        if (version >= 4)
            codec_skip_text(r);
        members[i].client_id = codec_get_text(r);
        members[i].client_host = codec_get_text(r);
        members[i].metadata = codec_get_bytes(r);
        members[i].assignment = codec_get_bytes(r);
    }
    d->members = members;
}

void request_group_decode_describe(struct codec_reader *r, int16_t version, struct answer *out)
{
    struct answer_describe_group *d = &out->describe_group;

    if (version >= 1)
        out->throttle_ms = codec_get_i32(r);
    if (codec_get_count(r, 14) != 1) {
        codec_fault(r, "it does not describe the one group that was asked for");
        return;
    }
    out->error = codec_get_i16(r);
    codec_skip_text(r);
    d->state = codec_get_text(r);
    d->protocol_type = codec_get_text(r);
    d->protocol = codec_get_text(r);
    get_described_members(r, version, d);
    if (version >= 3)
        codec_get_i32(r); /* authorized operations */
}
