/* SPDX-License-Identifier: Apache-2.0 */
/* A group consumer for one owner thread: batches in, with the owner's positions as the truth.
 *
 *   consumer_poll: changes and seeks that are due (consumer_group.c)
 *                  ─► librdkafka's batch call ─► struct consumer_msg
 *
 * The first take of a poll does not wait; if it is empty, one message is waited for and what lies
 * behind it is taken along, since librdkafka's call would wait until the batch is full. Messages
 * are pointers into fetch buffers, held until consumer_release. What belongs to no assigned
 * partition, came while paused, or came before a seek was confirmed, is dropped here. Steady state
 * allocates nothing. Owner thread only, but for consumer_wake, and for consumer_keep_alive while
 * lent. */
#include "kafka/consumer.h"

#include "base/clock.h"
#include "kafka/kafka_private.h"
#include "kafka/topic_pattern.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 10000
#define SEEK_RETRY_MS 20
#define DESTROY_MENDED 0x02010100
#define IN_PLACE_UNTIL 0x03000000 /* see count_headers */

/* Above this much in librdkafka's queue it has stopped fetching, or soon will; below a quarter of
 * the limits it should go on. */
#define FULL_MESSAGES (CLIENT_QUEUED_MESSAGES / 2)
#define FULL_BYTES (CLIENT_QUEUED_KBYTES * 1024 / 2)

/* --- errors ----------------------------------------------------------------------------------- */

void consumer_note_trouble(struct consumer *c, rd_kafka_resp_err_t code, const char *text)
{
    char fatal[400] = "";

    if (consumer_gone_note(&c->gone, code))
        c->may_hang = true;
    if (c->trouble_code == MR_ERR_FATAL)
        return;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && c->trouble_code != 0)
        return; /* says less than what is known */
    if (code == RD_KAFKA_RESP_ERR__FATAL && rd_kafka_fatal_error(c->rk, fatal, sizeof(fatal)) != 0)
        text = fatal;
    c->trouble_code = kafka_error_consume(code, text);
    if (c->trouble_code != MR_ERR_FATAL)
        c->trouble_code = MR_ERR_RETRY;
    kafka_error_text(text, c->trouble, sizeof(c->trouble));
}

static void on_error(rd_kafka_t *rk, int code, const char *text, void *opaque)
{
    (void)rk;
    consumer_note_trouble(opaque, (rd_kafka_resp_err_t)code, text);
}

/* "Partition t-0, offset 7", as far as it is known: librdkafka has negative numbers for what is
 * not. */
static void place_of(const rd_kafka_message_t *msg, const char *topic, char *out, size_t size)
{
    if (msg->partition < 0)
        snprintf(out, size, "Topic %s", topic);
    else if (msg->offset < 0)
        snprintf(out, size, "Partition %s-%d", topic, (int)msg->partition);
    else
        snprintf(out, size, "Partition %s-%d, offset %lld", topic, (int)msg->partition,
                 (long long)msg->offset);
}

static bool is_strict(const struct consumer *c)
{
    const char *said = c->events.out_of_range;

    return said != NULL && strcmp(said, "earliest") != 0 && strcmp(said, "latest") != 0;
}

