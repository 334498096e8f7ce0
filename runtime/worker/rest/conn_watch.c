/* SPDX-License-Identifier: Apache-2.0 */
/* The table of open connections. HTTP threads add, remove and move them through their phases; a
 * timer on the worker's loop sweeps. A connection that is overdue is shut down: its HTTP thread
 * sees a hang-up and closes it, which removes it here. The descriptor stays valid for that long
 * since the HTTP thread removes before it closes. Invariant: a listed connection's descriptor is
 * open. */
#include "worker/rest/conn_watch.h"

#include "base/clock.h"
#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

struct conn_watched {
    struct conn_watch *watch;
    int fd;
    enum conn_phase phase;
    int64_t since_ms; /* when the phase began */
    bool shut;
    bool unread; /* the HTTP thread's alone */
    struct conn_watched *next;
    struct conn_watched **prev;
};

struct conn_watch {
    struct conn_watch_limits limits;
    pthread_mutex_t lock; /* guards everything below and every conn_watched but its note */
    struct conn_watched *first;
    size_t count;
};

struct conn_watch *conn_watch_new(const struct conn_watch_limits *limits)
{
    struct conn_watch *watch = calloc(1, sizeof(*watch));

    mr_assert(watch != NULL);
    watch->limits = *limits;
    pthread_mutex_init(&watch->lock, NULL);
    return watch;
}

void conn_watch_free(struct conn_watch **wp)
{
    struct conn_watch *watch = *wp;

    *wp = NULL;
    if (watch == NULL)
        return;
    mr_assert(watch->first == NULL);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static void shut(struct conn_watched *conn)
{
    conn->shut = true;
    shutdown(conn->fd, SHUT_RDWR);
}

/* Room for one more: the connection that does nothing for longest goes, then the one that sends its
 * request slowest. */
static void evict(struct conn_watch *watch)
{
    struct conn_watched *victim = NULL;

    for (struct conn_watched *conn = watch->first; conn != NULL; conn = conn->next) {
        if (conn->shut || conn->phase > CONN_READING)
            continue;
        if (victim == NULL || conn->phase < victim->phase ||
            (conn->phase == victim->phase && conn->since_ms < victim->since_ms))
            victim = conn;
    }
    if (victim != NULL)
        shut(victim);
}

struct conn_watched *conn_watch_add(struct conn_watch *watch, int fd)
{
    struct conn_watched *conn = calloc(1, sizeof(*conn));

    if (conn == NULL)
        return NULL;
    *conn =
        (struct conn_watched){.watch = watch, .fd = fd, .phase = CONN_IDLE, .since_ms = clock_ms()};
    pthread_mutex_lock(&watch->lock);
    if (watch->count >= watch->limits.connections_max)
        evict(watch);
    conn->next = watch->first;
    conn->prev = &watch->first;
    if (watch->first != NULL)
        watch->first->prev = &conn->next;
    watch->first = conn;
    watch->count++;
    pthread_mutex_unlock(&watch->lock);
    return conn;
}

void conn_watch_remove(struct conn_watched **cp)
{
    struct conn_watched *conn = *cp;

    *cp = NULL;
    if (conn == NULL)
        return;
    pthread_mutex_lock(&conn->watch->lock);
    *conn->prev = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    conn->watch->count--;
    pthread_mutex_unlock(&conn->watch->lock);
    free(conn);
}

void conn_watch_phase(struct conn_watched *conn, enum conn_phase phase)
{
    if (conn == NULL)
        return;
    pthread_mutex_lock(&conn->watch->lock);
    conn->phase = phase;
    conn->since_ms = clock_ms();
    pthread_mutex_unlock(&conn->watch->lock);
}

void conn_watch_note_unread(struct conn_watched *conn)
{
    if (conn != NULL)
        conn->unread = true;
}

bool conn_watch_unread(const struct conn_watched *conn)
{
    return conn != NULL && conn->unread;
}

size_t conn_watch_sweep(struct conn_watch *watch, int64_t now_ms)
{
    size_t count = 0;

    pthread_mutex_lock(&watch->lock);
    for (struct conn_watched *conn = watch->first; conn != NULL; conn = conn->next) {
        int64_t limit_ms = watch->limits.ms[conn->phase];

        if (conn->shut || limit_ms == 0 || now_ms - conn->since_ms < limit_ms)
            continue;
        shut(conn);
        count++;
    }
    pthread_mutex_unlock(&watch->lock);
    return count;
}

size_t conn_watch_count(struct conn_watch *watch)
{
    size_t count;

    pthread_mutex_lock(&watch->lock);
    count = watch->count;
    pthread_mutex_unlock(&watch->lock);
    return count;
}
