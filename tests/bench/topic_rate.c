/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a topic with one partition grows for readers of committed records, by the broker's own
 * end offsets.
 *
 *   topic_rate BOOTSTRAP TOPIC WARM_SECONDS SECONDS
 *
 * Once something is in the topic and WARM_SECONDS have passed it prints "from" at the next growth,
 * and SECONDS later, again at the next growth, records a second between the two: a transaction
 * shows all at once. (The marker of each counts as a record.) Exit code 1: nothing grows for a
 * minute. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT_MS 60000

struct growth {
    long long end;
    double ms;
};

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* By default it asks for the end of what is committed. */
static rd_kafka_t *client(const char *bootstrap)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    rd_kafka_conf_set(conf, "isolation.level", "read_committed", text, sizeof(text));
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (rk == NULL) {
        fprintf(stderr, "topic_rate: %s\n", text);
        exit(2);
    }
    return rk;
}

static long long end_of(rd_kafka_t *rk, const char *topic)
{
    int64_t low = 0, high = 0;

    return rd_kafka_query_watermark_offsets(rk, topic, 0, &low, &high, 2000) == 0 ? high : 0;
}

/* From this moment on. */
static struct growth next_growth(rd_kafka_t *rk, const char *topic)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    long long before = end_of(rk, topic), end = before;
    double from_ms = now_ms();

    while (end <= before) {
        if (now_ms() - from_ms > LIMIT_MS) {
            fprintf(stderr, "topic_rate: %s does not grow\n", topic);
            exit(1);
        }
        nanosleep(&pause, NULL);
        end = end_of(rk, topic);
    }
    return (struct growth){end, now_ms()};
}

static struct growth growth_after(rd_kafka_t *rk, const char *topic, const char *seconds)
{
    struct timespec pause = {.tv_sec = strtol(seconds, NULL, 10)};

    nanosleep(&pause, NULL);
    return next_growth(rk, topic);
}

int main(int argc, char **argv)
{
    struct growth from, to;
    rd_kafka_t *rk;

    if (argc != 5) {
        fprintf(stderr, "usage: topic_rate BOOTSTRAP TOPIC WARM_SECONDS SECONDS\n");
        return 2;
    }
    rk = client(argv[1]);
    next_growth(rk, argv[2]);
    from = growth_after(rk, argv[2], argv[3]);
    puts("from");
    fflush(stdout);
    to = growth_after(rk, argv[2], argv[4]);
    printf("%.0f\n", (double)(to.end - from.end) / (to.ms - from.ms) * 1e3);
    rd_kafka_destroy(rk);
    return 0;
}
