/* SPDX-License-Identifier: Apache-2.0 */
/* Message authentication codes and random keys, for what workers sign among themselves. Pure, but
 * for the random source. */
#ifndef WIRE_MAC_H
#define WIRE_MAC_H

#include "base/err.h"

#define MAC_MAX_BYTES 64

/* The code of len bytes by an algorithm with Java's name (HmacSHA1, HmacSHA224, HmacSHA256,
 * HmacSHA384, HmacSHA512; any case). Gives its length, or MR_ERR_UNSUPPORTED (no such algorithm) or
 * MR_ERR_FATAL. */
int mac_sign(const char *algorithm, const void *key, size_t key_len, const void *data, size_t len,
             unsigned char out[MAC_MAX_BYTES], struct mr_error *err);
/* Are they the same? Takes as long whatever differs. */
bool mac_equal(const void *a, const void *b, size_t len);

/* Bytes that a new key of the algorithm has where nobody says otherwise; 0: no such algorithm.
 * Spec: javax.crypto.KeyGenerator. */
size_t mac_key_bytes(const char *algorithm);
int mac_random(void *out, size_t len, struct mr_error *err);

#endif
