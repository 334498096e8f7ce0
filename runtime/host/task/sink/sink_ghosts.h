/* SPDX-License-Identifier: Apache-2.0 */
/* The members that earlier lives of a sink task have left in its group: a host that was killed, a
 * machine that is gone. The group waits for them until session.timeout.ms, 45 s by default, and
 * gives nobody their partitions. They bear this task's client id, but so does the task of another
 * cluster that has a sink of the same name and hence the same group: only members whose ids the
 * worker knows from its own and its cluster's hosts are made to leave. Owner: the task's thread. */
#ifndef HOST_SINK_GHOSTS_H
#define HOST_SINK_GHOSTS_H

#include "base/json.h"
#include "base/props.h"

#define SINK_GHOSTS_MAX 64

struct wire_call;

struct sink_ghosts {
    struct wire_call *call; /* NULL: nothing to be done any more */
    char *group;
    char *client_id;
    char *members[SINK_GHOSTS_MAX];
    size_t count;
    bool joined;        /* our member is in the group */
    size_t next;        /* members[next] is the next to leave */
    int64_t give_up_ms; /* monotonic */
};

/* Before the group is joined: who of it bears our client id? java: the consumer's settings; nothing
 * is looked for where its client.id is not own_id, since others may bear it then. left: [text],
 * member ids of this task's earlier lives; NULL none. Others are left alone, and told in one
 * warning. Waits for the brokers, a second or two at most. What fails is only logged: the group
 * finds out by itself. */
void sink_ghosts_find(struct sink_ghosts *ghosts, const struct props *java, const char *own_id,
                      const json_t *left);
/* After that, until pending is false: once member (our id, "" not known yet) is in the group, make
 * the ghosts leave, one a call, which waits for the brokers half a second at most. Not before: a
 * group that is empty meanwhile would wait group.initial.rebalance.delay.ms. Only with the lease
 * held. */
bool sink_ghosts_pending(const struct sink_ghosts *ghosts);
void sink_ghosts_evict(struct sink_ghosts *ghosts, const char *member);
void sink_ghosts_deinit(struct sink_ghosts *ghosts);

#endif
