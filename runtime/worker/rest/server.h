/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: libmicrohttpd in epoll mode on a thread of its own. Requests are read there
 * (bounded in size and time), answered on the worker's loop, and suspended in between; each has a
 * deadline. The only file that knows microhttpd.h. */
#ifndef WORKER_REST_SERVER_H
#define WORKER_REST_SERVER_H

#include "worker/herder/herder.h"

struct server;

/* Bounds of everything that clients make grow. server_limits holds what a worker runs with; tests
 * take less. */
struct server_limits {
    /* Lowered to half of RLIMIT_NOFILE; beyond it idle connections are closed. */
    size_t connections_max;
    size_t changes_max;      /* changes that wait for the herder; beyond it 503 */
    size_t body_bytes_max;   /* of one request; beyond it 413 */
    size_t bodies_bytes_max; /* of all requests under way; beyond it 503 */
    int64_t deadline_max_ms; /* shortens the routes' own deadlines; 0 = as they are */
    int64_t idle_ms;         /* a connection without a request */
    int64_t reading_ms;      /* from a request's first line to its end */
    int64_t writing_ms;      /* an answer */
    int64_t sweep_ms;        /* how often the three above are looked after */
};
extern const struct server_limits server_limits;

/* Bind every listener of config and start to answer; fills config->worker_id with the advertised
 * host:port. MR_ERR_IO names address, reason and remedy ("port 8083 is in use: …"), MR_ERR_CONFIG
 * the property. Until server_open every request is answered 503.
 * Thread: the loop's owner; blocks for name look-ups. loop and config must outlive the server. */
struct server *server_new(struct loop *loop, struct worker_config *config, struct mr_error *err);
struct server *server_new_limited(struct loop *loop, struct worker_config *config,
                                  const struct server_limits *limits, struct mr_error *err);

/* From here on requests are given to the herder, which must outlive the server; but for /health
 * once it is readable, till then they are answered 503. Thread: the loop's owner. */
void server_open(struct server *server, struct herder *herder);

/* From here on the herder is asked nothing: what waits is answered 503, and so is what still comes.
 * The herder may still call back for changes it was given. Does not block. Thread: the loop's
 * owner. */
void server_close(struct server *server);

/* As server_close, and ends: waits for at most a second until the answers under way are sent. The
 * herder must live until it is done with the changes it was given. Thread: the loop's owner. */
void server_free(struct server **server);
int server_port(const struct server *server); /* of the first listener */

#endif
