/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline that the kernel keeps: SIGKILL to this process at a moment of CLOCK_BOOTTIME, whatever
 * its threads do, also while it is stopped. Owner: the control thread. */
#ifndef HOST_KILL_TIMER_H
#define HOST_KILL_TIMER_H

#include "base/err.h"

#include <time.h>

struct kill_timer {
    timer_t id;
    bool made;
};

/* Takes the kernel's timer now, so that arming cannot fail for want of one. */
int kill_timer_init(struct kill_timer *timer, struct mr_error *err);

/* Armed for boot_ms of CLOCK_BOOTTIME (in the past: at once); replaces an earlier moment. */
int kill_timer_arm(struct kill_timer *timer, int64_t boot_ms, struct mr_error *err);
void kill_timer_disarm(struct kill_timer *timer);

#endif
