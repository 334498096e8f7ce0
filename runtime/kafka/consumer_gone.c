/* SPDX-License-Identifier: Apache-2.0 */
/* Topics of a subscription that are not there, until they are.
 *
 * Java asks again each second while a topic of its subscription is missing: one that was deleted is
 * given up, one that came (back) is taken at once, and begins where a new topic begins, since the
 * group has no offsets of it any more. librdkafka goes on with what it has and looks at its
 * subscription every metadata.max.age.ms, five minutes by default. So from the first error that
 * tells of a missing topic on, its topics are asked for each second. When one of them went, came or
 * changed its partitions, librdkafka is made to look: only a request for all topics of the cluster
 * does that, so it is sent for that reason alone, some times over, since brokers do not hear of it
 * all at once.
 *
 *   idle ─a topic is missing─► asking ─all are there, and it has looked at it─► idle
 *
 * Part of consumer.c's state, used by its owner thread only. A question waits for its answer, but
 * briefly. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <stdlib.h>
#include <string.h>

#define ASK_FIRST_MS 200
#define ASK_EACH_MS 1000
#define ASK_MS 100                                  /* how long an answer is waited for */
#define LOOKS 3                                     /* requests for all topics after each change */
#define UNKNOWN_TOPIC_ID ((rd_kafka_resp_err_t)100) /* of the protocol; newer than some headers */

static bool tells_of_missing(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == UNKNOWN_TOPIC_ID;
}

bool consumer_gone_note(struct consumer_gone *g, rd_kafka_resp_err_t code)
{
    if (!tells_of_missing(code))
        return false;
    if (!g->asking)
        g->due_ms = clock_ms() + ASK_FIRST_MS;
    g->shape = g->asking ? g->shape : 0;
    g->asking = true;
    return true;
}

/* The library's question names the topics that it has handles of: so it gets one of each that is
 * subscribed by name. */
static void hold_topics(struct consumer *c)
{
    struct consumer_gone *g = &c->gone;
    rd_kafka_topic_partition_list_t *list = NULL;

    if (rd_kafka_subscription(c->rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    g->topics = calloc((size_t)list->cnt + 1, sizeof(rd_kafka_topic_t *));
    for (int i = 0; g->topics != NULL && i < list->cnt; i++)
        if (list->elems[i].topic[0] != '^')
            g->topics[g->count++] = rd_kafka_topic_new(c->rk, list->elems[i].topic, NULL);
    rd_kafka_topic_partition_list_destroy(list);
}

static void let_topics_go(struct consumer_gone *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->topics[i] != NULL)
            rd_kafka_topic_destroy(g->topics[i]);
    free(g->topics);
    g->topics = NULL;
    g->count = 0;
}

/* Another one as soon as a topic is there or not, or has other partitions (FNV-1a, summed: the
 * order does not matter). Never 0. */
static uint64_t shape_of(const struct rd_kafka_metadata *metadata, size_t *missing)
{
    uint64_t shape = 1;

    *missing = 0;
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *topic = &metadata->topics[i];
        uint64_t hash = 14695981039346656037u + (uint64_t)topic->partition_cnt;

        for (const char *at = topic->topic; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
        shape += hash;
        *missing += topic->partition_cnt == 0;
    }
    return shape == 0 ? 1 : shape;
}

/* Its answer does its work in librdkafka; nobody waits for it. */
static void look_at_all(struct consumer *c)
{
    const struct rd_kafka_metadata *metadata = NULL;

    if (rd_kafka_metadata(c->rk, 1, NULL, &metadata, 0) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(metadata);
}

static void ask(struct consumer *c)
{
    struct consumer_gone *g = &c->gone;
    const struct rd_kafka_metadata *metadata = NULL;
    uint64_t shape;
    size_t missing;

    if (g->topics == NULL)
        hold_topics(c);
    if (rd_kafka_metadata(c->rk, 0, NULL, &metadata, ASK_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    shape = shape_of(metadata, &missing);
    rd_kafka_metadata_destroy(metadata);
    if (shape != g->shape)
        g->looks = LOOKS;
    g->shape = shape;
    if (g->looks > 0) {
        g->looks--;
        look_at_all(c);
    } else if (missing == 0) {
        g->asking = false;
        let_topics_go(g);
    }
}

void consumer_gone_serve(struct consumer *c)
{
    struct consumer_gone *g = &c->gone;

    if (!g->asking || clock_ms() < g->due_ms)
        return;
    ask(c);
    g->due_ms = clock_ms() + ASK_EACH_MS;
}

int64_t consumer_gone_wait_ms(const struct consumer_gone *g, int64_t wait_ms)
{
    int64_t left_ms = g->asking ? g->due_ms - clock_ms() : wait_ms;

    return left_ms < 0 ? 0 : left_ms < wait_ms ? left_ms : wait_ms;
}

void consumer_gone_forget(struct consumer_gone *g)
{
    let_topics_go(g);
    g->asking = false;
}

void consumer_gone_deinit(struct consumer_gone *g)
{
    let_topics_go(g);
}
