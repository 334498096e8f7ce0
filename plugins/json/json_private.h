/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of JsonConverter share: its state, its parts, its caches. */
#ifndef JSON_PRIVATE_H
#define JSON_PRIVATE_H

#include "record_json.h"

#include <millrace/plugin.h>

/* --- output (json_out.c) ---------------------------------------------------------------------- */

#define JSON_OUT_MAX ((size_t)512 * 1024 * 1024)

/* Bytes being written; kept from record to record. */
struct json_out {
    char *p;
    size_t len;
    size_t cap;
    bool failed; /* larger than JSON_OUT_MAX, or out of memory; sticky until json_out_reset */
};

void json_out_reset(struct json_out *out); /* empty; a buffer that grew large is given back */
void json_out_free(struct json_out *out);
char *json_out_grow(struct json_out *out, size_t len);
/* Room for len more bytes at the end, or NULL with failed. */
static inline char *json_out_room(struct json_out *out, size_t len)
{
    return len <= out->cap - out->len ? out->p + out->len : json_out_grow(out, len);
}
static inline void json_out_add(struct json_out *out, const void *p, size_t len)
{
    char *to = json_out_room(out, len);

    if (to != NULL && len > 0) {
        memcpy(to, p, len);
        out->len += len;
    }
}
static inline void json_out_putc(struct json_out *out, char c)
{
    char *to = json_out_room(out, 1);

    if (to != NULL) {
        *to = c;
        out->len++;
    }
}
void json_out_puts(struct json_out *out, const char *z);
void json_out_long(struct json_out *out, int64_t i);
/* Text in quotes with Jackson's escapes; malformed UTF-8 becomes U+FFFD, lone surrogates (three
 * bytes) escapes. */
void json_out_string(struct json_out *out, const char *p, size_t len);
void json_out_base64(struct json_out *out, const unsigned char *p, size_t len); /* in quotes */

/* --- caches (json_cache.c) -------------------------------------------------------------------- */

/* What writing a schema's values needs again and again. */
struct json_plan {
    const struct mr_schema *schema;
    char *prefix; /* {"schema":…,"payload": — NULL until it was asked for */
    size_t prefix_len;
    char **fields; /* STRUCT: ,"name": of each field */
    uint32_t *field_lens;
};

struct json_plans {
    struct json_plan **slots; /* open addressing by the schema's address */
    size_t size;
    size_t count;
    size_t max; /* emptied at the start of a record when it holds more */
    struct json_plan *last;
};

/* NULL: out of memory. */
struct json_plan *json_plan_get(struct json_plans *plans, const struct mr_schema *schema);
/* Between records: drop all when there are too many. */
void json_plans_trim(struct json_plans *plans);
void json_plans_free(struct json_plans *plans);

/* Envelopes seen before, by their bytes: everything up to the payload's value. */
struct json_envelope {
    uint64_t hash;
    char *bytes; /* {"schema":…,"payload": */
    size_t len;
    const struct mr_schema *schema; /* NULL = schemaless */
};

struct json_envelopes {
    struct json_envelope *slots; /* open addressing by hash; bytes NULL = free */
    size_t size;
    size_t count;
    size_t bytes;
    size_t max; /* emptied when it would hold more */
    const struct json_envelope *last;
};

/* The entry whose bytes data begins with, or NULL. Valid until the next add. */
const struct json_envelope *json_envelopes_match(struct json_envelopes *set, const char *data,
                                                 size_t len);
void json_envelopes_add(struct json_envelopes *set, const char *bytes, size_t len,
                        const struct mr_schema *schema);
void json_envelopes_free(struct json_envelopes *set);

/* --- the converter (json_converter.c) --------------------------------------------------------- */

struct json_converter {
    struct mr_task *task;
    bool schemas;                    /* schemas.enable */
    bool numeric;                    /* decimal.format=NUMERIC */
    bool defaults;                   /* replace.null.with.default */
    const struct mr_schema *content; /* schema.content; NULL: none */
    struct record_json reader;
    struct json_out out;
    struct json_plans plans;
    struct json_envelopes envelopes;
};

/* --- the way in ------------------------------------------------------------------------------- */

/* Find the encoding as Jackson does, by byte order mark and zero bytes; rewrite UTF-16 and UTF-32
 * as UTF-8 in the arena, and say so in *wide (json_encoding.c). */
int json_encoding_detect(struct mr_arena *arena, const char **data, size_t *len, bool *wide,
                         struct mr_error *err);

/* A schema from its JSON tree (json_schema.c). */
int json_schema_read(struct json_converter *c, struct mr_arena *arena, struct mr_value tree,
                     const struct mr_schema **schema, struct mr_error *err);

/* The value that a tree means under a schema; NULL = schemaless (json_to_connect.c). */
int json_to_connect(struct json_converter *c, struct mr_arena *arena,
                    const struct mr_schema *schema, struct mr_value tree, struct mr_value *out,
                    struct mr_error *err);

/* --- the way out ------------------------------------------------------------------------------ */

/* A value as JSON behind out (json_from_connect.c). */
int json_from_connect(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                      const struct mr_schema *schema, struct mr_value v, struct mr_error *err);
/* A schema as JSON behind out (json_schema.c). field: what stands in "field"; NULL: none. */
int json_schema_write(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                      const struct mr_schema *schema, const char *field, struct mr_error *err);

/* Connect's names of things in its texts. */
/* Parameter `scale` of a Decimal schema; MR_ERR_DATA with Java's text. */
int json_decimal_scale(const struct mr_schema *schema, int32_t *scale, struct mr_error *err);

#endif
