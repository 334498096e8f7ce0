/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop on epoll: descriptors, a heap of timers, and functions posted by other threads over
 * an eventfd.
 *
 * One round: wait, serve descriptors, run timers that are due, run what was posted. A watch that is
 * removed while its round is served is only marked dead, and freed at the round's end, so that an
 * event for it that the kernel has already reported finds nothing to call. Owner: the thread that
 * calls loop_run (before that: its creator). */
#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PER_ROUND 64

struct loop_fd {
    struct loop *loop;
    int fd;
    uint32_t events;
    loop_fd_fn fn; /* NULL: removed */
    void *arg;
    struct loop_fd *next_dead;
};

struct posted {
    loop_fn fn;
    void *arg;
    struct posted *next;
};

struct loop {
    int epoll;
    int wake_fd;
    struct loop_fd *wake;
    bool stopped;
    pthread_t owner;
    int64_t now_ms;
    struct loop_timer **heap; /* heap[1..timers], by due_ms */
    size_t timers;
    size_t heap_cap;
    struct loop_fd *dead;
    pthread_mutex_t lock; /* guards first, last, closed */
    struct posted *first;
    struct posted **last;
    bool closed;
};

void loop_assert_owner(const struct loop *loop)
{
    mr_assert(pthread_equal(loop->owner, pthread_self()));
}

int64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_ms;
}

/* --- timers: a binary heap, each timer knows its slot ----------------------------------------- */

static void heap_put(struct loop *loop, size_t slot, struct loop_timer *timer)
{
    loop->heap[slot] = timer;
    timer->slot = slot;
}

static void heap_up(struct loop *loop, size_t slot)
{
    struct loop_timer *timer = loop->heap[slot];

    for (; slot > 1 && loop->heap[slot / 2]->due_ms > timer->due_ms; slot /= 2)
        heap_put(loop, slot, loop->heap[slot / 2]);
    heap_put(loop, slot, timer);
}

static void heap_down(struct loop *loop, size_t slot)
{
    struct loop_timer *timer = loop->heap[slot];

    for (;;) {
        size_t child = slot * 2;

        if (child < loop->timers && loop->heap[child + 1]->due_ms < loop->heap[child]->due_ms)
            child++;
        if (child > loop->timers || loop->heap[child]->due_ms >= timer->due_ms)
            break;
        heap_put(loop, slot, loop->heap[child]);
        slot = child;
    }
    heap_put(loop, slot, timer);
}

void loop_timer_cancel(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    size_t slot = timer->slot;
    struct loop_timer *last;

    if (slot == 0)
        return;
    loop_assert_owner(loop);
    last = loop->heap[loop->timers--];
    timer->slot = 0;
    if (last == timer)
        return;
    heap_put(loop, slot, last);
    heap_up(loop, slot);
    heap_down(loop, last->slot);
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms, loop_fn fn,
                      void *arg)
{
    loop_assert_owner(loop);
    loop_timer_cancel(timer);
    timer->loop = loop;
    timer->fn = fn;
    timer->arg = arg;
    timer->due_ms = clock_ms() + (delay_ms > 0 ? delay_ms : 0);
    if (loop->timers + 2 > loop->heap_cap) {
        loop->heap_cap = loop->heap_cap == 0 ? 32 : loop->heap_cap * 2;
        loop->heap = realloc(loop->heap, loop->heap_cap * sizeof(struct loop_timer *));
        mr_assert(loop->heap != NULL);
    }
    loop->heap[++loop->timers] = timer;
    heap_up(loop, loop->timers);
}

/* A timer that a due one arms anew with no delay waits for the next round: no round is endless. */
static void run_timers(struct loop *loop)
{
    int64_t now = loop->now_ms;

    for (size_t left = loop->timers; left > 0 && loop->timers > 0; left--) {
        struct loop_timer *timer = loop->heap[1];

        if (timer->due_ms > now)
            break;
        loop_timer_cancel(timer);
        timer->fn(timer->arg);
    }
}

static int wait_ms(const struct loop *loop)
{
    int64_t ms;

    if (loop->timers == 0)
        return -1;
    ms = loop->heap[1]->due_ms - clock_ms();
    return ms <= 0 ? 0 : ms > 3600000 ? 3600000 : (int)ms;
}

/* --- descriptors ------------------------------------------------------------------------------ */

struct loop_fd *loop_fd_add(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg,
                            struct mr_error *err)
{
    struct loop_fd *watch = calloc(1, sizeof(*watch));
    struct epoll_event ev = {.events = events};

    loop_assert_owner(loop);
    if (watch == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
        return NULL;
    }
    ev.data.ptr = watch;
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
        err_errno(err, "cannot watch descriptor %d", fd);
        free(watch);
        return NULL;
    }
    *watch = (struct loop_fd){.loop = loop, .fd = fd, .events = events, .fn = fn, .arg = arg};
    return watch;
}

