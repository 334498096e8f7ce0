/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: immutable, interned by the host, so that equal schemas are one pointer.
 * Spec: org.apache.kafka.connect.data.Schema, SchemaBuilder, ConnectSchema. */
#ifndef MILLRACE_SCHEMA_H
#define MILLRACE_SCHEMA_H

#include <millrace/value.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mr_host;

/* Both frozen for ever, like struct mr_value: plugins make arrays of them. */
struct mr_param {
    const char *name;
    const char *value;
};

struct mr_schema_field {
    const char *name;
    const struct mr_schema *schema;
};

/* Read-only; made by mr_schema_make and by the host only. Valid until the process ends.
 *
 * kind          physical kind: BOOL to STRUCT. The logical types are recognised by name, as in
 *               Java: a schema named org.apache.kafka.connect.data.Decimal has kind MR_KIND_BYTES.
 * logical       kind of the values it takes: kind, or MR_KIND_DECIMAL, _DATE, _TIME, _TIMESTAMP by
 *               name
 * has_default   default_value may hold a value other than null
 * name, doc     NUL-terminated UTF-8 or NULL
 * params        param_count of them, in insertion order, or NULL
 * fields        STRUCT: field_count of them, in order
 * key, value    MAP: both; LIST: value; either may be NULL ("unknown", made by the string parser
 *               only) */
struct mr_schema {
    uint8_t kind;
    uint8_t logical;
    bool optional;
    bool has_version;
    bool has_default;
    int32_t version;
    const char *name;
    const char *doc;
    const struct mr_param *params;
    uint32_t param_count;
    uint32_t field_count;
    const struct mr_schema_field *fields;
    const struct mr_schema *key;
    const struct mr_schema *value;
    struct mr_value default_value;
};

/* What a schema should be; every pointer is borrowed for the call and copied.
 * Same meanings as in struct mr_schema; leave the rest zero. */
struct mr_schema_spec {
    uint8_t kind;
    bool optional;
    bool has_version;
    bool has_default;
    int32_t version;
    const char *name;
    const char *doc;
    const struct mr_param *params;
    uint32_t param_count;
    uint32_t field_count;
    const struct mr_schema_field *fields;
    const struct mr_schema *key;
    const struct mr_schema *value;
    struct mr_value default_value;
};

#define MR_LOGICAL_DECIMAL "org.apache.kafka.connect.data.Decimal"
#define MR_LOGICAL_DATE "org.apache.kafka.connect.data.Date"
#define MR_LOGICAL_TIME "org.apache.kafka.connect.data.Time"
#define MR_LOGICAL_TIMESTAMP "org.apache.kafka.connect.data.Timestamp"

/* Index of a STRUCT schema's field, or -1. */
static inline int mr_schema_index(const struct mr_schema *schema, const char *name)
{
    if (schema == NULL || schema->kind != MR_KIND_STRUCT)
        return -1;
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Member of a STRUCT (raw slot, no default) or of a MAP with text keys; null when there is none. */
static inline struct mr_value mr_field(struct mr_value v, const char *name)
{
    size_t len = strlen(name);

    if (v.kind == MR_KIND_STRUCT) {
        const struct mr_struct *s = (const struct mr_struct *)v.u.p;
        int i = mr_schema_index(s->schema, name);

        return i >= 0 ? s->slots[i] : mr_null();
    }
    if (v.kind == MR_KIND_MAP) {
        const struct mr_pair *pairs = (const struct mr_pair *)v.u.p;

        for (uint32_t i = 0; i < v.len; i++)
            if (pairs[i].key.kind == MR_KIND_STRING && pairs[i].key.len == len &&
                memcmp(pairs[i].key.u.p, name, len) == 0)
                return pairs[i].value;
    }
    return mr_null();
}

/* A STRUCT's field i, of 0 to len - 1: what its slot holds or, where that is null, the default of
 * the field's schema.
 * Spec: Struct.get(Field). */
static inline struct mr_value mr_slot(struct mr_value v, uint32_t i)
{
    const struct mr_struct *s = (const struct mr_struct *)v.u.p;

    return s->slots[i].kind == MR_KIND_NULL && s->schema->fields[i].schema->has_default
               ? s->schema->fields[i].schema->default_value
               : s->slots[i];
}

#ifdef __cplusplus
}
#endif

#endif
