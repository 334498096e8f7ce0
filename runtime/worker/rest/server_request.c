/* SPDX-License-Identifier: Apache-2.0 */
/* One request, as libmicrohttpd gives it, piece by piece, on its HTTP thread; the calls come from
 * server.c's daemons.
 *
 * server_request_begin (request line) → server_request_feed with the headers (check_request: what
 * can be refused without the body) → server_request_feed with pieces of body → server_request_feed
 * with nothing left (finish_request: parse the body; what needs the worker is suspended and handed
 * over the gate, by way of the filters' thread where there are REST filters) → the loop answers,
 * server_request_resume → server_request_feed again (send_answer) → server_request_end.
 *
 * Invariants. A request belongs to its HTTP thread, and between hand_over and
 * server_request_resume to the loop; nobody else touches it. It cannot be freed while suspended,
 * since libmicrohttpd completes no suspended request. */
#include "worker/rest/server_private.h"

#include "base/clock.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <strings.h>

#define LOGGER "worker.rest"
#include "base/log.h"

#define HOST_MAX 263            /* bytes of a Host header that is believed */
#define HEADERS_MAX 8192        /* bytes of a header block */
#define DRAIN_MAX (256LL << 20) /* bytes of a refused body that are read and dropped */

struct request {
    struct exchange exchange; /* first: give_back finds the request by it */
    struct server *server;
    const struct front *front;
    struct MHD_Connection *connection;
    struct conn_watched *watched;
    char *raw; /* the target as sent, for the log */
    char method[16];
    bool checked;  /* the headers have been seen */
    bool unclear;  /* where it ends, or what it asks for: nothing behind it is read */
    bool filtered; /* filters are asked about it, whatever its answer is by then */
    struct rest_filter_call call;
    bool counted;    /* gate_begin was called */
    struct buf body; /* its max is what the request has reserved of body_bytes */
    int64_t dropped_bytes;
    size_t sent_bytes;
    int sent_status;
};

/* --- requests --------------------------------------------------------------------------------- */

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
    json_decref(req->exchange.offsets);
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

