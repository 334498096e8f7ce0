/* SPDX-License-Identifier: Apache-2.0 */
/* One connection as a stream of bytes.
 *
 *   RESOLVE ──► CONNECT ──► TLS ──► OPEN      any of them, at the first fault ──► failed, told once
 *                 └──► the name's next address
 *
 * resolved(), try_next(), connected() and shake() make the moves. Who uses it (broker_conn.c) sets
 * the deadline for the whole; here only one address that does not answer is kept from eating up the
 * time of the others. TLS may want to write in order to read and the other way round, so the socket
 * is watched for both whenever OpenSSL asks. */
#include "wire/wire_stream.h"

#include "base/text.h"
#include "wire_private.h"
#include "wire_resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#define ADDRESSES_MAX 16

struct address {
    struct sockaddr_storage bytes;
    socklen_t len;
};

struct wire_stream {
    struct loop *loop;
    const struct wire_conf *conf;
    const struct wire_stream_events *events;
    void *arg;
    char *host;
    char *name;
    struct wire_resolve *resolve;
    struct address addresses[ADDRESSES_MAX];
    size_t address_count;
    size_t next;             /* address to try */
    struct loop_timer timer; /* of one address, or a failure that is to be told */
    struct mr_error failure; /* of the newest address; or the end */
    int fd;
    struct loop_fd *watch;
    SSL *ssl;
    bool open;
};

static void fail_told(void *arg)
{
    struct wire_stream *s = arg;
    struct mr_error err = s->failure;

    s->events->failed(s->arg, &err);
}

/* From a callback of the loop's: told at once. */
static void fail(struct wire_stream *s)
{
    loop_fd_remove(&s->watch);
    fail_told(s);
}

/* --- TLS -------------------------------------------------------------------------------------- */

static int closed(const struct wire_stream *s, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_CLOSED, "broker %s closed the connection%s", s->name,
                   s->open ? "" : " instead of speaking TLS (see security.protocol)");
}

/* What a call of OpenSSL came to: 0 = wait, and the socket is watched for what it waits for. */
static int tls_result(struct wire_stream *s, int rc, struct mr_error *err)
{
    int saved = errno;

    switch (SSL_get_error(s->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        loop_fd_events(s->watch, EPOLLIN);
        return 0;
    case SSL_ERROR_WANT_WRITE:
        loop_fd_events(s->watch, EPOLLIN | EPOLLOUT);
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return closed(s, err);
    case SSL_ERROR_SYSCALL:
        errno = saved;
        if (ERR_peek_error() != 0)
            return wire_tls_error(s->ssl, s->name, err);
        return saved == 0 ? closed(s, err) : err_errno(err, "connection to broker %s", s->name);
    default:
        return wire_tls_error(s->ssl, s->name, err);
    }
}

static void shake(struct wire_stream *s)
{
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_do_handshake(s->ssl);
    if (rc != 1) {
        if (tls_result(s, rc, &s->failure) != 0)
            fail(s);
        return;
    }
    s->open = true;
    loop_fd_events(s->watch, EPOLLIN);
    s->events->open(s->arg);
}

/* --- TCP -------------------------------------------------------------------------------------- */

static void try_next(struct wire_stream *s);

static void close_socket(struct wire_stream *s)
{
    loop_fd_remove(&s->watch);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static void give_up_address(struct wire_stream *s)
{
    loop_timer_cancel(&s->timer);
    close_socket(s);
    try_next(s);
}

static void address_timed_out(void *arg)
{
    struct wire_stream *s = arg;

    err_clear(&s->failure);
    mr_fail(&s->failure, MR_ERR_IO, "broker %s does not answer to a connection", s->name);
    give_up_address(s);
}

/* The socket is there, or has failed. Whoever hears `connected` does not free the stream. */
static void connected(struct wire_stream *s)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        errno = error;
        err_clear(&s->failure);
        err_errno(&s->failure, "no connection to broker %s", s->name);
        give_up_address(s);
        return;
    }
    loop_timer_cancel(&s->timer);
    s->address_count = 0;
    err_clear(&s->failure);
    s->events->connected(s->arg);
    if (s->conf->tls == NULL) {
        s->open = true;
        loop_fd_events(s->watch, EPOLLIN);
        s->events->open(s->arg);
        return;
    }
    s->ssl = wire_tls_session(s->conf, s->host, s->fd, &s->failure);
    if (s->ssl == NULL)
        fail(s);
    else
        shake(s);
}

static void on_socket(void *arg, uint32_t events)
{
    struct wire_stream *s = arg;

    (void)events;
    if (s->address_count > 0)
        connected(s);
    else if (!s->open)
        shake(s);
    else
        s->events->ready(s->arg);
}

