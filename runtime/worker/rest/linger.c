/* SPDX-License-Identifier: Apache-2.0 */
/* Reads dry what refused clients still send. The server hands over a duplicate of the socket just
 * before its HTTP library closes its own; the answer is written and the write side shut by then.
 * Runs on the worker's loop in slices of at most SLICE reads, so that a client that floods delays
 * nobody. */
#include "worker/rest/linger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SLICE 16
#define SLICE_BYTES 65536

struct linger_socket {
    struct linger_set *set;
    int fd;
    struct loop_fd *watch;
    struct loop_timer deadline;
    int64_t left_bytes;
    struct linger_socket *next;
    struct linger_socket **prev;
};

static void end(struct linger_socket *l)
{
    loop_timer_cancel(&l->deadline);
    loop_fd_remove(&l->watch);
    close(l->fd);
    *l->prev = l->next;
    if (l->next != NULL)
        l->next->prev = l->prev;
    l->set->count--;
    free(l);
}

static void deadline_passed(void *arg)
{
    end(arg);
}

static void readable(void *arg, uint32_t events)
{
    struct linger_socket *l = arg;
    char dropped[SLICE_BYTES];

    (void)events;
    for (int i = 0; i < SLICE; i++) {
        ssize_t n = recv(l->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || (l->left_bytes -= n) <= 0) {
            end(l);
            return;
        }
    }
}

void linger_add(struct linger_set *set, int fd)
{
    struct linger_socket *l = set->count < LINGER_MAX ? calloc(1, sizeof(*l)) : NULL;

    if (l != NULL)
        *l = (struct linger_socket){.set = set, .fd = fd, .left_bytes = LINGER_BYTES};
    if (l == NULL || (l->watch = loop_fd_add(set->loop, fd, EPOLLIN, readable, l, NULL)) == NULL) {
        free(l);
        close(fd);
        return;
    }
    l->next = set->first;
    l->prev = &set->first;
    if (set->first != NULL)
        set->first->prev = &l->next;
    set->first = l;
    set->count++;
    loop_timer_start(set->loop, &l->deadline, LINGER_MS, deadline_passed, l);
}

void linger_close_all(struct linger_set *set)
{
    while (set->first != NULL)
        end(set->first);
}
