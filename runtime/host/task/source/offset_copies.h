/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets that stand in the connector's own topic, on their way to the worker's store as well: one
 * request at a time, of what came meanwhile the newest. Nothing waits for them, and they may fail:
 * then they go once more, with the next ones.
 * Owner: the task's thread.
 *
 *   IDLE ─add─► OUT ─answered, more came─► OUT
 *    ▲           └─answered─┐
 *    └──────────────────────┘ */
#ifndef HOST_OFFSET_COPIES_H
#define HOST_OFFSET_COPIES_H

#include "host/task/send/offset_writer.h"

struct offset_copies {
    offset_writer_put put; /* a negative id: not now */
    void *arg;
    json_t *waiting; /* {"[partition, key]": entry}, the oldest first */
    json_t *sent;    /* a copy of what the last request had; NULL: it is over, or no memory */
    bool out;        /* a request is: id is valid */
    int64_t id;
    bool refused; /* the last one was, and the log says so */
};

void offset_copies_init(struct offset_copies *c, offset_writer_put put, void *arg);
void offset_copies_deinit(struct offset_copies *c);

/* entries: [[partition, {key: value}], …] as of offset_writer_entry, taken. */
void offset_copies_add(struct offset_copies *c, json_t *entries);
/* The worker's answer; false: to another question. topic: the connector's own, for the log. */
bool offset_copies_answer(struct offset_copies *c, int64_t id, const char *error,
                          const char *topic);
/* The task ends: all that waits is handed over, whatever is out. */
void offset_copies_end(struct offset_copies *c);

#endif
