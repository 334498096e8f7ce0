/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: checking, and replacing what is malformed. Pure.
 * Spec: java.lang.String(byte[], UTF_8), whose count of U+FFFD this follows. */
#ifndef HOST_UTF8_H
#define HOST_UTF8_H

#include "base/err.h"

#include <millrace/record.h>

/* Length of the well-formed prefix of p: len when all of it is UTF-8 (no surrogates, no overlong forms). */
size_t utf8_valid(const char *p, size_t len);

/* The host's text_from slot: borrowed when it is UTF-8, else a copy in the arena with U+FFFD for each malformed part. */
struct mr_value utf8_text(struct mr_arena *arena, const void *bytes, size_t len);

#endif
