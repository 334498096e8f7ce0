/* SPDX-License-Identifier: Apache-2.0 */
/* When a crashed host is started again: after 0, 1, 5, 30, 30 … s, at most max times in 10 minutes.
 * Pure. */
#ifndef WORKER_RESTART_POLICY_H
#define WORKER_RESTART_POLICY_H

#include <stdint.h>

#define RESTART_POLICY_WINDOW_MS 600000
#define RESTART_POLICY_MAX 100

struct restart_policy {
    int max;   /* millrace.restart.max, 0 to RESTART_POLICY_MAX; 0 = never */
    int count; /* deaths remembered */
    int64_t deaths_ms[RESTART_POLICY_MAX];
};

/* A death at now_ms: the delay in ms before the next start, or -1: give up (and forget, so that a
 * restart by hand begins anew). */
int64_t restart_policy_died(struct restart_policy *policy, int64_t now_ms);
void restart_policy_reset(struct restart_policy *policy);

#endif
