/* SPDX-License-Identifier: Apache-2.0 */
/* Values as bytes and back, for what a plugin keeps: by kind, without schemas, equal values to
 * equal bytes. The format is of topics, and for ever:
 *
 *   value    kind (one byte, enum mr_kind), then
 *     BOOL, INT8 … INT64, DATE, TIME, TIMESTAMP   varint, zigzag
 *     FLOAT32, FLOAT64                            4 or 8 bytes, big-endian
 *     STRING, BYTES                               varint length, bytes
 *     LIST                                        varint count, values
 *     MAP                                         varint count, key and value of each
 *     DECIMAL                                     varint scale, zigzag; varint length, bytes
 *
 * A STRUCT is written as the MAP of its fields. Pure. */
#ifndef HOST_VALUE_BYTES_H
#define HOST_VALUE_BYTES_H

#include "base/buf.h"
#include "base/err.h"

#include <millrace/record.h>

#define VALUE_BYTES_DEPTH 100 /* of what stands within each other */

/* Append v. MR_ERR_DATA: nested too deep, or of no kind; MR_ERR_TOO_LARGE: out is full. */
int value_bytes_write(struct buf *out, struct mr_value v, struct mr_error *err);
/* What was written, in the arena. MR_ERR_PROTOCOL: these bytes are none. */
int value_bytes_read(struct mr_arena *arena, const void *bytes, size_t len, struct mr_value *v,
                     struct mr_error *err);

#endif
