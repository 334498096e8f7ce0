/* SPDX-License-Identifier: Apache-2.0 */
/* Java's readers of numbers. What strtod would take besides (other names of infinity, hexadecimal
 * without an exponent) is refused before it is asked. Integers may have the digits of any script,
 * as in Java, floating point may not. Any thread; memory from the arena. */
#include "number_text.h"

#include <stdlib.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Where the digits of a script begin; each has ten in a row. */
static const uint16_t zeros[] = {
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
};

static int foreign_digit(const char **p, const char *end)
{
    const unsigned char *u = (const unsigned char *)*p;
    int len = *u >= 0xe0 ? 3 : 2;
    uint32_t c;

    if (*u < 0xc2 || *u >= 0xf0 || end - *p < len)
        return -1;
    c = len == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
                 : (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
        if (c - zeros[i] < 10) {
            *p += len;
            return (int)(c - zeros[i]);
        }
    return -1;
}

int number_text_digit(const char **p, const char *end)
{
    if (*p == end)
        return -1;
    if (is_digit(**p))
        return *(*p)++ - '0';
    return foreign_digit(p, end);
}

bool number_text_long(const char *p, size_t len, int64_t min, int64_t max, int64_t *out)
{
    const char *end = p + len;
    bool negative = len > 0 && *p == '-';
    uint64_t limit = negative ? (uint64_t)0 - (uint64_t)min : (uint64_t)max, n = 0;

    p += negative || (len > 0 && *p == '+');
    if (p == end)
        return false;
    while (p < end) {
        int digit = number_text_digit(&p, end);

        if (digit < 0 || n > (limit - (uint64_t)digit) / 10)
            return false;
        n = n * 10 + (uint64_t)digit;
    }
    *out = (int64_t)(negative ? (uint64_t)0 - n : n);
    return true;
}

/* --- floating point --------------------------------------------------------------------------- */

static const char *skip_digits(const char *p, const char *end, bool (*is)(char c), size_t *count)
{
    for (; p < end && is(*p); p++)
        ++*count;
    return p;
}

/* Digits with one point, an exponent after the letter (which hexadecimal must have), and a last f
 * or d. */
static bool is_number(const char *p, const char *end, bool hex)
{
    bool (*is)(char c) = hex ? is_hex : is_digit;
    size_t digits = 0, exponent = 0;

    p = skip_digits(p, end, is, &digits);
    if (p < end && *p == '.')
        p = skip_digits(p + 1, end, is, &digits);
    if (digits == 0)
        return false;
    if (p < end && (*p | 0x20) == (hex ? 'p' : 'e')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        p = skip_digits(p, end, is_digit, &exponent);
        if (exponent == 0)
            return false;
    } else if (hex) {
        return false;
    }
    if (p < end && ((*p | 0x20) == 'f' || (*p | 0x20) == 'd'))
        p++;
    return p == end;
}

static bool is_java_double(const char *p, const char *end)
{
    p += p < end && (*p == '+' || *p == '-');
    if (end - p == 3 && memcmp(p, "NaN", 3) == 0)
        return true;
    if (end - p == 8 && memcmp(p, "Infinity", 8) == 0)
        return true;
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        return is_number(p + 2, end, true);
    return is_number(p, end, false);
}

/* A copy that strtod can read, or NULL when Java could not. */
static const char *checked(struct mr_arena *arena, const char *p, size_t len)
{
    const char *end = p + len;
    char *copy;

    while (p < end && (unsigned char)*p <= ' ')
        p++;
    while (p < end && (unsigned char)end[-1] <= ' ')
        end--;
    if (!is_java_double(p, end))
        return NULL;
    copy = (char *)mr_alloc(arena, (size_t)(end - p) + 1);
    memcpy(copy, p, (size_t)(end - p));
    copy[end - p] = '\0';
    return copy;
}

bool number_text_double(struct mr_arena *arena, const char *p, size_t len, double *out)
{
    const char *copy = checked(arena, p, len);

    if (copy == NULL)
        return false;
    *out = strtod(copy, NULL);
    return true;
}

bool number_text_float(struct mr_arena *arena, const char *p, size_t len, float *out)
{
    const char *copy = checked(arena, p, len);

    if (copy == NULL)
        return false;
    *out = strtof(copy, NULL);
    return true;
}

int64_t number_text_to_long(double d)
{
    if (d != d)
        return 0;
    if (d >= 9223372036854775808.0)
        return INT64_MAX;
    return d < -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

int32_t number_text_to_int(double d)
{
    int64_t i = number_text_to_long(d);

    return i > INT32_MAX ? INT32_MAX : i < INT32_MIN ? INT32_MIN : (int32_t)i;
}

/* --- decimals --------------------------------------------------------------------------------- */

/* The absolute value in 32-bit limbs, the highest first. */
static uint32_t *limbs_of(struct mr_arena *arena, const struct mr_decimal *d, size_t *count)
{
    size_t n = (d->len + 3) / 4, at = n * 4 - d->len;
    uint32_t *limbs = (uint32_t *)mr_alloc(arena, n * sizeof(*limbs));
    bool negative = (d->bytes[0] & 0x80) != 0;
    uint64_t carry = 1;

    memset(limbs, 0, n * sizeof(*limbs));
    if (negative)
        limbs[0] = at == 0 ? 0 : UINT32_MAX << (8 * (4 - at));
    for (size_t i = 0; i < d->len; i++)
        limbs[(at + i) / 4] |= (uint32_t)d->bytes[i] << (8 * (3 - (at + i) % 4));
    for (size_t i = n; negative && i > 0; i--) {
        carry += (uint32_t)~limbs[i - 1];
        limbs[i - 1] = (uint32_t)carry;
        carry >>= 32;
    }
    *count = n;
    return limbs;
}

static bool divide(uint32_t *limbs, size_t count, uint32_t by)
{
    uint64_t rest = 0;
    uint32_t any = 0;

    for (size_t i = 0; i < count; i++) {
        rest = rest << 32 | limbs[i];
        limbs[i] = (uint32_t)(rest / by);
        rest %= by;
        any |= limbs[i];
    }
    return any != 0;
}

int64_t number_text_low_bits(struct mr_arena *arena, const struct mr_decimal *d)
{
    size_t count;
    uint32_t *limbs;
    int64_t scale = d->scale;
    uint64_t low;

    if (scale <= -64) /* a multiple of 2 to the 64 */
        return 0;
    limbs = limbs_of(arena, d, &count);
    for (; scale >= 9; scale -= 9)
        if (!divide(limbs, count, 1000000000u))
            return 0;
    for (; scale > 0; scale--)
        divide(limbs, count, 10);
    low = limbs[count - 1] | (count > 1 ? (uint64_t)limbs[count - 2] << 32 : 0);
    for (; scale < 0; scale++)
        low *= 10;
    return (int64_t)((d->bytes[0] & 0x80) != 0 ? (uint64_t)0 - low : low);
}
