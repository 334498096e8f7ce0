/* SPDX-License-Identifier: Apache-2.0 */
/* The limit for topic → topic, exactly once: what a careful program on plain librdkafka does.
 *
 *   raw_relay BOOTSTRAP FROM TO COUNT INTERVAL_MS [SETTING=VALUE...]   settings of the producer
 *
 * Batches are consumed, each message is produced to TO without a copy, and every INTERVAL_MS its
 * transaction is committed with the offsets. Exits 0 when COUNT messages are committed. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH 500
#define HELD 4000000 /* messages of one transaction */

static rd_kafka_message_t **held;
static size_t held_count;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "raw_relay: %s: %s\n", what, why);
    exit(1);
}

static void check(const char *what, rd_kafka_error_t *error)
{
    if (error != NULL)
        die(what, rd_kafka_error_string(error));
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
        die(key, why);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *msg, void *opaque)
{
    (void)rk, (void)opaque;
    if (msg->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("produce", rd_kafka_err2str(msg->err));
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof(why));

    if (rk == NULL)
        die("client", why);
    return rk;
}

static rd_kafka_t *open_consumer(char **argv)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    char group[300];
    rd_kafka_t *rk;

    snprintf(group, sizeof(group), "raw-%s-%d", argv[2], (int)getpid());
    set(conf, "group.id", group);
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    set(conf, "check.crcs", "true");
    set(conf, "isolation.level", "read_committed");
    set(conf, "queued.min.messages", "100000");
    set(conf, "queued.max.messages.kbytes", "16384");
    rk = client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_add(topics, argv[2], RD_KAFKA_PARTITION_UA);
    if (rd_kafka_subscribe(rk, topics) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die(argv[2], "can't subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    return rk;
}

static rd_kafka_t *open_producer(int argc, char **argv)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char id[300];
    rd_kafka_t *rk;

    snprintf(id, sizeof(id), "raw-%s-%d", argv[3], (int)getpid());
    set(conf, "transactional.id", id);
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "partitioner", "murmur2_random");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    for (int i = 6; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value == NULL)
            die(argv[i], "expected SETTING=VALUE");
        *value++ = '\0';
        set(conf, argv[i], value);
    }
    rk = client(RD_KAFKA_PRODUCER, conf);
    check("init", rd_kafka_init_transactions(rk, 30000));
    return rk;
}

static void commit(rd_kafka_t *consumer, rd_kafka_t *producer)
{
    rd_kafka_topic_partition_list_t *parts = NULL;
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);

    rd_kafka_assignment(consumer, &parts);
    rd_kafka_position(consumer, parts);
    check("offsets", rd_kafka_send_offsets_to_transaction(producer, parts, group, 30000));
    check("commit", rd_kafka_commit_transaction(producer, 30000));
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_consumer_group_metadata_destroy(group);
    for (size_t i = 0; i < held_count; i++)
        rd_kafka_message_destroy(held[i]);
    held_count = 0;
}

static void relay(rd_kafka_t *producer, rd_kafka_topic_t *to, rd_kafka_message_t *msg)
{
    while (rd_kafka_produce(to, RD_KAFKA_PARTITION_UA, 0, msg->payload, msg->len, msg->key,
                            msg->key_len, NULL) != 0) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(producer, 10);
    }
}

int main(int argc, char **argv)
{
    long long count, got = 0;
    int64_t interval_ms, due_ms = 0;
    rd_kafka_t *consumer, *producer;
    rd_kafka_topic_t *to;
    rd_kafka_queue_t *queue;

    if (argc < 6)
        die("usage", "raw_relay BOOTSTRAP FROM TO COUNT INTERVAL_MS [SETTING=VALUE...]");
    count = strtoll(argv[4], NULL, 10);
    interval_ms = strtoll(argv[5], NULL, 10);
    held = malloc(HELD * sizeof(rd_kafka_message_t *));
    producer = open_producer(argc, argv);
    consumer = open_consumer(argv);
    to = rd_kafka_topic_new(producer, argv[3], NULL);
    queue = rd_kafka_queue_get_consumer(consumer);
    while (held != NULL && got < count) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, 100, held + held_count, BATCH);

        if (n > 0 && held_count == 0) {
            check("begin", rd_kafka_begin_transaction(producer));
            due_ms = now_ms() + interval_ms;
        }
        for (ssize_t i = 0; i < n; i++) {
            if (held[held_count]->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                die("consume", rd_kafka_message_errstr(held[held_count]));
            relay(producer, to, held[held_count++]);
            got++;
        }
        rd_kafka_poll(producer, 0);
        if (held_count > 0 && (now_ms() >= due_ms || got >= count || held_count + BATCH > HELD))
            commit(consumer, producer);
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(consumer);
    rd_kafka_topic_destroy(to);
    rd_kafka_destroy(consumer);
    rd_kafka_destroy(producer);
    return got >= count ? 0 : 1;
}
