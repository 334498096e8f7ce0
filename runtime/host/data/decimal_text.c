/* SPDX-License-Identifier: Apache-2.0 */
/* What a text says as a number. The parser of header values and the conversions ask; on the task's
 * thread, since all it makes stands in the arena.
 *
 * The digits are copied only where they are not one run of ASCII (a point within, leading zeros
 * behind a sign are skipped by pointer, digits of other scripts). Whole numbers of up to 19 digits
 * take no other step; decimals are built by words of 32 bits, which is quadratic, hence
 * DECIMAL_TEXT_MAX. */
#include "host/data/decimal_text.h"

#include "host/data/java_digit.h"
#include "host/data/values.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- reading ---------------------------------------------------------------------------------- */

/* What follows 'e': at most ten digits, not counting leading zeros, that fit an int. */
static bool read_exponent(const char *p, const char *end, int64_t *out)
{
    bool negative = p < end && *p == '-';
    int64_t exp = 0;
    int digits = 0;

    p += p < end && (*p == '-' || *p == '+');
    if (p == end)
        return false;
    while (p < end) {
        size_t len;
        int digit = java_digit_at(p, end, &len);

        if (digit < 0 || digits > 10)
            return false;
        digits += digits > 0 || digit > 0;
        exp = exp * 10 + digit;
        p += len;
    }
    *out = negative ? -exp : exp;
    return digits <= 10 && *out >= INT32_MIN && *out <= INT32_MAX;
}

struct scan {
    const char *digits; /* the first one that is not a leading zero */
    size_t count;
    size_t fraction; /* digits behind the point */
    size_t seen;
    bool plain; /* they stand in the text as they are */
};

/* Digits and at most one point, up to 'e' or the end; p moves there. */
static bool scan_digits(const char **p, const char *end, struct scan *s)
{
    bool point = false;

    *s = (struct scan){.plain = true};
    while (*p < end && **p != 'e' && **p != 'E') {
        size_t len;
        int digit = java_digit_at(*p, end, &len);

        if (digit < 0 && (**p != '.' || point))
            return false;
        if (digit < 0) {
            point = true;
            s->plain = s->plain && s->count == 0;
        } else {
            s->seen++;
            s->fraction += point;
            s->plain = s->plain && len == 1;
            if (s->count == 0 && digit > 0)
                s->digits = *p;
            s->count += s->count > 0 || digit > 0;
        }
        *p += len;
    }
    return s->seen > 0;
}

static const char *copy_digits(struct mr_arena *arena, const struct scan *s, const char *end)
{
    char *copy = mr_alloc(arena, s->count), *to = copy;

    for (const char *p = s->digits; to < copy + s->count;) {
        size_t len;
        int digit = java_digit_at(p, end, &len);

        if (digit >= 0)
            *to++ = (char)('0' + digit);
        p += len;
    }
    return copy;
}

bool decimal_text_read(struct mr_arena *arena, const char *text, size_t len,
                       struct decimal_text *out)
{
    const char *p = text, *end = text + len;
    struct scan scan;
    int64_t exp = 0;
    int64_t scale;

    out->negative = len > 0 && *p == '-';
    p += len > 0 && (*p == '-' || *p == '+');
    if (!scan_digits(&p, end, &scan) || (p < end && !read_exponent(p + 1, end, &exp)))
        return false;
    scale = (int64_t)scan.fraction - exp;
    if (scale < INT32_MIN || scale > INT32_MAX)
        return false;
    out->scale = (int32_t)scale;
    out->count = scan.count == 0 ? 1 : scan.count;
    out->negative = out->negative && scan.count > 0;
    if (out->count <= DECIMAL_TEXT_MAX)
        out->digits = scan.count == 0 ? "0"
                      : scan.plain    ? scan.digits
                                      : copy_digits(arena, &scan, end);
    return true;
}

/* --- integers --------------------------------------------------------------------------------- */

/* Digits of the whole part; those behind the count are zeros. */
static int64_t whole_digits(const struct decimal_text *d)
{
    return (int64_t)d->count - d->scale;
}

bool decimal_text_whole(const struct decimal_text *d, int64_t *out)
{
    int64_t whole = whole_digits(d);
    uint64_t n = 0, limit = d->negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;

    if (d->count == 1 && d->digits[0] == '0') {
        *out = 0;
        return true;
    }
    if (whole <= 0 || whole > 19)
        return false;
    for (size_t i = (size_t)whole; i < d->count; i++)
        if (d->digits[i] != '0')
            return false;
    for (int64_t i = 0; i < whole; i++)
        n = n * 10 + (i < (int64_t)d->count ? (uint64_t)(d->digits[i] - '0') : 0);
    if (n > limit)
        return false;
    *out = (int64_t)(d->negative ? 0 - n : n);
    return true;
}

