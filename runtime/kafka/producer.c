/* SPDX-License-Identifier: Apache-2.0 */
/* A producer whose owner walks its own delivery reports.
 *
 *   producer_send ─► librdkafka's queue ─► broker ─► report event on the main queue
 *                 ─► producer_reports ─► owner
 *
 * Reports are taken as events, hundreds at a time, never by callback; an eventfd says that some
 * wait. Payloads are not copied, so whoever owns them needs a report for each, or producer_free:
 * rd_kafka_destroy ends librdkafka's threads before it returns, and gives no reports. Records
 * without headers and timestamp take the cheapest call. One owner thread; librdkafka's threads
 * touch nothing here. A failed record fails all records of its batch in librdkafka, also where only
 * one was too large. */
#include "kafka/producer.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TOPICS_MAX 100000

/* How long a topic that the brokers do not know yet is asked for again when its handle is made.
 * librdkafka would ask once a second: auto-created topics would cost their first record that
 * second. */
#define ASK_MS 200
#define ASK_MAX 60
#define ASK_AGAIN_MS 1000 /* between two questions for a partition that seems not to be there */

/* --- life ------------------------------------------------------------------------------------- */

static int open_queue(struct producer *p, struct mr_error *err)
{
    static const uint64_t one = 1;
    struct epoll_event event = {.events = EPOLLIN};

    p->rung = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->rung < 0 || p->fd < 0 || epoll_ctl(p->fd, EPOLL_CTL_ADD, p->rung, &event) != 0 ||
        (p->rest.wanted && producer_rest_open(p) != 0))
        return err_errno(err, "Can't make descriptors for delivery reports");
    p->queue = rd_kafka_queue_get_main(p->rk);
    rd_kafka_queue_io_event_enable(p->queue, p->rung, &one, sizeof(one));
    return 0;
}

/* value "": not set. */
static bool is_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[256] = "";
    size_t size = sizeof(text);

    return rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK
               ? value[0] == '\0'
               : strcmp(text, value) == 0;
}

/* From what the library will go by. */
static void read_settings(struct producer *p, rd_kafka_conf_t *conf)
{
    char text[24] = "0";
    size_t size = sizeof(text);

    rd_kafka_conf_get(conf, "message.max.bytes", text, &size);
    p->max_bytes = (size_t)strtoul(text, NULL, 10);
    p->rest.wanted = is_set(conf, "enable.idempotence", "true");
    p->rest.patient = !is_set(conf, "transactional.id", "");
}

struct producer *producer_new(const struct props *java, client_conf_warn warn, void *arg,
                              struct mr_error *err)
{
    rd_kafka_conf_t *conf = kafka_handle_conf(CLIENT_PRODUCER, java, warn, arg, err);
    struct producer *p = conf != NULL ? calloc(1, sizeof(*p)) : NULL;

    if (conf == NULL)
        return NULL;
    if (p == NULL) {
        rd_kafka_conf_destroy(conf);
        mr_fail(err, MR_ERR_NOMEM, "Out of memory while making a producer");
        return NULL;
    }
    p->fd = p->rung = p->rest.timer = -1;
    p->topics = map_new();
    read_settings(p, conf);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    producer_txn_watch(p, conf);
    p->rk = kafka_handle_new(CLIENT_PRODUCER, &conf, err);
    if (p->rk == NULL || open_queue(p, err) != 0)
        producer_free(&p);
    return p;
}

static void free_topic(void *arg)
{
    struct producer_topic *topic = arg;

    rd_kafka_topic_destroy(topic->rkt);
    free(topic);
}

