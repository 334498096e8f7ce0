/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that answers what a test tells it to: right, wrong, slowly, in pieces, or not at all.
 * Threads of its own, one a connection; `answer` runs on them. */
#ifndef TESTS_STUB_BROKER_H
#define TESTS_STUB_BROKER_H

#include "base/buf.h"
#include "wire/codec.h"

#include <stdatomic.h>

struct certificates_pair;

struct stub_request {
    int connection; /* counted from 0 */
    int number;     /* of the request on this connection, from 0 */
    int16_t key;
    int16_t version;
    int32_t id;
    char client_id[64];
    struct codec_bytes body;
    int64_t came_ms;
};

/* What is sent back: `body` behind a right header, unless raw. */
struct stub_reply {
    struct buf body;
    bool raw;     /* body is all the bytes, header too */
    bool nothing; /* no answer, the connection stays */
    bool close;   /* after the answer, if any */
    bool pieces;  /* one byte at a time */
    int32_t add;  /* to the correlation id */
};

typedef void (*stub_answer_fn)(void *arg, const struct stub_request *request,
                               struct stub_reply *reply);

struct stub_options {
    stub_answer_fn answer; /* NULL: stub_broker_fine */
    void *arg;
    const struct certificates_pair *pair;    /* TLS */
    const struct certificates_pair *clients; /* TLS: clients need a certificate of this authority */
    uint16_t port;                           /* 0: any */
};

struct stub_broker;
struct stub_broker *stub_broker_start(const struct stub_options *options);
void stub_broker_stop(struct stub_broker **stub); /* NULL is fine */
uint16_t stub_broker_port(const struct stub_broker *stub);
int stub_broker_connections(const struct stub_broker *stub); /* so far */

/* An answer that fits the request, without errors; ApiVersions as a 4.3.1 broker; arg: the port
 * that coordinators and brokers are at (int *), NULL: none. */
void stub_broker_fine(void *arg, const struct stub_request *request, struct stub_reply *reply);

#endif
