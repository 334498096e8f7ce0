/* SPDX-License-Identifier: Apache-2.0 */
/* How long a line takes from a file into a topic: appends one line each INTERVAL ms, reads the
 * topic with a client of its own, and prints "median p99 max" in milliseconds, and how many lines
 * were seen.
 *
 *   append_latency BOOTSTRAP TOPIC FILE LINES INTERVAL_MS
 *
 * Open loop: a line is due by the clock, whatever happened to the one before. Each carries its due
 * time. */
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run {
    int fd;
    long lines;
    long interval_ms;
};

static long long now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void *append(void *arg)
{
    struct run *run = arg;
    struct timespec due;
    char line[64];

    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long i = 0; i < run->lines; i++) {
        int n;

        due.tv_nsec += run->interval_ms * 1000000;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        n = snprintf(line, sizeof(line), "%lld\n",
                     (long long)due.tv_sec * 1000000 + due.tv_nsec / 1000);
        if (write(run->fd, line, (size_t)n) != n)
            perror("append_latency");
    }
    return NULL;
}

static rd_kafka_t *reader(const char *bootstrap, const char *topic)
{
    static const char *const settings[][2] = {{"group.id", "append-latency"},
                                              {"auto.offset.reset", "latest"},
                                              {"enable.auto.commit", "false"},
                                              {"fetch.wait.max.ms", "500"}};
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_END;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return rk;
}

static int compare(const void *a, const void *b)
{
    long long x = *(const long long *)a;
    long long y = *(const long long *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    struct run run;
    pthread_t thread;
    rd_kafka_t *rk;
    rd_kafka_message_t *first;
    long long *took;
    long seen = 0;
    long long limit;

    if (argc != 6) {
        fprintf(stderr, "usage: append_latency BOOTSTRAP TOPIC FILE LINES INTERVAL_MS\n");
        return 2;
    }
    run.lines = strtol(argv[4], NULL, 10);
    run.interval_ms = strtol(argv[5], NULL, 10);
    run.fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT, 0600);
    took = calloc((size_t)run.lines, sizeof(*took));
    rk = reader(argv[1], argv[2]);
    /* nothing is there yet: the assignment takes hold meanwhile */
    first = rd_kafka_consumer_poll(rk, 2000);
    if (first != NULL)
        rd_kafka_message_destroy(first);
    limit = now_us() + (run.lines * run.interval_ms + 10000) * 1000;
    pthread_create(&thread, NULL, append, &run);
    while (seen < run.lines && now_us() < limit) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, 100);

        if (msg == NULL)
            continue;
        if (msg->err == 0 && msg->len < 32) {
            char text[32] = "";

            memcpy(text, msg->payload, msg->len);
            took[seen++] = now_us() - strtoll(text, NULL, 10);
        }
        rd_kafka_message_destroy(msg);
    }
    pthread_join(thread, NULL);
    qsort(took, (size_t)seen, sizeof(*took), compare);
    if (seen > 0)
        printf("%.1f %.1f %.1f %ld\n", took[seen / 2] / 1e3, took[seen * 99 / 100] / 1e3,
               took[seen - 1] / 1e3, seen);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return seen == run.lines ? 0 : 1;
}
