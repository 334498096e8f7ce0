/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: who is there, a login, then calls.
 *
 *   CONNECT ──open──► VERSIONS ──► [HANDSHAKE ──► TOKENS] ──► READY ──login ends──► HANDSHAKE …
 *      any of them, at the first fault ──► CLOSED, told once          (calls are held)
 *
 * wire_stream.c moves bytes, request.c knows what they say, sasl.c the tokens; broker_login.c walks
 * the way to READY. This file cuts frames and keeps the calls: `held` are not written yet
 * (throttled, or a login is being renewed), `flight` are written and answered in this order. Each
 * has its own timer, so nothing outlives its deadline, and each is told once, by tell().
 *
 * Callbacks may free the connection. Every callback runs between enter() and leave(); free in
 * between only marks the connection dead, and leave() buries it. */
#include "broker_private.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* --- calls ------------------------------------------------------------------------------------ */

void broker_conn_enter(struct broker_conn *conn)
{
    conn->busy++;
}

static void bury(struct broker_conn *conn)
{
    loop_timer_cancel(&conn->timer);
    loop_timer_cancel(&conn->renew_timer);
    loop_timer_cancel(&conn->throttle_timer);
    wire_stream_free(&conn->stream);
    wire_token_wait_free(&conn->token_wait);
    sasl_free(&conn->sasl);
    buf_deinit(&conn->in);
    buf_deinit(&conn->out);
    free(conn->name);
    free(conn);
}

bool broker_conn_leave(struct broker_conn *conn)
{
    bool dead = conn->dead;

    if (--conn->busy == 0 && dead)
        bury(conn);
    return !dead;
}

static void call_free(struct broker_call *call)
{
    loop_timer_cancel(&call->timer);
    buf_deinit(&call->frame);
    free(call);
}

static void list_add(struct broker_calls *list, struct broker_call *call)
{
    call->next = NULL;
    *list->last = call;
    list->last = &call->next;
}

static struct broker_call *list_pop(struct broker_calls *list)
{
    struct broker_call *call = list->first;

    if (call == NULL)
        return NULL;
    list->first = call->next;
    if (list->first == NULL)
        list->last = &list->first;
    return call;
}

static void list_cut(struct broker_calls *list, struct broker_call *call)
{
    struct broker_call **at = &list->first;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (*at == NULL)
        list->last = at;
}

static void list_init(struct broker_calls *list)
{
    *list = (struct broker_calls){.first = NULL};
    list->last = &list->first;
}

