/* SPDX-License-Identifier: Apache-2.0 */
/* Topics as an administrator sees them: create, look at, where they end. Owner: one thread; every
 * call blocks, at most as long as it is told, and topic_admin_cancel ends that early. */
#ifndef KAFKA_TOPIC_ADMIN_H
#define KAFKA_TOPIC_ADMIN_H

#include "kafka/client_conf.h"

struct topic_admin;

/* java: layered properties of an admin client. */
struct topic_admin *topic_admin_new(const struct props *java, client_conf_warn warn, void *arg,
                                    struct mr_error *err);
void topic_admin_free(struct topic_admin **admin);
/* Calls that run now or later end with MR_ERR_CLOSED, soon; also those of topic_log that block. Any
 * thread. */
void topic_admin_cancel(struct topic_admin *admin);
bool topic_admin_cancelled(const struct topic_admin *admin);

struct topic_admin_spec {
    const char *topic;
    int partitions;               /* -1: the broker's default */
    int replication;              /* -1: the broker's default */
    const struct props *settings; /* of the topic; may be NULL */
};

/* Create a topic. 0 created; MR_ERR_EXISTS it is there; MR_ERR_CONFIG the brokers refuse these
 * settings; MR_ERR_UNSUPPORTED no right (err names topic and right); MR_ERR_RETRY not now (no
 * broker answers, or fewer brokers than replicas, in the broker's words); MR_ERR_FATAL;
 * MR_ERR_CLOSED. */
int topic_admin_create(struct topic_admin *admin, const struct topic_admin_spec *spec,
                       int64_t timeout_ms, struct mr_error *err);

/* A setting of a topic, such as cleanup.policy; copied. MR_ERR_NOT_FOUND no such topic or setting,
 * MR_ERR_UNSUPPORTED no right, MR_ERR_RETRY, MR_ERR_FATAL, MR_ERR_CLOSED. */
int topic_admin_setting(struct topic_admin *admin, const char *topic, const char *key,
                        int64_t timeout_ms, char *out, size_t size, struct mr_error *err);

/* Does this cleanup.policy keep the newest record of each key for ever? */
bool topic_admin_keeps(const char *policy);

/* 0: there is such a topic, whether or not it can be used just now. MR_ERR_NOT_FOUND,
 * MR_ERR_UNSUPPORTED no right, MR_ERR_RETRY (no answer), MR_ERR_CONFIG no topic's name,
 * MR_ERR_FATAL, MR_ERR_CLOSED. */
int topic_admin_exists(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                       struct mr_error *err);

/* How many partitions the topic has. MR_ERR_NOT_FOUND (also while it is being created),
 * MR_ERR_UNSUPPORTED no right, MR_ERR_RETRY (no leader for one of them, no answer), MR_ERR_FATAL,
 * MR_ERR_CLOSED. */
int topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                           int *count, struct mr_error *err);

/* How many replicas its partitions have, of those with the fewest. As topic_admin_partitions. */
int topic_admin_replicas(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                         int *count, struct mr_error *err);

/* Where partitions 0 … count-1 end now, open transactions included. ends: count long. As
 * topic_admin_partitions. */
int topic_admin_ends(struct topic_admin *admin, const char *topic, int count, int64_t timeout_ms,
                     int64_t *ends, struct mr_error *err);

#endif
