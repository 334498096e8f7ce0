/* SPDX-License-Identifier: Apache-2.0 */
/* A value as one of another kind, by Connect's generous rules. Plugins and transforms ask through
 * the host's table, and the parser when it gives the members of a container one schema; on the
 * task's thread.
 *
 * Spec: org.apache.kafka.connect.data.Values.convertToBoolean to convertToTimestamp. Integers are
 * cut down to their low bits, text is read as a number or by the parser, kinds of time are
 * converted by the name of the schema they came with. Where Java fails by accident (a
 * NullPointerException, a bare NumberFormatException) this gives MR_ERR_DATA with a text of its
 * own. */
#include "host/data/values.h"

#include "host/data/calendar.h"
#include "host/data/decimal_text.h"
#include "host/data/logical.h"
#include "host/data/schema_tree.h"
#include "host/data/temporal_text.h"

#include <math.h>

struct conversion {
    struct mr_arena *arena;
    const struct mr_schema *to;
    const struct mr_schema *from; /* may be NULL */
    struct mr_error *err;
};

/* --- failing ---------------------------------------------------------------------------------- */

static int fail_to(const struct conversion *c, struct mr_value v, const char *what)
{
    char shown[404];
    size_t len;
    const char *text = values_text(c->arena, v, &len);

    return mr_fail(c->err, MR_ERR_DATA, "Unable to convert %s (class %s) to %s",
                   mr_quote(shown, sizeof(shown), text, len), mr_java_class(v), what);
}

/* Connect names the schema that it wants, or the one that the value has. */
static int fail_schema(const struct conversion *c, const struct mr_schema *schema,
                       struct mr_value v)
{
    char text[VALUES_SCHEMA_TEXT];

    return fail_to(c, v, values_schema_text(schema, text));
}

static int fail_null(const struct conversion *c)
{
    return mr_fail(c->err, MR_ERR_DATA,
                   "Unable to convert a null value to a schema that requires a value");
}

