/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of services, and how a question is asked: by whoever resolves a configuration (hosts,
 * `millrace check`, threads of the worker's), which waits for the answer. The worker's end, which
 * must not wait, is worker/supervisor/services.c.
 *
 * The socket is an abstract one of a random name: nothing is left in the file system, and no run
 * folder's path is too long for it. Who else is on the machine is kept out by both sides, which
 * look at whose the other one is. */
#include "base/service_link.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define CONNECT_MS 100
#define CHUNK ((size_t)64 << 10)

size_t service_link_length(const char *head)
{
    const unsigned char *b = (const unsigned char *)head;

    return (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

void service_link_head(char *head, size_t len)
{
    for (int i = 0; i < SERVICE_LINK_HEAD; i++)
        head[i] = (char)(len >> (8 * i) & 0xff);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* 0 when fd is ready, or has ended; MR_ERR_TIMEOUT. */
static int wait_for(int fd, short events, int64_t due_ms, struct mr_error *err)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = due_ms < 0 ? -1 : due_ms - clock_ms();
        int rc;

        if (due_ms >= 0 && left <= 0)
            return mr_fail(err, MR_ERR_TIMEOUT, "there was no answer in time");
        rc = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
        if (rc > 0)
            return 0;
        if (rc < 0 && errno != EINTR)
            return err_errno(err, "cannot wait for a socket");
    }
}

/* The same for the first byte of an answer; MR_ERR_CLOSED: it is called off. */
static int wait_for_either(int fd, int cancel_fd, int64_t due_ms, struct mr_error *err)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
    int64_t left;

    while ((left = due_ms - clock_ms()) > 0) {
        int rc = poll(p, 2, left > INT_MAX ? INT_MAX : (int)left);

        if (rc < 0 && errno != EINTR)
            return err_errno(err, "cannot wait for a socket");
        if (rc > 0 && p[1].revents != 0)
            return mr_fail(err, MR_ERR_CLOSED, "it was called off");
        if (rc > 0)
            return 0;
    }
    return mr_fail(err, MR_ERR_TIMEOUT, "there was no answer in time");
}

static int read_exactly(int fd, char *to, size_t len, int64_t due_ms, struct mr_error *err)
{
    while (len > 0) {
        int rc = wait_for(fd, POLLIN, due_ms, err);
        ssize_t n;

        if (rc != 0)
            return rc;
        n = recv(fd, to, len, MSG_DONTWAIT);
        if (n == 0)
            return mr_fail(err, MR_ERR_CLOSED, "the connection was closed");
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_errno(err, "cannot read from a socket");
        to += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int write_exactly(int fd, const char *from, size_t len, int64_t due_ms, struct mr_error *err)
{
    while (len > 0) {
        int rc = wait_for(fd, POLLOUT, due_ms, err);
        ssize_t n;

        if (rc != 0)
            return rc;
        n = send(fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return mr_fail(err, MR_ERR_CLOSED, "the connection was closed");
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_errno(err, "cannot write to a socket");
        from += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

int service_link_read(int fd, size_t max, int64_t due_ms, struct buf *body, struct mr_error *err)
{
    char head[SERVICE_LINK_HEAD];
    int rc = read_exactly(fd, head, sizeof(head), due_ms, err);
    size_t left = rc == 0 ? service_link_length(head) : 0;

    if (left > max)
        return mr_fail(err, MR_ERR_PROTOCOL, "a frame of %zu bytes, where %zu are possible", left,
                       max);
    /* Memory grows with what has come, not with what was said. */
    while (rc == 0 && left > 0) {
        size_t part = left < CHUNK ? left : CHUNK;

        if (buf_reserve(body, part) != 0)
            return mr_fail(err, MR_ERR_NOMEM, "out of memory for a frame");
        rc = read_exactly(fd, body->data + body->len, part, due_ms, err);
        if (rc == 0) {
            body->len += part;
            body->data[body->len] = '\0';
            left -= part;
        }
    }
    return rc;
}

int service_link_write(int fd, const char *body, size_t len, int64_t due_ms, struct mr_error *err)
{
    char head[SERVICE_LINK_HEAD];
    int rc;

    service_link_head(head, len);
    rc = write_exactly(fd, head, sizeof(head), due_ms, err);
    return rc == 0 ? write_exactly(fd, body, len, due_ms, err) : rc;
}

/* --- the socket ------------------------------------------------------------------------------- */

/* Of the address; 0: the name does not fit. */
static socklen_t address_of(const char *name, struct sockaddr_un *to)
{
    size_t len = strlen(name);

    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (len == 0 || len > SERVICE_LINK_NAME_MAX)
        return 0;
    memcpy(to->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

int service_link_listen(const char *name)
{
    struct sockaddr_un address;
    socklen_t len = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && (len == 0 || bind(fd, (const struct sockaddr *)&address, len) != 0 ||
                    listen(fd, BACKLOG) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool service_link_is_ours(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == geteuid();
}

static bool is_called_off(int cancel_fd)
{
    struct pollfd p = {.fd = cancel_fd, .events = POLLIN};

    return cancel_fd > 0 && poll(&p, 1, 0) > 0;
}

/* With as many connections before it as the socket takes, a connection waits in the kernel, which
 * poll does not see: so for a moment each time. */
static int connect_to(const struct service_link_question *q, int fd, int64_t due_ms,
                      struct mr_error *err)
{
    const struct timeval moment = {.tv_usec = CONNECT_MS * 1000};
    struct sockaddr_un address;
    socklen_t len = address_of(q->socket, &address);

    if (len == 0)
        return mr_fail(err, MR_ERR_PROTOCOL, "the worker's services have no usable name");
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment)) != 0)
        return err_errno(err, "no time limit for a socket");
    while (connect(fd, (const struct sockaddr *)&address, len) != 0) {
        if (errno != EINTR && errno != EAGAIN)
            return err_errno(err, "the worker's services cannot be reached");
        if (is_called_off(q->cancel_fd))
            return mr_fail(err, MR_ERR_CLOSED, "it was called off");
        if (clock_ms() >= due_ms)
            return mr_fail(err, MR_ERR_TIMEOUT, "the worker's services are busy");
    }
    if (!service_link_is_ours(fd))
        return mr_fail(err, MR_ERR_IO, "the worker's services belong to another user");
    return 0;
}

int service_link_ask(const struct service_link_question *q, struct buf *answer,
                     struct mr_error *err)
{
    int64_t due_ms = clock_ms() + q->wait_ms;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return err_errno(err, "no socket to ask the worker's services with");
    rc = connect_to(q, fd, due_ms, err);
    if (rc == 0)
        rc = service_link_write(fd, q->body, q->len, due_ms, err);
    if (rc == 0 && q->cancel_fd > 0)
        rc = wait_for_either(fd, q->cancel_fd, due_ms, err);
    if (rc == 0)
        rc = service_link_read(fd, SERVICE_LINK_ANSWER_MAX, due_ms, answer, err);
    close(fd);
    return rc;
}
