/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a token endpoint for a token, by HTTP. Blocks: for a thread that may wait. */
#ifndef BASE_OIDC_FETCH_H
#define BASE_OIDC_FETCH_H

#include "base/oidc.h"

struct oidc_fetch;

/* o outlives it. NULL out of memory or descriptors, with err. */
struct oidc_fetch *oidc_fetch_new(const struct oidc *o, struct mr_error *err);
void oidc_fetch_free(struct oidc_fetch **fetch);

/* Ask, and ask again after what may pass (no connection, no answer, 5xx, 408, 429), for
 * sasl.login.retry.backoff.max.ms at most, each attempt within its connect and read time-outs. 0,
 * or what the last attempt failed with: MR_ERR_IO (another fetch may do better), MR_ERR_FATAL (the
 * endpoint refused, or does not give tokens), MR_ERR_CLOSED (called off). err names the endpoint
 * and the remedy; neither secret, nor token, nor any text of the answer stands in it. */
int oidc_fetch_run(struct oidc_fetch *fetch, struct oidc_token *out, struct mr_error *err);

/* From any thread, once and for all: run returns at once. */
void oidc_fetch_cancel(struct oidc_fetch *fetch);

#endif
