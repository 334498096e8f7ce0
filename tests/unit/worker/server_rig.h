/* SPDX-License-Identifier: Apache-2.0 */
/* The server over sockets, on a thread of its own, with the herder of herder_fake.h, and a client
 * that says exactly what it is told to. Included by one .c of a test binary. */
#ifndef TESTS_SERVER_RIG_H
#define TESTS_SERVER_RIG_H

#include "base/clock.h"
#include "herder_fake.h"
#include "worker/rest/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

/* --- a worker of its own thread --------------------------------------------------------------- */

struct fixture {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct server_limits limits;
    struct loop *loop;
    struct worker_config config;
    struct server *server;
    struct herder herder;
    struct mr_error err;
    bool up;
    size_t waiting; /* changes that the herder holds */
    int port;
};

static struct fixture *current;

static inline void note_waiting(struct herder *herder)
{
    pthread_mutex_lock(&current->lock);
    current->waiting = herder->waiting_count;
    pthread_cond_broadcast(&current->changed);
    pthread_mutex_unlock(&current->lock);
}

static inline void *work(void *arg)
{
    struct fixture *f = arg;
    struct mr_error err = {0};

    f->loop = loop_new(&err);
    f->server = server_new_limited(f->loop, &f->config, &f->limits, &f->err);
    pthread_mutex_lock(&f->lock);
    f->up = true;
    f->port = f->server != NULL ? server_port(f->server) : 0;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (f->server != NULL)
        loop_run(f->loop);
    server_free(&f->server);
    herder_fake_release(&f->herder);
    loop_free(&f->loop);
    return NULL;
}

static inline void start(struct fixture *f, const char *host, int port)
{
    f->config.listener_count = 1;
    f->config.listeners[0] = (struct worker_listener){.host = strdup(host), .port = port};
    props_init(&f->config.props);
    f->herder.changed = note_waiting;
    current = f;
    assert_int_equal(pthread_create(&f->thread, NULL, work, f), 0);
    pthread_mutex_lock(&f->lock);
    while (!f->up)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

struct errand {
    struct fixture *f;
    void (*fn)(struct fixture *f);
    bool done;
};

static inline void run_errand(void *arg)
{
    struct errand *errand = arg;

    errand->fn(errand->f);
    pthread_mutex_lock(&errand->f->lock);
    errand->done = true;
    pthread_cond_broadcast(&errand->f->changed);
    pthread_mutex_unlock(&errand->f->lock);
}

static inline void on_loop(struct fixture *f, void (*fn)(struct fixture *f))
{
    struct errand errand = {.f = f, .fn = fn};

    assert_int_equal(loop_post(f->loop, run_errand, &errand), 0);
    pthread_mutex_lock(&f->lock);
    while (!errand.done)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static inline void do_open(struct fixture *f)
{
    server_open(f->server, &f->herder);
}

static inline void do_release(struct fixture *f)
{
    herder_fake_release(&f->herder);
    f->waiting = 0;
}

static inline void do_free(struct fixture *f)
{
    server_free(&f->server);
}

static inline void do_stop(struct fixture *f)
{
    loop_stop(f->loop);
}

static inline void await_waiting(struct fixture *f, size_t count)
{
    pthread_mutex_lock(&f->lock);
    while (f->waiting < count)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static inline struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->limits = server_limits;
    f->herder.ready = true;
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    if (f->port != 0)
        on_loop(f, do_stop);
    pthread_join(f->thread, NULL);
    free(f->config.worker_id);
    free(f->config.listeners[0].host);
    props_deinit(&f->config.props);
    free(f);
    current = NULL;
}

static inline int set_up(void **state)
{
    struct fixture *f = fixture_new();

    start(f, "127.0.0.1", 0);
    on_loop(f, do_open);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture_free(*state);
    return 0;
}

/* --- a client --------------------------------------------------------------------------------- */

static inline int dial(struct fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)f->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void say(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        assert_true(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

struct reply {
    int status;
    char head[4096];
    char body[65536];
};

/* One answer; `bodiless` for HEAD. 0: the connection ended before one began. */
static inline struct reply hear(int fd, bool bodiless)
{
    static struct reply reply;
    size_t len = 0;
    const char *length;
    size_t body = 0;

    memset(&reply, 0, sizeof(reply));
    while (strstr(reply.head, "\r\n\r\n") == NULL) {
        ssize_t n = recv(fd, reply.head + len, 1, 0);

        if (n <= 0)
            return reply;
        len += (size_t)n;
        assert_true(len < sizeof(reply.head) - 1);
    }
    assert_int_equal(sscanf(reply.head, "HTTP/1.1 %d", &reply.status), 1);
    length = strcasestr(reply.head, "\r\nContent-Length:");
    if (bodiless || length == NULL)
        return reply;
    body = strtoul(length + 17, NULL, 10);
    assert_true(body < sizeof(reply.body));
    for (len = 0; len < body;) {
        ssize_t n = recv(fd, reply.body + len, body - len, 0);

        assert_true(n > 0);
        len += (size_t)n;
    }
    return reply;
}

static inline bool ended(int fd)
{
    char c;

    return recv(fd, &c, 1, 0) <= 0;
}

/* One header's value, "" when it is not there. */
static inline const char *header(const struct reply *reply, const char *name)
{
    static char value[512];
    char wanted[64];
    const char *at;

    snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);
    at = strcasestr(reply->head, wanted);
    if (at == NULL)
        return "";
    at += strlen(wanted);
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

/* A whole request on a connection of its own. extra: header lines, each ended by \r\n. */
static inline struct reply ask_with(struct fixture *f, const char *method, const char *path,
                                    const char *extra, const char *body)
{
    int fd = dial(f);
    char head[2048];
    struct reply reply;

    snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: test:1\r\n%s", method, path, extra);
    say(fd, head);
    if (body != NULL) {
        snprintf(head, sizeof(head), "Content-Length: %zu\r\n", strlen(body));
        say(fd, head);
    }
    say(fd, "\r\n");
    if (body != NULL)
        say(fd, body);
    reply = hear(fd, strcmp(method, "HEAD") == 0);
    close(fd);
    return reply;
}

#define JSON "Content-Type: application/json\r\n"

static inline struct reply ask(struct fixture *f, const char *method, const char *path,
                               const char *body)
{
    return ask_with(f, method, path, body != NULL ? JSON : "", body);
}

static inline void expect(struct reply reply, int status, const char *body)
{
    if (reply.status != status || strcmp(reply.body, body) != 0)
        fail_msg("expected %d %s\n     got %d %s", status, body, reply.status, reply.body);
    if (body[0] != '\0')
        assert_string_equal(header(&reply, "Content-Type"), "application/json");
    else
        assert_string_equal(header(&reply, "Content-Type"), "");
}

/* What no method was found for has no type, as Jersey leaves it. */
static inline void expect_unmatched(struct reply reply, int status, const char *message)
{
    char body[256];

    snprintf(body, sizeof(body), "{\"error_code\":%d,\"message\":\"%s\"}", status, message);
    assert_int_equal(reply.status, status);
    assert_string_equal(reply.body, body);
    assert_string_equal(header(&reply, "Content-Type"), "");
}

static inline void expect_error(struct reply reply, int status, const char *message)
{
    char body[2048];

    snprintf(body, sizeof(body), "{\"error_code\":%d,\"message\":\"%s\"}", status, message);
    expect(reply, status, body);
}

#endif
