/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas, interned for the life of the process: equal schemas are one pointer. Any thread.
 * Spec: org.apache.kafka.connect.data.ConnectSchema, SchemaBuilder. */
#ifndef HOST_SCHEMA_TREE_H
#define HOST_SCHEMA_TREE_H

#include "base/err.h"

#include <millrace/schema.h>

/* spec_size: as the plugin was compiled; what it lacks is zero. NULL with err. A cap on the number of schemas (100 000)
 * turns a plugin that makes a new one for each record into an error. */
const struct mr_schema *schema_tree_make(const struct mr_schema_spec *spec, size_t spec_size, struct mr_error *err);

#endif
