/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer's membership: taking and giving up partitions, and moving them about.
 *
 *   librdkafka: rebalance ─► consumer_group_on_rebalance (only notes it)
 *                         ─► consumer_group_serve, between two batches:
 *
 *     NONE ─ASSIGN─► committed offsets asked ─► owner's `assigned` ─► assign at these ─► NONE
 *     NONE ─REVOKE─► owner's `revoked` (commits) ─► unassign ─► NONE
 *
 * Nothing but noting happens inside librdkafka's poll, so a batch never straddles a change: the
 * poll throws away what it had gathered and it is read again. Positions are always set by us:
 * assignments start at explicit offsets, and a seek (confirmed by librdkafka's main thread, retried
 * in the next poll until it is) follows every change that pauses partitions inside the library.
 * That is what makes its batch call safe before 2.13.2.
 *
 * While lent, the owner is inside a long put and another thread calls consumer_group_serve_lent: a
 * new assignment is taken paused and kept for the owner (adopted); a revocation waits for the
 * owner, at most 80 % of max.poll.interval.ms, which is the time that the group waits for us, then
 * the partitions are given up as lost. */
#include "base/clock.h"
#include "kafka/kafka_private.h"

#include <stdlib.h>
#include <string.h>

#define FIND_MS 2000     /* one try to find where partitions start; the next poll tries again */
#define FIND_LENT_MS 100 /* the borrower has other things to do */
#define SEEK_MS 1000
#define LEAVE_MS 3000

typedef rd_kafka_topic_partition_list_t part_list;

static bool cooperative(struct consumer *c)
{
    const char *protocol = rd_kafka_rebalance_protocol(c->rk);

    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

static void drop_list(part_list **list)
{
    if (*list != NULL)
        rd_kafka_topic_partition_list_destroy(*list);
    *list = NULL;
}

static void end_change(struct consumer *c)
{
    drop_list(&c->change_list);
    c->change = CHANGE_NONE;
}

/* --- what librdkafka must be told ------------------------------------------------------------- */

static int assign(struct consumer *c, part_list *list, struct mr_error *err)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    int rc = 0;

    if (cooperative(c)) {
        rd_kafka_error_t *error = rd_kafka_incremental_assign(c->rk, list);

        if (error != NULL) {
            rc = mr_fail(err, MR_ERR_FATAL, "Partitions can't be taken: %s",
                         rd_kafka_error_string(error));
            rd_kafka_error_destroy(error);
        }
    } else if ((code = rd_kafka_assign(c->rk, list)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rc = mr_fail(err, MR_ERR_FATAL, "Partitions can't be taken: %s", rd_kafka_err2str(code));
    }
    return rc;
}

static void unassign(struct consumer *c, const part_list *list)
{
    if (cooperative(c)) {
        rd_kafka_error_t *error = rd_kafka_incremental_unassign(c->rk, list);

        if (error != NULL)
            rd_kafka_error_destroy(error);
    } else {
        rd_kafka_assign(c->rk, NULL);
    }
}

static int64_t place_of(const struct consumer *c, const struct consumer_part *part)
{
    return part->next >= 0 ? part->next : c->reset;
}

static part_list *placed_list(struct consumer *c)
{
    part_list *list = rd_kafka_topic_partition_list_new((int)c->parts.count);

    for (size_t i = 0; i < c->parts.count; i++) {
        const struct consumer_part *part = c->parts.items[i];

        if (part->placed)
            rd_kafka_topic_partition_list_add(list, part->topic->name, part->number)->offset =
                place_of(c, part);
    }
    return list;
}

/* Before 2.1.0 the limit was taken for microseconds. */
static int seek_limit(void)
{
    return rd_kafka_version() < 0x02010000 ? SEEK_MS * 1000 : SEEK_MS;
}

static void confirm_seeks(struct consumer *c, part_list *list)
{
    rd_kafka_error_t *error = rd_kafka_seek_partitions(c->rk, list, seek_limit());

    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &list->elems[i];
        struct consumer_part *part = consumer_parts_find(&c->parts, item->topic, item->partition);

        if (part == NULL)
            continue;
        part->seek_due = item->err != RD_KAFKA_RESP_ERR_NO_ERROR;
        c->seeks_due = c->seeks_due || part->seek_due;
    }
    if (error != NULL)
        rd_kafka_error_destroy(error);
}

/* Bring librdkafka to our positions: all placed partitions, or those whose last seek was not
 * confirmed. */
