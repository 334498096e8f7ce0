/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server. Each listener is one libmicrohttpd daemon with one epoll thread (an "HTTP thread").
 *
 * A request goes: on_target (request line) → on_request with the headers (check_request: what can be refused without the
 * body) → on_request with pieces of body → on_request with nothing left (finish_request: parse the body; what needs the
 * worker is suspended and handed over the gate) → take_requests, on the loop (call_start) → give_back, on the loop (resume) →
 * on_request again (send_answer) → on_completed.
 *
 * Invariants. A request belongs to its HTTP thread, and between hand_over and give_back to the loop; nobody else touches it.
 * It cannot be freed while suspended, since libmicrohttpd completes no suspended request. libmicrohttpd ends the process when
 * it is stopped with a suspended request, so the gate counts them and server_free waits until none is left. */
#include "worker/rest/server.h"

#include "base/clock.h"
#include "worker/rest/conn_watch.h"
#include "worker/rest/gate.h"
#include "worker/rest/linger.h"
#include "worker/rest/listener.h"
#include "worker/rest/rest_private.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define LOGGER "worker.rest"
#include "base/log.h"

#define HEADERS_MAX 8192        /* bytes of a header block */
#define POOL_BYTES 32768        /* a connection's, for request line, headers and read buffer */
#define DRAIN_MAX (256LL << 20) /* bytes of a refused body that are read and dropped */
#define STOP_MS 1000
#define REQUESTS_A_TURN 8    /* of the loop */
#define SPARE_CONNECTIONS 64 /* above connections_max, while evicted ones close */

const struct server_limits server_limits = {
    .connections_max = 2048,
    .waiting_max = 1024,
    .body_bytes_max = 8 << 20,
    .bodies_bytes_max = 64 << 20,
    .idle_ms = 90000,
    .reading_ms = 60000,
    .writing_ms = 60000,
    .sweep_ms = 5000,
};

struct request {
    struct exchange exchange; /* first: give_back finds the request by it */
    struct server *server;
    struct MHD_Connection *connection;
    struct conn_watched *watched;
    char *raw; /* the target as sent, for the log */
    char method[16];
    bool checked;    /* the headers have been seen */
    bool counted;    /* gate_begin was called */
    struct buf body; /* its max is what the request has reserved of body_bytes */
    int64_t dropped_bytes;
    size_t sent_bytes;
    int sent_status;
};

struct server {
    struct loop *loop;
    struct server_limits limits;
    struct MHD_Daemon *daemons[WORKER_CONFIG_LISTENERS];
    size_t daemon_count;
    int port; /* of the first listener */
    char worker_id[264];
    struct gate *gate;
    struct conn_watch *watch;
    struct call_desk desk;
    struct linger_set lingering;
    struct loop_timer sweep;
    atomic_size_t body_bytes; /* of all requests */
    bool forwards;            /* to other workers: bodies are kept until the answer */
};

/* --- requests ------------------------------------------------------------------------------------------------------------------ */

static void release_body(struct request *req)
{
    atomic_fetch_sub(&req->server->body_bytes, req->body.max);
    buf_deinit(&req->body);
    req->body.max = 0;
}

static void request_free(struct request *req)
{
    release_body(req);
    router_deinit(&req->exchange.target);
    request_json_create_deinit(&req->exchange.input);
    entities_deinit(&req->exchange.answer);
    free(req->raw);
    free(req);
}

static struct answer *answer_of(struct request *req)
{
    return &req->exchange.answer;
}

static bool answered(const struct request *req)
{
    return req->exchange.answer.status != 0;
}

/* The body of an answer that refuses the request as it stands. */
static void refuse(struct request *req, int status)
{
    if (!answered(req))
        entities_http_error(answer_of(req), status);
}

/* As Jersey refuses what no method was found for: its error says not of what type it is. */
static void refuse_unmatched(struct request *req, int status)
{
    refuse(req, status);
    answer_of(req)->type = NULL;
}

static void refuse_with(struct request *req, const struct mr_error *err)
{
    if (!answered(req))
        entities_failed(answer_of(req), err);
}

/* The request itself is not HTTP: that comes before what its path deserves. */
static void refuse_anew(struct request *req, const char *what)
{
    char message[128];

    snprintf(message, sizeof(message), "Bad request: %s", what);
    entities_deinit(answer_of(req));
    entities_error(answer_of(req), 400, message);
}

