/* SPDX-License-Identifier: Apache-2.0 */
/* The cut wire: a thread that accepts for each port, connects on, and passes bytes both ways,
 * except in a direction that is cut. Bytes are then simply not read, so that windows close and
 * timeouts run as with a real cut; new connections are accepted by the kernel and answered by
 * nobody. */
#include "chaos/chaos_cut.h"

#include "chaos/chaos.h"
#include "chaos/chaos_route.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 256
#define TICK_MS 5
#define CHUNK 65536

struct pair {
    int near; /* the worker's end, -1: free */
    int far;
};

struct chaos_cut {
    pthread_t thread;
    atomic_bool ending;
    atomic_int ways;
    struct chaos_route route[CHAOS_ROUTES_MAX];
    int count;
    struct pair pair[PAIRS_MAX];
};

static void end_pair(struct pair *pair)
{
    close(pair->near);
    close(pair->far);
    pair->near = -1;
}

static struct pair *free_pair(struct chaos_cut *cut)
{
    for (int i = 0; i < PAIRS_MAX; i++)
        if (cut->pair[i].near < 0)
            return &cut->pair[i];
    return NULL;
}

static void accept_one(struct chaos_cut *cut, int at)
{
    struct pair *pair = free_pair(cut);
    int near, far;

    if (!chaos_route_accept(&cut->route[at], &near, &far))
        return;
    if (pair != NULL) {
        *pair = (struct pair){near, far};
        return;
    }
    close(near);
    close(far);
}

/* false: one end is gone. */
static bool pass(int from, int to)
{
    char data[CHUNK];
    ssize_t n = recv(from, data, sizeof(data), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t sent = 0, more; sent < n; sent += more) {
        more = send(to, data + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (more <= 0)
            return false;
    }
    return n > 0;
}

static size_t gather(const struct chaos_cut *cut, int ways, struct pollfd *fds)
{
    size_t count = 0;

    for (int i = 0; i < cut->count; i++)
        fds[count++] =
            (struct pollfd){(ways & CHAOS_OUT) == 0 ? cut->route[i].listener : -1, POLLIN, 0};
    for (int i = 0; i < PAIRS_MAX; i++) {
        bool used = cut->pair[i].near >= 0;

        fds[count++] =
            (struct pollfd){used && (ways & CHAOS_OUT) == 0 ? cut->pair[i].near : -1, POLLIN, 0};
        fds[count++] =
            (struct pollfd){used && (ways & CHAOS_IN) == 0 ? cut->pair[i].far : -1, POLLIN, 0};
    }
    return count;
}

static void serve(struct chaos_cut *cut, const struct pollfd *fds)
{
    const struct pollfd *of = fds + cut->count;

    for (int i = 0; i < PAIRS_MAX; i++, of += 2) {
        struct pair *pair = &cut->pair[i];
        bool lives = true;

        if (of[0].fd >= 0 && of[0].revents != 0)
            lives = pass(pair->near, pair->far);
        if (lives && of[1].fd >= 0 && of[1].revents != 0)
            lives = pass(pair->far, pair->near);
        if (!lives)
            end_pair(pair);
    }
    for (int i = 0; i < cut->count; i++)
        if (fds[i].fd >= 0 && fds[i].revents != 0)
            accept_one(cut, i);
}

static void *run(void *arg)
{
    struct chaos_cut *cut = arg;
    struct pollfd fds[CHAOS_ROUTES_MAX + 2 * PAIRS_MAX];

    while (!atomic_load(&cut->ending)) {
        size_t count = gather(cut, atomic_load(&cut->ways), fds);

        if (poll(fds, count, TICK_MS) > 0)
            serve(cut, fds);
    }
    return NULL;
}

static void end(void *arg)
{
    struct chaos_cut *cut = arg;

    atomic_store(&cut->ending, true);
    pthread_join(cut->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (cut->pair[i].near >= 0)
            end_pair(&cut->pair[i]);
    chaos_route_close(cut->route, cut->count);
    free(cut);
}

struct chaos_cut *chaos_cut_new(const int *ports)
{
    struct chaos_cut *cut = calloc(1, sizeof(*cut));

    assert_non_null(cut);
    for (int i = 0; i < PAIRS_MAX; i++)
        cut->pair[i].near = -1;
    cut->count = chaos_route_listen(cut->route, ports);
    assert_int_equal(pthread_create(&cut->thread, NULL, run, cut), 0);
    scratch_at_end(end, cut);
    return cut;
}

void chaos_cut_use(const struct chaos_cut *cut)
{
    chaos_route_use(cut == NULL ? NULL : cut->route, cut == NULL ? 0 : cut->count);
}

void chaos_cut_now(struct chaos_cut *cut, enum chaos_way ways)
{
    atomic_store(&cut->ways, (int)ways);
}
