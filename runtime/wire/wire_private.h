/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share, and nobody else sees: the settings as they were read. */
#ifndef WIRE_WIRE_PRIVATE_H
#define WIRE_WIRE_PRIVATE_H

#include "wire/broker_conn.h"
#include "wire/sasl.h"
#include "wire/wire_token.h"

#include <openssl/types.h>

struct wire_conf {
    struct broker_conn_to *bootstrap; /* host owned */
    size_t bootstrap_count;
    char *client_id;
    int64_t request_timeout_ms;
    int64_t setup_timeout_ms; /* for TCP, and again for TLS and login */
    int64_t retry_backoff_ms;
    int64_t reconnect_backoff_ms;
    int64_t reconnect_backoff_max_ms;
    SSL_CTX *tls; /* NULL: plain TCP */
    bool check_host;
    bool login; /* SASL */
    struct sasl_conf sasl;
    struct wire_token *token; /* OAUTHBEARER with a token endpoint; else NULL */
};

/* wire_tls.c: everything that ssl.* say, except how hosts are named. NULL with err. */
SSL_CTX *wire_tls_context(const struct props *settings, struct mr_error *err);
/* For one connection: its name checked if conf says so. NULL with err. */
SSL *wire_tls_session(const struct wire_conf *conf, const char *host, int fd, struct mr_error *err);
/* What failed, from OpenSSL's queue and the certificate check: MR_ERR_FATAL for certificates, else
 * MR_ERR_IO. */
int wire_tls_error(SSL *ssl, const char *who, struct mr_error *err);

#endif
