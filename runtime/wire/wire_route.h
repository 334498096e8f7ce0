/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is made when there is something to send, and made anew when it ends; calls wait
 * for it meanwhile. Private to this room: wire_client.c and coordinator.c each know where theirs
 * lead. Thread: the loop's. */
#ifndef WIRE_WIRE_ROUTE_H
#define WIRE_WIRE_ROUTE_H

#include "wire/broker_conn.h"

#define WIRE_ROUTE_MAX_CALLS 64 /* that wait */

struct wire_route;

/* What the owner does. up and down may free the route; seek may not. seek: some call wants a
 * connection: give the address with wire_route_found, now or later, or wire_route_missing. May be
 *       asked again before it has answered.
 * up:   the connection stands; calls follow.
 * why:  what keeps seek from an answer, for calls whose time runs out meanwhile; NULL: nothing that
 *       is known. May be NULL.
 * down: it could not be made (was_up false), or ended. Unless err is fatal, seek follows when calls
 *       wait. */
struct wire_route_ops {
    void (*seek)(void *owner);
    const struct mr_error *(*why)(void *owner);
    void (*up)(void *owner);
    void (*down)(void *owner, bool was_up, const struct mr_error *err);
};

/* again: calls that were sent when the connection ended are sent again over the next one, while
 * their time lasts. */
struct wire_route *wire_route_new(struct loop *loop, const struct wire_conf *conf, bool again,
                                  const struct wire_route_ops *ops, void *owner);
/* All calls are answered with MR_ERR_CLOSED before this returns. */
void wire_route_free(struct wire_route **route);

/* fn is told once within timeout_ms, never inside this call. MR_ERR_FULL, MR_ERR_TOO_LARGE,
 * MR_ERR_UNSUPPORTED: it is not called. */
int wire_route_call(struct wire_route *route, const struct request *request, int64_t timeout_ms,
                    answer_fn fn, void *arg, struct mr_error *err);

void wire_route_found(struct wire_route *route, const struct broker_conn_to *to);
/* There is no address. Fatal errors are told to all that wait; others are remembered for those
 * whose time runs out. */
void wire_route_missing(struct wire_route *route, const struct mr_error *err);
/* End the connection without `down`: sent calls hear MR_ERR_CLOSED (unless sent again), what waits
 * seeks anew. */
void wire_route_drop(struct wire_route *route, const struct mr_error *why);
/* Some call wants a connection that is not there. */
bool wire_route_waiting(const struct wire_route *route);
/* Why it is not up; NULL: none yet. */
const struct mr_error *wire_route_trouble(const struct wire_route *route);
bool wire_route_up(const struct wire_route *route);
bool wire_route_fatal(const struct mr_error *err);
/* "host:port" of the connection, or "". */
const char *wire_route_name(const struct wire_route *route);

#endif
