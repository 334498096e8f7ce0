/* SPDX-License-Identifier: Apache-2.0 */
/* Open connections and how long each may stay as it is: libmicrohttpd limits inactivity only, so a
 * client that sends or reads a byte now and then would hold a connection for ever. Any thread; one
 * lock inside, never held while calling out. */
#ifndef WORKER_CONN_WATCH_H
#define WORKER_CONN_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn_watch;
struct conn_watched;

enum conn_phase {
    CONN_IDLE,    /* between requests, or before the first request line */
    CONN_READING, /* from the request line to the end of the body */
    CONN_WAITING, /* for the worker: no limit here, the request has its deadline */
    CONN_WRITING  /* the answer */
};

struct conn_watch_limits {
    /* Beyond it the connection that has been idle longest is shut, or the slowest reader. */
    size_t connections_max;
    int64_t ms[4]; /* by phase: how long it may last; 0 = for ever */
};

/* Aborts out of memory. */
struct conn_watch *conn_watch_new(const struct conn_watch_limits *limits);
void conn_watch_free(struct conn_watch **watch); /* every connection must be removed */

/* fd stays the caller's, open until conn_watch_remove. NULL: out of memory. May shut another
 * connection down. */
struct conn_watched *conn_watch_add(struct conn_watch *watch, int fd);
void conn_watch_remove(struct conn_watched **conn);
void conn_watch_phase(struct conn_watched *conn, enum conn_phase phase);

/* A note on the connection, kept for the HTTP thread that owns it: the client was answered before
 * it had sent all. */
void conn_watch_note_unread(struct conn_watched *conn);
bool conn_watch_unread(const struct conn_watched *conn);

/* Shut down (not close) every connection whose phase has lasted too long; gives how many. */
size_t conn_watch_sweep(struct conn_watch *watch, int64_t now_ms);
size_t conn_watch_count(struct conn_watch *watch);

#endif
