/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal digits of every script, as Java reads them in numbers and dates. Pure.
 * Spec: java.lang.Character.digit(char, 10), JDK 17. */
#ifndef HOST_JAVA_DIGIT_H
#define HOST_JAVA_DIGIT_H

#include "base/err.h"

#include <stddef.h>

/* The digit that the character at p is, 0 to 9, or -1; *len gets the character's bytes (at least 1,
 * at most end - p). Wants p < end. Characters beyond U+FFFF are none: Java looks at UTF-16
 * units. */
int java_digit_at(const char *p, const char *end, size_t *len);

#endif
