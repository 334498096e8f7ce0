/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to one broker: TCP or TLS, ApiVersions, SASL, then requests, answered in order.
 *
 * Everything on the loop's thread; nothing blocks. A login that ends at the broker (KIP-368) is
 * renewed in time, between two requests; calls made meanwhile wait. The connection ends for good at
 * the first fault: a deadline that passed, a frame that is too large or negative, a correlation id
 * that is not the oldest one's, an answer that can't be decoded. */
#ifndef WIRE_BROKER_CONN_H
#define WIRE_BROKER_CONN_H

#include "base/loop.h"
#include "wire/request.h"
#include "wire/wire_conf.h"

#define BROKER_CONN_MAX_FRAME (16u * 1024 * 1024) /* of an answer; a request holds it too */
#define BROKER_CONN_MAX_CALLS 64                  /* sent or waiting to be sent */

struct broker_conn;

/* Called on the loop, never from inside a call into this header. Both may free the connection. */
struct broker_conn_events {
    void (*ready)(void *arg); /* once: calls may be made */
    /* once, and nothing afterwards: err says host:port, what happened, what to do. Calls that were
     * open have been answered before. */
    void (*closed)(void *arg, const struct mr_error *err);
};

struct broker_conn_to {
    const char *host; /* name or address, copied */
    uint16_t port;
};

/* Begin to connect; fails only out of memory or descriptors (NULL with err). conf outlives the
 * connection. */
struct broker_conn *broker_conn_new(struct loop *loop, const struct wire_conf *conf,
                                    const struct broker_conn_to *to,
                                    const struct broker_conn_events *events, void *arg,
                                    struct mr_error *err);
/* Ends it without a word to events; open calls are answered with MR_ERR_CLOSED before this
 * returns. */
void broker_conn_free(struct broker_conn **conn);

/* Send a request; fn is told once (see answer_fn), within timeout_ms. MR_ERR_STATE before ready and
 * after closed, MR_ERR_FULL, MR_ERR_UNSUPPORTED, MR_ERR_TOO_LARGE: fn is not called. */
int broker_conn_call(struct broker_conn *conn, const struct request *request, int64_t timeout_ms,
                     answer_fn fn, void *arg, struct mr_error *err);

bool broker_conn_ready(const struct broker_conn *conn);
const char *broker_conn_name(const struct broker_conn *conn); /* "host:port" */

#endif
