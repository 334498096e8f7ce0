/* SPDX-License-Identifier: Apache-2.0 */
/* Values of logical types and what stands for them: a Decimal's unscaled bytes, a Date's days, the
 * milliseconds of a Time and a Timestamp. Conversions, converters and transforms ask through the
 * host's table; on the task's thread.
 *
 * Which type it is, the schema's name says; its kind is not looked at, as in Java. All three kinds
 * of time are one class there, so each may come where another is meant, and is judged by its
 * moment. */
#include "host/data/logical.h"

#include "host/data/calendar.h"
#include "host/data/temporal_text.h"
#include "host/data/values.h"

#include <inttypes.h>

static int no_conversion(const struct mr_schema *schema, struct mr_value v, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_DATA,
                   "a value of class %s is none for a schema of type %s with the name %.200s",
                   mr_java_class(v), mr_java_type(schema->kind),
                   schema->name == NULL ? "null" : schema->name);
}

/* Integer.parseInt: a sign and ASCII digits, no blanks. */
static bool parse_int(const char *text, int32_t *out)
{
    bool negative = *text == '-';
    int64_t n = 0;

    text += *text == '-' || *text == '+';
    if (*text == '\0')
        return false;
    for (; *text >= '0' && *text <= '9' && n <= INT32_MAX; text++)
        n = n * 10 + (*text - '0');
    n = negative ? -n : n;
    *out = (int32_t)n;
    return *text == '\0' && n >= INT32_MIN && n <= INT32_MAX;
}

static int scale_of(const struct mr_schema *schema, int32_t *scale, struct mr_error *err)
{
    for (uint32_t i = 0; i < schema->param_count; i++) {
        if (strcmp(schema->params[i].name, "scale") != 0)
            continue;
        if (parse_int(schema->params[i].value, scale))
            return MR_OK;
        return mr_caused_by(
            err, mr_fail(err, MR_ERR_DATA, "Invalid scale parameter found in Decimal schema: "),
            "java.lang.NumberFormatException: For input string: \"%.100s\"",
            schema->params[i].value);
    }
    return mr_fail(err, MR_ERR_DATA, "Invalid Decimal schema: scale parameter not found.");
}

static int encode_decimal(const struct mr_schema *schema, struct mr_value v, struct mr_value *out,
                          struct mr_error *err)
{
    const struct mr_decimal *d = v.u.p;
    int32_t scale = 0;
    int rc = scale_of(schema, &scale, err);

    if (rc != MR_OK)
        return rc;
    if (d->scale != scale)
        return mr_fail(err, MR_ERR_DATA,
                       "Decimal value has mismatching scale for given Decimal schema. Schema has "
                       "scale %" PRId32 ", value has scale %" PRId32 ".",
                       scale, d->scale);
    *out = mr_bytes(d->bytes, d->len);
    return MR_OK;
}

static int encode_time_kind(const struct mr_schema *schema, struct mr_value v, struct mr_value *out,
                            struct mr_error *err)
{
    int64_t ms = temporal_text_ms(v);

    if (schema->logical == MR_KIND_TIMESTAMP) {
        *out = mr_long(ms);
    } else if (schema->logical == MR_KIND_DATE) {
        if (ms % CALENDAR_DAY_MS != 0)
            return mr_fail(err, MR_ERR_DATA,
                           "Kafka Connect Date type should not have any time fields set to "
                           "non-zero values.");
        *out = mr_int((int32_t)(uint32_t)(uint64_t)(ms / CALENDAR_DAY_MS));
    } else {
        if (ms < 0 || ms > CALENDAR_DAY_MS)
            return mr_fail(err, MR_ERR_DATA,
                           "Kafka Connect Time type should not have any date fields set to "
                           "non-zero values.");
        *out = mr_int((int32_t)ms);
    }
    return MR_OK;
}