static void seek_placed(struct consumer *c, bool due_only)
{
    part_list *list = rd_kafka_topic_partition_list_new((int)c->parts.count);

    for (size_t i = 0; i < c->parts.count; i++) {
        const struct consumer_part *part = c->parts.items[i];

        if (part->placed && (part->seek_due || !due_only))
            rd_kafka_topic_partition_list_add(list, part->topic->name, part->number)->offset =
                place_of(c, part);
    }
    c->seeks_due = false;
    if (list->cnt > 0)
        confirm_seeks(c, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Drop what comes until librdkafka is where we are. */
static void want_seeks(struct consumer *c)
{
    for (size_t i = 0; i < c->parts.count; i++) {
        struct consumer_part *part = c->parts.items[i];

        part->seek_due = part->placed;
        c->seeks_due = c->seeks_due || part->placed;
    }
}

/* A thread of librdkafka that stopped fetching because enough lay in the queue looks again only
 * after a second, before 2.2.0. A request through it makes it look at once: this one asks each
 * partition's leader for an offset, and nobody waits for the answer. */
void consumer_group_nudge(struct consumer *c)
{
    part_list *list;

    if (rd_kafka_version() >= 0x02020000)
        return;
    list = placed_list(c);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    if (list->cnt > 0)
        rd_kafka_offsets_for_times(c->rk, list, 0);
    rd_kafka_topic_partition_list_destroy(list);
}

/* list is destroyed. */
static int pause_list(struct consumer *c, part_list *list, bool pause, struct mr_error *err)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;

    if (list->cnt > 0)
        code = pause ? rd_kafka_pause_partitions(c->rk, list)
                     : rd_kafka_resume_partitions(c->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return mr_fail(err, MR_ERR_RETRY, "Partitions can't be %s: %s",
                       pause ? "paused" : "resumed", rd_kafka_err2str(code));
    return 0;
}

/* Those that the owner holds back stay paused. */
int consumer_group_pause(struct consumer *c, bool pause, struct mr_error *err)
{
    part_list *list = rd_kafka_topic_partition_list_new((int)c->parts.count);

    for (size_t i = 0; i < c->parts.count; i++) {
        const struct consumer_part *part = c->parts.items[i];

        if (part->placed && (pause || !part->held))
            rd_kafka_topic_partition_list_add(list, part->topic->name, part->number);
    }
    return pause_list(c, list, pause, err);
}

int consumer_group_hold(struct consumer *c, struct consumer_part *part, bool hold,
                        struct mr_error *err)
{
    part_list *list = rd_kafka_topic_partition_list_new(1);

    if (part->placed)
        rd_kafka_topic_partition_list_add(list, part->topic->name, part->number);
    return pause_list(c, list, hold, err);
}

/* librdkafka has a partition paused still when it comes back. What went while it was paused, by
 * the owner or for a lender, would never deliver again. */
static void forget_pause(struct consumer *c, const part_list *list)
{
    (void)pause_list(c, rd_kafka_topic_partition_list_copy(list), false, NULL);
}

void consumer_group_move(struct consumer *c, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct consumer_part *part =
            consumer_parts_find(&c->parts, parts[i].topic, parts[i].partition);

        if (part != NULL && parts[i].offset >= 0) /* NULL: taken away in the meantime */
            part->next = parts[i].offset;
    }
}

void consumer_group_seek(struct consumer *c)
{
    seek_placed(c, false);
}

/* --- telling the owner ------------------------------------------------------------------------ */

static struct consumer_partition *tell_list(struct consumer *c, const part_list *only,
                                            size_t *count)
{
    struct consumer_partition *out = calloc(c->parts.count + 1, sizeof(*out));
    size_t n = 0;

    for (size_t i = 0; out != NULL && i < c->parts.count; i++) {
        const struct consumer_part *part = c->parts.items[i];

        if (only == NULL ||
            rd_kafka_topic_partition_list_find((part_list *)(uintptr_t)only, part->topic->name,
                                               part->number) != NULL)
            out[n++] = (struct consumer_partition){part->topic->name, part->number, part->next};
    }
    *count = n;
    return out;
}

static void forget(struct consumer *c, const struct consumer_partition *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct consumer_part *part =
            consumer_parts_find(&c->parts, parts[i].topic, parts[i].partition);

        if (part != NULL)
            consumer_parts_remove(&c->parts, part);
    }
}

/* What was given up while lent. */
static void tell_lost(struct consumer *c)
{
    struct consumer_partition *lost = c->lost;
    size_t count = c->lost_count;

    c->lost = NULL;
    c->lost_count = 0;
    if (count > 0 && c->events.revoked != NULL)
        c->events.revoked(c->arg, lost, count, true);
    free(lost);
}

/* --- giving up partitions --------------------------------------------------------------------- */

