/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Everything is text: PostgreSQL's own input functions judge it, and name what does
 * not fit. The task's thread; pure. */
#include "pg_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100 /* of values in values */
#define DAY_MS ((int64_t)86400000)

/* --- the buffer ------------------------------------------------------------------------------- */

void pg_text_deinit(struct pg_text *t)
{
    free(t->p);
    *t = (struct pg_text){0};
}

void pg_text_clear(struct pg_text *t)
{
    t->len = 0;
    t->over = false;
    if (t->p != NULL)
        t->p[0] = '\0';
}

static bool make_room(struct pg_text *t, size_t more)
{
    size_t cap = t->cap == 0 ? 256 : t->cap;
    char *p;

    if (more > PG_TEXT_MAX || t->len + more + 1 > PG_TEXT_MAX)
        t->over = true;
    if (t->over || t->len + more + 1 <= t->cap)
        return !t->over;
    while (cap < t->len + more + 1)
        cap *= 2;
    p = realloc(t->p, cap);
    t->over = p == NULL;
    if (p == NULL)
        return false;
    t->p = p;
    t->cap = cap;
    return true;
}

void pg_text_add(struct pg_text *t, const char *p, size_t len)
{
    if (!make_room(t, len))
        return;
    if (len > 0)
        memcpy(t->p + t->len, p, len);
    t->len += len;
    t->p[t->len] = '\0';
}

void pg_text_put(struct pg_text *t, const char *z)
{
    pg_text_add(t, z, strlen(z));
}

static void put_char(struct pg_text *t, char c)
{
    pg_text_add(t, &c, 1);
}

void pg_text_printf(struct pg_text *t, const char *fmt, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        t->over = true;
    else
        pg_text_add(t, text, (size_t)len);
}

/* --- SQL -------------------------------------------------------------------------------------- */

static void put_quoted(struct pg_text *t, char mark, const char *p, size_t len)
{
    put_char(t, mark);
    for (size_t i = 0; i < len; i++) {
        if (p[i] == mark)
            put_char(t, mark);
        put_char(t, p[i]);
    }
    put_char(t, mark);
}

void pg_text_name(struct pg_text *t, const char *name)
{
    put_quoted(t, '"', name, strlen(name));
}

/* standard_conforming_strings is on (pg_conn.c): a backslash is one. */
void pg_text_literal(struct pg_text *t, const char *text, size_t len)
{
    put_quoted(t, '\'', text, len);
}

void pg_text_copy_cell(struct pg_text *t, const char *text, size_t len)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c != '\\' && c != '\t' && c != '\n' && c != '\r')
            continue;
        pg_text_add(t, text + from, i - from);
        put_char(t, '\\');
        put_char(t, c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c);
        from = i + 1;
    }
    pg_text_add(t, text + from, len - from);
}

/* --- scalars ---------------------------------------------------------------------------------- */

static void put_double(struct pg_text *t, double d, int digits)
{
    if (isnan(d))
        pg_text_put(t, "NaN");
    else if (isinf(d))
        pg_text_put(t, d > 0 ? "Infinity" : "-Infinity");
    else
        pg_text_printf(t, "%.*g", digits, d);
}

/* Days since 1970 as a date of the Gregorian calendar, before it was, too. Gives whether it lies
 * before the year 1, which is written behind. */
static bool put_date(struct pg_text *t, int64_t days)
{
    int64_t z = days + 719468; /* since 0000-03-01, where years of this count begin */
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day = z - era * 146097;
    int64_t of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    int64_t month = (5 * of_year + 2) / 153;
    int64_t year = of_era + era * 400 + (month >= 10);

    pg_text_printf(t, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year > 0 ? year : 1 - year,
                   month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1);
    return year <= 0;
}

