/* SPDX-License-Identifier: Apache-2.0 */
/* What a transform asks of a value before it looks inside, with Connect's texts. purpose: what
 * stands in brackets there.
 * Spec: org.apache.kafka.connect.transforms.util.Requirements. */
#ifndef TRANSFORMS_REQUIREMENT_H
#define TRANSFORMS_REQUIREMENT_H

#include <millrace/plugin.h>

/* MR_OK or MR_ERR_DATA. */
int requirement_map(struct mr_value v, const char *purpose, struct mr_error *err);
/* Also that the struct is of that schema, so that its slots may be taken by the schema's
 * indexes. */
int requirement_struct(const struct mr_schema *schema, struct mr_value v, const char *purpose,
                       struct mr_error *err);
/* Is it a STRUCT schema? "Cannot list fields …", as Schema.fields() says. */
int requirement_fields(const struct mr_schema *schema, struct mr_error *err);

#endif
