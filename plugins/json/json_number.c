/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON number's characters as the number that Java would make of them. Called by the reader and
 * by the step from JSON to values; pure.
 *
 * The slices were checked by the reader: optional minus, digits, optional fraction, optional
 * exponent whose scale fits 32 bits, at most 1000 digits in all (leading zeros apart, which may be
 * many). Java goes through BigDecimal, so -0.0 is 0.0, and integers are what is left of the exact
 * value modulo 2^64. */
#include "record_json.h"

#include <stdlib.h>

/* What a number consists of. */
struct parts {
    bool negative;
    const char *digits; /* integer digits, without leading zeros */
    size_t whole;
    const char *fraction;
    size_t fraction_len;
    int64_t exp;
};

static struct parts parts_of(const char *p, size_t len)
{
    struct parts parts = {0};
    const char *end = p + len;

    parts.negative = *p == '-';
    p += parts.negative;
    while (end - p > 1 && p[0] == '0' && p[1] >= '0' && p[1] <= '9')
        p++;
    for (parts.digits = p; p < end && *p >= '0' && *p <= '9'; p++)
        parts.whole++;
    parts.fraction = p;
    if (p < end && *p == '.')
        for (parts.fraction = ++p; p < end && *p >= '0' && *p <= '9'; p++)
            parts.fraction_len++;
    if (p < end) {
        bool minus = *++p == '-';

        for (p += minus || *p == '+'; p < end; p++)
            parts.exp = parts.exp * 10 + (*p - '0');
        parts.exp = minus ? -parts.exp : parts.exp;
    }
    return parts;
}

static char digit_at(const struct parts *parts, size_t i)
{
    return i < parts->whole ? parts->digits[i] : parts->fraction[i - parts->whole];
}

static bool is_zero(const struct parts *parts)
{
    for (size_t i = 0; i < parts->whole + parts->fraction_len; i++)
        if (digit_at(parts, i) != '0')
            return false;
    return true;
}

/* --- floating point --------------------------------------------------------------------------- */

/* strtod wants a NUL, so it gets a copy made for it: sign, digits "d.ddd", exponent. */
static double slow(const struct parts *parts, bool single)
{
    char text[RECORD_JSON_MAX_NUMBER + 40];
    size_t at = 0;
    int64_t exp = parts->exp;

    if (parts->negative)
        text[at++] = '-';
    memcpy(text + at, parts->digits, parts->whole);
    at += parts->whole;
    if (parts->fraction_len > 0) {
        text[at++] = '.';
        memcpy(text + at, parts->fraction, parts->fraction_len);
        at += parts->fraction_len;
    }
    exp = exp > 100000 ? 100000 : exp < -100000 ? -100000 : exp;
    snprintf(text + at, sizeof(text) - at, "e%d", (int)exp);
    return single ? (double)strtof(text, NULL) : strtod(text, NULL);
}

/* An integer below 2^53 times or divided by a power of ten up to 10^22 is rounded once. */
static bool easy(const struct parts *parts, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    size_t digits = parts->whole + parts->fraction_len;
    int64_t exp = parts->exp - (int64_t)parts->fraction_len;
    uint64_t value = 0;

    if (digits > 15 || exp < -22 || exp > 22)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (uint64_t)(digit_at(parts, i) - '0');
    *out = exp < 0 ? (double)value / powers[-exp] : (double)value * powers[exp];
    if (parts->negative && value != 0)
        *out = -*out;
    return true;
}

double record_json_double(const char *p, size_t len)
{
    struct parts parts = parts_of(p, len);
    double d;

    if (easy(&parts, &d))
        return d;
    return is_zero(&parts) ? 0.0 : slow(&parts, false);
}

/* Not through double: that would round twice. */
float record_json_float(const char *p, size_t len)
{
    struct parts parts = parts_of(p, len);

    return is_zero(&parts) ? 0.0F : (float)slow(&parts, true);
}

/* --- integers --------------------------------------------------------------------------------- */

int64_t record_json_long(const char *p, size_t len)
{
    struct parts parts = parts_of(p, len);
    size_t digits = parts.whole + parts.fraction_len;
    /* Digits before the point once the exponent is applied. */
    int64_t places = (int64_t)parts.whole + parts.exp;
    uint64_t value = 0;

    if (places <= 0 || places > (int64_t)digits + 64) /* 10^64 is a multiple of 2^64 */
        return 0;
    for (int64_t i = 0; i < places; i++)
        value =
            value * 10 + (i < (int64_t)digits ? (uint64_t)(digit_at(&parts, (size_t)i) - '0') : 0);
    return (int64_t)(parts.negative ? 0 - value : value);
}

/* --- decimals --------------------------------------------------------------------------------- */

#define WORDS (RECORD_JSON_MAX_NUMBER / 19 + 2) /* 10^19 < 2^64 */

__extension__ typedef unsigned __int128 wide;

static void multiply_add(uint64_t *words, size_t *count, uint64_t factor, uint64_t add)
{
    wide carry = add;

    for (size_t i = 0; i < *count; i++) {
        carry += (wide)words[i] * factor;
        words[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry != 0)
        words[(*count)++] = (uint64_t)carry;
}

/* Words, lowest first, as big-endian two's complement of the least length; at least one byte. */
static struct mr_value make_decimal(struct mr_arena *arena, uint64_t *words, size_t count,
                                    bool negative, int32_t scale)
{
    unsigned char bytes[8 * WORDS + 1];
    size_t len = 8 * count + 1, skip = 0, size;
    unsigned carry = negative ? 1 : 0;
    struct mr_decimal *d;

    for (size_t i = 0; i < len; i++) {
        unsigned byte = i / 8 < count ? (unsigned)(words[i / 8] >> (8 * (i % 8))) & 0xff : 0;

        if (negative) {
            byte = (~byte & 0xff) + carry;
            carry = byte >> 8;
        }
        bytes[len - 1 - i] = (unsigned char)byte;
    }
    while (skip + 1 < len && bytes[skip] == (bytes[skip + 1] & 0x80 ? 0xff : 0x00))
        skip++;
    size = sizeof(struct mr_decimal) + len - skip;
    d = (struct mr_decimal *)mr_alloc(arena, size);
    memset(d, 0, size);
    d->scale = scale;
    d->len = (uint32_t)(len - skip);
    memcpy(d->bytes, bytes + skip, len - skip);
    return mr_ptr_of(MR_KIND_DECIMAL, d, 0);
}

struct mr_value record_json_decimal(struct mr_arena *arena, const char *p, size_t len)
{
    struct parts parts = parts_of(p, len);
    size_t digits = parts.whole + parts.fraction_len, count = 0, i = 0;
    uint64_t words[WORDS];

    while (i < digits) {
        uint64_t chunk = 0, factor = 1;

        for (size_t n = 0; n < 18 && i < digits; n++, i++, factor *= 10)
            chunk = chunk * 10 + (uint64_t)(digit_at(&parts, i) - '0');
        multiply_add(words, &count, factor, chunk);
    }
    return make_decimal(arena, words, count, parts.negative && count > 0,
                        (int32_t)((int64_t)parts.fraction_len - parts.exp));
}

struct mr_value record_json_decimal_long(struct mr_arena *arena, int64_t i)
{
    uint64_t words[1] = {i < 0 ? 0 - (uint64_t)i : (uint64_t)i};

    return make_decimal(arena, words, 1, i < 0, 0);
}
