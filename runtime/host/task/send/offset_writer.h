/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the committable offsets of a source task through the worker: one request at a time, in
 * portions.
 * Owner: the task's thread.
 *
 *   IDLE ─flush─► PUTTING ─stored, more of what was there at the flush─► PUTTING
 *    ▲               ├─stored, that was all─► IDLE (flush done: the plugin is told)
 *    └───────────────┴─refused─► IDLE (the offsets are committable again; next time)
 */
#ifndef HOST_OFFSET_WRITER_H
#define HOST_OFFSET_WRITER_H

#include "base/json.h"
#include "host/task/send/ack_window.h"

#define OFFSET_WRITER_PORTION 500 /* offsets in one request, so that a frame stays small */
#define OFFSET_WRITER_BYTES ((size_t)1 << 20) /* of their text: none is added behind it */

/* Hands entries (taken; [[partition object, offset object], ...]) to the worker. Gives the
 * request's id, or a negative value when it can't be sent. */
typedef int64_t (*offset_writer_put)(void *arg, json_t *entries);

/* [{key: value}, {key: next}], a new reference; NULL: no memory. */
json_t *offset_writer_entry(const struct ack_offset *offset);

struct offset_writer {
    struct ack_window *window;
    offset_writer_put put;
    void *arg;
    int64_t interval_ms;
    int64_t timeout_ms;
    int64_t due_ms; /* of the next flush */
    size_t left;    /* offsets that the flush under way has still to take */
    bool putting;   /* a request is out: id, sent_ms, taken are valid */
    bool late;      /* that it takes long was logged */
    int64_t id;
    int64_t sent_ms;
    size_t taken_count;
    struct ack_offset *taken;
};

/* Aborts out of memory. interval_ms, timeout_ms: the worker's offset.flush.interval.ms and
 * offset.flush.timeout.ms. */
void offset_writer_init(struct offset_writer *w, struct ack_window *window, offset_writer_put put,
                        void *arg, int64_t interval_ms, int64_t timeout_ms, int64_t now_ms);
void offset_writer_deinit(struct offset_writer *w);

/* Begin to store what is committable now, and only that; a flush under way takes it along. */
void offset_writer_flush(struct offset_writer *w, int64_t now_ms);
/* Begin one when it is due and none is under way; logs when an answer takes long. */
void offset_writer_tick(struct offset_writer *w, int64_t now_ms);
/* When tick has something to do: monotonic ms, INT64_MAX = nothing until something becomes
 * committable. */
int64_t offset_writer_due_ms(const struct offset_writer *w);
/* The worker's answer; ids of others are passed over. error "" = stored. Gives true when a flush is
 * done. */
bool offset_writer_answer(struct offset_writer *w, int64_t id, const char *error, int64_t now_ms);
bool offset_writer_busy(const struct offset_writer *w); /* an answer is awaited */

#endif
