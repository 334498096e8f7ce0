/* SPDX-License-Identifier: Apache-2.0 */
/* Characters and percent-encoding, for the files of this folder. Pure. */
#ifndef WORKER_REST_TEXT_H
#define WORKER_REST_TEXT_H

#include "base/buf.h"

/* Append one character as UTF-8; code is at most 0x10FFFF. */
int rest_text_append(struct buf *out, uint32_t code);

/* Value of a hexadecimal digit, or -1. */
int rest_text_hex(char c);

/* Append text percent-encoded as JAX-RS builds a path: `/` and existing %XX stay, and so does what
 * a path may hold (unreserved, sub-delims but for `;`, `:` and `@`). */
int rest_text_encode_path(struct buf *out, const char *text);

#endif
