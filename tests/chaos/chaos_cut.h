/* SPDX-License-Identifier: Apache-2.0 */
/* A wire that can be cut: what a worker sends to some local ports goes through here, and is held
 * back in one direction or both, without a word to either end, until it is mended. What was held
 * back then arrives. */
#ifndef TESTS_CHAOS_CUT_H
#define TESTS_CHAOS_CUT_H

struct chaos_cut;

enum chaos_way { CHAOS_OUT = 1, CHAOS_IN = 2, CHAOS_BOTH_WAYS = 3 };

/* Ends with the scenario. ports: ended by 0. */
struct chaos_cut *chaos_cut_new(const int *ports);
/* From here on what is started goes through it (tests/support/preload/route_shim.c); NULL:
 * directly. */
void chaos_cut_use(const struct chaos_cut *cut);
/* Out: from the worker; 0 mends it. */
void chaos_cut_now(struct chaos_cut *cut, enum chaos_way ways);

#endif
