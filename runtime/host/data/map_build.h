/* SPDX-License-Identifier: Apache-2.0 */
/* A map that is put together pair by pair: a key that comes again gets the later value, in its
 * first place.
 * Spec: java.util.LinkedHashMap. */
#ifndef HOST_MAP_BUILD_H
#define HOST_MAP_BUILD_H

#include "base/err.h"

#include <millrace/record.h>

/* Start with {.arena = arena}. */
struct map_build {
    struct mr_arena *arena;
    struct mr_pair *pairs;
    uint32_t count;
    uint32_t cap;
    uint32_t *slots; /* of a hash table: 1-based indexes; NULL while there are few pairs */
    size_t slot_count;
};

/* Keys are equal by content and kind; the kinds of time are one, by their moment, as all are
 * java.util.Date.
 * False: more pairs than a map may have. */
bool map_build_put(struct map_build *m, struct mr_value key, struct mr_value value);
struct mr_value map_build_done(const struct map_build *m);

#endif
