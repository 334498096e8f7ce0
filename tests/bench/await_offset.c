/* SPDX-License-Identifier: Apache-2.0 */
/* Wait until a topic holds COUNT records, or until a group has committed that far; prints the
 * milliseconds that took.
 *
 *   await_offset BOOTSTRAP TOPIC COUNT SECONDS [GROUP]
 *
 * Counts are the broker's own (end offsets, committed offsets), never the mover's. Exit code 1 when
 * the time is up. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARTITIONS_MAX 64

static long long now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static rd_kafka_t *client(const char *bootstrap, const char *group)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    rd_kafka_conf_set(conf, "group.id", group != NULL ? group : "await-offset", text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (rk == NULL) {
        fprintf(stderr, "await_offset: %s\n", text);
        exit(2);
    }
    return rk;
}

static int partition_count(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *md;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    int n = 0;

    if (rd_kafka_metadata(rk, 0, rkt, &md, 5000) == 0) {
        n = md->topic_cnt == 1 && md->topics[0].err == 0 ? md->topics[0].partition_cnt : 0;
        rd_kafka_metadata_destroy(md);
    }
    rd_kafka_topic_destroy(rkt);
    return n < PARTITIONS_MAX ? n : PARTITIONS_MAX;
}

static long long reached(rd_kafka_t *rk, const char *topic, int partitions, const char *group)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    long long sum = 0;

    for (int p = 0; p < partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;

        rd_kafka_topic_partition_list_add(list, topic, p);
        if (group == NULL && rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 2000) == 0)
            sum += high;
    }
    if (group != NULL && rd_kafka_committed(rk, list, 2000) == 0)
        for (int i = 0; i < list->cnt; i++)
            sum += list->elems[i].offset > 0 ? list->elems[i].offset : 0;
    rd_kafka_topic_partition_list_destroy(list);
    return sum;
}

int main(int argc, char **argv)
{
    const char *group = argc > 5 ? argv[5] : NULL;
    long long start = now_ms();
    long long count;
    long long limit;
    int partitions = 0;
    rd_kafka_t *rk;

    if (argc < 5) {
        fprintf(stderr, "usage: await_offset BOOTSTRAP TOPIC COUNT SECONDS [GROUP]\n");
        return 2;
    }
    rk = client(argv[1], group);
    count = strtoll(argv[3], NULL, 10);
    limit = start + strtoll(argv[4], NULL, 10) * 1000;
    for (;;) {
        const struct timespec pause = {.tv_nsec = 10000000};

        if (partitions == 0)
            partitions = partition_count(rk, argv[2]);
        if (partitions > 0 && reached(rk, argv[2], partitions, group) >= count)
            break;
        if (now_ms() > limit)
            return 1;
        nanosleep(&pause, NULL);
    }
    printf("%lld\n", now_ms() - start);
    rd_kafka_destroy(rk);
    return 0;
}
