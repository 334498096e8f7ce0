/* SPDX-License-Identifier: Apache-2.0 */
/* A client of one cluster: some broker to ask, found through bootstrap.servers and kept; what the
 * cluster is.
 *
 * Bootstrap addresses, each with all that its name resolves to, and the brokers learnt since are
 * tried in turn, in random order, with back-off and jitter (reconnect.backoff.ms,
 * reconnect.backoff.max.ms). Thread: the loop's. */
#ifndef WIRE_WIRE_CLIENT_H
#define WIRE_WIRE_CLIENT_H

#include "wire/broker_conn.h"

struct wire_client;

/* conf outlives the client. Nothing is connected before the first call. NULL with err. */
struct wire_client *wire_client_new(struct loop *loop, const struct wire_conf *conf,
                                    struct mr_error *err);
/* After all coordinators made with it. Open calls are answered with MR_ERR_CLOSED before this
 * returns. */
void wire_client_free(struct wire_client **client);

/* Ask any broker (Metadata, FindCoordinator). The call waits for a connection and is sent again
 * over another one when that breaks, while its time lasts; login and certificate errors end it at
 * once. MR_ERR_FULL (too many calls wait), MR_ERR_TOO_LARGE, MR_ERR_UNSUPPORTED: fn is not
 * called. */
int wire_client_call(struct wire_client *client, const struct request *request, int64_t timeout_ms,
                     answer_fn fn, void *arg, struct mr_error *err);

/* Ask the broker with this id, such as a partition's leader; its address is looked up first.
 * Otherwise as above. */
int wire_client_call_broker(struct wire_client *client, int32_t broker,
                            const struct request *request, int64_t timeout_ms, answer_fn fn,
                            void *arg, struct mr_error *err);

const char *wire_client_cluster_id(const struct wire_client *client); /* NULL: not known (yet) */

#endif
