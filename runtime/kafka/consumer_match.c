/* SPDX-License-Identifier: Apache-2.0 */
/* A subscription by a pattern that librdkafka can't match itself: Java's look-around, flags and
 * the like (topic_pattern.c says which). As Java's consumer does, we look at the names of all
 * topics now and then and subscribe to those that match: at first, each metadata.max.age.ms, and
 * each second while a topic of the subscription is missing or brokers don't answer.
 *
 * Part of consumer.c's state, used by its owner thread only. A look waits for its answer, but
 * briefly. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <string.h>

#define FIRST_MS 2000 /* how long an answer is waited for: the first, and later ones */
#define LATER_MS 200
#define SOON_MS 1000

/* Java's exclude.internal.topics. */
static bool is_internal(const char *topic)
{
    return strcmp(topic, "__consumer_offsets") == 0 || strcmp(topic, "__transaction_state") == 0;
}

static rd_kafka_topic_partition_list_t *matching(struct consumer_match *m,
                                                 const struct rd_kafka_metadata *metadata)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);

    for (int i = 0; i < metadata->topic_cnt; i++) {
        const char *topic = metadata->topics[i].topic;

        if (!is_internal(topic) && java_pattern_matches(m->pattern, topic, NULL) == 1)
            rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_topic_partition_list_sort(list, NULL, NULL);
    return list;
}

static bool same(const rd_kafka_topic_partition_list_t *a, const rd_kafka_topic_partition_list_t *b)
{
    if (a->cnt != b->cnt)
        return false;
    for (int i = 0; i < a->cnt; i++)
        if (strcmp(a->elems[i].topic, b->elems[i].topic) != 0)
            return false;
    return true;
}

static rd_kafka_resp_err_t subscribe(struct consumer *c, rd_kafka_topic_partition_list_t *wanted)
{
    rd_kafka_topic_partition_list_t *now = NULL;
    rd_kafka_resp_err_t code = rd_kafka_subscription(c->rk, &now);
    bool changed = code == RD_KAFKA_RESP_ERR_NO_ERROR && !same(now, wanted);

    if (now != NULL)
        rd_kafka_topic_partition_list_destroy(now);
    if (!changed)
        return code;
    consumer_gone_forget(&c->gone);
    return wanted->cnt > 0 ? rd_kafka_subscribe(c->rk, wanted) : rd_kafka_unsubscribe(c->rk);
}

static void look(struct consumer *c, int timeout_ms)
{
    struct consumer_match *m = &c->match;
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_partition_list_t *wanted;
    rd_kafka_resp_err_t code = rd_kafka_metadata(c->rk, 1, NULL, &metadata, timeout_ms);

    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        wanted = matching(m, metadata);
        rd_kafka_metadata_destroy(metadata);
        code = subscribe(c, wanted);
        rd_kafka_topic_partition_list_destroy(wanted);
    }
    m->failed = code != RD_KAFKA_RESP_ERR_NO_ERROR;
    m->looked_ms = clock_ms();
}

int consumer_match_start(struct consumer *c, const char *regex, struct mr_error *err)
{
    c->match.pattern = java_pattern_make(regex, err);
    if (c->match.pattern == NULL)
        return MR_ERR_CONFIG;
    look(c, FIRST_MS);
    return 0;
}

static int64_t left_ms(const struct consumer *c)
{
    const struct consumer_match *m = &c->match;
    int64_t each_ms = (m->failed || c->gone.asking) && m->each_ms > SOON_MS ? SOON_MS : m->each_ms;
    int64_t left = m->looked_ms + each_ms - clock_ms();

    return left < 0 ? 0 : left;
}

void consumer_match_serve(struct consumer *c)
{
    if (c->match.pattern != NULL && left_ms(c) == 0)
        look(c, LATER_MS);
}

int64_t consumer_match_wait_ms(const struct consumer *c, int64_t wait_ms)
{
    int64_t left = c->match.pattern != NULL ? left_ms(c) : wait_ms;

    return left < wait_ms ? left : wait_ms;
}

void consumer_match_deinit(struct consumer_match *m)
{
    java_pattern_free(&m->pattern);
}
