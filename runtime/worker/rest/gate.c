/* SPDX-License-Identifier: Apache-2.0 */
/* The gate between HTTP threads and the loop. HTTP threads put requests in and post one function
 * for all of them; the loop takes them out, a few at a turn, and posts again for the rest. The gate
 * outlives its server while such a post is on its way, hence the count of references: one is the
 * server's, one the post's. libmicrohttpd must not be stopped while a request is suspended, hence
 * `inside`, which counts each from before it is suspended until after it is resumed.
 *
 * A guard, a thread, looks at what waits once a second, as long as something does: should the
 * loop be stuck, requests get their answer all the same. What the loop has taken is the loop's. */
#include "worker/rest/gate.h"

#include "base/clock.h"
#include "base/thread.h"
#include "worker/rest/rest_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define GUARD_SECONDS 1

struct parted {
    int fd;
    struct parted *next;
};

struct gate {
    struct loop *loop;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    loop_fn opened; /* NULL: freed by the server */
    gate_late late;
    void *arg;
    pthread_t guard;
    pthread_cond_t looked_for; /* by the guard */
    bool parked;               /* the guard waits for something to look at */
    bool ending;
    unsigned refs;
    bool posted; /* a post is on its way to the loop */
    bool closed;
    struct exchange *first;
    struct exchange **last;
    struct parted *parted;
    size_t inside;
    size_t under_way;
};

/* --- the guard -------------------------------------------------------------------------------- */

/* Take out what is late; linked. Called with the lock held. */
static struct exchange *take_late(struct gate *gate, int64_t now_ms)
{
    struct exchange *late = NULL;

    for (struct exchange **at = &gate->first; *at != NULL;) {
        struct exchange *exchange = *at;

        if (exchange->deadline_ms > now_ms) {
            at = &exchange->next;
            continue;
        }
        *at = exchange->next;
        exchange->next = late;
        late = exchange;
    }
    gate->last = &gate->first;
    while (*gate->last != NULL)
        gate->last = &(*gate->last)->next;
    return late;
}

