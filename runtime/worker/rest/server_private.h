/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c (daemons, connections, start and end), server_request.c (one request) and
 * server_framing.c (its head) share; nobody else sees libmicrohttpd. */
#ifndef WORKER_SERVER_PRIVATE_H
#define WORKER_SERVER_PRIVATE_H

#include "worker/rest/conn_watch.h"
#include "worker/rest/gate.h"
#include "worker/rest/linger.h"
#include "worker/rest/rest_auth.h"
#include "worker/rest/rest_filter.h"
#include "worker/rest/rest_headers.h"
#include "worker/rest/rest_private.h"
#include "worker/rest/server.h"
#include "worker/worker_https.h"

#include <microhttpd.h>
#include <stdatomic.h>

/* One listener: who is let in there, and to what. */
struct front {
    struct server *server;
    struct MHD_Daemon *daemon;
    const struct worker_https *https; /* NULL: plain HTTP */
    bool admin;                       /* serves /admin and nothing else, to everybody */
};

struct server {
    struct loop *loop;
    struct server_limits limits;
    struct front fronts[2 * WORKER_CONFIG_LISTENERS];
    size_t front_count;
    int port;                        /* of the first listener */
    struct worker_https https;       /* of `listeners` */
    struct worker_https admin_https; /* of `admin.listeners` */
    bool admin_apart;                /* /admin is not served by `listeners` */
    struct rest_headers *headers;
    struct rest_auth *auth;     /* NULL: everybody is let in */
    struct rest_filter *filter; /* NULL: everything is let through */
    char worker_id[264];
    struct gate *gate;
    struct conn_watch *watch;
    struct call_desk desk;
    struct linger_set lingering;
    struct loop_timer sweep;
    atomic_size_t body_bytes; /* of all requests */
    bool forwards;            /* to other workers: bodies are kept until the answer */
};

/* Callbacks of a daemon, on its HTTP thread; arg of the first: struct front. */
void *server_request_begin(void *arg, const char *raw, struct MHD_Connection *connection);
enum MHD_Result server_request_feed(void *arg, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *len, void **context);
void server_request_end(void *arg, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how);

/* A request's first line, where libmicrohttpd has it. */
struct server_head {
    const char *method, *target, *version;
    size_t target_len; /* as sent */
};

/* Why the request's head may mean something else to others, for its 400; NULL: it does not. */
const char *server_framing_fault(struct MHD_Connection *connection, const struct server_head *head);

/* Its answer is there: the HTTP thread goes on with it. Thread: the loop. */
void server_request_resume(struct exchange *exchange);

#endif
