/* SPDX-License-Identifier: Apache-2.0 */
/* The same for callers without a loop: each call blocks, at most until its deadline, and retries what may be retried.
 * For fencing, and for the members that a dead host left in its consumer groups. Thread: one at a time. */
#ifndef WIRE_WIRE_CALL_H
#define WIRE_WIRE_CALL_H

#include "wire/coordinator.h"

struct wire_call;

/* Connects at the first call. settings as for wire_conf_new. NULL with err (MR_ERR_CONFIG). */
struct wire_call *wire_call_new(const struct props *settings, struct mr_error *err);
void wire_call_free(struct wire_call **call);

/* One answer, to read until wire_call_answer_free. */
struct wire_call_answer;

/* Send to the coordinator of a group or transactional id, and wait.
 * 0 and *answer (whose error may still be one that retrying does not help), or a negative code as for answer_fn. */
struct wire_call_do {
    struct coordinator_to to;
    const struct request *request;
    int64_t timeout_ms; /* of all attempts together */
};
int wire_call_coordinator(struct wire_call *call, const struct wire_call_do *what,
                          struct wire_call_answer **answer, struct mr_error *err);
const struct answer *wire_call_answer(const struct wire_call_answer *answer);
void wire_call_answer_free(struct wire_call_answer **answer);

/* Make a member leave its group. A member or group that is gone already is a success. */
int wire_call_leave(struct wire_call *call, const char *group, const char *member,
                    int64_t timeout_ms, struct mr_error *err);
/* Make every member leave whose client id is this one. *left: how many did, also on failure. */
int wire_call_evict(struct wire_call *call, const char *group, const char *client_id,
                    int64_t timeout_ms, size_t *left, struct mr_error *err);
/* Fence a transactional id: whoever held it can't produce any longer, its open transaction is aborted when this returns 0. */
int wire_call_fence(struct wire_call *call, const char *transactional_id,
                    int32_t transaction_timeout_ms, int64_t timeout_ms, struct mr_error *err);

/* offsets[i] for partitions[i]: see struct request_list_offsets. */
int wire_call_offsets(struct wire_call *call, const struct request_list_offsets *what,
                      int64_t timeout_ms, int64_t *offsets, struct mr_error *err);
/* Copied into out. */
int wire_call_cluster_id(struct wire_call *call, int64_t timeout_ms, char *out, size_t size,
                         struct mr_error *err);

#endif
