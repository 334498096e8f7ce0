/* SPDX-License-Identifier: Apache-2.0 */
/* Java's toString of every kind of value: what StringConverter and FileStreamSink write, and what
 * JsonConverter asks for when it writes a fraction. Any thread; no state.
 *
 * Floating point: the fewest digits that read back as the same number, the nearest of them, laid
 * out as Double.toString does. (JDK 17 sometimes prints a digit more; JDK 19 and later print what
 * this does.)
 * Decimals: base 256 to base 10^18, quadratic in the length, hence VALUES_MAX_DECIMAL.
 * Dates: java.util.Date.toString in UTC, which counts in the Julian calendar before 15 October
 * 1582. */
#include "host/data/values.h"

#include "host/data/calendar.h"
#include "host/data/text_buf.h"

#include <inttypes.h>
#include <math.h>

/* --- floating point --------------------------------------------------------------------------- */

/* 0.d1d2…dn × 10^(exp + 1), d1 not 0. */
struct digits {
    char d[20];
    int count;
    int exp; /* of d1: the number is d1.d2…dn × 10^exp */
};

static void digits_trim(struct digits *out)
{
    while (out->count > 1 && out->d[out->count - 1] == '0')
        out->count--;
}

/* Take "d.ddde±x" apart. */
static void digits_scan(struct digits *out, const char *text)
{
    out->count = 0;
    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && out->count < (int)sizeof(out->d))
            out->d[out->count++] = *text;
    out->exp = *text == 'e' ? (int)strtol(text + 1, NULL, 10) : 0;
}

static bool reads_back(const char *text, double d, bool single)
{
    return single ? strtof(text, NULL) == (float)d : strtod(text, NULL) == d;
}

/* Below a power of two numbers lie twice as dense as above it, so the nearest text of n digits may
 * read back as the neighbour below while the next one up reads back right. Text is "d.ddde±x". */
static bool next_up_reads_back(char *text, double d, bool single)
{
    char *end = strchr(text, 'e');
    int exp;

    if (frexp(d, &exp) != 0.5 || end == NULL)
        return false;
    for (char *p = end - 1; p >= text; p--) {
        if (*p >= '0' && *p < '9') {
            (*p)++;
            return reads_back(text, d, single);
        }
        if (*p == '9')
            *p = '0';
    }
    return false;
}

static void digits_put(struct digits *out, uint64_t n)
{
    char text[20], *p = text + sizeof(text);

    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    out->count = (int)(text + sizeof(text) - p);
    memcpy(out->d, p, (size_t)out->count);
}

/* Numbers such as 12.34: an integer of at most 15 digits, divided by a small power of ten, is
 * rounded once only; so if that gives d, these are its digits. */
static bool digits_easy(struct digits *out, double d, bool single)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    double limit = single ? 1e6 : 1e15;

    if (d < 1e-3)
        return false;
    for (int k = 0; k < 7; k++) {
        double scaled = d * powers[k];
        double whole = rint(scaled);

        if (!(scaled < limit))
            return false;
        if (single ? (float)(whole / powers[k]) == (float)d : whole / powers[k] == d) {
            digits_put(out, (uint64_t)whole);
            out->exp = out->count - 1 - k;
            return whole > 0;
        }
    }
    return false;
}

/* Digits of a finite d > 0. Normal numbers need not be tried below the digits that every decimal
 * text survives; a single digit is never enough for Java. */
static void digits_of(struct digits *out, double d, bool single)
{
    double least = single ? 1.1754943508222875e-38 : 2.2250738585072014e-308;
    int from = d < least ? 2 : single ? 6 : 15;
    int to = single ? 9 : 17;
    char text[40];

    if (digits_easy(out, d, single)) {
        digits_trim(out);
        return;
    }
    for (int n = from; n <= to; n++) {
        snprintf(text, sizeof(text), "%.*e", n - 1, d);
        if (reads_back(text, d, single) || next_up_reads_back(text, d, single))
            break;
    }
    digits_scan(out, text);
    digits_trim(out);
}