/* The one place where a call ends. It is in no list any more. */
static void tell(struct broker_conn *conn, struct broker_call *call, const struct answer *answer,
                 const struct mr_error *err)
{
    answer_fn fn = call->fn;
    void *arg = call->arg;

    conn->calls--;
    call_free(call);
    fn(arg, answer, err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void tell_all_closed(struct broker_conn *conn, const struct mr_error *why)
{
    struct broker_call *call;

    while ((call = list_pop(&conn->flight)) != NULL || (call = list_pop(&conn->held)) != NULL)
        tell(conn, call, NULL, why);
}

/* Stop everything; calls hear MR_ERR_CLOSED, or why it is when nothing of theirs would get
 * better. */
static void shut(struct broker_conn *conn, const struct mr_error *err)
{
    struct mr_error why = *err;

    conn->state = BROKER_CLOSED;
    loop_timer_cancel(&conn->timer);
    loop_timer_cancel(&conn->renew_timer);
    loop_timer_cancel(&conn->throttle_timer);
    wire_stream_free(&conn->stream);
    wire_token_wait_free(&conn->token_wait);
    if (why.code == MR_ERR_IO || why.code == MR_ERR_TIMEOUT)
        why.code = MR_ERR_CLOSED;
    tell_all_closed(conn, &why);
}

void broker_conn_fail(struct broker_conn *conn, const struct mr_error *err)
{
    struct mr_error why = *err;

    if (conn->state == BROKER_CLOSED)
        return;
    broker_conn_enter(conn);
    shut(conn, &why);
    if (!conn->dead)
        conn->events->closed(conn->arg, &why);
    broker_conn_leave(conn);
}

static void call_timed_out(void *arg)
{
    struct broker_call *call = arg;
    struct broker_conn *conn = call->conn;
    bool held = call->held;
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_TIMEOUT, "broker %s did not answer %s within %lld ms", conn->name,
            request_name(call->api), (long long)call->timeout_ms);
    broker_conn_enter(conn);
    list_cut(held ? &conn->held : &conn->flight, call);
    tell(conn, call, NULL, &err);
    if (!held && !conn->dead)
        broker_conn_fail(conn, &err);
    broker_conn_leave(conn);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A failed write is told from the loop: who calls hears of nothing inside the call. */
static void write_failed(void *arg)
{
    struct broker_conn *conn = arg;
    struct mr_error err = conn->failure;

    broker_conn_fail(conn, &err);
}

static void flush(struct broker_conn *conn)
{
    while (conn->out.len > 0 && conn->failure.code == 0) {
        int n = wire_stream_write(conn->stream, conn->out.data, conn->out.len, &conn->failure);

        if (n < 0)
            loop_timer_start(conn->loop, &conn->timer, 0, write_failed, conn);
        if (n <= 0)
            return;
        buf_consume(&conn->out, (size_t)n);
    }
}

static bool holding(const struct broker_conn *conn)
{
    return conn->throttled || conn->state != BROKER_READY;
}

static void launch(struct broker_conn *conn, struct broker_call *call)
{
    call->held = false;
    call->sent_boot_ms = clock_boot_ms();
    if (buf_append(&conn->out, call->frame.data, call->frame.len) != 0 && conn->failure.code == 0) {
        mr_fail(&conn->failure, MR_ERR_NOMEM, "out of memory for requests to broker %s",
                conn->name);
        loop_timer_start(conn->loop, &conn->timer, 0, write_failed, conn);
    }
    buf_deinit(&call->frame);
    list_add(&conn->flight, call);
}

void broker_conn_release(struct broker_conn *conn)
{
    struct broker_call *call;

    if (conn->renew_due && !conn->throttled && conn->state == BROKER_READY &&
        conn->flight.first == NULL) {
        broker_login_start(conn);
        return;
    }
    while (!conn->renew_due && !holding(conn) && (call = list_pop(&conn->held)) != NULL)
        launch(conn, call);
    flush(conn);
}

static struct broker_call *call_new(struct broker_conn *conn, const struct request *request,
                                    struct mr_error *err)
{
    struct request_header header = {.client_id = conn->conf->client_id};
    struct broker_call *call;

    if (conn->calls >= BROKER_CONN_MAX_CALLS) {
        mr_fail(err, MR_ERR_FULL, "%d requests to broker %s wait for an answer already",
                BROKER_CONN_MAX_CALLS, conn->name);
        return NULL;
    }
    if (request->api != REQUEST_API_VERSIONS &&
        request_version(request->api, broker_login_range(conn, request->api), conn->name,
                        &header.version, err) != 0)
        return NULL;
    call = calloc(1, sizeof(*call));
    mr_assert(call != NULL);
    buf_init(&call->frame, BROKER_CONN_MAX_FRAME + 4096);
    header.correlation_id = conn->next_id++ & INT32_MAX;
    if (request_encode(request, &header, &call->frame, err) != 0) {
        call_free(call);
        return NULL;
    }
    call->conn = conn;
    call->api = request->api;
    call->version = header.version;
    call->id = header.correlation_id;
    return call;
}

static int code_of(const struct mr_error *err, int otherwise)
{
    return err != NULL && err->code != 0 ? err->code : otherwise;
}

int broker_conn_send(struct broker_conn *conn, const struct request *request, int64_t timeout_ms,
                     bool ahead, answer_fn fn, void *arg, struct mr_error *err)
{
    struct mr_error own = {0};
    struct broker_call *call;

    err = err != NULL ? err : &own;
    if (conn->conf->token != NULL)
        wire_token_tend(conn->conf->token);
    call = call_new(conn, request, err);
    if (call == NULL)
        return code_of(err, MR_ERR_STATE);
    conn->calls++;
    call->fn = fn;
    call->arg = arg;
    call->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    loop_timer_start(conn->loop, &call->timer, call->timeout_ms, call_timed_out, call);
    if (ahead) {
        launch(conn, call);
        flush(conn);
    } else {
        call->held = true;
        list_add(&conn->held, call);
        broker_conn_release(conn);
    }
    return 0;
}

int broker_conn_call(struct broker_conn *conn, const struct request *request, int64_t timeout_ms,
                     answer_fn fn, void *arg, struct mr_error *err)
{
    loop_assert_owner(conn->loop);
    if (!broker_conn_ready(conn) || conn->failure.code != 0)
        return mr_fail(err, MR_ERR_STATE, "the connection to broker %s is not open", conn->name);
    return broker_conn_send(conn, request, timeout_ms, false, fn, arg, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void unthrottle(void *arg)
{
    struct broker_conn *conn = arg;

    conn->throttled = false;
    broker_conn_release(conn);
}

/* Brokers ask for a second or so (quota.window.size.seconds). */
static void honour_throttle(struct broker_conn *conn, int32_t ms)
{
    if (ms <= 0)
        return;
    if (ms > THROTTLE_MAX_MS)
        ms = THROTTLE_MAX_MS;
    conn->throttled = true;
    loop_timer_start(conn->loop, &conn->throttle_timer, ms, unthrottle, conn);
}

/* Decode and tell the oldest call. The frame and the arena live until this returns. */
static int answer_oldest(struct broker_conn *conn, const uint8_t *body, size_t len,
                         struct mr_error *err)
{
    struct broker_call *call = conn->flight.first;
    struct wire_arena arena;
    struct answer answer;
    int rc;

    wire_arena_init(&arena, len * BROKER_ARENA_FACTOR + 4096);
    rc = request_decode(call->api, call->version, body, len, &arena, &answer, err);
    if (rc == 0) {
        answer.sent_boot_ms = call->sent_boot_ms;
        honour_throttle(conn, answer.throttle_ms);
        conn->answered = conn->answered || conn->state == BROKER_READY;
        list_pop(&conn->flight);
        tell(conn, call, &answer, NULL);
    } else {
        err_prefix(err, "broker %s", conn->name);
    }
    wire_arena_deinit(&arena);
    return rc;
}

static int take_frame(struct broker_conn *conn, const uint8_t *frame, size_t len,
                      struct mr_error *err)
{
    uint32_t id =
        (uint32_t)frame[0] << 24 | (uint32_t)frame[1] << 16 | (uint32_t)frame[2] << 8 | frame[3];

    if (conn->flight.first == NULL)
        return mr_fail(err, MR_ERR_PROTOCOL, "broker %s sent %zu bytes that nobody asked for",
                       conn->name, len);
    if ((int32_t)id != conn->flight.first->id)
        return mr_fail(err, MR_ERR_PROTOCOL,
                       "broker %s answered a request with correlation id %d where %d (%s) is due",
                       conn->name, (int32_t)id, conn->flight.first->id,
                       request_name(conn->flight.first->api));
    return answer_oldest(conn, frame + 4, len - 4, err);
}

/* What speaks another protocol shows in its first bytes, where the size should be. */
static const char *stranger(uint32_t size)
{
    if (size >> 8 == 0x150303 || size >> 8 == 0x150301)
        return ": it speaks TLS; set security.protocol to SSL or SASL_SSL";
    if (size == 0x48545450)
        return ": it speaks HTTP; is the port right?";
    return "";
}

/* Whole frames at the front of conn->in. false: the connection is gone, or has failed. */
static bool take_frames(struct broker_conn *conn, struct mr_error *err)
{
    size_t at = 0;
    bool alive = true;

    while (alive && err->code == 0 && conn->in.len - at >= 4) {
        const uint8_t *p = (const uint8_t *)conn->in.data + at;
        uint32_t size =
            (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];

        if (size < 4 || size > BROKER_CONN_MAX_FRAME) {
            mr_fail(err, MR_ERR_PROTOCOL,
                    "broker %s announced an answer of %d bytes, allowed are 4 to %u%s", conn->name,
                    (int32_t)size, BROKER_CONN_MAX_FRAME, stranger(size));
            break;
        }
        if (conn->in.len - at - 4 < size)
            break;
        at += 4 + (size_t)size;
        take_frame(conn, p + 4, size, err);
        alive = !conn->dead && conn->state != BROKER_CLOSED;
    }
    if (alive)
        buf_consume(&conn->in, at);
    return alive && err->code == 0;
}

/* Bytes as they come, so that memory grows with what was sent and not with what was announced. */
static void read_some(struct broker_conn *conn)
{
    struct mr_error err = {0};
    char bytes[16384];
    int n;

    broker_conn_enter(conn);
    do {
        n = wire_stream_read(conn->stream, bytes, sizeof(bytes), &err);
        if (n > 0 && buf_append(&conn->in, bytes, (size_t)n) != 0)
            mr_fail(&err, MR_ERR_NOMEM, "out of memory for an answer of broker %s", conn->name);
    } while (n > 0 && take_frames(conn, &err));
    if (!conn->dead && conn->state != BROKER_CLOSED) {
        if (err.code == MR_ERR_CLOSED && !conn->answered)
            err_prefix(&err, "is security.protocol that of this listener?");
        if (err.code != 0)
            broker_conn_fail(conn, &err);
        else
            broker_conn_release(conn);
    }
    broker_conn_leave(conn);
}

/* --- life ------------------------------------------------------------------------------------- */

static void setup_timed_out(void *arg)
{
    struct broker_conn *conn = arg;
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_IO, "no connection to broker %s within %lld ms (%s)", conn->name,
            (long long)conn->conf->setup_timeout_ms,
            conn->state == BROKER_CONNECT ? conn->tcp ? "TLS" : "TCP"
            : conn->token_wait != NULL    ? "the token endpoint did not answer yet"
                                          : "login");
    broker_conn_fail(conn, &err);
}

static void on_connected(void *arg)
{
    struct broker_conn *conn = arg;

    conn->tcp = true;
    loop_timer_start(conn->loop, &conn->timer, conn->conf->setup_timeout_ms, setup_timed_out, conn);
}

static void on_open(void *arg)
{
    broker_login_begin(arg);
}

static void on_ready(void *arg)
{
    read_some(arg);
}

static void on_failed(void *arg, const struct mr_error *err)
{
    broker_conn_fail(arg, err);
}

struct broker_conn *broker_conn_new(struct loop *loop, const struct wire_conf *conf,
                                    const struct broker_conn_to *to,
                                    const struct broker_conn_events *events, void *arg,
                                    struct mr_error *err)
{
    static const struct wire_stream_events stream_events = {
        .connected = on_connected, .open = on_open, .ready = on_ready, .failed = on_failed};
    struct broker_conn *conn = calloc(1, sizeof(*conn));

    mr_assert(conn != NULL);
    *conn = (struct broker_conn){.loop = loop, .conf = conf, .events = events, .arg = arg};
    list_init(&conn->held);
    list_init(&conn->flight);
    buf_init(&conn->in, BROKER_CONN_MAX_FRAME + 65536);
    buf_init(&conn->out, 2 * BROKER_CONN_MAX_FRAME);
    conn->stream = wire_stream_new(loop, conf, to, &stream_events, conn, err);
    if (conn->stream == NULL) {
        bury(conn);
        return NULL;
    }
    conn->name = text_dup(wire_stream_name(conn->stream));
    loop_timer_start(loop, &conn->timer, conf->setup_timeout_ms, setup_timed_out, conn);
    return conn;
}

void broker_conn_free(struct broker_conn **cp)
{
    struct broker_conn *conn = *cp;
    struct mr_error err = {0};

    *cp = NULL;
    if (conn == NULL)
        return;
    broker_conn_enter(conn);
    conn->dead = true;
    mr_fail(&err, MR_ERR_CLOSED, "the connection to broker %s was given up", conn->name);
    if (conn->state != BROKER_CLOSED)
        shut(conn, &err);
    broker_conn_leave(conn);
}

bool broker_conn_ready(const struct broker_conn *conn)
{
    return conn->was_ready && conn->state != BROKER_CLOSED;
}

const char *broker_conn_name(const struct broker_conn *conn)
{
    return conn->name;
}
