/* SPDX-License-Identifier: Apache-2.0 */
#include "stub_broker.h"

#include "base/clock.h"
#include "support/unit/certificates.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#define CONNECTIONS_MAX 4096

struct conn {
    struct stub_broker *stub;
    int number;
    int fd;
    SSL *ssl;
    pthread_t thread;
};

struct stub_broker {
    struct stub_options options;
    int listener;
    int stop[2];
    uint16_t port;
    SSL_CTX *tls;
    pthread_t thread;
    atomic_int count;
    struct conn conns[CONNECTIONS_MAX];
};

/* --- fine answers ----------------------------------------------------------------------------- */

static void put_versions(struct buf *out)
{
    static const int16_t ranges[][3] = {{2, 1, 11}, {3, 0, 13}, {10, 0, 6}, {11, 0, 9}, {12, 0, 4},
                                        {13, 0, 5}, {14, 0, 5}, {15, 0, 6}, {16, 0, 5}, {17, 0, 1},
                                        {18, 0, 4}, {22, 0, 5}, {36, 0, 2}};

    codec_put_i16(out, 0);
    codec_put_count(out, sizeof(ranges) / sizeof(*ranges));
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
        for (size_t k = 0; k < 3; k++)
            codec_put_i16(out, ranges[i][k]);
}

static void put_metadata(struct buf *out, int port)
{
    codec_put_i32(out, 0);
    codec_put_count(out, port > 0 ? 1 : 0);
    if (port > 0) {
        codec_put_i32(out, 1);
        codec_put_text(out, "127.0.0.1");
        codec_put_i32(out, port);
        codec_put_text(out, NULL);
    }
    codec_put_text(out, "the-cluster");
    codec_put_i32(out, 1);
    codec_put_count(out, 0);
}

static void put_join(struct buf *out)
{
    codec_put_i32(out, 0);
    codec_put_i16(out, 0);
    codec_put_i32(out, 5);
    codec_put_text(out, "sessioned");
    codec_put_text(out, "me");
    codec_put_text(out, "me");
    codec_put_count(out, 0);
}

/* Version 4, one member. */
static void put_described(struct buf *out)
{
    codec_put_i32(out, 0);
    codec_put_count(out, 1);
    codec_put_i16(out, 0);
    codec_put_text(out, "g");
    codec_put_text(out, "Stable");
    codec_put_text(out, "consumer");
    codec_put_text(out, "range");
    codec_put_count(out, 1);
    codec_put_text(out, "sink-0-abc");
    codec_put_text(out, NULL);
    codec_put_text(out, "sink-0");
    codec_put_text(out, "/127.0.0.1");
    codec_put_count(out, 0);
    codec_put_count(out, 0);
    codec_put_i32(out, INT32_MIN);
}

void stub_broker_fine(void *arg, const struct stub_request *request, struct stub_reply *reply)
{
    struct buf *out = &reply->body;
    int port = arg != NULL ? *(int *)arg : 0;

    switch (request->key) {
    case 18:
        put_versions(out);
        return;
    case 3:
        put_metadata(out, port);
        return;
    case 10:
        codec_put_i32(out, 0);
        codec_put_i16(out, 0);
        codec_put_text(out, NULL);
        codec_put_i32(out, 1);
        codec_put_text(out, "127.0.0.1");
        codec_put_i32(out, port);
        return;
    case 11:
        put_join(out);
        return;
    case 14:
        codec_put_i32(out, 0);
        codec_put_i16(out, 0);
        codec_put_bytes(out, (struct codec_bytes){(const uint8_t *)"L", 1});
        return;
    case 15:
        put_described(out);
        return;
    case 17:
        codec_put_i16(out, 0);
        codec_put_count(out, 0);
        return;
    case 22:
        codec_put_i32(out, 0);
        codec_put_i16(out, 0);
        codec_put_i64(out, 7);
        codec_put_i16(out, 1);
        return;
    case 36:
        codec_put_i16(out, 0);
        codec_put_text(out, NULL);
        codec_put_count(out, 0);
        codec_put_i64(out, 0);
        return;
    default:
        codec_put_i32(out, 0);
        codec_put_i16(out, 0);
    }
}

/* --- one connection --------------------------------------------------------------------------- */

/* Bytes may come, or the stub is told to stop: false. */
static bool wait_bytes(struct conn *c)
{
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
                           {.fd = c->stub->stop[0], .events = POLLIN}};

    if (c->ssl != NULL && SSL_pending(c->ssl) > 0)
        return true;
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    return fds[1].revents == 0;
}

