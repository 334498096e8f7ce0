/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks change state in bursts, and brokers may be away: so each key (connector, task, topic) has
 * one slip, which holds the newest record that is to be written. While a write of the key is under
 * way the next waits, so the topic sees them in order; what was replaced meanwhile is never
 * written. At most FLIGHT writes are under way.
 *
 *   put ─► slip, in the queue ─► send ─► (sent) ─► gone
 *                  ▲                        └─ newer record, or retry after a second ─┐
 *                  └──────────────────────────────────────────────────────────────────┘
 *
 * Safe records are judged right before each send, and every record before a retry: by then another
 * worker may own the task. So is a tombstone, which takes away what stood there when it was asked
 * for: meanwhile a connector may have come again under its name, and run. Memory is bounded by the
 * number of keys. */
#include "worker/store/status_desk.h"

#include "base/crash_point.h"
#include "base/map.h"
#include "base/utf8.h"

#define LOGGER "worker.store"
#include "base/log.h"

#define FLIGHT 256
#define RETRY_MS 1000
#define KEY_MAX ((size_t)64 << 20)    /* names that others wrote, too: as long as a record may be */
#define TRACE_MAX ((size_t)512 << 10) /* a record must fit into a request */

struct status_slip {
    char *key;
    struct status_slip *next; /* in the queue */
    bool queued;
    bool in_flight;
    bool waiting; /* rec is to be written */
    bool safe;
    struct status_record rec;
    struct status_record sent; /* under way: back into rec if it must be tried again */
};

struct status_desk {
    struct loop *loop;
    const struct status_state *state;
    status_desk_send send;
    void *arg;
    struct map *slips; /* key → slip */
    struct status_slip *first;
    struct status_slip *last;
    size_t in_flight;
    bool flushing;
    size_t lost;         /* that the flush could not write, */
    struct mr_error why; /* for this reason first */
    struct loop_timer retry;
};

static void free_slip(void *arg)
{
    struct status_slip *slip = arg;

    status_record_deinit(&slip->rec);
    status_record_deinit(&slip->sent);
    free(slip->key);
    free(slip);
}

struct status_desk *status_desk_new(struct loop *loop, const struct status_state *state,
                                    status_desk_send send, void *arg)
{
    struct status_desk *desk = calloc(1, sizeof(*desk));

    mr_assert(desk != NULL);
    desk->loop = loop;
    desk->state = state;
    desk->send = send;
    desk->arg = arg;
    desk->slips = map_new();
    return desk;
}

void status_desk_free(struct status_desk **desk)
{
    if (*desk == NULL)
        return;
    loop_timer_cancel(&(*desk)->retry);
    map_free(&(*desk)->slips, free_slip);
    free(*desk);
    *desk = NULL;
}

static void drop(struct status_desk *desk, struct status_slip *slip)
{
    map_remove(desk->slips, slip->key);
    free_slip(slip);
}

static void enqueue(struct status_desk *desk, struct status_slip *slip)
{
    if (slip->queued || slip->in_flight)
        return;
    slip->queued = true;
    slip->next = NULL;
    *(desk->last != NULL ? &desk->last->next : &desk->first) = slip;
    desk->last = slip;
}

static struct status_slip *dequeue(struct status_desk *desk)
{
    struct status_slip *slip = desk->first;

    desk->first = slip->next;
    if (desk->first == NULL)
        desk->last = NULL;
    slip->queued = false;
    return slip;
}

/* Is it still to be written? */
static bool wanted(const struct status_desk *desk, const struct status_slip *slip)
{
    if (!slip->waiting)
        return false;
    return !slip->safe || slip->rec.kind == STATUS_TOPIC ||
           status_state_may_put(desk->state, &slip->rec);
}

static void send_slip(struct status_desk *desk, struct status_slip *slip)
{
    slip->waiting = false;
    slip->in_flight = true;
    desk->in_flight++;
    status_record_deinit(&slip->sent);
    slip->sent = slip->rec;
    slip->rec = (struct status_record){0};
    CRASH_POINT(STATUS);
    desk->send(desk->arg, slip, &slip->sent);
}

static void serve(struct status_desk *desk)
{
    while (desk->first != NULL && (desk->in_flight < FLIGHT || desk->flushing)) {
        struct status_slip *slip = dequeue(desk);

        if (wanted(desk, slip))
            send_slip(desk, slip);
        else
            drop(desk, slip);
    }
}

/* --- asking ----------------------------------------------------------------------------------- */

