/* SPDX-License-Identifier: Apache-2.0 */
/* A topic as a log that is replayed and followed.
 *
 *   reading: brokers ─► librdkafka ─► one queue for all partitions ─► topic_log_serve ─► record()
 *   writing: topic_log_append ─► producer.c ─► brokers ─► report ─► serve ─► done()
 *            (acks of all, one request at a time)
 *
 * The reader is librdkafka's simple consumer: partitions are started by hand, so no group and no
 * right for one is needed. They begin at offset 0, or where the log begins if that is gone
 * (auto.offset.reset): to ask for the beginning of a partition whose leader is not known yet costs
 * librdkafka half a second. In a replay those that hold something begin first: a request for empty
 * ones alone is answered after fetch.max.wait.ms, and the others would wait for that.
 *
 * Its end-of-partition events carry the next offset to fetch, which also passes transaction markers
 * and aborted records: how far a partition was read is the larger of that and the newest record's
 * offset plus one. So a topic that ends in a marker still has a reachable end. Where the end is, is
 * asked of the brokers (topic_admin_ends), open transactions included: everything confirmed before
 * the question stands before the answer.
 *
 * Promises: records come in the order of their partition, each at least once (again only after
 * `moved`); `done` with 0 comes only when all in-sync replicas have the record. One owner thread.
 * All descriptors that matter are in one epoll set, whose descriptor the owner waits on. */
#include "kafka/topic_log.h"

#include "base/clock.h"
#include "base/text.h"
#include "kafka/kafka_private.h"
#include "kafka/producer.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define SERVE_MS 5      /* at a time */
#define SLICE_MS 200    /* until a look at whether it was called off */
#define MARK_MS 2000    /* one question for the end */
#define CONFIRM_MS 5000 /* is the topic really gone? */
#define UNKNOWN_MS 3000 /* that every broker asked says so, before a topic counts as gone */
#define ASK_AGAIN_MS 50

struct part {
    int64_t next; /* everything before was handed out */
    bool started;
    bool at_end; /* was there once: the end of what is decided, for a reader of committed records */
};

struct append {
    struct topic_log *log;
    topic_log_done done;
    void *arg;
    size_t bytes;
    char data[]; /* key, then value */
};

struct topic_log {
    struct topic_log_options options;
    char *topic;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    rd_kafka_queue_t *queue;
    struct part *parts;
    bool started; /* all partitions */
    bool heard;   /* some partition has said something: reading is allowed */
    int rung;     /* eventfd of the queue, and for "there is more" */
    int epoll;
    struct producer *producer;
    struct producer_topic *producer_topic;
    size_t waiting_bytes;
    size_t waiting;
    int verdict;        /* MR_ERR_NOT_FOUND or MR_ERR_FATAL, and stays */
    int64_t unknown_ms; /* since when brokers say that there is no such topic, 0: they do not */
    char trouble[512];
    bool troubled; /* trouble is new */
    bool denied;   /* the newest trouble: no right to read */
    bool doubted;  /* is the topic still there? */
};

/* --- opening ---------------------------------------------------------------------------------- */

static void note(struct topic_log *log, const char *text)
{
    kafka_error_text(text, log->trouble, sizeof(log->trouble));
    log->troubled = true;
}

static void condemn(struct topic_log *log, int code, const char *text)
{
    if (log->verdict != 0)
        return;
    log->verdict = code;
    kafka_error_text(text, log->trouble, sizeof(log->trouble));
}

/* Rights and logins that were there at the opening may come back: librdkafka goes on trying. */
static bool passing(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
           code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM;
}

/* An error of a partition or of the client, from the queue or from librdkafka's error callback:
 * which of them depends on the version. A broker that is behind may not know a topic, so the admin
 * is asked later (`doubted`). */
static void on_trouble(struct topic_log *log, rd_kafka_resp_err_t code, const char *reason)
{
    char text[512];

    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
        code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        log->doubted = true;
    } else if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        snprintf(
            text, sizeof(text),
            "Topic %s may not be read: the worker's principal needs the ACLs Read and Describe "
            "on it",
            log->topic);
        note(log, text);
        log->denied = true;
    } else if (kafka_error_consume(code, reason) == MR_ERR_FATAL && !passing(code)) {
        condemn(log, MR_ERR_FATAL, reason);
    } else if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || log->trouble[0] == '\0') {
        note(log, reason);
    }
}

/* Runs inside rd_kafka_poll. */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    (void)rk;
    on_trouble(opaque, (rd_kafka_resp_err_t)code, reason);
}

