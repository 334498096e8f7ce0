/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sink task stands in each of its partitions: the truth from which offsets are committed
 * and positions are sought. Pure; one owner (the task's thread).
 *
 * For each assigned partition:  committed ≤ next ≤ staged
 *   staged     behind the batch in hand (converted, not yet accepted by put)
 *   next       behind what put accepted: where reading goes on, and what may be committed once
 *              flush returned MR_OK
 *   committed  what the group has, as far as known
 * and, of a plugin that stores offsets, what it has stored. */
#ifndef HOST_LEDGER_H
#define HOST_LEDGER_H

#include "kafka/consumer.h"

#include <millrace/task.h>

#define LEDGER_UNKNOWN (-1) /* no offset yet: reading starts where auto.offset.reset says */

struct ledger;

struct ledger *ledger_new(void); /* aborts out of memory */
void ledger_free(struct ledger **l);

/* Partitions that came: parts[i].offset is the committed offset, or LEDGER_UNKNOWN. One that is
 * known begins anew. */
int ledger_assign(struct ledger *l, const struct consumer_partition *parts, size_t count,
                  struct mr_error *err);
/* Partitions that went: forgotten, with all that was staged or sent for commit. Unknown ones are
 * passed over. */
void ledger_revoke(struct ledger *l, const struct consumer_partition *parts, size_t count);
size_t ledger_count(const struct ledger *l);
bool ledger_has(const struct ledger *l, const char *topic, int32_t partition);
/* Its own name; NULL unknown. */
const char *ledger_topic(const struct ledger *l, const char *topic);
/* As ledger_positions, of one that is ours. */
int64_t ledger_position(const struct ledger *l, const char *topic, int32_t partition);

/* The messages of the batch in hand. Those of partitions that are not ours, and those below what
 * put has accepted or what is staged already, must not be delivered: they go out. Gives how many
 * are left, in their order. Topics: the consumer's pointers. */
size_t ledger_stage(struct ledger *l, struct consumer_msg *msgs, size_t count);
/* The log of a partition ended before the position, and reading goes on at `next`, below it. The
 * group's offset counts as that, so that what is put from here on is committed over it. */
void ledger_move(struct ledger *l, const char *topic, int32_t partition, int64_t next);
/* Of a plugin that emits: reading goes on at `next`. If put has taken records since the last commit
 * that is to be committed with what became of them, or ledger_rewind leads back to before them. */
void ledger_seek(struct ledger *l, const char *topic, int32_t partition, int64_t next);
/* Of a plugin that stores offsets: it has `stored` (LEDGER_UNKNOWN: none), and reading goes on at
 * `next`. The group's offset is to follow. What was staged is not any more. */
void ledger_place(struct ledger *l, const struct consumer_partition *part, int64_t next,
                  int64_t stored);
int64_t ledger_stored(const struct ledger *l, const char *topic, int32_t partition); /* of ours */
/* What the plugin is to store with the batch in hand: where it would stand then, and what it has
 * now, of all partitions where these differ. out: room for ledger_count. */
size_t ledger_unstored(const struct ledger *l, struct mr_partition *out);
/* It has stored these: put took what is in front of them, whatever becomes of the rest of the
 * batch. */
void ledger_store(struct ledger *l, const struct mr_partition *parts, size_t count);
void ledger_accept(struct ledger *l); /* put took the batch */
void ledger_reject(struct ledger *l); /* it will be read again */
void ledger_rewind(struct ledger *l); /* so will all that put took since the last commit */

/* Fill out (room for ledger_count entries) with where to read on in every partition: its next
 * offset; before the first batch was accepted the first message that was staged, so that one which
 * was not delivered is read again; LEDGER_UNKNOWN when there was none yet. The topics are the
 * ledger's own, valid until the partition goes. */
size_t ledger_positions(const struct ledger *l, struct consumer_partition *out);
/* Those whose next lies above what is committed, or was sought. only: just these partitions (of only_count), NULL
 * = all. */
size_t ledger_uncommitted(const struct ledger *l, const struct consumer_partition *only,
                          size_t only_count, struct consumer_partition *out);
/* The group has them now. */
void ledger_committed(struct ledger *l, const struct consumer_partition *parts, size_t count);

#endif
