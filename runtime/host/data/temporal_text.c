/* SPDX-License-Identifier: Apache-2.0 */
/* Temporal literals of header values, in both directions. Called by values_parse for whatever
 * begins with a digit or stands in quotes, so what is too long to be one is given up after 25
 * characters; any thread.
 *
 * Reading follows SimpleDateFormat: fields are numbers as DecimalFormat reads them (a sign, any
 * script's digits, an exponent), blanks may stand before each, literals must match, what follows
 * the pattern is ignored. */
#include "host/data/temporal_text.h"

#include "host/data/calendar.h"
#include "host/data/java_digit.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- numbers as DecimalFormat reads them ------------------------------------------------------ */

struct reader {
    const char *at;
    const char *end;
};

static bool skip(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

/* At least one digit; as ASCII into out, leading zeros left away. */
static bool read_digits(struct reader *r, char out[TEMPORAL_TEXT_UNITS + 1], int *count)
{
    const char *first = r->at;

    *count = 0;
    while (r->at < r->end) {
        size_t len;
        int digit = java_digit_at(r->at, r->end, &len);

        if (digit < 0)
            break;
        if (*count > 0 || digit > 0)
            out[(*count)++] = (char)('0' + digit);
        r->at += len;
    }
    out[*count] = '\0';
    return r->at > first;
}

/* "E" and an exponent that fits a long; else nothing is taken. Java cuts it down to an int. */
static int32_t read_exponent(struct reader *r)
{
    struct reader ahead = *r;
    char digits[TEMPORAL_TEXT_UNITS + 1];
    bool negative;
    int count;

    if (!skip(&ahead, "E"))
        return 0;
    negative = skip(&ahead, "-");
    if (!read_digits(&ahead, digits, &count) || count > 18)
        return 0;
    *r = ahead;
    return (int32_t)(uint32_t)strtoull(digits, NULL, 10) * (negative ? -1 : 1);
}

static int32_t saturate(double d)
{
    if (d != d)
        return 0;
    return d >= 2147483647.0 ? INT32_MAX : d <= -2147483648.0 ? INT32_MIN : (int32_t)d;
}

/* digits * 10^exp as Number.intValue gives it: a whole number that fits a long loses its high bits,
 * others saturate. */
static int32_t int_value(const char *digits, int count, int64_t exp, bool negative)
{
    char text[TEMPORAL_TEXT_UNITS + 32];
    int64_t whole = count + exp;
    int trimmed = count;

    if (count == 0)
        return 0;
    while (digits[trimmed - 1] == '0')
        trimmed--;
    snprintf(text, sizeof(text), "%s%se%" PRId64, negative ? "-" : "", digits, exp);
    if (whole >= trimmed && (whole < 19 || (whole == 19 && strtod(text, NULL) < 9.2e18 &&
                                            strtod(text, NULL) > -9.2e18))) {
        uint64_t n = 0;

        for (int64_t i = 0; i < whole; i++)
            n = n * 10 + (i < trimmed ? (uint64_t)(digits[i] - '0') : 0);
        return (int32_t)(uint32_t)(negative ? 0 - n : n);
    }
    return saturate(strtod(text, NULL));
}

static bool read_number(struct reader *r, int32_t *out)
{
    char digits[TEMPORAL_TEXT_UNITS + 1];
    bool negative;
    int count;

    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    if (skip(r, "NaN")) {
        *out = 0;
        return true;
    }
    negative = skip(r, "-");
    if (skip(r, "\xe2\x88\x9e")) { /* the sign of infinity */
        *out = negative ? INT32_MIN : INT32_MAX;
        return true;
    }
    if (!read_digits(r, digits, &count))
        return false;
    *out = int_value(digits, count, read_exponent(r), negative);
    return true;
}

/* --- the three patterns ----------------------------------------------------------------------- */

static bool read_date(struct reader *r, struct calendar_fields *f)
{
    if (!read_number(r, &f->year) || !skip(r, "-") || !read_number(r, &f->month) || !skip(r, "-") ||
        !read_number(r, &f->day))
        return false;
    f->month = (int32_t)((uint32_t)f->month - 1);
    return true;
}

static bool read_time(struct reader *r, struct calendar_fields *f)
{
    return read_number(r, &f->hour) && skip(r, ":") && read_number(r, &f->minute) && skip(r, ":") &&
           read_number(r, &f->second) && skip(r, ".") && read_number(r, &f->ms) && skip(r, "Z");
}

static bool read_pattern(uint8_t kind, struct reader *r, int64_t *ms)
{
    struct calendar_fields f = {.year = 1970, .day = 1};
    bool good;

    if (kind == MR_KIND_TIME)
        good = read_time(r, &f);
    else if (kind == MR_KIND_DATE)
        good = read_date(r, &f);
    else
        good = read_date(r, &f) && skip(r, "T") && read_time(r, &f);
    if (good)
        *ms = calendar_ms(&f);
    return good;
}

/* The text with \: as : , as long as it may be a literal. */
struct literal {
    char p[TEMPORAL_TEXT_UNITS * 3 + 4];
    size_t len;
    size_t units;
};

static bool literal_add(struct literal *l, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];

        if (c == ':' && l->len > 0 && l->p[l->len - 1] == '\\') {
            l->p[l->len - 1] = ':';
            continue;
        }
        l->units += c < 0x80 || c >= 0xc0 ? (c >= 0xf0 ? 2 : 1) : 0;
        if (l->units > TEMPORAL_TEXT_UNITS + 4 || l->len == sizeof(l->p))
            return false;
        l->p[l->len++] = (char)c;
    }
    return true;
}

