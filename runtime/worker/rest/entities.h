/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: status, body and headers, and the bodies that the REST room makes itself. Pure.
 * Spec: org.apache.kafka.connect.runtime.rest.entities, errors.ConnectExceptionMapper. */
#ifndef WORKER_ENTITIES_H
#define WORKER_ENTITIES_H

#include "base/json.h"

#define ENTITIES_JSON "application/json"

/* Zeroed before first use. Owner: whoever holds the exchange (rest_private.h). */
struct answer {
    int status; /* 0: not answered yet */
    char *body; /* malloc'ed; NULL: none */
    size_t len;
    const char *type; /* static; NULL without a body */
    char *location;   /* malloc'ed, or NULL */
    bool allow;       /* an Allow header with the match's methods */
};

void entities_deinit(struct answer *answer);

/* The HTTP status that an error of the runtime stands for: CONFIG and PROTOCOL 400, NOT_FOUND
 * 404, EXISTS and STATE 409, TOO_LARGE 413, CLOSED and FULL 503, all others 500. */
int entities_status(int code);

/* Each fills an answer that is empty so far; what can't be made (no memory) becomes a bodiless
 * 500. */
void entities_empty(struct answer *out, int status);
/* Body NULL: out of memory. */
void entities_json(struct answer *out, int status, const json_t *body);
/* JSON that is there as text: taken out of it. */
void entities_json_text(struct answer *out, int status, struct buf *text);
/* {"error_code","message"}. */
void entities_error(struct answer *out, int status, const char *message);
void entities_failed(struct answer *out, const struct mr_error *err);
/* "HTTP 404 Not Found", as Jersey words it. */
void entities_http_error(struct answer *out, int status);
void entities_health(struct answer *out, int status, const char *health, const char *message);
/* A text, in the words of a filter that knows no JSON. type: static. */
void entities_text(struct answer *out, int status, const char *text, const char *type);
void entities_options(struct answer *out, const char *allow, bool text);

/* Absolute URL of a connector, for Location. base: "http://name:port". malloc'ed; NULL out of
 * memory. */
char *entities_location(const char *base, const char *conn);

#endif
