/* SPDX-License-Identifier: Apache-2.0 */
/* Values: text, equality, deep copy, checks. Pure.
 * Spec: java.lang toString of the values that Connect gives converters;
 * ConnectSchema.validateValue. */
#ifndef HOST_VALUES_H
#define HOST_VALUES_H

#include "base/err.h"

#include <millrace/java_names.h>
#include <millrace/record.h>

#define VALUES_MAX_DEPTH 1000
/* Bytes of an unscaled integer; its text takes time by the square. */
#define VALUES_MAX_DECIMAL 16384u

/* Java's toString; in the arena, NUL-terminated, except a top-level STRING, which comes back as it
 * is. BYTES, whose text in Java is an identity, are base64. Deeper than VALUES_MAX_DEPTH stands
 * "...". */
const char *values_text(struct mr_arena *arena, struct mr_value v, size_t *len);
/* Double.toString, shortest digits; gives the length. */
size_t values_double_text(double d, char out[32]);
size_t values_float_text(float f, char out[32]);

/* Connect's string form: mr_value_string of millrace/record.h. */
const char *values_string(struct mr_arena *arena, struct mr_value v, size_t *len);
/* What that form says: mr_value_parse. text NULL gives null. schema: NULL when it isn't asked for;
 * then there is no MR_ERR_FULL. */
int values_parse(struct mr_arena *arena, const char *text, size_t len,
                 const struct mr_schema **schema, struct mr_value *value, struct mr_error *err);
/* A value as one of another schema: mr_value_convert. */
int values_convert(struct mr_arena *arena, const struct mr_schema *to, const struct mr_schema *from,
                   struct mr_value v, struct mr_value *out, struct mr_error *err);

/* By content and kind: INT32 1 is not INT64 1, NaN equals NaN, 0.0 is not -0.0, 1.0 is not 1.00,
 * maps have no order. Equal values have equal hashes (millrace/hash.h). */
bool values_equal(struct mr_value a, struct mr_value b);

/* Copy v into memory at *to, which moves on; values_size bytes are needed, 8-aligned. Both want a
 * checked value. */
size_t values_size(struct mr_value v);
struct mr_value values_copy(struct mr_value v, char **to);

/* Is this a well-formed value: known kinds, ranges, depth, lengths with pointers? For what plugins
 * hand over. MR_ERR_DATA. */
int values_check(struct mr_value v, struct mr_error *err);

/* Does v fit the schema? MR_ERR_DATA with Java's text. field: what the text names; NULL =
 * "value". */
int values_validate(const struct mr_schema *schema, struct mr_value v, struct mr_error *err);
int values_validate_field(const char *field, const struct mr_schema *schema, struct mr_value v,
                          struct mr_error *err);

/* "Schema{name:TYPE}" or "Schema{TYPE}", as Java prints one; a long name is cut. Gives out. */
#define VALUES_SCHEMA_TEXT 240
const char *values_schema_text(const struct mr_schema *schema, char out[VALUES_SCHEMA_TEXT]);

#endif
