/* SPDX-License-Identifier: Apache-2.0 */
/* Goodbyes as the worker's loop has them from the store thread. They are kept until their
 * tombstones are read; the leader writes these once a round has dealt with them, so the list is
 * short. Of consumers the newest of each task is kept. Of the other words nothing is kept: they
 * mean something at the moment they are heard, or never. */
#include "worker/store/word_state.h"

#include "base/err.h"
#include "base/map.h"

#include <stdlib.h>

struct word_state {
    struct map *leavers;   /* member → struct word */
    struct map *consumers; /* "CONN-TASK" → struct word */
};

static void free_word(void *value)
{
    word_deinit(value);
    free(value);
}

struct word_state *word_state_new(void)
{
    struct word_state *state = calloc(1, sizeof(*state));

    mr_assert(state != NULL);
    state->leavers = map_new();
    state->consumers = map_new();
    return state;
}

void word_state_free(struct word_state **state)
{
    if (*state == NULL)
        return;
    map_free(&(*state)->leavers, free_word);
    map_free(&(*state)->consumers, free_word);
    free(*state);
    *state = NULL;
}

static void forget(struct map *words, const char *name)
{
    struct word *word = map_remove(words, name);

    if (word != NULL)
        free_word(word);
}

static void forget_oldest(struct map *words, size_t max)
{
    size_t i = 0;
    const char *name;
    void *word;

    if (map_count(words) >= max && map_next(words, &i, &name, &word)) {
        map_remove(words, name);
        free_word(word);
    }
}

static void apply(struct map *words, size_t max, const char *name, struct word *word)
{
    struct word *kept;

    forget(words, name);
    if (word->tombstone)
        return;
    forget_oldest(words, max);
    kept = malloc(sizeof(*kept));
    mr_assert(kept != NULL);
    *kept = *word;
    *word = (struct word){0};
    map_set(words, name, kept);
}

void word_state_apply(struct word_state *state, struct word *word)
{
    if (word->kind == WORD_LEAVING)
        apply(state->leavers, WORD_STATE_MAX, word->member, word);
    else if (word->kind == WORD_CONSUMER)
        apply(state->consumers, WORD_STATE_CONSUMERS_MAX, word->other, word);
}

static const struct word *next(const struct map *words, size_t *cursor)
{
    const char *name;
    void *word;

    return map_next(words, cursor, &name, &word) ? word : NULL;
}

const struct word *word_state_next(const struct word_state *state, size_t *cursor)
{
    return next(state->leavers, cursor);
}

const struct word *word_state_next_consumer(const struct word_state *state, size_t *cursor)
{
    return next(state->consumers, cursor);
}

const char *word_state_consumer(const struct word_state *state, const char *task)
{
    const struct word *word = map_get(state->consumers, task);

    return word != NULL ? word->member : NULL;
}
