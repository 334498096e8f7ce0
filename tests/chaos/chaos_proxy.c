/* SPDX-License-Identifier: Apache-2.0 */
/* The wire that knows Kafka: a thread that passes requests and answers between workers and brokers,
 * each connection over one of its own, and looks at the first bytes of each.
 *
 *   near (worker) ─out─► judged: passed, held, or the end of the connection ─► far (broker)
 *                 ◄──────────────────── in: answers that are waited for ◄─────
 *
 * A held request holds all behind it on its connection, as TCP would, and outlives its sender: a
 * client that gave up has closed, and the broker has not read it yet. It goes on when the answer to
 * a later AddPartitionsToTxn of the same id has passed elsewhere: then a later transaction is open,
 * and the late EndTxn must not be able to end it. What the broker answers to that is counted.
 *
 * Nothing here ever blocks: a frozen worker reads nothing, and the others go on. The lock is held
 * by the thread for a round over all connections, and by commands. */
#include "chaos/chaos_proxy.h"

#include "chaos/chaos.h"
#include "chaos/chaos_route.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 2048
#define WAY_BYTES 65536
#define HEAD_BYTES 512  /* of a request: what has its kind and whose it is */
#define ANSWER_BYTES 14 /* length, correlation, throttle time, error */
#define ID_BYTES 200
#define TICK_MS 5

struct way { /* one direction of a connection */
    unsigned char data[WAY_BYTES];
    size_t len;     /* in data */
    size_t ready;   /* of these may leave */
    size_t frame;   /* that are still to come of what is under way */
    int64_t due_ms; /* when what is ready leaves */
    bool ended;     /* nothing more comes in */
};

struct whose { /* of a request about a transaction */
    int16_t kind;
    int32_t corr;
    char id[ID_BYTES];
    int64_t producer;
    int16_t epoch;
};

enum awaits { NOTHING, SWALLOW, DOUBT, RELEASE, VERDICT };

struct pair {
    int entrance;
    bool blinded; /* its first request is one for the topic that may not be read */
    int near;     /* -1: its worker has closed, and something is held */
    int far;
    struct way out, in;
    struct whose held;  /* kind 0: nothing */
    int64_t until_ms;   /* it is held no longer */
    bool overtaken;     /* by a later transaction of the same producer and epoch */
    enum awaits awaits; /* the answer to the request `asked` */
    struct whose asked;
};

struct chaos_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    atomic_bool ending;
    struct chaos_route route[CHAOS_PROXY_ENTRANCES][CHAOS_ROUTES_MAX];
    int routes;         /* of each entrance */
    int blind;          /* entrance */
    const char *unread; /* topic there; NULL: all is read */
    const char *id;
    struct pair *pair[PAIRS_MAX];
    int pairs;
    int armed[CHAOS_MISHAPS][CHAOS_REQUESTS];
    const char *doubt;      /* what the id begins with whose next EndTxn is; NULL */
    char doubted[ID_BYTES]; /* and whose was, whose others wait; "" nobody's */
    int slow_ms, jitter_ms;
    unsigned chance;
    struct chaos_proxy_counts counts;
};

/* --- reading requests ------------------------------------------------------------------------- */

struct cursor {
    const unsigned char *at, *end;
    bool short_of;
};