/* The Host header goes out again in Location: only what a host and a port are made of. */
static void keep_base(struct request *req)
{
    const char *host = header(req, "Host");
    size_t len = host != NULL ? strlen(host) : 0;

    if (len == 0 || len > HOST_MAX ||
        strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != len)
        host = req->server->worker_id;
    snprintf(req->exchange.base, sizeof(req->exchange.base), "%s://%s",
             req->front->https != NULL ? "https" : "http", host);
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

/* Where admin.listeners is set, /admin is there and nowhere else, and nothing else is there. */
static bool is_served_here(const struct request *req)
{
    const struct router_target *target = &req->exchange.target;
    bool admin = target->segment_count > 0 && strcmp(target->segment[0], "admin") == 0;

    return admin == req->front->admin || (admin && !req->server->admin_apart);
}

/* Other workers sign what they send to each other. */
static bool is_admitted(struct request *req)
{
    const struct route *route = req->exchange.match.route;

    return req->server->auth == NULL || req->front->admin ||
           (route != NULL && (route->flags & ROUTE_SIGNED) != 0) ||
           rest_auth_admits(req->server->auth, header(req, "Authorization"));
}

static bool is_to_be_filtered(const struct request *req)
{
    const struct route *route = req->exchange.match.route;

    return req->server->filter != NULL && !req->front->admin &&
           (route == NULL || (route->flags & ROUTE_SIGNED) == 0);
}

static void refuse_user(struct request *req)
{
    if (!answered(req))
        entities_text(answer_of(req), 401, "User cannot access the resource.",
                      req->exchange.match.route != NULL ? ENTITIES_JSON : "text/plain");
}

/* In the order in which Jersey looks: path, method, types, then filters, then what stands in the
 * path. */
static void check_route(struct request *req)
{
    struct router_match *match = &req->exchange.match;
    struct mr_error err = {0};
    int status = 0;

    if (answered(req))
        return;
    router_match(routes, routes_count, req->method, &req->exchange.target, match);
    if (router_check_path(&req->exchange.target, match, &err) != 0) {
        refuse_with(req, &err);
        return;
    }
    if (match->status == 0)
        status = router_check(match, accepts(req, "application", "json"),
                              router_type(header(req, "Content-Type")));
    if (!is_served_here(req))
        refuse_unmatched(req, 404);
    else if (match->status == 404 || match->status == 405)
        refuse_unmatched(req, match->status);
    else if (status == 406 || status == 415)
        refuse_unmatched(req, status);
    else if (!is_admitted(req))
        refuse_user(req);
    else
        req->filtered = is_to_be_filtered(req);
    if (answered(req))
        return;
    if (match->status == 200)
        entities_options(answer_of(req), match->allow, accepts(req, "text", "plain"));
    else if (status != 0)
        refuse(req, status);
}

/* The length that the client announces, 0 when it doesn't. libmicrohttpd has checked that it is
 * a number. */
static uint64_t announced_length(struct request *req)
{
    const char *text = header(req, "Content-Length");

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* With the headers: everything that can be said without the body. */
static void check_request(struct request *req, const char *method)
{
    snprintf(req->method, sizeof(req->method), "%s", method);
    keep_base(req);
    check_size(req);
    check_route(req);
    if (announced_length(req) > req->server->limits.body_bytes_max)
        refuse(req, 413);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void add_header(void *arg, const char *name, const char *value, bool replaces)
{
    const char *there;

    while (replaces && (there = MHD_get_response_header(arg, name)) != NULL)
        if (MHD_del_response_header(arg, name, there) != MHD_YES)
            break;
    MHD_add_response_header(arg, name, value);
}

/* "GET,PUT": as Jersey writes the header, which has blanks in the body only. */
static void add_allow(struct MHD_Response *response, const char *allow)
{
    char list[64];
    size_t len = 0;

    for (; *allow != '\0' && len < sizeof(list) - 1; allow++)
        if (*allow != ' ')
            list[len++] = *allow;
    list[len] = '\0';
    add_header(response, "Allow", list, true);
}

static void add_headers(struct request *req, struct MHD_Response *response)
{
    struct rest_headers_asked asked = {.method = req->method,
                                       .origin = header(req, "Origin"),
                                       .wanted_method =
                                           header(req, "Access-Control-Request-Method")};
    const struct answer *answer = answer_of(req);

    if (!req->front->admin)
        rest_headers_tell(req->server->headers, &asked, clock_wall_ms(), add_header, response);
    if (answer->type != NULL)
        add_header(response, "Content-Type", answer->type, true);
    if (answer->location != NULL)
        add_header(response, "Location", answer->location, true);
    if (req->unclear)
        add_header(response, "Connection", "close", true);
    if (answer->allow)
        add_allow(response, req->exchange.match.allow);
}

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
    add_headers(req, response);
    conn_watch_phase(req->watched, CONN_WRITING);
    rc = MHD_queue_response(req->connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Make sure that this request's body may grow to max bytes; false when all bodies together are
 * too much. */
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
    else if (kind == ROUTE_OFFSETS)
        rc = request_offsets_parse(data, req->body.len, &exchange->offsets, &exchange->input_absent,
                                   &err);
    else
        rc = request_json_config(data, req->body.len, &exchange->input.config,
                                 &exchange->input_absent, &err);
    if (rc != 0)
        refuse_with(req, &err);
    if (rc != 0 || !req->server->forwards)
        release_body(req);
}

/* --- filters ---------------------------------------------------------------------------------- */

/* What a client sends need be no UTF-8. */
static json_t *json_of(const char *text)
{
    json_t *string = json_string(text);
    char *copy;

    if (string != NULL)
        return string;
    copy = text_dup(text);
    for (char *c = copy; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(copy);
    free(copy);
    return string;
}

static enum MHD_Result add_to_headers(void *arg, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    (void)kind;
    json_array_append_new(arg,
                          json_pack("[o, o]", json_of(key), json_of(value != NULL ? value : "")));
    return MHD_YES;
}

static json_t *client_of(const struct request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    char text[INET6_ADDRSTRLEN] = "";

    if (address != NULL && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, text,
                  sizeof(text));
    else if (address != NULL && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, text,
                  sizeof(text));
    return json_string(text);
}

static json_t *describe(const struct request *req)
{
    json_t *headers = json_array(), *question;

    mr_assert(headers != NULL);
    MHD_get_connection_values(req->connection, MHD_HEADER_KIND, add_to_headers, headers);
    question =
        json_pack("{s:o, s:o, s:o, s:o}", "method", json_of(req->method), "target",
                  json_of(req->exchange.target.sent), "client", client_of(req), "headers", headers);
    mr_assert(question != NULL);
    return question;
}

/* On the filters' thread: on to the loop, or back with an answer. */
static void on_filtered(struct rest_filter_call *call)
{
    struct request *req = (struct request *)(void *)((char *)call - offsetof(struct request, call));
    struct gate *gate = req->server->gate;

    if (call->status != 0) {
        entities_deinit(answer_of(req));
        entities_error(answer_of(req), call->status, call->text);
    }
    free(call->text);
    call->text = NULL;
    if (!answered(req)) {
        gate_pass(gate, &req->exchange);
        return;
    }
    MHD_resume_connection(req->connection);
    gate_leave(gate);
}

/* Suspend and pass on to filters or the loop; false when the server is closing. */
static bool hand_over(struct request *req)
{
    struct gate *gate = req->server->gate;

    if (!gate_enter(gate))
        return false;
    if (req->filtered)
        req->call = (struct rest_filter_call){.question = describe(req), .done = on_filtered};
    MHD_suspend_connection(req->connection);
    if (req->filtered)
        rest_filter_pass(req->server->filter, &req->call);
    else
        gate_pass(gate, &req->exchange);
    return true;
}

static void begin_answer(struct request *req)
{
    gate_begin(req->server->gate);
    req->counted = true;
}

/* From the whole request to its answer: as its route says, or less where the server is told so. */
static void set_deadline(struct request *req)
{
    int64_t most_ms = req->server->limits.deadline_max_ms;
    int64_t allowed_ms = 0;

    if (req->exchange.match.route != NULL)
        allowed_ms = req->exchange.match.route->deadline_ms;
    if (most_ms > 0 && most_ms < allowed_ms)
        allowed_ms = most_ms;
    req->exchange.since_ms = clock_ms();
    req->exchange.deadline_ms = req->exchange.since_ms + allowed_ms;
}

static enum MHD_Result finish_request(struct request *req)
{
    begin_answer(req);
    set_deadline(req);
    if (!answered(req))
        parse_body(req);
    if (!answered(req) || req->filtered) {
        conn_watch_phase(req->watched, CONN_WAITING);
        if (hand_over(req))
            return MHD_YES;
        entities_deinit(answer_of(req));
        entities_error(answer_of(req), 503, "Worker is shutting down");
    }
    return send_answer(req);
}

/* --- libmicrohttpd's callbacks, on an HTTP thread --------------------------------------------- */

static struct conn_watched *watched_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* The request line is there. What this gives is the request's context; NULL closes the
 * connection. */
void *server_request_begin(void *arg, const char *raw, struct MHD_Connection *connection)
{
    struct request *req = calloc(1, sizeof(*req));
    struct mr_error err = {0};

    if (req == NULL)
        return NULL;
    req->front = arg;
    req->server = req->front->server;
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

/* Headers are complete. An answer now would close the connection, so it waits for the body's end
 * unless the body is not worth reading. */
static enum MHD_Result begin_request(struct request *req, const struct server_head *head)
{
    const char *fault = server_framing_fault(req->connection, head);
    bool readable = fault == NULL && header(req, "Expect") == NULL;

    req->checked = true;
    req->unclear = fault != NULL;
    if (fault != NULL)
        refuse_anew(req, fault);
    check_request(req, head->method);
    /* Filters are asked once a body has been read, and this one is not read. */
    if (req->filtered && answered(req) && !readable && answer_of(req)->status < 400)
        refuse_anew(req, "this method takes no body");
    if (!answered(req) || (readable && announced_length(req) <= req->server->limits.body_bytes_max))
        return MHD_YES;
    conn_watch_note_unread(req->watched);
    begin_answer(req);
    return send_answer(req);
}

enum MHD_Result server_request_feed(void *arg, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *len, void **context)
{
    struct request *req = *context;

    (void)arg;
    (void)connection;
    if (req == NULL)
        return MHD_NO;
    if (!req->checked)
        return begin_request(req, &(struct server_head){.method = method,
                                                        .target = url,
                                                        .version = version,
                                                        .target_len = strlen(req->raw)});
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

void server_request_end(void *arg, struct MHD_Connection *connection, void **context,
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

void server_request_resume(struct exchange *exchange)
{
    struct request *req = (struct request *)exchange;

    MHD_resume_connection(req->connection);
}
