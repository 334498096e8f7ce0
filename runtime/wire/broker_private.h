/* SPDX-License-Identifier: Apache-2.0 */
/* What broker_conn.c and broker_login.c share: one connection. */
#ifndef WIRE_BROKER_PRIVATE_H
#define WIRE_BROKER_PRIVATE_H

#include "wire/wire_stream.h"
#include "wire_private.h"

/* Bytes of an arena for each byte of a frame: what the greediest answer (a list of texts) needs,
 * and no more. */
#define BROKER_ARENA_FACTOR 6
#define THROTTLE_MAX_MS 5000 /* a broker that asks for more gets the next request then */

enum broker_state {
    BROKER_CONNECT,
    BROKER_VERSIONS,
    BROKER_HANDSHAKE,
    BROKER_TOKENS,
    BROKER_READY,
    BROKER_CLOSED
};

struct broker_call {
    struct broker_conn *conn;
    enum request_api api;
    int16_t version;
    int32_t id;
    bool held;
    struct buf frame; /* until it is written */
    int64_t timeout_ms;
    int64_t sent_boot_ms;
    struct loop_timer timer;
    answer_fn fn;
    void *arg;
    struct broker_call *next;
};

struct broker_calls {
    struct broker_call *first;
    struct broker_call **last;
};

struct broker_conn {
    struct loop *loop;
    const struct wire_conf *conf;
    const struct broker_conn_events *events;
    void *arg;
    char *name;
    enum broker_state state;
    bool tcp;       /* stands */
    bool answered;  /* a call, not just what a login takes */
    bool was_ready; /* calls are taken, though they are held while a login is renewed */
    int busy;       /* callbacks on the stack */
    bool dead;      /* freed while busy */
    struct wire_stream *stream;
    struct loop_timer timer; /* setup, or a failure that is to be told */
    struct mr_error failure; /* of a write, not told yet */
    struct buf in;
    struct buf out;
    uint32_t next_id;
    size_t calls; /* in both lists */
    struct broker_calls held;
    struct broker_calls flight;
    bool throttled;
    struct loop_timer throttle_timer;

    struct answer_range ranges[REQUEST_API_COUNT];
    bool known[REQUEST_API_COUNT]; /* ranges[api] is what the broker said */
    struct sasl *sasl;
    struct wire_token_wait *token_wait; /* a login wants a token that is being fetched */
    uint64_t token_number;              /* of the token that the newest login used */
    bool renew_due;
    struct loop_timer renew_timer;
};

/* broker_conn.c. Between enter and leave callbacks may free the connection; leave: false when one
 * did. */
void broker_conn_enter(struct broker_conn *conn);
bool broker_conn_leave(struct broker_conn *conn);
void broker_conn_fail(struct broker_conn *conn, const struct mr_error *err);
/* As broker_conn_call; ahead: before everything that is held. */
int broker_conn_send(struct broker_conn *conn, const struct request *request, int64_t timeout_ms,
                     bool ahead, answer_fn fn, void *arg, struct mr_error *err);
void broker_conn_release(struct broker_conn *conn); /* write what may be written now */

/* broker_login.c. begin: bytes may be moved. start: log in (again). */
void broker_login_begin(struct broker_conn *conn);
void broker_login_start(struct broker_conn *conn);
/* The versions of a request that the broker takes; NULL: it does not know the request. */
const struct answer_range *broker_login_range(const struct broker_conn *conn, enum request_api api);

#endif
