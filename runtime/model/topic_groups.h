/* SPDX-License-Identifier: Apache-2.0 */
/* topic.creation.*: how the topics of a source connector are to be made. One thread at a time.
 * Spec: KIP-158; org.apache.kafka.connect.runtime.TopicCreationConfig, SourceConnectorConfig,
 * util.TopicCreationGroup. */
#ifndef MODEL_TOPIC_GROUPS_H
#define MODEL_TOPIC_GROUPS_H

#include "base/java_pattern.h"
#include "base/props.h"

struct topic_group {
    char *name;
    int partitions;                         /* -1: the broker's default */
    int replication;                        /* -1: the broker's default */
    struct props settings;                  /* of the topic */
    struct java_pattern *include, *exclude; /* NULL in the default group */
};

/* count of them, the default group last. */
struct topic_groups {
    struct topic_group *groups;
    size_t count;
};

/* Does the worker allow it, and the connector name any such setting? Else the brokers create
 * topics, or don't. */
bool topic_groups_wanted(const struct props *worker, const struct props *config);

/* Read the groups of a connector's configuration. MR_ERR_CONFIG with Connect's text for the first
 * problem. out is initialised by this, and deinitialised by topic_groups_deinit also after a
 * failure. */
int topic_groups_read(const struct props *config, struct topic_groups *out, struct mr_error *err);
void topic_groups_deinit(struct topic_groups *groups);

/* The first group whose include matches the whole name and whose exclude doesn't, else the default
 * one. NULL with err: a pattern takes too long on that name. */
const struct topic_group *topic_groups_find(const struct topic_groups *groups, const char *topic,
                                            struct mr_error *err);

#endif
