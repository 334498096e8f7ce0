/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of a connector as REST shows and takes them: what is wrong with those of a request, and
 * how a sink's read. Pure.
 *
 * Entries are [[partition, offset], …]: objects, either may be null in a request. Integers beyond
 * 64 bits are {"java.math.BigInteger": "digits"} there. Spec: OffsetUtils.validateFormat,
 * SinkUtils.parseSinkConnectorOffsets. */
#ifndef WORKER_OFFSET_ENTRIES_H
#define WORKER_OFFSET_ENTRIES_H

#include "base/json.h"
#include "kafka/group_offsets.h"

#define OFFSET_ENTRIES_BIG "java.math.BigInteger"

/* Of a source. MR_ERR_DATA with Connect's text. */
int offset_entries_check(const json_t *entries, struct mr_error *err);

/* Of a sink, each partition once (of several the last counts); offset -1: it is to be forgotten.
 * group_offsets_free. MR_ERR_CONFIG with Connect's text; MR_ERR_DATA: an offset is negative. */
int offset_entries_to_group(const json_t *entries, struct group_offset **out, size_t *count,
                            struct mr_error *err);

/* Append {"offsets": [{"partition": …, "offset": …}, …]}, of a source or of a sink. 0, or
 * MR_ERR_FULL. */
int offset_entries_write(struct buf *out, const json_t *entries);
int offset_entries_write_group(struct buf *out, const struct group_offset *list, size_t count);

#endif
