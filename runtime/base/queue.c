/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded, closable ring of pointers under one mutex. Any thread pushes or pops; nothing is
 * called while it is locked. */
#include "base/queue.h"

#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    void **items;
    size_t capacity;
    size_t head;
    size_t count;
    bool closed;
};

struct queue *queue_new(size_t capacity)
{
    struct queue *q = calloc(1, sizeof(*q));
    pthread_condattr_t attr;

    mr_assert(q != NULL && capacity > 0);
    q->items = calloc(capacity, sizeof(*q->items));
    mr_assert(q->items != NULL);
    q->capacity = capacity;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->filled, &attr);
    pthread_condattr_destroy(&attr);
    return q;
}

void queue_free(struct queue **qp, void (*free_item)(void *))
{
    struct queue *q = *qp;

    *qp = NULL;
    if (q == NULL)
        return;
    for (; q->count > 0; q->count--, q->head = (q->head + 1) % q->capacity)
        if (free_item != NULL)
            free_item(q->items[q->head]);
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
    free(q->items);
    free(q);
}

int queue_push(struct queue *q, void *item)
{
    int rc = 0;

    pthread_mutex_lock(&q->lock);
    if (q->closed)
        rc = MR_ERR_CLOSED;
    else if (q->count == q->capacity)
        rc = MR_ERR_FULL;
    else
        q->items[(q->head + q->count++) % q->capacity] = item;
    pthread_mutex_unlock(&q->lock);
    if (rc == 0)
        pthread_cond_signal(&q->filled);
    return rc;
}

static void deadline_in(struct timespec *ts, int64_t ms)
{
    clock_gettime(CLOCK_MONOTONIC, ts);
    ts->tv_sec += ms / 1000;
    ts->tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts->tv_nsec >= 1000000000) {
        ts->tv_sec++;
        ts->tv_nsec -= 1000000000;
    }
}

void *queue_pop(struct queue *q, int64_t timeout_ms)
{
    struct timespec until;
    void *item = NULL;
    int rc = 0;

    if (timeout_ms >= 0)
        deadline_in(&until, timeout_ms);
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed && rc != ETIMEDOUT)
        rc = timeout_ms < 0 ? pthread_cond_wait(&q->filled, &q->lock)
                            : pthread_cond_timedwait(&q->filled, &q->lock, &until);
    if (q->count > 0) {
        item = q->items[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->count--;
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
    pthread_cond_broadcast(&q->filled);
}
