/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text and from decimals, as Java's classes read them. Any thread. */
#ifndef TRANSFORMS_NUMBER_TEXT_H
#define TRANSFORMS_NUMBER_TEXT_H

#include <millrace/record.h>

/* The digit at *p (before end), which moves on; -1 and *p as it was when there is none. Other
 * scripts' digits count, as for Character.digit of one UTF-16 unit. */
int number_text_digit(const char **p, const char *end);

/* An integer from min to max: an optional sign and digits. Spec: Long.parseLong, Byte.parseByte
 * … */
bool number_text_long(const char *p, size_t len, int64_t min, int64_t max, int64_t *out);
/* Spec: Double.parseDouble and Float.parseFloat: blanks around it, NaN, Infinity, hexadecimal, a
 * last f or d. */
bool number_text_double(struct mr_arena *arena, const char *p, size_t len, double *out);
bool number_text_float(struct mr_arena *arena, const char *p, size_t len, float *out);

/* The low 64 bits of a decimal's integer part. Spec: BigDecimal.longValue. */
int64_t number_text_low_bits(struct mr_arena *arena, const struct mr_decimal *d);

/* Java's (long) and (int) of a double: toward zero, the nearest bound, 0 for NaN. */
int64_t number_text_to_long(double d);
int32_t number_text_to_int(double d);

#endif