static int fail_null_text(const struct conversion *c)
{
    return mr_fail(c->err, MR_ERR_DATA, "Unable to convert the text null to a value of type %s",
                   mr_java_type(c->to->kind));
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* Java's cast of a double to a long. */
static int64_t long_of_double(double d)
{
    if (d != d)
        return 0;
    return d >= 9223372036854775808.0    ? INT64_MAX
           : d <= -9223372036854775808.0 ? INT64_MIN
                                         : (int64_t)d;
}

static bool is_number(struct mr_value v)
{
    return (v.kind >= MR_KIND_INT8 && v.kind <= MR_KIND_FLOAT64) || v.kind == MR_KIND_DECIMAL;
}

static int64_t number_long(const struct conversion *c, struct mr_value v)
{
    if (v.kind == MR_KIND_FLOAT64)
        return long_of_double(v.u.d);
    if (v.kind == MR_KIND_FLOAT32)
        return long_of_double((double)v.u.f);
    return v.kind == MR_KIND_DECIMAL ? decimal_text_value_long(c->arena, v) : v.u.i;
}

static double number_double(const struct conversion *c, struct mr_value v)
{
    double d;

    if (mr_as_double(v, &d))
        return d;
    return v.kind == MR_KIND_DECIMAL ? decimal_text_value_double(c->arena, v) : (double)v.u.i;
}

static bool read_text(const struct conversion *c, struct mr_value v, struct decimal_text *d)
{
    return v.kind == MR_KIND_STRING && decimal_text_read(c->arena, v.u.p, v.len, d) &&
           d->count < DECIMAL_TEXT_MAX;
}

static int as_long(const struct conversion *c, struct mr_value v, int64_t *out)
{
    struct decimal_text d;
    struct mr_value encoded;
    int rc;

    if (is_number(v)) {
        *out = number_long(c, v);
        return MR_OK;
    }
    if (read_text(c, v, &d)) {
        *out = decimal_text_long(&d);
        return MR_OK;
    }
    if (c->from == NULL)
        return fail_to(c, v, "a number");
    if (v.kind < MR_KIND_DATE || c->from->logical < MR_KIND_DATE)
        return fail_schema(c, c->from, v);
    rc = logical_encode(c->arena, c->from, v, &encoded, c->err);
    if (rc == MR_OK)
        *out = encoded.u.i;
    return rc;
}

static int as_double(const struct conversion *c, struct mr_value v, double *out)
{
    struct decimal_text d;
    int64_t n = 0;
    int rc;

    if (is_number(v)) {
        *out = number_double(c, v);
        return MR_OK;
    }
    if (read_text(c, v, &d)) {
        *out = decimal_text_double(c->arena, &d);
        return MR_OK;
    }
    rc = as_long(c, v, &n);
    if (rc == MR_OK)
        *out = (double)n;
    return rc;
}

static int64_t narrow(uint8_t kind, int64_t n)
{
    return kind == MR_KIND_INT8    ? (int8_t)n
           : kind == MR_KIND_INT16 ? (int16_t)n
           : kind == MR_KIND_INT32 ? (int32_t)n
                                   : n;
}

static int to_integer(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    int64_t n = 0;
    int rc = as_long(c, v, &n);

    if (rc == MR_OK)
        *out = mr_int_of(c->to->kind, narrow(c->to->kind, n));
    return rc;
}

static int to_floating(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    double d = 0;
    int rc = as_double(c, v, &d);

    if (rc == MR_OK)
        *out = c->to->kind == MR_KIND_FLOAT32 ? mr_float((float)d) : mr_double(d);
    return rc;
}

/* --- text that is parsed first ---------------------------------------------------------------- */

/* A STRING becomes what it says; others stay. */
static int parsed(const struct conversion *c, struct mr_value *v)
{
    int rc;

    if (v->kind != MR_KIND_STRING)
        return MR_OK;
    rc = values_parse(c->arena, v->u.p, v->len, NULL, v, c->err);
    return rc == MR_OK && mr_is_null(*v) ? fail_null_text(c) : rc;
}

static int to_bool(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    struct mr_value said = v;
    int64_t n = 0;
    int rc = parsed(c, &said);

    if (rc == MR_OK && said.kind == MR_KIND_BOOL) {
        *out = said;
        return MR_OK;
    }
    if (rc == MR_OK)
        rc = as_long(c, v, &n);
    if (rc == MR_OK)
        *out = mr_bool(n != 0);
    return rc;
}

static int to_container(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    int rc = c->to->kind == MR_KIND_STRUCT ? MR_OK : parsed(c, &v);

    if (rc == MR_OK && v.kind != c->to->kind) {
        /* Java names a schema that only picks the type, and has no name */
        struct mr_schema plain = {.kind = c->to->kind};

        return fail_schema(c, &plain, v);
    }
    if (rc == MR_OK)
        *out = v;
    return rc;
}

/* --- bytes and decimals ----------------------------------------------------------------------- */

static int to_string(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    size_t len;
    const char *text = values_string(c->arena, v, &len);

    *out = mr_text(text, len);
    return MR_OK;
}

static int to_bytes(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    (void)out;
    if (v.kind == MR_KIND_DECIMAL)
        return mr_fail(c->err, MR_ERR_DATA, "Invalid Decimal schema: scale parameter not found.");
    return fail_schema(c, c->to, v);
}

/* Numbers by way of a double's text: 5 becomes 5.0. */
static int to_decimal(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    struct decimal_text d;
    char text[32];
    bool good;

    if (v.kind == MR_KIND_BYTES)
        return logical_decode(c->arena, c->to, v, out, c->err);
    if (is_number(v))
        good = decimal_text_read(c->arena, text, values_double_text(number_double(c, v), text), &d);
    else if (v.kind == MR_KIND_STRING)
        good = read_text(c, v, &d);
    else
        return fail_schema(c, c->to, v);
    if (!good)
        return fail_to(c, v, "a decimal: it is no number");
    *out = decimal_text_value(c->arena, &d);
    return MR_OK;
}

/* --- kinds of time ---------------------------------------------------------------------------- */

/* The time of day, on 1 January 1970; of a moment before our era, of that year BC. */
static int64_t time_of_day(int64_t ms)
{
    int64_t days = calendar_floor_div(ms, CALENDAR_DAY_MS);
    const struct calendar_fields bc = {.year = 1 - 1970, .day = 1};
    struct calendar c;

    calendar_from_days(&c, days);
    ms -= days * CALENDAR_DAY_MS;
    return c.year > 0 ? ms : (int32_t)(uint32_t)(uint64_t)(ms + calendar_ms(&bc));
}

/* What a moment is in the wanted kind, by the kind of schema it came with; false where there's no
 * way but by its number. */
static bool moment_of(const struct conversion *c, int64_t *ms)
{
    uint8_t from = c->from->logical, to = c->to->logical;

    if (from == to)
        return true;
    if (from == MR_KIND_TIMESTAMP && to == MR_KIND_DATE)
        *ms = (int32_t)(uint32_t)(uint64_t)(*ms / CALENDAR_DAY_MS) * CALENDAR_DAY_MS;
    else if (from == MR_KIND_TIMESTAMP && to == MR_KIND_TIME)
        *ms = time_of_day(*ms);
    else
        return to == MR_KIND_TIMESTAMP && from >= MR_KIND_DATE;
    return true;
}

static int check_moment(const struct conversion *c, struct mr_value v, int64_t ms)
{
    struct mr_value ignored;

    if (c->from->logical == c->to->logical)
        return MR_OK;
    if (c->to->logical == MR_KIND_TIME)
        return logical_decode(c->arena, c->to, mr_int((int32_t)ms), &ignored, c->err);
    return c->to->logical == MR_KIND_TIMESTAMP
               ? logical_encode(c->arena, c->from, v, &ignored, c->err)
               : MR_OK;
}

static int to_time_kind(const struct conversion *c, struct mr_value v, struct mr_value *out)
{
    int64_t n = 0, ms;
    int rc = parsed(c, &v);

    if (rc != MR_OK)
        return rc;
    ms = v.kind >= MR_KIND_DATE ? temporal_text_ms(v) : 0;
    if (v.kind >= MR_KIND_DATE && (c->from == NULL || moment_of(c, &ms))) {
        rc = c->from == NULL ? MR_OK : check_moment(c, v, ms);
        if (rc == MR_OK)
            *out = temporal_text_value(c->to->logical, ms);
        return rc;
    }
    rc = as_long(c, v, &n);
    if (rc != MR_OK)
        return rc;
    return logical_decode(c->arena, c->to,
                          c->to->logical == MR_KIND_TIMESTAMP ? mr_long(n) : mr_int((int32_t)n),
                          out, c->err);
}

/* --- the whole -------------------------------------------------------------------------------- */

typedef int (*convert_fn)(const struct conversion *c, struct mr_value v, struct mr_value *out);

static const convert_fn functions[] = {
    [MR_KIND_BOOL] = to_bool,        [MR_KIND_INT8] = to_integer,
    [MR_KIND_INT16] = to_integer,    [MR_KIND_INT32] = to_integer,
    [MR_KIND_INT64] = to_integer,    [MR_KIND_FLOAT32] = to_floating,
    [MR_KIND_FLOAT64] = to_floating, [MR_KIND_STRING] = to_string,
    [MR_KIND_BYTES] = to_bytes,      [MR_KIND_LIST] = to_container,
    [MR_KIND_MAP] = to_container,    [MR_KIND_STRUCT] = to_container,
    [MR_KIND_DECIMAL] = to_decimal,  [MR_KIND_DATE] = to_time_kind,
    [MR_KIND_TIME] = to_time_kind,   [MR_KIND_TIMESTAMP] = to_time_kind,
};

static int convert_null(const struct conversion *c, struct mr_value *out)
{
    if (!c->to->optional && c->to->logical > MR_KIND_STRING)
        return fail_null(c);
    *out = mr_null();
    return MR_OK;
}

int values_convert(struct mr_arena *arena, const struct mr_schema *to, const struct mr_schema *from,
                   struct mr_value v, struct mr_value *out, struct mr_error *err)
{
    const struct conversion c = {.arena = arena, .to = to, .from = from, .err = err};

    if (v.kind == MR_KIND_NULL)
        return convert_null(&c, out);
    if (v.kind == to->logical && to->logical < MR_KIND_DATE) {
        *out = v;
        return MR_OK;
    }
    return functions[to->logical](&c, v, out);
}