int logical_encode(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                   struct mr_value *out, struct mr_error *err)
{
    (void)arena;
    if (schema->logical == MR_KIND_DECIMAL && v.kind == MR_KIND_DECIMAL)
        return encode_decimal(schema, v, out, err);
    if (schema->logical >= MR_KIND_DATE && v.kind >= MR_KIND_DATE)
        return encode_time_kind(schema, v, out, err);
    return no_conversion(schema, v, err);
}

static int decode_decimal(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                          struct mr_value *out, struct mr_error *err)
{
    const uint8_t *bytes = v.u.p;
    struct mr_decimal *d;
    uint32_t skip = 0;
    int32_t scale = 0;
    int rc;

    if (v.len == 0)
        return mr_fail(err, MR_ERR_DATA, "Zero length BigInteger");
    while (skip + 1 < v.len && bytes[skip] == ((bytes[skip + 1] & 0x80) != 0 ? 0xff : 0))
        skip++;
    if (v.len - skip > VALUES_MAX_DECIMAL)
        return mr_fail(err, MR_ERR_DATA, "a decimal value of %" PRIu32 " bytes is longer than %u",
                       v.len - skip, VALUES_MAX_DECIMAL);
    rc = scale_of(schema, &scale, err);
    if (rc != MR_OK)
        return rc;
    d = mr_alloc(arena, sizeof(*d) + v.len - skip);
    d->scale = scale;
    d->len = v.len - skip;
    memcpy(d->bytes, bytes + skip, d->len);
    *out = mr_ptr_of(MR_KIND_DECIMAL, d, 0);
    return MR_OK;
}

int logical_decode(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                   struct mr_value *out, struct mr_error *err)
{
    uint8_t to = schema->logical;

    if (to == MR_KIND_DECIMAL && v.kind == MR_KIND_BYTES)
        return decode_decimal(arena, schema, v, out, err);
    if (to == MR_KIND_TIMESTAMP ? v.kind != MR_KIND_INT64
                                : to < MR_KIND_DATE || v.kind != MR_KIND_INT32)
        return no_conversion(schema, v, err);
    if (to == MR_KIND_TIME && (v.u.i < 0 || v.u.i > CALENDAR_DAY_MS))
        return mr_fail(err, MR_ERR_DATA,
                       "Time values must use number of milliseconds greater than 0 and less than "
                       "86400000");
    *out = mr_int_of(to, v.u.i);
    return MR_OK;
}

/* --- headers ---------------------------------------------------------------------------------- */

/* The kind itself, or that of a logical type over the kind that it belongs to. */
static bool header_fits(const struct mr_schema *schema, uint8_t kind)
{
    if (kind == schema->kind)
        return true;
    switch (schema->kind) {
    case MR_KIND_BYTES:
        return kind == MR_KIND_DECIMAL && schema->logical == MR_KIND_DECIMAL;
    case MR_KIND_INT32:
        return kind >= MR_KIND_DATE &&
               (schema->logical == MR_KIND_DATE || schema->logical == MR_KIND_TIME);
    case MR_KIND_INT64:
        return kind >= MR_KIND_DATE && schema->logical == MR_KIND_TIMESTAMP;
    default:
        return false;
    }
}

int logical_header_check(struct mr_arena *arena, const struct mr_schema *schema, struct mr_value v,
                         struct mr_error *err)
{
    char wanted[VALUES_SCHEMA_TEXT], shown[404];
    const char *text;
    size_t len;

    if (schema == NULL || (v.kind == MR_KIND_NULL ? schema->optional : header_fits(schema, v.kind)))
        return MR_OK;
    values_schema_text(schema, wanted);
    if (v.kind == MR_KIND_NULL)
        return mr_fail(err, MR_ERR_DATA, "A null value requires an optional schema but was %s",
                       wanted);
    text = values_text(arena, v, &len);
    return mr_fail(err, MR_ERR_DATA, "The value %s is not compatible with the schema %s",
                   mr_quote(shown, sizeof(shown), text, len), wanted);
}