static struct status_slip *slip_of(struct status_desk *desk, const struct status_record *rec)
{
    struct status_record name = {.kind = rec->kind,
                                 .tombstone = true,
                                 .conn = rec->conn,
                                 .task = rec->task,
                                 .topic = rec->topic};
    struct status_slip *slip;
    struct buf key, none;

    buf_init(&key, KEY_MAX);
    buf_init(&none, 1);
    mr_assert(status_records_render(&name, &key, &none) == 0);
    slip = map_get(desk->slips, key.data);
    if (slip == NULL) {
        slip = calloc(1, sizeof(*slip));
        mr_assert(slip != NULL);
        slip->key = buf_take(&key);
        map_set(desk->slips, slip->key, slip);
    }
    buf_deinit(&key);
    buf_deinit(&none);
    return slip;
}

static void cut_trace(struct status *status)
{
    if (status->trace != NULL && strlen(status->trace) > TRACE_MAX)
        status->trace[utf8_prefix(status->trace, TRACE_MAX)] = '\0';
}

void status_desk_put(struct status_desk *desk, struct status_record *rec, bool safe)
{
    struct status_slip *slip = slip_of(desk, rec);

    status_record_deinit(&slip->rec);
    slip->rec = *rec;
    *rec = (struct status_record){0};
    cut_trace(&slip->rec.status);
    if (slip->rec.tombstone && slip->rec.kind != STATUS_TOPIC)
        slip->rec.status.generation = status_state_generation(desk->state, &slip->rec);
    slip->safe = safe;
    slip->waiting = true;
    enqueue(desk, slip);
    serve(desk);
}

/* --- what became of it ------------------------------------------------------------------------ */

static void on_retry(void *arg)
{
    struct status_desk *desk = arg;
    const char *key;
    void *slip;

    for (size_t i = 0; map_next(desk->slips, &i, &key, &slip);)
        if (((struct status_slip *)slip)->waiting)
            enqueue(desk, slip);
    serve(desk);
}

static bool passing(const struct mr_error *err)
{
    return err->code == MR_ERR_RETRY || err->code == MR_ERR_TIMEOUT || err->code == MR_ERR_FULL;
}

/* Unless something newer waits, what failed waits again. */
static void keep(struct status_desk *desk, struct status_slip *slip)
{
    if (!slip->waiting) {
        slip->rec = slip->sent;
        slip->sent = (struct status_record){0};
        slip->waiting = true;
        slip->safe = true;
    }
    if (desk->retry.slot == 0)
        loop_timer_start(desk->loop, &desk->retry, RETRY_MS, on_retry, desk);
}

static void count_lost(struct status_desk *desk, const struct mr_error *err)
{
    if (desk->lost++ == 0)
        desk->why = *err;
}

void status_desk_sent(struct status_desk *desk, struct status_slip *slip,
                      const struct mr_error *err)
{
    CRASH_POINT(STATUS_WRITTEN);
    if (err != NULL && desk->flushing)
        count_lost(desk, err);
    if (slip == NULL)
        return;
    slip->in_flight = false;
    desk->in_flight--;
    if (err != NULL && passing(err) && !desk->flushing) {
        keep(desk, slip);
        serve(desk);
        return;
    }
    if (err != NULL && !passing(err) && err->code != MR_ERR_CLOSED && !desk->flushing)
        log_error("%s can't be written: %s", slip->key, err->text);
    status_record_deinit(&slip->sent);
    if (slip->waiting)
        enqueue(desk, slip);
    else
        drop(desk, slip);
    serve(desk);
}

void status_desk_flush(struct status_desk *desk)
{
    const char *key;
    void *value;

    desk->flushing = true;
    loop_timer_cancel(&desk->retry);
    for (size_t i = 0; map_next(desk->slips, &i, &key, &value);) {
        struct status_slip *slip = value;

        if (!slip->waiting)
            continue;
        if (!slip->in_flight) {
            enqueue(desk, slip);
        } else if (wanted(desk, slip)) {
            slip->waiting = false;
            desk->send(desk->arg, NULL, &slip->rec); /* behind the one under way */
        }
    }
    serve(desk);
}

void status_desk_tell_lost(const struct status_desk *desk)
{
    if (desk->lost > 0)
        log_error("the last status of %zu connectors and tasks was not written: %s", desk->lost,
                  desk->why.text);
}

size_t status_desk_waiting(const struct status_desk *desk)
{
    return map_count(desk->slips);
}
