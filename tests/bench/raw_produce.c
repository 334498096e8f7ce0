/* SPDX-License-Identifier: Apache-2.0 */
/* The limit for file → topic: what a careful program on plain librdkafka does for the same bytes.
 *
 *   raw_produce BOOTSTRAP TOPIC FILE [SETTING=VALUE...]      settings by librdkafka's names
 *
 * Lines are produced without a copy from the mapped file, delivery reports are walked as events and
 * checked; exits 0 when every line was acknowledged. */
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t in_flight;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "raw_produce: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
        die(key, why);
}

static void walk(rd_kafka_queue_t *queue, int wait_ms)
{
    rd_kafka_event_t *event;

    while ((event = rd_kafka_queue_poll(queue, wait_ms)) != NULL) {
        const rd_kafka_message_t *msg;

        while ((msg = rd_kafka_event_message_next(event)) != NULL) {
            if (msg->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                die("not delivered", rd_kafka_err2str(msg->err));
            in_flight--;
        }
        rd_kafka_event_destroy(event);
        wait_ms = 0;
    }
}

static const char *map_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *data;

    if (fd < 0 || fstat(fd, &st) != 0)
        die(path, strerror(errno));
    *size = (size_t)st.st_size;
    data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        die(path, strerror(errno));
    close(fd);
    return data;
}

static void send_line(rd_kafka_topic_t *topic, rd_kafka_queue_t *queue, const char *line,
                      size_t len)
{
    while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, 0, (void *)(uintptr_t)line, len, NULL, 0,
                            NULL) != 0) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("refused", rd_kafka_err2str(rd_kafka_last_error()));
        walk(queue, 1000);
    }
    in_flight++;
}

int main(int argc, char **argv)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    rd_kafka_topic_t *topic;
    const char *data;
    size_t size;
    size_t lines = 0;

    if (argc < 4)
        die("usage", "raw_produce BOOTSTRAP TOPIC FILE [SETTING=VALUE...]");
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "queue.buffering.max.messages",
        "104857"); /* as a producer with buffer.memory 32 MiB has here */
    set(conf, "queue.buffering.max.kbytes", "32768");
    set(conf, "partitioner", "murmur2_random");
    for (int i = 4; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value == NULL)
            die(argv[i], "expected SETTING=VALUE");
        *value++ = '\0';
        set(conf, argv[i], value);
    }
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    if (rk == NULL)
        die("client", why);
    queue = rd_kafka_queue_get_main(rk);
    topic = rd_kafka_topic_new(rk, argv[2], NULL);
    data = map_file(argv[3], &size);
    for (const char *at = data; at < data + size;) {
        const char *end = memchr(at, '\n', (size_t)(data + size - at));

        if (end == NULL)
            break;
        send_line(topic, queue, at, (size_t)(end - at));
        at = end + 1;
        if (++lines % 2000 == 0)
            walk(queue, 0);
    }
    while (in_flight > 0)
        walk(queue, 1000);
    printf("%zu\n", lines);
    rd_kafka_topic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return 0;
}
