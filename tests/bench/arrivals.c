/* SPDX-License-Identifier: Apache-2.0 */
/* The independent reader of the cluster part: makes a topic, reads all its partitions from their
 * beginning, read committed, and prints when each record came in.
 *
 *   arrivals BOOTSTRAP TOPIC PARTITIONS      until it is killed
 *
 * First line "ready", then "<CLOCK_MONOTONIC ms> <partition> <value>". */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CREATE_MS 30000

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "arrivals: %s: %s\n", what, why);
    exit(1);
}

static rd_kafka_t *client(const char *bootstrap)
{
    static const char *const settings[][2] = {
        {"group.id", "arrivals"},
        {"log_level", "0"},
        {"enable.auto.commit", "false"},
        {"fetch.wait.max.ms", "100"},
        {"fetch.min.bytes", "1"},
        {"auto.offset.reset", "earliest"},
        {"isolation.level", "read_committed"},
    };
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, why, sizeof(why)) != 0)
        die(bootstrap, why);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof(why)) != 0)
            die(settings[i][0], why);
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    if (rk == NULL)
        die("client", why);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static void create(rd_kafka_t *rk, const char *name, int partitions)
{
    char why[512];
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, why, sizeof(why));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_event_t *event;
    const rd_kafka_topic_result_t **results;
    size_t count = 0;

    if (topic == NULL)
        die(name, why);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, CREATE_MS);
    if (event == NULL || rd_kafka_event_error(event) != 0)
        die(name, event == NULL ? "not made in time" : rd_kafka_event_error_string(event));
    results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (count != 1 || rd_kafka_topic_result_error(results[0]) != 0)
        die(name, count == 1 ? rd_kafka_topic_result_error_string(results[0]) : "no result");
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
}

static void assign(rd_kafka_t *rk, const char *topic, int partitions)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);

    for (int p = 0; p < partitions; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    if (rd_kafka_assign(rk, list) != 0)
        die(topic, "can't be assigned");
    rd_kafka_topic_partition_list_destroy(list);
}

int main(int argc, char **argv)
{
    rd_kafka_t *rk;
    int partitions;

    if (argc != 4) {
        fprintf(stderr, "usage: arrivals BOOTSTRAP TOPIC PARTITIONS\n");
        return 2;
    }
    partitions = (int)strtol(argv[3], NULL, 10);
    rk = client(argv[1]);
    create(rk, argv[2], partitions);
    assign(rk, argv[2], partitions);
    puts("ready");
    fflush(stdout);
    for (;;) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 1000);

        if (msg == NULL)
            continue;
        if (msg->err == 0)
            printf("%.1f %d %.*s\n", now_ms(), (int)msg->partition, (int)msg->len,
                   (const char *)msg->payload);
        rd_kafka_message_destroy(msg);
        fflush(stdout);
    }
}
