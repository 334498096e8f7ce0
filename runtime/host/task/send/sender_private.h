/* SPDX-License-Identifier: Apache-2.0 */
/* What sender.c and sender_again.c share, and nobody else sees. Owner: the task's thread. */
#ifndef HOST_SENDER_PRIVATE_H
#define HOST_SENDER_PRIVATE_H

#include "host/task/send/sender.h"

bool sender_halted(struct sender *s);  /* nothing more may be sent, for now or for good */
bool sender_held_up(struct sender *s); /* a topic is away: nothing is sent yet */

/* For producer_reports; arg: the sender. */
void sender_on_report(void *arg, void *opaque, int code, const char *text);
/* Hand a record over. MR_ERR_FULL only while reports are awaited; MR_AGAIN: its topic is away;
 * MR_ERR_TOO_LARGE for what is above max.request.size or buffer.memory. */
int sender_send_record(struct sender *s, struct record *rec, struct mr_error *err);
/* A failure of this record alone, which tolerance may skip: too large, or for a topic that can't
 * be. */
bool sender_is_record_s(int rc);

/* It was the producer's already and its topic is away: it goes again, or is lost when that takes
 * too long. text: what the brokers say. */
void sender_come_back(struct sender *s, struct record *rec, const char *text);
/* It was not delivered and never will be: tolerance skips it, or nothing behind it is sent. */
void sender_record_lost(struct sender *s, struct record *rec, int code, const char *text);
void sender_lose(struct sender *s, const struct mr_error *err);

/* Not behind the last record that was sent. */
static inline bool sender_was_sent(const struct sender *s, const struct ack_cursor *at)
{
    return at->batch != NULL && !(at->batch == s->sending && at->i >= s->at);
}

#endif
