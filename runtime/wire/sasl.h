/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a login: tokens in, tokens out. No I/O.
 * Spec: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 (OAUTHBEARER), as Kafka uses them. */
#ifndef WIRE_SASL_H
#define WIRE_SASL_H

#include "base/props.h"
#include "wire/codec.h"

enum sasl_mechanism { SASL_PLAIN, SASL_SCRAM_256, SASL_SCRAM_512, SASL_OAUTHBEARER };

/* Who we are. All owned; what a mechanism does not use is NULL. */
struct sasl_conf {
    enum sasl_mechanism mechanism;
    char *user;
    char *password;
    char *claims;     /* OAUTHBEARER: of tokens made here, unsecured, for tests: "principal=alice
                         lifeSeconds=60"; NULL: tokens come by sasl_give_token */
    char *extensions; /* "a=1,b=2" */
};

/* From sasl.mechanism, sasl.jaas.config, and whether there is a token endpoint. MR_ERR_CONFIG names
 * what is missing. conf is zeroed before; deinit it even after a failure. */
int sasl_conf_read(struct sasl_conf *conf, const struct props *settings, struct mr_error *err);
void sasl_conf_deinit(struct sasl_conf *conf);
const char *sasl_name(enum sasl_mechanism mechanism); /* "SCRAM-SHA-256" */

struct sasl;

/* conf outlives it. */
struct sasl *sasl_new(const struct sasl_conf *conf);
void sasl_free(struct sasl **s);
void sasl_give_token(struct sasl *s, char *token); /* malloc'ed, taken; before the first step */
/* The next token for the broker, appended to out. in: what the broker answered to the token before;
 * nothing at first. 0: send out. MR_AGAIN: the broker has proved itself as far as the mechanism has
 * it; nothing to send. MR_ERR_FATAL: the broker refused or is not who it should be;
 * MR_ERR_PROTOCOL: its token is none. */
int sasl_step(struct sasl *s, struct codec_bytes in, struct buf *out, struct mr_error *err);

#endif
