/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets of a source in its transactions: records of the same producer. Which ones: those of
 * the ack window's settled prefix, which at a boundary is everything; records that were dropped are
 * among them. Called by txn.c at each boundary; the task's thread. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "host/task/send/offset_writer.h"
#include "host/task/send/txn.h"

#include <stdlib.h>

#define LOGGER "host.task.txn"
#include "base/log.h"

#define TELL_MS 5000

struct span {
    size_t at;
    size_t len;
};

static struct span render(struct buf *out, const json_t *value)
{
    size_t at = out->len;

    json_write(out, value);
    return (struct span){at, out->len - at};
}

/* As Connect writes it: ["connector",{partition}] and {offset}. false: no memory. */
static bool render_offset(struct txn *t, const struct ack_offset *offset, struct span *key,
                          struct span *value, json_t *copies)
{
    json_t *entry = offset_writer_entry(offset);
    json_t *whole =
        entry != NULL ? json_pack("[sO]", t->task->connector, json_array_get(entry, 0)) : NULL;

    if (whole != NULL) {
        *key = render(&t->text, whole);
        *value = render(&t->text, json_array_get(entry, 1));
        if (copies != NULL)
            json_array_append(copies, entry);
    }
    json_decref(entry);
    json_decref(whole);
    return whole != NULL;
}

static void on_offset(void *arg, void *opaque, int code, const char *text)
{
    struct txn *t = arg;

    (void)opaque;
    if (code != 0 && t->refused.code == 0)
        mr_fail(&t->refused,
                code == MR_ERR_CLOSED || code == MR_ERR_NOT_FOUND || code == MR_ERR_RETRY
                    ? MR_ERR_STATE
                    : MR_ERR_FATAL,
                "source offsets could not be written: %s", text);
}

static int wait_for_offsets(struct txn *t, struct mr_error *err)
{
    int rc = txn_wait(t, err);

    producer_reports(t->sender->producer, 0, on_offset, t);
    return rc;
}

static int above_memory(const struct txn *t, const struct producer_record *rec,
                        struct mr_error *err)
{
    const char *limit = props_get(&t->sender->java, "buffer.memory");

    return mr_fail(err, MR_ERR_TOO_LARGE,
                   "A source offset, with a key of %zu and a value of %zu bytes, is larger than "
                   "buffer.memory, which is %.20s",
                   rec->key_len, rec->value_len, limit != NULL ? limit : "33554432");
}

/* Into a full producer when what is under way has made room. */
static int send_offset(struct txn *t, const struct producer_record *rec, struct mr_error *err)
{
    struct producer *producer = t->sender->producer;
    int rc;

    while ((rc = producer_send(producer, rec, err)) == MR_ERR_FULL) {
        err_clear(err);
        if (producer_in_flight(producer) == 0)
            return above_memory(t, rec, err);
        rc = wait_for_offsets(t, err);
        if (rc != 0)
            return rc;
    }
    if (rc == MR_ERR_NOT_FOUND) /* its topic is away: begun anew, as with records */
        err->code = rc = MR_ERR_STATE;
    return rc;
}

static int send_portion(struct txn *t, size_t count, struct mr_error *err)
{
    struct span(*spans)[2] = calloc(count, sizeof(*spans));
    json_t *copies = t->copies != NULL ? json_array() : NULL;
    bool rendered = spans != NULL;
    int rc = 0;

    buf_reset(&t->text);
    for (size_t i = 0; rendered && i < count; i++)
        rendered = render_offset(t, &t->portion[i], &spans[i][0], &spans[i][1], copies);
    if (copies != NULL)
        json_array_append_new(t->copies, copies);
    if (!rendered)
        rc = mr_fail(err, MR_ERR_NOMEM, "out of memory for source offsets");
    else if (t->text.failed)
        rc = mr_fail(err, MR_ERR_TOO_LARGE, "source offsets are too large to be stored");
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct producer_record rec = {.topic = t->handle,
                                      .partition = -1,
                                      .timestamp_ms = -1,
                                      .key = t->text.data + spans[i][0].at,
                                      .key_len = spans[i][0].len,
                                      .value = t->text.data + spans[i][1].at,
                                      .value_len = spans[i][1].len};

        rc = send_offset(t, &rec, err);
    }
    free(spans);
    return rc;
}

/* librdkafka says nothing while brokers do not know a topic that is to be part of a transaction. */
static void tell_of_wait(const struct txn *t, int64_t *told_ms)
{
    if (clock_ms() - *told_ms < TELL_MS)
        return;
    *told_ms = clock_ms();
    log_warn("waits for the brokers to take source offsets into topic %s; the transaction is given "
             "up after its transaction.timeout.ms",
             t->topic);
}

static int drain_offsets(struct txn *t, struct mr_error *err)
{
    int64_t told_ms = clock_ms();
    int rc = 0;

    while (rc == 0 && producer_in_flight(t->sender->producer) > 0) {
        rc = wait_for_offsets(t, err);
        tell_of_wait(t, &told_ms);
    }
    if (rc == 0 && t->refused.code != 0)
        rc = mr_fail(err, t->refused.code, "%s", t->refused.text);
    return rc;
}

int txn_offsets_send(struct txn *t, void *arg, struct mr_error *err)
{
    size_t count;
    int rc = 0;

    (void)arg;
    json_array_clear(t->copies);
    if (t->handle == NULL)
        t->handle = producer_topic(t->sender->producer, t->topic, err);
    if (t->handle == NULL)
        return err->code;
    while (rc == 0 &&
           (count = ack_window_take(t->sender->window, t->portion, OFFSET_WRITER_PORTION)) > 0) {
        rc = txn_begin(t, t->topic, err);
        CRASH_POINT(TXN_OFFSETS);
        if (rc == 0)
            rc = send_portion(t, count, err);
        CRASH_POINT(TXN_OFFSETS_SENT);
        if (rc == 0)
            rc = drain_offsets(t, err);
        CRASH_POINT(TXN_OFFSETS_DELIVERED);
    }
    return rc;
}

json_t *txn_offsets_next_copy(struct txn *t)
{
    json_t *portion = json_incref(json_array_get(t->copies, 0));

    json_array_remove(t->copies, 0);
    return portion;
}
