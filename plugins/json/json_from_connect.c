/* SPDX-License-Identifier: Apache-2.0 */
/* From a value to its JSON text: JsonConverter.convertToJson, on the task's thread. Bytes go
 * straight behind the output; names of struct fields are written from the schema's plan.
 *
 * A value's own kind decides what is written, its schema decides whether that is allowed; where
 * Java would throw for a wrong class this gives the same text. */
#include "json_private.h"

#define DAY_MS 86400000
#define MAX_DEPTH 1000

/* What a conversion carries along. */
struct way_out {
    struct json_converter *c;
    struct mr_arena *arena; /* for the texts of fractions */
    struct json_out *out;
    int depth;
    struct mr_error *err;
};

static int write_value(struct way_out *w, const struct mr_schema *schema, struct mr_value v);

static int wrong_class(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    if (schema->kind == MR_KIND_BYTES)
        return mr_fail(w->err, MR_ERR_DATA, "Invalid type for bytes type: class %s",
                       mr_java_class(v));
    return mr_fail(w->err, MR_ERR_DATA, "Invalid type for %s: class %s", mr_java_type(schema->kind),
                   mr_java_class(v));
}

/* --- logical types ---------------------------------------------------------------------------- */

static int wrong_logical(struct way_out *w, const char *type, const char *expected,
                         struct mr_value v)
{
    return mr_fail(w->err, MR_ERR_DATA, "Invalid type for %s, expected %s but was class %s", type,
                   expected, mr_java_class(v));
}

static int write_decimal(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    const struct mr_decimal *d = (const struct mr_decimal *)v.u.p;
    int32_t scale = 0;
    const char *text;
    size_t len;
    int rc;

    if (v.kind != MR_KIND_DECIMAL)
        return wrong_logical(w, "Decimal", "BigDecimal", v);
    if (w->c->numeric) {
        text = mr_to_text(w->arena, v, &len);
        json_out_add(w->out, text, len);
        return MR_OK;
    }
    rc = json_decimal_scale(schema, &scale, w->err);
    if (rc != MR_OK)
        return rc;
    if (scale != d->scale)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Decimal value has mismatching scale for given Decimal schema. Schema has "
                       "scale %d, value has "
                       "scale %d.",
                       scale, d->scale);
    json_out_base64(w->out, d->bytes, d->len);
    return MR_OK;
}

/* The instant of any of the three kinds of time: each is a java.util.Date. */
static bool instant_of(struct mr_value v, int64_t *ms)
{
    if (v.kind < MR_KIND_DATE || v.kind > MR_KIND_TIMESTAMP)
        return false;
    *ms = v.kind == MR_KIND_DATE ? (int64_t)((uint64_t)v.u.i * DAY_MS) : v.u.i;
    return true;
}

static int write_date(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    int64_t ms = 0;

    if (!instant_of(v, &ms))
        return wrong_logical(w, "Date", "Date", v);
    if (ms % DAY_MS != 0)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Kafka Connect Date type should not have any time fields set to non-zero values.");
    json_out_long(w->out, (int32_t)(ms / DAY_MS));
    return MR_OK;
}

static int write_time(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    int64_t ms = 0;

    if (!instant_of(v, &ms))
        return wrong_logical(w, "Time", "Date", v);
    if (ms < 0 || ms > DAY_MS)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Kafka Connect Time type should not have any date fields set to non-zero values.");
    json_out_long(w->out, ms);
    return MR_OK;
}

static int write_timestamp(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    int64_t ms = 0;

    if (!instant_of(v, &ms))
        return wrong_logical(w, "Timestamp", "Date", v);
    json_out_long(w->out, ms);
    return MR_OK;
}

/* --- primitives ------------------------------------------------------------------------------- */

static int write_bool(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    if (v.u.i != 0)
        json_out_add(w->out, "true", 4);
    else
        json_out_add(w->out, "false", 5);
    return MR_OK;
}

static int write_integer(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    json_out_long(w->out, v.u.i);
    return MR_OK;
}

