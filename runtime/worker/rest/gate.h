/* SPDX-License-Identifier: Apache-2.0 */
/* Between the HTTP threads and the worker's loop: requests on their way to the loop, sockets
 * that are to linger there, and counts of what is under way, so that a server that stops knows
 * when it may. One lock inside; nothing is called while it is held. Threads: any, but where a
 * function says loop. */
#ifndef WORKER_GATE_H
#define WORKER_GATE_H

#include "base/loop.h"

struct gate;
struct exchange;

/* opened runs on the loop, once for all that came since the last time; it calls gate_take. It is
 * not called any more after gate_free, though a post may still be on its way then. late gets, on
 * a thread of the gate's own, each request that the loop has not taken by its deadline_ms (up to
 * a second later): it is answered there, and gate_leave follows. Aborts out of memory or
 * threads. */
typedef void (*gate_late)(void *arg, struct exchange *exchange);
struct gate *gate_new(struct loop *loop, loop_fn opened, gate_late late, void *arg);
void gate_free(struct gate **gate); /* loop */

/* A request begins to wait for the loop: false when the gate is closed. Then gate_pass, in this
 * order, so that a request is counted before it is suspended and can be resumed only after. */
bool gate_enter(struct gate *gate);
/* Exchange->next is the gate's until gate_take. */
void gate_pass(struct gate *gate, struct exchange *exchange);
void gate_leave(struct gate *gate); /* it was resumed; loop, or late */

/* A socket, ours from here on, that the client still sends to. */
void gate_part(struct gate *gate, int fd);

/* A complete request is under way until its answer is sent. */
void gate_begin(struct gate *gate);
void gate_end(struct gate *gate);

/* The first requests in order, at most max (1 or more), linked by their `next`; `opened` runs
 * again for the rest, after what else the loop has to do. Sockets go to linger_add one by one.
 * Loop. */
struct exchange *gate_take(struct gate *gate, size_t max);
int gate_take_parted(struct gate *gate); /* a descriptor, or -1 */

/* Nobody enters from here on. */
void gate_close(struct gate *gate);

/* Wait for news: true when no request waits, and either none is under way or until_ms
 * (monotonic) has come. False: take what came and ask again. */
bool gate_drained(struct gate *gate, int64_t until_ms);

#endif
