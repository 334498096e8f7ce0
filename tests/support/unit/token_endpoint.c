/* SPDX-License-Identifier: Apache-2.0 */
/* One thread, one connection at a time, HTTP/1.0 in spirit: a request, an answer, the end. */
#include "token_endpoint.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#define REQUEST_MAX 65536

struct token_endpoint {
    int fd;
    int bell; /* something was changed */
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock;
    bool stopping;
    bool hanging;
    bool flooding;
    char *raw;
    int life_s;
    int asked;
    int given;
    char request[REQUEST_MAX];
};

static void send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

/* --- tokens ----------------------------------------------------------------------------------- */

static void put_base64url(char *out, const char *text)
{
    int len = EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)strlen(text));

    while (len > 0 && out[len - 1] == '=')
        out[--len] = '\0';
    for (; *out != '\0'; out++)
        *out = (char)(*out == '+' ? '-' : *out == '/' ? '_' : *out);
}

static void send_token(struct token_endpoint *e, int fd, const char *client)
{
    char claims[512], encoded[1024], body[2048], all[4096];
    long long now = (long long)time(NULL);

    pthread_mutex_lock(&e->lock);
    e->given++;
    snprintf(claims, sizeof(claims),
             "{\"sub\":\"%.200s\",\"iat\":%lld,\"exp\":%lld,\"jti\":\"%d\"}", client, now,
             now + e->life_s, e->given);
    put_base64url(encoded, claims);
    snprintf(body, sizeof(body),
             "{\"access_token\":\"eyJhbGciOiJub25lIn0.%s.\",\"expires_in\":%d,\"token_type\":"
             "\"Bearer\"}",
             encoded, e->life_s);
    pthread_mutex_unlock(&e->lock);
    snprintf(all, sizeof(all),
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n%s",
             strlen(body), body);
    send_all(fd, all, strlen(all));
}

static void send_refusal(int fd, const char *secret)
{
    char all[1024];

    snprintf(all, sizeof(all),
             "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n"
             "{\"error\":\"invalid_client\",\"error_description\":\"not %s\"}",
             secret);
    send_all(fd, all, strlen(all));
}

static void judge(struct token_endpoint *e, int fd, const char *request)
{
    const char *at = strstr(request, "Authorization: Basic ");
    char pair[1024] = "", text[1024] = "";
    char *secret;

    if (at != NULL && strcspn(at + 21, "\r\n") < 1000)
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(at + 21, "\r\n"), at + 21);
    if (EVP_DecodeBlock((unsigned char *)pair, (const unsigned char *)text, (int)strlen(text)) < 0)
        pair[0] = '\0';
    secret = strchr(pair, ':');
    if (secret != NULL)
        *secret++ = '\0';
    if (secret != NULL && strcmp(secret, TOKEN_ENDPOINT_SECRET) == 0 &&
        strstr(request, "grant_type=client_credentials") != NULL)
        send_token(e, fd, pair);
    else
        send_refusal(fd, secret != NULL ? secret : "");
}

/* --- connections ------------------------------------------------------------------------------ */

/* A whole request into e->request. */
static bool read_request(struct token_endpoint *e, int fd)
{
    size_t len = 0;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const char *end, *length;
        ssize_t n =
            poll(&p, 1, 5000) == 1 ? recv(fd, e->request + len, REQUEST_MAX - 1 - len, 0) : 0;

        if (n <= 0)
            return false;
        len += (size_t)n;
        e->request[len] = '\0';
        end = strstr(e->request, "\r\n\r\n");
        length = strstr(e->request, "Content-Length: ");
        if (end != NULL && (length == NULL || strlen(end + 4) >= (size_t)atol(length + 16)))
            return true;
    }
}

