/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a consumer as a sink task is one: a ledger of positions, and a check of every
 * message against what was written. Topics are filled with values "partition:serial"; the truth is
 * shared by the owners of one topic, so that loss and doubles show across rebalances. */
#ifndef TESTS_CONSUMER_LEDGER_H
#define TESTS_CONSUMER_LEDGER_H

#include "kafka/consumer.h"
#include "mock_kafka.h"

#define PARTITIONS 4
#define BATCH 500

/* Of a topic. */
struct ledger_truth {
    int64_t next[PARTITIONS];      /* the serial that must come next, by whoever reads on */
    int64_t high[PARTITIONS];      /* what nobody has seen yet begins here */
    int64_t committed[PARTITIONS]; /* by ledger_commit */
};

struct ledger {
    struct mock_kafka *kafka;
    struct consumer *c;
    bool mine[PARTITIONS];
    int64_t next[PARTITIONS];
    size_t assigned; /* events */
    size_t revoked;
    size_t lost;
    size_t moved;
    size_t seen;
    size_t twice; /* of these, seen before */
    bool commit_on_revoke;
    bool rolls_back; /* what could not be committed then is to come again: that is no double */
    struct ledger_truth *truth;
};

extern const struct consumer_events ledger_events;

void ledger_fill(struct mock_kafka *kafka, const char *topic, int partitions, int per_partition);
/* group.id is `group`; earliest; settings as pairs, ended by NULL. */
void ledger_open(struct ledger *l, const char *group, const char *key, ...);
void ledger_subscribe(struct ledger *l, const char *topic);
size_t ledger_positions(struct ledger *l, const char *topic, struct consumer_partition *out);
/* One poll, checked and released; gives the number of messages. RETRY is what a task logs and lives
 * with. */
int ledger_poll(struct ledger *l, size_t max, int64_t timeout_ms);
/* All its positions, at once. */
int ledger_commit(struct ledger *l, const char *topic);
/* One partition, to an offset before its position; that comes again. */
void ledger_seek_back(struct ledger *l, const char *topic, int partition, int64_t offset);
void ledger_poll_until(struct ledger *l, size_t seen, int64_t limit_ms);
void ledger_assigned(void *arg, const struct consumer_partition *parts, size_t count);
void ledger_revoked(void *arg, const struct consumer_partition *parts, size_t count, bool lost);
void ledger_moved(void *arg, const struct consumer_partition *part);
unsigned ledger_seed(void); /* printed; SEED=n repeats */

#endif
