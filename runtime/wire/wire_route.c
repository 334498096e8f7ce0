/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for a connection, and the connection.
 *
 *   IDLE ──call──► SEEKING ──the owner has found the address──► CONNECTING ──ready──► UP
 *     ▲               ▲                                                     closed │
 *     └───────────────┴────────────────────────────────────────────────────────────┘
 *
 * A call that waits owns a copy of its request and has a timer; once sent, the connection keeps its
 * deadline. With `again` the copy stays until the answer, for sending it anew. Callbacks may free
 * the route: as in broker_conn.c they run between enter() and leave(), and a route that is freed in
 * between is buried by leave(). */
#include "wire/wire_route.h"

#include "base/clock.h"
#include "request_private.h"

#include <stdlib.h>
#include <string.h>

struct route_call {
    struct wire_route *route;
    struct request_copy *copy;
    int64_t timeout_ms;
    int64_t due_ms;
    struct loop_timer timer; /* while it waits */
    answer_fn fn;
    void *arg;
    struct route_call *next;
};

struct wire_route {
    struct loop *loop;
    const struct wire_conf *conf;
    const struct wire_route_ops *ops;
    void *owner;
    bool again;
    int busy;
    bool dead;
    struct broker_conn *conn;
    bool up;
    struct mr_error last;     /* why there is no connection */
    struct loop_timer timer;  /* a connection that could not even be begun */
    struct route_call *first; /* waiting */
    struct route_call **tail;
    size_t waiting;
};

static void enter(struct wire_route *route)
{
    route->busy++;
}

static void leave(struct wire_route *route)
{
    if (--route->busy == 0 && route->dead)
        free(route);
}

bool wire_route_fatal(const struct mr_error *err)
{
    return err->code == MR_ERR_FATAL || err->code == MR_ERR_UNSUPPORTED ||
           err->code == MR_ERR_CONFIG;
}

/* --- calls that wait -------------------------------------------------------------------------- */

static void call_free(struct route_call *call)
{
    loop_timer_cancel(&call->timer);
    request_copy_free(&call->copy);
    free(call);
}

static void unlink_call(struct wire_route *route, struct route_call *call)
{
    struct route_call **at = &route->first;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (*at == NULL)
        route->tail = at;
    route->waiting--;
    loop_timer_cancel(&call->timer);
}

static void tell(struct route_call *call, const struct answer *answer, const struct mr_error *err)
{
    answer_fn fn = call->fn;
    void *arg = call->arg;

    call_free(call);
    fn(arg, answer, err);
}

static void tell_waiting(struct wire_route *route, const struct mr_error *err)
{
    /* Only those that wait now: who is told may call again. */
    for (size_t left = route->waiting; left > 0 && route->first != NULL; left--) {
        struct route_call *call = route->first;

        unlink_call(route, call);
        tell(call, NULL, err);
    }
}

const struct mr_error *wire_route_trouble(const struct wire_route *route)
{
    if (route->last.code != 0)
        return &route->last;
    return route->ops->why != NULL ? route->ops->why(route->owner) : NULL;
}

static void wait_timed_out(void *arg)
{
    struct route_call *call = arg;
    struct wire_route *route = call->route;
    struct mr_error err = {0};
    const struct mr_error *why = wire_route_trouble(route);

    mr_fail(&err, why == NULL ? MR_ERR_TIMEOUT : MR_ERR_IO,
            "%s could not be sent within %lld ms%s%.600s", request_name(call->copy->request.api),
            (long long)call->timeout_ms, why == NULL ? "" : ": ", why == NULL ? "" : why->text);
    unlink_call(route, call);
    tell(call, NULL, &err);
}

static void add_waiting(struct wire_route *route, struct route_call *call)
{
    call->next = NULL;
    *route->tail = call;
    route->tail = &call->next;
    route->waiting++;
    loop_timer_start(route->loop, &call->timer, call->due_ms - clock_ms(), wait_timed_out, call);
}

/* --- sending ---------------------------------------------------------------------------------- */

static bool worth_again(const struct wire_route *route, const struct mr_error *err)
{
    return err != NULL && !route->dead && route->again && !wire_route_fatal(err) &&
           err->code != MR_ERR_TIMEOUT;
}

static void on_answer(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct route_call *call = arg;
    struct wire_route *route = call->route;

    if (worth_again(route, err) && call->due_ms > clock_ms())
        add_waiting(route, call);
    else
        tell(call, answer, err);
}

/* Send a call that is in no list. What can't be sent at all is told. */
static void send_call(struct wire_route *route, struct route_call *call)
{
    int64_t left_ms = call->due_ms - clock_ms();
    struct mr_error err = {0};
    answer_fn fn = route->again ? on_answer : call->fn;
    void *arg = route->again ? call : call->arg;

    if (left_ms <= 0)
        add_waiting(route, call); /* for its timer to tell */
    else if (broker_conn_call(route->conn, &call->copy->request, left_ms, fn, arg, &err) != 0)
        tell(call, NULL, &err);
    else if (!route->again)
        call_free(call);
}

static void send_waiting(struct wire_route *route)
{
    for (size_t left = route->waiting; left > 0 && route->up && route->first != NULL; left--) {
        struct route_call *call = route->first;

        unlink_call(route, call);
        send_call(route, call);
    }
}

