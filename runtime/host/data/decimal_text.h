/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, in the syntax of Java's decimals: taken apart, and made into each kind. Pure but
 * for the arena.
 * Spec: java.math.BigDecimal(String) of JDK 17, and its longValue, floatValue, doubleValue. */
#ifndef HOST_DECIMAL_TEXT_H
#define HOST_DECIMAL_TEXT_H

#include "base/err.h"

#include <millrace/record.h>

/* Digits of the longest DECIMAL; their conversion takes time by the square. */
#define DECIMAL_TEXT_MAX 39457u

/* value = digits * 10^-scale. */
struct decimal_text {
    bool negative;
    /* Count of them, '0' to '9', without leading zeros; "0" for zero. In the arena or the text. */
    const char *digits;
    size_t count;
    int32_t scale;
};

/* Take len bytes of text apart; no blanks around it. False: no number in Java either. With more
 * digits than DECIMAL_TEXT_MAX, out->count says so and no other function may be called;
 * decimal_text_value wants fewer than that. */
bool decimal_text_read(struct mr_arena *arena, const char *text, size_t len,
                       struct decimal_text *out);

/* Is it a whole number within int64? */
bool decimal_text_whole(const struct decimal_text *d, int64_t *out);
int64_t decimal_text_long(const struct decimal_text *d); /* fraction dropped, the low 64 bits */
/* Correctly rounded; beyond the range they are infinite or zero. */
double decimal_text_double(struct mr_arena *arena, const struct decimal_text *d);
float decimal_text_float(struct mr_arena *arena, const struct decimal_text *d);
struct mr_value decimal_text_value(struct mr_arena *arena, const struct decimal_text *d);

/* The other way, for longs: the low 64 bits of a DECIMAL's whole part, and the double next to
 * it. */
int64_t decimal_text_value_long(struct mr_arena *arena, struct mr_value v);
double decimal_text_value_double(struct mr_arena *arena, struct mr_value v);

#endif
