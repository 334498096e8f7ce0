/* SPDX-License-Identifier: Apache-2.0 */
/* Writes of a cluster's leader under exactly.once.source.support=preparing or enabled: each set of
 * records in one transaction of the id connect-cluster-<group>, which the next leader takes over,
 * so that one who does not know yet that it is none any more can't write. Made and asked by the
 * store thread; a thread of its own waits for the brokers.
 * Spec: KIP-618, KafkaConfigBackingStore.claimWritePrivileges; reference exactly-once 2. */
#ifndef WORKER_FENCED_WRITER_H
#define WORKER_FENCED_WRITER_H

#include "base/loop.h"
#include "base/props.h"

#include <stdbool.h>

struct fenced_writer;

struct fenced_writer_options {
    struct loop *loop; /* of whoever asks: answers are posted there */
    const char *topic;
    const struct props *producer; /* Java properties, transactional.id among them */
};

struct fenced_write {
    const void *key;
    size_t key_len;
    const void *value; /* NULL: tombstone */
    size_t value_len;
};

/* code 0: committed. MR_ERR_STATE: not claimed, or claimed by another since; MR_ERR_TIMEOUT (it may
 * have been committed all the same); MR_ERR_FATAL, MR_ERR_TOO_LARGE, MR_ERR_CLOSED. */
typedef void (*fenced_writer_done)(void *arg, int code, const char *text);

/* Aborts out of memory; NULL with err: no thread. */
struct fenced_writer *fenced_writer_new(const struct fenced_writer_options *options,
                                        struct mr_error *err);
/* Waits for the thread, which ends within some 100 ms. What was not answered is not any more. */
void fenced_writer_free(struct fenced_writer **w);

/* From now on nobody else may write who did before, and this one may. anew: also if it could
 * already; else only if it has lost that. */
void fenced_writer_claim(struct fenced_writer *w, bool anew);
/* writes: copied. done runs once, on the loop, never inside this call. */
void fenced_writer_write(struct fenced_writer *w, const struct fenced_write *writes, size_t count,
                         int64_t deadline_ms, fenced_writer_done done, void *arg);

#endif
