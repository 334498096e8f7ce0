/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, the one place that knows what it allows (RFC 3629: no surrogates, no overlong forms,
 * nothing above U+10FFFF). Pure. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at p (1 to 4); or negative: that many bytes are one malformed part, as
 * Java counts them. len: bytes that may be read, at least 1. */
int utf8_char(const char *p, size_t len);

/* Length of the well-formed prefix: len when all of it is UTF-8. */
size_t utf8_prefix(const char *p, size_t len);
bool utf8_valid(const char *p, size_t len);

/* In place: each malformed part becomes one '?', a lone surrogate too, as String.getBytes has it;
 * C0 80 is a NUL.
 * Returns the length then, at most len. */
size_t utf8_encode(char *text, size_t len);

/* Bytes of a text of len bytes to show where max are wanted: no character is cut. */
size_t utf8_cut(const char *text, size_t len, size_t max);

#endif