static size_t put(char *out, size_t at, const char *p, int len)
{
    memcpy(out + at, p, (size_t)len);
    return at + (size_t)len;
}

static size_t put_zeros(char *out, size_t at, int count)
{
    while (count-- > 0)
        out[at++] = '0';
    return at;
}

/* Java's layout: plain from 10^-3 up to below 10^7, else d.dddEx; always at least one digit after
 * the point. */
static size_t digits_layout(char *out, size_t at, const struct digits *g)
{
    int whole = g->exp + 1; /* digits before the point, in plain layout */

    if (g->exp < -3 || g->exp >= 7) {
        at = put(out, at, g->d, 1);
        out[at++] = '.';
        at = g->count > 1 ? put(out, at, g->d + 1, g->count - 1) : put_zeros(out, at, 1);
        return at + (size_t)snprintf(out + at, 32 - at, "E%d", g->exp);
    }
    if (whole <= 0) {
        at = put(out, at, "0.", 2);
        at = put_zeros(out, at, -whole);
        return put(out, at, g->d, g->count);
    }
    at = put(out, at, g->d, g->count < whole ? g->count : whole);
    at = put_zeros(out, at, whole - g->count);
    out[at++] = '.';
    return g->count > whole ? put(out, at, g->d + whole, g->count - whole) : put_zeros(out, at, 1);
}

static size_t floating_text(double d, bool single, char out[32])
{
    struct digits digits;
    size_t at = 0;

    if (d != d)
        return put(out, 0, "NaN", 3);
    if (signbit(d))
        out[at++] = '-';
    d = fabs(d);
    if (isinf(d))
        return put(out, at, "Infinity", 8);
    if (d == 0)
        return put(out, at, "0.0", 3);
    digits_of(&digits, d, single);
    return digits_layout(out, at, &digits);
}

size_t values_double_text(double d, char out[32])
{
    return floating_text(d, false, out);
}

size_t values_float_text(float f, char out[32])
{
    return floating_text((double)f, true, out);
}

/* --- decimals --------------------------------------------------------------------------------- */

#define LIMB UINT64_C(1000000000000000000) /* 10^18 */
#define MAX_WORDS (VALUES_MAX_DECIMAL / 8 + 1)

/* The magnitude of big-endian two's complement as words, lowest first; gives how many. */
static size_t magnitude(const struct mr_decimal *d, uint64_t *words)
{
    bool negative = (d->bytes[0] & 0x80) != 0;
    size_t count = (d->len + 7) / 8;
    unsigned carry = negative ? 1 : 0;

    memset(words, 0, count * sizeof(*words));
    for (size_t i = 0; i < d->len; i++) {
        unsigned byte = d->bytes[d->len - 1 - i];

        if (negative) {
            byte = (~byte & 0xff) + carry;
            carry = byte >> 8;
        }
        words[i / 8] |= (uint64_t)(byte & 0xff) << (8 * (i % 8));
    }
    while (count > 0 && words[count - 1] == 0)
        count--;
    return count;
}

__extension__ typedef unsigned __int128 wide;

/* Divide words by 10^18 in place; gives the remainder. */
static uint64_t divide(uint64_t *words, size_t *count)
{
    wide rest = 0;

    for (size_t i = *count; i > 0; i--) {
        wide now = rest << 64 | words[i - 1];

        words[i - 1] = (uint64_t)(now / LIMB);
        rest = now % LIMB;
    }
    while (*count > 0 && words[*count - 1] == 0)
        (*count)--;
    return (uint64_t)rest;
}

/* Decimal digits of the magnitude, without leading zeros ("0" for none), written to the end of
 * room. */
static char *unscaled_digits(uint64_t *words, size_t count, char *end)
{
    char *p = end;

    do {
        uint64_t limb = divide(words, &count);

        for (int i = 0; i < 18 && (count > 0 || limb > 0 || p == end); i++, limb /= 10)
            *--p = (char)('0' + limb % 10);
    } while (count > 0);
    return p;
}

