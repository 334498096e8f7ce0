/* SPDX-License-Identifier: Apache-2.0 */
/* The four logical types: what their schema's kind holds of a value, and back. Pure but for the
 * arena.
 * Spec: org.apache.kafka.connect.data.Decimal, Date, Time, Timestamp: fromLogical, toLogical. */
#ifndef HOST_LOGICAL_H
#define HOST_LOGICAL_H

#include "base/err.h"

#include <millrace/record.h>

/* mr_value_encode and mr_value_decode of millrace/record.h. */
int logical_encode(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                   struct mr_value *out, struct mr_error *err);
int logical_decode(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                   struct mr_value *out, struct mr_error *err);

/* mr_header_check of millrace/record.h. */
int logical_header_check(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                         struct mr_error *err);

#endif