void producer_free(struct producer **p)
{
    struct producer *dead = *p;

    if (dead == NULL)
        return;
    *p = NULL;
    if (producer_txn_offsets_leave(dead))
        return;
    if (dead->rk != NULL) {
        producer_txn_abandon(dead);
        rd_kafka_purge(dead->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    }
    map_free(&dead->topics, free_topic);
    if (dead->queue != NULL) {
        rd_kafka_queue_io_event_enable(dead->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(dead->queue);
    }
    /* Joins librdkafka's threads: no payload is referenced after this. */
    if (dead->rk != NULL)
        rd_kafka_destroy(dead->rk);
    producer_rest_close(dead);
    if (dead->rung >= 0)
        close(dead->rung);
    if (dead->fd >= 0)
        close(dead->fd);
    free(dead);
}

/* --- topics ----------------------------------------------------------------------------------- */

/* One question to the brokers. true: asking again is of no use. */
static bool asked_enough(struct producer *p, struct producer_topic *topic, int64_t timeout_ms)
{
    const struct rd_kafka_metadata *metadata = NULL;
    bool enough = true;

    if (rd_kafka_metadata(p->rk, 0, topic->rkt, &metadata, (int)timeout_ms) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return true; /* no broker answers: sending waits for one */
    if (metadata->topic_cnt == 1) {
        rd_kafka_resp_err_t code = metadata->topics[0].err;
        int32_t count = metadata->topics[0].partition_cnt;

        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && count > topic->partitions)
            topic->partitions = count;
        enough = code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART &&
                 code != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    }
    rd_kafka_metadata_destroy(metadata);
    return enough;
}

static void ask_for(struct producer *p, struct producer_topic *topic)
{
    int64_t until = clock_ms() + ASK_MS;

    for (int i = 0; i < ASK_MAX; i++) {
        int64_t left = until - clock_ms();

        if (left <= 0 || asked_enough(p, topic, left))
            break;
    }
    topic->asked_ms = clock_ms();
}

/* A partition that librdkafka doesn't find: false when the brokers say so, too. While they know
 * nothing of the topic one of them may be behind; what one of them ever told of is there. */
static bool may_be_there(struct producer *p, struct producer_topic *topic, int32_t partition)
{
    if (partition >= topic->partitions && clock_ms() - topic->asked_ms >= ASK_AGAIN_MS)
        ask_for(p, topic);
    return topic->partitions == 0 || partition < topic->partitions;
}

/* Kafka's own rule; librdkafka would ask the brokers. */
static bool legal_name(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strspn(name, legal);

    return name[len] == '\0' && len > 0 && len < 250 && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

struct producer_topic *producer_topic(struct producer *p, const char *name, struct mr_error *err)
{
    struct producer_topic *topic = map_get(p->topics, name);

    if (topic != NULL)
        return topic;
    if (map_count(p->topics) >= TOPICS_MAX) {
        mr_fail(err, MR_ERR_FULL, "One producer writes to at most %d topics", TOPICS_MAX);
        return NULL;
    }
    if (!legal_name(name)) {
        mr_fail(err, MR_ERR_DATA,
                "\"%.249s\" can't be a topic: a name has 1 to 249 of the characters a-z A-Z 0-9 . "
                "_ - and is not . or ..",
                name);
        return NULL;
    }
    topic = calloc(1, sizeof(*topic));
    if (topic == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "Out of memory for topic %s", name);
        return NULL;
    }
    topic->rkt = rd_kafka_topic_new(p->rk, name, NULL);
    if (topic->rkt == NULL) {
        mr_fail(err, MR_ERR_FATAL, "Topic %s can't be used: %s", name,
                rd_kafka_err2str(rd_kafka_last_error()));
        free(topic);
        return NULL;
    }
    map_set(p->topics, name, topic);
    ask_for(p, topic);
    return topic;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void unknown_topic_text(char *out, size_t size, const char *topic)
{
    snprintf(out, size,
             "Topic %s does not exist and the brokers don't create it: create it, or set "
             "auto.create.topics.enable=true on the "
             "brokers",
             topic);
}

static void no_partition_text(char *out, size_t size, const char *topic, int32_t partition)
{
    if (partition >= 0)
        snprintf(out, size, "Topic %s has no partition %d", topic, (int)partition);
    else
        snprintf(out, size, "Topic %s has no partitions", topic);
}

static int refused(struct producer *p, const struct producer_record *rec, rd_kafka_resp_err_t code,
                   struct mr_error *err)
{
    const char *topic = rd_kafka_topic_name(rec->topic->rkt);
    char text[512];

    switch (code) {
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
        return mr_fail(err, MR_ERR_FULL, "The producer's queue is full (buffer.memory)");
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        return mr_fail(err, MR_ERR_TOO_LARGE,
                       "A record for topic %s with a key of %zu and a value of %zu bytes is larger "
                       "than max.request.size, "
                       "which is %zu",
                       topic, rec->key != NULL ? rec->key_len : 0,
                       rec->value != NULL ? rec->value_len : 0, p->max_bytes);
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        no_partition_text(text, sizeof(text), topic, rec->partition);
        return mr_fail(
            err, may_be_there(p, rec->topic, rec->partition) ? MR_ERR_NOT_FOUND : MR_ERR_FATAL,
            "%s", text);
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        unknown_topic_text(text, sizeof(text), topic);
        return mr_fail(err, MR_ERR_NOT_FOUND, "%s", text);
    case RD_KAFKA_RESP_ERR__FATAL:
        rd_kafka_fatal_error(p->rk, text, sizeof(text));
        return mr_fail(err, MR_ERR_FATAL, "The producer can't go on: %s", text);
    case RD_KAFKA_RESP_ERR__STATE:
        return producer_txn_broken(p, err);
    default:
        return mr_fail(err, MR_ERR_FATAL, "A record for topic %s was refused: %s", topic,
                       rd_kafka_err2str(code));
    }
}

static void sent(struct producer *p)
{
    p->txn.records++;
    if (++p->in_flight == PRODUCER_REST_FROM)
        producer_rest_watch(p);
}

static rd_kafka_headers_t *copy_headers(const struct producer_record *rec)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(rec->header_count);

    for (size_t i = 0; i < rec->header_count; i++)
        rd_kafka_header_add(headers, rec->headers[i].name, -1, rec->headers[i].value,
                            (ssize_t)rec->headers[i].value_len);
    return headers;
}

/* librdkafka reads a timestamp of 0 as "now"; 1 is the nearest that can be said. */
static int send_full(struct producer *p, const struct producer_record *rec, struct mr_error *err)
{
    rd_kafka_headers_t *headers = rec->header_count > 0 ? copy_headers(rec) : NULL;
    rd_kafka_vu_t vus[8] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = rec->topic->rkt},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = rec->partition},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)rec->value, rec->value_len}},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)rec->key, rec->key_len}},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = rec->opaque},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = 0},
    };
    size_t count = 6;
    rd_kafka_error_t *error;
    rd_kafka_resp_err_t code;

    if (rec->timestamp_ms >= 0)
        vus[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_TIMESTAMP,
                                       .u.i64 = rec->timestamp_ms > 0 ? rec->timestamp_ms : 1};
    if (headers != NULL)
        vus[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers};
    error = rd_kafka_produceva(p->rk, vus, count);
    if (error == NULL) {
        sent(p);
        return 0;
    }
    code = rd_kafka_error_is_fatal(error) ? RD_KAFKA_RESP_ERR__FATAL : rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    if (headers != NULL)
        rd_kafka_headers_destroy(headers);
    return refused(p, rec, code, err);
}

