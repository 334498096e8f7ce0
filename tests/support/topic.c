/* SPDX-License-Identifier: Apache-2.0 */
/* An independent reader and writer of topics: handles live for one call, so nothing is buffered
 * between two looks. */
#include "support/topic.h"

#include "support/scratch.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTITIONS_MAX 64
#define CALL_MS 10000

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char text[256];

    if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        fail_msg("%s", text);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *group)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    set(conf, "bootstrap.servers", servers);
    set(conf, "log_level", "0");
    set(conf, "topic.metadata.refresh.sparse", "true");
    if (type == RD_KAFKA_CONSUMER) {
        set(conf, "group.id", group);
        set(conf, "enable.auto.commit", "false");
        set(conf, "isolation.level", "read_committed");
        set(conf, "enable.partition.eof", "true");
        set(conf, "check.crcs", "true");
        set(conf, "fetch.wait.max.ms", "20");
    } else {
        set(conf, "enable.idempotence", "true");
        set(conf, "linger.ms", "0");
        set(conf, "partitioner", "murmur2_random"); /* as Java places keys */
    }
    rk = rd_kafka_new(type, conf, text, sizeof(text));
    if (rk == NULL)
        fail_msg("%s", text);
    return rk;
}

static rd_kafka_resp_err_t try_to_create(rd_kafka_t *rk, rd_kafka_NewTopic_t *spec)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    const rd_kafka_topic_result_t **results;
    rd_kafka_resp_err_t code;
    rd_kafka_event_t *event;
    size_t count;

    rd_kafka_CreateTopics(rk, &spec, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, CALL_MS * 3);
    assert_non_null(event);
    code = rd_kafka_event_error(event);
    results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = rd_kafka_topic_result_error(results[0]);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    return code;
}

/* A broker that was slow to tell its controller that it lives is none for a moment: "invalid
 * replication factor". */
static rd_kafka_resp_err_t create(const char *servers, const char *topic, int partitions)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);
    char text[256];
    rd_kafka_NewTopic_t *spec = rd_kafka_NewTopic_new(topic, partitions, -1, text, sizeof(text));
    int64_t from = scratch_now_ms();
    rd_kafka_resp_err_t code;

    assert_non_null(spec);
    while ((code = try_to_create(rk, spec)) == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR &&
           scratch_since(from) < CALL_MS * 3)
        scratch_pause(20);
    rd_kafka_NewTopic_destroy(spec);
    rd_kafka_destroy(rk);
    return code;
}

static void expect_created(rd_kafka_resp_err_t code, const char *topic)
{
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("creating %s: %s", topic, rd_kafka_err2str(code));
}

void topic_create(const char *servers, const char *topic, int partitions)
{
    expect_created(create(servers, topic, partitions), topic);
}

void topic_make_anew(const char *servers, const char *topic, int partitions)
{
    int64_t from = scratch_now_ms();
    rd_kafka_resp_err_t code;

    do {
        topic_delete(servers, topic);
        code = create(servers, topic, partitions);
    } while (code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS && scratch_since(from) < CALL_MS * 3);
    expect_created(code, topic);
}

int topic_partitions(const char *servers, const char *topic)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, "looker");
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    int count;

    assert_int_equal(rd_kafka_metadata(rk, 0, rkt, &metadata, CALL_MS), 0);
    count = metadata->topics[0].err == 0 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    return count;
}

static const char *setting_in(const rd_kafka_event_t *event, const char *key)
{
    const rd_kafka_ConfigResource_t **resources;
    const rd_kafka_ConfigEntry_t **entries;
    size_t count = 0;

    resources = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result((rd_kafka_event_t *)(uintptr_t)event), &count);
    assert_int_equal(count, 1);
    entries = rd_kafka_ConfigResource_configs(resources[0], &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), key) == 0)
            return scratch_text("%s", rd_kafka_ConfigEntry_value(entries[i]));
    return "";
}

const char *topic_setting(const char *servers, const char *topic, const char *key)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_event_t *event;
    const char *value;

    rd_kafka_DescribeConfigs(rk, &resource, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, CALL_MS);
    assert_non_null(event);
    value = setting_in(event, key);
    rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return value;
}

