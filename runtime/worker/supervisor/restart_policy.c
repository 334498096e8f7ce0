/* SPDX-License-Identifier: Apache-2.0 */
/* When a crashed host is started again. Asked by the herder with the death of a host that nobody
 * asked for. Pure: the clock is handed in.
 *
 * Only deaths of the last ten minutes count, for the delay as for the giving up: a connector that
 * crashes once a day is always started again at once. */
#include "worker/supervisor/restart_policy.h"

#include <string.h>

static const int64_t delays_ms[] = {0, 1000, 5000, 30000};
#define DELAYS ((int)(sizeof(delays_ms) / sizeof(delays_ms[0])))

static void forget_old(struct restart_policy *policy, int64_t now_ms)
{
    int old = 0;

    while (old < policy->count && now_ms - policy->deaths_ms[old] >= RESTART_POLICY_WINDOW_MS)
        old++;
    policy->count -= old;
    memmove(policy->deaths_ms, policy->deaths_ms + old,
            (size_t)policy->count * sizeof(policy->deaths_ms[0]));
}

int64_t restart_policy_died(struct restart_policy *policy, int64_t now_ms)
{
    int before;

    forget_old(policy, now_ms);
    before = policy->count;
    if (before >= policy->max || before >= RESTART_POLICY_MAX) {
        restart_policy_reset(policy);
        return -1;
    }
    policy->deaths_ms[policy->count++] = now_ms;
    return delays_ms[before < DELAYS ? before : DELAYS - 1];
}

void restart_policy_reset(struct restart_policy *policy)
{
    policy->count = 0;
}
