/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's part of a round: members' metadata in, assignments out. member.c adds the members of
 * a JoinGroup answer, waits for the herder's snapshot, and sends what lead_make wrote. Every member
 * gets an entry, since a Java worker that gets zero bytes ends. Spec: reference group-protocol 8
 * (offsets) to 10. */
#include "worker/group/lead.h"

#include <stdlib.h>
#include <string.h>

/* --- the snapshot ----------------------------------------------------------------------------- */

struct lead_snapshot *lead_snapshot_new(int64_t offset)
{
    struct lead_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (snapshot != NULL)
        snapshot->offset = offset;
    return snapshot;
}

void lead_snapshot_free(struct lead_snapshot **snapshot)
{
    struct lead_snapshot *s = *snapshot;

    *snapshot = NULL;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->conn_count; i++)
        free((char *)s->conns[i].name);
    for (size_t i = 0; i < s->leaver_count; i++)
        free(s->leavers[i]);
    free(s->conns);
    free(s->leavers);
    free(s);
}

/* Arrays grow at powers of two, so that no capacity must be kept. */
static void *grown(void *array, size_t count, size_t size)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return array;
    return realloc(array, (count == 0 ? 1 : count * 2) * size);
}

int lead_snapshot_add(struct lead_snapshot *snapshot, const char *conn, int32_t tasks)
{
    struct assignor_conn *conns =
        grown(snapshot->conns, snapshot->conn_count, sizeof(*snapshot->conns));
    char *name = strdup(conn);

    if (conns != NULL)
        snapshot->conns = conns;
    if (conns == NULL || name == NULL) {
        free(name);
        return MR_ERR_NOMEM;
    }
    conns[snapshot->conn_count++] = (struct assignor_conn){.name = name, .tasks = tasks};
    return 0;
}

int lead_snapshot_add_leaver(struct lead_snapshot *snapshot, const char *member)
{
    char **leavers = grown(snapshot->leavers, snapshot->leaver_count, sizeof(*snapshot->leavers));
    char *id = strdup(member);

    if (leavers != NULL)
        snapshot->leavers = leavers;
    if (leavers == NULL || id == NULL) {
        free(id);
        return MR_ERR_NOMEM;
    }
    leavers[snapshot->leaver_count++] = id;
    return 0;
}

/* --- the members ------------------------------------------------------------------------------ */

void lead_deinit(struct lead *lead)
{
    for (size_t i = 0; i < lead->count; i++) {
        free(lead->members[i].id);
        connect_protocol_metadata_deinit(&lead->members[i].metadata);
        buf_deinit(&lead->members[i].bytes);
    }
    free(lead->members);
    assignor_plan_deinit(&lead->plan);
    *lead = (struct lead){0};
}

static struct lead_member *add_member(struct lead *lead, const char *id)
{
    struct lead_member *members = grown(lead->members, lead->count, sizeof(*members));
    char *copy = strdup(id);

    if (members != NULL)
        lead->members = members;
    if (members == NULL || copy == NULL) {
        free(copy);
        return NULL;
    }
    if (lead->count == 0)
        lead->max_offset = -1;
    members[lead->count] = (struct lead_member){.id = copy};
    buf_init(&members[lead->count].bytes, CONNECT_PROTOCOL_MAX_BYTES);
    return &members[lead->count++];
}

int lead_add_take(struct lead *lead, const char *id, struct connect_metadata *metadata)
{
    struct lead_member *member = add_member(lead, id);

    if (member == NULL)
        return MR_ERR_NOMEM;
    member->readable = true;
    member->metadata = *metadata;
    *metadata = (struct connect_metadata){0};
    if (member->metadata.offset > lead->max_offset)
        lead->max_offset = member->metadata.offset;
    return 0;
}

int lead_add(struct lead *lead, const char *id, const void *bytes, size_t len, bool eager,
             struct mr_error *err)
{
    struct connect_metadata metadata = {0};
    int rc = connect_protocol_read_metadata(bytes, len, eager, &metadata, err);

    if (rc != 0)
        return rc == MR_ERR_NOMEM || add_member(lead, id) == NULL ? MR_ERR_NOMEM : 0;
    rc = lead_add_take(lead, id, &metadata);
    connect_protocol_metadata_deinit(&metadata);
    return rc;
}

/* --- the assignments -------------------------------------------------------------------------- */

static struct lead_member *member_named(struct lead *lead, const char *id)
{
    for (size_t i = 0; i < lead->count; i++)
        if (strcmp(lead->members[i].id, id) == 0)
            return &lead->members[i];
    return NULL;
}

static enum assignor_policy policy_of(const struct lead_terms *terms)
{
    if (terms->kind == CONNECT_EAGER)
        return ASSIGNOR_EAGER;
    return terms->java ? ASSIGNOR_JAVA : ASSIGNOR_MILLRACE;
}

static int make_plan(struct lead *lead, const struct lead_terms *terms)
{
    struct assignor_member *members = calloc(lead->count + 1, sizeof(*members));
    struct assignor_round round = {
        .now_ms = terms->now_ms,
        .generation = terms->generation,
        .last_completed = terms->last_completed,
        .max_delay_ms = terms->max_delay_ms,
        .conns = terms->snapshot->conns,
        .conn_count = terms->snapshot->conn_count,
        .members = members,
        .leavers = (const char *const *)terms->snapshot->leavers,
        .leaver_count = terms->snapshot->leaver_count,
    };
    int rc;

    if (members == NULL)
        return MR_ERR_NOMEM;
    for (size_t i = 0; i < lead->count; i++) {
        const struct connect_assignment *held = lead->members[i].metadata.allocation;

        if (lead->members[i].readable)
            members[round.member_count++] = (struct assignor_member){
                .id = lead->members[i].id, .allocation = held == NULL ? NULL : &held->assigned};
    }
    rc = assignor_make(terms->assignor, policy_of(terms), &round, &lead->plan);
    for (size_t i = 0; i < lead->plan.count; i++)
        member_named(lead, lead->plan.shares[i].member)->share = &lead->plan.shares[i];
    free(members);
    return rc;
}

static int write_member(const struct lead *lead, const struct lead_terms *terms,
                        struct lead_member *member)
{
    struct connect_assignment assignment = {
        .version = (int16_t)terms->kind,
        .error = lead->error,
        .leader = (char *)terms->leader,
        .leader_url = (char *)terms->leader_url,
        .offset = lead->offset,
        .delay_ms = (int32_t)(lead->plan.delay_ms < INT32_MAX ? lead->plan.delay_ms : INT32_MAX),
    };

    if (member->share != NULL) {
        assignment.assigned = member->share->assigned; /* borrowed */
        assignment.revoked = member->share->revoked;
    }
    buf_reset(&member->bytes);
    return connect_protocol_write_assignment(&member->bytes, &assignment);
}

int lead_make(struct lead *lead, const struct lead_terms *terms)
{
    bool behind = terms->snapshot == NULL || terms->snapshot->offset < lead->max_offset;
    int rc = 0;

    lead->error = behind ? CONNECT_CONFIG_MISMATCH : CONNECT_OK;
    lead->offset = behind ? lead->max_offset : terms->snapshot->offset;
    if (!behind)
        rc = make_plan(lead, terms);
    for (size_t i = 0; rc == 0 && i < lead->count; i++)
        rc = write_member(lead, terms, &lead->members[i]);
    return rc;
}
