/* SPDX-License-Identifier: Apache-2.0 */
/* Topics that a source task creates before it sends to them, as topic.creation.* says. Owner: the
 * task's thread.
 * Spec: KIP-158; AbstractWorkerSourceTask.maybeCreateTopic, util.TopicCreation, util.TopicAdmin. */
#ifndef HOST_TOPIC_CREATE_H
#define HOST_TOPIC_CREATE_H

#include "host/task/task_client.h"

struct topic_create;

/* Borrowed for its life. wait: rest for ms; false: the task ends or has lost its lease. */
struct topic_create_spec {
    struct task_client_spec client;
    bool (*wait)(void *arg, int64_t ms);
    void *arg;
};

/* Read the groups, and check the admin client's settings. *out stays NULL where nothing asks for
 * topics. MR_ERR_CONFIG. */
int topic_create_open(const struct topic_create_spec *spec, struct topic_create **out,
                      struct mr_error *err);
void topic_create_close(struct topic_create **topics);

/* See to it that the topic is there. Each is looked for once in the life of topics, and created if
 * it is missing; after that the call costs a look into a map. Blocks, in slices of two seconds at
 * most; topics may be NULL: all are there. MR_OK; MR_ERR_FULL wait has ended it; MR_ERR_FATAL with
 * Connect's text: the task must fail. */
int topic_create_ensure(struct topic_create *topics, const char *topic, struct mr_error *err);

/* No new topics for now: let the client go. */
void topic_create_rest(struct topic_create *topics);

#endif