/* With 0 the descriptor leaves epoll altogether: a hang-up would be reported again and again
 * otherwise. */
void loop_fd_events(struct loop_fd *watch, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = watch};
    int op = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    loop_assert_owner(watch->loop);
    if (events == watch->events)
        return;
    epoll_ctl(watch->loop->epoll, op, watch->fd, &ev);
    watch->events = events;
}

void loop_fd_remove(struct loop_fd **wp)
{
    struct loop_fd *watch = *wp;

    *wp = NULL;
    if (watch == NULL)
        return;
    loop_fd_events(watch, 0);
    watch->fn = NULL;
    watch->next_dead = watch->loop->dead;
    watch->loop->dead = watch;
}

static void bury_watches(struct loop *loop)
{
    while (loop->dead != NULL) {
        struct loop_fd *watch = loop->dead;

        loop->dead = watch->next_dead;
        free(watch);
    }
}

/* --- posted functions ------------------------------------------------------------------------- */

int loop_post(struct loop *loop, loop_fn fn, void *arg)
{
    struct posted *p = malloc(sizeof(*p));
    uint64_t one = 1;
    bool closed;

    if (p == NULL)
        return MR_ERR_NOMEM;
    *p = (struct posted){.fn = fn, .arg = arg};
    pthread_mutex_lock(&loop->lock);
    closed = loop->closed;
    if (!closed) {
        *loop->last = p;
        loop->last = &p->next;
        /* Inside the lock: after loop_free took it, nobody touches the descriptor. A full counter
         * wakes as well. */
        if (write(loop->wake_fd, &one, sizeof(one)) < 0)
            mr_assert(errno == EAGAIN);
    }
    pthread_mutex_unlock(&loop->lock);
    if (closed)
        free(p);
    return closed ? MR_ERR_CLOSED : 0;
}

static struct posted *take_posted(struct loop *loop)
{
    struct posted *first;

    pthread_mutex_lock(&loop->lock);
    first = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    pthread_mutex_unlock(&loop->lock);
    return first;
}

static bool run_posted(struct loop *loop)
{
    struct posted *p = take_posted(loop);
    bool any = p != NULL;

    while (p != NULL) {
        struct posted *next = p->next;

        p->fn(p->arg);
        free(p);
        p = next;
    }
    return any;
}

static void drain_wake(void *arg, uint32_t events)
{
    struct loop *loop = arg;
    uint64_t count;

    (void)events;
    if (read(loop->wake_fd, &count, sizeof(count)) < 0)
        mr_assert(errno == EAGAIN || errno == EINTR);
}

/* --- life ------------------------------------------------------------------------------------- */

struct loop *loop_new(struct mr_error *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    mr_assert(loop != NULL);
    loop->owner = pthread_self();
    loop->now_ms = clock_ms();
    loop->last = &loop->first;
    pthread_mutex_init(&loop->lock, NULL);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll < 0 || loop->wake_fd < 0) {
        err_errno(err, "cannot make an event loop");
    } else {
        loop->wake = loop_fd_add(loop, loop->wake_fd, EPOLLIN, drain_wake, loop, err);
        if (loop->wake != NULL)
            return loop;
    }
    loop_free(&loop);
    return NULL;
}

void loop_free(struct loop **lp)
{
    struct loop *loop = *lp;

    *lp = NULL;
    if (loop == NULL)
        return;
    pthread_mutex_lock(&loop->lock);
    loop->closed = true;
    pthread_mutex_unlock(&loop->lock);
    while (run_posted(loop))
        continue;
    loop->owner = pthread_self();
    loop_fd_remove(&loop->wake);
    bury_watches(loop);
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    pthread_mutex_destroy(&loop->lock);
    free(loop->heap);
    free(loop);
}

void loop_run(struct loop *loop)
{
    struct epoll_event events[EVENTS_PER_ROUND];

    loop->owner = pthread_self();
    loop->stopped = false;
    while (!loop->stopped) {
        int n = epoll_wait(loop->epoll, events, EVENTS_PER_ROUND, wait_ms(loop));

        mr_assert(n >= 0 || errno == EINTR);
        loop->now_ms = clock_ms();
        for (int i = 0; i < n; i++) {
            struct loop_fd *watch = events[i].data.ptr;

            if (watch->fn != NULL)
                watch->fn(watch->arg, events[i].events);
        }
        run_timers(loop);
        run_posted(loop);
        bury_watches(loop);
    }
}

void loop_stop(struct loop *loop)
{
    loop_assert_owner(loop);
    loop->stopped = true;
}
