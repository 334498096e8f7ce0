/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas, interned for the life of the process: equal schemas are one pointer. Any thread.
 * Spec: org.apache.kafka.connect.data.ConnectSchema, SchemaBuilder. */
#ifndef HOST_SCHEMA_TREE_H
#define HOST_SCHEMA_TREE_H

#include "base/err.h"

#include <millrace/schema.h>

#define SCHEMA_TREE_MAX 100000  /* schemas in one process */
#define SCHEMA_TREE_TEXTS 10000 /* of these, for what texts say */
#define SCHEMA_TREE_MAX_BYTES ((size_t)256 * 1024 * 1024)

/* The schema that spec describes; borrowed by the caller for ever.
 *
 * spec       as in millrace/schema.h; every pointer is copied but those to schemas, which must come
 *            from here
 * spec_size  sizeof(struct mr_schema_spec) as the plugin was compiled; what it lacks is zero
 * err        filled on failure; may be NULL
 *
 * NULL with err: MR_ERR_DATA and SchemaBuilder's text when a rule is broken, MR_ERR_FULL at the
 * caps above (a plugin that makes a new schema for each record), MR_ERR_NOMEM. Neither for a scalar
 * kind or one of time without attributes: these are always there. No lock is taken for a schema
 * that is known. */
const struct mr_schema *schema_tree_make(const struct mr_schema_spec *spec, size_t spec_size,
                                         struct mr_error *err);

/* The schema of a kind of values without anything else: BOOL to BYTES; for DATE, TIME and TIMESTAMP
 * Connect's own. No lookup after the first time. Never NULL. */
const struct mr_schema *schema_tree_plain(uint8_t kind);
/* For Connect's string parser, whose texts anyone may write: a Decimal, a LIST of value or a MAP of
 * key and value, whose members may be NULL. NULL with err: MR_ERR_FULL at SCHEMA_TREE_TEXTS, but
 * not for a container whose members are NULL or schema_tree_plain's; MR_ERR_NOMEM. */
const struct mr_schema *schema_tree_decimal(int32_t scale, struct mr_error *err);
const struct mr_schema *schema_tree_container(uint8_t kind, const struct mr_schema *key,
                                              const struct mr_schema *value, struct mr_error *err);
/* Of a spec with a kind and optional alone, whose LIST or MAP has unknown members or such. */
const struct mr_schema *schema_tree_bare(const struct mr_schema_spec *spec, struct mr_error *err);

/* Was a schema refused for want of room? From then on this process can do what asks for new ones no
 * more: only another process can. */
bool schema_tree_spent(void);

size_t schema_tree_count(void); /* how many there are; for tests and metrics */

#endif
