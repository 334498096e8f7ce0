/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for one test, made when asked for: an authority, and keys that it vouches for. PEM
 * texts. */
#ifndef TESTS_CERTIFICATES_H
#define TESTS_CERTIFICATES_H

struct certificates_pair {
    char *certificate; /* malloc'ed PEM */
    char *key;         /* PKCS8 PEM; encrypted when a password was given */
    void *handles[2];  /* private */
};

/* An authority of its own. */
struct certificates_pair certificates_authority(const char *name);
/* For a host name (DNS) or address (IP), vouched for by the authority. password NULL: the key is
 * plain. */
struct certificates_pair certificates_for(const struct certificates_pair *authority,
                                          const char *host, const char *password);
void certificates_free(struct certificates_pair *pair);

#endif
