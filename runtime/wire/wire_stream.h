/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from one broker: TCP, or TLS over it. Non-blocking, on the loop's thread. */
#ifndef WIRE_WIRE_STREAM_H
#define WIRE_WIRE_STREAM_H

#include "wire/broker_conn.h"

struct wire_stream;

/* On the loop, never from inside a call below; each may free the stream. connected: TCP stands, TLS
 * begins. open: bytes may be moved. ready: bytes may have come, or room to write. failed: once, and
 * nothing afterwards; err: who, what happened, what to do. */
struct wire_stream_events {
    void (*connected)(void *arg);
    void (*open)(void *arg);
    void (*ready)(void *arg);
    void (*failed)(void *arg, const struct mr_error *err);
};

/* Begin: resolve the name, try its addresses one after the other, each for its part of the setup
 * time. NULL with err out of memory, descriptors or threads. */
struct wire_stream *wire_stream_new(struct loop *loop, const struct wire_conf *conf,
                                    const struct broker_conn_to *to,
                                    const struct wire_stream_events *events, void *arg,
                                    struct mr_error *err);
void wire_stream_free(struct wire_stream **s);

/* Move bytes, as many as go without waiting: their number, 0 when none go now (the event `ready`
 * comes), or a negative code with err: MR_ERR_CLOSED when the broker closed, MR_ERR_IO,
 * MR_ERR_FATAL (certificates). */
int wire_stream_read(struct wire_stream *s, void *data, size_t len, struct mr_error *err);
int wire_stream_write(struct wire_stream *s, const void *data, size_t len, struct mr_error *err);
const char *wire_stream_name(const struct wire_stream *s); /* "host:port" */

#endif
