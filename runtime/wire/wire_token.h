/* SPDX-License-Identifier: Apache-2.0 */
/* The token that logins by OAUTHBEARER use, fetched from an OIDC endpoint and renewed before it
 * ends. Private to this room.
 *
 * Fetching runs on a thread of its own: no loop waits for it. A valid token is always at hand once
 * the first one came, since whoever uses a connection tends it. Any thread. */
#ifndef WIRE_WIRE_TOKEN_H
#define WIRE_WIRE_TOKEN_H

#include "base/loop.h"
#include "base/props.h"

struct wire_token;

/* settings: of the client, sasl.jaas.config among them. Nothing is fetched yet. NULL with err
 * (MR_ERR_CONFIG). */
struct wire_token *wire_token_new(const struct props *settings, struct mr_error *err);
/* After all waits. A fetch that runs is called off. */
void wire_token_free(struct wire_token **t);

/* Begin to fetch the next one when it is time. */
void wire_token_tend(struct wire_token *t);

/* A token that has not ended; *text malloc'ed, *number tells it from others. MR_AGAIN: it is being
 * fetched, wait for it. MR_ERR_IO: no thread to fetch with; or, as MR_ERR_FATAL, why the last fetch
 * failed, which was just now. */
int wire_token_get(struct wire_token *t, char **text, uint64_t *number, struct mr_error *err);

/* fn is told once, on the loop, never from inside this call, when the fetch that runs is over: err
 * NULL: get one; MR_ERR_FATAL: the endpoint refuses, and never gave one; MR_ERR_IO: another try may
 * help. NULL with err out of descriptors. */
struct wire_token_wait;
typedef void (*wire_token_fn)(void *arg, const struct mr_error *err);
struct wire_token_wait *wire_token_wait_new(struct wire_token *t, struct loop *loop,
                                            wire_token_fn fn, void *arg, struct mr_error *err);
void wire_token_wait_free(struct wire_token_wait **wait); /* also inside fn, and before */

/* A broker took one. */
void wire_token_accepted(struct wire_token *t);
/* A broker refused the token with this number: it is fetched anew. true: that may help, since
 * brokers took ours before. */
bool wire_token_refused(struct wire_token *t, uint64_t number);

#endif
