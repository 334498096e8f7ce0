/* SPDX-License-Identifier: Apache-2.0 */
/* Writes dead letters. Called by tolerance.c for each record that a stage gave up, by the loops to
 * settle before a batch counts as done; on the task's thread.
 *
 *   sink:   key, value and headers as they were read, its timestamp
 *   source: key, value and headers as text
 *   then, with context: __connect.errors.* headers, behind the record's own
 *
 * A letter is copied and freed by its delivery report: this path is for the few. One that comes
 * back, since a broker that is behind does not know the topic, is sent again until
 * delivery.timeout.ms has passed; letters keep no order. Promise 1: a
 * record that went here is done only when its letter is delivered, so a topic that can't take it
 * fails the task. */
#include "host/task/stages/dead_letters.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "host/task/topic_patience.h"
#include "host/trace.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/topic_admin.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.dead_letters"
#include "base/log.h"
#include "base/text.h"

#define OPEN_MS 30000
#define FEW_MS 5000    /* until enough brokers for the copies have started */
#define SLICE_MS 100   /* between two looks whether the task ends */
#define ASK_MS 2000    /* one request for the topic */
#define ENDING_MS 1000 /* what letters get while the task ends */
#define CONTEXT_MAX 10
#define AWAY_MS 500 /* until what came back is sent again */

struct letter {
    struct letter *next, *prev;
    bool held; /* taken back, or came back: to be sent again */
    struct producer_record rec;
    char bytes[];
};

struct dead_letters {
    struct dead_letters_spec spec;
    char *topic_name;
    struct producer *producer;
    struct producer_topic *topic;
    struct letter out; /* head of those that are under way or held, newest first */
    bool taking_back;
    int64_t timeout_ms;   /* delivery.timeout.ms */
    int64_t away_ms;      /* since when the topic is not known; 0: it is */
    int64_t again_ms;     /* when what came back is sent again; 0: nothing did */
    struct mr_error lost; /* the first that could not be delivered */
};

/* --- the topic -------------------------------------------------------------------------------- */

/* refused: the brokers are there, and can't make it for now. */
static int make_topic(struct dead_letters *d, struct topic_admin *admin, bool *refused,
                      struct mr_error *err)
{
    const struct topic_admin_spec topic = {
        .topic = d->topic_name, .partitions = 1, .replication = d->spec.replication};
    int count;
    int rc = topic_admin_partitions(admin, d->topic_name, ASK_MS, &count, err);
    int64_t asked_ms = clock_ms();