/* Errors that come in the place of a message. */
static void note_message(struct consumer *c, const rd_kafka_message_t *msg)
{
    const char *text = rd_kafka_message_errstr(msg);
    const char *topic = msg->rkt != NULL ? rd_kafka_topic_name(msg->rkt) : NULL;
    char line[480], place[320];

    if (msg->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return;
    if (topic == NULL) {
        snprintf(line, sizeof(line), "%s", text);
    } else if (msg->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && is_strict(c)) {
        snprintf(line, sizeof(line),
                 "Partition %s-%d has no offset %lld, at which reading was to go on%s", topic,
                 (int)msg->partition, (long long)msg->offset, c->events.out_of_range);
    } else if (msg->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        snprintf(
            line, sizeof(line),
            "Partition %s-%d has no valid offset to start from and auto.offset.reset is none: %s",
            topic, (int)msg->partition, text);
    } else if (msg->offset < 0 && strstr(text, topic) != NULL) {
        snprintf(line, sizeof(line), "%s", text);
    } else {
        place_of(msg, topic, place, sizeof(place));
        snprintf(line, sizeof(line), "%s: %s", place, text);
    }
    consumer_note_trouble(c, msg->err, line);
}

static int return_trouble(struct consumer *c, struct mr_error *err)
{
    int code = c->trouble_code;

    c->trouble_code = 0;
    return mr_fail(err, code, "%s", c->trouble);
}

/* --- life ------------------------------------------------------------------------------------- */

/* A time as librdkafka has it, which may be narrower than Java's. */
static int64_t fitted_ms(const rd_kafka_conf_t *conf, const char *name)
{
    char text[24] = "300000";
    size_t size = sizeof(text);

    rd_kafka_conf_get(conf, name, text, &size);
    return strtol(text, NULL, 10);
}

static int read_limits(struct consumer *c, const struct props *java, const rd_kafka_conf_t *conf,
                       struct mr_error *err)
{
    const char *records = props_get(java, "max.poll.records");
    int64_t n = 500;

    if (records != NULL && (!client_map_long(records, &n) || n < 1 || n > INT_MAX))
        return mr_fail(
            err, MR_ERR_CONFIG,
            "Invalid value %.40s for configuration max.poll.records: Value must be at least 1",
            records);
    c->max_records = (size_t)n;
    if (props_get(java, "group.id") == NULL)
        return mr_fail(
            err, MR_ERR_CONFIG,
            "Missing required configuration \"group.id\": consumers are members of a group");
    c->max_poll_ms = fitted_ms(conf, "max.poll.interval.ms");
    c->match.each_ms = fitted_ms(conf, "topic.metadata.refresh.interval.ms");
    return 0;
}

static int64_t reset_policy(const struct props *java)
{
    const char *value = props_get(java, "auto.offset.reset");

    if (value != NULL && strcasestr(value, "earliest") != NULL)
        return RD_KAFKA_OFFSET_BEGINNING;
    if (value != NULL && strcasestr(value, "none") != NULL)
        return RD_KAFKA_OFFSET_INVALID;
    return RD_KAFKA_OFFSET_END;
}

static int open_client(struct consumer *c, rd_kafka_conf_t **conf, struct mr_error *err)
{
    if (c->events.out_of_range != NULL)
        rd_kafka_conf_set(*conf, "auto.offset.reset",
                          is_strict(c) ? "error" : c->events.out_of_range, NULL, 0);
    rd_kafka_conf_set_opaque(*conf, c);
    rd_kafka_conf_set_error_cb(*conf, on_error);
    rd_kafka_conf_set_rebalance_cb(*conf, consumer_group_on_rebalance);
    c->rk = kafka_handle_new(CLIENT_CONSUMER, conf, err);
    if (c->rk == NULL)
        return MR_ERR_CONFIG;
    rd_kafka_poll_set_consumer(c->rk);
    c->queue = rd_kafka_queue_get_consumer(c->rk);
    c->commits = rd_kafka_queue_new(c->rk);
    return 0;
}

struct consumer *consumer_new(const struct props *java, const struct consumer_events *events,
                              client_conf_warn warn, void *arg, struct mr_error *err)
{
    rd_kafka_conf_t *conf = kafka_handle_conf(CLIENT_CONSUMER, java, warn, arg, err);
    struct consumer *c = conf != NULL ? calloc(1, sizeof(*c)) : NULL;
    int rc;

    if (conf == NULL)
        return NULL;
    if (c == NULL) {
        rd_kafka_conf_destroy(conf);
        mr_fail(err, MR_ERR_NOMEM, "Out of memory while making a consumer");
        return NULL;
    }
    c->events = *events;
    c->arg = arg;
    c->served_ms = clock_ms();
    c->reset = reset_policy(java);
    c->in_place = rd_kafka_version() < IN_PLACE_UNTIL;
    consumer_parts_init(&c->parts);
    rc = read_limits(c, java, conf, err);
    if (rc == 0)
        rc = open_client(c, &conf, err);
    if (conf != NULL)
        rd_kafka_conf_destroy(conf);
    if (rc != 0)
        consumer_close(&c, 0);
    return c;
}

static void *destroy_unclosed(void *rk)
{
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return NULL;
}

/* Two kinds of client can't be destroyed by the owner. While the group is being left librdkafka
 * would wait 5 s for a coordinator that does not answer; and before 2.1.1 it waits for ever once
 * partitions were lost or their topic was deleted (a reference that it forgets, #4187). A thread
 * waits for that in our place, and in the second case stays, with the client's memory; no queue is
 * served any more, so nothing is called back. */
static void destroy_client(struct consumer *c)
{
    bool prompt = rd_kafka_consumer_closed(c->rk) != 0 &&
                  !(c->may_hang && rd_kafka_version() < DESTROY_MENDED);
    pthread_t thread;

    rd_kafka_queue_destroy(c->commits);
    rd_kafka_queue_destroy(c->queue);
    if (prompt)
        rd_kafka_destroy(c->rk);
    else if (c->closing && pthread_create(&thread, NULL, destroy_unclosed, c->rk) == 0)
        pthread_detach(thread);
    else
        destroy_unclosed(c->rk);
}

void consumer_close(struct consumer **c, int64_t deadline_ms)
{
    struct consumer *dead = *c;

    if (dead == NULL)
        return;
    mr_assert(!dead->lent);
    consumer_release(dead);
    if (dead->rk != NULL) {
        consumer_gone_deinit(&dead->gone);
        consumer_group_leave(dead, deadline_ms); /* the owner's callbacks still find it */
        destroy_client(dead);
    }
    *c = NULL;
    consumer_match_deinit(&dead->match);
    consumer_parts_deinit(&dead->parts);
    free(dead->lost);
    free(dead->held);
    free(dead);
}

/* A pattern that librdkafka can't express is ours to match, if it is one at all and stands
 * alone. */
static bool is_ours(const char *const *topics)
{
    struct buf pattern;
    int rc;

    if (topics[0] == NULL || topics[0][0] != '^' || topics[1] != NULL)
        return false;
    buf_init(&pattern, 8192);
    rc = topic_pattern_translate(topics[0] + 1, &pattern, NULL);
    buf_deinit(&pattern);
    return rc != 0;
}

int consumer_subscribe(struct consumer *c, const char *const *topics, struct mr_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    rd_kafka_resp_err_t code;
    int rc = 0;

    if (is_ours(topics)) {
        rd_kafka_topic_partition_list_destroy(list);
        return consumer_match_start(c, topics[0] + 1, err);
    }
    for (; rc == 0 && *topics != NULL; topics++) {
        struct buf pattern;

        buf_init(&pattern, 8192);
        if (**topics == '^')
            rc = topic_pattern_translate(*topics + 1, &pattern, err);
        if (rc == 0)
            rd_kafka_topic_partition_list_add(list, pattern.len > 0 ? pattern.data : *topics,
                                              RD_KAFKA_PARTITION_UA);
        buf_deinit(&pattern);
    }
    code = rc == 0 ? rd_kafka_subscribe(c->rk, list) : RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_destroy(list);
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        return mr_fail(err, MR_ERR_FATAL, "Can't subscribe: %s", rd_kafka_err2str(code));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return mr_fail(err, MR_ERR_CONFIG, "Can't subscribe: %s", rd_kafka_err2str(code));
    return rc;
}

/* --- polling ---------------------------------------------------------------------------------- */

struct lookup {
    const rd_kafka_topic_t *rkt;
    int32_t number;
    struct consumer_part *part;
};

/* Messages come in runs of one partition. Handles of topics may be freed between polls, so nothing
 * is kept beyond one. */
static struct consumer_part *part_of(struct consumer *c, struct lookup *last,
                                     const rd_kafka_message_t *msg)
{
    if (msg->rkt == last->rkt && msg->partition == last->number)
        return last->part;
    last->rkt = msg->rkt;
    last->number = msg->partition;
    last->part = consumer_parts_find(&c->parts, rd_kafka_topic_name(msg->rkt), msg->partition);
    return last->part;
}

/* To ask the library costs a third of what consuming costs: it allocates to find out. Payloads
 * point into the fetch buffer in all versions that are looked at below. */
static size_t count_headers(const struct consumer *c, const rd_kafka_message_t *msg)
{
    rd_kafka_headers_t *headers;

    if (c->in_place && msg->payload != NULL && msg->len > 0 &&
        record_tail_is_bare(msg->payload, msg->len))
        return 0;
    return rd_kafka_message_headers(msg, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR
               ? rd_kafka_header_cnt(headers)
               : 0;
}

static void fill(struct consumer_msg *out, const struct consumer_part *part,
                 rd_kafka_message_t *msg)
{
    rd_kafka_timestamp_type_t type;

    out->topic = part->topic->name;
    out->partition = msg->partition;
    out->offset = msg->offset;
    out->timestamp_ms = rd_kafka_message_timestamp(msg, &type);
    out->key = msg->key;
    out->key_len = msg->key_len;
    out->value = msg->payload;
    out->value_len = msg->len;
    out->handle = msg;
}

/* The position was confirmed, so only a reset can lead below it. */
static void tell_moved(struct consumer *c, const struct consumer_part *part, int64_t offset)
{
    const struct consumer_partition moved = {part->topic->name, part->number, offset};

    if (c->events.moved != NULL)
        c->events.moved(c->arg, &moved);
}

/* Keep what is ours, destroy the rest. */
static size_t sort_out(struct consumer *c, size_t count, struct consumer_msg *out)
{
    struct lookup last = {0};
    size_t bytes = 0;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        rd_kafka_message_t *msg = c->held[i];
        struct consumer_part *part = NULL;

        if (msg->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            note_message(c, msg);
        else if (c->change == CHANGE_NONE && !c->paused)
            part = part_of(c, &last, msg);
        if (part == NULL || part->seek_due || part->held) {
            rd_kafka_message_destroy(msg);
            continue;
        }
        if (msg->offset < part->next)
            tell_moved(c, part, msg->offset);
        part->next = msg->offset + 1;
        bytes += msg->len + msg->key_len;
        c->held[kept] = msg;
        out[kept].header_count = count_headers(c, msg);
        fill(&out[kept++], part, msg);
    }
    if (kept > 0)
        c->message_bytes = bytes / kept;
    return kept;
}

/* Have fetching go on before the queue is empty. */
static void watch_queue(struct consumer *c)
{
    size_t queued = rd_kafka_queue_length(c->queue);

    if (queued >= FULL_MESSAGES || queued * c->message_bytes >= FULL_BYTES) {
        c->fetched_full = true;
    } else if (c->fetched_full && queued < FULL_MESSAGES / 2 &&
               queued * c->message_bytes < FULL_BYTES / 2) {
        c->fetched_full = false;
        consumer_group_nudge(c);
    }
}

static size_t batch(struct consumer *c, size_t from, size_t max, int wait_ms)
{
    ssize_t n = rd_kafka_consume_batch_queue(c->queue, wait_ms, c->held + from, max);

    return n > 0 ? (size_t)n : 0;
}

static size_t take(struct consumer *c, struct consumer_msg *out, size_t max, int wait_ms)
{
    size_t count;

    if (wait_ms == 0) {
        count = batch(c, 0, max, 0);
    } else {
        count = batch(c, 0, 1, wait_ms);
        if (count == 1 && max > 1)
            count += batch(c, 1, max - 1, 0);
    }
    c->served_ms = clock_ms();
    c->held_count = sort_out(c, count, out);
    watch_queue(c);
    return c->held_count;
}

static int make_room(struct consumer *c, size_t max, struct mr_error *err)
{
    rd_kafka_message_t **held;

    if (max <= c->held_cap)
        return 0;
    held = realloc(c->held, max * sizeof(rd_kafka_message_t *));
    if (held == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "Out of memory for a batch of %zu messages", max);
    c->held = held;
    c->held_cap = max;
    return 0;
}

int consumer_poll(struct consumer *c, struct consumer_msg *out, size_t max, int64_t timeout_ms,
                  struct mr_error *err)
{
    int64_t until = clock_ms() + (timeout_ms > 0 ? timeout_ms : 0);
    int64_t wait_ms = 0;

    mr_assert(c->held_count == 0 && !c->lent);
    max = max > BATCH_MAX ? BATCH_MAX : max;
    if (make_room(c, max, err) != 0)
        return MR_ERR_NOMEM;
    for (;;) {
        size_t count;
        int rc = consumer_group_serve(c, err);

        if (rc != 0)
            return rc;
        consumer_gone_serve(c);
        consumer_match_serve(c);
        count = take(c, out, max, (int)wait_ms);
        if (count > 0)
            return (int)count;
        consumer_stall_serve(c);
        if (c->change == CHANGE_NONE && c->trouble_code != 0)
            return return_trouble(c, err);
        if (atomic_exchange(&c->woken, false))
            return 0;
        wait_ms = until - clock_ms();
        if (wait_ms <= 0 && c->change == CHANGE_NONE)
            return 0;
        wait_ms = c->change != CHANGE_NONE || wait_ms <= 0 ? 0
                  : wait_ms > INT_MAX                      ? INT_MAX
                                                           : wait_ms;
        if (c->seeks_due && wait_ms > SEEK_RETRY_MS)
            wait_ms = SEEK_RETRY_MS;
        wait_ms = consumer_stall_wait_ms(c, consumer_gone_wait_ms(&c->gone, wait_ms));
        wait_ms = consumer_match_wait_ms(c, wait_ms);
    }
}

void consumer_release(struct consumer *c)
{
    for (size_t i = 0; i < c->held_count; i++)
        rd_kafka_message_destroy(c->held[i]);
    c->held_count = 0;
}

struct consumer_header consumer_header_at(const struct consumer_msg *msg, size_t i)
{
    struct consumer_header header = {0};
    rd_kafka_headers_t *headers;

    if (rd_kafka_message_headers(msg->handle, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_header_get_all(headers, i, &header.name, &header.value, &header.value_len);
    return header;
}

const char *consumer_timestamp_type(const struct consumer_msg *msg)
{
    static const char *const names[] = {[RD_KAFKA_TIMESTAMP_CREATE_TIME] = "CreateTime",
                                        [RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME] = "LogAppendTime"};
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;

    if (msg->handle != NULL)
        rd_kafka_message_timestamp(msg->handle, &type);
    return (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

/* --- commits ---------------------------------------------------------------------------------- */

static rd_kafka_resp_err_t answer_code(rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);

    for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && list != NULL && i < list->cnt; i++)
        code = list->elems[i].err;
    return code;
}

/* Answers to older commits than the newest say nothing any more. */
static void take_answers(struct consumer *c, int64_t timeout_ms)
{
    int64_t until = clock_ms() + timeout_ms;
    int wait_ms = timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
    rd_kafka_event_t *event;

    while (c->commit_answered != c->commit_asked &&
           (event = rd_kafka_queue_poll(c->commits, wait_ms)) != NULL) {
        int64_t left = until - clock_ms();

        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT &&
            (uintptr_t)rd_kafka_event_opaque(event) == c->commit_asked) {
            rd_kafka_resp_err_t code = answer_code(event);

            c->commit_answered = c->commit_asked;
            c->commit_code = code == RD_KAFKA_RESP_ERR_NO_ERROR ? 1 : kafka_error_consume(code, "");
            snprintf(c->commit_text, sizeof(c->commit_text), "%s", rd_kafka_err2str(code));
        }
        rd_kafka_event_destroy(event);
        wait_ms = left > 0 ? (int)left : 0;
    }
}

static int commit_result(struct consumer *c, struct mr_error *err)
{
    int code = c->commit_code;

    c->commit_code = 0;
    return code < 0 ? mr_fail(err, code, "Offsets were not committed: %s", c->commit_text) : code;
}

int consumer_commit(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    bool sync, int64_t timeout_ms, struct mr_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    int64_t until_ms = clock_ms() + timeout_ms;
    int rc;

    mr_assert(!c->lent);
    if (sync) /* librdkafka sends an older one again by itself: behind this one it would undo it */
        take_answers(c, timeout_ms / 2);
    for (size_t i = 0; i < count; i++)
        if (parts[i].offset >= 0 &&
            consumer_parts_find(&c->parts, parts[i].topic, parts[i].partition) != NULL)
            rd_kafka_topic_partition_list_add(list, parts[i].topic, parts[i].partition)->offset =
                parts[i].offset;
    c->commit_asked++;
    c->commit_code = 0;
    if (list->cnt > 0) {
        code = rd_kafka_commit_queue(c->rk, list, c->commits, NULL, (void *)c->commit_asked);
    } else {
        c->commit_answered = c->commit_asked;
        c->commit_code = 1;
    }
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        c->commit_answered = c->commit_asked;
        return mr_fail(err, kafka_error_consume(code, ""), "Offsets can't be committed: %s",
                       rd_kafka_err2str(code));
    }
    if (!sync)
        return 0;
    take_answers(c, until_ms > clock_ms() ? until_ms - clock_ms() : 0);
    if (c->commit_answered != c->commit_asked)
        return mr_fail(err, MR_ERR_TIMEOUT,
                       "Offsets were not committed within %lld ms: no answer from the coordinator",
                       (long long)timeout_ms);
    rc = commit_result(c, err);
    return rc < 0 ? rc : 0;
}

int consumer_commit_result(struct consumer *c, struct mr_error *err)
{
    take_answers(c, 0);
    return commit_result(c, err);
}

void consumer_note(struct consumer *c, const char *topic, int32_t partition)
{
    struct consumer_part *part = consumer_parts_find(&c->parts, topic, partition);

    mr_assert(!c->lent);
    if (part != NULL)
        part->noted = true;
}

bool consumer_noted(const struct consumer *c, const char *topic, int32_t partition)
{
    const struct consumer_part *part = consumer_parts_find(&c->parts, topic, partition);

    return part != NULL && part->noted;
}

/* --- positions -------------------------------------------------------------------------------- */

int consumer_pause(struct consumer *c, struct mr_error *err)
{
    mr_assert(!c->lent);
    if (c->paused)
        return 0;
    c->paused = true;
    return consumer_group_pause(c, true, err);
}

/* The seek comes first: delivery must not restart anywhere else. */
int consumer_resume(struct consumer *c, const struct consumer_partition *parts, size_t count,
                    struct mr_error *err)
{
    int rc = 0;

    mr_assert(!c->lent);
    consumer_group_move(c, parts, count);
    consumer_group_seek(c);
    if (c->paused)
        rc = consumer_group_pause(c, false, err);
    if (rc == 0)
        c->paused = false;
    return rc;
}

/* A paused consumer is sought when it is resumed. */
int consumer_seek(struct consumer *c, const struct consumer_partition *parts, size_t count,
                  struct mr_error *err)
{
    (void)err;
    mr_assert(!c->lent);
    consumer_group_move(c, parts, count);
    if (!c->paused)
        consumer_group_seek(c);
    return 0;
}

int consumer_hold(struct consumer *c, const struct consumer_partition *part, bool hold,
                  struct mr_error *err)
{
    struct consumer_part *mine = consumer_parts_find(&c->parts, part->topic, part->partition);

    mr_assert(!c->lent);
    if (mine == NULL)
        return mr_fail(err, MR_ERR_NOT_FOUND, "Partition %s-%d is not assigned", part->topic,
                       part->partition);
    if (mine->held == hold)
        return 0;
    mine->held = hold;
    if (!hold) { /* what librdkafka still has is of another place */
        consumer_group_move(c, part, 1);
        mine->seek_due = mine->placed;
        c->seeks_due = c->seeks_due || mine->placed;
    }
    return c->paused ? 0 : consumer_group_hold(c, mine, hold, err);
}

/* --- other threads ---------------------------------------------------------------------------- */

void consumer_wake(struct consumer *c)
{
    atomic_store(&c->woken, true);
    rd_kafka_queue_yield(c->queue);
}

int consumer_lend(struct consumer *c, struct mr_error *err)
{
    int rc = 0;

    mr_assert(!c->lent);
    if (!c->paused) {
        rc = consumer_pause(c, err);
        c->paused_to_lend = rc == 0;
    }
    c->lent = rc == 0;
    return rc;
}

void consumer_keep_alive(struct consumer *c)
{
    rd_kafka_message_t *msgs[64];
    ssize_t n = rd_kafka_consume_batch_queue(c->queue, 0, msgs, 64);

    for (ssize_t i = 0; i < n; i++) {
        if (msgs[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            note_message(c, msgs[i]);
        rd_kafka_message_destroy(msgs[i]);
    }
    c->served_ms = clock_ms();
    consumer_group_serve_lent(c);
}

int consumer_take_back(struct consumer *c, const struct consumer_partition *parts, size_t count,
                       struct mr_error *err)
{
    bool resume = c->paused_to_lend;

    mr_assert(c->lent);
    c->lent = false;
    c->paused_to_lend = false;
    return resume ? consumer_resume(c, parts, count, err) : consumer_seek(c, parts, count, err);
}

const char *consumer_member_id(struct consumer *c)
{
    char *id = rd_kafka_memberid(c->rk);

    snprintf(c->member, sizeof(c->member), "%s", id != NULL ? id : "");
    if (id != NULL)
        rd_kafka_mem_free(c->rk, id);
    return c->member;
}
