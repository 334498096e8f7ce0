/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 and percent-encoding, for the files of this folder. Pure. */
#ifndef WORKER_REST_TEXT_H
#define WORKER_REST_TEXT_H

#include "base/buf.h"

/* Bytes of the UTF-8 character at s (1 to 4), or 0: not one (overlong, surrogate, cut off, beyond U+10FFFF).
 * len: bytes that may be read, at least 1. */
size_t rest_text_char(const char *s, size_t len);
bool rest_text_valid(const char *s, size_t len);

/* Append one character as UTF-8; code is at most 0x10FFFF. */
int rest_text_append(struct buf *out, uint32_t code);

/* Value of a hexadecimal digit, or -1. */
int rest_text_hex(char c);

/* Append text percent-encoded as JAX-RS builds a path: `/` and existing %XX stay, and so does what a path may hold
 * (unreserved, sub-delims but for `;`, `:` and `@`). */
int rest_text_encode_path(struct buf *out, const char *text);

#endif