static void produce(rd_kafka_t *rk, const char *topic, int partition, const char *key,
                    const char *value)
{
    size_t key_len = key == NULL ? 0 : strlen(key), len = value == NULL ? 0 : strlen(value);
    rd_kafka_resp_err_t rc;

    do {
        rc = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                               RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                               RD_KAFKA_V_KEY(key, key_len), RD_KAFKA_V_VALUE((void *)value, len),
                               RD_KAFKA_V_END);
        rd_kafka_poll(rk, rc == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
    } while (rc == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    if (rc != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("producing to %s: %s", topic, rd_kafka_err2str(rc));
}

static void finish(rd_kafka_t *rk, const char *topic)
{
    if (rd_kafka_flush(rk, CALL_MS * 3) != RD_KAFKA_RESP_ERR_NO_ERROR || rd_kafka_outq_len(rk) != 0)
        fail_msg("producing to %s: not acknowledged", topic);
    rd_kafka_destroy(rk);
}

void topic_produce(const char *servers, const char *topic, int partition, const char *key,
                   const char *value)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);

    produce(rk, topic, partition, key, value);
    finish(rk, topic);
}

void topic_produce_lines(const char *servers, const char *topic, const char *const *values,
                         size_t count)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);

    for (size_t i = 0; i < count; i++)
        produce(rk, topic, 0, NULL, values[i]);
    finish(rk, topic);
}

void topic_produce_numbers(const char *servers, const char *topic, int partitions, int from,
                           int count)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);
    char value[32];

    for (int i = from; i < from + count; i++) {
        snprintf(value, sizeof(value), "\"%d\"", i);
        produce(rk, topic, i % partitions, NULL, value);
    }
    finish(rk, topic);
}

void topic_produce_spread(const char *servers, const char *topic, int partitions,
                          const char *const *values, size_t count)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);

    for (size_t i = 0; i < count; i++)
        produce(rk, topic, (int)i % partitions, NULL, values[i]);
    finish(rk, topic);
}

void topic_delete(const char *servers, const char *topic)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *dead = rd_kafka_DeleteTopic_new(topic);
    const rd_kafka_topic_result_t **results;
    rd_kafka_event_t *event;
    size_t count;

    rd_kafka_DeleteTopics(rk, &dead, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, CALL_MS * 3);
    assert_non_null(event);
    results =
        rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    if (count != 1 || rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("deleting %s: %s", topic, rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(dead);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

void topic_delete_before(const char *servers, const char *topic, int partition, int64_t offset)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_DeleteRecords_t *request;
    const rd_kafka_topic_partition_list_t *done;
    rd_kafka_event_t *event;

    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
    request = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(rk, &request, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, CALL_MS * 3);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), 0);
    done = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    assert_int_equal(done->elems[0].err, 0);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

/* How many partitions; 0 when there is no such topic. */
static int partitions_of(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *meta;
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, conf);
    int count = 0;

    assert_non_null(handle);
    if (rd_kafka_metadata(rk, 0, handle, &meta, CALL_MS) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (meta->topic_cnt == 1 && meta->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR)
            count = meta->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(meta);
    }
    rd_kafka_topic_destroy(handle);
    return count;
}

static int64_t span(rd_kafka_t *rk, const char *topic, int partition)
{
    int64_t low, high;

    if (rd_kafka_query_watermark_offsets(rk, topic, partition, &low, &high, CALL_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    return high - low;
}

int64_t topic_count(const char *servers, const char *topic)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, "test-reader");
    int partitions = partitions_of(rk, topic);
    int64_t count = 0;

    for (int i = 0; i < partitions; i++)
        count += span(rk, topic, i);
    rd_kafka_destroy(rk);
    return count;
}

static const char *copy(const void *data, size_t len)
{
    char *text;

    if (data == NULL)
        return NULL;
    text = malloc(len + 1);
    assert_non_null(text);
    if (len > 0)
        memcpy(text, data, len);
    text[len] = '\0';
    return scratch_keep(text);
}

