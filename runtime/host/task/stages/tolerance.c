/* SPDX-License-Identifier: Apache-2.0 */
/* errors.*: called by the pipeline for what a stage refused, by the sink loop for what put refused,
 * and by the sender for what a topic can't take. A skipped record counts as done, so its offset is
 * stored in order with the others. Without errors.log.enable the log says so at once and then only
 * now and then, since a topic full of bad records must not fill a disk. Thread: the task's. */
#include "host/task/stages/tolerance.h"

#include "base/clock.h"
#include "host/task/stages/dead_letters.h"
#include "host/trace.h"
#include "kafka/consumer.h"
#include "model/conn_config.h"

#include <stdlib.h>
#include <string.h>

#define LOGGER "host.task.tolerance"
#include "base/log.h"

#define FIRST_DELAY_MS 300
#define SHOWN_MAX 300 /* bytes of a key or value in the log */

int tolerance_init(struct tolerance *t, const struct props *config, struct mr_error *err)
{
    static const char *const keys[] = {"errors.tolerance", "errors.log.enable",
                                       "errors.log.include.messages", "errors.retry.timeout",
                                       "errors.retry.delay.max.ms"};
    struct config_value values[5] = {{0}};
    int rc = MR_OK;

    for (size_t i = 0; rc == MR_OK && i < 5; i++)
        rc = conn_config_get(keys[i], config, &values[i], err);
    *t = (struct tolerance){.all = rc == MR_OK && strcmp(values[0].text, "all") == 0,
                            .log = values[1].i != 0,
                            .log_records = values[2].i != 0,
                            .retry_ms = values[3].i,
                            .retry_delay_ms = values[4].i};
    for (size_t i = 0; i < 5; i++)
        config_value_deinit(&values[i]);
    return rc;
}

int64_t tolerance_retry_in(const struct tolerance *t, int64_t since_ms, unsigned tries,
                           int64_t now_ms)
{
    int64_t delay = tries <= 30 ? (int64_t)FIRST_DELAY_MS << (tries - 1) : INT64_MAX;
    int64_t left = t->retry_ms < 0 ? INT64_MAX : t->retry_ms - (now_ms - since_ms);

    if (left <= 0)
        return -1;
    if (delay > t->retry_delay_ms)
        delay = t->retry_delay_ms <= 0 ? 0 : random() % t->retry_delay_ms;
    return delay < left ? delay : left;
}

static bool from_topic(const struct record *rec)
{
    return rec->from_topic != NULL;
}

void tolerance_place(const struct failure *failure, char *out, size_t size)
{
    const struct record *rec = failure->rec;

    if (from_topic(rec))
        snprintf(out, size, "%s of %.200s, record %.249s-%d@%lld", failure->stage,
                 failure->class_name, rec->from_topic, rec->from_partition,
                 (long long)rec->pub.offset);
    else
        snprintf(out, size, "%s of %.200s, a record for topic %.249s", failure->stage,
                 failure->class_name, rec->pub.topic);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void show_text(const struct record *rec, struct mr_value v, char *out, size_t size)
{
    size_t len;
    const char *text = mr_to_text(rec->batch->pub.arena, v, &len);

    snprintf(out, size, "%.*s%s", (int)(len < SHOWN_MAX ? len : SHOWN_MAX), text,
             len > SHOWN_MAX ? "…" : "");
}

/* Connect's words after the class, up to the full stop. */
static void show_record(const struct record *rec, char *out, size_t size)
{
    char key[SHOWN_MAX + 8], value[SHOWN_MAX + 8];

    if (from_topic(rec)) {
        const char *type = rec->from != NULL ? consumer_timestamp_type(rec->from) : NULL;
        int n = snprintf(out, size,
                         ", where consumed record is {topic='%.249s', partition=%d, offset=%lld",
                         rec->from_topic, rec->from_partition, (long long)rec->pub.offset);

        if (rec->from_timestamp >= 0)
            n += snprintf(out + n, size - (size_t)n, ", timestamp=%lld%s%s",
                          (long long)rec->from_timestamp, type != NULL ? ", timestampType=" : "",
                          type != NULL ? type : "");
        snprintf(out + n, size - (size_t)n, "}");
        return;
    }
    show_text(rec, rec->pub.key, key, sizeof(key));
    show_text(rec, rec->pub.value, value, sizeof(value));
    snprintf(out, size, ", where source record is = {topic='%.249s', key=%s, value=%s}",
             rec->pub.topic, key, value);
}

static void log_failure(const struct tolerance *t, const struct failure *failure,
                        const struct mr_error *err)
{
    char record[1024] = "", trace[TRACE_MAX];

    if (t->log_records)
        show_record(failure->rec, record, sizeof(record));
    log_error("Error encountered in task %s-%d. Executing stage '%s' with class '%s'%s.: %s",
              t->connector, t->task, failure->stage, failure->class_name, record,
              trace_write(trace, sizeof(trace), err, NULL));
}

static void tell_skipped(struct tolerance *t, const struct mr_error *err, const char *where)
{
    int64_t now_ms = clock_ms();

    t->skipped++;
    if (t->log || (t->logged > 0 && now_ms < t->next_log_ms))
        return;
    log_warn("skipped %llu record%s by errors.tolerance=all; this one: %s: %s",
             (unsigned long long)(t->skipped - t->logged), t->skipped - t->logged == 1 ? "" : "s",
             where, err->text);
    t->logged = t->skipped;
    t->next_log_ms = now_ms + TOLERANCE_LOG_MS;
}

bool tolerance_skips(struct tolerance *t, const struct failure *failure, struct mr_error *err)
{
    struct mr_error cause = *err, unsent = {0};
    char where[600], trace[TRACE_MAX];

    tolerance_place(failure, where, sizeof(where));
    if (t->log)
        log_failure(t, failure, err);
    if (t->dead != NULL && dead_letters_send(t->dead, failure, err, &unsent) != MR_OK) {
        *err = unsent;
        return false;
    }
    err_clear(err);
    if (t->all) {
        tell_skipped(t, &cause, where);
        return true;
    }
    /* The task ends, and with it what its letter is sent by. */
    if (t->dead != NULL && dead_letters_settle(t->dead, &unsent) != MR_OK) {
        *err = unsent;
        return false;
    }
    mr_fail(err, MR_ERR_FATAL, "Tolerance exceeded in error handler");
    mr_caused_by(err, MR_ERR_FATAL, "%s", trace_write(trace, sizeof(trace), &cause, where));
    return false;
}
