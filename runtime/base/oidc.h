/* SPDX-License-Identifier: Apache-2.0 */
/* OpenID Connect's client credentials: the settings, what an answer of the token endpoint says, and
 * when to ask again. Pure; oidc_fetch.h asks. Spec: RFC 6749 4.4; KIP-768, reference worker-config
 * 9; sasl.login.refresh.* as
 * org.apache.kafka.common.security.oauthbearer.internals.expiring.ExpiringCredentialRefreshingLogin
 * has them. */
#ifndef BASE_OIDC_H
#define BASE_OIDC_H

#include "base/props.h"

/* Read once, immutable: any thread. All texts owned. */
struct oidc {
    char *url;       /* http or https, with a host, without a user */
    char *shown_url; /* the same without its query: for messages */
    char *client_id;
    char *secret;
    char *scope;  /* NULL: none */
    bool encoded; /* sasl.oauthbearer.header.urlencode */
    int64_t connect_ms;
    int64_t read_ms;
    int64_t backoff_ms;
    int64_t backoff_max_ms; /* also: how long one fetch tries */
    double window_factor;
    double window_jitter;
    int64_t min_period_ms;
    int64_t buffer_ms;
};

/* settings: Java's names of one client; jaas: the options that base/jaas.h found. MR_ERR_CONFIG
 * names key and remedy, and holds no secret. NULL then. */
struct oidc *oidc_new(const struct props *settings, const struct props *jaas, struct mr_error *err);
void oidc_free(struct oidc **o);

struct oidc_token {
    char *text;      /* printable, no blanks */
    char *principal; /* what the token says it is for; the client id when it says nothing */
    int64_t life_ms; /* from now on, above 0 */
};
void oidc_token_deinit(struct oidc_token *token); /* wipes it */

/* What came with status 200, at this time. MR_ERR_FATAL: no token in it that could serve; neither
 * secret nor token, nor any other word of the answer, stands in err. */
int oidc_read(const struct oidc *o, const char *body, size_t len, int64_t wall_ms,
              struct oidc_token *out, struct mr_error *err);

/* Milliseconds of a token's life until the next shall be asked for; random from 0 to 1. */
int64_t oidc_refresh_ms(const struct oidc *o, int64_t life_ms, double random);

#endif
