/* SPDX-License-Identifier: Apache-2.0 */
/* Events from the group thread to the worker's loop, as messages that own what they carry. They
 * outlive the member: what is still posted when it is freed finds a closed ear. Out of memory here
 * would lose an event that the herder waits for, so it ends the worker. */
#include "base/log.h"
#include "base/text.h"
#include "worker/group/member_private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct ear {
    struct loop *loop;
    struct member_events events;
    void *arg;
    bool closed;     /* worker's loop only */
    atomic_int refs; /* the member's, and one an event on its way */
};

struct event {
    struct ear *ear;
    void (*deliver)(const struct event *event, const struct member_events *to, void *arg);
    char *text;
    int64_t number;
    int64_t offset;
    struct lease_times times;
    struct lead lead;
    struct member_round round;
    struct work_list held;
    struct connect_assignment assignment;
    struct mr_error err;
};

static void *must(void *p)
{
    mr_assert(p != NULL);
    return p;
}

struct ear *ear_new(struct loop *loop, const struct member_events *events, void *arg)
{
    struct ear *ear = must(calloc(1, sizeof(*ear)));

    *ear = (struct ear){.loop = loop, .events = *events, .arg = arg};
    atomic_init(&ear->refs, 1);
    return ear;
}

static void unref(struct ear *ear)
{
    if (atomic_fetch_sub(&ear->refs, 1) == 1)
        free(ear);
}

void ear_close(struct ear **ear)
{
    (*ear)->closed = true;
    unref(*ear);
    *ear = NULL;
}

static void event_free(struct event *event)
{
    unref(event->ear);
    free(event->text);
    lead_deinit(&event->lead);
    work_list_deinit(&event->held);
    connect_protocol_assignment_deinit(&event->assignment);
    free(event);
}

static void run(void *arg)
{
    struct event *event = arg;

    if (!event->ear->closed)
        event->deliver(event, &event->ear->events, event->ear->arg);
    event_free(event);
}

static struct event *event_new(struct ear *ear, const char *text)
{
    struct event *event = must(calloc(1, sizeof(*event)));

    event->ear = ear;
    event->text = text_dup(text);
    atomic_fetch_add(&ear->refs, 1);
    return event;
}

/* A loop that is closed hears nothing: the worker ends. */
static void post(struct event *event)
{
    if (loop_post(event->ear->loop, run, event) != 0)
        event_free(event);
}

#define DELIVER(name, ...) \
    static void deliver_##name(const struct event *e, const struct member_events *to, void *arg) \
    { \
        (void)e; \
        to->name(arg, ##__VA_ARGS__); \
    }

DELIVER(identity, e->text)
DELIVER(rebalancing)
DELIVER(stop_all, e->number)
DELIVER(lead, e->number, e->offset)
DELIVER(led, e->number, &e->lead)
DELIVER(assigned, &e->round)
DELIVER(lost, e->text)
DELIVER(lease, e->times)
DELIVER(left)
DELIVER(failed, &e->err)

static void tell(struct ear *ear,
                 void (*deliver)(const struct event *, const struct member_events *, void *),
                 const char *text, int64_t number)
{
    struct event *event = event_new(ear, text);

    event->deliver = deliver;
    event->number = number;
    post(event);
}

void ear_identity(struct ear *ear, const char *member_id)
{
    tell(ear, deliver_identity, member_id, 0);
}

void ear_rebalancing(struct ear *ear)
{
    tell(ear, deliver_rebalancing, NULL, 0);
}

void ear_stop_all(struct ear *ear, int64_t ask)
{
    tell(ear, deliver_stop_all, NULL, ask);
}

void ear_lost(struct ear *ear, const char *why)
{
    tell(ear, deliver_lost, why, 0);
}

void ear_left(struct ear *ear)
{
    tell(ear, deliver_left, NULL, 0);
}

void ear_lead(struct ear *ear, int64_t ask, int64_t min_offset)
{
    struct event *event = event_new(ear, NULL);

    event->deliver = deliver_lead;
    event->number = ask;
    event->offset = min_offset;
    post(event);
}

void ear_led_take(struct ear *ear, int64_t generation, struct lead *lead)
{
    struct event *event = event_new(ear, NULL);

    event->deliver = deliver_led;
    event->number = generation;
    event->lead = *lead;
    *lead = (struct lead){0};
    post(event);
}

void ear_assigned_take(struct ear *ear, const struct member_round *round,
                       struct connect_assignment *assignment)
{
    struct event *event = event_new(ear, round->member_id);

    event->deliver = deliver_assigned;
    event->assignment = *assignment;
    *assignment = (struct connect_assignment){0};
    event->round = *round;
    event->round.member_id = event->text;
    event->round.assignment = &event->assignment;
    mr_assert(work_list_copy(&event->held, round->held) == 0);
    event->round.held = &event->held;
    post(event);
}

void ear_lease(struct ear *ear, struct lease_times times)
{
    struct event *event = event_new(ear, NULL);

    event->deliver = deliver_lease;
    event->times = times;
    post(event);
}

void ear_failed(struct ear *ear, const struct mr_error *err)
{
    struct event *event = event_new(ear, NULL);

    event->deliver = deliver_failed;
    event->err = *err;
    post(event);
}
