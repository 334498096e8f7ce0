/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets of sinks' consumer groups, asked of Kafka and changed there, each on a thread
 * of its own since a broker may not answer. Owner: the worker's loop. */
#ifndef WORKER_SINK_OFFSETS_H
#define WORKER_SINK_OFFSETS_H

#include "base/loop.h"
#include "base/provider.h"
#include "kafka/group_offsets.h"

struct sink_offsets;

enum sink_offsets_act { SINK_OFFSETS_LIST, SINK_OFFSETS_CHANGE, SINK_OFFSETS_DROP };

/* client: Java settings of the admin client; changes: of SINK_OFFSETS_CHANGE. All copied. */
struct sink_offsets_job {
    enum sink_offsets_act act;
    const char *group;
    const struct props *client;
    const struct providers *providers; /* of what client refers to; kept */
    const struct group_offset *changes;
    size_t count;
};

/* list: what is committed, of SINK_OFFSETS_LIST; taken, see group_offsets_free. err: as in kafka/group_offsets.h, or
 * MR_ERR_CONFIG (settings of the client), MR_ERR_FULL (too many wait), MR_ERR_TIMEOUT (they waited
 * too long), MR_ERR_CLOSED. */
typedef void (*sink_offsets_done)(void *arg, struct group_offset *list, size_t count,
                                  const struct mr_error *err);

/* timeout_ms: for one job, from the asking. */
struct sink_offsets *sink_offsets_new(struct loop *loop, int64_t timeout_ms);
/* What is asked is called off, and waited for, shortly. */
void sink_offsets_free(struct sink_offsets **so);

/* A few run at a time. done: exactly once, perhaps before the call returns. */
void sink_offsets_ask(struct sink_offsets *so, const struct sink_offsets_job *job,
                      sink_offsets_done done, void *arg);

#endif