static const char *headers_of(const rd_kafka_message_t *msg)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len, size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (rd_kafka_message_headers(msg, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
        for (size_t i = 0;
             rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR;
             i++)
            fprintf(out, "%s=%.*s\n", name, value == NULL ? 4 : (int)len,
                    value == NULL ? "null" : (const char *)value);
    fclose(out);
    return scratch_keep(text);
}

static struct topic_record take(const rd_kafka_message_t *msg)
{
    return (struct topic_record){
        .key = copy(msg->key, msg->key_len),
        .key_len = msg->key_len,
        .value = copy(msg->payload, msg->len),
        .value_len = msg->len,
        .offset = msg->offset,
        .partition = msg->partition,
        .timestamp_ms = rd_kafka_message_timestamp(msg, NULL),
        .headers = headers_of(msg),
    };
}

struct walk {
    const char *topic;
    int partition;
    void (*each)(void *arg, const rd_kafka_message_t *msg);
    void *arg;
};

/* Of a topic that was just made the first answers may be that it has no leader. */
static int64_t end_of(rd_kafka_t *rk, const struct walk *w)
{
    int64_t low, end = 0, from = scratch_now_ms();
    rd_kafka_resp_err_t code;

    while ((code = rd_kafka_query_watermark_offsets(rk, w->topic, w->partition, &low, &end,
                                                    CALL_MS)) != RD_KAFKA_RESP_ERR_NO_ERROR &&
           scratch_since(from) < CALL_MS)
        scratch_pause(20);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("reading %s: no end of partition %d: %s", w->topic, w->partition,
                 rd_kafka_err2str(code));
    return end;
}

/* Everything from the start of one partition to its end as it is now: one that is written to all
 * the time has no other. */
static void walk(rd_kafka_t *rk, const struct walk *w)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int64_t end = end_of(rk, w);
    bool more = true;

    rd_kafka_topic_partition_list_add(list, w->topic, w->partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    while (more) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(rk, CALL_MS);

        if (msg == NULL)
            fail_msg("reading %s: nothing for %d ms", w->topic, CALL_MS);
        if (msg->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            w->each(w->arg, msg);
            more = msg->offset + 1 < end;
        } else if (msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            more = false;
        }
        rd_kafka_message_destroy(msg);
    }
    rd_kafka_assign(rk, NULL);
    rd_kafka_topic_partition_list_destroy(list);
}

static void keep(void *arg, const rd_kafka_message_t *msg)
{
    struct topic_record rec = take(msg);

    fwrite(&rec, sizeof(rec), 1, arg);
}

static struct topic_records read_all(const char *servers, const char *topic)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, "test-reader");
    int partitions = partitions_of(rk, topic);
    char *data = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&data, &len);

    assert_non_null(out);
    for (int i = 0; i < partitions; i++)
        walk(rk, &(struct walk){topic, i, keep, out});
    fclose(out);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return (struct topic_records){scratch_keep(data), len / sizeof(struct topic_record)};
}

struct topic_records topic_read(const char *servers, const char *topic, size_t want, int ms)
{
    int64_t from = scratch_now_ms();
    struct topic_records got = read_all(servers, topic);

    while (got.count < want && scratch_since(from) < ms) {
        scratch_pause(20);
        if (topic_count(servers, topic) >= (int64_t)want)
            got = read_all(servers, topic);
    }
    if (got.count < want)
        fail_msg("%s has %zu records after %d ms, not %zu", topic, got.count, ms, want);
    return got;
}

struct visit {
    void (*each)(void *arg, const struct topic_record *rec);
    void *arg;
};

static void visit(void *arg, const rd_kafka_message_t *msg)
{
    const struct visit *v = arg;
    char key[TOPIC_WALK_TEXT], value[TOPIC_WALK_TEXT];
    struct topic_record rec = {
        .key = msg->key == NULL ? NULL : key,
        .key_len = msg->key_len,
        .value = msg->payload == NULL ? NULL : value,
        .value_len = msg->len,
        .offset = msg->offset,
        .partition = msg->partition,
        .timestamp_ms = rd_kafka_message_timestamp(msg, NULL),
    };

    snprintf(key, sizeof(key), "%.*s", (int)msg->key_len, (const char *)msg->key);
    snprintf(value, sizeof(value), "%.*s", (int)msg->len, (const char *)msg->payload);
    v->each(v->arg, &rec);
}

void topic_walk(const char *servers, const char *topic,
                void (*each)(void *arg, const struct topic_record *rec), void *arg)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, "test-reader");
    int partitions = partitions_of(rk, topic);
    struct visit v = {each, arg};

    for (int i = 0; i < partitions; i++)
        walk(rk, &(struct walk){topic, i, visit, &v});
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

int64_t topic_committed(const char *servers, const char *group, const char *topic, int partition)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers, group);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int64_t offset = -1;

    rd_kafka_topic_partition_list_add(list, topic, partition);
    if (rd_kafka_committed(rk, list, CALL_MS) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        list->elems[0].offset >= 0)
        offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return offset;
}
