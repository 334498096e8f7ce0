/* SPDX-License-Identifier: Apache-2.0 */
/* What ssl.* settings mean, as PEM texts for TLS libraries that are not ours: the HTTP server's
 * and the HTTP client's. */
#ifndef WIRE_TLS_MATERIAL_H
#define WIRE_TLS_MATERIAL_H

#include "base/props.h"

struct tls_material {
    char *chain; /* own certificate first, then those above it; NULL: no key store was given */
    char *key;   /* PKCS8, not encrypted; NULL with chain */
    char *trust; /* NULL: no trust store was given, the system's authorities count */
    bool tls12;
    bool tls13;
};

/* settings: Java's names, without a prefix: ssl.keystore.*, ssl.truststore.*, ssl.key.password,
 * ssl.enabled.protocols. Reads the files they name, once. 0, or MR_ERR_CONFIG: key, what is wrong,
 * remedy; no secret in it. out needs no deinit then.
 * Spec: SslConfigs; what of it is honoured is that of wire_conf. */
int tls_material_load(const struct props *settings, struct tls_material *out, struct mr_error *err);
void tls_material_deinit(struct tls_material *material); /* the key is overwritten */

#endif