static const char *header(struct request *req, const char *name)
{
    return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

struct accept_search {
    const char *type;
    const char *subtype;
    bool any; /* an Accept header is there */
    bool found;
};

static enum MHD_Result look_at_accept(void *arg, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    struct accept_search *search = arg;

    (void)kind;
    if (strcasecmp(key, "Accept") == 0 && value != NULL) {
        search->any = true;
        search->found = search->found || router_accepts(value, search->type, search->subtype);
    }
    return MHD_YES;
}

static bool accepts(struct request *req, const char *type, const char *subtype)
{
    struct accept_search search = {.type = type, .subtype = subtype};

    MHD_get_connection_values(req->connection, MHD_HEADER_KIND, look_at_accept, &search);
    return search.found || !search.any;
}

static enum MHD_Result count_length(void *arg, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    int *count = arg;

    (void)kind;
    (void)value;
    *count += strcasecmp(key, "Content-Length") == 0;
    return MHD_YES;
}

/* A request whose end can be understood in two ways is refused, and its connection closed with it. */
static bool framing_is_clear(struct request *req)
{
    const char *coding = header(req, "Transfer-Encoding");
    int lengths = 0;

    MHD_get_connection_values(req->connection, MHD_HEADER_KIND, count_length, &lengths);
    if (coding != NULL)
        return lengths == 0 && strcasecmp(coding, "chunked") == 0;
    return lengths <= 1;
}

/* The Host header goes out again in Location: only what a host and a port are made of. */
static void keep_host(struct request *req)
{
    const char *host = header(req, "Host");
    size_t len = host != NULL ? strlen(host) : 0;

    if (len == 0 || len >= sizeof(req->exchange.host) ||
        strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != len)
        host = req->server->worker_id;
    snprintf(req->exchange.host, sizeof(req->exchange.host), "%s", host);
}

static void check_size(struct request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t target = strlen(req->raw);

    if (target > ROUTER_TARGET_MAX)
        refuse(req, 414);
    else if (info != NULL && info->header_size > target + HEADERS_MAX)
        refuse(req, 431);
}

static void check_route(struct request *req)
{
    struct router_match *match = &req->exchange.match;
    int status;

    if (answered(req))
        return;
    router_match(routes, routes_count, req->method, &req->exchange.target, match);
    if (match->status == 200)
        entities_options(answer_of(req), match->allow, accepts(req, "text", "plain"));
    else if (match->status != 0)
        refuse_unmatched(req, match->status);
    else if ((status = router_check(match, accepts(req, "application", "json"),
                                    router_type(header(req, "Content-Type")))) == 406 ||
             status == 415)
        refuse_unmatched(req, status);
    else if (status != 0)
        refuse(req, status);
}

/* The length that the client announces, 0 when it doesn't. libmicrohttpd has checked that it is a number. */
static uint64_t announced_length(struct request *req)
{
    const char *text = header(req, "Content-Length");

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* With the headers: everything that can be said without the body. */
static void check_request(struct request *req, const char *method)
{
    snprintf(req->method, sizeof(req->method), "%s", method);
    keep_host(req);
    check_size(req);
    check_route(req);
    if (announced_length(req) > req->server->limits.body_bytes_max)
        refuse(req, 413);
}

/* --- sending ------------------------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_answer(struct request *req)
{
    struct answer *answer = answer_of(req);
    struct MHD_Response *response;
    enum MHD_Result rc;

    req->sent_status = answer->status;
    req->sent_bytes = answer->len;
    response = MHD_create_response_from_buffer(
        answer->len, answer->body != NULL ? answer->body : (void *)(uintptr_t) "",
        answer->body != NULL ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    answer->body = NULL;
    if (answer->type != NULL)
        MHD_add_response_header(response, "Content-Type", answer->type);
    if (answer->location != NULL)
        MHD_add_response_header(response, "Location", answer->location);
    if (answer->allow)
        MHD_add_response_header(response, "Allow", req->exchange.match.allow);
    conn_watch_phase(req->watched, CONN_WRITING);
    rc = MHD_queue_response(req->connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------------------------------------------- */

/* Make sure that this request's body may grow to max bytes; false when all bodies together are too much. */
static bool reserve_body(struct request *req, size_t max)
{
    struct server *server = req->server;
    size_t more;

    if (max <= req->body.max)
        return true;
    more = max - req->body.max;
    if (atomic_fetch_add(&server->body_bytes, more) + more > server->limits.bodies_bytes_max) {
        atomic_fetch_sub(&server->body_bytes, more);
        return false;
    }
    req->body.max = max;
    return true;
}

static enum MHD_Result drop_body(struct request *req, size_t *len)
{
    req->dropped_bytes += (int64_t)*len;
    *len = 0;
    return req->dropped_bytes > DRAIN_MAX ? MHD_NO : MHD_YES;
}

static enum MHD_Result take_body(struct request *req, const char *data, size_t *len)
{
    size_t need = req->body.len + *len;
    size_t max = req->server->limits.body_bytes_max;
    bool wanted = !answered(req) && req->exchange.match.route->body != ROUTE_NO_BODY;

    if (wanted && need > max)
        refuse(req, 413);
    else if (wanted && !reserve_body(req, need <= max / 2 ? need * 2 : max))
        entities_error(answer_of(req), 503,
                       "Too many requests with a body are under way; try again later");
    else if (wanted && buf_append(&req->body, data, *len) != 0)
        entities_error(answer_of(req), 503, "out of memory");
    if (answered(req))
        release_body(req);
    if (answered(req) || !wanted)
        return drop_body(req, len);
    *len = 0;
    return MHD_YES;
}

static void keep_raw(struct request *req)
{
    struct exchange *exchange = &req->exchange;

    exchange->raw_target = req->raw;
    exchange->body = req->body.data;
    exchange->body_len = req->body.len;
    exchange->authorization = header(req, "Authorization");
    exchange->signature = header(req, "X-Connect-Authorization");
    exchange->signature_algorithm = header(req, "X-Connect-Request-Signature-Algorithm");
}

static void parse_body(struct request *req)
{
    struct exchange *exchange = &req->exchange;
    enum route_body kind = exchange->match.route->body;
    const char *data = req->body.data != NULL ? req->body.data : "";
    struct mr_error err = {0};
    int rc = 0;

    if (kind == ROUTE_RAW || req->server->forwards)
        keep_raw(req);
    if (kind == ROUTE_NO_BODY || kind == ROUTE_RAW)
        return;
    if (req->body.len > 0 && router_type(header(req, "Content-Type")) != ROUTER_TYPE_JSON) {
        refuse(req, 415);
        return;
    }
    if (kind == ROUTE_CREATE)
        rc = request_json_create(data, req->body.len, &exchange->input, &exchange->input_absent,
                                 &err);
    else
        rc = request_json_config(data, req->body.len, &exchange->input.config,
                                 &exchange->input_absent, &err);
    if (rc != 0)
        refuse_with(req, &err);
    if (rc != 0 || !req->server->forwards)
        release_body(req);
}

/* Suspend and pass on to the loop; false when the server is closing. */
static bool hand_over(struct request *req)
{
    struct gate *gate = req->server->gate;

    if (!gate_enter(gate))
        return false;
    MHD_suspend_connection(req->connection);
    gate_pass(gate, &req->exchange);
    return true;
}

static void begin_answer(struct request *req)
{
    gate_begin(req->server->gate);
    req->counted = true;
}

static enum MHD_Result finish_request(struct request *req)
{
    begin_answer(req);
    req->exchange.since_ms = clock_ms();
    if (!answered(req))
        parse_body(req);
    if (!answered(req)) {
        conn_watch_phase(req->watched, CONN_WAITING);
        if (hand_over(req))
            return MHD_YES;
        entities_error(answer_of(req), 503, "Worker is shutting down");
    }
    return send_answer(req);
}

/* --- libmicrohttpd's callbacks, on an HTTP thread ------------------------------------------------------------------------------- */

static struct conn_watched *watched_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* The request line is there. What this gives is the request's context; NULL closes the connection. */
static void *on_target(void *arg, const char *raw, struct MHD_Connection *connection)
{
    struct request *req = calloc(1, sizeof(*req));
    struct mr_error err = {0};

    if (req == NULL)
        return NULL;
    req->server = arg;
    req->connection = connection;
    req->watched = watched_of(connection);
    req->raw = strdup(raw != NULL ? raw : "");
    if (req->raw == NULL) {
        free(req);
        return NULL;
    }
    conn_watch_phase(req->watched, CONN_READING);
    if (strlen(req->raw) <= ROUTER_TARGET_MAX &&
        router_parse(&req->exchange.target, req->raw, &err) != 0)
        refuse_with(req, &err);
    return req;
}

/* Headers are complete. An answer now would close the connection, so it waits for the body's end unless the body is not
 * worth reading. */
static enum MHD_Result begin_request(struct request *req, const char *method, const char *version)
{
    bool clear = framing_is_clear(req);
    bool readable = clear && header(req, "Expect") == NULL;

    req->checked = true;
    if (!clear)
        refuse_anew(req, "Content-Length and Transfer-Encoding contradict each other");
    else if (strcmp(version, "HTTP/1.1") == 0 && header(req, "Host") == NULL)
        refuse_anew(req, "HTTP/1.1 asks for a Host header");
    check_request(req, method);
    if (!answered(req) || (readable && announced_length(req) <= req->server->limits.body_bytes_max))
        return MHD_YES;
    conn_watch_note_unread(req->watched);
    begin_answer(req);
    return send_answer(req);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **context)
{
    struct request *req = *context;

    (void)arg;
    (void)connection;
    (void)url;
    if (req == NULL)
        return MHD_NO;
    if (!req->checked)
        return begin_request(req, method, version);
    if (*len > 0)
        return take_body(req, data, len);
    if (req->counted)
        return send_answer(req);
    return finish_request(req);
}

static void log_access(const struct request *req)
{
    char path[256];
    size_t n = strcspn(req->raw, "?");

    snprintf(path, sizeof(path), "%.*s", n < sizeof(path) ? (int)n : (int)sizeof(path) - 1,
             req->raw);
    for (char *c = path; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    log_debug("\"%s %s HTTP/1.1\" %d, %zu bytes, %lld ms", req->method, path, req->sent_status,
              req->sent_bytes,
              req->exchange.since_ms > 0 ? (long long)(clock_ms() - req->exchange.since_ms) : 0LL);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    struct request *req = *context;

    (void)arg;
    (void)connection;
    (void)how;
    *context = NULL;
    if (req == NULL)
        return;
    conn_watch_phase(req->watched, CONN_IDLE);
    log_access(req);
    if (req->counted)
        gate_end(req->server->gate);
    request_free(req);
}

/* The client still sends: let the loop read that, so that the answer is not lost to a reset. What the library refused by
 * itself (a line that is too long) shows only by bytes that nobody read. */
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

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *server = arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = conn_watch_add(server->watch, info->connect_fd);
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

/* --- on the loop ------------------------------------------------------------------------------------------------------------------ */

/* What came through the gate since; but few requests at a turn, as an answer may be large and takes its time to write. */
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
    struct request *req = (struct request *)exchange;

    MHD_resume_connection(req->connection);
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

/* --- life ------------------------------------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct server *server, int fd)
{
    struct MHD_Daemon *http;
    sigset_t all;
    sigset_t before;

    /* The HTTP thread inherits the mask: signals are the main thread's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    http = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(server->limits.connections_max + SPARE_CONNECTIONS),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(server->limits.idle_ms / 1000 + 1), MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return http;
}

/* Under which name others reach this worker: from the first listener, before the first request may ask. */
static int name_worker(struct server *server, struct worker_config *config, int port,
                       struct mr_error *err)
{
    char *name = listener_advertised(config, &config->listeners[0], port, err);

    if (name == NULL)
        return MR_ERR_CONFIG;
    free(config->worker_id);
    config->worker_id = name;
    server->port = port;
    snprintf(server->worker_id, sizeof(server->worker_id), "%s", name);
    return 0;
}

static int add_listener(struct server *server, struct worker_config *config, size_t i,
                        struct mr_error *err)
{
    const struct worker_listener *listener = &config->listeners[i];
    int port = 0;
    int fd = listener_open(listener, &port, err);

    if (fd < 0)
        return fd;
    if (i == 0 && name_worker(server, config, port, err) != 0) {
        close(fd);
        return MR_ERR_CONFIG;
    }
    server->daemons[i] = start_daemon(server, fd);
    /* The library has closed fd or not, depending on where it failed: leave it, start-up ends here. */
    if (server->daemons[i] == NULL)
        return mr_fail(err, MR_ERR_IO,
                       "cannot start the HTTP server for port %d: out of memory, threads or "
                       "descriptors",
                       port);
    server->daemon_count++;
    log_info("listening on http://%s:%d", *listener->host != '\0' ? listener->host : "*", port);
    return 0;
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
    server->gate = gate_new(loop, take_requests, server);
    server->lingering.loop = loop;
    server->desk = (struct call_desk){
        .loop = loop,
        .closed_text = "Worker is still starting up.",
        .waiting_max = limits->waiting_max,
        .deadline_max_ms = limits->deadline_max_ms,
        .finished = give_back,
        .arg = server,
    };
    for (size_t i = 0; i < config->listener_count; i++) {
        if (add_listener(server, config, i, err) == 0)
            continue;
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
    /* Listeners stay until the daemons stop: to quiesce them first races with their threads in 0.9.75. */
    server_close(server);
    do
        take_requests(server);
    while (!gate_drained(server->gate, until_ms));
    for (size_t i = 0; i < server->daemon_count; i++)
        MHD_stop_daemon(server->daemons[i]);
    loop_timer_cancel(&server->sweep);
    linger_close_all(&server->lingering);
    gate_free(&server->gate);
    conn_watch_free(&server->watch);
    free(server);
}

int server_port(const struct server *server)
{
    return server->port;
}
