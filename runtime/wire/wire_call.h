/* SPDX-License-Identifier: Apache-2.0 */
/* The same for callers without a loop: each call blocks, at most for its timeout_ms, and retries
 * what may be retried. For fencing, and for the members that a dead host left in its consumer
 * groups. Thread: the one that made it. SIGPIPE is ignored by the process. */
#ifndef WIRE_WIRE_CALL_H
#define WIRE_WIRE_CALL_H

#include "wire/coordinator.h"

struct wire_call;

/* Connects at the first call, and keeps the connection. settings as for wire_conf_new. NULL with
 * err (MR_ERR_CONFIG). */
struct wire_call *wire_call_new(const struct props *settings, struct mr_error *err);
void wire_call_free(struct wire_call **call);

/* All below: 0, or the newest attempt's failure: a code as for answer_fn, MR_ERR_FATAL for an
 * answer that retrying does not help, MR_ERR_TIMEOUT. */

/* One member of a group, to look at during the call. */
typedef void (*wire_call_member_fn)(void *arg, const struct answer_described_member *member);

/* Every member with this client id (NULL: every one), told to fn before this returns. A group that
 * is not there has none. */
struct wire_call_members {
    const char *group;
    const char *client_id;
    wire_call_member_fn fn;
    void *arg;
};
int wire_call_members(struct wire_call *call, const struct wire_call_members *what,
                      int64_t timeout_ms, struct mr_error *err);

/* Make a member leave its group. A member or group that is gone already is a success. */
int wire_call_leave(struct wire_call *call, const char *group, const char *member,
                    int64_t timeout_ms, struct mr_error *err);

/* Fence a transactional id: whoever held it can't produce any longer, and its open transaction has
 * been aborted. The id must not be one that is in use by us. */
struct wire_call_fence {
    const char *transactional_id;
    /* Of the id from now on; at most transaction.max.timeout.ms of the broker. */
    int32_t transaction_timeout_ms;
};
int wire_call_fence(struct wire_call *call, const struct wire_call_fence *what, int64_t timeout_ms,
                    struct mr_error *err);

/* offsets[i] for partitions[i], from the leaders, which are looked up; see struct
 * request_list_offsets. */
int wire_call_offsets(struct wire_call *call, const struct request_list_offsets *what,
                      int64_t timeout_ms, int64_t *offsets, struct mr_error *err);

/* Copied into out, which is size bytes. */
int wire_call_cluster_id(struct wire_call *call, int64_t timeout_ms, char *out, size_t size,
                         struct mr_error *err);

#endif
