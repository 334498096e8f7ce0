/* SPDX-License-Identifier: Apache-2.0 */
/* Who dies at a crash point (runtime/base/crash_point.h), and when: a file that a test and all
 * processes of its workers map. They find it by the environment, CRASH_TRIGGER. */
#ifndef TESTS_CRASH_TRIGGER_H
#define TESTS_CRASH_TRIGGER_H

#include "base/crash_point.h"

#include <stdatomic.h>
#include <sys/types.h>

struct crash_trigger {
    atomic_int point;  /* enum crash_point */
    atomic_int left;   /* so many meet it before one dies, and that one; 0 or less: nobody */
    atomic_int victim; /* pid of who died last; 0 none */
    atomic_int met[CRASH_POINT_COUNT]; /* how often, in all */
};

/* The file, made if there is none; it stays mapped. NULL: it can't be had. */
struct crash_trigger *crash_trigger_map(const char *file);
/* Whoever comes to the point as the nth from now dies there. */
void crash_trigger_set(struct crash_trigger *trigger, enum crash_point point, int nth);
const char *crash_trigger_name(enum crash_point point);

#endif