static const char *const reader_settings[][2] = {
    {"enable.partition.eof", "true"},
    {"allow.auto.create.topics", "false"},
    {"topic.metadata.propagation.max.ms", "5000"},
    /* a replay reads far ahead: until 2.2 a full queue costs librdkafka a second */
    {"queued.min.messages", "1000000"},
    {"queued.max.messages.kbytes", "65536"},
    {"auto.offset.reset", "earliest"},
};

static int open_reader(struct topic_log *log, struct mr_error *err)
{
    rd_kafka_conf_t *conf = kafka_handle_conf(CLIENT_CONSUMER, log->options.consumer,
                                              log->options.warn, log->options.arg, err);
    char why[256];

    if (conf == NULL)
        return MR_ERR_CONFIG;
    for (size_t i = 0; i < sizeof(reader_settings) / sizeof(*reader_settings); i++)
        mr_assert(rd_kafka_conf_set(conf, reader_settings[i][0], reader_settings[i][1], why,
                                    sizeof(why)) == RD_KAFKA_CONF_OK);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_opaque(conf, log);
    log->rk = kafka_handle_new(CLIENT_CONSUMER, &conf, err);
    if (log->rk == NULL)
        return MR_ERR_CONFIG;
    log->rkt = rd_kafka_topic_new(log->rk, log->topic, NULL);
    if (log->rkt == NULL)
        return mr_fail(err, MR_ERR_CONFIG, "\"%.249s\" is no topic's name", log->topic);
    return 0;
}