int64_t decimal_text_long(const struct decimal_text *d)
{
    int64_t whole = whole_digits(d);
    uint64_t n = 0;

    if (whole > (int64_t)d->count + 64) /* 10^64 is a multiple of 2^64 */
        return 0;
    for (int64_t i = 0; i < whole; i++)
        n = n * 10 + (i < (int64_t)d->count ? (uint64_t)(d->digits[i] - '0') : 0);
    return (int64_t)(d->negative ? 0 - n : n);
}

/* --- floating point --------------------------------------------------------------------------- */

/* "-0.ddd…e±x": strtod takes as many digits as there are. */
static const char *for_strtod(struct mr_arena *arena, const struct decimal_text *d)
{
    char *out = mr_alloc(arena, d->count + 40), *p = out;

    if (d->negative)
        *p++ = '-';
    *p++ = '0';
    *p++ = '.';
    memcpy(p, d->digits, d->count);
    p += d->count;
    snprintf(p, 30, "e%" PRId64, whole_digits(d));
    return out;
}

double decimal_text_double(struct mr_arena *arena, const struct decimal_text *d)
{
    return strtod(for_strtod(arena, d), NULL);
}

float decimal_text_float(struct mr_arena *arena, const struct decimal_text *d)
{
    return strtof(for_strtod(arena, d), NULL);
}

/* --- decimals --------------------------------------------------------------------------------- */

static uint32_t nine_digits(const char *p, size_t count)
{
    uint32_t n = 0;

    for (size_t i = 0; i < count; i++)
        n = n * 10 + (uint32_t)(p[i] - '0');
    return n;
}

/* The digits as words, lowest first; gives how many. */
static size_t to_words(const struct decimal_text *d, uint32_t *words)
{
    size_t count = 0;

    for (size_t at = 0; at < d->count;) {
        size_t n = (d->count - at) % 9 == 0 ? 9 : (d->count - at) % 9;
        uint64_t carry = nine_digits(d->digits + at, n);
        uint64_t times = 1;

        for (size_t i = 0; i < n; i++)
            times *= 10;
        for (size_t i = 0; i < count; i++) {
            carry += words[i] * times;
            words[i] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry > 0)
            words[count++] = (uint32_t)carry;
        at += n;
    }
    return count;
}

/* Big-endian two's complement of the words, minimal. Bytes has room for one more than they take. */
static uint32_t to_bytes(uint32_t *words, size_t count, bool negative, uint8_t *bytes)
{
    size_t len = count * 4 + 1, skip = 0;
    unsigned carry = 1;

    bytes[0] = 0;
    for (size_t i = 0; i < count * 4; i++)
        bytes[len - 1 - i] = (uint8_t)(words[i / 4] >> (8 * (i % 4)));
    for (size_t i = len; negative && i > 0; i--) {
        carry += (uint8_t)~bytes[i - 1];
        bytes[i - 1] = (uint8_t)carry;
        carry >>= 8;
    }
    while (skip + 1 < len && bytes[skip] == ((bytes[skip + 1] & 0x80) != 0 ? 0xff : 0))
        skip++;
    memmove(bytes, bytes + skip, len - skip);
    return (uint32_t)(len - skip);
}

struct mr_value decimal_text_value(struct mr_arena *arena, const struct decimal_text *d)
{
    size_t room = d->count / 9 + 2; /* words: nine digits are less than 30 bits */
    uint32_t *words = mr_alloc(arena, room * sizeof(*words));
    struct mr_decimal *out = mr_alloc(arena, sizeof(*out) + room * sizeof(*words) + 1);

    out->scale = d->scale;
    out->len = to_bytes(words, to_words(d, words), d->negative, out->bytes);
    return mr_ptr_of(MR_KIND_DECIMAL, out, 0);
}

/* --- from decimals ---------------------------------------------------------------------------- */

/* A decimal by way of its text, whose layout is BigDecimal's, so that it reads. */
static void read_value(struct mr_arena *arena, struct mr_value v, struct decimal_text *d)
{
    size_t len;
    const char *text = values_text(arena, v, &len);

    if (!decimal_text_read(arena, text, len, d) || d->count > DECIMAL_TEXT_MAX)
        *d = (struct decimal_text){.digits = "0", .count = 1};
}

int64_t decimal_text_value_long(struct mr_arena *arena, struct mr_value v)
{
    struct decimal_text d;

    read_value(arena, v, &d);
    return decimal_text_long(&d);
}

double decimal_text_value_double(struct mr_arena *arena, struct mr_value v)
{
    struct decimal_text d;

    read_value(arena, v, &d);
    return decimal_text_double(arena, &d);
}
