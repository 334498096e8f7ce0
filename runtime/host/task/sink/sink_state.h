/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink that emits keeps by key, for each of its partitions: in memory, and in a compacted
 * topic that is written in its transactions and read back before its first records. Owner: the
 * task's thread. For the files of the sink's loop.
 *
 *   partition comes ─► due ─read to the end as it was at the question─► here ─goes─► forgotten
 *                       ▲                                                │
 *                       └─────── its transaction was turned back ────────┘
 */
#ifndef HOST_SINK_STATE_H
#define HOST_SINK_STATE_H

#include "host/task/sink/sink_emit.h"

struct sink_state;

struct sink_state *sink_state_new(struct sink_emit *e); /* aborts out of memory */
void sink_state_free(struct sink_state **state);
int sink_state_open(struct sink_state *state, struct mr_error *err); /* read settings */

/* With positions known, in the consumer's callback: their offsets are final, so what the topic has
 * from here on up to its end is all that goes with them. */
void sink_state_come(struct sink_state *state, const struct consumer_partition *parts,
                     size_t count);
void sink_state_go(struct sink_state *state, const struct consumer_partition *parts, size_t count);
void sink_state_turn_back(struct sink_state *state); /* all is due again */
/* Some partition's state is not read yet: none of its records may be put. */
bool sink_state_due(const struct sink_state *state);
/* Read it. Blocks as long as it takes, with control serving the consumer; a stop and the lease's
 * loss end it, and it stays due. What fails, fails the task. */
void sink_state_restore(struct sink_state *state);

/* Around a call of emits; batch: its records, of one partition. */
void sink_state_begin(struct sink_state *state, const struct batch *batch);
void sink_state_end(struct sink_state *state, bool good);
/* Within it. get: 1 found, 0 not; both negative with err: the call fails. */
int sink_state_get(struct sink_state *state, struct mr_value key, struct mr_value *value,
                   struct mr_error *err);
int sink_state_set(struct sink_state *state, struct mr_value key, struct mr_value value,
                   struct mr_error *err);

/* Before a commit: hand what has changed to the sender, and note it with the offsets. As
 * sink_emit_hand_over. */
int sink_state_send(struct sink_state *state, struct mr_error *err);
void sink_state_committed(struct sink_state *state);

#endif
