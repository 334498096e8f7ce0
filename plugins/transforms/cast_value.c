/* SPDX-License-Identifier: Apache-2.0 */
/* Casting one value: numbers narrow as Java's do, text is parsed as Java parses it, dates become
 * their encoded number or their text. Logical values are encoded first, but for text. Called for
 * each record and for defaults of schemas; any thread. */
#include "cast_value.h"

#include "date_format.h"
#include "mapping.h"
#include "number_text.h"
#include "requirement.h"

#define SHOWN 900 /* room for a value in a text */

/* --- the spec --------------------------------------------------------------------------------- */

static const char *trim(const char *p, size_t *len)
{
    while (*len > 0 && (unsigned char)*p <= ' ') {
        p++;
        --*len;
    }
    while (*len > 0 && (unsigned char)p[*len - 1] <= ' ')
        --*len;
    return p;
}

static int spec_type(const char *p, size_t len, uint8_t *kind, struct mr_error *err)
{
    char upper[100];
    size_t n = len < sizeof(upper) - 1 ? len : sizeof(upper) - 1;

    for (size_t i = 0; i < n; i++)
        upper[i] = p[i] >= 'a' && p[i] <= 'z' ? (char)(p[i] - 'a' + 'A') : p[i];
    upper[n] = '\0';
    for (uint8_t i = MR_KIND_BOOL; i <= MR_KIND_STRUCT && n == len; i++) {
        if (strcmp(mr_java_type(i), upper) != 0)
            continue;
        *kind = i;
        if (i <= MR_KIND_STRING)
            return MR_OK;
        return mr_fail(err, MR_ERR_CONFIG,
                       "Cast transformation does not support casting to %s; supported types are "
                       "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]",
                       upper);
    }
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value java.lang.IllegalArgumentException: No enum constant "
                   "org.apache.kafka.connect.data.Schema.Type.%s for configuration Invalid type "
                   "found in casting spec: %.*s",
                   upper, (int)n, p);
}

int cast_spec_parse(const char *item, struct cast_spec *out, size_t *parts, struct mr_error *err)
{
    struct mapping map;
    const char *type;

    *parts = mapping_split(item, &map);
    if (*parts == 0 || *parts > 2)
        return MR_ERR_CONFIG;
    out->name = NULL;
    out->name_len = 0;
    if (*parts == 1) {
        type = trim(map.left, &map.left_len);
        return spec_type(type, map.left_len, &out->kind, err);
    }
    out->name = trim(map.left, &map.left_len);
    out->name_len = map.left_len;
    type = trim(map.right, &map.right_len);
    return spec_type(type, map.right_len, &out->kind, err);
}

/* --- values ----------------------------------------------------------------------------------- */

static int unexpected(struct mr_value v, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_DATA, "Unexpected type in Cast transformation: class %s",
                   mr_java_class(v));
}

static int out_of_range(struct mr_value v, struct mr_error *err)
{
    char shown[SHOWN];

    return mr_fail(err, MR_ERR_DATA, "Value (%s) was out of range for requested data type",
                   mr_quote(shown, sizeof(shown), v.u.p, v.len));
}

/* The integer of a number or boolean before it is narrowed to kind; false for all others. */
static bool integer_of(struct mr_arena *arena, uint8_t kind, struct mr_value v, int64_t *out)
{
    bool wide = kind == MR_KIND_INT64 || kind == MR_KIND_BOOL;
    double d;

    if (v.kind >= MR_KIND_BOOL && v.kind <= MR_KIND_INT64)
        *out = v.u.i;
    else if (mr_as_double(v, &d))
        *out = wide ? number_text_to_long(d) : number_text_to_int(d);
    else if (v.kind == MR_KIND_DECIMAL)
        *out = number_text_low_bits(arena, (const struct mr_decimal *)v.u.p);
    else
        return false;
    return true;
}

static int64_t narrowed(uint8_t kind, int64_t i)
{
    return kind == MR_KIND_INT8    ? (int8_t)i
           : kind == MR_KIND_INT16 ? (int16_t)i
           : kind == MR_KIND_INT32 ? (int32_t)i
                                   : i;
}

static int to_integer(struct mr_arena *arena, uint8_t kind, struct mr_value *v,
                      struct mr_error *err)
{
    int64_t max = kind == MR_KIND_INT8    ? INT8_MAX
                  : kind == MR_KIND_INT16 ? INT16_MAX
                  : kind == MR_KIND_INT32 ? INT32_MAX
                                          : INT64_MAX;
    int64_t i;