static void flood(struct token_endpoint *e, int fd)
{
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n{\"access_token\":\"";
    char block[4096];

    memset(block, 'x', sizeof(block));
    send_all(fd, head, sizeof(head) - 1);
    for (int i = 0; i < 4096 && send(fd, block, sizeof(block), MSG_NOSIGNAL) > 0; i++)
        continue;
}

/* Held until it no longer hangs. */
static void hold(struct token_endpoint *e)
{
    bool held;

    do {
        struct pollfd p = {.fd = e->bell, .events = POLLIN};
        uint64_t count;

        pthread_mutex_lock(&e->lock);
        held = e->hanging && !e->stopping;
        pthread_mutex_unlock(&e->lock);
        if (held && poll(&p, 1, -1) == 1 && read(e->bell, &count, sizeof(count)) < 0)
            return;
    } while (held);
}

static void serve(struct token_endpoint *e, int fd)
{
    char *raw;
    bool flooding;

    if (!read_request(e, fd))
        return;
    pthread_mutex_lock(&e->lock);
    e->asked++;
    pthread_mutex_unlock(&e->lock);
    hold(e);
    pthread_mutex_lock(&e->lock);
    raw = e->raw != NULL ? strdup(e->raw) : NULL;
    flooding = e->flooding;
    pthread_mutex_unlock(&e->lock);
    if (flooding)
        flood(e, fd);
    else if (raw != NULL)
        send_all(fd, raw, strlen(raw));
    else
        judge(e, fd, e->request);
    free(raw);
    shutdown(fd, SHUT_WR);
}

static void *run(void *arg)
{
    struct token_endpoint *e = arg;
    bool stopping = false;

    while (!stopping) {
        struct pollfd p[2] = {{.fd = e->fd, .events = POLLIN}, {.fd = e->bell, .events = POLLIN}};
        uint64_t count;
        int fd;

        poll(p, 2, -1);
        if (p[1].revents != 0 && read(e->bell, &count, sizeof(count)) < 0)
            break;
        fd = p[0].revents != 0 ? accept(e->fd, NULL, NULL) : -1;
        if (fd >= 0) {
            serve(e, fd);
            close(fd);
        }
        pthread_mutex_lock(&e->lock);
        stopping = e->stopping;
        pthread_mutex_unlock(&e->lock);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

#define change(e, statement) \
    do { \
        uint64_t one = 1; \
        pthread_mutex_lock(&(e)->lock); \
        statement; \
        pthread_mutex_unlock(&(e)->lock); \
        if (write((e)->bell, &one, sizeof(one)) < 0) \
            abort(); \
    } while (0)

struct token_endpoint *token_endpoint_start(void)
{
    struct token_endpoint *e = calloc(1, sizeof(*e));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    e->life_s = 3600;
    e->bell = eventfd(0, EFD_CLOEXEC);
    e->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_mutex_init(&e->lock, NULL);
    if (bind(e->fd, (struct sockaddr *)&address, len) != 0 || listen(e->fd, 64) != 0 ||
        getsockname(e->fd, (struct sockaddr *)&address, &len) != 0 ||
        pthread_create(&e->thread, NULL, run, e) != 0)
        abort();
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%d/token?q=1", ntohs(address.sin_port));
    return e;
}

void token_endpoint_stop(struct token_endpoint **ep)
{
    struct token_endpoint *e = *ep;

    *ep = NULL;
    if (e == NULL)
        return;
    change(e, e->stopping = true);
    pthread_join(e->thread, NULL);
    pthread_mutex_destroy(&e->lock);
    close(e->fd);
    close(e->bell);
    free(e->raw);
    free(e);
}

const char *token_endpoint_url(const struct token_endpoint *e)
{
    return e->url;
}

void token_endpoint_life(struct token_endpoint *e, int seconds)
{
    change(e, e->life_s = seconds);
}

void token_endpoint_answer(struct token_endpoint *e, const char *raw)
{
    change(e, {
        free(e->raw);
        e->raw = raw != NULL ? strdup(raw) : NULL;
    });
}

void token_endpoint_hang(struct token_endpoint *e, bool hang)
{
    change(e, e->hanging = hang);
}

void token_endpoint_flood(struct token_endpoint *e)
{
    change(e, e->flooding = true);
}

static int read_count(struct token_endpoint *e, const int *count)
{
    int value;

    pthread_mutex_lock(&e->lock);
    value = *count;
    pthread_mutex_unlock(&e->lock);
    return value;
}

int token_endpoint_asked(struct token_endpoint *e)
{
    return read_count(e, &e->asked);
}

int token_endpoint_given(struct token_endpoint *e)
{
    return read_count(e, &e->given);
}

/* Between two requests: the thread writes without the lock. */
bool token_endpoint_saw(struct token_endpoint *e, const char *text)
{
    return strstr(e->request, text) != NULL;
}
