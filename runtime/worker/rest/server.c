/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: its listeners, each one libmicrohttpd daemon with one epoll thread (an "HTTP
 * thread"), their connections, and what the loop does of a request. What becomes of a request there
 * is in server_request.c.
 *
 * Invariant. libmicrohttpd ends the process when it is stopped with a suspended request, so the
 * gate counts them and server_free waits until none is left. */
#include "worker/rest/server_private.h"

#include "base/clock.h"
#include "worker/rest/client_cert.h"
#include "worker/rest/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define LOGGER "worker.rest"
#include "base/log.h"

/* A connection's, for request line, headers and read buffer. With half of it more requests overflow
 * it, and of some of these libmicrohttpd 0.9.75 never tells the end. */
#define POOL_BYTES 32768
#define STOP_MS 1000
#define REQUESTS_A_TURN 8    /* of the loop */
#define SPARE_CONNECTIONS 64 /* above connections_max, while evicted ones close */

const struct server_limits server_limits = {
    .connections_max = 2048,
    .changes_max = 1024,
    .body_bytes_max = 8 << 20,
    .bodies_bytes_max = 64 << 20,
    .idle_ms = 90000,
    .reading_ms = 25000,
    .writing_ms = 60000,
    .sweep_ms = 5000,
};

/* The client still sends: let the loop read that, so that the answer is not lost to a reset.
 * What the library refused by itself (a line that is too long) shows only by bytes that nobody
 * read. */
static void let_linger(struct server *server, struct conn_watched *watched, int fd)
{
    int unread = 0;
    int copy;

    if (!conn_watch_unread(watched) && (ioctl(fd, FIONREAD, &unread) != 0 || unread == 0))
        return;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return;
    shutdown(fd, SHUT_WR);
    gate_part(server->gate, copy);
}

static void ask_for_certificate(const struct front *front, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info;

    if (front->https == NULL || front->https->client_auth == WORKER_CLIENT_NONE)
        return;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    mr_assert(info != NULL);
    client_cert_ask(info->tls_session, front->https->client_auth == WORKER_CLIENT_REQUIRED);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    const struct front *front = arg;
    struct server *server = front->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = conn_watch_add(server->watch, info->connect_fd);
        ask_for_certificate(front, connection);
        return;
    }
    let_linger(server, *context, info->connect_fd);
    conn_watch_remove((struct conn_watched **)context);
}

