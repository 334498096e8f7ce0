/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an offsets topic, and the table they add up to. Pure; one owner thread (a store
 * thread).
 *
 * Java finds an offset by the raw bytes of its key, and writes a partition's members in the order
 * of a hash map. Here partitions are equal as values; the raw bytes seen last are written again, so
 * that Java finds what we wrote.
 * Spec: org.apache.kafka.connect.storage.KafkaOffsetBackingStore, OffsetUtils. */
#ifndef MODEL_OFFSET_RECORDS_H
#define MODEL_OFFSET_RECORDS_H

#include "base/json.h"

struct offset_table;

/* max: entries that it holds at most. */
struct offset_table *offset_table_new(size_t max);
void offset_table_free(struct offset_table **table);

struct offset_record {
    const void *key;
    size_t key_len;
    const void *value; /* NULL or no bytes: a tombstone */
    size_t value_len;
    int64_t timestamp_ms;
    int64_t offset;
};

/* Apply one record. 0; MR_ERR_DATA: skipped, err says why (err stays empty for what Java skips in
 * silence: a partition null); MR_ERR_FULL: more than max entries. */
int offset_table_apply(struct offset_table *table, const struct offset_record *rec,
                       struct mr_error *err);

/* The offset of a partition (an object), borrowed until the next apply; NULL none. */
const json_t *offset_table_get(const struct offset_table *table, const char *conn,
                               const json_t *partition);
/* All of a connector: new array of [partition, offset]. */
json_t *offset_table_list(const struct offset_table *table, const char *conn);

/* The raw keys that a write of this partition must go to: one for an offset (the one seen last, or
 * a new one), all that were seen for a tombstone. Calls fn for each; the bytes are borrowed for the
 * call. MR_ERR_NOMEM or fn's negative code. */
typedef int (*offset_table_key_fn)(void *arg, const char *key, size_t len);
int offset_table_keys(const struct offset_table *table, const char *conn, const json_t *partition,
                      bool tombstone, offset_table_key_fn fn, void *arg);

/* Append an offset (an object) as the Java worker writes it. 0, or MR_ERR_FULL. */
int offset_records_render(const json_t *offset, struct buf *value);

#endif