static int64_t take(struct cursor *c, int bytes)
{
    uint64_t n = 0;

    if (c->end - c->at < bytes) {
        c->short_of = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        n = n << 8 | *c->at++;
    return bytes == 8 ? (int64_t)n : bytes == 4 ? (int32_t)n : (int16_t)n;
}

static void take_text(struct cursor *c, char *out, size_t size)
{
    int64_t len = take(c, 2);

    if (len < 0)
        len = 0;
    if (c->end - c->at < len)
        c->short_of = true;
    else if (size > 0)
        snprintf(out, size, "%.*s", (int)len, (const char *)c->at);
    c->at += c->short_of ? 0 : len;
}

/* The first topic that a Fetch asks for, up to version 11; "" none. */
static void read_fetched(const unsigned char *data, size_t len, char *out, size_t size)
{
    struct cursor c = {data + 4, data + len, false};
    int16_t kind = (int16_t)take(&c, 2), version = (int16_t)take(&c, 2);

    out[0] = '\0';
    if (kind != CHAOS_FETCH || version < 4 || version > 11)
        return;
    take(&c, 4);
    take_text(&c, NULL, 0);
    for (int i = 0; i < 4; i++) /* replica, wait, least and most bytes */
        take(&c, 4);
    take(&c, 1);                                /* isolation level */
    for (int i = 0; version >= 7 && i < 2; i++) /* session */
        take(&c, 4);
    if (take(&c, 4) > 0)
        take_text(&c, out, size);
}

/* All these begin with the transactional id, and but for Produce go on with the producer. */
static bool is_about_transactions(int16_t kind, int16_t version)
{
    return kind == CHAOS_PRODUCE
               ? version >= 3 && version < 9
               : kind >= CHAOS_ADD_PARTITIONS && kind <= CHAOS_END_TXN && version < 3;
}

static struct whose read_request(const unsigned char *data, size_t len)
{
    struct cursor c = {data + 4, data + len, false};
    struct whose w = {0};
    int16_t version;

    w.kind = (int16_t)take(&c, 2);
    version = (int16_t)take(&c, 2);
    w.corr = (int32_t)take(&c, 4);
    if (!is_about_transactions(w.kind, version))
        return w;
    take_text(&c, NULL, 0);
    take_text(&c, w.id, sizeof(w.id));
    if (w.kind != CHAOS_PRODUCE) {
        w.producer = take(&c, 8);
        w.epoch = (int16_t)take(&c, 2);
    }
    if (c.short_of)
        w.id[0] = '\0';
    return w;
}

/* --- connections ------------------------------------------------------------------------------ */

static void end_pair(struct chaos_proxy *proxy, int at)
{
    struct pair *pair = proxy->pair[at];

    if (pair->near >= 0)
        close(pair->near);
    close(pair->far);
    free(pair);
    proxy->pair[at] = proxy->pair[--proxy->pairs];
}

static void accept_one(struct chaos_proxy *proxy, int entrance, const struct chaos_route *route)
{
    int near, far;
    struct pair *pair;

    if (!chaos_route_accept(route, &near, &far))
        return;
    pair = proxy->pairs < PAIRS_MAX ? calloc(1, sizeof(*pair)) : NULL;
    if (pair == NULL) {
        close(near);
        close(far);
        return;
    }
    pair->entrance = entrance;
    pair->near = near;
    pair->far = far;
    proxy->pair[proxy->pairs++] = pair;
}

/* --- mishaps ---------------------------------------------------------------------------------- */

static bool is_ours(const struct chaos_proxy *proxy, const struct whose *w)
{
    return w->id[0] != '\0' && strncmp(w->id, proxy->id, strlen(proxy->id)) == 0;
}

static bool meets(struct chaos_proxy *proxy, enum chaos_mishap what, const struct whose *w)
{
    if (w->kind < 0 || w->kind >= CHAOS_REQUESTS || proxy->armed[what][w->kind] == 0)
        return false;
    if (!is_ours(proxy, w))
        return false;
    proxy->armed[what][w->kind]--;
    proxy->counts.met[what]++;
    return true;
}

static void await(struct pair *pair, enum awaits what, const struct whose *asked)
{
    pair->awaits = what;
    pair->asked = *asked;
}

/* Is one of this id held elsewhere? */
static bool is_held(const struct chaos_proxy *proxy, const struct pair *but, const struct whose *w)
{
    for (int i = 0; i < proxy->pairs; i++)
        if (proxy->pair[i] != but && proxy->pair[i]->until_ms != 0 &&
            strcmp(proxy->pair[i]->held.id, w->id) == 0)
            return true;
    return false;
}

/* A later transaction has begun. */
static void release_behind(struct chaos_proxy *proxy, const struct whose *later)
{
    for (int i = 0; i < proxy->pairs; i++) {
        struct pair *pair = proxy->pair[i];

        if (pair->until_ms == 0 || strcmp(pair->held.id, later->id) != 0)
            continue;
        pair->overtaken = true;
        pair->until_ms = scratch_now_ms();
    }
}

enum fate { PASSES, STAYS, ENDS };

static bool is_blinded(struct chaos_proxy *proxy, struct pair *pair, const unsigned char *data,
                       size_t len)
{
    char topic[ID_BYTES];
    bool before = pair->blinded;

    pair->blinded = false;
    if (proxy->unread == NULL || pair->entrance != proxy->blind)
        return false;
    read_fetched(data, len, topic, sizeof(topic));
    pair->blinded = strcmp(topic, proxy->unread) == 0;
    proxy->counts.blinded += pair->blinded && !before;
    return pair->blinded;
}

static bool is_doubted(const struct chaos_proxy *proxy, const struct whose *w)
{
    return w->kind == CHAOS_END_TXN && w->id[0] != '\0' && strcmp(w->id, proxy->doubted) == 0;
}

static bool is_to_doubt(const struct chaos_proxy *proxy, const struct whose *w)
{
    return w->kind == CHAOS_END_TXN && proxy->doubt != NULL && proxy->doubted[0] == '\0' &&
           strncmp(w->id, proxy->doubt, strlen(proxy->doubt)) == 0;
}

static void hold(struct pair *pair, const struct whose *w)
{
    pair->held = *w;
    pair->overtaken = false;
    pair->until_ms = scratch_now_ms() + CHAOS_LATE_MS;
}

static enum fate judge_request(struct chaos_proxy *proxy, struct pair *pair, const struct whose *w)
{
    if (pair->until_ms != 0) { /* the held one, whose time has come */
        pair->until_ms = 0;
        await(pair, VERDICT, w);
        return PASSES;
    }
    proxy->counts.ends += w->kind == CHAOS_END_TXN && is_ours(proxy, w);
    if (meets(proxy, CHAOS_LOST, w))
        return ENDS;
    if (is_doubted(proxy, w) || meets(proxy, CHAOS_LATE, w)) {
        hold(pair, w);
        return STAYS;
    }
    if (meets(proxy, CHAOS_UNANSWERED, w))
        await(pair, SWALLOW, w);
    else if (is_to_doubt(proxy, w))
        await(pair, DOUBT, w);
    else if (w->kind == CHAOS_ADD_PARTITIONS && is_held(proxy, pair, w))
        await(pair, RELEASE, w);
    return PASSES;
}

/* A late one was answered: with 0 it has ended a transaction that goes on without it. */
static void count_verdict(struct chaos_proxy *proxy, const struct pair *pair, int16_t code)
{
    if (!pair->overtaken)
        return;
    proxy->counts.overtaken++;
    proxy->counts.torn += code == 0;
    proxy->counts.refused += code != 0;
    printf("             %s: a late EndTxn of %s, producer %lld, epoch %d, was answered with %d\n",
           code == 0 ? "torn" : "not torn", pair->asked.id, (long long)pair->asked.producer,
           (int)pair->asked.epoch, (int)code);
}

static enum fate judge_answer(struct chaos_proxy *proxy, struct pair *pair,
                              const unsigned char *data, size_t len)
{
    struct cursor c = {data + 4, data + len, false};
    enum awaits awaits = pair->awaits;

    if (awaits == NOTHING || (int32_t)take(&c, 4) != pair->asked.corr)
        return PASSES;
    pair->awaits = NOTHING;
    take(&c, 4);
    if (awaits == DOUBT && take(&c, 2) == 0)
        snprintf(proxy->doubted, sizeof(proxy->doubted), "%s", pair->asked.id);
    if (awaits == SWALLOW || awaits == DOUBT)
        return ENDS;
    if (awaits == VERDICT)
        count_verdict(proxy, pair, (int16_t)take(&c, 2));
    else
        release_behind(proxy, &pair->asked);
    return PASSES;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* false: the connection is over. */
static bool receive(struct way *way, int fd)
{
    ssize_t n;

    if (way->ended || way->len == WAY_BYTES)
        return true;
    n = recv(fd, way->data + way->len, WAY_BYTES - way->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        way->ended = true;
    else
        way->len += (size_t)n;
    return n > 0;
}

static bool leave(struct way *way, int fd, int64_t now_ms)
{
    ssize_t n;

    if (way->ready == 0 || now_ms < way->due_ms)
        return true;
    n = fd < 0 ? (ssize_t)way->ready /* nobody is there to hear it */
               : send(fd, way->data, way->ready, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    way->len -= (size_t)n;
    way->ready -= (size_t)n;
    memmove(way->data, way->data + n, way->len);
    return true;
}

static size_t frame_bytes(const struct way *way)
{
    struct cursor c = {way->data + way->ready, way->data + way->len, false};
    int64_t body = take(&c, 4);

    return body < 0 ? 4 : (size_t)body + 4;
}

static enum fate judge(struct chaos_proxy *proxy, struct pair *pair, struct way *way, size_t len)
{
    const unsigned char *data = way->data + way->ready;
    struct whose w;

    if (way == &pair->in)
        return judge_answer(proxy, pair, data, len);
    if (pair->until_ms > scratch_now_ms() || is_blinded(proxy, pair, data, len))
        return STAYS;
    w = read_request(data, len);
    return judge_request(proxy, pair, &w);
}

/* What may leave of what has come: whole frames that were judged by their heads. */
static enum fate advance(struct chaos_proxy *proxy, struct pair *pair, struct way *way)
{
    size_t head = way == &pair->in ? ANSWER_BYTES : HEAD_BYTES, before = way->ready, pass;
    enum fate fate = PASSES;

    while (way->len > way->ready && fate == PASSES) {
        size_t there = way->len - way->ready;

        if (way->frame == 0) {
            size_t all = there < 4 ? HEAD_BYTES : frame_bytes(way);

            if (there < all && there < head)
                break;
            fate = judge(proxy, pair, way, all < there ? all : there);
            if (fate != PASSES)
                break;
            way->frame = all;
        }
        pass = way->frame < there ? way->frame : there;
        way->ready += pass;
        way->frame -= pass;
    }
    if (before == 0 && way->ready > 0)
        way->due_ms = scratch_now_ms() + proxy->slow_ms +
                      (proxy->jitter_ms > 0 ? rand_r(&proxy->chance) % proxy->jitter_ms : 0);
    return fate;
}

/* false: it is over. A worker that closed is followed when all it sent is through, and not while
 * something is held. */
static bool serve_pair(struct chaos_proxy *proxy, struct pair *pair)
{
    int64_t now_ms = scratch_now_ms();

    if (pair->near >= 0 && !receive(&pair->out, pair->near)) {
        close(pair->near);
        pair->near = -1;
    }
    receive(&pair->in, pair->far);
    if (advance(proxy, pair, &pair->out) == ENDS || advance(proxy, pair, &pair->in) == ENDS)
        return false;
    if (!leave(&pair->out, pair->far, now_ms) || !leave(&pair->in, pair->near, now_ms))
        return false;
    if (pair->in.ended && pair->in.ready == 0)
        return false;
    return pair->near >= 0 || pair->out.ready > 0 || pair->until_ms != 0 || pair->awaits == VERDICT;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* An end that nothing is wanted of is not looked at: it would tell of its close without end. */
static struct pollfd watched(int fd, const struct way *from, const struct way *to, int64_t now_ms)
{
    bool more = !from->ended && from->len < WAY_BYTES;
    int events = (more ? POLLIN : 0) | (to->ready > 0 && now_ms >= to->due_ms ? POLLOUT : 0);

    return (struct pollfd){events != 0 ? fd : -1, (short)events, 0};
}

static nfds_t gather(const struct chaos_proxy *proxy, struct pollfd *fds)
{
    int64_t now_ms = scratch_now_ms();
    nfds_t count = 0;

    for (int e = 0; e < CHAOS_PROXY_ENTRANCES; e++)
        for (int i = 0; i < proxy->routes; i++)
            fds[count++] = (struct pollfd){proxy->route[e][i].listener, POLLIN, 0};
    for (int i = 0; i < proxy->pairs; i++) {
        const struct pair *pair = proxy->pair[i];

        fds[count++] = watched(pair->near, &pair->out, &pair->in, now_ms);
        fds[count++] = watched(pair->far, &pair->in, &pair->out, now_ms);
    }
    return count;
}

static void serve(struct chaos_proxy *proxy, const struct pollfd *fds)
{
    for (int i = proxy->pairs - 1; i >= 0; i--)
        if (!serve_pair(proxy, proxy->pair[i]))
            end_pair(proxy, i);
    for (int e = 0; e < CHAOS_PROXY_ENTRANCES; e++)
        for (int i = 0; i < proxy->routes; i++)
            if (fds++->revents != 0)
                accept_one(proxy, e, &proxy->route[e][i]);
}

static void *run(void *arg)
{
    static struct pollfd fds[CHAOS_PROXY_ENTRANCES * CHAOS_ROUTES_MAX + 2 * PAIRS_MAX];
    struct chaos_proxy *proxy = arg;

    while (!atomic_load(&proxy->ending)) {
        nfds_t count;

        pthread_mutex_lock(&proxy->lock);
        count = gather(proxy, fds);
        pthread_mutex_unlock(&proxy->lock);
        poll(fds, count, TICK_MS);
        pthread_mutex_lock(&proxy->lock);
        serve(proxy, fds);
        pthread_mutex_unlock(&proxy->lock);
    }
    return NULL;
}

static void end(void *arg)
{
    struct chaos_proxy *proxy = arg;

    atomic_store(&proxy->ending, true);
    pthread_join(proxy->thread, NULL);
    while (proxy->pairs > 0)
        end_pair(proxy, 0);
    for (int e = 0; e < CHAOS_PROXY_ENTRANCES; e++)
        chaos_route_close(proxy->route[e], proxy->routes);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

/* --- commands --------------------------------------------------------------------------------- */

struct chaos_proxy *chaos_proxy_new(const char *servers, const char *id)
{
    struct chaos_proxy *proxy = calloc(1, sizeof(*proxy));
    int ports[CHAOS_ROUTES_MAX + 1] = {0};

    assert_non_null(proxy);
    for (const char *at = servers; (at = strchr(at, ':')) != NULL; proxy->routes++) {
        assert_true(proxy->routes < CHAOS_ROUTES_MAX);
        ports[proxy->routes] = (int)strtol(++at, NULL, 10);
    }
    for (int e = 0; e < CHAOS_PROXY_ENTRANCES; e++)
        chaos_route_listen(proxy->route[e], ports);
    proxy->id = id;
    proxy->chance = chaos_seed();
    pthread_mutex_init(&proxy->lock, NULL);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    scratch_at_end(end, proxy);
    return proxy;
}

void chaos_proxy_use(const struct chaos_proxy *proxy, int entrance)
{
    assert_true(entrance < CHAOS_PROXY_ENTRANCES);
    chaos_route_use(proxy == NULL ? NULL : proxy->route[entrance],
                    proxy == NULL ? 0 : proxy->routes);
}

int chaos_proxy_port(const struct chaos_proxy *proxy, int port)
{
    for (int i = 0; i < proxy->routes; i++)
        if (proxy->route[0][i].to == port)
            return proxy->route[0][i].through;
    return port;
}

void chaos_proxy_mishap(struct chaos_proxy *proxy, enum chaos_mishap what, enum chaos_request which)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->armed[what][which]++;
    pthread_mutex_unlock(&proxy->lock);
}

void chaos_proxy_doubt(struct chaos_proxy *proxy, const char *id)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->doubt = id;
    pthread_mutex_unlock(&proxy->lock);
}

const char *chaos_proxy_doubted(struct chaos_proxy *proxy)
{
    const char *id;

    pthread_mutex_lock(&proxy->lock);
    id = proxy->doubted[0] != '\0' ? scratch_text("%s", proxy->doubted) : NULL;
    pthread_mutex_unlock(&proxy->lock);
    return id;
}

/* Of this id, or of all: "". */
static void let_go(struct chaos_proxy *proxy, const char *id)
{
    for (int i = 0; i < proxy->pairs; i++) {
        struct pair *pair = proxy->pair[i];

        if (pair->until_ms != 0 && (id[0] == '\0' || strcmp(pair->held.id, id) == 0))
            pair->until_ms = scratch_now_ms();
    }
}

void chaos_proxy_release(struct chaos_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->doubt = NULL;
    if (proxy->doubted[0] != '\0')
        let_go(proxy, proxy->doubted);
    proxy->doubted[0] = '\0';
    pthread_mutex_unlock(&proxy->lock);
}

void chaos_proxy_slow(struct chaos_proxy *proxy, int ms, int jitter_ms)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->slow_ms = ms;
    proxy->jitter_ms = jitter_ms;
    pthread_mutex_unlock(&proxy->lock);
}

void chaos_proxy_reset(struct chaos_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    for (int i = proxy->pairs - 1; i >= 0; i--)
        if (proxy->pair[i]->near >= 0 && proxy->pair[i]->until_ms == 0) {
            end_pair(proxy, i);
            proxy->counts.resets++;
        }
    pthread_mutex_unlock(&proxy->lock);
}

void chaos_proxy_blind(struct chaos_proxy *proxy, int entrance, const char *topic)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->blind = entrance;
    proxy->unread = topic;
    pthread_mutex_unlock(&proxy->lock);
}

void chaos_proxy_heal(struct chaos_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->unread = NULL;
    memset(proxy->armed, 0, sizeof(proxy->armed));
    proxy->slow_ms = proxy->jitter_ms = 0;
    proxy->doubt = NULL;
    proxy->doubted[0] = '\0';
    let_go(proxy, "");
    pthread_mutex_unlock(&proxy->lock);
}

struct chaos_proxy_counts chaos_proxy_counts(struct chaos_proxy *proxy)
{
    struct chaos_proxy_counts counts;

    pthread_mutex_lock(&proxy->lock);
    counts = proxy->counts;
    pthread_mutex_unlock(&proxy->lock);
    return counts;
}
