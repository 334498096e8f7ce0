/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that were answered before the client had sent everything: closing one at once would make
 * the kernel answer what still arrives with a reset, and the client would lose the answer. They are
 * read dry, within bounds, and closed then.
 * Owner: the worker's loop. */
#ifndef WORKER_LINGER_H
#define WORKER_LINGER_H

#include "base/loop.h"

#define LINGER_MAX 64 /* sockets at a time; more are closed at once */
#define LINGER_MS 30000
#define LINGER_BYTES (256LL << 20)

struct linger_socket;

/* Where sockets linger. Zeroed but for loop before first use. */
struct linger_set {
    struct loop *loop;
    struct linger_socket *first;
    size_t count;
};

void linger_add(struct linger_set *set, int fd); /* takes fd, non-blocking */
void linger_close_all(struct linger_set *set);

#endif