static int watch(struct topic_log *log, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(log->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int open_descriptors(struct topic_log *log, struct mr_error *err)
{
    static const uint64_t one = 1;

    log->rung = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    log->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (log->rung < 0 || log->epoll < 0 || watch(log, log->rung) != 0)
        return err_errno(err, "Can't make descriptors for topic %s", log->topic);
    log->queue = rd_kafka_queue_new(log->rk);
    rd_kafka_queue_io_event_enable(log->queue, log->rung, &one, sizeof(one));
    return 0;
}

static int open_producer(struct topic_log *log, struct mr_error *err)
{
    log->producer = producer_new(log->options.producer, log->options.warn, log->options.arg, err);
    if (log->producer == NULL)
        return MR_ERR_CONFIG;
    if (watch(log, producer_fd(log->producer)) == 0)
        return 0;
    producer_free(&log->producer);
    return err_errno(err, "Can't make descriptors for topic %s", log->topic);
}

static bool wanted(const struct topic_log *log, int partition)
{
    return log->options.only == NULL || log->options.only[partition];
}

/* All that are not read yet; or of them those that hold something, by where they end. */
static int start(struct topic_log *log, const int64_t *ends, struct mr_error *err)
{
    for (int i = 0; i < log->options.partitions && !log->started; i++) {
        struct part *part = &log->parts[i];

        if (part->started || !wanted(log, i) || (ends != NULL && ends[i] == 0))
            continue;
        if (rd_kafka_consume_start_queue(log->rkt, i, 0, log->queue) != 0)
            return mr_fail(err, MR_ERR_FATAL, "Topic %s can't be read: %s", log->topic,
                           rd_kafka_err2str(rd_kafka_last_error()));
        part->started = true;
    }
    log->started |= ends == NULL;
    return 0;
}

struct topic_log *topic_log_open(const struct topic_log_options *options, struct mr_error *err)
{
    struct topic_log *log = calloc(1, sizeof(*log));
    int rc;

    mr_assert(log != NULL && options->partitions > 0);
    log->options = *options;
    log->rung = log->epoll = -1;
    log->topic = text_dup(options->topic);
    log->parts = calloc((size_t)options->partitions, sizeof(*log->parts));
    mr_assert(log->parts != NULL);
    rc = open_reader(log, err);
    if (rc == 0)
        rc = open_descriptors(log, err);
    if (rc == 0 && options->producer != NULL && !options->seldom)
        rc = open_producer(log, err);
    log->options.consumer = NULL;
    if (!options->seldom)
        log->options.producer = NULL;
    if (rc != 0)
        topic_log_close(&log);
    return log;
}

/* --- appends ---------------------------------------------------------------------------------- */

/* The text of a refusal, in words that help where it is about rights. */
static const char *refusal(const struct topic_log *log, const char *text, char *own, size_t size)
{
    if (text == NULL || strstr(text, "authorization failed") == NULL)
        return text;
    snprintf(own, size,
             "Topic %s may not be written: the worker's principal needs the ACL Write on it",
             log->topic);
    return own;
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct append *append = opaque;
    struct topic_log *log = append->log;
    char own[512];

    (void)arg;
    log->waiting--;
    log->waiting_bytes -= append->bytes;
    append->done(append->arg, code == MR_ERR_NOT_FOUND ? MR_ERR_RETRY : code,
                 refusal(log, text, own, sizeof(own)));
    free(append);
}

static struct append *append_new(struct topic_log *log, const struct topic_log_append *rec)
{
    struct append *append = malloc(sizeof(*append) + rec->key_len + rec->value_len);

    if (append == NULL)
        return NULL;
    *append = (struct append){log, rec->done, rec->arg, rec->key_len + rec->value_len};
    if (rec->key_len > 0)
        memcpy(append->data, rec->key, rec->key_len);
    if (rec->value_len > 0)
        memcpy(append->data + rec->key_len, rec->value, rec->value_len);
    return append;
}

int topic_log_append(struct topic_log *log, const struct topic_log_append *rec,
                     struct mr_error *err)
{
    size_t bytes = rec->key_len + rec->value_len;
    struct mr_error sent = {0};
    struct append *append;
    char own[512];
    int rc;

    mr_assert(log->producer != NULL || log->options.seldom);
    if (log->verdict != 0)
        return mr_fail(err, MR_ERR_FATAL, "%s", log->trouble);
    if (log->waiting > 0 && log->waiting_bytes + bytes > log->options.max_bytes)
        return mr_fail(err, MR_ERR_FULL, "%zu bytes wait already for topic %s", log->waiting_bytes,
                       log->topic);
    if (log->producer == NULL && open_producer(log, err) != 0)
        return MR_ERR_FATAL;
    if (log->producer_topic == NULL)
        log->producer_topic = producer_topic(log->producer, log->topic, err);
    if (log->producer_topic == NULL)
        return MR_ERR_FATAL;
    append = append_new(log, rec);
    if (append == NULL)
        return mr_fail(err, MR_ERR_FULL, "out of memory");
    rc = producer_send(log->producer,
                       &(struct producer_record){
                           .topic = log->producer_topic,
                           .partition = -1,
                           .timestamp_ms = -1,
                           .key = append->data,
                           .key_len = rec->key_len,
                           .value = rec->value != NULL ? append->data + rec->key_len : NULL,
                           .value_len = rec->value_len,
                           .opaque = append,
                       },
                       &sent);
    if (rc != 0) {
        free(append);
        return mr_fail(err, rc == MR_ERR_NOT_FOUND ? MR_ERR_RETRY : rc, "%s",
                       refusal(log, sent.text, own, sizeof(own)));
    }
    log->waiting++;
    log->waiting_bytes += bytes;
    return 0;
}

size_t topic_log_unconfirmed(const struct topic_log *log)
{
    return log->waiting;
}

void topic_log_purge(const struct topic_log *log)
{
    if (log->producer != NULL)
        producer_purge(log->producer);
}

void topic_log_close(struct topic_log **logp)
{
    struct topic_log *log = *logp;

    *logp = NULL;
    if (log == NULL)
        return;
    if (log->producer != NULL && log->waiting > 0) {
        int64_t until = clock_ms() + 1000;

        producer_purge(log->producer);
        while (log->waiting > 0 && clock_ms() < until)
            producer_reports(log->producer, 100, on_report, log);
    }
    for (int i = 0; i < log->options.partitions; i++)
        if (log->parts[i].started)
            rd_kafka_consume_stop(log->rkt, i);
    if (log->queue != NULL) {
        rd_kafka_queue_io_event_enable(log->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(log->queue);
    }
    if (log->rkt != NULL)
        rd_kafka_topic_destroy(log->rkt);
    if (log->rk != NULL)
        rd_kafka_destroy(log->rk);
    producer_free(&log->producer);
    if (log->epoll >= 0)
        close(log->epoll);
    if (log->rung >= 0)
        close(log->rung);
    free(log->parts);
    free(log->topic);
    free(log);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The partition stands at this offset: further on than before, or back. */
static void place(struct topic_log *log, int32_t partition, int64_t offset)
{
    struct part *part = &log->parts[partition];

    if (offset < part->next && log->options.events->moved != NULL)
        log->options.events->moved(log->options.arg, partition, offset);
    part->next = offset;
}

static void ring(struct topic_log *log)
{
    static const uint64_t one = 1;

    if (write(log->rung, &one, sizeof(one)) < 0)
        mr_assert(errno == EAGAIN); /* it rings already */
}

/* A broker that is behind knows no topic that was just created: only what all say for a while is
 * believed. */
static bool long_unknown(struct topic_log *log, int rc)
{
    if (rc != MR_ERR_NOT_FOUND) {
        log->unknown_ms = 0;
        return false;
    }
    if (log->unknown_ms == 0)
        log->unknown_ms = clock_ms();
    if (clock_ms() - log->unknown_ms >= UNKNOWN_MS)
        return true;
    poll(NULL, 0, ASK_AGAIN_MS);
    return false;
}

static void raise_doubt(struct topic_log *log)
{
    log->doubted = true;
    ring(log);
}

/* A topic that was made anew with fewer partitions is another one: who asks for the others waits in
 * vain. */
static void doubt(struct topic_log *log)
{
    struct mr_error err = {0};
    int count = 0, rc;
    char text[512];

    log->doubted = false;
    if (log->verdict != 0)
        return;
    rc = topic_admin_partitions(log->options.admin, log->topic, CONFIRM_MS, &count, &err);
    if (rc == 0 && count < log->options.partitions)
        rc = MR_ERR_NOT_FOUND;
    if (!long_unknown(log, rc)) {
        if (rc == MR_ERR_NOT_FOUND)
            raise_doubt(log);
        return;
    }
    if (count == 0)
        snprintf(text, sizeof(text), "Topic %s is gone: it was deleted while it was in use",
                 log->topic);
    else
        snprintf(text, sizeof(text),
                 "Topic %s has %d partitions, where it had %d: it was deleted while it was in use, "
                 "and made anew",
                 log->topic, count, log->options.partitions);
    condemn(log, MR_ERR_NOT_FOUND, text);
}

static void take(struct topic_log *log, const rd_kafka_message_t *msg)
{
    struct topic_log_record rec = {
        .partition = msg->partition,
        .offset = msg->offset,
        .timestamp_ms = rd_kafka_message_timestamp(msg, NULL),
        .key = msg->key,
        .key_len = msg->key_len,
        .value = msg->payload,
        .value_len = msg->len,
    };

    if (msg->err == RD_KAFKA_RESP_ERR_NO_ERROR || msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        bool ours = msg->partition >= 0 && msg->partition < log->options.partitions;

        if (ours && msg->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            place(log, msg->partition, msg->offset + 1);
            log->options.events->record(log->options.arg, &rec);
        } else if (ours) {
            place(log, msg->partition, msg->offset);
            log->parts[msg->partition].at_end = true;
        }
        log->trouble[0] = log->verdict != 0 ? log->trouble[0] : '\0';
        log->troubled = false; /* over before it was told */
        log->denied = false;
        log->heard = true;
        return;
    }
    on_trouble(log, msg->err, rd_kafka_message_errstr(msg));
}

static void read_queue(struct topic_log *log)
{
    int64_t until = clock_ms() + SERVE_MS;
    rd_kafka_message_t *msg;
    uint64_t rung;

    if (read(log->rung, &rung, sizeof(rung)) < 0)
        rung = 0; /* nobody rang */
    while ((msg = rd_kafka_consume_queue(log->queue, 0)) != NULL) {
        take(log, msg);
        rd_kafka_message_destroy(msg);
        if (clock_ms() > until) {
            ring(log);
            break;
        }
    }
}

/* What holds up appends. */
static void hear_producer(struct topic_log *log)
{
    const char *text = log->waiting > 0 ? producer_trouble(log->producer, NULL) : NULL;

    if (text != NULL && strcmp(text, log->trouble) != 0)
        note(log, text);
}

static int serve(struct topic_log *log, struct mr_error *err)
{
    while (rd_kafka_poll(log->rk, 0) > 0)
        ;
    if (log->producer != NULL) {
        producer_reports(log->producer, 0, on_report, log);
        hear_producer(log);
    }
    read_queue(log);
    if (log->doubted)
        doubt(log);
    if (log->verdict != 0)
        return mr_fail(err, log->verdict, "%s", log->trouble);
    if (!log->troubled)
        return 0;
    log->troubled = false;
    return mr_fail(err, MR_ERR_RETRY, "%s", log->trouble);
}

int topic_log_serve(struct topic_log *log, struct mr_error *err)
{
    int rc = start(log, NULL, err);

    return rc == 0 ? serve(log, err) : rc;
}

const char *topic_log_trouble(const struct topic_log *log)
{
    return log->trouble;
}

int topic_log_fd(struct topic_log *log)
{
    return log->epoll;
}

/* --- to the end ------------------------------------------------------------------------------- */

int topic_log_mark(struct topic_log *log, int64_t timeout_ms, int64_t *mark, struct mr_error *err)
{
    int rc;

    if (log->verdict != 0)
        return mr_fail(err, log->verdict, "%s", log->trouble);
    rc = topic_admin_ends(log->options.admin, log->topic, log->options.partitions, timeout_ms, mark,
                          err);
    if (rc == MR_ERR_NOT_FOUND)
        raise_doubt(log);
    return rc;
}

bool topic_log_reached(const struct topic_log *log, const int64_t *mark)
{
    for (int i = 0; i < log->options.partitions; i++)
        if (wanted(log, i) && log->parts[i].next < mark[i])
            return false;
    return true;
}

/* An end that comes after the mark was asked stands behind everything that was committed by then:
 * what is missing up to the mark is open. */
static bool decided(const struct topic_log *log, const int64_t *mark)
{
    for (int i = 0; i < log->options.partitions; i++)
        if (wanted(log, i) && log->parts[i].next < mark[i] && !log->parts[i].at_end)
            return false;
    return true;
}

static bool heard(const struct topic_log *log, const int64_t *mark)
{
    (void)mark;
    return log->heard;
}

static int64_t left_until(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_ms();

    return left > 0 ? left : 0;
}

/* Ask until somebody answers. */
static int ask_mark(struct topic_log *log, int64_t deadline_ms, int64_t *mark, struct mr_error *err)
{
    int rc;

    do {
        int64_t left = left_until(deadline_ms);

        err_clear(err);
        rc = topic_log_mark(log, left < MARK_MS ? left : MARK_MS, mark, err);
        if (rc == MR_ERR_NOT_FOUND && !long_unknown(log, rc))
            rc = MR_ERR_RETRY;
        if (rc == MR_ERR_RETRY && topic_admin_cancelled(log->options.admin))
            rc = MR_ERR_CLOSED;
    } while (rc == MR_ERR_RETRY && left_until(deadline_ms) > 0);
    if (rc == MR_ERR_RETRY)
        err->code = rc = MR_ERR_TIMEOUT;
    return rc;
}

typedef bool (*until_fn)(const struct topic_log *log, const int64_t *mark);

static int follow(struct topic_log *log, int64_t deadline_ms, until_fn until, const int64_t *mark,
                  struct mr_error *err)
{
    struct pollfd fd = {.fd = log->epoll, .events = POLLIN};
    int rc;

    for (;;) {
        int64_t left = left_until(deadline_ms);

        err_clear(err);
        rc = serve(log, err);
        if (rc != 0 && rc != MR_ERR_RETRY)
            return rc;
        if (until(log, mark)) {
            err_clear(err);
            return 0;
        }
        if (topic_admin_cancelled(log->options.admin))
            return mr_fail(err, MR_ERR_CLOSED, "called off");
        if (left == 0)
            break;
        poll(&fd, 1, (int)(left < SLICE_MS ? left : SLICE_MS));
    }
    err_clear(err);
    if (log->denied)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s", log->trouble);
    return mr_fail(err, MR_ERR_TIMEOUT, "topic %s was not read to its end in time%s%s", log->topic,
                   log->trouble[0] != '\0' ? ": " : "", log->trouble);
}

static int read_until(struct topic_log *log, int64_t deadline_ms, until_fn until,
                      struct mr_error *err)
{
    struct mr_error own = {0};
    int64_t *mark = calloc((size_t)log->options.partitions, sizeof(*mark));
    int rc;

    mr_assert(mark != NULL);
    rc = ask_mark(log, deadline_ms, mark, &own);
    if (rc == 0)
        rc = start(log, mark, &own);
    if (rc == 0)
        rc = follow(log, deadline_ms, until, mark, &own);
    if (rc == 0)
        rc = start(log, NULL, &own);
    free(mark);
    return rc == 0 ? 0 : mr_fail(err, rc, "%s", own.text);
}

int topic_log_read_to_end(struct topic_log *log, int64_t deadline_ms, struct mr_error *err)
{
    return read_until(log, deadline_ms, topic_log_reached, err);
}

int topic_log_replay(struct topic_log *log, int64_t deadline_ms, struct mr_error *err)
{
    return read_until(log, deadline_ms, decided, err);
}

int topic_log_prove(struct topic_log *log, int64_t deadline_ms, struct mr_error *err)
{
    struct mr_error own = {0};
    int rc = start(log, NULL, &own);

    if (rc == 0)
        rc = follow(log, deadline_ms, heard, NULL, &own);
    return rc == 0 || rc == MR_ERR_TIMEOUT ? 0 : mr_fail(err, rc, "%s", own.text);
}
