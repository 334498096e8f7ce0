/* SPDX-License-Identifier: Apache-2.0 */
/* One round as its leader sees it: what the members sent, what is configured, and the bytes that
 * each is to get. Values in, values out; used on the group thread, between the answer to JoinGroup
 * and SyncGroup. */
#ifndef WORKER_GROUP_LEAD_H
#define WORKER_GROUP_LEAD_H

#include "worker/group/assignor.h"
#include "worker/group/connect_protocol.h"

/* What the herder hands over, as of one offset of the config topic (-1: nothing was read yet).
 * Names and ids are its own. */
struct lead_snapshot {
    int64_t offset;
    struct assignor_conn *conns;
    size_t conn_count;
    char **leavers; /* ids of members that said goodbye */
    size_t leaver_count;
};

/* NULL out of memory, like the adds' MR_ERR_NOMEM. */
struct lead_snapshot *lead_snapshot_new(int64_t offset);
void lead_snapshot_free(struct lead_snapshot **snapshot);
int lead_snapshot_add(struct lead_snapshot *snapshot, const char *conn, int32_t tasks);
int lead_snapshot_add_leaver(struct lead_snapshot *snapshot, const char *member);

/* share: its part of the plan, NULL before lead_make and after an error. readable: false when its
 * metadata is not: it then takes no part, and gets an empty assignment. */
struct lead_member {
    char *id;
    bool readable;
    struct connect_metadata metadata;
    const struct assignor_share *share;
    struct buf bytes; /* of its assignment, once lead_make gave 0 */
};

/* Zeroed before use. */
struct lead {
    struct lead_member *members;
    size_t count;
    int64_t max_offset; /* the highest that a member reports, -1 none */
    int16_t error;      /* enum connect_error, as sent to all */
    int64_t offset;     /* as sent to all */
    struct assignor_plan plan;
};

void lead_deinit(struct lead *lead);

/* Add a member. bytes: its metadata for the protocol of this round; copied. 0, or MR_ERR_NOMEM.
 * Metadata that can't be read is no failure: err is filled (for a warning), and the member is not
 * readable. */
int lead_add(struct lead *lead, const char *id, const void *bytes, size_t len, bool eager,
             struct mr_error *err);
/* The same with metadata that was read; taken on success. */
int lead_add_take(struct lead *lead, const char *id, struct connect_metadata *metadata);

/* How the leader makes the assignments. Everything borrowed. */
struct lead_terms {
    struct assignor *assignor;
    enum connect_kind kind;
    bool java; /* ASSIGNOR_JAVA for the cooperative kinds; else ASSIGNOR_MILLRACE */
    const char *leader;
    const char *leader_url;
    const struct lead_snapshot *snapshot;
    int64_t now_ms;
    int64_t generation;
    int64_t last_completed;
    int64_t max_delay_ms;
};

/* Fill every member's bytes. No snapshot, or one below max_offset, gives everybody
 * CONNECT_CONFIG_MISMATCH and nothing else: all read on and join again; the assignor is not asked.
 * MR_ERR_NOMEM, MR_ERR_FULL (an assignment above 4 MiB). */
int lead_make(struct lead *lead, const struct lead_terms *terms);

#endif