/* only NULL: all. The owner may commit in its callback, so librdkafka is told after. */
static int give_up(struct consumer *c, const part_list *only, bool lost, struct mr_error *err)
{
    size_t count;
    struct consumer_partition *parts = tell_list(c, only, &count);

    if (parts == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "Out of memory while giving up partitions");
    c->may_hang = c->may_hang || lost;
    if (count > 0 && c->events.revoked != NULL)
        c->events.revoked(c->arg, parts, count, lost);
    forget(c, parts, count);
    free(parts);
    return 0;
}

static int serve_revoke(struct consumer *c, struct mr_error *err)
{
    bool incremental = cooperative(c);
    int rc =
        give_up(c, incremental ? c->change_list : NULL, rd_kafka_assignment_lost(c->rk) != 0, err);

    if (rc != 0)
        return rc;
    unassign(c, c->change_list);
    forget_pause(c, c->change_list);
    end_change(c);
    if (incremental) /* the library paused what stays with us */
        want_seeks(c);
    return 0;
}

/* --- taking partitions ------------------------------------------------------------------------ */

static int enter(struct consumer *c, const part_list *list, bool placed, struct mr_error *err)
{
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &list->elems[i];
        struct consumer_part *part = consumer_parts_add(&c->parts, item->topic, item->partition);

        if (part == NULL)
            return mr_fail(err, MR_ERR_NOMEM,
                           "Partition %s-%d can't be taken: out of memory, or no valid number",
                           item->topic, (int)item->partition);
        part->next = item->offset >= 0 ? item->offset : -1;
        part->noted = item->metadata_size == strlen(CONSUMER_NOTE) &&
                      memcmp(item->metadata, CONSUMER_NOTE, item->metadata_size) == 0;
        part->placed = placed;
        part->seek_due = placed;
    }
    return 0;
}

static int tell_assigned(struct consumer *c, const part_list *list, struct mr_error *err)
{
    size_t count;
    struct consumer_partition *parts = tell_list(c, list, &count);

    if (parts == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "Out of memory while taking partitions");
    if (count > 0 && c->events.assigned != NULL)
        c->events.assigned(c->arg, parts, count);
    free(parts);
    return 0;
}

/* Put the new partitions where the owner wants them: it may have sought in its callback. */
static int place(struct consumer *c, part_list *list, struct mr_error *err)
{
    int rc;

    for (int i = 0; i < list->cnt; i++) {
        const struct consumer_part *part =
            consumer_parts_find(&c->parts, list->elems[i].topic, list->elems[i].partition);

        if (part != NULL)
            list->elems[i].offset = place_of(c, part);
    }
    rc = assign(c, list, err);
    for (int i = 0; rc == 0 && i < list->cnt; i++) {
        struct consumer_part *part =
            consumer_parts_find(&c->parts, list->elems[i].topic, list->elems[i].partition);

        if (part == NULL)
            continue;
        part->placed = true;
        if (part->held && !c->paused) /* by the owner, when it was told */
            rc = consumer_group_hold(c, part, true, err);
    }
    return rc;
}

static int serve_assign(struct consumer *c, struct mr_error *err)
{
    bool incremental = cooperative(c);
    int rc = consumer_place_find(c, c->change_list, FIND_MS, err);

    /* Never told to give these up: they are gone. */
    if (rc == 0 && !incremental && c->parts.count > 0)
        rc = give_up(c, NULL, true, err);
    if (rc == 0)
        rc = enter(c, c->change_list, false, err);
    if (rc == 0)
        rc = tell_assigned(c, c->change_list, err);
    if (rc != 0)
        return rc;
    if (incremental) /* the library paused what we had before */
        want_seeks(c);
    rc = place(c, c->change_list, err);
    end_change(c);
    if (rc == 0 && c->paused)
        rc = consumer_group_pause(c, true, err);
    return rc; /* the seeks that are due come next */
}

/* Taken while lent, paused, at the offsets that were found then. */
static int serve_adopted(struct consumer *c, struct mr_error *err)
{
    int rc = enter(c, c->adopted, true, err);

    if (rc == 0)
        rc = tell_assigned(c, c->adopted, err);
    if (rc != 0)
        return rc;
    drop_list(&c->adopted);
    want_seeks(c);
    if (c->paused)
        return 0;
    seek_placed(c, true);
    return consumer_group_pause(c, false, err);
}

/* --- librdkafka's announcements --------------------------------------------------------------- */

/* While closing nothing waits for the owner any more. */
static void answer_at_once(struct consumer *c, rd_kafka_resp_err_t code, part_list *list)
{
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && cooperative(c))
        assign(c, list, NULL);
    else
        unassign(c, list);
}

/* The owner never hears of what was adopted and taken away again. */
static void disown(struct consumer *c, const part_list *list)
{
    if (c->adopted == NULL)
        return;
    if (cooperative(c))
        for (int i = 0; i < list->cnt; i++)
            rd_kafka_topic_partition_list_del(c->adopted, list->elems[i].topic,
                                              list->elems[i].partition);
    else
        drop_list(&c->adopted);
}

