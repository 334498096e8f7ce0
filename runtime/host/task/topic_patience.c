/* SPDX-License-Identifier: Apache-2.0 */
/* Two clocks: refusals have their own, which begins with the first of them, so that brokers that
 * were away before have their whole time once they are back. Called by send/topic_create,
 * source/own_offsets, stages/dead_letters between two questions; any thread. */
#include "host/task/topic_patience.h"

bool topic_patience_lasts(struct topic_patience *patience, bool refused, int64_t now_ms)
{
    if (!refused) {
        patience->refused_since_ms = 0;
        return now_ms - patience->began_ms < patience->silent_ms;
    }
    if (patience->refused_since_ms == 0)
        patience->refused_since_ms = now_ms;
    return now_ms - patience->refused_since_ms < patience->refused_ms;
}