static void put_time(struct pg_text *t, int64_t ms)
{
    pg_text_printf(t, "%02" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms / 3600000,
                   ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

static void put_timestamp(struct pg_text *t, int64_t ms)
{
    int64_t days = ms / DAY_MS - (ms % DAY_MS < 0);
    bool before_christ = put_date(t, days);

    put_char(t, ' ');
    put_time(t, ms - days * DAY_MS);
    if (before_christ)
        pg_text_put(t, " BC");
}

static void put_hex(struct pg_text *t, struct mr_value v)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = (const unsigned char *)v.u.p;

    pg_text_put(t, "\\x");
    for (uint32_t i = 0; i < v.len; i++) {
        put_char(t, digits[bytes[i] >> 4]);
        put_char(t, digits[bytes[i] & 15]);
    }
}

static int put_string(struct pg_text *t, struct mr_value v, struct mr_error *err)
{
    if (v.len > 0 && memchr(v.u.p, '\0', v.len) != NULL)
        return mr_fail(err, MR_ERR_DATA,
                       "it holds a NUL character, which PostgreSQL has in no text");
    pg_text_add(t, (const char *)v.u.p, v.len);
    return MR_OK;
}

/* false: it is none. */
static bool put_scalar(struct pg_text *t, struct mr_arena *arena, struct mr_value v)
{
    const char *text;
    size_t len;

    switch (v.kind) {
    case MR_KIND_BOOL:
        pg_text_put(t, v.u.i != 0 ? "true" : "false");
        return true;
    case MR_KIND_INT8:
    case MR_KIND_INT16:
    case MR_KIND_INT32:
    case MR_KIND_INT64:
        pg_text_printf(t, "%" PRId64, v.u.i);
        return true;
    case MR_KIND_FLOAT32:
        put_double(t, (double)v.u.f, 9);
        return true;
    case MR_KIND_FLOAT64:
        put_double(t, v.u.d, 17);
        return true;
    case MR_KIND_DECIMAL:
        text = mr_to_text(arena, v, &len);
        pg_text_add(t, text, len);
        return true;
    case MR_KIND_DATE:
        if (put_date(t, v.u.i))
            pg_text_put(t, " BC");
        return true;
    case MR_KIND_TIME:
        put_time(t, v.u.i);
        return true;
    case MR_KIND_TIMESTAMP:
        put_timestamp(t, v.u.i);
        return true;
    default:
        return false;
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_json_string(struct pg_text *t, const char *p, size_t len)
{
    put_char(t, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c == '"' || c == '\\')
            put_char(t, '\\');
        if (c < ' ')
            pg_text_printf(t, "\\u%04x", c);
        else
            put_char(t, p[i]);
    }
    put_char(t, '"');
}

static int put_json(struct pg_text *t, struct mr_arena *arena, struct mr_value v, int depth,
                    struct mr_error *err);

/* Of what is no string and no number of JSON's: its text as a string. */
static int put_json_text(struct pg_text *t, struct mr_arena *arena, struct mr_value v,
                         struct mr_error *err)
{
    struct pg_text text = {0};
    int rc = pg_text_value(&text, arena, NULL, v, err);

    if (rc == MR_OK)
        put_json_string(t, text.len == 0 ? "" : text.p, text.len);
    t->over = t->over || text.over;
    pg_text_deinit(&text);
    return rc;
}

static int put_json_member(struct pg_text *t, struct mr_arena *arena, struct mr_value name,
                           struct mr_value v, int depth, struct mr_error *err)
{
    size_t len;
    const char *text = mr_to_text(arena, name, &len);

    put_json_string(t, text, len);
    put_char(t, ':');
    return put_json(t, arena, v, depth + 1, err);
}

static int put_json_object(struct pg_text *t, struct mr_arena *arena, struct mr_value v, int depth,
                           struct mr_error *err)
{
    int rc = MR_OK;

    put_char(t, '{');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        if (i > 0)
            put_char(t, ',');
        if (v.kind == MR_KIND_MAP) {
            const struct mr_pair *pair = (const struct mr_pair *)v.u.p + i;

            rc = put_json_member(t, arena, pair->key, pair->value, depth, err);
        } else {
            const struct mr_struct *s = (const struct mr_struct *)v.u.p;

            rc = put_json_member(t, arena, mr_str(s->schema->fields[i].name), mr_slot(v, i), depth,
                                 err);
        }
    }
    put_char(t, '}');
    return rc;
}

static int put_json_list(struct pg_text *t, struct mr_arena *arena, struct mr_value v, int depth,
                         struct mr_error *err)
{
    int rc = MR_OK;

    put_char(t, '[');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        if (i > 0)
            put_char(t, ',');
        rc = put_json(t, arena, mr_item(v, i), depth + 1, err);
    }
    put_char(t, ']');
    return rc;
}

static bool is_json_number(struct mr_value v)
{
    return (v.kind >= MR_KIND_INT8 && v.kind <= MR_KIND_INT64) || v.kind == MR_KIND_DECIMAL ||
           (v.kind == MR_KIND_FLOAT64 && isfinite(v.u.d)) ||
           (v.kind == MR_KIND_FLOAT32 && isfinite(v.u.f));
}

