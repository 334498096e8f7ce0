/* SPDX-License-Identifier: Apache-2.0 */
/* Where the coordinator is, and two connections to it.
 *
 * seek() is asked by a lane that wants a connection: it leads to FindCoordinator over the client,
 * or straight to what was found. lose() forgets: after the broker's word that it is not (or no
 * longer) the coordinator, when MAIN's connection ends, when no connection comes about, or when the
 * member says so; lanes with calls that wait then seek again.
 *
 * Callbacks to the member run between enter() and leave(), so that it may free the coordinator in
 * any of them; `changed` comes from a timer of its own. A lookup that is under way holds a ticket,
 * not the coordinator. Thread: the loop's. */
#include "wire/coordinator.h"

#include "base/clock.h"
#include "base/text.h"
#include "wire/kafka_code.h"
#include "wire_client_private.h"
#include "wire_private.h"
#include "wire_route.h"

#include <stdlib.h>
#include <string.h>

/* A lookup takes no time; a broker that is frozen must not keep us from the next one for
 * request.timeout.ms. */
#define FIND_MS 5000

struct lane {
    struct coordinator *c;
    enum coordinator_lane name;
    struct wire_route *route;
    bool seeking;
    struct loop_timer timer; /* back-off of the address */
};

struct ticket {
    struct coordinator *c; /* NULL: gone */
};

struct coordinator {
    struct wire_client *client;
    const struct coordinator_events *events;
    void *arg;
    char *key;
    enum request_key_type type;
    int busy;
    bool dead;
    struct lane lanes[COORDINATOR_LANES];
    char *host; /* NULL: unknown */
    uint16_t port;
    struct ticket *finding;
    struct loop_timer retry;
    struct loop_timer notify;
    bool told_known;
    struct mr_error why; /* lost */
};

static struct loop *loop_of(const struct coordinator *c)
{
    return wire_client_loop(c->client);
}

static void enter(struct coordinator *c)
{
    c->busy++;
}

static void leave(struct coordinator *c)
{
    if (--c->busy == 0 && c->dead) {
        free(c->key);
        free(c->host);
        free(c);
    }
}

/* --- changed ---------------------------------------------------------------------------------- */

bool coordinator_known(const struct coordinator *c)
{
    return c->host != NULL && wire_route_up(c->lanes[COORDINATOR_MAIN].route);
}

static void tell_changed(void *arg)
{
    struct coordinator *c = arg;
    bool known = coordinator_known(c);
    struct mr_error why = c->why;

    if (known == c->told_known)
        return;
    c->told_known = known;
    if (c->events != NULL && c->events->changed != NULL)
        c->events->changed(c->arg, known ? NULL : &why);
}

static void notify(struct coordinator *c)
{
    if (!c->dead && coordinator_known(c) != c->told_known)
        loop_timer_start(loop_of(c), &c->notify, 0, tell_changed, c);
}

/* --- finding ---------------------------------------------------------------------------------- */

static void proceed(struct coordinator *c);

static void proceed_later(void *arg)
{
    proceed(arg);
}

static void lane_later(void *arg)
{
    proceed(((struct lane *)arg)->c);
}

static bool any_seeks(struct coordinator *c)
{
    bool any = false;

    for (int i = 0; i < COORDINATOR_LANES; i++) {
        c->lanes[i].seeking = c->lanes[i].seeking && wire_route_waiting(c->lanes[i].route);
        any = any || c->lanes[i].seeking;
    }
    return any;
}

static void find_again(struct coordinator *c)
{
    int64_t ms = wire_client_conf(c->client)->retry_backoff_ms;

    if (c->retry.slot == 0)
        loop_timer_start(loop_of(c), &c->retry, ms > 0 ? ms : 1, proceed_later, c);
}

/* Nothing was found: those that wait are told when it is hopeless, and else when their time is
 * over. */