static bool read_all(struct conn *c, void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n;

        if (!wait_bytes(c))
            return false;
        n = c->ssl != NULL ? SSL_read(c->ssl, at, (int)len) : recv(c->fd, at, len, 0);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool write_all(struct conn *c, const char *data, size_t len, size_t piece)
{
    while (len > 0) {
        size_t part = len < piece ? len : piece;
        ssize_t n = c->ssl != NULL ? SSL_write(c->ssl, data, (int)part)
                                   : send(c->fd, data, part, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool reply_to(struct conn *c, const struct stub_request *request, struct stub_reply *reply)
{
    struct buf frame;
    bool fine = true;

    buf_init(&frame, 64u * 1024 * 1024);
    if (!reply->raw) {
        codec_put_i32(&frame, (int32_t)(reply->body.len + 4));
        codec_put_i32(&frame, request->id + reply->add);
    }
    buf_append(&frame, reply->body.data, reply->body.len);
    if (!reply->nothing && frame.len > 0)
        fine = write_all(c, frame.data, frame.len, reply->pieces ? 1 : frame.len);
    buf_deinit(&frame);
    return fine && !reply->close;
}

static bool serve_one(struct conn *c, int number)
{
    stub_answer_fn answer =
        c->stub->options.answer != NULL ? c->stub->options.answer : stub_broker_fine;
    struct stub_request request = {.connection = c->number, .number = number};
    struct stub_reply reply = {0};
    struct codec_reader r;
    uint8_t head[4];
    size_t size;
    uint8_t *bytes;
    int16_t len;
    bool more;

    if (!read_all(c, head, 4))
        return false;
    size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (size < 10 || size > 32u * 1024 * 1024 || (bytes = malloc(size)) == NULL)
        return false;
    if (!read_all(c, bytes, size)) {
        free(bytes);
        return false;
    }
    request.came_ms = clock_ms();
    codec_reader_init(&r, bytes, size, NULL);
    request.key = codec_get_i16(&r);
    request.version = codec_get_i16(&r);
    request.id = codec_get_i32(&r);
    len = codec_get_i16(&r);
    if (len > 0) {
        snprintf(request.client_id, sizeof(request.client_id), "%.*s", len, (const char *)r.at);
        r.at += len;
    }
    request.body = (struct codec_bytes){r.at, (size_t)(r.end - r.at)};
    buf_init(&reply.body, 64u * 1024 * 1024);
    answer(c->stub->options.arg, &request, &reply);
    more = reply_to(c, &request, &reply);
    buf_deinit(&reply.body);
    free(bytes);
    return more;
}

static void *serve(void *arg)
{
    struct conn *c = arg;

    if (c->stub->tls != NULL) {
        c->ssl = SSL_new(c->stub->tls);
        SSL_set_fd(c->ssl, c->fd);
        if (!wait_bytes(c) || SSL_accept(c->ssl) != 1)
            goto out;
    }
    for (int number = 0; serve_one(c, number); number++)
        continue;
out:
    if (c->ssl != NULL)
        SSL_shutdown(c->ssl);
    shutdown(c->fd, SHUT_RDWR);
    return NULL;
}

/* --- the listener ----------------------------------------------------------------------------- */

static void *accept_all(void *arg)
{
    struct stub_broker *stub = arg;

    for (;;) {
        struct pollfd fds[] = {{.fd = stub->listener, .events = POLLIN},
                               {.fd = stub->stop[0], .events = POLLIN}};
        struct conn *c;
        int fd;

        if (poll(fds, 2, -1) < 0 && errno == EINTR)
            continue;
        if (fds[1].revents != 0)
            return NULL;
        fd = accept4(stub->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        mr_assert(stub->count < CONNECTIONS_MAX);
        c = &stub->conns[stub->count];
        *c = (struct conn){.stub = stub, .number = stub->count, .fd = fd};
        mr_assert(pthread_create(&c->thread, NULL, serve, c) == 0);
        atomic_fetch_add(&stub->count, 1);
    }
}

static SSL_CTX *server_context(const struct stub_options *options)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    mr_assert(ctx != NULL && SSL_CTX_use_certificate(ctx, options->pair->handles[0]) == 1 &&
              SSL_CTX_use_PrivateKey(ctx, options->pair->handles[1]) == 1);
    if (options->clients != NULL) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), options->clients->handles[0]);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return ctx;
}

struct stub_broker *stub_broker_start(const struct stub_options *options)
{
    struct stub_broker *stub = calloc(1, sizeof(*stub));
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(options->port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int one = 1;

    mr_assert(stub != NULL);
    stub->options = *options;
    stub->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(stub->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    mr_assert(bind(stub->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    mr_assert(listen(stub->listener, 64) == 0 && pipe(stub->stop) == 0);
    mr_assert(getsockname(stub->listener, (struct sockaddr *)&addr, &len) == 0);
    stub->port = ntohs(addr.sin_port);
    if (options->pair != NULL)
        stub->tls = server_context(options);
    mr_assert(pthread_create(&stub->thread, NULL, accept_all, stub) == 0);
    return stub;
}

void stub_broker_stop(struct stub_broker **sp)
{
    struct stub_broker *stub = *sp;

    *sp = NULL;
    if (stub == NULL)
        return;
    mr_assert(write(stub->stop[1], "x", 1) == 1);
    pthread_join(stub->thread, NULL);
    close(stub->listener);
    for (int i = 0; i < stub->count; i++) {
        shutdown(stub->conns[i].fd, SHUT_RDWR);
        pthread_join(stub->conns[i].thread, NULL);
        SSL_free(stub->conns[i].ssl);
        close(stub->conns[i].fd);
    }
    close(stub->stop[0]);
    close(stub->stop[1]);
    SSL_CTX_free(stub->tls);
    free(stub);
}

uint16_t stub_broker_port(const struct stub_broker *stub)
{
    return stub->port;
}

int stub_broker_connections(const struct stub_broker *stub)
{
    return atomic_load(&stub->count);
}