/* The target is decoded by router.c, from what on_target gets. */
static size_t leave_escaped(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static void on_log(void *arg, const char *fmt, va_list args)
{
    char line[512];
    size_t len;

    (void)arg;
    vsnprintf(line, sizeof(line), fmt, args);
    len = strlen(line);
    while (len > 0 && line[len - 1] == '\n')
        line[--len] = '\0';
    log_debug("libmicrohttpd: %s", line);
}

/* --- on the loop ------------------------------------------------------------------------------ */

/* What came through the gate since; but few requests at a turn, as an answer may be large and
 * takes its time to write. */
static void take_requests(void *arg)
{
    struct server *server = arg;
    int fd;

    for (struct exchange *exchange = gate_take(server->gate, REQUESTS_A_TURN); exchange != NULL;) {
        struct exchange *next = exchange->next;

        call_start(&server->desk, exchange);
        exchange = next;
    }
    while ((fd = gate_take_parted(server->gate)) >= 0)
        linger_add(&server->lingering, fd);
}

/* call_desk.finished: the answer is in the exchange, and the HTTP thread goes on with it. */
static void give_back(void *arg, struct exchange *exchange)
{
    struct server *server = arg;

    server_request_resume(exchange);
    gate_leave(server->gate);
}

/* On the gate's own thread: the loop has not come for it in time. */
static void give_up(void *arg, struct exchange *exchange)
{
    struct server *server = arg;

    call_expire(exchange, "");
    server_request_resume(exchange);
    gate_leave(server->gate);
}

static void sweep_connections(void *arg)
{
    struct server *server = arg;
    size_t count = conn_watch_sweep(server->watch, clock_ms());

    if (count > 0)
        log_debug("closed %zu connections that were idle or too slow", count);
    loop_timer_start(server->loop, &server->sweep, server->limits.sweep_ms, sweep_connections,
                     server);
}

/* --- life ------------------------------------------------------------------------------------- */

/* What libmicrohttpd keeps of it stays as long as the server. */
static void tls_options(const struct worker_https *https, struct MHD_OptionItem *out)
{
    const struct tls_material *material = &https->material;
    size_t n = 0;

    out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, material->chain};
    out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, material->key};
    out[n++] = (struct MHD_OptionItem){
        MHD_OPTION_HTTPS_PRIORITIES, 0,
        (void *)(uintptr_t)(!material->tls12   ? "NORMAL:-VERS-ALL:+VERS-TLS1.3"
                            : !material->tls13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.2"
                                               : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2")};
    if (https->client_auth != WORKER_CLIENT_NONE)
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, material->trust};
    out[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

static struct MHD_Daemon *start_daemon(struct front *front, int fd)
{
    const struct server_limits *limits = &front->server->limits;
    struct MHD_OptionItem tls[5] = {{MHD_OPTION_END, 0, NULL}};
    struct MHD_Daemon *http;
    sigset_t all;
    sigset_t before;

    if (front->https != NULL)
        tls_options(front->https, tls);
    /* The HTTP thread inherits the mask: signals are the main thread's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    http = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (front->https != NULL ? MHD_USE_TLS : 0),
        0, NULL, NULL, server_request_feed, front, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(limits->connections_max + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(limits->idle_ms / 1000 + 1),
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_URI_LOG_CALLBACK, server_request_begin, front,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        server_request_end, front, MHD_OPTION_NOTIFY_CONNECTION, on_connection, front,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return http;
}

/* Under which name others reach this worker, before the first request may ask. */
static int name_worker(struct server *server, struct worker_config *config, const int *ports,
                       struct mr_error *err)
{
    char *name = listener_advertised(config, ports, &config->advertises_https, err);

    if (name == NULL)
        return MR_ERR_CONFIG;
    free(config->worker_id);
    config->worker_id = name;
    server->port = ports[0];
    snprintf(server->worker_id, sizeof(server->worker_id), "%s", name);
    return 0;
}

static int start_front(struct server *server, const struct worker_listener *listener, int fd,
                       int port, struct mr_error *err)
{
    struct front *front = &server->fronts[server->front_count];

    *front = (struct front){.server = server, .admin = listener->admin};
    if (listener->https)
        front->https = listener->admin ? &server->admin_https : &server->https;
    front->daemon = start_daemon(front, fd);
    /* The library has closed fd or not, depending on where it failed: leave it, start-up ends
     * here. */
    if (front->daemon == NULL)
        return mr_fail(err, MR_ERR_IO,
                       "cannot start the HTTP server for port %d: out of memory, threads or "
                       "descriptors%s",
                       port, listener->https ? ", or its certificate can't be used" : "");
    server->front_count++;
    log_info("listening on %s://%s:%d%s", listener->https ? "https" : "http",
             *listener->host != '\0' ? listener->host : "*", port,
             listener->admin ? ", for administration" : "");
    return 0;
}

/* All sockets first: a worker that answers knows its name. */
static int start_fronts(struct server *server, struct worker_config *config, struct mr_error *err)
{
    int fds[2 * WORKER_CONFIG_LISTENERS], ports[2 * WORKER_CONFIG_LISTENERS] = {0};
    size_t opened = 0, started = 0;
    int rc = 0;

    for (; opened < config->listener_count && rc == 0; opened += rc == 0) {
        fds[opened] = listener_open(&config->listeners[opened], &ports[opened], err);
        rc = fds[opened] < 0 ? fds[opened] : 0;
    }
    if (rc == 0)
        rc = name_worker(server, config, ports, err);
    for (; started < opened && rc == 0; started++)
        rc = start_front(server, &config->listeners[started], fds[started], ports[started], err);
    for (; started < opened; started++)
        close(fds[started]);
    return rc;
}

/* --- settings --------------------------------------------------------------------------------- */

static bool has_https(const struct worker_config *config, bool admin)
{
    for (size_t i = 0; i < config->listener_count; i++)
        if (config->listeners[i].https && config->listeners[i].admin == admin)
            return true;
    return false;
}

/* The API starts any installed plugin: who opens it to a network should know. */
static void warn_if_open(const struct server *server, const struct worker_config *config)
{
    for (size_t i = 0; i < config->listener_count && server->auth == NULL && server->filter == NULL;
         i++) {
        const struct worker_listener *listener = &config->listeners[i];
        bool asks = listener->https && server->https.client_auth == WORKER_CLIENT_REQUIRED;

        if (listener->admin || asks || listener_is_local(listener))
            continue;
        log_warn("whoever reaches port %d may use the API: nothing asks who it is. Set "
                 "rest.extension.classes for users and passwords, serve https with "
                 "ssl.client.auth=required, or listen on localhost",
                 listener->port);
        return;
    }
}

static int read_settings(struct server *server, const struct worker_config *config,
                         struct mr_error *err)
{
    int rc = rest_auth_new(config, &server->auth, err);

    if (rc == 0)
        rc = rest_filter_new(config, &server->filter, err);
    server->admin_apart = config->admin_apart;
    if (rc == 0 && (server->headers = rest_headers_new(config, err)) == NULL)
        rc = MR_ERR_CONFIG;
    if (rc == 0 && has_https(config, false))
        rc = worker_https_load_server(config, WORKER_HTTPS_MAIN, &server->https, err);
    if (rc == 0 && has_https(config, true))
        rc = worker_https_load_server(config, WORKER_HTTPS_ADMIN, &server->admin_https, err);
    if (rc == 0)
        warn_if_open(server, config);
    return rc;
}

static void lower_to_descriptors(struct server_limits *limits)
{
    struct rlimit descriptors;

    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 &&
        descriptors.rlim_cur / 2 < limits->connections_max)
        limits->connections_max = descriptors.rlim_cur / 2;
}

struct server *server_new_limited(struct loop *loop, struct worker_config *config,
                                  const struct server_limits *limits, struct mr_error *err)
{
    struct server *server = calloc(1, sizeof(*server));

    mr_assert(server != NULL);
    server->loop = loop;
    server->limits = *limits;
    server->forwards = config->cluster.group_id != NULL;
    lower_to_descriptors(&server->limits);
    server->watch = conn_watch_new(&(struct conn_watch_limits){
        .connections_max = server->limits.connections_max,
        .ms = {[CONN_IDLE] = limits->idle_ms,
               [CONN_READING] = limits->reading_ms,
               [CONN_WRITING] = limits->writing_ms},
    });
    server->gate = gate_new(loop, take_requests, give_up, server);
    server->lingering.loop = loop;
    server->desk = (struct call_desk){
        .loop = loop,
        .closed_text = "Worker is still starting up.",
        .changes_max = limits->changes_max,
        .finished = give_back,
        .arg = server,
    };
    if (read_settings(server, config, err) != 0 || start_fronts(server, config, err) != 0) {
        server_free(&server);
        return NULL;
    }
    loop_timer_start(loop, &server->sweep, limits->sweep_ms, sweep_connections, server);
    return server;
}

struct server *server_new(struct loop *loop, struct worker_config *config, struct mr_error *err)
{
    return server_new_limited(loop, config, &server_limits, err);
}

void server_open(struct server *server, struct herder *herder)
{
    loop_assert_owner(server->loop);
    server->desk.herder = herder;
}

void server_close(struct server *server)
{
    loop_assert_owner(server->loop);
    gate_close(server->gate);
    if (server->filter != NULL)
        rest_filter_close(server->filter);
    server->desk.herder = NULL;
    server->desk.closed_text = "Worker is shutting down";
    call_abandon_all(&server->desk);
    take_requests(server);
}

void server_free(struct server **sp)
{
    struct server *server = *sp;
    int64_t until_ms = clock_ms() + STOP_MS;

    *sp = NULL;
    if (server == NULL)
        return;
    /* Listeners stay until the daemons stop: to quiesce them first races with their threads in
     * 0.9.75. */
    server_close(server);
    do
        take_requests(server);
    while (!gate_drained(server->gate, until_ms));
    for (size_t i = 0; i < server->front_count; i++)
        MHD_stop_daemon(server->fronts[i].daemon);
    loop_timer_cancel(&server->sweep);
    linger_close_all(&server->lingering);
    gate_free(&server->gate);
    conn_watch_free(&server->watch);
    rest_headers_free(&server->headers);
    rest_auth_free(&server->auth);
    rest_filter_free(&server->filter);
    worker_https_deinit(&server->https);
    worker_https_deinit(&server->admin_https);
    free(server);
}

int server_port(const struct server *server)
{
    return server->port;
}