static void seek(struct wire_route *route)
{
    if (!route->dead && route->conn == NULL && route->timer.slot == 0 && route->first != NULL)
        route->ops->seek(route->owner);
}

/* --- the connection --------------------------------------------------------------------------- */

static void on_ready(void *arg)
{
    struct wire_route *route = arg;

    enter(route);
    route->up = true;
    err_clear(&route->last);
    if (route->ops->up != NULL)
        route->ops->up(route->owner);
    if (!route->dead)
        send_waiting(route);
    leave(route);
}

/* Gone, or never come. Calls that had been sent have been told or wait again. */
static void go_down(struct wire_route *route, const struct mr_error *err)
{
    struct mr_error why = *err;
    bool was_up = route->up;

    enter(route);
    route->up = false;
    route->last = why;
    broker_conn_free(&route->conn);
    if (wire_route_fatal(&why))
        tell_waiting(route, &why);
    if (!route->dead)
        route->ops->down(route->owner, was_up, &why);
    seek(route);
    leave(route);
}

static void on_closed(void *arg, const struct mr_error *err)
{
    go_down(arg, err);
}

static void not_begun(void *arg)
{
    struct wire_route *route = arg;
    struct mr_error err = route->last;

    go_down(route, &err);
}

void wire_route_found(struct wire_route *route, const struct broker_conn_to *to)
{
    static const struct broker_conn_events events = {.ready = on_ready, .closed = on_closed};
    struct mr_error err = {0};

    if (route->conn != NULL || route->timer.slot != 0)
        return;
    /* Why there was none before is kept until this one stands: somebody's time may be over
     * first. */
    route->conn = broker_conn_new(route->loop, route->conf, to, &events, route, &err);
    if (route->conn != NULL)
        return;
    route->last = err;
    loop_timer_start(route->loop, &route->timer, 0, not_begun, route);
}

void wire_route_missing(struct wire_route *route, const struct mr_error *err)
{
    struct mr_error why = *err;

    enter(route);
    route->last = why;
    if (wire_route_fatal(&why))
        tell_waiting(route, &why);
    leave(route);
}

void wire_route_drop(struct wire_route *route, const struct mr_error *why)
{
    enter(route);
    route->up = false;
    route->last = *why;
    loop_timer_cancel(&route->timer);
    broker_conn_free(&route->conn);
    seek(route);
    leave(route);
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct route_call *call_new(struct wire_route *route, const struct request *request,
                                   int64_t timeout_ms, struct mr_error *err)
{
    struct route_call *call;

    if (route->waiting >= WIRE_ROUTE_MAX_CALLS) {
        mr_fail(err, MR_ERR_FULL, "%d requests wait for a connection already",
                WIRE_ROUTE_MAX_CALLS);
        return NULL;
    }
    call = calloc(1, sizeof(*call));
    mr_assert(call != NULL);
    call->copy = request_copy_new(request);
    if (call->copy == NULL) {
        free(call);
        mr_fail(err, MR_ERR_TOO_LARGE, "the request %s is too large", request_name(request->api));
        return NULL;
    }
    call->route = route;
    call->timeout_ms = timeout_ms > 0 ? timeout_ms : 0;
    call->due_ms = clock_ms() + call->timeout_ms;
    return call;
}

int wire_route_call(struct wire_route *route, const struct request *request, int64_t timeout_ms,
                    answer_fn fn, void *arg, struct mr_error *err)
{
    struct mr_error own = {0};
    struct route_call *call;

    err = err != NULL ? err : &own;
    if (route->up && !route->again) {
        int rc = broker_conn_call(route->conn, request, timeout_ms, fn, arg, err);

        if (rc != MR_ERR_STATE)
            return rc;
        err_clear(err); /* about to end: the next connection takes it */
    }
    call = call_new(route, request, timeout_ms, err);
    if (call == NULL)
        return err->code;
    call->fn = fn;
    call->arg = arg;
    if (route->up && route->again) {
        int rc = broker_conn_call(route->conn, request, timeout_ms, on_answer, call, err);

        if (rc != 0 && rc != MR_ERR_STATE)
            call_free(call);
        if (rc != MR_ERR_STATE)
            return rc;
        err_clear(err);
    }
    add_waiting(route, call);
    seek(route);
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

struct wire_route *wire_route_new(struct loop *loop, const struct wire_conf *conf, bool again,
                                  const struct wire_route_ops *ops, void *owner)
{
    struct wire_route *route = calloc(1, sizeof(*route));

    mr_assert(route != NULL);
    *route =
        (struct wire_route){.loop = loop, .conf = conf, .again = again, .ops = ops, .owner = owner};
    route->tail = &route->first;
    return route;
}

void wire_route_free(struct wire_route **rp)
{
    struct wire_route *route = *rp;
    struct mr_error err = {0};

    *rp = NULL;
    if (route == NULL)
        return;
    mr_fail(&err, MR_ERR_CLOSED, "the request was given up");
    enter(route);
    route->dead = true;
    loop_timer_cancel(&route->timer);
    broker_conn_free(&route->conn);
    tell_waiting(route, &err);
    leave(route);
}

bool wire_route_waiting(const struct wire_route *route)
{
    return route->first != NULL && !route->up;
}

bool wire_route_up(const struct wire_route *route)
{
    return route->up;
}

const char *wire_route_name(const struct wire_route *route)
{
    return route->up ? broker_conn_name(route->conn) : "";
}
