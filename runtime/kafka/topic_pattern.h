/* SPDX-License-Identifier: Apache-2.0 */
/* Java's regular expressions for topic names. */
#ifndef KAFKA_TOPIC_PATTERN_H
#define KAFKA_TOPIC_PATTERN_H

#include "base/buf.h"

/* A Java regular expression that must match a whole topic name, as librdkafka's POSIX one: "^(…)$",
 * appended to out. MR_ERR_CONFIG names what can't be expressed or compiled. Pure. Bounded: counted
 * repetitions may write out to 2000 pieces at most, which takes the compiler milliseconds. */
int topic_pattern_translate(const char *java, struct buf *out, struct mr_error *err);

#endif