void consumer_group_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code, part_list *list,
                                 void *opaque)
{
    struct consumer *c = opaque;

    (void)rk;
    if (c->closing) {
        answer_at_once(c, code, list);
        return;
    }
    c->change = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? CHANGE_ASSIGN : CHANGE_REVOKE;
    drop_list(&c->change_list);
    c->change_list = rd_kafka_topic_partition_list_copy(list);
    c->change_since_ms = c->lent ? c->served_ms : clock_ms();
    if (c->change == CHANGE_REVOKE)
        disown(c, list);
    rd_kafka_queue_yield(c->queue); /* end the wait that this is called from */
}

int consumer_group_serve(struct consumer *c, struct mr_error *err)
{
    int rc = 0;

    if (c->lost_count > 0)
        tell_lost(c);
    if (c->adopted != NULL)
        rc = serve_adopted(c, err);
    if (rc == 0 && c->change == CHANGE_ASSIGN)
        rc = serve_assign(c, err);
    else if (rc == 0 && c->change == CHANGE_REVOKE)
        rc = serve_revoke(c, err);
    if (rc == 0 && c->seeks_due && !c->paused)
        seek_placed(c, true);
    return rc;
}

/* --- lent ------------------------------------------------------------------------------------- */

static void keep_lost(struct consumer *c, const struct consumer_partition *parts, size_t count)
{
    struct consumer_partition *all = realloc(c->lost, (c->lost_count + count + 1) * sizeof(*all));

    mr_assert(all != NULL); /* an owner that is not told would go on with them */
    memcpy(all + c->lost_count, parts, count * sizeof(*all));
    c->lost = all;
    c->lost_count += count;
}

/* The owner is told in its next poll; names live as long as the consumer. */
static void give_up_lent(struct consumer *c)
{
    size_t count;
    struct consumer_partition *parts = tell_list(c, cooperative(c) ? c->change_list : NULL, &count);

    if (parts == NULL)
        return;
    c->may_hang = true;
    keep_lost(c, parts, count);
    forget(c, parts, count);
    free(parts);
    unassign(c, c->change_list);
    forget_pause(c, c->change_list);
    end_change(c);
}

static void join_adopted(struct consumer *c, const part_list *list)
{
    if (c->adopted == NULL)
        c->adopted = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++)
        rd_kafka_topic_partition_list_add(c->adopted, list->elems[i].topic,
                                          list->elems[i].partition)
            ->offset = list->elems[i].offset;
}

/* Positions that can't be found yet are looked for again in the next call. */
static void adopt(struct consumer *c)
{
    part_list *list = c->change_list;

    if (consumer_place_find(c, list, FIND_LENT_MS, NULL) != 0)
        return;
    for (int i = 0; i < list->cnt; i++)
        if (list->elems[i].offset < 0)
            list->elems[i].offset = c->reset;
    if (assign(c, list, NULL) != 0)
        return;
    rd_kafka_pause_partitions(c->rk, list);
    join_adopted(c, list);
    end_change(c);
}

void consumer_group_serve_lent(struct consumer *c)
{
    if (c->change == CHANGE_ASSIGN)
        adopt(c);
    else if (c->change == CHANGE_REVOKE &&
             (c->parts.count == 0 || rd_kafka_assignment_lost(c->rk) ||
              clock_ms() - c->change_since_ms > c->max_poll_ms / 5 * 4))
        give_up_lent(c);
}

/* --- leaving ---------------------------------------------------------------------------------- */

void consumer_group_leave(struct consumer *c, int64_t deadline_ms)
{
    int64_t until;
    rd_kafka_queue_t *last = rd_kafka_queue_new(c->rk);
    rd_kafka_message_t *msg;
    rd_kafka_error_t *error;

    tell_lost(c);
    if (c->parts.count > 0)
        give_up(c, NULL, rd_kafka_assignment_lost(c->rk) != 0, NULL);
    c->closing = true;
    drop_list(&c->adopted);
    if (c->change != CHANGE_NONE)
        answer_at_once(c,
                       c->change == CHANGE_ASSIGN ? RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
                                                  : RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS,
                       c->change_list);
    end_change(c);
    until = clock_ms() + LEAVE_MS < deadline_ms ? clock_ms() + LEAVE_MS : deadline_ms;
    error = rd_kafka_consumer_close_queue(c->rk, last);
    while (error == NULL && !rd_kafka_consumer_closed(c->rk) && clock_ms() < until)
        if (rd_kafka_consume_batch_queue(last, 50, &msg, 1) == 1)
            rd_kafka_message_destroy(msg);
    if (error != NULL)
        rd_kafka_error_destroy(error);
    rd_kafka_queue_destroy(last);
}
