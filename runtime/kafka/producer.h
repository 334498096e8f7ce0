/* SPDX-License-Identifier: Apache-2.0 */
/* A producer whose delivery reports its owner walks itself. One owner thread (a task). Payloads are
 * not copied: they must stay until their report was walked, or until producer_free returned. */
#ifndef KAFKA_PRODUCER_H
#define KAFKA_PRODUCER_H

#include "kafka/client_conf.h"

struct consumer;
struct consumer_partition;
struct producer;
struct producer_topic;

struct producer_header {
    const char *name;
    const void *value; /* NULL = null */
    size_t value_len;
};

struct producer_record {
    struct producer_topic *topic;
    int32_t partition;    /* -1: by murmur2 of the key as Java does */
    int64_t timestamp_ms; /* -1: now */
    const void *key;      /* NULL = null */
    size_t key_len;
    const void *value; /* NULL = null (tombstone) */
    size_t value_len;
    const struct producer_header *headers; /* copied */
    size_t header_count;
    void *opaque; /* comes back with the report */
};

/* java: layered Java properties. */
struct producer *producer_new(const struct props *java, client_conf_warn warn, void *arg,
                              struct mr_error *err);
/* What is still queued is purged; after this no payload is referenced any more. */
void producer_free(struct producer **p);

/* The handle of a topic, cached for the producer's life. The first call for a name asks the brokers
 * for it, up to 200 ms if it does not exist yet (librdkafka would let the first record wait a
 * second). NULL: MR_ERR_DATA for what can't be a name. */
struct producer_topic *producer_topic(struct producer *p, const char *name, struct mr_error *err);

/* Hand over one record. 0, MR_ERR_FULL (walk reports or wait for producer_fd, then again),
 * MR_ERR_TOO_LARGE (the record is above max.request.size), MR_ERR_DATA (timestamp below -1),
 * MR_ERR_NOT_FOUND (the brokers know no such topic; or of no partitions of it, or not any more of
 * this one: one of them may be behind, so the same call may succeed a moment later), MR_ERR_FATAL
 * (the brokers say that the topic has no such partition, or the client is finished), MR_ERR_STATE
 * and MR_ERR_CLOSED as below. A timestamp of 0 is sent as 1: librdkafka takes 0 for "now". */
int producer_send(struct producer *p, const struct producer_record *rec, struct mr_error *err);

/* Walk reports that have arrived, waiting at most timeout_ms for the first. fn gets each record's
 * opaque and code 0, or an error: MR_ERR_TOO_LARGE (the broker refuses it; librdkafka then fails
 * every record of the batch it was sent in), MR_ERR_RETRY (given up by delivery.timeout.ms),
 * MR_ERR_CLOSED (purged), MR_ERR_NOT_FOUND (as above: of what is queued for a topic everything
 * comes back so), MR_ERR_FATAL, with its text. Gives the number walked. fn must not call
 * producer_free or producer_reports. */
typedef void (*producer_report_fn)(void *arg, void *opaque, int code, const char *text);
size_t producer_reports(struct producer *p, int64_t timeout_ms, producer_report_fn fn, void *arg);

/* Readable when reports (or errors) wait. Valid until producer_free. */
int producer_fd(struct producer *p);
size_t producer_in_flight(struct producer *p);
/* Drop everything queued and in flight: reports follow with MR_ERR_CLOSED. What was in flight may
 * be delivered all the same. */
void producer_purge(struct producer *p);

/* A client-level failure (authentication, all brokers down …): the newest text, or NULL; fatal says
 * that no retry helps. Learnt by producer_reports, cleared by the next delivery. */
const char *producer_trouble(struct producer *p, bool *fatal);

/* --- transactions, for a producer whose settings have a transactional.id; producer_txn.c ------ */

/* All of them give 0 or one of
 *   MR_AGAIN       timeout_ms was too short: walk reports, then call the same again and nothing
 *                  else (init, offsets, commit, abort)
 *   MR_ERR_CLOSED  another producer has the id now, or the broker ended the transaction as too old:
 *                  nothing of it shows. This producer is of no use any more
 *   MR_ERR_STATE   the transaction must be aborted, or can't be: a producer made anew may go on
 *   MR_ERR_FATAL   this producer is of no use any more
 * Reports of all that was sent are walked before a commit. */
int producer_txn_init(struct producer *p, int64_t timeout_ms, struct mr_error *err);
int producer_txn_begin(struct producer *p, struct mr_error *err);
/* With the open transaction these next-to-read offsets are committed in the consumer's group, or
 * with it they are not. Behind the reports of all that was sent. While brokers do not answer it
 * goes on, to the end of transaction.timeout.ms; MR_AGAIN: the same ones again, or producer_free:
 * an abort is then refused (MR_ERR_STATE). MR_ERR_STATE also: a partition is not the consumer's any
 * more, or it is not in its group, or another generation has begun there. Thread: the owner of
 * both. */
int producer_txn_offsets(struct producer *p, struct consumer *c,
                         const struct consumer_partition *parts, size_t count, int64_t timeout_ms,
                         struct mr_error *err);
int producer_txn_commit(struct producer *p, int64_t timeout_ms, struct mr_error *err);
/* Purges what is under way: reports of it come while this is called again. The producer is tainted
 * unless reports of all that was sent were walked before. */
int producer_txn_abort(struct producer *p, int64_t timeout_ms, struct mr_error *err);
/* An end of a transaction may reach the broker once more, and would then end a later one: none is
 * begun any more (MR_ERR_STATE), a producer that is initialised anew must replace this one. */
bool producer_txn_tainted(const struct producer *p);
/* The id was taken over, or the broker and the library no longer agree on what was sent, learnt by
 * any call or report: failures after that are due to it. A producer made anew may go on. */
bool producer_txn_over(struct producer *p);

#endif