static int put_json(struct pg_text *t, struct mr_arena *arena, struct mr_value v, int depth,
                    struct mr_error *err)
{
    if (depth > DEPTH_MAX)
        return mr_fail(err, MR_ERR_DATA, "it is nested deeper than %d levels", DEPTH_MAX);
    if (v.kind == MR_KIND_NULL) {
        pg_text_put(t, "null");
        return MR_OK;
    }
    if (v.kind == MR_KIND_LIST)
        return put_json_list(t, arena, v, depth, err);
    if (v.kind == MR_KIND_MAP || v.kind == MR_KIND_STRUCT)
        return put_json_object(t, arena, v, depth, err);
    if ((v.kind == MR_KIND_BOOL || is_json_number(v)) && put_scalar(t, arena, v))
        return MR_OK;
    return put_json_text(t, arena, v, err);
}

/* --- arrays and types ------------------------------------------------------------------------- */

static const struct {
    uint8_t kind;
    const char *type;
    const char *array;
} types[] = {
    {MR_KIND_BOOL, "boolean", "boolean[]"},
    {MR_KIND_INT8, "smallint", "smallint[]"},
    {MR_KIND_INT16, "smallint", "smallint[]"},
    {MR_KIND_INT32, "integer", "integer[]"},
    {MR_KIND_INT64, "bigint", "bigint[]"},
    {MR_KIND_FLOAT32, "real", "real[]"},
    {MR_KIND_FLOAT64, "double precision", "double precision[]"},
    {MR_KIND_STRING, "text", "text[]"},
    {MR_KIND_BYTES, "bytea", "bytea[]"},
    {MR_KIND_DECIMAL, "numeric", "numeric[]"},
    {MR_KIND_DATE, "date", "date[]"},
    {MR_KIND_TIME, "time", "time[]"},
    {MR_KIND_TIMESTAMP, "timestamp", "timestamp[]"},
};

static const char *type_of(const struct mr_schema *schema, bool array)
{
    for (size_t i = 0; schema != NULL && i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].kind == schema->logical)
            return array ? types[i].array : types[i].type;
    return NULL;
}

/* An array of PostgreSQL's, or JSON? */
static bool is_array(const struct mr_schema *schema)
{
    return schema != NULL && schema->kind == MR_KIND_LIST && type_of(schema->value, true) != NULL;
}

const char *pg_text_type(const struct mr_schema *schema)
{
    const char *type = is_array(schema) ? type_of(schema->value, true) : type_of(schema, false);

    return type != NULL ? type : "jsonb";
}

static int put_array_item(struct pg_text *t, struct mr_arena *arena, struct mr_value v,
                          struct mr_error *err)
{
    struct pg_text text = {0};
    int rc;

    if (mr_is_null(v)) {
        pg_text_put(t, "NULL");
        return MR_OK;
    }
    rc = pg_text_value(&text, arena, NULL, v, err);
    put_char(t, '"');
    for (size_t i = 0; rc == MR_OK && i < text.len; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            put_char(t, '\\');
        put_char(t, text.p[i]);
    }
    put_char(t, '"');
    t->over = t->over || text.over;
    pg_text_deinit(&text);
    return rc;
}

static int put_array(struct pg_text *t, struct mr_arena *arena, struct mr_value v,
                     struct mr_error *err)
{
    int rc = MR_OK;

    put_char(t, '{');
    for (uint32_t i = 0; i < v.len && rc == MR_OK; i++) {
        if (i > 0)
            put_char(t, ',');
        rc = put_array_item(t, arena, mr_item(v, i), err);
    }
    put_char(t, '}');
    return rc;
}

int pg_text_value(struct pg_text *t, struct mr_arena *arena, const struct mr_schema *schema,
                  struct mr_value v, struct mr_error *err)
{
    int rc = MR_OK;

    if (v.kind == MR_KIND_STRING)
        rc = put_string(t, v, err);
    else if (v.kind == MR_KIND_BYTES)
        put_hex(t, v);
    else if (v.kind == MR_KIND_LIST && is_array(schema))
        rc = put_array(t, arena, v, err);
    else if (!put_scalar(t, arena, v))
        rc = put_json(t, arena, v, 0, err);
    if (rc == MR_OK && t->over)
        rc = mr_fail(err, MR_ERR_DATA, "it is larger than %zu bytes as text", PG_TEXT_MAX);
    return rc;
}
