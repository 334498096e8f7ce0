/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one path, as fast as they are answered, over connections that stay:
 *
 *   http_load PORT PATH CONNECTIONS SECONDS
 *
 * Each connection asks again when it has its answer. One line: requests a second, median, p99 and
 * longest time of one in ms, and how many were no 200 or did not come. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1000
#define ANSWER_MAX 65536
#define SLOTS 100000 /* of the histogram, 10 us each */

struct link {
    int fd;
    int64_t asked_us;
    size_t len;
    char answer[ANSWER_MAX + 1];
};

static struct link links[CONNECTIONS_MAX];
static uint32_t slots[SLOTS];
static uint64_t answers, wrong;
static int64_t longest_us;
static char request[4096];

static int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void ask(struct link *link)
{
    size_t len = strlen(request);

    link->len = 0;
    link->asked_us = now_us();
    if (send(link->fd, request, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("http_load: send");
}

static void count(struct link *link)
{
    int64_t us = now_us() - link->asked_us, slot = us / 10;

    slots[slot < SLOTS ? slot : SLOTS - 1]++;
    longest_us = us > longest_us ? us : longest_us;
    answers++;
    wrong += strncmp(link->answer, "HTTP/1.1 200", 12) != 0;
}

/* Head and body are there. */
static bool is_whole(const struct link *link)
{
    const char *end = strstr(link->answer, "\r\n\r\n");
    const char *length = end != NULL ? strcasestr(link->answer, "\r\nContent-Length:") : NULL;

    return length != NULL &&
           link->len >= (size_t)(end + 4 - link->answer) + strtoul(length + 17, NULL, 10);
}

static void hear(struct link *link)
{
    ssize_t n = recv(link->fd, link->answer + link->len, ANSWER_MAX - link->len, 0);

    if (n <= 0)
        die("http_load: recv");
    link->len += (size_t)n;
    link->answer[link->len] = '\0';
    if (!is_whole(link))
        return;
    count(link);
    ask(link);
}

static void dial(struct link *link, int port, int poller)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    int on = 1;

    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0 || connect(link->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        die("http_load: connect");
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (epoll_ctl(poller, EPOLL_CTL_ADD, link->fd, &event) != 0)
        die("http_load: epoll");
    ask(link);
}

static double at_ms(double part)
{
    uint64_t wanted = (uint64_t)((double)answers * part), seen = 0;

    for (int i = 0; i < SLOTS; i++)
        if ((seen += slots[i]) > wanted)
            return i / 100.0;
    return SLOTS / 100.0;
}

int main(int argc, char **argv)
{
    int connections = argc == 5 ? atoi(argv[3]) : 0, poller = epoll_create1(EPOLL_CLOEXEC);
    int64_t from_us = now_us(), until_us;

    if (connections < 1 || connections > CONNECTIONS_MAX) {
        fprintf(stderr, "usage: http_load PORT PATH CONNECTIONS SECONDS\n");
        return 1;
    }
    until_us = from_us + (int64_t)atoi(argv[4]) * 1000000;
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[2]);
    for (int i = 0; i < connections; i++)
        dial(&links[i], atoi(argv[1]), poller);
    while (now_us() < until_us) {
        struct epoll_event events[64];
        int n = epoll_wait(poller, events, 64, 1000);

        for (int i = 0; i < n; i++)
            hear(events[i].data.ptr);
        wrong += n == 0;
    }
    printf("%.0f %.2f %.2f %.1f %llu\n", (double)answers * 1e6 / (double)(now_us() - from_us),
           at_ms(0.5), at_ms(0.99), (double)longest_us / 1000, (unsigned long long)wrong);
    return 0;
}
