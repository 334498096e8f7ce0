/* SPDX-License-Identifier: Apache-2.0 */
/* Topics in and out, byte for byte, for record_diff.py; a client that shares no code with
 * Millrace.
 *
 *   record_topics SERVERS fill <LINES     makes topics and produces records
 *   record_topics SERVERS dump PREFIX     prints every topic whose name begins so, and its records
 *
 * Lines of both: words separated by blanks; keys, values, names and values of headers in
 * hexadecimal, "-" null, "." empty.
 *   topic NAME PARTITIONS [KEY=VALUE...]        dump gives the settings that the topic itself has
 *   record TOPIC PARTITION TIMESTAMP KEY VALUE [NAME VALUE]...        fill: milliseconds
 * dump puts c (create time), l (log append time) or n before the timestamp. Exit code 1 with a
 * text when anything fails. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 60000
#define LINE_MAX_BYTES (4 << 20)
#define WORDS_MAX 64

static void die(const char *what, const char *text)
{
    fprintf(stderr, "record_topics: %s: %s\n", what, text);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char text[512];

    if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        die(key, text);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    set(conf, "bootstrap.servers", servers);
    set(conf, "log_level", "0");
    set(conf, "message.max.bytes", "10000000");
    if (type == RD_KAFKA_PRODUCER)
        set(conf, "linger.ms", "0");
    else {
        set(conf, "group.id", "record-topics");
        set(conf, "enable.partition.eof", "true");
    }
    rk = rd_kafka_new(type, conf, text, sizeof(text));
    if (rk == NULL)
        die("client", text);
    return rk;
}

/* --- fill ------------------------------------------------------------------------------------- */

struct bytes {
    char *at; /* NULL: null */
    size_t len;
};

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* In place: the bytes stand where their text stood. */
static struct bytes bytes_of(char *word)
{
    struct bytes b = {word, 0};

    if (strcmp(word, "-") == 0)
        b.at = NULL;
    else if (strcmp(word, ".") != 0)
        for (; word[0] != '\0' && word[1] != '\0'; word += 2)
            b.at[b.len++] = (char)(digit(word[0]) << 4 | digit(word[1]));
    return b;
}

static rd_kafka_event_t *answer(rd_kafka_t *rk, rd_kafka_queue_t *queue, const char *what)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);

    (void)rk;
    if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die(what, event == NULL ? "no answer" : rd_kafka_event_error_string(event));
    return event;
}

static void make_topic(rd_kafka_t *rk, char **words, int count)
{
    char text[512];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(words[1], atoi(words[2]), 1, text, sizeof(text));
    rd_kafka_event_t *event;
    const rd_kafka_topic_result_t **results;
    size_t n;

    for (int i = 3; i < count; i++) {
        char *value = strchr(words[i], '=');

        *value++ = '\0';
        rd_kafka_NewTopic_set_config(topic, words[i], value);
    }
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
    event = answer(rk, queue, words[1]);
    results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    if (rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die(words[1], rd_kafka_err2str(rd_kafka_topic_result_error(results[0])));
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
}

static void produce(rd_kafka_t *rk, char **words, int count)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
    struct bytes key = bytes_of(words[4]), value = bytes_of(words[5]);
    rd_kafka_resp_err_t err;

    for (int i = 6; i + 1 < count; i += 2) {
        struct bytes name = bytes_of(words[i]), content = bytes_of(words[i + 1]);

        rd_kafka_header_add(headers, name.at, (ssize_t)name.len, content.at, (ssize_t)content.len);
    }
    err = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(words[1]), RD_KAFKA_V_PARTITION(atoi(words[2])),
                            RD_KAFKA_V_TIMESTAMP(atoll(words[3])), RD_KAFKA_V_KEY(key.at, key.len),
                            RD_KAFKA_V_VALUE(value.at, value.len), RD_KAFKA_V_HEADERS(headers),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die(words[1], rd_kafka_err2str(err));
}

static int split(char *line, char **words)
{
    int n = 0;

    for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        if (n == WORDS_MAX)
            die(words[0], "more words than fit");
        words[n++] = word;
    }
    return n;
}

