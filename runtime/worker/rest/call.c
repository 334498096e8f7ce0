/* SPDX-License-Identifier: Apache-2.0 */
/* A call: one exchange while the loop answers it.
 *
 * The server hands over an exchange; its route's function runs here, asks the herder, and ends
 * the call by one call_reply_*, at once or when the herder comes back. A call that has to wait
 * is listed at the desk and has a deadline in the loop's heap of timers: when that passes, the
 * client gets its 500, or the answer that was held back, and the exchange goes back, while the call
 * itself stays until the herder comes back, since the herder calls every done exactly once. So: a
 * call whose exchange is NULL was answered by its deadline, and only waits for the herder.
 * Everything here runs on the worker's loop. */
#include "worker/rest/rest_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct call {
    struct call_desk *desk;    /* NULL once the exchange is given back */
    struct exchange *exchange; /* likewise */
    bool running;     /* the route's function is on the stack: call_start gives back and frees */
    bool answered;    /* while running */
    bool with_herder; /* listed at the desk; the herder will come back */
    bool again;       /* the route was run a second time */
    struct call *next;
    struct call **prev;
    struct loop_timer deadline;
};

struct herder *call_herder(const struct call *call)
{
    return call->desk->herder;
}

struct exchange *call_exchange(const struct call *call)
{
    return call->exchange;
}

const char *call_var(const struct call *call, size_t i)
{
    return call->exchange->match.var[i];
}

int call_task(const struct call *call)
{
    int task = -1;

    /* router_check let nothing else pass. */
    mr_assert(router_task(call_var(call, 1), &task));
    return task;
}

/* --- ending ----------------------------------------------------------------------------------- */

static bool is_change(const struct exchange *exchange)
{
    return (exchange->match.route->flags & ROUTE_CHANGE) != 0;
}

static void leave_desk(struct call *call)
{
    if (!call->with_herder)
        return;
    loop_timer_cancel(&call->deadline);
    *call->prev = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    call->desk->changes -= is_change(call->exchange);
    call->with_herder = false;
}

/* The answer is in the exchange: from here on it belongs to the HTTP thread. */
static void give_back(struct call *call)
{
    struct call_desk *desk = call->desk;
    struct exchange *exchange = call->exchange;

    leave_desk(call);
    call->desk = NULL;
    call->exchange = NULL;
    desk->finished(desk->arg, exchange);
}

/* While the route's function runs, it and the herder may still read the names in the exchange. */
void call_end(struct call *call)
{
    mr_assert(call->exchange != NULL && !call->answered);
    call->answered = true;
    if (call->running)
        return;
    give_back(call);
    free(call);
}

void call_reply_json(struct call *call, int status, json_t *body)
{
    entities_json(&call->exchange->answer, status, body);
    json_decref(body);
    call_end(call);
}

void call_reply_text(struct call *call, int status, struct buf *json)
{
    entities_json_text(&call->exchange->answer, status, json);
    call_end(call);
}

void call_reply_empty(struct call *call, int status)
{
    entities_empty(&call->exchange->answer, status);
    call_end(call);
}

void call_reply_error(struct call *call, int status, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    entities_error(&call->exchange->answer, status, text != NULL ? text : "out of memory");
    free(text);
    call_end(call);
}

void call_reply_health(struct call *call, int status, const char *health, const char *message)
{
    entities_health(&call->exchange->answer, status, health, message);
    call_end(call);
}

void call_reply_written(struct call *call, const char *conn, const struct herder_answer *answer)
{
    struct answer *out = &call->exchange->answer;

    entities_json(out, answer->created ? 201 : 200, answer->body);
    if (answer->created)
        out->location = entities_location(call->exchange->base, conn);
    call_end(call);
}

struct exchange *call_take_back(struct call *call)
{
    struct exchange *exchange = call->exchange;

    if (exchange == NULL)
        free(call);
    return exchange;
}

bool call_came_back(struct call *call, const struct herder_answer *answer)
{
    if (call_take_back(call) == NULL)
        return false;
    if (answer->elsewhere != NULL) {
        forward_call(call, answer->elsewhere);
        return false;
    }
    if (answer->err != NULL) {
        entities_error(&call->exchange->answer, entities_status(answer->err->code),
                       answer->message != NULL ? answer->message : answer->err->text);
        call_end(call);
        return false;
    }
    return true;
}

/* --- deadlines -------------------------------------------------------------------------------- */

