/* SPDX-License-Identifier: Apache-2.0 */
/* The limit for topic → file: what a careful program on plain librdkafka does for the same bytes.
 *
 *   raw_consume BOOTSTRAP TOPIC FILE COUNT [SETTING=VALUE...]      settings by librdkafka's names
 *
 * A group of its own reads from the beginning by the batch call, values are written as lines
 * through a buffer of 64 KiB, offsets are committed at the end; exits 0 when COUNT records are in
 * the file. FILE "-" writes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 500
#define BUFFER ((size_t)65536)

static struct {
    int fd;
    size_t used;
    char data[BUFFER];
} out = {.fd = -1};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "raw_consume: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
        die(key, why);
}

static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(out.fd, data, len);

        if (n < 0 && errno != EINTR)
            die("write", strerror(errno));
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

static void flush_out(void)
{
    write_all(out.data, out.used);
    out.used = 0;
}

static void put_line(const void *value, size_t len)
{
    if (out.fd < 0)
        return;
    if (len + 1 > BUFFER - out.used)
        flush_out();
    if (len + 1 > BUFFER) {
        write_all(value, len);
        write_all("\n", 1);
        return;
    }
    memcpy(out.data + out.used, value, len);
    out.data[out.used + len] = '\n';
    out.used += len + 1;
}

static rd_kafka_t *client(int argc, char **argv)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    snprintf(text, sizeof(text), "raw-%s-%d", argv[2], (int)getpid());
    set(conf, "group.id", text);
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "true");
    set(conf, "check.crcs", "true");
    set(conf, "isolation.level", "read_uncommitted");
    set(conf, "fetch.wait.max.ms", "500");
    set(conf, "fetch.max.bytes", "52428800");
    set(conf, "max.partition.fetch.bytes", "1048576");
    set(conf, "queued.min.messages", "100000");
    set(conf, "queued.max.messages.kbytes", "16384");
    for (int i = 5; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value == NULL)
            die(argv[i], "expected SETTING=VALUE");
        *value++ = '\0';
        set(conf, argv[i], value);
    }
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (rk == NULL)
        die("client", text);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

int main(int argc, char **argv)
{
    rd_kafka_message_t *msgs[BATCH];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_queue_t *queue;
    rd_kafka_t *rk;
    long long count;
    long long got = 0;

    if (argc < 5)
        die("usage", "raw_consume BOOTSTRAP TOPIC FILE COUNT [SETTING=VALUE...]");
    count = strtoll(argv[4], NULL, 10);
    if (strcmp(argv[3], "-") != 0)
        out.fd = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    rk = client(argc, argv);
    rd_kafka_topic_partition_list_add(topics, argv[2], RD_KAFKA_PARTITION_UA);
    if (rd_kafka_subscribe(rk, topics) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die(argv[2], "can't subscribe");
    queue = rd_kafka_queue_get_consumer(rk);
    while (got < count) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, 1000, msgs, BATCH);

        for (ssize_t i = 0; i < n; i++) {
            if (msgs[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                put_line(msgs[i]->payload, msgs[i]->len);
                got++;
            } else if (msgs[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                die("consume", rd_kafka_message_errstr(msgs[i]));
            }
            rd_kafka_message_destroy(msgs[i]);
        }
    }
    flush_out();
    rd_kafka_commit(rk, NULL, 0);
    printf("%lld\n", got);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_partition_list_destroy(topics);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return 0;
}
