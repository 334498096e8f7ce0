/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to nested fields: a.b, or with names in backticks. Spec: KIP-821, SingleFieldPath. */
#ifndef TRANSFORMS_FIELD_PATH_H
#define TRANSFORMS_FIELD_PATH_H

#include "field_name.h"

struct field_path {
    size_t count; /* of steps, at least 1 */
    struct field_name *steps;
    char *texts; /* of the steps */
};

/* nested false: the whole text is one step. MR_ERR_CONFIG with Connect's text (an empty nested
 * path, which Java takes and then fails each record with, is refused too), or MR_ERR_NOMEM. Nothing
 * to free then. */
int field_path_parse(struct field_path *path, const char *text, bool nested, struct mr_error *err);
void field_path_free(struct field_path *path);

/* In schemaless maps: null where a member is missing or null. MR_ERR_DATA when what is in between
 * is no map. */
int field_path_get(struct field_path *path, struct mr_value map, struct mr_value *out,
                   struct mr_error *err);

#endif
