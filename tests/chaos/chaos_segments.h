/* SPDX-License-Identifier: Apache-2.0 */
/* What a partition really holds, as the brokers' files have it: batches of aborted transactions and
 * markers too, which no consumer is shown. */
#ifndef TESTS_CHAOS_SEGMENTS_H
#define TESTS_CHAOS_SEGMENTS_H

#include "support/kafka_run.h"

#include <stdint.h>

enum chaos_batch_kind { CHAOS_PLAIN, CHAOS_IN_TRANSACTION, CHAOS_COMMIT, CHAOS_ABORT };

struct chaos_batch {
    enum chaos_batch_kind kind;
    int64_t first, last; /* offsets */
    int64_t producer;
    int16_t epoch;
};

/* All of one partition in turn, from the replica that has most; Kafka is one of this test's own.
 * How many. */
int64_t chaos_segments_walk(const struct kafka_run *kafka, const char *topic, int partition,
                            void (*each)(void *arg, const struct chaos_batch *batch), void *arg);

#endif
