/* SPDX-License-Identifier: Apache-2.0 */
/* From a request's first line and headers to the row that answers it. Pure; any thread.
 * Spec: what Jetty 12 and Jersey do with the targets, methods and media types of Kafka Connect's
 * API. */
#ifndef WORKER_ROUTER_H
#define WORKER_ROUTER_H

#include "base/err.h"

#define ROUTER_SEGMENTS 6 /* of a path; no route is longer */
#define ROUTER_QUERY 32   /* parameters kept; more are ignored */
#define ROUTER_VARS 2
#define ROUTER_TARGET_MAX 8192 /* bytes; beyond it the server answers 414 */

struct call;

enum route_flags {
    ROUTE_ANY_TYPE = 1, /* any request Content-Type passes */
    ROUTE_ALWAYS = 2,   /* answered while the worker knows of no connectors yet */
    ROUTE_CHANGE = 4,   /* waits for the herder: counts against the cap of waiting changes */
    ROUTE_SIGNED = 8    /* between workers: signed, so that no user is asked for */
};

enum route_body {
    ROUTE_NO_BODY, /* what is sent is read and dropped */
    ROUTE_CREATE,  /* {"name","config","initial_state"} */
    ROUTE_CONFIG,  /* a map of text */
    ROUTE_OFFSETS, /* {"offsets"} */
    ROUTE_RAW      /* kept as it is */
};

/* One operation of the API. Patterns hold `{c}` (any text) and `{t}` (a 32-bit integer, else
 * 404). */
struct route {
    const char *method;
    const char *pattern;
    unsigned flags; /* enum route_flags */
    enum route_body body;
    int64_t deadline_ms;            /* from the full request to its answer */
    void (*run)(struct call *call); /* on the worker's loop */
};

struct router_pair {
    const char *key;
    const char *value;
};

/* A request target taken apart: segments decoded, matrix parameters cut off, one trailing slash
 * dropped. */
struct router_target {
    char *sent;           /* owned: path and query as the client spelled them */
    char *text;           /* owned; the pointers lead into it */
    size_t segment_count; /* may exceed ROUTER_SEGMENTS: then nothing matches */
    const char *segment[ROUTER_SEGMENTS];
    const char *refused; /* what a segment holds that router_check_path may refuse; NULL nothing */
    size_t query_count;
    struct router_pair query[ROUTER_QUERY];
};

/* raw: the target as sent, NUL-terminated. MR_ERR_PROTOCOL (what is wrong with the path) or
 * MR_ERR_NOMEM; out needs no deinit then. */
int router_parse(struct router_target *out, const char *raw, struct mr_error *err);
void router_deinit(struct router_target *target);

/* Why no target can have this text as a segment; NULL: one can. As on the Java worker, a
 * connector may have such a name. */
const char *router_unreachable(const char *name);

/* The first value of a query parameter: "true" in any case is true, another value false, an
 * empty or absent one takes the default. */
bool router_flag(const struct router_target *target, const char *key, bool otherwise);

struct router_match {
    const struct route *route; /* set when status is 0 */
    int status;                /* 0: run the route; 200: OPTIONS, answered by `allow`; 404; 405 */
    const char *var[ROUTER_VARS]; /* what `{c}` and `{t}` stand for, in order */
    char allow[64];               /* "HEAD, GET, OPTIONS" */
};

void router_match(const struct route *routes, size_t count, const char *method,
                  const struct router_target *target, struct router_match *out);

/* May this path be asked for? MR_ERR_PROTOCOL: only by another worker, whose connector is called
 * so. */
int router_check_path(const struct router_target *target, const struct router_match *match,
                      struct mr_error *err);

enum router_type {
    ROUTER_TYPE_NONE,
    ROUTER_TYPE_JSON,
    ROUTER_TYPE_WILD,
    ROUTER_TYPE_OTHER,
    ROUTER_TYPE_BAD
};

/* Content-Type header, NULL = none. WILD: `application` or any type with `*` as subtype. */
enum router_type router_type(const char *content_type);

/* Does an Accept header (a list of media ranges) take this type? An empty one takes everything. */
bool router_accepts(const char *accept, const char *type, const char *subtype);

/* What stands against running the matched route, from the headers alone: 0, 400, 404, 406 or
 * 415. */
int router_check(const struct router_match *match, bool accepts_json, enum router_type type);

/* A task's id as in Java's Integer.parseInt. */
bool router_task(const char *text, int *out);

#endif