static int fill(const char *servers)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, servers);
    char *line = malloc(LINE_MAX_BYTES), *words[WORDS_MAX];

    if (line == NULL)
        die("fill", "out of memory");
    while (fgets(line, LINE_MAX_BYTES, stdin) != NULL) {
        int n = split(line, words);

        if (n >= 3 && strcmp(words[0], "topic") == 0)
            make_topic(rk, words, n);
        else if (n >= 6 && strcmp(words[0], "record") == 0)
            produce(rk, words, n);
        else
            die("a line that is none", n > 0 ? words[0] : "");
    }
    if (rd_kafka_flush(rk, WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("fill", "not everything was delivered");
    free(line);
    rd_kafka_destroy(rk);
    return 0;
}

/* --- dump ------------------------------------------------------------------------------------- */

static void put_bytes(const void *bytes, size_t len)
{
    const unsigned char *b = bytes;

    putchar(' ');
    if (b == NULL || len == 0)
        putchar(b == NULL ? '-' : '.');
    for (size_t i = 0; b != NULL && i < len; i++)
        printf("%02x", b[i]);
}

/* The settings that were given with the topic, in the broker's order. */
static void put_settings(rd_kafka_t *rk, const char *name)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_ConfigResource_t *about = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
    rd_kafka_event_t *event;
    const rd_kafka_ConfigResource_t **found;
    const rd_kafka_ConfigEntry_t **entries;
    size_t n;

    rd_kafka_DescribeConfigs(rk, &about, 1, NULL, queue);
    event = answer(rk, queue, name);
    found =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
    entries = rd_kafka_ConfigResource_configs(found[0], &n);
    for (size_t i = 0; i < n; i++)
        if (rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
            printf(" %s=%s", rd_kafka_ConfigEntry_name(entries[i]),
                   rd_kafka_ConfigEntry_value(entries[i]));
    rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(about);
    rd_kafka_queue_destroy(queue);
}

static void put_record(const rd_kafka_message_t *m)
{
    static const char kinds[] = {'n', 'c', 'l'};
    rd_kafka_timestamp_type_t kind;
    long long when = rd_kafka_message_timestamp(m, &kind);
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len;

    printf("record %s %d %c%lld", rd_kafka_topic_name(m->rkt), m->partition, kinds[kind], when);
    put_bytes(m->key, m->key_len);
    put_bytes(m->payload, m->len);
    if (rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
        for (size_t i = 0;
             rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR;
             i++) {
            put_bytes(name, strlen(name));
            put_bytes(value, len);
        }
    putchar('\n');
}

static void dump_partition(rd_kafka_t *rk, const char *name, int partition)
{
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    int over = 0;

    rd_kafka_topic_partition_list_add(parts, name, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, parts);
    while (!over) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, WAIT_MS);

        if (m == NULL ||
            (m->err != RD_KAFKA_RESP_ERR_NO_ERROR && m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF))
            die(name, m == NULL ? "no end of the partition" : rd_kafka_message_errstr(m));
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            put_record(m);
        over = m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        rd_kafka_message_destroy(m);
    }
    rd_kafka_topic_partition_list_destroy(parts);
}

static int dump(const char *servers, const char *prefix)
{
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, servers);
    const struct rd_kafka_metadata *md;
    rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 1, NULL, &md, WAIT_MS);

    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("metadata", rd_kafka_err2str(err));
    for (int t = 0; t < md->topic_cnt; t++) {
        const struct rd_kafka_metadata_topic *topic = &md->topics[t];

        if (strncmp(topic->topic, prefix, strlen(prefix)) != 0)
            continue;
        printf("topic %s %d", topic->topic, topic->partition_cnt);
        put_settings(rk, topic->topic);
        putchar('\n');
        for (int p = 0; p < topic->partition_cnt; p++)
            dump_partition(rk, topic->topic, topic->partitions[p].id);
    }
    rd_kafka_metadata_destroy(md);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[2], "fill") == 0)
        return fill(argv[1]);
    if (argc == 4 && strcmp(argv[2], "dump") == 0)
        return dump(argv[1], argv[3]);
    fprintf(stderr, "record_topics SERVERS fill <LINES | record_topics SERVERS dump PREFIX\n");
    return 1;
}
