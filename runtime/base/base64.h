/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as java.util.Base64's basic coder has it (RFC 4648, one line). Pure. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* Append the text of these bytes, padded. 0, or the buffer's failure. */
int base64_encode(struct buf *out, const void *data, size_t len);

/* Bytes of a text into out; *out_len says how many. Padding may be left out, but not be wrong.
 * false: not Base64, or more than size bytes; out holds nothing of use then. */
bool base64_decode(const char *text, size_t len, unsigned char *out, size_t size, size_t *out_len);

#endif
