/* SPDX-License-Identifier: Apache-2.0 */
/* Values of internal topics as Kafka's JsonConverter reads and writes them (4.x,
 * schemas.enable=false). Pure.
 *
 * What it takes decides where a worker's config offset stands, and all members of a group must
 * count alike; so this is as tolerant as Java, not as JSON: bytes behind the document, leading
 * zeros, numbers beyond 64 bits (their low 64 bits), lone surrogates, UTF-16 and UTF-32 with and
 * without a mark pass, and its limits are Java's. Tried against it: tests/data/store/json.tsv. */
#ifndef MODEL_STORED_JSON_H
#define MODEL_STORED_JSON_H

#include "base/json.h"

/* Read one value. 0: *out is the caller's; NULL for a JSON null, and for nothing but white space.
 * What text can't hold (lone surrogates, beyond U+10FFFF) becomes U+FFFD, and NUL in a member's
 * name too; an infinite number the largest one. MR_ERR_PROTOCOL: Java can't decode it either;
 * MR_ERR_NOMEM. */
int stored_json_parse(const void *data, size_t len, json_t **out, struct mr_error *err);

/* Append a value. 0, or MR_ERR_FULL. */
int stored_json_write(struct buf *out, const json_t *value);

#endif
