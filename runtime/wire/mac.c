/* SPDX-License-Identifier: Apache-2.0 */
/* A table from Java's names of HMAC algorithms to OpenSSL's digests. Called by worker/herder for
 * session keys and signed calls between workers. */
#include "wire/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <strings.h>

static const struct {
    const char *name;
    const EVP_MD *(*digest)(void);
    size_t key_bytes;
} algorithms[] = {
    {"HmacSHA256", EVP_sha256, 32}, {"HmacSHA1", EVP_sha1, 64},     {"HmacSHA224", EVP_sha224, 28},
    {"HmacSHA384", EVP_sha384, 48}, {"HmacSHA512", EVP_sha512, 64},
};

#define ALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

static size_t find(const char *name)
{
    size_t i = 0;

    while (i < ALGORITHMS && strcasecmp(algorithms[i].name, name) != 0)
        i++;
    return i;
}

int mac_sign(const char *algorithm, const void *key, size_t key_len, const void *data, size_t len,
             unsigned char out[MAC_MAX_BYTES], struct mr_error *err)
{
    unsigned n = MAC_MAX_BYTES;
    size_t i = find(algorithm);

    if (i == ALGORITHMS)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "Algorithm %.60s not available", algorithm);
    if (HMAC(algorithms[i].digest(), key, (int)key_len, data, len, out, &n) == NULL)
        return mr_fail(err, MR_ERR_FATAL, "cannot compute a signature with %s", algorithms[i].name);
    return (int)n;
}

bool mac_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

size_t mac_key_bytes(const char *algorithm)
{
    size_t i = find(algorithm);

    return i < ALGORITHMS ? algorithms[i].key_bytes : 0;
}

int mac_random(void *out, size_t len, struct mr_error *err)
{
    if (RAND_bytes(out, (int)len) == 1)
        return 0;
    return mr_fail(err, MR_ERR_FATAL, "no random bytes are to be had");
}
