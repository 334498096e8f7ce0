/* SPDX-License-Identifier: Apache-2.0 */
/* Source offsets of a standalone worker: one file, written by the store thread only.
 * Spec: org.apache.kafka.connect.storage.FileOffsetBackingStore; the format is our own and told at
 * the top of the .c. */
#ifndef WORKER_LOCAL_STORE_H
#define WORKER_LOCAL_STORE_H

#include "base/loop.h"
#include "worker/store/offset_store.h"

struct local_store;

/* Lock the file by `PATH.lock` beside it, read it (absent = empty), start the thread.
 * MR_ERR_EXISTS: another process has it open. MR_ERR_PROTOCOL names file and byte of damage; a file
 * of the Java worker is refused with the remedy. */
struct local_store *local_store_open(const char *path, struct loop *loop, struct mr_error *err);
/* Finishes what is queued and runs the answers that did not run yet. Before loop_free. */
void local_store_close(struct local_store **store);

/* Answers run on the loop, never inside the call that asked (but inside local_store_close).
 * entries: [[partition, offset|null]]. A request of the wrong shape, or one too many, is answered
 * with an error. */
typedef offset_store_read_fn local_store_read_fn;
typedef offset_store_written_fn local_store_written_fn;

/* The stored offsets of these partitions of a connector (those unknown are left out), after all
 * writes before. Partitions match as values: member order and integer width do not count. */
void local_store_get(struct local_store *store, const char *conn, const json_t *partitions,
                     local_store_read_fn fn, void *arg);
/* All of a connector's. */
void local_store_list(struct local_store *store, const char *conn, local_store_read_fn fn,
                      void *arg);
/* Store, answered after fsync; writes that wait are joined into one. A failed write keeps the old
 * file and says why. entries: taken; nobody else has any part of them. */
void local_store_put(struct local_store *store, const char *conn, json_t *entries,
                     local_store_written_fn fn, void *arg);

/* The same three as the herder's host_desk wants them. */
static inline void local_store_get_any(void *self, const char *conn, const json_t *partitions,
                                       offset_store_read_fn fn, void *arg)
{
    local_store_get(self, conn, partitions, fn, arg);
}
static inline void local_store_put_any(void *self, const char *conn, json_t *entries,
                                       offset_store_written_fn fn, void *arg)
{
    local_store_put(self, conn, entries, fn, arg);
}
static inline void local_store_list_any(void *self, const char *conn, offset_store_read_fn fn,
                                        void *arg)
{
    local_store_list(self, conn, fn, arg);
}
static inline struct offset_store local_store_offsets(struct local_store *store)
{
    return (struct offset_store){.self = store,
                                 .get = local_store_get_any,
                                 .list = local_store_list_any,
                                 .put = local_store_put_any};
}

/* Pure halves, for tests and the fuzzer. The object's members: canonical key → [connector,
 * partition, offset]. MR_ERR_PROTOCOL: "NAME: byte N: what is wrong"; MR_ERR_UNSUPPORTED: a file of
 * the Java worker. */
json_t *local_store_parse(const char *data, size_t len, const char *name, struct mr_error *err);
int local_store_render(const json_t *offsets, struct buf *out);

#endif
