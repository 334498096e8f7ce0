/* SPDX-License-Identifier: Apache-2.0 */
/* A token endpoint on loopback: client credentials in, an unsecured JWT out; or whatever a test
 * wants it to do. */
#ifndef TESTS_TOKEN_ENDPOINT_H
#define TESTS_TOKEN_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* Of every client; a wrong one is refused, and repeated in the refusal. */
#define TOKEN_ENDPOINT_SECRET "s3cret:&="

struct token_endpoint;

struct token_endpoint *token_endpoint_start(void);
void token_endpoint_stop(struct token_endpoint **e);
/* http://127.0.0.1:PORT/token?q=1. */
const char *token_endpoint_url(const struct token_endpoint *e);

/* From now on, any thread. */
void token_endpoint_life(struct token_endpoint *e, int seconds); /* of tokens; 3600 at first */
/* All its bytes; NULL: tokens. */
void token_endpoint_answer(struct token_endpoint *e, const char *raw);
void token_endpoint_hang(struct token_endpoint *e, bool hang); /* no answer while it hangs */
void token_endpoint_flood(struct token_endpoint *e);           /* an answer without end */

int token_endpoint_asked(struct token_endpoint *e);                  /* requests that came whole */
int token_endpoint_given(struct token_endpoint *e);                  /* tokens */
bool token_endpoint_saw(struct token_endpoint *e, const char *text); /* in the newest request */

#endif
