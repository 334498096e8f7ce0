/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Waiting for a topic of a real Kafka to be there is the client's own business. */
#include "mock_kafka.h"

#include "base/buf.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mock_kafka_start(struct mock_kafka *k, int brokers)
{
    char why[256];

    *k = (struct mock_kafka){.bootstrap = getenv("KAFKA_BOOTSTRAP")};
    if (k->bootstrap != NULL)
        return;
    k->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof(why));
    assert_non_null(k->rk);
    k->cluster = rd_kafka_mock_cluster_new(k->rk, brokers);
    assert_non_null(k->cluster);
    k->bootstrap = rd_kafka_mock_cluster_bootstraps(k->cluster);
}

void mock_kafka_stop(struct mock_kafka *k)
{
    if (k->rk == NULL)
        return;
    rd_kafka_mock_cluster_destroy(k->cluster);
    rd_kafka_destroy(k->rk);
}

static void create_topic(struct mock_kafka *k, const char *name, int partitions)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    rd_kafka_NewTopic_t *topic;
    rd_kafka_event_t *event;

    rd_kafka_conf_set(conf, "bootstrap.servers", k->bootstrap, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    queue = rd_kafka_queue_new(rk);
    topic = rd_kafka_NewTopic_new(name, partitions, 1, why, sizeof(why));
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, 10000);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

void mock_kafka_topic(struct mock_kafka *k, char *name, size_t size, int partitions)
{
    static int serial;

    snprintf(name, size, "t%lld-%d-%d", (long long)clock_wall_ms(), (int)getpid(), serial++);
    if (k->cluster != NULL)
        assert_int_equal(rd_kafka_mock_topic_create(k->cluster, name, partitions, 1), 0);
    else
        create_topic(k, name, partitions);
}

void mock_kafka_props(struct props *p, ...)
{
    va_list args;
    const char *key;

    props_init(p);
    va_start(args, p);
    while ((key = va_arg(args, const char *)) != NULL)
        assert_int_equal(props_set(p, key, va_arg(args, const char *)), 0);
    va_end(args);
}

void mock_kafka_remark(void *arg, const char *key, const char *text)
{
    buf_printf(arg, "%s: %s\n", key, text);
}
