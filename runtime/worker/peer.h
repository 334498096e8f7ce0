/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP to other workers of the cluster, on a thread of its own. Callers are on the worker's loop
 * and never wait. */
#ifndef WORKER_PEER_H
#define WORKER_PEER_H

#include "base/loop.h"

#include <stddef.h>

#define PEER_ANSWER_MAX ((size_t)16 << 20) /* bytes of an answer's body */
#define PEER_BYTES_MAX ((size_t)64 << 20) /* of all bodies that are held, of requests and answers */
#define PEER_OPEN_MAX 1024                /* requests at a time */

struct peer;
struct worker_https;

/* url: whole. body: NULL none. Headers are left out where NULL. Everything is copied. */
struct peer_request {
    const char *url;
    const char *method;
    const char *body;
    size_t len;
    const char *authorization;       /* Authorization */
    const char *signature;           /* X-Connect-Authorization */
    const char *signature_algorithm; /* X-Connect-Request-Signature-Algorithm */
    int64_t timeout_ms;
};

/* status 0: nobody answered; error says why (one sentence). body: NUL-terminated, borrowed for
 * the call. */
struct peer_answer {
    int status;
    const char *body;
    size_t len;
    const char *error;
    bool given_up; /* by peer_give_up: the other worker may have done it, or not */
};
typedef void (*peer_done)(void *arg, const struct peer_answer *answer);

/* https: TLS for https URLs, borrowed for life; NULL: the system's authorities, and no
 * certificate of our own. */
struct peer *peer_new(struct loop *loop, const struct worker_https *https, struct mr_error *err);
/* Requests that are open are answered with an error; waits for the thread, which does not block. */
void peer_free(struct peer **peer);
/* done runs on the loop, exactly once, never inside this call (but inside peer_free). */
void peer_send(struct peer *peer, const struct peer_request *request, peer_done done, void *arg);

/* Wait no longer for whoever has this URL: what is open there is answered with this error, a
 * literal. */
void peer_give_up(struct peer *peer, const char *base, const char *error);

char *peer_escape(const char *text); /* for one piece of a path; malloc'ed */
/* base, which may end in a slash, and path, which begins with one: malloc'ed. */
char *peer_url(const char *base, const char *path);

#endif