static void wait_for_work(struct gate *gate)
{
    struct timespec until;

    gate->parked = gate->first == NULL;
    while (gate->parked && !gate->ending)
        pthread_cond_wait(&gate->looked_for, &gate->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += GUARD_SECONDS;
    while (!gate->ending &&
           pthread_cond_timedwait(&gate->looked_for, &gate->lock, &until) != ETIMEDOUT)
        continue;
}

static void *guard(void *arg)
{
    struct gate *gate = arg;

    pthread_setname_np(pthread_self(), "rest-guard");
    pthread_mutex_lock(&gate->lock);
    while (!gate->ending) {
        struct exchange *late;

        wait_for_work(gate);
        late = take_late(gate, clock_ms());
        pthread_mutex_unlock(&gate->lock);
        while (late != NULL) {
            struct exchange *next = late->next;

            gate->late(gate->arg, late);
            late = next;
        }
        pthread_mutex_lock(&gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

static void stop_guard(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->ending = true;
    pthread_cond_signal(&gate->looked_for);
    pthread_mutex_unlock(&gate->lock);
    pthread_join(gate->guard, NULL);
}

/* --- life ------------------------------------------------------------------------------------- */

struct gate *gate_new(struct loop *loop, loop_fn opened, gate_late late, void *arg)
{
    struct gate *gate = calloc(1, sizeof(*gate));
    pthread_condattr_t monotonic;

    mr_assert(gate != NULL);
    *gate = (struct gate){.loop = loop, .opened = opened, .late = late, .arg = arg, .refs = 1};
    gate->last = &gate->first;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, &monotonic);
    pthread_cond_init(&gate->looked_for, &monotonic);
    pthread_condattr_destroy(&monotonic);
    mr_assert(thread_start(&gate->guard, guard, gate) == 0);
    return gate;
}

static void unref(struct gate *gate)
{
    bool gone;
    int fd;

    pthread_mutex_lock(&gate->lock);
    gone = --gate->refs == 0;
    pthread_mutex_unlock(&gate->lock);
    if (!gone)
        return;
    while ((fd = gate_take_parted(gate)) >= 0)
        close(fd);
    pthread_cond_destroy(&gate->changed);
    pthread_cond_destroy(&gate->looked_for);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

void gate_free(struct gate **gp)
{
    struct gate *gate = *gp;

    *gp = NULL;
    if (gate == NULL)
        return;
    stop_guard(gate);
    pthread_mutex_lock(&gate->lock);
    mr_assert(gate->inside == 0);
    gate->opened = NULL;
    pthread_mutex_unlock(&gate->lock);
    unref(gate);
}

static void on_post(void *arg)
{
    struct gate *gate = arg;
    loop_fn opened;

    pthread_mutex_lock(&gate->lock);
    gate->posted = false;
    opened = gate->opened;
    pthread_mutex_unlock(&gate->lock);
    if (opened != NULL)
        opened(gate->arg);
    unref(gate);
}

/* Called with the lock held; says whether `post` must follow once it is released. */
static bool must_post(struct gate *gate)
{
    bool first = !gate->posted;

    gate->posted = true;
    gate->refs += first;
    return first;
}

static void post(struct gate *gate)
{
    /* The loop lives longer than the server: this fails for want of memory only. */
    mr_assert(loop_post(gate->loop, on_post, gate) == 0);
}

bool gate_enter(struct gate *gate)
{
    bool open;

    pthread_mutex_lock(&gate->lock);
    open = !gate->closed;
    gate->inside += open;
    pthread_mutex_unlock(&gate->lock);
    return open;
}

void gate_pass(struct gate *gate, struct exchange *exchange)
{
    bool first;

    exchange->next = NULL;
    pthread_mutex_lock(&gate->lock);
    *gate->last = exchange;
    gate->last = &exchange->next;
    first = must_post(gate);
    pthread_cond_signal(&gate->changed);
    if (gate->parked)
        pthread_cond_signal(&gate->looked_for);
    gate->parked = false;
    pthread_mutex_unlock(&gate->lock);
    if (first)
        post(gate);
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->inside--;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void gate_part(struct gate *gate, int fd)
{
    struct parted *parted = malloc(sizeof(*parted));
    bool first;

    if (parted == NULL) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&gate->lock);
    *parted = (struct parted){.fd = fd, .next = gate->parted};
    gate->parted = parted;
    first = must_post(gate);
    pthread_mutex_unlock(&gate->lock);
    if (first)
        post(gate);
}

void gate_begin(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->under_way++;
    pthread_mutex_unlock(&gate->lock);
}

void gate_end(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->under_way--;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

struct exchange *gate_take(struct gate *gate, size_t max)
{
    struct exchange *first, **end;
    bool more = false;

    pthread_mutex_lock(&gate->lock);
    first = gate->first;
    for (end = &gate->first; *end != NULL && max > 0; max--)
        end = &(*end)->next;
    if (*end == NULL) {
        gate->first = NULL;
        gate->last = &gate->first;
    } else if (end != &gate->first) {
        gate->first = *end;
        *end = NULL;
        more = must_post(gate);
    }
    pthread_mutex_unlock(&gate->lock);
    if (more)
        post(gate);
    return first;
}

int gate_take_parted(struct gate *gate)
{
    struct parted *parted;
    int fd = -1;

    pthread_mutex_lock(&gate->lock);
    parted = gate->parted;
    if (parted != NULL)
        gate->parted = parted->next;
    pthread_mutex_unlock(&gate->lock);
    if (parted != NULL)
        fd = parted->fd;
    free(parted);
    return fd;
}

void gate_close(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->closed = true;
    pthread_mutex_unlock(&gate->lock);
}

bool gate_drained(struct gate *gate, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    bool done;

    pthread_mutex_lock(&gate->lock);
    done = gate->inside == 0 && (gate->under_way == 0 || clock_ms() >= until_ms);
    if (!done && gate->first == NULL)
        pthread_cond_timedwait(&gate->changed, &gate->lock, &until);
    pthread_mutex_unlock(&gate->lock);
    return done;
}
