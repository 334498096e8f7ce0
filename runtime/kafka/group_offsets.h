/* SPDX-License-Identifier: Apache-2.0 */
/* The committed offsets of a consumer group, looked at and changed from outside. Owner: the thread
 * that owns admin; every call blocks, at most as long as it is told (a change that has to be taken
 * back: twice), and topic_admin_cancel ends that early. Spec: KIP-496, KIP-709; Kafka's
 * Admin.{list,alter,delete}ConsumerGroupOffsets, deleteConsumerGroups. */
#ifndef KAFKA_GROUP_OFFSETS_H
#define KAFKA_GROUP_OFFSETS_H

#include "kafka/topic_admin.h"

struct group_offset {
    char *topic;
    int32_t partition;
    int64_t offset; /* the next to read; in a change -1: forget it */
};

/* All that are committed; a group that is not known has none. *out is malloc'ed:
 * group_offsets_free. MR_ERR_UNSUPPORTED no right, MR_ERR_RETRY no answer, MR_ERR_FATAL,
 * MR_ERR_CLOSED. */
int group_offsets_list(struct topic_admin *admin, const char *group, int64_t timeout_ms,
                       struct group_offset **out, size_t *count, struct mr_error *err);
void group_offsets_free(struct group_offset *list, size_t count);

/* Change some of them, all or none: what can't be, because a partition is not there, is told before
 * anything is done, and where the brokers refuse a part, the rest is put back as it was (err says
 * so if even that fails). Each partition once. As group_offsets_list, and MR_ERR_STATE: the group
 * has members; MR_ERR_NOT_FOUND: no such topic, partition or group. */
int group_offsets_change(struct topic_admin *admin, const char *group,
                         const struct group_offset *changes, size_t count, int64_t timeout_ms,
                         struct mr_error *err);

/* Delete the group with all of them. 0 also when there is no such group. MR_ERR_STATE: it has
 * members. */
int group_offsets_drop(struct topic_admin *admin, const char *group, int64_t timeout_ms,
                       struct mr_error *err);

#endif