    *refused = false;
    if (rc != MR_ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    rc = topic_admin_create(admin, &topic, ASK_MS, err);
    *refused = clock_ms() - asked_ms < ASK_MS;
    if (rc == MR_OK)
        log_info("made the dead-letter topic %s", d->topic_name);
    if (rc == MR_ERR_RETRY || rc == MR_ERR_CONFIG)
        err_prefix(err, "errors.deadletterqueue.topic.replication.factor=%d", d->spec.replication);
    if (rc != MR_ERR_EXISTS)
        return rc;
    err_clear(err);
    return MR_OK;
}

/* Brokers may be away for a moment. */
static int find_topic(struct dead_letters *d, struct topic_admin *admin, struct mr_error *err)
{
    struct topic_patience patience = {
        .silent_ms = OPEN_MS, .refused_ms = FEW_MS, .began_ms = clock_ms()};
    bool told = false, refused;
    int rc;

    for (;;) {
        rc = make_topic(d, admin, &refused, err);
        if (rc != MR_ERR_RETRY || !topic_patience_lasts(&patience, refused, clock_ms()) ||
            !d->spec.wait(d->spec.arg, SLICE_MS))
            return rc;
        if (!told)
            log_warn("the dead-letter topic %s: not ready yet, tried again for %d s: %s",
                     d->topic_name, (refused ? FEW_MS : OPEN_MS) / 1000, err->text);
        told = true;
        err_clear(err);
    }
}

static int open_topic(struct dead_letters *d, struct mr_error *err)
{
    struct topic_admin *admin = NULL;
    struct props java;
    char id[512];
    int rc;

    task_client_id(&d->spec.client, "dlq-adminclient", id, sizeof(id));
    rc = task_client_admin(&d->spec.client, id, &java, err);
    if (rc == MR_OK)
        admin = topic_admin_new(&java, NULL, NULL, err);
    props_deinit(&java);
    if (admin == NULL)
        return err->code;
    rc = find_topic(d, admin, err);
    topic_admin_free(&admin);
    return rc;
}

static int open_producer(struct dead_letters *d, struct mr_error *err)
{
    struct props java;
    int rc = task_client_dead_letters(&d->spec.client, &java, err);

    if (rc == MR_OK)
        d->producer = producer_new(&java, NULL, NULL, err);
    d->timeout_ms = task_client_number(&java, "delivery.timeout.ms", INT32_MAX, 0, INT64_MAX);
    props_deinit(&java);
    if (d->producer == NULL)
        return err->code;
    d->topic = producer_topic(d->producer, d->topic_name, err);
    return d->topic == NULL ? err->code : MR_OK;
}

struct dead_letters *dead_letters_open(const struct dead_letters_spec *spec, struct mr_error *err)
{
    struct dead_letters *d = calloc(1, sizeof(*d));
    char trace[TRACE_MAX];
    struct mr_error why;
    int rc;

