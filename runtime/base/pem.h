/* SPDX-License-Identifier: Apache-2.0 */
/* PEM text. Pure. */
#ifndef BASE_PEM_H
#define BASE_PEM_H

#include "base/buf.h"

struct pem_found {
    size_t certificates;
    size_t keys;
    bool encrypted; /* a key needs ssl.key.password */
};

/* Check PEM text and write it with proper line ends, since Java takes a certificate on one line and
 * OpenSSL does not. out may be NULL. false: not PEM. */
bool pem_normalize(const char *text, size_t len, struct buf *out, struct pem_found *found);

#endif
