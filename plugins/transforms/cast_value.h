/* SPDX-License-Identifier: Apache-2.0 */
/* One value as another kind, by the rules of Connect's Cast. Any thread. */
#ifndef TRANSFORMS_CAST_VALUE_H
#define TRANSFORMS_CAST_VALUE_H

#include <millrace/plugin.h>

/* An item of Cast's spec, "field:type" or "type". */
struct cast_spec {
    const char *name; /* in the item, trimmed; NULL: the whole value */
    size_t name_len;
    uint8_t kind;
};

/* MR_ERR_CONFIG with Connect's text; *parts as mapping_split gives it: 0 or more than 2 have no
 * text (mapping_fail has). */
int cast_spec_parse(const char *item, struct cast_spec *out, size_t *parts, struct mr_error *err);

/* *v as kind (BOOL to STRING); null stays null. schema: v's own, NULL = schemaless. MR_ERR_DATA. */
int cast_value(struct mr_arena *arena, const struct mr_schema *schema, uint8_t kind,
               struct mr_value *v, struct mr_error *err);

#endif