    mr_assert(d != NULL);
    d->spec = *spec;
    d->topic_name = text_dup(spec->topic);
    d->out.next = d->out.prev = &d->out;
    rc = open_topic(d, err);
    if (rc == MR_OK && spec->carry == NULL)
        rc = open_producer(d, err);
    if (rc == MR_OK)
        return d;
    why = *err;
    err_clear(err);
    mr_fail(err, MR_ERR_FATAL, "Could not initialize dead letter queue with topic=%.249s",
            d->topic_name);
    mr_caused_by(err, MR_ERR_FATAL, "%s", trace_write(trace, sizeof(trace), &why, NULL));
    dead_letters_close(&d);
    return NULL;
}

static void forget(struct letter *letter)
{
    letter->prev->next = letter->next;
    letter->next->prev = letter->prev;
    free(letter);
}

void dead_letters_close(struct dead_letters **letters)
{
    struct dead_letters *d = *letters;

    if (d == NULL)
        return;
    producer_free(&d->producer);
    while (d->out.next != &d->out)
        forget(d->out.next);
    free(d->topic_name);
    free(d);
    *letters = NULL;
}

/* --- one letter ------------------------------------------------------------------------------- */

/* What a letter is made of; letter_new copies it. */
struct draft {
    struct producer_record rec;
    struct producer_header *headers;
    char numbers[3][24];
    char message[sizeof(((struct mr_error *)NULL)->text)];
    char trace[TRACE_MAX];
};

static void add(struct draft *draft, const char *name, const char *text)
{
    draft->headers[draft->rec.header_count++] =
        (struct producer_header){name, text, text == NULL ? 0 : strlen(text)};
}

/* In place: values that it quotes may be no UTF-8. */
static void add_quoting(struct draft *draft, const char *name, char *text)
{
    draft->headers[draft->rec.header_count++] =
        (struct producer_header){name, text, utf8_encode(text, strlen(text))};
}

static void add_context(const struct dead_letters *d, struct draft *draft,
                        const struct failure *failure, const struct mr_error *why)
{
    const struct trace_parts parts = trace_parts(why);
    const struct record *rec = failure->rec;
    bool read = rec->from_topic != NULL;
    char place[600];

    tolerance_place(failure, place, sizeof(place));
    snprintf(draft->numbers[0], sizeof(draft->numbers[0]), "%d",
             read ? rec->from_partition : rec->pub.partition);
    snprintf(draft->numbers[1], sizeof(draft->numbers[1]), "%lld", (long long)rec->pub.offset);
    snprintf(draft->numbers[2], sizeof(draft->numbers[2]), "%d", d->spec.client.number);
    add(draft, "__connect.errors.topic", read ? rec->from_topic : rec->pub.topic);
    add(draft, "__connect.errors.partition", draft->numbers[0]);
    add(draft, "__connect.errors.offset", draft->numbers[1]);
    add(draft, "__connect.errors.connector.name", d->spec.client.connector);
    add(draft, "__connect.errors.task.id", draft->numbers[2]);
    add(draft, "__connect.errors.stage", failure->stage);
    add(draft, "__connect.errors.class.name", failure->class_name);
    draft->headers[draft->rec.header_count++] = (struct producer_header){
        "__connect.errors.exception.class.name", parts.class_name, parts.class_len};
    snprintf(draft->message, sizeof(draft->message), "%.*s", (int)parts.message_len, parts.message);
    if (why->text[0] == '\0')
        add(draft, "__connect.errors.exception.message", NULL);
    else
        add_quoting(draft, "__connect.errors.exception.message", draft->message);
    trace_write(draft->trace, sizeof(draft->trace), why, place);
    add_quoting(draft, "__connect.errors.exception.stacktrace", draft->trace);
}

/* A value that was never converted: bytes and text as they are, everything else as Java's text. */
static const void *plain(const struct record *rec, struct mr_value v, size_t *len)
{
    *len = v.len;
    if (v.kind == MR_KIND_NULL)
        return NULL;
    if (v.kind == MR_KIND_BYTES || v.kind == MR_KIND_STRING)
        return v.len == 0 ? "" : v.u.p;
    return mr_to_text(rec->batch->pub.arena, v, len);
}

static void draft_source(struct draft *draft, const struct record *rec)
{
    draft->rec.key = plain(rec, rec->pub.key, &draft->rec.key_len);
    draft->rec.value = plain(rec, rec->pub.value, &draft->rec.value_len);
    draft->rec.timestamp_ms = rec->pub.timestamp < 0 ? -1 : rec->pub.timestamp;
    for (uint32_t i = 0; i < rec->pub.header_count; i++) {
        const struct mr_header *header = mr_header_at(&rec->pub, i);
        struct producer_header *out = &draft->headers[draft->rec.header_count++];

        out->name = header->name;
        out->value = plain(rec, header->value, &out->value_len);
    }
}

static void draft_sink(struct draft *draft, const struct record *rec)
{
    draft->rec.key = rec->key_bytes;
    draft->rec.key_len = rec->key_len;
    draft->rec.value = rec->value_bytes;
    draft->rec.value_len = rec->value_len;
    draft->rec.timestamp_ms = rec->from_timestamp;
    for (uint32_t i = 0; rec->from != NULL && i < rec->from->header_count; i++) {
        struct consumer_header header = consumer_header_at(rec->from, i);

        draft->headers[draft->rec.header_count++] =
            (struct producer_header){header.name, header.value, header.value_len};
    }
    for (uint32_t i = 0; rec->from == NULL && i < rec->wire_header_count; i++)
        draft->headers[draft->rec.header_count++] = rec->wire_headers[i];
}

static size_t header_room(const struct record *rec)
{
    size_t read = rec->from != NULL ? rec->from->header_count : rec->wire_header_count;

    return CONTEXT_MAX + read + rec->pub.header_count;
}

static size_t bytes_of(const struct producer_record *rec)
{
    size_t bytes = rec->key_len + rec->value_len;

    for (size_t i = 0; i < rec->header_count; i++)
        bytes += strlen(rec->headers[i].name) + 1 + rec->headers[i].value_len;
    return bytes;
}

static const void *put(char **at, const void *data, size_t len)
{
    const void *copy = data == NULL ? NULL : memcpy(*at, data, len);

    *at += data == NULL ? 0 : len;
    return copy;
}

static struct letter *letter_new(struct dead_letters *d, const struct producer_record *rec)
{
    size_t table = rec->header_count * sizeof(*rec->headers);
    struct letter *letter = malloc(sizeof(*letter) + table + bytes_of(rec));
    struct producer_header *headers;
    char *at;

