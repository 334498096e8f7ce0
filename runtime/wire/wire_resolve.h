/* SPDX-License-Identifier: Apache-2.0 */
/* A host's addresses, without waiting for the name service on the loop's thread. */
#ifndef WIRE_WIRE_RESOLVE_H
#define WIRE_WIRE_RESOLVE_H

#include "base/loop.h"

struct addrinfo;
struct wire_resolve;

/* addresses: borrowed for the call, NULL with err (MR_ERR_IO: what the name service said). */
typedef void (*wire_resolve_fn)(void *arg, struct addrinfo *addresses, const struct mr_error *err);

/* Look host up; fn is told once, on the loop, never from inside this call. NULL with err out of
 * memory, descriptors or threads. An address in digits needs no thread. */
struct wire_resolve *wire_resolve_new(struct loop *loop, const char *host, uint16_t port,
                                      wire_resolve_fn fn, void *arg, struct mr_error *err);
/* Also before fn was told (which then never is), and inside fn. A thread that still waits for the
 * name service is left to end by itself. */
void wire_resolve_free(struct wire_resolve **r);

#endif
