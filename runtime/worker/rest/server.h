/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: libmicrohttpd in epoll mode on a thread of its own. Requests are read there (bounded in size and time),
 * answered on the worker's loop, and suspended in between; each has a deadline. The only file that knows microhttpd.h. */
#ifndef WORKER_REST_SERVER_H
#define WORKER_REST_SERVER_H

#include "worker/herder/herder.h"

struct server;

/* Bind every listener; MR_ERR_IO names address and reason ("port 8083 is in use: …"). Requests are answered 503 until
 * server_open. */
struct server *server_new(struct loop *loop, struct worker_config *config, struct mr_error *err);
void server_open(struct server *server, struct herder *herder);
/* No new requests; those under way are answered (503 where they wait); blocks for at most a second. */
void server_free(struct server **server);
int server_port(const struct server *server);   /* of the first listener */

#endif
