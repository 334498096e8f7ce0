/* SPDX-License-Identifier: Apache-2.0 */
/* A producer whose brokers keep it waiting.
 *
 *            5 records under way               stall_ms without a report
 *   QUIET ──────────────────────► WATCHING ───────────────────────────────► RESTING
 *     ▲  fewer than that, when due   │  ▲       a report, or REST_MS later      │
 *     └──────────────────────────────┘  └───────────────────────────────────────┘
 *
 * librdkafka (2.0.2) takes records under way for requests: behind five of an idempotent producer it
 * sends nothing, does not wait either, and its thread takes a whole core until the brokers answer,
 * while they are connected (rd_kafka_toppar_producer_serve sets the time of the next look to now,
 * and then finds that it may send nothing; tried: 2.6 CPU-s of a stall of 2.7 s). Many tasks doing
 * that are why brokers on the same machine stay slow. A paused partition is left alone, so all of
 * them rest. A request that librdkafka sends again gives no report: for that they are resumed now
 * and then, for a moment; a long one where nothing was ever confirmed, and seldom, since a leader
 * that is not connected yet takes a second to find that it has something to send.
 *
 * What was ever paused librdkafka keeps, with its records, when brokers say that the topic is gone:
 * they wait for it until delivery.timeout.ms, as they do in Java, where else they come back at
 * once. librdkafka asks for such a topic when metadata.max.age.ms is over; here it is asked for after
 * five seconds, and then when twice the time has gone by: with one request in flight records wait
 * behind each, and slow brokers would come to nothing else. A transaction is to be begun anew then,
 * and soon: its producer rests in long stalls only, and its delivery.timeout.ms is its
 * transaction.timeout.ms at most.
 *
 * The owner's thread; a timer in the set that it waits on brings it here. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STALL_MS 300 /* longer than librdkafka takes to hear that a topic is away */
#define LONG_STALL_MS 1000
#define REST_MS 200
#define MOMENT_MS 5     /* between two rests */
#define CONNECT_MS 1100 /* the same, now and then */
#define SAY_MS 3000
#define ASK_MS 5000

static void add_partitions(rd_kafka_topic_partition_list_t *list, const char *name,
                           const struct producer_topic *topic)
{
    for (int32_t i = 0; i < topic->partitions; i++)
        rd_kafka_topic_partition_list_add(list, name, i);
}

/* Confirmed by librdkafka's main thread, in a fraction of a millisecond. */
static void set_resting(struct producer *p, bool resting)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    const char *name;
    size_t i = 0;
    void *topic;

    while (map_next(p->topics, &i, &name, &topic))
        add_partitions(list, name, topic);
    if (resting)
        rd_kafka_pause_partitions(p->rk, list);
    else
        rd_kafka_resume_partitions(p->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (!resting)
        rd_kafka_flush(p->rk, 0); /* waits for nothing; wakes the brokers' threads */
    p->rest.resting = resting;
}

/* in_ms 0: not at all. Whatever rang before is gone. */
static void look_in(struct producer *p, int64_t now_ms, int64_t in_ms)
{
    const struct itimerspec at = {
        .it_value = {.tv_sec = in_ms / 1000, .tv_nsec = in_ms % 1000 * 1000000}};

    mr_assert(timerfd_settime(p->rest.timer, 0, &at, NULL) == 0);
    p->rest.due_ms = in_ms > 0 ? now_ms + in_ms : 0;
}

static int64_t stall_ms(const struct producer *p)
{
    return p->rest.patient ? LONG_STALL_MS : STALL_MS;
}

void producer_rest_watch(struct producer *p)
{
    if (p->rest.timer < 0)
        return;
    p->rest.heard_ms = clock_ms();
    if (p->rest.due_ms == 0)
        look_in(p, p->rest.heard_ms, stall_ms(p));
}

/* A leader that is not connected yet is not woken: its thread looks once a second whether it is
 * needed, and has to find a partition that is not paused. At first, where an id was long in coming,
 * and when a leader has changed meanwhile. */
static int64_t moment_ms(struct producer *p, int64_t now_ms)
{
    int64_t quiet_ms = now_ms - p->rest.heard_ms, long_ms = p->rest.long_ms - p->rest.heard_ms;
    int64_t first_ms = p->rest.confirmed ? ASK_MS : stall_ms(p);

    if (quiet_ms < (long_ms > 0 ? 2 * long_ms : first_ms))
        return MOMENT_MS;
    p->rest.long_ms = now_ms;
    return CONNECT_MS;
}

/* When to look again, after what was just decided. */
static int64_t next_look_ms(struct producer *p, int64_t now_ms, bool heard, bool resumed)
{
    if (p->rest.resting)
        return REST_MS;
    if (p->in_flight < PRODUCER_REST_FROM)
        return 0;
    return resumed && !heard ? moment_ms(p, now_ms) : p->rest.heard_ms + stall_ms(p) - now_ms;
}

/* The answer does its work in librdkafka; nobody waits for it. */
static void ask_for_topics(struct producer *p, int64_t now_ms)
{
    const struct rd_kafka_metadata *metadata = NULL;
    int64_t quiet_ms = now_ms - p->rest.heard_ms, asked_ms = p->rest.asked_ms - p->rest.heard_ms;

    if (quiet_ms < ASK_MS || (asked_ms > 0 && quiet_ms < 2 * asked_ms))
        return;
    p->rest.asked_ms = now_ms;
    if (rd_kafka_metadata(p->rk, 0, NULL, &metadata, 0) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(metadata);
}

void producer_rest_look(struct producer *p, bool heard)
{
    struct producer_rest *r = &p->rest;
    int64_t now_ms = r->timer >= 0 ? clock_ms() : 0;
    bool due = r->due_ms != 0 && now_ms >= r->due_ms, rested = r->resting;

    if (heard) {
        r->heard_ms = now_ms;
        r->confirmed = true;
    }
    if (!due && !(rested && heard))
        return;
    if (rested || (p->in_flight >= PRODUCER_REST_FROM && now_ms - r->heard_ms >= stall_ms(p)))
        set_resting(p, !rested);
    if (r->resting)
        ask_for_topics(p, now_ms);
    if (r->resting && now_ms - r->heard_ms >= SAY_MS && p->trouble[0] == '\0')
        snprintf(p->trouble, sizeof(p->trouble), "the brokers have confirmed nothing for %d s",
                 SAY_MS / 1000);
    look_in(p, now_ms, next_look_ms(p, now_ms, heard, rested));
}

int producer_rest_open(struct producer *p)
{
    struct epoll_event event = {.events = EPOLLIN};

    p->rest.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return p->rest.timer < 0 ? -1 : epoll_ctl(p->fd, EPOLL_CTL_ADD, p->rest.timer, &event);
}

void producer_rest_close(struct producer *p)
{
    if (p->rest.timer >= 0)
        close(p->rest.timer);
}