static void not_found(struct coordinator *c, const struct mr_error *err)
{
    enter(c);
    for (int i = 0; i < COORDINATOR_LANES && !c->dead; i++)
        wire_route_missing(c->lanes[i].route, err);
    if (!c->dead && any_seeks(c))
        find_again(c);
    leave(c);
}

static void answer_in_words(const struct coordinator *c, const struct answer *answer,
                            struct mr_error *err)
{
    const char *hint = kafka_code_hint(answer->error);
    const char *message = answer->find_coordinator.message;

    mr_fail(err, kafka_code_act(answer->error) == KAFKA_CODE_FATAL ? MR_ERR_FATAL : MR_ERR_IO,
            "the cluster does not name a coordinator for %s %.200s: %s (%d)%s%.200s%s%s",
            c->type == REQUEST_KEY_GROUP ? "group" : "transactional id", c->key,
            kafka_code_name(answer->error), answer->error, message != NULL ? ", " : "",
            message != NULL ? message : "", hint[0] != '\0' ? "; " : "", hint);
}

static void on_found(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct ticket *ticket = arg;
    struct coordinator *c = ticket->c;
    struct mr_error why = {0};

    free(ticket);
    if (c == NULL)
        return;
    c->finding = NULL;
    if (err != NULL) {
        not_found(c, err);
    } else if (answer->error != 0) {
        answer_in_words(c, answer, &why);
        not_found(c, &why);
    } else {
        free(c->host);
        c->host = text_dup(answer->find_coordinator.broker.host);
        c->port = (uint16_t)answer->find_coordinator.broker.port;
        wire_book_add(wire_client_book(c->client), c->host, c->port);
        proceed(c);
    }
}

static void find(struct coordinator *c)
{
    struct request request = {.api = REQUEST_FIND_COORDINATOR,
                              .find_coordinator = {.key = c->key, .type = c->type}};
    int64_t ms = wire_client_conf(c->client)->request_timeout_ms;
    struct ticket *ticket;
    struct mr_error err = {0};

    if (c->finding != NULL || c->retry.slot != 0)
        return;
    ticket = malloc(sizeof(*ticket));
    mr_assert(ticket != NULL);
    ticket->c = c;
    if (wire_client_call(c->client, &request, ms < FIND_MS ? ms : FIND_MS, on_found, ticket,
                         &err) == 0) {
        c->finding = ticket;
        return;
    }
    free(ticket);
    /* Never told from here: this may run inside a call of the member's. */
    c->why = err;
    find_again(c);
}

static void connect_lane(struct lane *lane)
{
    struct coordinator *c = lane->c;
    int64_t ms = wire_book_wait(wire_client_book(c->client), c->host, c->port, clock_ms());

    if (ms > 0) {
        loop_timer_start(loop_of(c), &lane->timer, ms, lane_later, lane);
        return;
    }
    lane->seeking = false;
    wire_route_found(lane->route, &(struct broker_conn_to){.host = c->host, .port = c->port});
}

static void proceed(struct coordinator *c)
{
    if (!any_seeks(c))
        return;
    if (c->host == NULL) {
        find(c);
        return;
    }
    for (int i = 0; i < COORDINATOR_LANES; i++)
        if (c->lanes[i].seeking && c->lanes[i].timer.slot == 0)
            connect_lane(&c->lanes[i]);
}

/* --- losing ----------------------------------------------------------------------------------- */

static void lose(struct coordinator *c, const struct mr_error *err)
{
    struct mr_error why = *err;

    if (c->host == NULL)
        return;
    enter(c);
    free(c->host);
    c->host = NULL;
    c->why = why;
    for (int i = 0; i < COORDINATOR_LANES && !c->dead; i++) {
        loop_timer_cancel(&c->lanes[i].timer);
        wire_route_drop(c->lanes[i].route, &why);
    }
    notify(c);
    leave(c);
}

static void seek(void *owner)
{
    struct lane *lane = owner;

    lane->seeking = true;
    proceed(lane->c);
}

