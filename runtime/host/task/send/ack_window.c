/* SPDX-License-Identifier: Apache-2.0 */
/* The ack window of a source task: a queue of batches and a frontier inside the first.
 *
 * source_task pushes each batch before it sends from it, settles records as their delivery reports
 * arrive (in any order), and advances the frontier after each walk of reports. There is no ring of
 * its own to grow: the records are the ring, and the pool's budget bounds them. A batch is kept
 * until the frontier has passed it, also when all of its records are settled, so that everything
 * from the first unsettled record on can be sent again in order.
 *
 * Committable offsets stand in a table by the partition's index; `fresh` chains those that were not
 * taken yet. Thread: the task's. */
#include "host/task/send/ack_window.h"

#include <stdlib.h>

#define FIRST_SLOTS 16
#define NONE SIZE_MAX

struct slot {
    struct ack_offset offset; /* partition NULL: never used */
    size_t next_fresh;        /* index, NONE at the end; valid while fresh */
    bool fresh;
};

struct ack_window {
    struct batch *head;
    struct batch *tail;
    size_t at;          /* records of head behind the frontier */
    struct slot *slots; /* by mr_source_partition.index */
    size_t slot_count;
    size_t first_fresh;
    size_t last_fresh;
    size_t fresh_count;
};

struct ack_window *ack_window_new(void)
{
    struct ack_window *w = calloc(1, sizeof(*w));

    mr_assert(w != NULL);
    w->first_fresh = NONE;
    w->last_fresh = NONE;
    return w;
}

static void pop_head(struct ack_window *w)
{
    struct batch *batch = w->head;

    w->head = batch->next;
    if (w->head == NULL)
        w->tail = NULL;
    w->at = 0;
    batch_pool_give(batch->pool, batch);
}

void ack_window_free(struct ack_window **w)
{
    if (*w == NULL)
        return;
    while ((*w)->head != NULL)
        pop_head(*w);
    free((*w)->slots);
    free(*w);
    *w = NULL;
}

void ack_window_push(struct ack_window *w, struct batch *batch)
{
    batch->next = NULL;
    batch->unsettled = batch->pub.count;
    for (size_t i = 0; i < batch->pub.count; i++)
        batch_at(batch, i)->settled = false;
    if (w->tail != NULL)
        w->tail->next = batch;
    else
        w->head = batch;
    w->tail = batch;
}

/* The partition's slot, made if need be. */
static struct slot *slot_get(struct ack_window *w, size_t index)
{
    size_t count = w->slot_count == 0 ? FIRST_SLOTS : w->slot_count;
    struct slot *slots;

    if (index < w->slot_count)
        return &w->slots[index];
    while (count <= index)
        count *= 2;
    slots = realloc(w->slots, count * sizeof(*slots));
    if (slots == NULL)
        return NULL;
    memset(slots + w->slot_count, 0, (count - w->slot_count) * sizeof(*slots));
    w->slots = slots;
    w->slot_count = count;
    return &slots[index];
}

static void slot_chain(struct ack_window *w, struct slot *slot)
{
    size_t index = (size_t)(slot - w->slots);

    slot->fresh = true;
    slot->next_fresh = NONE;
    if (w->last_fresh == NONE)
        w->first_fresh = index;
    else
        w->slots[w->last_fresh].next_fresh = index;
    w->last_fresh = index;
    w->fresh_count++;
}

static bool note_offset(struct ack_window *w, const struct record *rec)
{
    struct slot *slot = slot_get(w, rec->partition->index);

    if (slot == NULL)
        return false;
    slot->offset = (struct ack_offset){rec->partition, rec->offset_key, rec->offset_next};
    if (!slot->fresh)
        slot_chain(w, slot);
    return true;
}

/* Move over the settled records of the first batch. Of a run with one partition only the last
 * offset counts. */
static bool advance_in_head(struct ack_window *w)
{
    const struct record *last = NULL;
    size_t count = w->head->pub.count;
    size_t i = w->at;

    for (; i < count; i++) {
        const struct record *rec = batch_at(w->head, i);

        if (!rec->settled)
            break;
        if (rec->partition == NULL)
            continue;
        if (last != NULL && last->partition != rec->partition && !note_offset(w, last))
            return false;
        last = rec;
    }
    if (last != NULL && !note_offset(w, last))
        return false;
    w->at = i;
    return true;
}

int ack_window_advance(struct ack_window *w, struct mr_error *err)
{
    while (w->head != NULL) {
        if (!advance_in_head(w))
            return mr_fail(err, MR_ERR_NOMEM, "out of memory for the offsets of source partitions");
        if (w->at < w->head->pub.count)
            return MR_OK;
        pop_head(w);
    }
    return MR_OK;
}

size_t ack_window_take(struct ack_window *w, struct ack_offset *out, size_t max)
{
    size_t n = 0;

    while (n < max && w->first_fresh != NONE) {
        struct slot *slot = &w->slots[w->first_fresh];

        out[n++] = slot->offset;
        slot->fresh = false;
        w->first_fresh = slot->next_fresh;
        w->fresh_count--;
    }
    if (w->first_fresh == NONE)
        w->last_fresh = NONE;
    return n;
}

void ack_window_put_back(struct ack_window *w, const struct ack_offset *offset)
{
    struct slot *slot = &w->slots[offset->partition->index];

    if (slot->fresh)
        return; /* a newer one came meanwhile */
    slot->offset = *offset;
    slot_chain(w, slot);
}

size_t ack_window_committable(const struct ack_window *w)
{
    return w->fresh_count;
}

bool ack_window_empty(const struct ack_window *w)
{
    return w->head == NULL;
}

size_t ack_window_unsettled(const struct ack_window *w)
{
    size_t n = 0;

    for (const struct batch *batch = w->head; batch != NULL; batch = batch->next)
        n += batch->unsettled;
    return n;
}

static void cursor_settle(struct ack_cursor *at)
{
    while (at->batch != NULL && at->i >= at->batch->pub.count) {
        at->batch = at->batch->next;
        at->i = 0;
    }
}

struct ack_cursor ack_window_first(const struct ack_window *w)
{
    struct ack_cursor at = {w->head, w->at};

    cursor_settle(&at);
    return at;
}

void ack_cursor_next(struct ack_cursor *at)
{
    at->i++;
    cursor_settle(at);
}
