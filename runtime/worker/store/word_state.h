/* SPDX-License-Identifier: Apache-2.0 */
/* What the words among workers of Millrace add up to: who said goodbye and was not seen off yet;
 * the newest consumer of each sink task. Pure; one owner thread (the worker's loop). */
#ifndef WORKER_WORD_STATE_H
#define WORKER_WORD_STATE_H

#include "worker/store/word_records.h"

#include <stddef.h>

#define WORD_STATE_MAX 1000             /* leavers; beyond it the oldest is forgotten */
#define WORD_STATE_CONSUMERS_MAX 100000 /* likewise */

struct word_state;

struct word_state *word_state_new(void);
void word_state_free(struct word_state **state);

/* Apply a word, whose texts are taken. */
void word_state_apply(struct word_state *state, struct word *word);

/* Those that said that they leave, oldest first: for (size_t i = 0; (word = word_state_next(state,
 * &i)) != NULL;). Borrowed until the next apply. */
const struct word *word_state_next(const struct word_state *state, size_t *cursor);

/* The same of consumers; word->other is the task. */
const struct word *word_state_next_consumer(const struct word_state *state, size_t *cursor);
/* Member id of the newest known consumer of this task, "CONN-TASK"; NULL none. Borrowed
 * likewise. */
const char *word_state_consumer(const struct word_state *state, const char *task);

#endif
