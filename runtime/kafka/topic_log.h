/* SPDX-License-Identifier: Apache-2.0 */
/* A topic that is replayed from its beginning and then followed: state kept as a log. No group, no
 * commits; all partitions, as they were at the opening.
 * Owner: one thread. Spec: org.apache.kafka.connect.util.KafkaBasedLog. */
#ifndef KAFKA_TOPIC_LOG_H
#define KAFKA_TOPIC_LOG_H

#include "kafka/topic_admin.h"

struct topic_log;

struct topic_log_record {
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* -1: none */
    const void *key;      /* borrowed for the call; NULL = null */
    size_t key_len;
    const void *value; /* NULL = null */
    size_t value_len;
};

/* Called inside topic_log_serve and what reads to an end, on the owner's thread; they must not
 * call the log. */
struct topic_log_events {
    void (*record)(void *arg, const struct topic_log_record *rec);
    /* A partition's log ended before what was read already, and was taken up at its beginning: it
     * was truncated, or the topic made anew. Records come again. */
    void (*moved)(void *arg, int32_t partition, int64_t offset);
};

struct topic_log_options {
    const char *topic;
    int partitions;               /* 0 … partitions-1 are read */
    const bool *only;             /* of these, those that are set; NULL: all. Borrowed for life */
    const struct props *consumer; /* Java properties; isolation.level is honoured */
    const struct props *producer; /* NULL: for reading only */
    /* Written: the producer, with its threads, is made by the first append; its properties are
     * borrowed for life. */
    bool seldom;
    struct topic_admin *admin; /* borrowed for life, same owner: asks for ends */
    size_t max_bytes;          /* appended and not confirmed yet, at most */
    const struct topic_log_events *events;
    client_conf_warn warn;
    void *arg;
};

/* Begins to read. NULL with err: MR_ERR_CONFIG. */
struct topic_log *topic_log_open(const struct topic_log_options *options, struct mr_error *err);
/* Appends that wait are purged and answered MR_ERR_CLOSED. */
void topic_log_close(struct topic_log **log);

/* Readable when topic_log_serve has something to do. For the log's life. */
int topic_log_fd(struct topic_log *log);
/* Hand out what has arrived: records, and answers of appends; at most for a few milliseconds at a
 * time (the descriptor rings again). 0; MR_ERR_NOT_FOUND: the topic is gone; MR_ERR_FATAL: records
 * were lost on the way (a damaged batch); both stay. MR_ERR_RETRY: trouble that librdkafka is busy
 * with (err: its newest words), reading goes on. */
int topic_log_serve(struct topic_log *log, struct mr_error *err);

/* The newest of these words; "" since all is well again. */
const char *topic_log_trouble(const struct topic_log *log);

/* Where the log ends now: asks the brokers, at most timeout_ms. Then topic_log_reached is asked
 * until everything before was handed out. mark: as many as partitions; the caller's. Errors as
 * topic_admin_ends. */
int topic_log_mark(struct topic_log *log, int64_t timeout_ms, int64_t *mark, struct mr_error *err);
bool topic_log_reached(const struct topic_log *log, const int64_t *mark);
/* Both, and serve: returns when everything that stood in the log at the call was handed out. Blocks
 * until deadline_ms (monotonic): MR_ERR_TIMEOUT with the newest trouble; MR_ERR_UNSUPPORTED no
 * right to read; MR_ERR_CLOSED once topic_admin_cancel was called; else as topic_log_serve. */
int topic_log_read_to_end(struct topic_log *log, int64_t deadline_ms, struct mr_error *err);
/* The same, before any other reading, and what open transactions hold up is not waited for, where
 * isolation.level is read_committed. May be called again after MR_ERR_TIMEOUT. */
int topic_log_replay(struct topic_log *log, int64_t deadline_ms, struct mr_error *err);
/* May it be read at all? A log that is empty has its end without a right to read. Serves until a
 * partition has said something (an empty one does after fetch.max.wait.ms). 0, also when nothing
 * was heard until deadline_ms; else as topic_log_read_to_end. */
int topic_log_prove(struct topic_log *log, int64_t deadline_ms, struct mr_error *err);
/* Append one record, by murmur2 of its key as Java does; key and value (NULL: tombstone) are
 * copied. done runs inside serve, in the order of the partition: code 0 when all in-sync replicas
 * have it; MR_ERR_RETRY given up after delivery.timeout.ms, or the brokers know no such topic for
 * now (whether it is gone topic_log_serve tells); MR_ERR_TOO_LARGE, MR_ERR_CLOSED, MR_ERR_FATAL (no
 * right). Gives 0, or MR_ERR_FULL (max_bytes wait), MR_ERR_RETRY (as above), MR_ERR_TOO_LARGE,
 * MR_ERR_FATAL: not taken, done does not run. */
typedef void (*topic_log_done)(void *arg, int code, const char *text);
struct topic_log_append {
    const void *key;
    size_t key_len;
    const void *value; /* NULL = null */
    size_t value_len;
    topic_log_done done;
    void *arg;
};
int topic_log_append(struct topic_log *log, const struct topic_log_append *rec,
                     struct mr_error *err);
size_t topic_log_unconfirmed(const struct topic_log *log); /* records */
/* Nothing that was appended is sent any more but what a broker has been sent already: `done` runs
 * for all of it, in the next serve, with an error. Blocks for a moment. Any thread. */
void topic_log_purge(const struct topic_log *log);

#endif