bool temporal_text_read(const char *text, size_t len, const char *rest, size_t rest_len,
                        uint8_t *kind, int64_t *ms)
{
    struct literal literal;
    struct reader r;

    literal.len = literal.units = 0;
    if (!literal_add(&literal, text, len) || !literal_add(&literal, rest, rest_len))
        return false;
    if (literal.units == 13)
        *kind = MR_KIND_TIME;
    else if (literal.units == 24)
        *kind = MR_KIND_TIMESTAMP;
    else if (literal.units == 10)
        *kind = MR_KIND_DATE;
    else
        return false;
    r = (struct reader){literal.p, literal.p + literal.len};
    return read_pattern(*kind, &r, ms);
}

/* --- writing ---------------------------------------------------------------------------------- */

size_t temporal_text_write(int64_t ms, char out[48])
{
    int64_t days = calendar_floor_div(ms, CALENDAR_DAY_MS);
    int of_day = (int)((ms % CALENDAR_DAY_MS + CALENDAR_DAY_MS) % CALENDAR_DAY_MS);
    struct calendar c;
    char time[24];

    snprintf(time, sizeof(time), "%02d:%02d:%02d.%03dZ", of_day / 3600000, of_day / 60000 % 60,
             of_day / 1000 % 60, of_day % 1000);
    if (ms < CALENDAR_DAY_MS)
        return (size_t)snprintf(out, 48, "%s", time);
    calendar_from_days(&c, days);
    return (size_t)snprintf(out, 48, "%04" PRId64 "-%02d-%02d%s%s", c.year, c.month + 1, c.day,
                            of_day == 0 ? "" : "T", of_day == 0 ? "" : time);
}

/* --- values ----------------------------------------------------------------------------------- */

struct mr_value temporal_text_value(uint8_t kind, int64_t ms)
{
    int64_t days = calendar_floor_div(ms, CALENDAR_DAY_MS);

    if (kind == MR_KIND_DATE && ms % CALENDAR_DAY_MS == 0 && days >= INT32_MIN && days <= INT32_MAX)
        return mr_date((int32_t)days);
    if (kind == MR_KIND_TIME && ms >= INT32_MIN && ms <= INT32_MAX)
        return mr_time((int32_t)ms);
    return mr_timestamp(ms);
}

int64_t temporal_text_ms(struct mr_value v)
{
    return v.kind == MR_KIND_DATE ? v.u.i * CALENDAR_DAY_MS : v.u.i;
}
