/* SPDX-License-Identifier: Apache-2.0 */
/* Text from bytes that may be no text. Pure.
 * Spec: java.lang.String(byte[], UTF_8), whose count of U+FFFD this follows. */
#ifndef HOST_UTF8_TEXT_H
#define HOST_UTF8_TEXT_H

#include "base/err.h"

#include <millrace/record.h>

/* The host's text_from slot: borrowed when it is UTF-8, else a copy in the arena with U+FFFD for
 * each malformed part. */
struct mr_value utf8_text(struct mr_arena *arena, const void *bytes, size_t len);

#endif
