/* SPDX-License-Identifier: Apache-2.0 */
/* A group consumer for one owner thread (a sink task): batch consume, with the owner's ledger as
 * the truth.
 *
 * librdkafka before 2.13.2 may skip or repeat messages next to pause, seek and rebalance when
 * batches are consumed. So: partitions are assigned at explicit positions, every resume comes after
 * a seek to the owner's next offset, what arrives before a seek was confirmed is dropped here, and
 * so is a batch that a rebalance came into. Commits are of the owner's offsets only. An offset
 * below the one asked for means that the log was truncated, or its topic created anew, and
 * auto.offset.reset applied: `moved` tells the owner. */
#ifndef KAFKA_CONSUMER_H
#define KAFKA_CONSUMER_H

#include "kafka/client_conf.h"

struct consumer;

struct consumer_header {
    const char *name;
    const void *value; /* NULL = null */
    size_t value_len;
};

/* Pointers lead into the fetch buffer and live until consumer_release of the batch. */
struct consumer_msg {
    const char *topic; /* one pointer per topic, valid for the consumer's life */
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* -1: none */
    const void *key;
    size_t key_len;
    const void *value;
    size_t value_len;
    size_t header_count;
    void *handle; /* for the two functions about one message */
};

struct consumer_partition {
    const char *topic;
    int32_t partition;
    int64_t offset; /* next to read; -1: unknown (by auto.offset.reset) */
};

/* Called inside consumer_poll and consumer_close, on the owner's thread. Offsets of `assigned` are
 * where reading starts: the committed ones; without one, the log's beginning or end as it is now,
 * by auto.offset.reset; -1 where that could not be found. consumer_seek inside `assigned` changes
 * where it starts, at no cost. revoked: commit inside it (consumer_commit with sync); lost: the
 * group gave them away already, do not commit. Topic names are those of messages: valid for the
 * consumer's life. moved (in consumer_poll, may be NULL): the log of a partition ended before the
 * offset that was asked for; messages of this batch begin at part->offset, which is lower. It must
 * not call the consumer.
 * out_of_range: what becomes of a position that the log does not have. NULL: auto.offset.reset
 * says; "earliest", "latest": reading goes on there; else the poll fails (MR_ERR_FATAL), and this
 * is the end of its text: the remedy. auto.offset.reset is then for partitions alone that have no
 * committed offset. */
struct consumer_events {
    void (*assigned)(void *arg, const struct consumer_partition *parts, size_t count);
    void (*revoked)(void *arg, const struct consumer_partition *parts, size_t count, bool lost);
    void (*moved)(void *arg, const struct consumer_partition *part);
    const char *out_of_range; /* static text */
};

struct consumer *consumer_new(const struct props *java, const struct consumer_events *events,
                              client_conf_warn warn, void *arg, struct mr_error *err);
/* topics ended by NULL; an entry that starts with ^ is a regular expression. */
int consumer_subscribe(struct consumer *c, const char *const *topics, struct mr_error *err);

/* Up to max messages, waiting at most timeout_ms for the first. Gives the count, or a negative code
 * for a failure of the client (MR_ERR_FATAL: no retry helps; MR_ERR_RETRY: logged by the caller,
 * polling goes on). Messages of one call are held until consumer_release, which must come before
 * the next poll. */
int consumer_poll(struct consumer *c, struct consumer_msg *out, size_t max, int64_t timeout_ms,
                  struct mr_error *err);
void consumer_release(struct consumer *c);
struct consumer_header consumer_header_at(const struct consumer_msg *msg, size_t i);
/* "CreateTime" or "LogAppendTime"; NULL: no timestamp. */
const char *consumer_timestamp_type(const struct consumer_msg *msg);

/* Commit these next-to-read offsets; partitions that are not ours (any more) are left out. sync:
 * wait for the answer, at most timeout_ms (MR_ERR_TIMEOUT). Else it is sent and forgotten; the
 * outcome of the newest commit comes by consumer_commit_result (0 pending or none, 1 done, negative
 * code failed). */
int consumer_commit(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    bool sync, int64_t timeout_ms, struct mr_error *err);
int consumer_commit_result(struct consumer *c, struct mr_error *err);

/* Offsets of this partition that are committed in transactions (producer_txn_offsets) bear a note
 * from here on. noted: that is so, or the offset that it began at bore one. */
void consumer_note(struct consumer *c, const char *topic, int32_t partition);
bool consumer_noted(const struct consumer *c, const char *topic, int32_t partition);

/* Stop and restart delivery of everything assigned, now and until resumed. parts: the owner's next
 * offsets, sought before delivery restarts; a partition that is not among them, or with -1, goes on
 * behind its last message handed out. seek: the same while not paused; it touches all partitions.
 * All three wait for librdkafka's main thread, under a millisecond. */
int consumer_pause(struct consumer *c, struct mr_error *err);
int consumer_resume(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    struct mr_error *err);
int consumer_seek(struct consumer *c, const struct consumer_partition *parts, size_t count,
                  struct mr_error *err);

/* Hold one partition back, besides what consumer_pause does, as long as it is assigned; or give it
 * free again: then reading goes on at part->offset (-1: behind its last message handed out).
 * MR_ERR_NOT_FOUND: it is not ours. */
int consumer_hold(struct consumer *c, const struct consumer_partition *part, bool hold,
                  struct mr_error *err);

/* Where these partitions begin and end now, for this consumer: begins[i] to ends[i] - 1 can be
 * read. Asks the brokers, at most limit_ms for each of the two: MR_ERR_RETRY no answer. May be
 * called inside `assigned`. */
int consumer_bounds(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    int64_t *begins, int64_t *ends, int limit_ms, struct mr_error *err);

/* End a consumer_poll that waits now, or the next one. Any thread. */
void consumer_wake(struct consumer *c);
/* While the owner is inside a long put: another thread keeps membership alive. The owner lends it
 * (all partitions paused) and takes it back (parts as for consumer_resume); between the two only
 * consumer_keep_alive may be called, by the borrower, at least each second; the two threads hand
 * over by a lock of theirs. A revocation waits for the owner, at most 80 % of max.poll.interval.ms;
 * then the partitions are given up, and the owner's next poll tells them as lost. */
int consumer_lend(struct consumer *c, struct mr_error *err);
void consumer_keep_alive(struct consumer *c);
int consumer_take_back(struct consumer *c, const struct consumer_partition *parts, size_t count,
                       struct mr_error *err);

/* Malloc'ed by librdkafka, copied here; "" before joining. */
const char *consumer_member_id(struct consumer *c);

/* revoked runs, then the group is left: waits for the coordinator until deadline_ms (monotonic), at
 * most 3 s. Later than that the group finds out by session.timeout.ms. */
void consumer_close(struct consumer **c, int64_t deadline_ms);

#endif