void call_stage(struct herder *herder, char *out, size_t size)
{
    const char *stage = herder != NULL ? herder_stage(herder) : NULL;
    char began[32] = "", trouble[CALL_STAGE_MAX] = "";

    out[0] = '\0';
    if (stage == NULL || *stage == '\0')
        return;
    if (herder_stage_since(herder) != 0)
        clock_iso(herder_stage_since(herder), began, sizeof(began));
    herder_trouble(herder, trouble, sizeof(trouble));
    snprintf(out, size, "The worker is currently %s%s%s.%s%s", stage,
             *began != '\0' ? ", which began at " : "", began, *trouble != '\0' ? " " : "",
             trouble);
}

void call_expire(struct exchange *exchange, const char *stage)
{
    const char *gap = *stage != '\0' ? " " : "";
    char message[CALL_STAGE_MAX + 100];

    if (exchange->match.route->run == res_root_health) {
        snprintf(message, sizeof(message), CALL_UNWELL "%s%s", gap, stage);
        entities_health(&exchange->answer, 500, "unhealthy", message);
        return;
    }
    snprintf(message, sizeof(message), "Request timed out%s%s%s", *gap != '\0' ? "." : "", gap,
             stage);
    entities_error(&exchange->answer, 500, message);
}

static void answer_expired(struct call_desk *desk, struct exchange *exchange)
{
    char stage[CALL_STAGE_MAX];

    call_stage(desk->herder, stage, sizeof(stage));
    call_expire(exchange, stage);
}

/* What is held back tells of something that came about: nothing may take its place. */
static bool held_back(const struct call *call)
{
    return call->exchange->answer.status != 0;
}

static void deadline_passed(void *arg)
{
    struct call *call = arg;

    if (!held_back(call))
        answer_expired(call->desk, call->exchange);
    give_back(call); /* the call itself waits for the herder */
}

void call_abandon_all(struct call_desk *desk)
{
    while (desk->first != NULL) {
        struct call *call = desk->first;

        mr_assert(call->with_herder);
        if (!held_back(call))
            entities_error(&call->exchange->answer, 503, "Worker is shutting down");
        give_back(call);
    }
}

/* --- beginning -------------------------------------------------------------------------------- */

static int64_t left_ms(const struct exchange *exchange)
{
    return exchange->deadline_ms - clock_ms();
}

void call_hold(struct call *call, int64_t max_ms)
{
    int64_t left = left_ms(call->exchange);

    mr_assert(call->with_herder && held_back(call));
    loop_timer_start(call->desk->loop, &call->deadline, left < max_ms ? left : max_ms,
                     deadline_passed, call);
}

static void answer_closed(struct call_desk *desk, struct exchange *exchange)
{
    char stage[CALL_STAGE_MAX], message[CALL_STAGE_MAX + 100];

    call_stage(desk->herder, stage, sizeof(stage));
    snprintf(message, sizeof(message), "%s%s%s", desk->closed_text, *stage != '\0' ? " " : "",
             stage);
    entities_error(&exchange->answer, 503, message);
}

/* What is answered without running the route: true when it was. */
static bool refused(struct call_desk *desk, struct exchange *exchange)
{
    const struct route *route = exchange->match.route;
    bool open = desk->herder != NULL && herder_readable(desk->herder);

    if (!open && (route->flags & ROUTE_ALWAYS) == 0)
        answer_closed(desk, exchange);
    else if (is_change(exchange) && desk->changes >= desk->changes_max)
        entities_error(&exchange->answer, 503,
                       "Too many requests are waiting for this worker; try again later");
    else if (left_ms(exchange) <= 0)
        answer_expired(desk, exchange);
    else
        return false;
    desk->finished(desk->arg, exchange);
    return true;
}

static void wait_for_herder(struct call *call)
{
    struct call_desk *desk = call->desk;

    call->next = desk->first;
    call->prev = &desk->first;
    if (desk->first != NULL)
        desk->first->prev = &call->next;
    desk->first = call;
    desk->changes += is_change(call->exchange);
    call->with_herder = true;
    loop_timer_start(desk->loop, &call->deadline, left_ms(call->exchange), deadline_passed, call);
}

/* true: the call is over. */
static bool run_route(struct call *call)
{
    call->running = true;
    call->exchange->match.route->run(call);
    call->running = false;
    if (!call->answered)
        return false;
    give_back(call);
    free(call);
    return true;
}

bool call_again(struct call *call)
{
    if (call->again)
        return false;
    call->again = true;
    run_route(call);
    return true;
}

void call_start(struct call_desk *desk, struct exchange *exchange)
{
    struct call *call;

    if (refused(desk, exchange))
        return;
    call = calloc(1, sizeof(*call));
    if (call == NULL) {
        entities_empty(&exchange->answer, 500);
        desk->finished(desk->arg, exchange);
        return;
    }
    *call = (struct call){.desk = desk, .exchange = exchange};
    if (!run_route(call))
        wait_for_herder(call);
}
