/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets topic that a source connector has for itself (offsets.storage.topic): created where
 * it is missing, read to its end, looked up, written. Owner: one thread, a task's or that of
 * `millrace check`; clients are the connector's own, so it may lie on another Kafka than the
 * worker's. Spec: KIP-618; KafkaOffsetBackingStore.readWriteStore,
 * Worker.regularSourceOffsetsConsumerConfigs. */
#ifndef HOST_OWN_OFFSETS_H
#define HOST_OWN_OFFSETS_H

#include "base/json.h"
#include "host/task/task_client.h"

struct own_offsets;

struct own_offsets_spec {
    struct task_client_spec client; /* borrowed for its life */
    const struct props *producer;   /* settings of the one that writes; copied. NULL: none writes */
    /* Between two questions to the brokers: rest for ms; false: give up. */
    bool (*wait)(void *arg, int64_t ms);
    void *arg;
};

/* See to it that the topic is there, and read it. *out stays NULL where the connector has none.
 * Blocks, in slices of two seconds at most. MR_ERR_CLOSED: wait gave up; MR_ERR_CONFIG (settings of
 * a client, a topic that would forget offsets), MR_ERR_FATAL: it can't be had, with what to do. */
int own_offsets_open(const struct own_offsets_spec *spec, struct own_offsets **out,
                     struct mr_error *err);
void own_offsets_close(struct own_offsets **own); /* what is not written yet never will be */
const char *own_offsets_topic(const struct own_offsets *own);

/* Read what stands in the topic now. Blocks likewise. MR_ERR_CLOSED: wait gave up; MR_ERR_FATAL. */
int own_offsets_read(struct own_offsets *own, struct mr_error *err);
/* As far as was read: the offset of a partition, borrowed until the next call, NULL none; all of
 * them, [[partition, offset], …], new. */
const json_t *own_offsets_get(const struct own_offsets *own, const json_t *partition);
json_t *own_offsets_list(const struct own_offsets *own);

/* Begin to write [[partition, offset | null], …], borrowed until it is over; one such write at a
 * time. own_offsets_serve goes on with it. */
void own_offsets_put(struct own_offsets *own, const json_t *entries);
/* true, once: it is over. err stays empty: all in-sync replicas have all of it. */
bool own_offsets_ended(struct own_offsets *own, struct mr_error *err);
/* Nothing is sent any more but what a broker has been sent already: the write under way fails. */
void own_offsets_purge(struct own_offsets *own);

int own_offsets_fd(struct own_offsets *own); /* readable: own_offsets_serve has something to do */
void own_offsets_serve(struct own_offsets *own);

/* Call fn for each record, as Connect writes it, that a write of entries consists of: for whoever
 * sends them by a producer of his own. Negative codes of fn end it. */
typedef int (*own_offsets_record)(void *arg, const void *key, size_t key_len, const void *value,
                                  size_t value_len, struct mr_error *err);
int own_offsets_render(const struct own_offsets *own, const json_t *entries, own_offsets_record fn,
                       void *arg, struct mr_error *err);

#endif
