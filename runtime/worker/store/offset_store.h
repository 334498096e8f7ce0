/* SPDX-License-Identifier: Apache-2.0 */
/* Where source offsets are kept, as the herder sees it: a file (local_store) or a topic
 * (cluster_store). */
#ifndef WORKER_OFFSET_STORE_H
#define WORKER_OFFSET_STORE_H

#include "base/json.h"

/* Answers run on the worker's loop, exactly once, never inside the call that asked (but inside the
 * store's close). entries: [[partition, offset|null]], taken by the callee; NULL with error. error:
 * one sentence, NULL when it went well. */
typedef void (*offset_store_read_fn)(void *arg, json_t *entries, const char *error);
typedef void (*offset_store_written_fn)(void *arg, const char *error);

struct offset_store {
    void *self;
    /* The stored offsets of these partitions (an array of objects) of a connector, after all writes
     * before; those unknown are left out. Partitions match as values. */
    void (*get)(void *self, const char *conn, const json_t *partitions, offset_store_read_fn fn,
                void *arg);
    /* All stored offsets of a connector: [[partition, offset]]. */
    void (*list)(void *self, const char *conn, offset_store_read_fn fn, void *arg);
    /* Store [[partition, offset|null]], in order; answered when durable. null removes. entries:
     * taken; nobody else has any part of them. */
    void (*put)(void *self, const char *conn, json_t *entries, offset_store_written_fn fn,
                void *arg);
};

#endif
