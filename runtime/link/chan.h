/* SPDX-License-Identifier: Apache-2.0 */
/* One end of the link on a loop: frames in, frames out, never blocking. Owner: the loop's
 * thread. */
#ifndef LINK_CHAN_H
#define LINK_CHAN_H

#include "base/json.h"
#include "base/loop.h"
#include "link/frame.h"

struct chan;

struct chan_events {
    /* A frame that the table allows. body is borrowed. */
    void (*frame)(void *arg, enum msg_kind kind, const json_t *body);
    /* The peer is gone (err NULL), or broke the rules (err). The channel is closed; called once. */
    void (*closed)(void *arg, const struct mr_error *err);
};

/* fd: non-blocking stream socket, taken. from_host: this end receives what hosts send (so it is the
 * worker's). */
struct chan *chan_new(struct loop *loop, int fd, bool from_host, const struct chan_events *events,
                      void *arg, struct mr_error *err);
void chan_free(struct chan **ch);
void chan_set_state(struct chan *ch, enum msg_state state); /* begins in MSG_STATE_HELLO */

/* Queue one frame; body (a JSON object, or NULL for {}) is taken. 0, MR_ERR_FULL when 32 MiB are
 * waiting (the peer is slow; nothing queued), MR_ERR_TOO_LARGE above the kind's cap,
 * MR_ERR_CLOSED. */
int chan_send_take(struct chan *ch, enum msg_kind kind, json_t *body);
bool chan_idle(const struct chan *ch); /* everything queued has been written */

#endif
