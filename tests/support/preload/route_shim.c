/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOADed into a worker and what it starts, or a broker: connections to some local ports go to
 * others, behind which a test can cut them. ROUTE_SHIM holds pairs, "from:to,from:to". */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SHOWN __attribute__((visibility("default")))

static int route_of(int port)
{
    const char *at = getenv("ROUTE_SHIM");
    int from, to, used;

    while (at != NULL && sscanf(at, "%d:%d%n", &from, &to, &used) == 2) {
        if (from == port)
            return to;
        at += used + (at[used] == ',');
    }
    return port;
}

/* IPv6 too, since a JVM reaches 127.0.0.1 so. */
SHOWN int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in to;
    struct sockaddr_in6 to6;

    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    if (addr != NULL && addr->sa_family == AF_INET && len >= sizeof(to)) {
        memcpy(&to, addr, sizeof(to));
        to.sin_port = htons((uint16_t)route_of(ntohs(to.sin_port)));
        return real(fd, (const struct sockaddr *)&to, sizeof(to));
    }
    if (addr != NULL && addr->sa_family == AF_INET6 && len >= sizeof(to6)) {
        memcpy(&to6, addr, sizeof(to6));
        to6.sin6_port = htons((uint16_t)route_of(ntohs(to6.sin6_port)));
        return real(fd, (const struct sockaddr *)&to6, sizeof(to6));
    }
    return real(fd, addr, len);
}
