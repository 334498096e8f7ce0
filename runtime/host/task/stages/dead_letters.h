/* SPDX-License-Identifier: Apache-2.0 */
/* The dead-letter topic of a task: records that could not be processed, as they were read, with
 * what went wrong in headers.
 * Owner: the task's thread.
 * Spec: org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter. */
#ifndef HOST_DEAD_LETTERS_H
#define HOST_DEAD_LETTERS_H

#include "host/task/task_client.h"
#include "host/task/stages/tolerance.h"

struct dead_letters;
struct producer_record;

/* Everything is borrowed for its life. wait: as in pipeline_spec. */
struct dead_letters_spec {
    struct task_client_spec client;
    const char *topic;
    int replication; /* of the topic, when it has to be made */
    bool context;    /* add headers that say what failed */
    bool (*wait)(void *arg, int64_t ms);
    void *arg;
    /* Send a letter by another producer, which has a part in what the letters are about: then this
     * one needs none, and never waits for letters. rec (without topic) is copied. NULL: no such. */
    int (*carry)(void *carrier, const char *topic, const struct producer_record *rec,
                 struct mr_error *err);
    void *carrier;
};

/* Make the topic if it is not there, and the producer. NULL with err: "Could not initialize dead
 * letter queue …". Waits for the brokers, at most half a minute. */
struct dead_letters *dead_letters_open(const struct dead_letters_spec *spec, struct mr_error *err);
/* What was not delivered never will be. */
void dead_letters_close(struct dead_letters **letters);

/* Hand over one letter; all is copied. MR_OK, or why not: the task must fail. */
int dead_letters_send(struct dead_letters *letters, const struct failure *failure,
                      const struct mr_error *why, struct mr_error *err);
/* Wait until all are delivered: only then what they were about may count as done. MR_ERR_CLOSED:
 * wait ended it, and they are dropped; MR_ERR_FATAL: one could not be delivered. */
int dead_letters_settle(struct dead_letters *letters, struct mr_error *err);
/* What they are about is read again, perhaps by a successor: none of those that are not delivered
 * leaves any more, but for what a broker has been sent already. */
void dead_letters_drop(struct dead_letters *letters);

/* Without a lease: letters that are under way are taken back, so that none appears beside a
 * successor's; but what a broker has been sent already may. They count as not delivered. Then, with
 * a lease again: sent once more, in their order. */
void dead_letters_take_back(struct dead_letters *letters);
void dead_letters_send_again(struct dead_letters *letters);

#endif
