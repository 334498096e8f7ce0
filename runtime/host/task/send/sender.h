/* SPDX-License-Identifier: Apache-2.0 */
/* What a task has handed over, a source its records, a sink what it emits, and Kafka has not taken
 * yet: the batches in the ack window and the producer that they are sent from. Owner: the task's
 * thread. */
#ifndef HOST_SENDER_H
#define HOST_SENDER_H

#include "host/task/send/ack_window.h"
#include "host/task/task_inside.h"
#include "host/task/stages/tolerance.h"
#include "host/task/send/topic_create.h"
#include "kafka/producer.h"

struct txn;

struct sender {
    struct task *task;
    struct tolerance *tolerance;
    struct props java;         /* the producer's settings; filled before sender_connect */
    struct producer *producer; /* NULL: taken back */
    struct ack_window *window;
    struct txn *txn;             /* what is sent belongs to it; NULL: there are no transactions */
    struct topic_create *topics; /* owned; set before sender_begin; NULL: the brokers' business */

    struct batch *sending; /* in the window, records from `at` on are not sent yet; NULL none */
    size_t at;
    int64_t send_until_ms;  /* while ending */
    const char *topic_name; /* the last record's, a pointer into `sending` */
    struct producer_topic *topic;

    enum batch_end end; /* the plugin's word behind what was sent last: done before more is sent */
    size_t too_large;   /* records that came back so since the last look */
    bool gap;       /* records behind the first unsettled one were taken back from the producer */
    bool came_back; /* records, since their topic is away: they are to be sent again */
    struct map *behind; /* topics that records were sent again to; NULL: that is through */
    struct {
        char topic[250];
        int64_t since_ms; /* 0: none is away */
        int64_t newest_ms;
        int64_t told_ms;
        int64_t again_ms; /* nothing is sent before; 0: at once */
    } away;               /* a topic that the brokers don't know for now */
    int64_t timeout_ms;   /* so long: delivery.timeout.ms */
    bool lost;            /* a record failed for good: nothing behind it is sent any more */
    bool silenced;        /* nothing is sent before sender_again_take_back and _all */
    /* Why the transaction can't be committed any more, though no record is to blame: nothing is
     * sent any more, the task begins anew. code 0: it can. */
    struct mr_error broken;
    int64_t trouble_ms; /* when it was told that the client is in trouble; 0: it is in none */
};

int sender_connect(struct sender *s, struct task *task, struct mr_error *err); /* a producer */
/* Borrowed for the sender's life. */
void sender_open(struct sender *s, struct tolerance *tolerance);
/* The producer goes before the batches: until it is gone it may read from them. Also of a sender
 * that was not opened. */
void sender_close(struct sender *s);
void sender_drop(struct sender *s); /* the producer alone: what was not sent never will be */

/* The task has failed, or (code MR_ERR_STATE or MR_ERR_CLOSED, or fenced) its transaction is
 * broken. */
void sender_fail(struct sender *s, const struct mr_error *err);

/* Hand a converted batch (taken) to the window and begin to send. Before that `sending` is NULL. */
void sender_begin(struct sender *s, struct batch *batch);
/* Send on until the batch is through (then `sending` is NULL), a record fails (so does the task),
 * the plugin's transaction is to end, the producer is full, a topic is away, the task ends or the
 * lease is lost: MR_ERR_FULL. */
int sender_go_on(struct sender *s);
/* When it is worth another try, whatever reports come; INT64_MAX: not before one does. */
int64_t sender_due_ms(const struct sender *s);
/* false: what follows belongs behind records that the next start sends again. */
bool sender_may_go_on(const struct sender *s);

/* What was sent and not delivered was aborted: it counts as done. */
void sender_settle_sent(struct sender *s);
/* Take in the delivery reports that have arrived. */
void sender_walk_reports(struct sender *s);
/* Failures of the client as such: told in the log, now and then; fatal ones end the task. */
void sender_look_for_trouble(struct sender *s, int64_t now_ms);

/* --- sender_again.c --------------------------------------------------------------------------- */

/* With too_large > 0: find the record that the topic can't take. */
void sender_again_isolate(struct sender *s);
/* With came_back: send that again, once it is due and no report is awaited. false: not yet. */
bool sender_again_return(struct sender *s);
/* The lease is lost: nothing that was handed over leaves any more. What was not delivered stays in
 * the window. */
void sender_again_take_back(struct sender *s);
/* The same where the producer is in use further up: it stays until take_back, and sends no more. */
void sender_again_silence(struct sender *s);
/* It is renewed: everything from the first undelivered record on is sent again, in order. After
 * that, `sending` goes on. */
void sender_again_all(struct sender *s);

#endif
