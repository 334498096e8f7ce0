/* SPDX-License-Identifier: Apache-2.0 */
/* Topics as they really are: produced to and read by a librdkafka client that shares no code with
 * Millrace. */
#ifndef TESTS_TOPIC_H
#define TESTS_TOPIC_H

#include <stddef.h>
#include <stdint.h>

struct topic_record {
    const char *key; /* NUL-terminated; NULL: null */
    size_t key_len;
    const char *value;
    size_t value_len;
    int64_t offset;
    int32_t partition;
    int64_t timestamp_ms;
    const char *headers; /* "name=value\n" of each, in their order; "" none */
};

struct topic_records {
    const struct topic_record *records;
    size_t count;
};

/* With as many copies as the brokers give by default. */
void topic_create(const char *servers, const char *topic, int partitions);

/* What a topic is: partitions, 0 when there is none; and a setting of it, "" when there is none. */
int topic_partitions(const char *servers, const char *topic);
const char *topic_setting(const char *servers, const char *topic, const char *key);

/* One record, acknowledged by all in-sync replicas. NULL key or value: null. partition -1: by
 * key. */
void topic_produce(const char *servers, const char *topic, int partition, const char *key,
                   const char *value);
/* Many text values at once, to partition 0. */
void topic_produce_lines(const char *servers, const char *topic, const char *const *values,
                         size_t count);

/* The texts "0" … count - 1 in JSON, number n to partition n % partitions. */
void topic_produce_numbers(const char *servers, const char *topic, int partitions, int from,
                           int count);
/* Value number n to partition n % partitions. */
void topic_produce_spread(const char *servers, const char *topic, int partitions,
                          const char *const *values, size_t count);
void topic_delete(const char *servers, const char *topic);
/* Deleted and created. What a consumer asked before it was closed waits at the broker behind its
 * fetch, and may create the topic in between, with the broker's number of partitions: then again. */
void topic_make_anew(const char *servers, const char *topic, int partitions);
/* As retention would: what a partition has below this offset is gone. */
void topic_delete_before(const char *servers, const char *topic, int partition, int64_t offset);

/* All records now in the topic, partition after partition; waits up to ms until there are at least
 * want. Live until the test ends. */
struct topic_records topic_read(const char *servers, const char *topic, size_t want, int ms);

/* The same of a topic of any size: each record in turn, without headers; of key and value what fits
 * into TOPIC_WALK_TEXT bytes, as long as the call. */
#define TOPIC_WALK_TEXT 256
void topic_walk(const char *servers, const char *topic,
                void (*each)(void *arg, const struct topic_record *rec), void *arg);

/* Records in the topic now (end minus start offsets of all partitions); 0 when there is no such
 * topic. */
int64_t topic_count(const char *servers, const char *topic);

/* Committed offset of a group, -1 none. */
int64_t topic_committed(const char *servers, const char *group, const char *topic, int partition);

#endif
