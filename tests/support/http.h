/* SPDX-License-Identifier: Apache-2.0 */
/* A plain HTTP client. */
#ifndef TESTS_HTTP_H
#define TESTS_HTTP_H

#include <jansson.h>
#include <stddef.h>

/* An answer. Everything in it lives until the test ends. */
struct http_reply {
    int status;       /* 0: no answer (refused, cut off, 30 s over) */
    const char *body; /* NUL-terminated; never NULL */
    size_t len;
    const char *content_type; /* "" none */
    const char *location;     /* "" none */
    const json_t *json;       /* the body parsed, NULL when it is no JSON */
    double seconds;           /* that it took */
};

/* body: text of type application/json, or NULL for a request without one. */
struct http_reply http_call(const char *method, const char *url, const char *body);
struct http_reply http_get(const char *url);

/* The text at a path such as "tasks.0.state" of objects and arrays; numbers, true, false and null
 * as JSON writes them; "" when nothing is there. Lives until the test ends. */
const char *http_at(const json_t *json, const char *path);

#endif
