/* SPDX-License-Identifier: Apache-2.0 */
/* SCRAM-SHA-256 and -512, the client's side. No I/O. Spec: RFC 5802, RFC 7677. */
#ifndef WIRE_SCRAM_H
#define WIRE_SCRAM_H

#include "wire/codec.h"

struct scram;

struct scram_user {
    const char *name;
    const char *password;
    bool sha512;
    const char *nonce; /* NULL: a random one; tests give theirs */
};

/* NULL: out of memory or no randomness. */
struct scram *scram_new(const struct scram_user *user);
void scram_free(struct scram **s); /* wipes it */
/* As sasl_step: three calls, with nothing, the server's first and its final message. */
int scram_step(struct scram *s, struct codec_bytes in, struct buf *out, struct mr_error *err);

#endif
