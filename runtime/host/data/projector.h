/* SPDX-License-Identifier: Apache-2.0 */
/* Values under another schema, and schemas for values that have none. Pure but for the arena.
 * Spec: org.apache.kafka.connect.data.SchemaProjector; Values.inferSchema. */
#ifndef HOST_PROJECTOR_H
#define HOST_PROJECTOR_H

#include "base/err.h"

#include <millrace/record.h>

/* mr_schema_project of millrace/record.h. */
int projector_project(struct mr_arena *arena, const struct mr_schema *from, struct mr_value v,
                      const struct mr_schema *to, struct mr_value *out, struct mr_error *err);

/* mr_schema_infer of millrace/record.h. */
int projector_infer(struct mr_value v, const struct mr_schema **schema, struct mr_error *err);

#endif
