/* SPDX-License-Identifier: Apache-2.0 */
/* jansson with our limits and Jackson's spelling. For REST, configuration, the link and internal
 * topics; not for records. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/props.h"

#include <jansson.h>

/* Parse one whole document: UTF-8, depth at most 512 (jansson's own cap is lowered by a scan
 * first), nothing but white space after it, a byte order mark before it accepted, duplicate keys:
 * last wins. NULL with err (MR_ERR_PROTOCOL, "line 3, column 7: …"). */
json_t *json_parse(const char *data, size_t len, struct mr_error *err);

/* Compact JSON as Jackson writes it: minimal escapes, \u00XX in upper case, integers as they
 * are. */
int json_write(struct buf *out, const json_t *value);
char *json_text(const json_t *value); /* malloc'ed; NULL out of memory */

/* {"k":"v", "n":null} in both directions. json_to_props refuses values that are neither text,
 * number, boolean nor null: numbers and booleans become their text. */
json_t *json_from_props(const struct props *p);
int json_to_props(const json_t *object, struct props *p, struct mr_error *err);

/* Members of an untrusted object: false (and *out untouched) when absent or of another type or
 * range. */
bool json_get_text(const json_t *object, const char *key, const char **out);
bool json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *out);
bool json_get_bool(const json_t *object, const char *key, bool *out);

#endif
