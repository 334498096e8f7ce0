/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer whose library has stopped fetching. Called by consumer_poll when nothing comes; the
 * owner's thread.
 *
 * Seen with librdkafka 2.0.2 where seeks follow each other closely: all seeks are confirmed,
 * nothing is paused, and a partition is not fetched any more, though by the library's own knowledge
 * it goes on. A further seek to where we are makes it begin anew. An open transaction looks the
 * same from here, so looks become rarer, and nothing but a seek comes of them. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#define EACH_MS 500 /* between two looks */
#define FIRST_MS 2000
#define LAST_MS 60000

#define LOGGER "kafka.consumer"
#include "base/log.h"

/* As the library knows from what it fetched last. */
static bool goes_on(const struct consumer *c, const struct consumer_part *part)
{
    int64_t low, high;

    return part->placed && !part->held && part->next >= 0 &&
           rd_kafka_get_watermark_offsets(c->rk, part->topic->name, part->number, &low, &high) ==
               RD_KAFKA_RESP_ERR_NO_ERROR &&
           high > part->next;
}

static void look_at(struct consumer *c, struct consumer_part *part, int64_t now_ms)
{
    if (part->stall_next != part->next) {
        part->stall_next = part->next;
        part->stall_ms = now_ms;
        part->stall_wait_ms = FIRST_MS;
    } else if (now_ms - part->stall_ms >= part->stall_wait_ms) {
        part->seek_due = c->seeks_due = true;
        part->stall_ms = now_ms;
        part->stall_wait_ms = part->stall_wait_ms * 2 < LAST_MS ? part->stall_wait_ms * 2 : LAST_MS;
        log_debug("nothing comes of %s-%d, though there is more behind %lld: fetched anew",
                  part->topic->name, part->number, (long long)part->next);
    }
}

void consumer_stall_serve(struct consumer *c)
{
    int64_t now_ms = clock_ms();

    if (c->paused || now_ms < c->stall_due_ms)
        return;
    c->stall_due_ms = INT64_MAX;
    for (size_t i = 0; i < c->parts.count; i++) {
        if (!goes_on(c, c->parts.items[i]))
            continue;
        look_at(c, c->parts.items[i], now_ms);
        c->stall_due_ms = now_ms + EACH_MS;
    }
    if (c->stall_due_ms == INT64_MAX)
        c->stall_due_ms = 0; /* all are at their ends: look again when next nothing comes */
}

int64_t consumer_stall_wait_ms(const struct consumer *c, int64_t wait_ms)
{
    return c->stall_due_ms != 0 && wait_ms > EACH_MS ? EACH_MS : wait_ms;
}