static const struct mr_error *why(void *owner)
{
    return wire_client_trouble(((struct lane *)owner)->c->client);
}

static void up(void *owner)
{
    struct lane *lane = owner;

    wire_book_worked(wire_client_book(lane->c->client), lane->c->host, lane->c->port);
    notify(lane->c);
}

static void down(void *owner, bool was_up, const struct mr_error *err)
{
    struct lane *lane = owner;
    struct coordinator *c = lane->c;

    if (c->host == NULL)
        return;
    wire_book_failed(wire_client_book(c->client), c->host, c->port, clock_ms());
    if (lane->name == COORDINATOR_MAIN || !was_up)
        lose(c, err);
}

void coordinator_lost(struct coordinator *c, const char *why)
{
    struct mr_error err = {0};

    loop_assert_owner(loop_of(c));
    mr_fail(&err, MR_ERR_CLOSED, "%s", why);
    lose(c, &err);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct call {
    struct coordinator *c;
    answer_fn fn;
    void *arg;
};

static void on_answer(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct call call = *(struct call *)arg;
    struct mr_error why = {0};

    free(arg);
    if (answer != NULL && kafka_code_act(answer->error) == KAFKA_CODE_REDISCOVER) {
        mr_fail(&why, MR_ERR_CLOSED, "%s is not the coordinator of %s %.200s any longer: %s",
                coordinator_name(call.c),
                call.c->type == REQUEST_KEY_GROUP ? "group" : "transactional id", call.c->key,
                kafka_code_name(answer->error));
        lose(call.c, &why);
    }
    call.fn(call.arg, answer, err);
}

int coordinator_call(struct coordinator *c, enum coordinator_lane lane,
                     const struct request *request, int64_t timeout_ms, answer_fn fn, void *arg,
                     struct mr_error *err)
{
    struct call *call = malloc(sizeof(*call));
    int rc;

    loop_assert_owner(loop_of(c));
    mr_assert(call != NULL);
    *call = (struct call){.c = c, .fn = fn, .arg = arg};
    rc = wire_route_call(c->lanes[lane].route, request, timeout_ms, on_answer, call, err);
    if (rc != 0)
        free(call);
    return rc;
}

const char *coordinator_name(const struct coordinator *c)
{
    return wire_route_name(c->lanes[COORDINATOR_MAIN].route);
}

/* --- life ------------------------------------------------------------------------------------- */

struct coordinator *coordinator_new(struct wire_client *client, const struct coordinator_to *to,
                                    const struct coordinator_events *events, void *arg,
                                    struct mr_error *err)
{
    static const struct wire_route_ops ops = {.seek = seek, .why = why, .up = up, .down = down};
    struct coordinator *c = calloc(1, sizeof(*c));
    char *key = strdup(to->key);

    if (c == NULL || key == NULL) {
        free(c);
        free(key);
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
        return NULL;
    }
    *c = (struct coordinator){
        .client = client, .events = events, .arg = arg, .key = key, .type = to->type};
    for (int i = 0; i < COORDINATOR_LANES; i++) {
        c->lanes[i] = (struct lane){.c = c, .name = (enum coordinator_lane)i};
        c->lanes[i].route = wire_route_new(wire_client_loop(client), wire_client_conf(client),
                                           false, &ops, &c->lanes[i]);
    }
    return c;
}

void coordinator_free(struct coordinator **cp)
{
    struct coordinator *c = *cp;

    *cp = NULL;
    if (c == NULL)
        return;
    enter(c);
    c->dead = true;
    loop_timer_cancel(&c->retry);
    loop_timer_cancel(&c->notify);
    if (c->finding != NULL)
        c->finding->c = NULL;
    for (int i = 0; i < COORDINATOR_LANES; i++) {
        loop_timer_cancel(&c->lanes[i].timer);
        wire_route_free(&c->lanes[i].route);
    }
    leave(c);
}
