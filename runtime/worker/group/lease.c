/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the lease. member.c feeds it with answers on the group thread and posts the
 * result to the worker's loop; each host keeps the two times by itself, since a frozen worker can
 * end nobody. Promise: nothing of ours works beside its successor, so every doubt shortens. */
#include "worker/group/lease.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t margin_ms(const struct lease *lease)
{
    return least(lease->graceful_ms, lease->session_ms / 3);
}

void lease_renew(struct lease *lease, int64_t sent_ms)
{
    if (sent_ms > lease->sent_ms)
        lease->sent_ms = sent_ms;
}

void lease_rebalancing(struct lease *lease, int64_t sent_ms, bool joining)
{
    if (!joining && lease->cap_ms == 0)
        lease->cap_ms = sent_ms + lease->rebalance_ms;
    lease_renew(lease, sent_ms);
}

void lease_joined(struct lease *lease)
{
    lease->cap_ms = 0;
}

struct lease_times lease_times(const struct lease *lease)
{
    int64_t hard_ms = lease->sent_ms + lease->session_ms;

    if (lease->sent_ms == 0)
        return (struct lease_times){0};
    if (lease->cap_ms != 0)
        hard_ms = least(hard_ms, lease->cap_ms);
    return (struct lease_times){.soft_ms = hard_ms - margin_ms(lease), .hard_ms = hard_ms};
}

bool lease_lapsed(const struct lease *lease, int64_t sent_ms)
{
    int64_t hard_ms = lease_times(lease).hard_ms;

    return hard_ms != 0 && sent_ms >= hard_ms;
}

struct lease_times lease_ended(const struct lease *lease, int64_t now_ms)
{
    struct lease_times times = lease_times(lease);

    if (times.hard_ms == 0)
        return times;
    times.soft_ms = least(times.soft_ms, now_ms);
    times.hard_ms = least(times.hard_ms, now_ms + margin_ms(lease));
    return times;
}