/* BigDecimal.toString of n digits with a scale. */
static void decimal_layout(struct text_buf *t, bool negative, const char *digits, size_t n,
                           int32_t scale)
{
    int64_t exp = (int64_t)n - 1 - scale;
    char tail[24];

    if (negative)
        text_buf_add(t, "-", 1);
    if (scale == 0) {
        text_buf_add(t, digits, n);
    } else if (scale > 0 && exp >= -6) {
        int64_t whole = (int64_t)n - scale;

        if (whole > 0) {
            text_buf_add(t, digits, (size_t)whole);
            text_buf_add(t, ".", 1);
            text_buf_add(t, digits + whole, n - (size_t)whole);
        } else {
            text_buf_add(t, "0.", 2);
            text_buf_add(t, "000000", (size_t)-whole);
            text_buf_add(t, digits, n);
        }
    } else {
        text_buf_add(t, digits, 1);
        if (n > 1) {
            text_buf_add(t, ".", 1);
            text_buf_add(t, digits + 1, n - 1);
        }
        snprintf(tail, sizeof(tail), "E%+" PRId64, exp);
        text_buf_puts(t, exp == 0 ? "" : tail);
    }
}

static void add_decimal(struct text_buf *t, const struct mr_decimal *d)
{
    uint64_t small[8], *words = small;
    size_t room = ((size_t)d->len * 5) / 2 + 20; /* a byte is 2.41 digits */
    char few[192], *digits = few, *first;

    if (d->len > VALUES_MAX_DECIMAL) {
        text_buf_puts(t, "<decimal too long>");
        return;
    }
    if (d->len > sizeof(small))
        words = mr_alloc(t->arena, (d->len + 7) / 8 * sizeof(*words));
    if (room > sizeof(few))
        digits = mr_alloc(t->arena, room);
    else
        room = sizeof(few);
    first = unscaled_digits(words, magnitude(d, words), digits + room);
    decimal_layout(t, (d->bytes[0] & 0x80) != 0, first, (size_t)(digits + room - first), d->scale);
}

/* --- dates ------------------------------------------------------------------------------------ */