/* As Float.toString and Double.toString; what is no number, in quotes. */
static int write_floating(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    double d = v.kind == MR_KIND_FLOAT32 ? (double)v.u.f : v.u.d;
    bool number = d - d == 0;
    size_t len;
    const char *text = mr_to_text(w->arena, v, &len);

    if (!number)
        json_out_putc(w->out, '"');
    json_out_add(w->out, text, len);
    if (!number)
        json_out_putc(w->out, '"');
    return MR_OK;
}

static int write_text(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    json_out_string(w->out, (const char *)v.u.p, v.len);
    return MR_OK;
}

static int write_bytes(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    json_out_base64(w->out, (const unsigned char *)v.u.p, v.len);
    return MR_OK;
}

/* --- containers ------------------------------------------------------------------------------- */

static int write_list(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    int rc = MR_OK;

    json_out_putc(w->out, '[');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        if (i > 0)
            json_out_putc(w->out, ',');
        rc = write_value(w, schema == NULL ? NULL : schema->value, mr_items(v)[i]);
    }
    json_out_putc(w->out, ']');
    return rc;
}

/* An object wants names: by the key's schema, or without a schema by the keys themselves. */
static bool is_object(const struct mr_schema *schema, struct mr_value v)
{
    if (schema != NULL)
        return schema->key->kind == MR_KIND_STRING;
    for (uint32_t i = 0; i < v.len; i++)
        if (mr_pairs(v)[i].key.kind != MR_KIND_STRING)
            return false;
    return true;
}

/* A key as a member's name: the text of whatever JSON it becomes, so null is "null" and an integer
 * is in quotes. */
static int write_name(struct way_out *w, const struct mr_schema *schema, struct mr_value key)
{
    struct json_out *out = w->out;
    size_t start = out->len, len;
    int rc;

    if (key.kind == MR_KIND_STRING && (schema == NULL || schema->logical == MR_KIND_STRING)) {
        json_out_string(out, (const char *)key.u.p, key.len);
        return MR_OK;
    }
    rc = write_value(w, schema, key);
    if (rc != MR_OK || out->failed || out->p[start] == '"')
        return rc;
    len = out->len - start;
    if (json_out_room(out, 2) != NULL) {
        memmove(out->p + start + 1, out->p + start, len);
        out->p[start] = out->p[start + len + 1] = '"';
        out->len += 2;
    }
    return rc;
}

static int write_object(struct way_out *w, const struct mr_schema *key,
                        const struct mr_schema *value, struct mr_value v)
{
    int rc = MR_OK;

    json_out_putc(w->out, '{');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        if (i > 0)
            json_out_putc(w->out, ',');
        rc = write_name(w, key, mr_pairs(v)[i].key);
        json_out_putc(w->out, ':');
        if (rc == MR_OK)
            rc = write_value(w, value, mr_pairs(v)[i].value);
    }
    json_out_putc(w->out, '}');
    return rc;
}

static int write_tuples(struct way_out *w, const struct mr_schema *key,
                        const struct mr_schema *value, struct mr_value v)
{
    int rc = MR_OK;

    json_out_putc(w->out, '[');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        json_out_puts(w->out, i > 0 ? ",[" : "[");
        rc = write_value(w, key, mr_pairs(v)[i].key);
        json_out_putc(w->out, ',');
        if (rc == MR_OK)
            rc = write_value(w, value, mr_pairs(v)[i].value);
        json_out_putc(w->out, ']');
    }
    json_out_putc(w->out, ']');
    return rc;
}

static int write_map(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    const struct mr_schema *key = schema == NULL ? NULL : schema->key;
    const struct mr_schema *value = schema == NULL ? NULL : schema->value;

    if (schema != NULL && key == NULL) /* {} as a header's text is one */
        return mr_fail(
            w->err, MR_ERR_DATA,
            "java.lang.NullPointerException: Cannot invoke "
            "\"org.apache.kafka.connect.data.Schema.type()\" because the return value of "
            "\"org.apache.kafka.connect.data.Schema.keySchema()\" is null");
    return is_object(schema, v) ? write_object(w, key, value, v) : write_tuples(w, key, value, v);
}