static bool start_connect(struct wire_stream *s, const struct address *a)
{
    int one = 1;

    err_clear(&s->failure);
    s->fd = socket(a->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) {
        err_errno(&s->failure, "no socket for broker %s", s->name);
        return false;
    }
    setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (connect(s->fd, (const struct sockaddr *)&a->bytes, a->len) != 0 && errno != EINPROGRESS) {
        err_errno(&s->failure, "no connection to broker %s", s->name);
        return false;
    }
    s->watch = loop_fd_add(s->loop, s->fd, EPOLLOUT, on_socket, s, &s->failure);
    return s->watch != NULL;
}

static void try_next(struct wire_stream *s)
{
    while (s->next < s->address_count) {
        const struct address *a = &s->addresses[s->next];
        int64_t share = s->conf->setup_timeout_ms / (int64_t)s->address_count;

        s->next++;
        if (start_connect(s, a)) {
            loop_timer_start(s->loop, &s->timer, share > 0 ? share : 1, address_timed_out, s);
            return;
        }
        close_socket(s);
    }
    fail(s);
}

static void resolved(void *arg, struct addrinfo *addresses, const struct mr_error *err)
{
    struct wire_stream *s = arg;

    for (struct addrinfo *a = addresses; a != NULL && s->address_count < ADDRESSES_MAX;
         a = a->ai_next)
        if (a->ai_addrlen <= sizeof(s->addresses->bytes)) {
            struct address *to = &s->addresses[s->address_count++];

            memcpy(&to->bytes, a->ai_addr, a->ai_addrlen);
            to->len = a->ai_addrlen;
        }
    if (err != NULL)
        s->failure = *err;
    wire_resolve_free(&s->resolve);
    try_next(s);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int plain_result(struct wire_stream *s, ssize_t n, const char *what, struct mr_error *err)
{
    if (n > 0)
        return (int)n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n == 0)
        return closed(s, err);
    return err_errno(err, "%s broker %s", what, s->name);
}

int wire_stream_read(struct wire_stream *s, void *data, size_t len, struct mr_error *err)
{
    int n;

    mr_assert(s->open && len > 0 && len <= INT32_MAX);
    if (s->ssl == NULL)
        return plain_result(s, recv(s->fd, data, len, 0), "reading from", err);
    ERR_clear_error();
    errno = 0;
    n = SSL_read(s->ssl, data, (int)len);
    return n > 0 ? n : tls_result(s, n, err);
}

int wire_stream_write(struct wire_stream *s, const void *data, size_t len, struct mr_error *err)
{
    int n;

    mr_assert(s->open && len > 0);
    len = len < INT32_MAX ? len : INT32_MAX;
    if (s->ssl != NULL) {
        ERR_clear_error();
        errno = 0;
        n = SSL_write(s->ssl, data, (int)len);
        return n > 0 ? n : tls_result(s, n, err);
    }
    n = plain_result(s, send(s->fd, data, len, MSG_NOSIGNAL), "writing to", err);
    loop_fd_events(s->watch, n == 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return n;
}

/* --- life ------------------------------------------------------------------------------------- */

struct wire_stream *wire_stream_new(struct loop *loop, const struct wire_conf *conf,
                                    const struct broker_conn_to *to,
                                    const struct wire_stream_events *events, void *arg,
                                    struct mr_error *err)
{
    struct wire_stream *s = calloc(1, sizeof(*s));
    bool colons = strchr(to->host, ':') != NULL;

    mr_assert(s != NULL);
    *s = (struct wire_stream){.loop = loop, .conf = conf, .events = events, .arg = arg, .fd = -1};
    s->host = text_dup(to->host);
    mr_assert(asprintf(&s->name, colons ? "[%s]:%u" : "%s:%u", to->host, to->port) > 0);
    s->resolve = wire_resolve_new(loop, to->host, to->port, resolved, s, err);
    if (s->resolve == NULL)
        wire_stream_free(&s);
    return s;
}

void wire_stream_free(struct wire_stream **sp)
{
    struct wire_stream *s = *sp;

    *sp = NULL;
    if (s == NULL)
        return;
    loop_timer_cancel(&s->timer);
    wire_resolve_free(&s->resolve);
    if (s->ssl != NULL && s->open)
        SSL_shutdown(s->ssl);
    ERR_clear_error();
    SSL_free(s->ssl);
    close_socket(s);
    free(s->host);
    free(s->name);
    free(s);
}

const char *wire_stream_name(const struct wire_stream *s)
{
    return s->name;
}
