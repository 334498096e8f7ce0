/* SPDX-License-Identifier: Apache-2.0 */
/* A change after a calm is acted upon at once, and so is what one create brings about (the second
 * round, for its tasks). In a storm rounds come further apart, so that many changes share one, but
 * never so far that a client would notice. The pause counts from the end of the last round, which
 * all members see at the same time: so they ask together, and none waits for another's heartbeat.
 *
 * A member whose offset of the config topic is not the round's joins again until it is, as Java's
 * does. If that changes nothing (a topic that was made anew, that can't be read, or that another
 * member counts differently), rounds get rare. */
#include "worker/herder/cluster/round_pace.h"

static int64_t grown(int64_t first_ms, int64_t most_ms, int n)
{
    int64_t ms = first_ms;

    while (n-- > 1 && ms < most_ms)
        ms *= 2;
    return ms < most_ms ? ms : most_ms;
}

static int64_t pause_ms(const struct round_pace *pace)
{
    if (pace->stuck > 0)
        return grown(ROUND_PACE_STUCK_FIRST_MS, ROUND_PACE_STUCK_MOST_MS, pace->stuck);
    return pace->in_a_row > 0 ? grown(ROUND_PACE_FIRST_MS, ROUND_PACE_MOST_MS, pace->in_a_row) : 0;
}

int64_t round_pace_wait_ms(const struct round_pace *pace, int64_t now_ms)
{
    int64_t wait_ms = pace->ended_ms + pause_ms(pace) - now_ms;

    return pace->ended_ms != 0 && wait_ms > 0 ? wait_ms : 0;
}

void round_pace_asked(struct round_pace *pace, int64_t now_ms)
{
    pace->in_a_row = now_ms - pace->ended_ms >= ROUND_PACE_CALM_MS ? 1 : pace->in_a_row + 1;
}

void round_pace_ended(struct round_pace *pace, int64_t now_ms, int64_t own, int64_t given)
{
    pace->stuck = own != given && own == pace->offset ? pace->stuck + 1 : 0;
    pace->ended_ms = now_ms;
    pace->offset = own;
}