static int write_struct(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    const struct mr_struct *s = (const struct mr_struct *)v.u.p;
    const struct json_plan *plan;
    int rc = MR_OK;

    if (schema == NULL || s->schema != schema)
        return mr_fail(w->err, MR_ERR_DATA, "Mismatching schema.");
    plan = json_plan_get(&w->c->plans, schema);
    if (plan == NULL)
        return mr_fail(w->err, MR_ERR_NOMEM, "out of memory for a schema of %u fields",
                       schema->field_count);
    json_out_putc(w->out, '{');
    for (uint32_t i = 0; i < schema->field_count && rc == MR_OK; i++) {
        uint32_t comma = i == 0;

        json_out_add(w->out, plan->fields[i] + comma, plan->field_lens[i] - comma);
        rc = write_value(w, schema->fields[i].schema, s->slots[i]);
    }
    json_out_putc(w->out, '}');
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

typedef int (*write_fn)(struct way_out *w, const struct mr_schema *schema, struct mr_value v);

/* By the value's kind without a schema; by what the schema takes with one. */
static const write_fn writers[] = {
    [MR_KIND_BOOL] = write_bool,        [MR_KIND_INT8] = write_integer,
    [MR_KIND_INT16] = write_integer,    [MR_KIND_INT32] = write_integer,
    [MR_KIND_INT64] = write_integer,    [MR_KIND_FLOAT32] = write_floating,
    [MR_KIND_FLOAT64] = write_floating, [MR_KIND_STRING] = write_text,
    [MR_KIND_BYTES] = write_bytes,      [MR_KIND_LIST] = write_list,
    [MR_KIND_MAP] = write_map,          [MR_KIND_STRUCT] = write_struct,
    [MR_KIND_DECIMAL] = write_decimal,  [MR_KIND_DATE] = write_date,
    [MR_KIND_TIME] = write_time,        [MR_KIND_TIMESTAMP] = write_timestamp,
};

static int write_null(struct way_out *w, const struct mr_schema *schema)
{
    if (schema != NULL && schema->has_default && w->c->defaults)
        return write_value(w, schema, schema->default_value);
    if (schema != NULL && !schema->optional)
        return mr_fail(
            w->err, MR_ERR_DATA,
            "Conversion error: null value for field that is required and has no default value");
    json_out_add(w->out, "null", 4);
    return MR_OK;
}

static int write_inner(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    int rc;

    if (w->depth >= MAX_DEPTH)
        return mr_fail(w->err, MR_ERR_DATA, "the value is nested deeper than %d levels", MAX_DEPTH);
    w->depth++;
    rc = writers[v.kind](w, schema, v);
    w->depth--;
    return rc;
}

static int write_value(struct way_out *w, const struct mr_schema *schema, struct mr_value v)
{
    if (v.kind == MR_KIND_NULL)
        return write_null(w, schema);
    if (v.kind > MR_KIND_TIMESTAMP)
        return mr_fail(w->err, MR_ERR_DATA, "a value has the unknown kind %u", v.kind);
    if (schema != NULL && schema->logical != v.kind)
        return schema->logical < MR_KIND_DECIMAL ? wrong_class(w, schema, v)
                                                 : writers[schema->logical](w, schema, v);
    if (schema == NULL && v.kind >= MR_KIND_DECIMAL)
        return mr_fail(w->err, MR_ERR_DATA,
                       "Java class class %s does not have corresponding schema type.",
                       mr_java_class(v));
    if (v.kind >= MR_KIND_LIST && v.kind <= MR_KIND_STRUCT)
        return write_inner(w, schema, v);
    return writers[v.kind](w, schema, v);
}

int json_from_connect(struct json_converter *c, struct mr_arena *arena, struct json_out *out,
                      const struct mr_schema *schema, struct mr_value v, struct mr_error *err)
{
    struct way_out w = {.c = c, .arena = arena, .out = out, .err = err};

    return write_value(&w, schema, v);
}
