/* SPDX-License-Identifier: Apache-2.0 */
/* From committable offsets to requests to the worker's store.
 *
 * source_task flushes every offset.flush.interval.ms and on pause, source_end at its end. Only one
 * request is out at a time, so an older offset can never be stored over a newer one. What was taken
 * from the window and is refused goes back there. The JSON of an offset is made here, per flush and
 * not per record. Thread: the task's.
 * Spec: org.apache.kafka.connect.runtime.SourceTaskOffsetCommitter, storage.OffsetStorageWriter. */
#include "host/task/send/offset_writer.h"

#include "base/crash_point.h"

#include <stdlib.h>

#define LOGGER "host.task.offset_writer"
#include "base/log.h"

void offset_writer_init(struct offset_writer *w, struct ack_window *window, offset_writer_put put,
                        void *arg, int64_t interval_ms, int64_t timeout_ms, int64_t now_ms)
{
    *w = (struct offset_writer){.window = window,
                                .put = put,
                                .arg = arg,
                                .interval_ms = interval_ms,
                                .timeout_ms = timeout_ms,
                                .due_ms = now_ms + interval_ms};
    w->taken = calloc(OFFSET_WRITER_PORTION, sizeof(*w->taken));
    mr_assert(w->taken != NULL);
}

void offset_writer_deinit(struct offset_writer *w)
{
    free(w->taken);
    w->taken = NULL;
}

/* {key: value}, or NULL when memory is short. value is taken, and may be NULL for that reason. */
static json_t *pair_of(const char *key, json_t *value)
{
    json_t *object = json_object();

    if (object == NULL || value == NULL || json_object_set_new(object, key, value) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *offset_writer_entry(const struct ack_offset *offset)
{
    const struct mr_source_partition *part = offset->partition;
    json_t *partition =
        pair_of(part->key, part->value == NULL ? json_null() : json_string(part->value));
    json_t *value = pair_of(offset->key, json_integer(offset->next));
    json_t *entry = json_array();

    if (partition != NULL && value != NULL && entry != NULL) {
        json_array_append(entry, partition);
        json_array_append(entry, value);
    }
    json_decref(partition);
    json_decref(value);
    if (json_array_size(entry) == 2)
        return entry;
    json_decref(entry);
    return NULL;
}

/* NULL: no memory for all of them. Their names are UTF-8: record_arena refuses others. */
static json_t *entries_of(const struct offset_writer *w)
{
    json_t *entries = json_array();

    for (size_t i = 0; i < w->taken_count; i++) {
        if (json_array_append_new(entries, offset_writer_entry(&w->taken[i])) == 0)
            continue;
        json_decref(entries);
        return NULL;
    }
    return entries;
}

static void put_back(struct offset_writer *w)
{
    for (size_t i = 0; i < w->taken_count; i++)
        ack_window_put_back(w->window, &w->taken[i]);
    w->taken_count = 0;
    w->putting = false;
    w->left = 0;
}

/* At most, as JSON: a byte may become \u0000. */
static size_t text_bytes(const struct ack_offset *offset)
{
    const struct mr_source_partition *part = offset->partition;
    size_t bytes =
        strlen(part->key) + strlen(offset->key) + (part->value != NULL ? strlen(part->value) : 0);

    return 6 * bytes + 64;
}

/* The next offsets that one request carries: so many, and of so much text, but one at least. */
static void take_portion(struct offset_writer *w)
{
    size_t portion = w->left < OFFSET_WRITER_PORTION ? w->left : OFFSET_WRITER_PORTION;
    size_t bytes = 0;

    w->taken_count = 0;
    while (w->taken_count < portion && bytes < OFFSET_WRITER_BYTES &&
           ack_window_take(w->window, &w->taken[w->taken_count], 1) == 1)
        bytes += text_bytes(&w->taken[w->taken_count++]);
    w->left =
        w->taken_count < portion && bytes < OFFSET_WRITER_BYTES ? 0 : w->left - w->taken_count;
}

/* Send the next portion of what is left of the flush. The window gives the oldest first, so a busy
 * source adds nothing to a flush under way. */
static void pump(struct offset_writer *w, int64_t now_ms)
{
    json_t *entries;

    take_portion(w);
    if (w->taken_count == 0)
        return;
    w->putting = true;
    w->late = false;
    w->sent_ms = now_ms;
    entries = entries_of(w);
    CRASH_POINT(OFFSETS);
    w->id = entries == NULL ? -1 : w->put(w->arg, entries);
    if (w->id >= 0)
        return;
    log_warn("offsets of %zu source partitions could not be handed to the worker; they stay for "
             "the next flush",
             w->taken_count);
    put_back(w);
}

void offset_writer_flush(struct offset_writer *w, int64_t now_ms)
{
    w->due_ms = now_ms + w->interval_ms;
    w->left = ack_window_committable(w->window);
    if (!w->putting)
        pump(w, now_ms);
}

void offset_writer_tick(struct offset_writer *w, int64_t now_ms)
{
    if (w->putting && !w->late && now_ms >= w->sent_ms + w->timeout_ms) {
        log_warn("source offsets are not stored after %lld ms; still waiting for the worker",
                 (long long)w->timeout_ms);
        w->late = true;
    }
    if (now_ms < w->due_ms)
        return;
    if (w->putting)
        w->due_ms = now_ms + w->interval_ms; /* as in Java: the one under way ends first */
    else
        offset_writer_flush(w, now_ms);
}

int64_t offset_writer_due_ms(const struct offset_writer *w)
{
    if (w->putting && !w->late)
        return w->sent_ms + w->timeout_ms < w->due_ms ? w->sent_ms + w->timeout_ms : w->due_ms;
    return w->putting || ack_window_committable(w->window) > 0 || !ack_window_empty(w->window)
               ? w->due_ms
               : INT64_MAX;
}

bool offset_writer_answer(struct offset_writer *w, int64_t id, const char *error, int64_t now_ms)
{
    if (!w->putting || id != w->id)
        return false;
    if (error[0] != '\0') {
        log_warn("source offsets were not stored: %s; they stay for the next flush", error);
        put_back(w);
        return false;
    }
    CRASH_POINT(OFFSETS_STORED);
    w->putting = false;
    w->taken_count = 0;
    if (w->left == 0)
        return true;
    pump(w, now_ms);
    return false;
}

bool offset_writer_busy(const struct offset_writer *w)
{
    return w->putting;
}
