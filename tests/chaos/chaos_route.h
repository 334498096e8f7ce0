/* SPDX-License-Identifier: Apache-2.0 */
/* Detours: what a worker connects to on some local ports goes to others, where the test listens
 * (tests/support/preload/route_shim.c). */
#ifndef TESTS_CHAOS_ROUTE_H
#define TESTS_CHAOS_ROUTE_H

#include <stdbool.h>

#define CHAOS_ROUTES_MAX 8

struct chaos_route {
    int to;       /* port that the worker means */
    int through;  /* port that it comes to */
    int listener; /* never blocks */
};

/* One for each port; ports: ended by 0, CHAOS_ROUTES_MAX at most. How many. */
int chaos_route_listen(struct chaos_route *routes, const int *ports);
/* A connection that came in, and the one to where it was to go. false: there is none, or nobody
 * takes it there. */
bool chaos_route_accept(const struct chaos_route *route, int *near, int *far);
void chaos_route_close(struct chaos_route *routes, int count);
/* From here on what is started takes these; count 0: none. */
void chaos_route_use(const struct chaos_route *routes, int count);

#endif
