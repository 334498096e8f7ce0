/* SPDX-License-Identifier: Apache-2.0 */
/* The internal topics of a cluster as the worker's file has them: names, settings, clients, and
 * that they are fit for use. Reading the configuration is pure; internal_topics_ensure belongs to
 * the store thread and blocks.
 * Spec: org.apache.kafka.connect.util.TopicAdmin, DistributedConfig. */
#ifndef WORKER_INTERNAL_TOPICS_H
#define WORKER_INTERNAL_TOPICS_H

#include "kafka/topic_admin.h"

/* In the order in which they are read at the start. The last one is Millrace's own: the words of
 * word_records.h; no worker fails for want of it. */
enum internal_topic_kind { TOPIC_OFFSETS, TOPIC_STATUS, TOPIC_CONFIG, TOPIC_WORDS };
#define INTERNAL_TOPICS 3 /* of Connect */
#define ALL_TOPICS 4

struct internal_topic {
    enum internal_topic_kind kind;
    bool optional;         /* trouble is told after a short while, not waited out */
    const char *name_key;  /* "config.storage.topic" */
    const char *purpose;   /* "connector configurations" */
    const char *name;      /* borrowed from props */
    int partitions;        /* wanted when it is created; -1 the broker's default */
    int replication;       /* the same */
    struct props settings; /* of the topic, when it is created */
    struct props consumer; /* Java properties of its clients */
    struct props producer;
    bool fenced;         /* the leader writes in transactions: exactly.once.source.support */
    struct props leader; /* of the producer for that */
};

struct internal_topics {
    struct internal_topic topics[ALL_TOPICS];
    struct props admin;
    struct props names; /* private */
};

/* From the worker's whole configuration. Settings that can't be honoured are warned about.
 * MR_ERR_CONFIG. */
int internal_topics_init(struct internal_topics *topics, const struct props *worker,
                         struct mr_error *err);
void internal_topics_deinit(struct internal_topics *topics);

/* Create the topic, or look whether the one that is there will do, and give its number of
 * partitions. Tried again while no broker answers, until topic_admin_cancel, with a line in the log
 * every few seconds; give_up_ms: how long brokers are waited for that are too few for the replicas,
 * and for a topic to show. MR_ERR_CONFIG, MR_ERR_UNSUPPORTED (no right), MR_ERR_TIMEOUT,
 * MR_ERR_FATAL, MR_ERR_CLOSED; the texts begin as Java's. */
int internal_topics_ensure(const struct internal_topic *topic, struct topic_admin *admin,
                           int64_t give_up_ms, int *partitions, struct mr_error *err);

/* Only the second half: is it (still) what it must be? MR_ERR_NOT_FOUND, MR_ERR_CONFIG,
 * MR_ERR_RETRY, MR_ERR_CLOSED. */
int internal_topics_verify(const struct internal_topic *topic, struct topic_admin *admin,
                           int64_t timeout_ms, int *partitions, struct mr_error *err);

#endif
