/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop: descriptors (epoll), timers, and messages from other threads. Everything but
 * loop_post belongs to the thread that runs it. Own code instead of libuv: three kinds of event are
 * all we need, and closing is immediate. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include "base/err.h"

struct loop;
struct loop_fd;

typedef void (*loop_fd_fn)(void *arg, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR */
typedef void (*loop_fn)(void *arg);

/* Embedded in its owner; zeroed before first use. */
struct loop_timer {
    struct loop *loop;
    loop_fn fn;
    void *arg;
    int64_t due_ms; /* monotonic */
    size_t slot;    /* 1-based place in the loop's heap; 0 = not armed */
};

struct loop *loop_new(struct mr_error *err);
void loop_free(struct loop **loop); /* posted functions that did not run are run */
void loop_run(struct loop *loop);   /* until loop_stop; the calling thread becomes the owner */
void loop_stop(struct loop *loop);  /* from the owner */
void loop_assert_owner(const struct loop *loop);
int64_t loop_now_ms(const struct loop *loop); /* monotonic, as of this round */

struct loop_fd *loop_fd_add(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg,
                            struct mr_error *err);
/* change what is waited for; 0 = nothing for now */
void loop_fd_events(struct loop_fd *watch, uint32_t events);
void loop_fd_remove(struct loop_fd **watch); /* safe inside its own callback; does not close fd */

/* (Re)arm: fn runs once, in delay_ms. Cancel is safe at any time. */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms, loop_fn fn,
                      void *arg);
void loop_timer_cancel(struct loop_timer *timer);

/* Run fn(arg) on the loop's thread, in order of posting. Any thread. 0, or MR_ERR_CLOSED after
 * loop_free began.
 * Unbounded: callers bound what they have in flight. */
int loop_post(struct loop *loop, loop_fn fn, void *arg);

#endif