int producer_send(struct producer *p, const struct producer_record *rec, struct mr_error *err)
{
    if (rec->header_count > 0 || rec->timestamp_ms != -1) {
        if (rec->timestamp_ms < -1)
            return mr_fail(err, MR_ERR_DATA, "Invalid record timestamp %lld",
                           (long long)rec->timestamp_ms);
        return send_full(p, rec, err);
    }
    if (rd_kafka_produce(rec->topic->rkt, rec->partition, 0, (void *)(uintptr_t)rec->value,
                         rec->value_len, rec->key, rec->key_len, rec->opaque) == 0) {
        sent(p);
        return 0;
    }
    return refused(p, rec, rd_kafka_last_error(), err);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void report_text(struct producer *p, const rd_kafka_message_t *msg, char *out, size_t size)
{
    const char *topic = msg->rkt != NULL ? rd_kafka_topic_name(msg->rkt) : "?";
    char why[512];

    switch (msg->err) {
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        unknown_topic_text(out, size, topic);
        break;
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR__DESTROY: /* in flight when the partition went */
        no_partition_text(out, size, topic, msg->partition);
        break;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
        snprintf(out, size,
                 "A record for topic %s, or the batch that it was sent in, is larger than the "
                 "topic's max.message.bytes allows: "
                 "raise that, or lower the producer's batch.size",
                 topic);
        break;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
        snprintf(out, size,
                 "A record for topic %s was not delivered within delivery.timeout.ms%s%s", topic,
                 p->trouble[0] != '\0' ? ": " : "", p->trouble);
        break;
    case RD_KAFKA_RESP_ERR__FATAL:
        rd_kafka_fatal_error(p->rk, out, size);
        break;
    default:
        kafka_error_text(rd_kafka_err2str(msg->err), why, sizeof(why));
        snprintf(out, size, "A record for topic %s was not delivered: %s", topic, why);
    }
}

/* librdkafka fails what is queued as soon as one broker does not know its topic. */
static int code_of(struct producer *p, const rd_kafka_message_t *msg)
{
    struct producer_topic *topic =
        msg->rkt != NULL ? map_get(p->topics, rd_kafka_topic_name(msg->rkt)) : NULL;

    if (msg->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && topic != NULL &&
        !may_be_there(p, topic, msg->partition))
        return MR_ERR_FATAL;
    return kafka_error_produce(msg->err);
}

static void report_failure(struct producer *p, const rd_kafka_message_t *msg, producer_report_fn fn,
                           void *arg)
{
    int code = code_of(p, msg);
    char text[1024];

    if (code == MR_ERR_CLOSED) { /* a purge reports thousands */
        fn(arg, msg->_private, code, "dropped before it was delivered");
        return;
    }
    report_text(p, msg, text, sizeof(text));
    fn(arg, msg->_private, code, text);
}

/* Brokers may have made the topic after they were asked for it. */
static void note_partition(struct producer *p, const rd_kafka_message_t *msg)
{
    struct producer_topic *topic = map_get(p->topics, rd_kafka_topic_name(msg->rkt));

    if (topic != NULL && msg->partition >= topic->partitions)
        topic->partitions = msg->partition + 1;
}

static size_t walk_reports(struct producer *p, rd_kafka_event_t *event, producer_report_fn fn,
                           void *arg)
{
    const rd_kafka_message_t *msg, *delivered = NULL;
    size_t count = 0;

    while ((msg = rd_kafka_event_message_next(event)) != NULL) {
        count++;
        if (msg->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            delivered = msg;
            fn(arg, msg->_private, 0, NULL);
        } else {
            report_failure(p, msg, fn, arg);
        }
    }
    p->in_flight -= count;
    if (delivered != NULL)
        note_partition(p, delivered);
    if (delivered != NULL && !p->fatal)
        p->trouble[0] = '\0';
    return count;
}

static void take_trouble(struct producer *p, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    const char *text = rd_kafka_event_error_string(event);

    if (p->fatal)
        return;
    if (code == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event)) {
        p->fatal = true;
        rd_kafka_fatal_error(p->rk, p->trouble, sizeof(p->trouble));
        return;
    }
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && p->trouble[0] != '\0')
        return; /* says less than what is known */
    p->fatal = kafka_error_hopeless(code, text);
    kafka_error_text(text, p->trouble, sizeof(p->trouble));
}

size_t producer_reports(struct producer *p, int64_t timeout_ms, producer_report_fn fn, void *arg)
{
    int wait_ms = timeout_ms < 0 ? 0 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
    rd_kafka_event_t *event;
    size_t count = 0;
    uint64_t rung;

    /* Drained first, then the queue to its end: what comes in between rings again. */
    if (read(p->rung, &rung, sizeof(rung)) < 0)
        rung = 0; /* nobody rang */
    while ((event = rd_kafka_queue_poll(p->queue, wait_ms)) != NULL) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
            count += walk_reports(p, event, fn, arg);
            wait_ms = 0;
        } else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR) {
            take_trouble(p, event);
            wait_ms = 0;
        }
        rd_kafka_event_destroy(event);
    }
    producer_rest_look(p, count > 0);
    return count;
}

int producer_fd(struct producer *p)
{
    return p->fd;
}

size_t producer_in_flight(struct producer *p)
{
    return p->in_flight;
}

void producer_purge(struct producer *p)
{
    rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

const char *producer_trouble(struct producer *p, bool *fatal)
{
    if (fatal != NULL)
        *fatal = p->fatal;
    return p->trouble[0] != '\0' ? p->trouble : NULL;
}
