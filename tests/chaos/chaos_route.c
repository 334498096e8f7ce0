/* SPDX-License-Identifier: Apache-2.0 */
/* Detours through the test: listeners, and the environment that makes workers come to them. */
#include "chaos/chaos_route.h"

#include "chaos/chaos.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in local(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static void listen_for(struct chaos_route *route, int port)
{
    struct sockaddr_in addr = local(worker_run_free_port());
    int one = 1;

    route->to = port;
    route->through = ntohs(addr.sin_port);
    route->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(route->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    assert_int_equal(bind(route->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(route->listener, 128), 0);
}

int chaos_route_listen(struct chaos_route *routes, const int *ports)
{
    int count = 0;

    while (*ports != 0) {
        assert_true(count < CHAOS_ROUTES_MAX);
        listen_for(&routes[count++], *ports++);
    }
    return count;
}

bool chaos_route_accept(const struct chaos_route *route, int *near, int *far)
{
    struct sockaddr_in addr = local(route->to);
    int in = accept4(route->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
    int out = in < 0 ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (out < 0 || connect(out, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        close(in);
        close(out);
        return false;
    }
    setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *near = in;
    *far = out;
    return true;
}

void chaos_route_close(struct chaos_route *routes, int count)
{
    for (int i = 0; i < count; i++)
        close(routes[i].listener);
}

void chaos_route_use(const struct chaos_route *routes, int count)
{
    const char *text = "";

    if (count == 0) {
        unsetenv("LD_PRELOAD");
        return;
    }
    for (int i = 0; i < count; i++)
        text = scratch_text("%s%d:%d,", text, routes[i].to, routes[i].through);
    setenv("ROUTE_SHIM", text, 1);
    setenv("LD_PRELOAD", TEST_BUILD "/tests/support/preload/route_shim.so", 1);
}
