/* SPDX-License-Identifier: Apache-2.0 */
/* Which source offsets may be stored: records in the order in which the plugin handed them over,
 * and the prefix of them that is settled. Pure; one owner.
 *
 * Settled means that no delivery report is awaited any more and the offset may be stored:
 * delivered, or dropped by a transform or by tolerance. A record that failed is never settled, so
 * nothing behind it is ever stored (promise 1).
 *
 *   batches:   [ s s s s s ] [ s s . s . . ] [ . . s . ]       s = settled
 *                             └ head           └ tail
 *   frontier:  ──────────────────▲  offsets up to here may be stored, the first batch given back
 */
#ifndef HOST_ACK_WINDOW_H
#define HOST_ACK_WINDOW_H

#include "host/data/record_arena.h"

struct ack_window;

/* The newest committable offset of one partition. */
struct ack_offset {
    const struct mr_source_partition *partition;
    const char *key;
    int64_t next;
};

/* A place in the window. */
struct ack_cursor {
    struct batch *batch; /* NULL: behind the last record */
    size_t i;
};

struct ack_window *ack_window_new(void); /* aborts out of memory */
/* Gives what is left back to the batches' pools: only when nothing references their memory any
 * more. */
void ack_window_free(struct ack_window **w);

/* Append a batch (taken) before its first record is sent. Sets batch->unsettled and each record's
 * `settled`. */
void ack_window_push(struct ack_window *w, struct batch *batch);

/* Once for each record of a batch that was pushed; more often does no harm. */
static inline void ack_window_settle(struct record *rec)
{
    if (!rec->settled) {
        rec->settled = true;
        rec->batch->unsettled--;
    }
}

/* Move the frontier over what is settled and give back the batches behind it. MR_ERR_NOMEM: nothing
 * is lost, call again. */
int ack_window_advance(struct ack_window *w, struct mr_error *err);

/* Take up to max committable offsets that were not taken yet: one a partition, the newest. Gives
 * their number. */
size_t ack_window_take(struct ack_window *w, struct ack_offset *out, size_t max);
/* An offset taken before could not be stored: it is committable again, unless a newer one is by
 * now. */
void ack_window_put_back(struct ack_window *w, const struct ack_offset *offset);
size_t ack_window_committable(const struct ack_window *w); /* how many ack_window_take would give */

bool ack_window_empty(const struct ack_window *w); /* everything pushed is behind the frontier */
/* Records; counts, so not for each record. */
size_t ack_window_unsettled(const struct ack_window *w);

/* Walk from the first record that is not behind the frontier. */
struct ack_cursor ack_window_first(const struct ack_window *w);
static inline struct record *ack_cursor_record(const struct ack_cursor *at)
{
    return batch_at(at->batch, at->i);
}
void ack_cursor_next(struct ack_cursor *at);

#endif