static void add_date(struct text_buf *t, int64_t ms)
{
    static const char week[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t days = calendar_floor_div(ms, CALENDAR_DAY_MS);
    int64_t of_day = ms % 86400000; /* not by way of days: their product may not fit */
    int64_t seconds = (of_day < 0 ? of_day + 86400000 : of_day) / 1000;
    int64_t weekday = ((days % 7) + 7) % 7;
    struct calendar c;
    char out[64];

    calendar_from_days(&c, days);
    if (c.year <= 0)
        c.year = 1 - c.year; /* Java leaves the era away */
    snprintf(out, sizeof(out), "%.3s %.3s %02d %02d:%02d:%02d UTC %" PRId64, week + 3 * weekday,
             months + 3 * (size_t)c.month, c.day, (int)(seconds / 3600), (int)(seconds / 60 % 60),
             (int)(seconds % 60), c.year);
    text_buf_puts(t, out);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void add_base64(struct text_buf *t, const unsigned char *p, size_t len)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = text_buf_room(t, (len + 2) / 3 * 4);

    t->len += (len + 2) / 3 * 4;
    for (; len > 0; p += 3, out += 4) {
        unsigned bits =
            (unsigned)p[0] << 16 | (len > 1 ? (unsigned)p[1] << 8 : 0) | (len > 2 ? p[2] : 0u);

        out[0] = abc[bits >> 18];
        out[1] = abc[bits >> 12 & 63];
        out[2] = len > 1 ? abc[bits >> 6 & 63] : '=';
        out[3] = len > 2 ? abc[bits & 63] : '=';
        len -= len > 3 ? 3 : len;
    }
}

static void add_value(struct text_buf *t, struct mr_value v, int depth);

static void add_list(struct text_buf *t, struct mr_value v, int depth)
{
    text_buf_add(t, "[", 1);
    for (uint32_t i = 0; i < v.len; i++) {
        if (i > 0)
            text_buf_add(t, ", ", 2);
        add_value(t, mr_items(v)[i], depth + 1);
    }
    text_buf_add(t, "]", 1);
}

static void add_map(struct text_buf *t, struct mr_value v, int depth)
{
    text_buf_add(t, "{", 1);
    for (uint32_t i = 0; i < v.len; i++) {
        if (i > 0)
            text_buf_add(t, ", ", 2);
        add_value(t, mr_pairs(v)[i].key, depth + 1);
        text_buf_add(t, "=", 1);
        add_value(t, mr_pairs(v)[i].value, depth + 1);
    }
    text_buf_add(t, "}", 1);
}

static void add_struct(struct text_buf *t, struct mr_value v, int depth)
{
    const struct mr_struct *s = v.u.p;
    bool first = true;

    text_buf_add(t, "Struct{", 7);
    for (uint32_t i = 0; i < v.len; i++) {
        if (s->slots[i].kind == MR_KIND_NULL)
            continue;
        if (!first)
            text_buf_add(t, ",", 1);
        first = false;
        text_buf_puts(t, s->schema->fields[i].name);
        text_buf_add(t, "=", 1);
        add_value(t, s->slots[i], depth + 1);
    }
    text_buf_add(t, "}", 1);
}

static void add_integer(struct text_buf *t, int64_t i)
{
    uint64_t rest = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    char text[20], *p = text + sizeof(text); /* the lowest has 19 digits and a sign */

    do
        *--p = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (i < 0)
        *--p = '-';
    text_buf_add(t, p, (size_t)(text + sizeof(text) - p));
}

static void add_scalar(struct text_buf *t, struct mr_value v)
{
    char out[32];

    switch (v.kind) {
    case MR_KIND_NULL:
        text_buf_puts(t, "null");
        break;
    case MR_KIND_BOOL:
        text_buf_puts(t, v.u.i != 0 ? "true" : "false");
        break;
    case MR_KIND_FLOAT32:
        text_buf_add(t, out, values_float_text(v.u.f, out));
        break;
    case MR_KIND_FLOAT64:
        text_buf_add(t, out, values_double_text(v.u.d, out));
        break;
    default:
        add_integer(t, v.u.i);
        break;
    }
}

static void add_value(struct text_buf *t, struct mr_value v, int depth)
{
    if (depth > VALUES_MAX_DEPTH) {
        text_buf_puts(t, "...");
        return;
    }
    switch (v.kind) {
    case MR_KIND_STRING:
        text_buf_add(t, v.u.p, v.len);
        break;
    case MR_KIND_BYTES:
        add_base64(t, v.u.p, v.len);
        break;
    case MR_KIND_LIST:
        add_list(t, v, depth);
        break;
    case MR_KIND_MAP:
        add_map(t, v, depth);
        break;
    case MR_KIND_STRUCT:
        add_struct(t, v, depth);
        break;
    case MR_KIND_DECIMAL:
        add_decimal(t, v.u.p);
        break;
    case MR_KIND_DATE:
        add_date(t, (int64_t)((uint64_t)v.u.i * 86400000));
        break;
    case MR_KIND_TIME:
    case MR_KIND_TIMESTAMP:
        add_date(t, v.u.i);
        break;
    default:
        add_scalar(t, v);
        break;
    }
}

const char *values_text(struct mr_arena *arena, struct mr_value v, size_t *len)
{
    struct text_buf t = {.arena = arena, .cap = 0};

    if (v.kind == MR_KIND_STRING) {
        *len = v.len;
        return v.u.p != NULL ? v.u.p : "";
    }
    text_buf_room(&t, 32);
    add_value(&t, v, 0);
    *len = t.len;
    text_buf_add(&t, "", 1);
    return t.p;
}
