/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the sockets that the server listens on, and works out under which name this worker is
 * reached. The server binds by itself, and not through its HTTP library, so that a port in use
 * or a foreign address is one clear line. Start-up only. */
#include "worker/rest/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define BACKLOG 1024

/* host:port as it stands in a URL. */
static void spell(char *out, size_t size, const char *host, int port)
{
    bool ipv6 = strchr(host, ':') != NULL && host[0] != '[';

    snprintf(out, size, ipv6 ? "[%s]:%d" : "%s:%d", host, port);
}

static int cannot_listen(const struct worker_listener *listener, int error, struct mr_error *err)
{
    const char *host = listener->host, *scheme = listener->https ? "https" : "http";
    const char *key = listener->admin ? "admin.listeners" : "listeners";
    char address[300], other[300];
    int port = listener->port;

    spell(address, sizeof(address), host, port);
    spell(other, sizeof(other), host, port < 65535 ? port + 1 : port - 1);
    switch (error) {
    case EADDRINUSE:
        return mr_fail(err, MR_ERR_IO,
                       "port %d is in use: another process, or another listener of this worker, "
                       "is on %s://%s%s. Stop it, or set `%s` to a free port, such as %s=%s://%s",
                       port, scheme, address, host[0] == '\0' ? " (no host: on any interface)" : "",
                       key, key, scheme, other);
    case EADDRNOTAVAIL:
        return mr_fail(err, MR_ERR_IO,
                       "cannot listen on %s://%s: this machine has no address %s. Set the host in "
                       "`%s` to one of its own, or leave it empty for all",
                       scheme, address, listener->host, key);
    case EACCES:
        return mr_fail(err, MR_ERR_IO,
                       "cannot listen on %s://%s: no permission for port %d. Set `%s` to a port "
                       "above 1023",
                       scheme, address, port, key);
    default:
        return mr_fail(err, MR_ERR_IO, "cannot listen on %s://%s (property `%s`): %s", scheme,
                       address, key, strerror(error));
    }
}

/* A socket bound to one address; negative errno when it can't be. */
static int bind_address(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    int off = 0;
    int rc;

    if (fd < 0)
        return -errno;
    rc = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (rc == 0 && address->sa_family == AF_INET6)
        rc = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (rc == 0 && bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

static int bind_everywhere(int port)
{
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_ANY)};
    int fd = bind_address((const struct sockaddr *)&six, sizeof(six));

    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        fd = bind_address((const struct sockaddr *)&four, sizeof(four));
    return fd;
}

/* IPv4 before IPv6, as the JVM prefers it. */
static int bind_first(const struct addrinfo *found)
{
    int fd = -EADDRNOTAVAIL;

    for (int pass = 0; pass < 2 && fd < 0; pass++)
        for (const struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next)
            if ((a->ai_family == AF_INET) == (pass == 0))
                fd = bind_address(a->ai_addr, a->ai_addrlen);
    return fd;
}

static int bind_host(const struct worker_listener *listener, struct mr_error *err)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    int rc;

    snprintf(port, sizeof(port), "%d", listener->port);
    rc = getaddrinfo(listener->host, port, &hints, &found);
    if (rc != 0) {
        mr_fail(err, MR_ERR_CONFIG, "property `listeners`: the host %s cannot be resolved: %s",
                listener->host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        return MR_ERR_CONFIG;
    }
    rc = bind_first(found);
    freeaddrinfo(found);
    return rc < 0 ? cannot_listen(listener, -rc, err) : rc;
}

static int bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address;
    socklen_t len = sizeof(address);

    memset(&address, 0, sizeof(address));
    if (getsockname(fd, &address.any, &len) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.six.sin6_port : address.four.sin_port);
}

int listener_open(const struct worker_listener *listener, int *port, struct mr_error *err)
{
    int fd;

    if (listener->host[0] != '\0') {
        fd = bind_host(listener, err);
    } else {
        fd = bind_everywhere(listener->port);
        if (fd < 0)
            fd = cannot_listen(listener, -fd, err);
    }
    if (fd >= 0)
        *port = bound_port(fd);
    return fd;
}

bool listener_is_local(const struct worker_listener *listener)
{
    return strcasecmp(listener->host, "localhost") == 0 || strcmp(listener->host, "::1") == 0 ||
           strncmp(listener->host, "127.", 4) == 0;
}

/* --- the advertised name ---------------------------------------------------------------------- */

/* An address of this machine that others may reach; the loopback one when there is no other. */
static void own_address(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    const struct ifaddrs *best = NULL;

    snprintf(out, size, "127.0.0.1");
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *i = all; i != NULL && best == NULL; i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
            (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0)
            best = i;
    if (best != NULL)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)best->ifa_addr)->sin_addr,
                  out, (socklen_t)size);
    freeifaddrs(all);
}

/* A property's value, NULL when it is absent, null or blank. */
static const char *value_of(const struct worker_config *config, const char *key)
{
    const char *value = props_get(&config->props, key);

    return value != NULL && value[strspn(value, " \t")] != '\0' ? value : NULL;
}

static int advertised_port(const struct worker_config *config, int port, int *out,
                           struct mr_error *err)
{
    const char *text = value_of(config, "rest.advertised.port");
    char *end;
    long value;

    *out = port;
    if (text == NULL)
        return 0;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || end[strspn(end, " \t")] != '\0' || value < 1 || value > 65535)
        return mr_fail(err, MR_ERR_CONFIG,
                       "Invalid value %s for configuration rest.advertised.port: it must be a "
                       "port, 1 to 65535",
                       text);
    *out = (int)value;
    return 0;
}

/* The first listener of a scheme, of those that clients use; -1: none. */
static int first_of(const struct worker_config *config, bool https)
{
    for (size_t i = 0; i < config->listener_count; i++)
        if (!config->listeners[i].admin && config->listeners[i].https == https)
            return (int)i;
    return -1;
}

static int choose(const struct worker_config *config, int *out, struct mr_error *err)
{
    const char *scheme = value_of(config, "rest.advertised.listener");
    bool https = scheme != NULL && strcasecmp(scheme, "https") == 0;

    if (scheme == NULL && first_of(config, false) < 0)
        https = true;
    *out = first_of(config, https);
    if ((scheme == NULL || https || strcasecmp(scheme, "http") == 0) && *out >= 0)
        return 0;
    return mr_fail(err, MR_ERR_CONFIG,
                   "Invalid value %s for configuration rest.advertised.listener: no listener has "
                   "this scheme; use that of one of `listeners`",
                   scheme != NULL ? scheme : "");
}

char *listener_advertised(const struct worker_config *config, const int *ports, bool *https,
                          struct mr_error *err)
{
    const char *host = value_of(config, "rest.advertised.host.name");
    char own[INET6_ADDRSTRLEN];
    char name[320];
    int chosen, port;

    if (choose(config, &chosen, err) != 0 ||
        advertised_port(config, ports[chosen], &port, err) != 0)
        return NULL;
    own_address(own, sizeof(own));
    if (host == NULL)
        host = config->listeners[chosen].host[0] != '\0' ? config->listeners[chosen].host : own;
    spell(name, sizeof(name), host, port);
    *https = config->listeners[chosen].https;
    return strdup(name);
}