    if (letter == NULL)
        return NULL;
    headers = memcpy(letter->bytes, rec->headers, table);
    at = letter->bytes + table;
    letter->held = false;
    letter->rec = *rec;
    letter->rec.headers = headers;
    letter->rec.opaque = letter;
    letter->rec.key = put(&at, rec->key, rec->key_len);
    letter->rec.value = put(&at, rec->value, rec->value_len);
    for (size_t i = 0; i < rec->header_count; i++) {
        headers[i].name = put(&at, headers[i].name, strlen(headers[i].name) + 1);
        headers[i].value = put(&at, headers[i].value, headers[i].value_len);
    }
    letter->prev = &d->out;
    letter->next = d->out.next;
    letter->next->prev = d->out.next = letter;
    return letter;
}

/* --- on their way ----------------------------------------------------------------------------- */

/* false: for too long. text: what the brokers say. */
static bool wait_for_topic(struct dead_letters *d, const char *text)
{
    int64_t now_ms = clock_ms();

    if (d->away_ms == 0) {
        d->away_ms = now_ms;
        log_warn("%s: dead letters wait until it is there", text);
    }
    return now_ms - d->away_ms < d->timeout_ms;
}

static void come_back(struct dead_letters *d, struct letter *letter)
{
    letter->held = true;
    if (d->again_ms == 0)
        d->again_ms = clock_ms() + AWAY_MS;
}

static void on_report(void *arg, void *opaque, int code, const char *text)
{
    struct dead_letters *d = arg;

    if (code == MR_ERR_CLOSED && d->taking_back) {
        ((struct letter *)opaque)->held = true;
        return;
    }
    if (code == MR_ERR_NOT_FOUND && wait_for_topic(d, text)) {
        come_back(d, opaque);
        return;
    }
    if (code == MR_OK)
        d->away_ms = 0;
    if (code != MR_OK && d->lost.code == 0)
        mr_fail(&d->lost, MR_ERR_FATAL, "Could not write to the dead-letter topic %s: %s",
                d->topic_name, text);
    forget(opaque);
}

static int trouble(struct dead_letters *d, struct mr_error *err)
{
    bool fatal = false;
    const char *text = producer_trouble(d->producer, &fatal);

    if (d->lost.code != 0) {
        *err = d->lost;
        return err->code;
    }
    return fatal ? mr_fail(err, MR_ERR_FATAL, "Could not write to the dead-letter topic %s: %s",
                           d->topic_name, text)
                 : MR_OK;
}

static int push(struct dead_letters *d, const struct producer_record *rec, struct mr_error *err)
{
    int rc;

    while ((rc = producer_send(d->producer, rec, err)) == MR_ERR_FULL || rc == MR_ERR_NOT_FOUND) {
        bool full = rc == MR_ERR_FULL;

        if (!full && !wait_for_topic(d, err->text))
            return err->code = MR_ERR_FATAL;
        err_clear(err);
        if (full && producer_in_flight(d->producer) == 0) /* waiting would be for ever */
            return mr_fail(err, MR_ERR_TOO_LARGE, "it is larger than buffer.memory");
        if (!d->spec.wait(d->spec.arg, full ? 0 : SLICE_MS))
            return mr_fail(err, MR_ERR_CLOSED, "the task ends before a dead letter was written");
        producer_reports(d->producer, full ? SLICE_MS : 0, on_report, d);
    }
    return rc;
}

static int deliver(struct dead_letters *d, const struct producer_record *rec, struct mr_error *err)
{
    struct letter *letter;
    int rc;

    if (d->spec.carry != NULL)
        return d->spec.carry(d->spec.carrier, d->topic_name, rec, err);
    letter = letter_new(d, rec);
    if (letter == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for a dead letter");
    rc = push(d, &letter->rec, err);
    if (rc != MR_OK)
        forget(letter);
    return rc;
}

int dead_letters_send(struct dead_letters *d, const struct failure *failure,
                      const struct mr_error *why, struct mr_error *err)
{
    struct draft draft = {.rec = {.topic = d->topic, .partition = -1}};
    int rc;

    draft.headers = calloc(header_room(failure->rec), sizeof(*draft.headers));
    draft.rec.headers = draft.headers;
    mr_assert(draft.headers != NULL);
    if (failure->rec->from_topic != NULL)
        draft_sink(&draft, failure->rec);
    else
        draft_source(&draft, failure->rec);
    if (d->spec.context)
        add_context(d, &draft, failure, why);
    rc = deliver(d, &draft.rec, err);
    free(draft.headers);
    if (rc != MR_OK && rc != MR_ERR_CLOSED)
        err_prefix(err, "Could not write to the dead-letter topic %s", d->topic_name);
    return rc;
}

void dead_letters_take_back(struct dead_letters *d)
{
    if (d->producer == NULL)
        return;
    d->taking_back = true;
    producer_purge(d->producer);
    while (producer_in_flight(d->producer) > 0)
        producer_reports(d->producer, SLICE_MS, on_report, d);
    d->taking_back = false;
}

static struct letter *oldest_held(const struct dead_letters *d)
{
    struct letter *letter = d->out.prev;

    while (letter != &d->out && !letter->held)
        letter = letter->prev;
    return letter != &d->out ? letter : NULL;
}

/* The lease may be lost over it, and these be taken back: that call goes on with what this one has
 * left. */
void dead_letters_send_again(struct dead_letters *d)
{
    struct letter *letter;

    while ((letter = oldest_held(d)) != NULL) {
        struct mr_error err = {0};

        letter->held = false;
        if (push(d, &letter->rec, &err) == MR_OK)
            continue;
        if (err.code != MR_ERR_CLOSED && d->lost.code == 0)
            mr_fail(&d->lost, MR_ERR_FATAL, "Could not write to the dead-letter topic %s: %s",
                    d->topic_name, err.text);
        letter->held = err.code == MR_ERR_CLOSED;
        return;
    }
}

/* What came back, when it is time. */
static void return_letters(struct dead_letters *d)
{
    if (d->again_ms == 0 || clock_ms() < d->again_ms)
        return;
    d->again_ms = 0;
    dead_letters_send_again(d);
}

void dead_letters_drop(struct dead_letters *d)
{
    if (d->producer == NULL)
        return;
    if (d->out.next != &d->out)
        producer_purge(d->producer);
    while (producer_in_flight(d->producer) > 0)
        producer_reports(d->producer, SLICE_MS, on_report, d);
    while (d->out.next != &d->out)
        forget(d->out.next);
    d->away_ms = d->again_ms = 0;
    d->lost.code = 0;
}

static int give_up(struct dead_letters *d, struct mr_error *err)
{
    dead_letters_drop(d);
    return mr_fail(err, MR_ERR_CLOSED, "the task ends before its dead letters are written");
}

int dead_letters_settle(struct dead_letters *d, struct mr_error *err)
{
    int64_t end_ms = INT64_MAX;

    if (d->producer == NULL)
        return MR_OK;
    while (d->out.next != &d->out) {
        producer_reports(d->producer, SLICE_MS, on_report, d);
        if (trouble(d, err) != MR_OK)
            return err->code;
        if (end_ms == INT64_MAX && !d->spec.wait(d->spec.arg, 0))
            end_ms = clock_ms() + ENDING_MS;
        if (end_ms == INT64_MAX)
            return_letters(d);
        if (clock_ms() >= end_ms)
            return give_up(d, err);
    }
    return trouble(d, err);
}
