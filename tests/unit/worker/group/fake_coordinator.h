/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator for tests of the membership: stands in place of wire/'s client, keeps the calls
 * that the group thread makes, and gives them the answers that the test chooses, on the group
 * thread. One at a time. */
#ifndef TESTS_FAKE_COORDINATOR_H
#define TESTS_FAKE_COORDINATOR_H

#include "wire/coordinator.h"

/* A call as it was made; texts and bytes are its own. Freed by fake_answer. */
struct fake_call {
    enum coordinator_lane lane;
    enum request_api api;
    char *member;
    int32_t generation; /* Sync, Heartbeat */
    struct {
        char *name; /* protocol, or member that is assigned to */
        uint8_t *bytes;
        size_t len;
    } part[8];
    size_t part_count;
    answer_fn fn;
    void *arg;
    bool taken;
    struct fake_call *next;
};

/* The oldest call of this kind that was not taken yet; NULL: none now. */
struct fake_call *fake_take(enum request_api api);
size_t fake_calls(enum request_api api); /* made so far, all */
size_t fake_lost(void);                  /* calls of coordinator_lost so far */

/* Answer it: exactly one of both. What answer points to must live until the group thread has had
 * it. */
void fake_answer(struct fake_call *call, const struct answer *answer, const struct mr_error *err);

#endif
