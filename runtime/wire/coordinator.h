/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator of one group or one transactional id: found, connected to, followed when it
 * moves.
 *
 * Two lanes, two connections to the same broker, since a broker answers one request per connection
 * at a time: a JoinGroup that is parked on MAIN must not hold up the heartbeats, which go over SIDE
 * meanwhile. Lanes connect when first used.
 * Thread: the loop's.
 *
 *   UNKNOWN ──call──► FINDING ──FindCoordinator──► KNOWN
 *      ▲                                               │ lost, 15, 16, coordinator_lost()
 *      └───────────────────────────────────────────────┘
 */
#ifndef WIRE_COORDINATOR_H
#define WIRE_COORDINATOR_H

#include "wire/wire_client.h"

enum coordinator_lane { COORDINATOR_MAIN, COORDINATOR_SIDE, COORDINATOR_LANES };

struct coordinator;

struct coordinator_to {
    const char *key; /* group id or transactional id, copied */
    enum request_key_type type;
};

/* changed: it became known (err NULL: FindCoordinator named it and a connection to it stands), or
 * was lost (err says why). What came and went before it could be told is not told. Never from
 * inside a call into this header; may not free the coordinator. May be NULL. */
struct coordinator_events {
    void (*changed)(void *arg, const struct mr_error *err);
};

/* client outlives it. NULL with err. */
struct coordinator *coordinator_new(struct wire_client *client, const struct coordinator_to *to,
                                    const struct coordinator_events *events, void *arg,
                                    struct mr_error *err);
/* Open calls are answered with MR_ERR_CLOSED before this returns. */
void coordinator_free(struct coordinator **c);

/* Send a request to the coordinator over a lane; fn is told once (see answer_fn), within
 * timeout_ms, which includes finding and connecting. A call that was not sent yet waits for the
 * next coordinator; one that was sent fails when its connection ends, and is never sent twice. An
 * answer with COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR is handed on, and the coordinator is
 * looked for anew by the next call. Calls on one lane are answered in order; a call whose time
 * passes on a lane ends that lane's connection, and all calls on it with it: a JoinGroup wants a
 * timeout beyond the rebalance timeout. MR_ERR_FULL, MR_ERR_TOO_LARGE, MR_ERR_UNSUPPORTED: fn is
 * not called. */
int coordinator_call(struct coordinator *c, enum coordinator_lane lane,
                     const struct request *request, int64_t timeout_ms, answer_fn fn, void *arg,
                     struct mr_error *err);

/* Forget where it is: connections end, sent calls are answered with MR_ERR_CLOSED before this
 * returns, the next call looks anew. why: for changed. */
void coordinator_lost(struct coordinator *c, const char *why);
bool coordinator_known(const struct coordinator *c);
const char *coordinator_name(const struct coordinator *c); /* "host:port"; "" while unknown */

#endif
