/* SPDX-License-Identifier: Apache-2.0 */
/* For how long brokers are asked again about a topic that may be there or can be made soon: pure.
 * Brokers that do not answer may be away for long; what they refuse for now, such as copies that
 * they are too few for while they start, they take within seconds or not at all. */
#ifndef HOST_TOPIC_PATIENCE_H
#define HOST_TOPIC_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct topic_patience {
    int64_t silent_ms;        /* without an answer: so long, from the first question on */
    int64_t refused_ms;       /* refused time after time: so long, from the first one on */
    int64_t began_ms;         /* of the first question */
    int64_t refused_since_ms; /* 0: the last question was not refused */
};

/* After a question that came to nothing: is it to be asked again?
 *
 * refused  the brokers said so, before the time of the request was up
 */
bool topic_patience_lasts(struct topic_patience *patience, bool refused, int64_t now_ms);

#endif
