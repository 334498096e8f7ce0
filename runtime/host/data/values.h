/* SPDX-License-Identifier: Apache-2.0 */
/* Values: text, equality, deep copy, checks. Pure.
 * Spec: java.lang toString of the values that Connect gives converters; data-model reference 2 and 9. */
#ifndef HOST_VALUES_H
#define HOST_VALUES_H

#include "base/err.h"

#include <millrace/record.h>

#define VALUES_MAX_DEPTH 1000

/* Java's toString; in the arena, NUL-terminated, except a top-level STRING, which comes back as it is. */
const char *values_text(struct mr_arena *arena, struct mr_value v, size_t *len);
size_t values_double_text(double d, char out[32]);      /* Double.toString, shortest digits */
size_t values_float_text(float f, char out[32]);
bool values_equal(struct mr_value a, struct mr_value b);
/* Is this a well-formed value: known kinds, depth, lengths with pointers? For what plugins hand over. */
int values_check(struct mr_value v, struct mr_error *err);
/* ConnectSchema.validateValue. */
int values_validate(const struct mr_schema *schema, struct mr_value v, struct mr_error *err);

#endif
