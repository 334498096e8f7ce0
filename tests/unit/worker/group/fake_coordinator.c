/* SPDX-License-Identifier: Apache-2.0 */
/* Defines what member.c calls of wire/coordinator.h, wire_client.h and wire_conf.h, so that the
 * real ones are not linked. */
#include "fake_coordinator.h"

#include "base/loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    struct loop *loop;
    struct fake_call *calls;
    size_t made[REQUEST_API_COUNT];
    size_t lost;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct wire_conf *wire_conf_new(const struct props *settings, struct mr_error *err)
{
    return (struct wire_conf *)&fake;
}

void wire_conf_free(struct wire_conf **conf)
{
    *conf = NULL;
}

int64_t wire_conf_request_timeout_ms(const struct wire_conf *conf)
{
    return 40000;
}

struct wire_client *wire_client_new(struct loop *loop, const struct wire_conf *conf,
                                    struct mr_error *err)
{
    pthread_mutex_lock(&fake.lock);
    fake.loop = loop;
    memset(fake.made, 0, sizeof(fake.made));
    fake.lost = 0;
    pthread_mutex_unlock(&fake.lock);
    return (struct wire_client *)&fake;
}

void wire_client_free(struct wire_client **client)
{
    *client = NULL;
}

struct coordinator *coordinator_new(struct wire_client *client, const struct coordinator_to *to,
                                    const struct coordinator_events *events, void *arg,
                                    struct mr_error *err)
{
    return (struct coordinator *)&fake;
}

static void call_free(struct fake_call *call)
{
    for (size_t i = 0; i < call->part_count; i++) {
        free(call->part[i].name);
        free(call->part[i].bytes);
    }
    free(call->member);
    free(call);
}

void coordinator_free(struct coordinator **c)
{
    struct mr_error err = {.code = MR_ERR_CLOSED, .text = "freed"};

    if (*c == NULL)
        return;
    *c = NULL;
    while (fake.calls != NULL) {
        struct fake_call *call = fake.calls;

        fake.calls = call->next;
        call->fn(call->arg, NULL, &err);
        call_free(call);
    }
}

static void add_part(struct fake_call *call, const char *name, struct codec_bytes bytes)
{
    size_t i = call->part_count++;

    mr_assert(i < 8);
    call->part[i].name = strdup(name);
    call->part[i].bytes = malloc(bytes.len + 1);
    call->part[i].len = bytes.len;
    if (bytes.len > 0)
        memcpy(call->part[i].bytes, bytes.data, bytes.len);
}

static void copy_request(struct fake_call *call, const struct request *request)
{
    const struct request_join_group *join = &request->join_group;
    const struct request_sync_group *sync = &request->sync_group;

    switch (request->api) {
    case REQUEST_JOIN_GROUP:
        call->member = strdup(join->member);
        for (size_t i = 0; i < join->protocol_count; i++)
            add_part(call, join->protocols[i].name, join->protocols[i].metadata);
        break;
    case REQUEST_SYNC_GROUP:
        call->member = strdup(sync->member);
        call->generation = sync->generation;
        for (size_t i = 0; i < sync->assignment_count; i++)
            add_part(call, sync->assignments[i].member, sync->assignments[i].assignment);
        break;
    case REQUEST_HEARTBEAT:
        call->member = strdup(request->heartbeat.member);
        call->generation = request->heartbeat.generation;
        break;
    default:
        call->member = strdup(request->leave_group.member);
        break;
    }
}

int coordinator_call(struct coordinator *c, enum coordinator_lane lane,
                     const struct request *request, int64_t timeout_ms, answer_fn fn, void *arg,
                     struct mr_error *err)
{
    struct fake_call *call = calloc(1, sizeof(*call));
    struct fake_call **last = &fake.calls;

    *call = (struct fake_call){.lane = lane, .api = request->api, .fn = fn, .arg = arg};
    copy_request(call, request);
    pthread_mutex_lock(&fake.lock);
    while (*last != NULL)
        last = &(*last)->next;
    *last = call;
    fake.made[request->api]++;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

void coordinator_lost(struct coordinator *c, const char *why)
{
    pthread_mutex_lock(&fake.lock);
    fake.lost++;
    pthread_mutex_unlock(&fake.lock);
}

struct fake_call *fake_take(enum request_api api)
{
    struct fake_call *call;

    pthread_mutex_lock(&fake.lock);
    for (call = fake.calls; call != NULL && (call->taken || call->api != api); call = call->next)
        ;
    if (call != NULL)
        call->taken = true;
    pthread_mutex_unlock(&fake.lock);
    return call;
}

size_t fake_calls(enum request_api api)
{
    size_t made;

    pthread_mutex_lock(&fake.lock);
    made = fake.made[api];
    pthread_mutex_unlock(&fake.lock);
    return made;
}

size_t fake_lost(void)
{
    size_t lost;

    pthread_mutex_lock(&fake.lock);
    lost = fake.lost;
    pthread_mutex_unlock(&fake.lock);
    return lost;
}

struct delivery {
    struct fake_call *call;
    struct answer answer;
    struct mr_error err;
};

static void deliver(void *arg)
{
    struct delivery *d = arg;
    struct fake_call **at = &fake.calls;

    pthread_mutex_lock(&fake.lock);
    while (*at != NULL && *at != d->call)
        at = &(*at)->next;
    if (*at != NULL)
        *at = d->call->next;
    else
        d->call = NULL; /* answered by coordinator_free */
    pthread_mutex_unlock(&fake.lock);
    if (d->call != NULL) {
        if (d->err.code != 0)
            d->call->fn(d->call->arg, NULL, &d->err);
        else
            d->call->fn(d->call->arg, &d->answer, NULL);
        call_free(d->call);
    }
    free(d);
}

void fake_answer(struct fake_call *call, const struct answer *answer, const struct mr_error *err)
{
    struct delivery *d = calloc(1, sizeof(*d));

    d->call = call;
    if (err != NULL)
        d->err = *err;
    else
        d->answer = *answer;
    mr_assert(loop_post(fake.loop, deliver, d) == 0);
}