    if (v->kind == MR_KIND_STRING) {
        if (!number_text_long((const char *)v->u.p, v->len, -max - 1, max, &i))
            return out_of_range(*v, err);
    } else if (!integer_of(arena, kind, *v, &i)) {
        return unexpected(*v, err);
    }
    *v = mr_int_of(kind, narrowed(kind, i));
    return MR_OK;
}

/* A decimal's text is what Java parses as well. */
static int to_floating(struct mr_arena *arena, uint8_t kind, struct mr_value *v,
                       struct mr_error *err)
{
    bool narrow = kind == MR_KIND_FLOAT32, good = true;
    struct mr_value text = *v;
    double d = 0;
    float f = 0;
    size_t len;

    if (v->kind >= MR_KIND_BOOL && v->kind <= MR_KIND_INT64) {
        f = (float)v->u.i;
        d = (double)v->u.i;
    } else if (mr_as_double(*v, &d)) {
        f = (float)d;
    } else if (v->kind == MR_KIND_STRING || v->kind == MR_KIND_DECIMAL) {
        const char *p = mr_to_text(arena, text, &len);

        good =
            narrow ? number_text_float(arena, p, len, &f) : number_text_double(arena, p, len, &d);
    } else {
        return unexpected(*v, err);
    }
    if (!good)
        return out_of_range(*v, err);
    *v = narrow ? mr_float(f) : mr_double(d);
    return MR_OK;
}

static bool says_true(struct mr_value v)
{
    const char *p = (const char *)v.u.p;

    return v.len == 4 && (p[0] | 0x20) == 't' && (p[1] | 0x20) == 'r' && (p[2] | 0x20) == 'u' &&
           (p[3] | 0x20) == 'e';
}

static int to_boolean(struct mr_arena *arena, uint8_t kind, struct mr_value *v,
                      struct mr_error *err)
{
    int64_t i;

    if (v->kind == MR_KIND_STRING)
        i = says_true(*v);
    else if (!integer_of(arena, kind, *v, &i))
        return unexpected(*v, err);
    *v = mr_bool(i != 0);
    return MR_OK;
}

static int to_string(struct mr_arena *arena, uint8_t kind, struct mr_value *v, struct mr_error *err)
{
    const char *p;
    size_t len;

    if (v->kind >= MR_KIND_DATE)
        p = date_format_iso(arena, *v, &len);
    else
        p = mr_to_text(arena, *v, &len); /* bytes as base64 */
    *v = mr_text(p, len);
    return MR_OK;
}

/* Schema.Type of a value without a schema; 0: Connect's data API has none. */
static uint8_t type_of(struct mr_value v)
{
    return v.kind <= MR_KIND_STRUCT ? v.kind : 0;
}

static int check_input(const struct mr_schema *schema, struct mr_value v, struct mr_error *err)
{
    uint8_t type = schema != NULL ? schema->kind : type_of(v);

    if (type == 0)
        return mr_fail(err, MR_ERR_DATA,
                       "Cast transformation was passed a value of type class %s which is not "
                       "supported by Connect's data API",
                       mr_java_class(v));
    if (type <= MR_KIND_BYTES)
        return MR_OK;
    return mr_fail(err, MR_ERR_DATA,
                   "Cast transformation does not support casting from %s; supported types are "
                   "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]",
                   mr_java_type(type));
}

int cast_value(struct mr_arena *arena, const struct mr_schema *schema, uint8_t kind,
               struct mr_value *v, struct mr_error *err)
{
    static int (*const casts[])(struct mr_arena * arena, uint8_t kind, struct mr_value * v,
                                struct mr_error * err) = {
        NULL,       to_boolean,  to_integer,  to_integer, to_integer,
        to_integer, to_floating, to_floating, to_string,
    };
    int rc;

    if (mr_is_null(*v))
        return MR_OK;
    rc = check_input(schema, *v, err);
    if (rc == MR_OK && kind != MR_KIND_STRING && v->kind >= MR_KIND_DATE)
        rc = mr_value_encode(arena, schema, *v, v, err);
    return rc == MR_OK ? casts[kind](arena, kind, v, err) : rc;
}
