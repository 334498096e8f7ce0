/* SPDX-License-Identifier: Apache-2.0 */
/* Goodbyes as the worker's loop has them from the store thread. They are kept until their tombstones are read; the leader writes
 * these once a round has dealt with them, so the list is short. Of the other words nothing is kept: they mean something at the
 * moment they are heard, or never. */
#include "worker/store/word_state.h"

#include "base/err.h"
#include "base/map.h"

#include <stdlib.h>

struct word_state {
    struct map *leavers; /* member → struct word */
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
    return state;
}

void word_state_free(struct word_state **state)
{
    if (*state == NULL)
        return;
    map_free(&(*state)->leavers, free_word);
    free(*state);
    *state = NULL;
}

static void forget(struct word_state *state, const char *member)
{
    struct word *word = map_remove(state->leavers, member);

    if (word != NULL)
        free_word(word);
}

static void forget_oldest(struct word_state *state)
{
    size_t i = 0;
    const char *member;
    void *word;

    if (map_count(state->leavers) >= WORD_STATE_MAX && map_next(state->leavers, &i, &member, &word))
        forget(state, ((struct word *)word)->member);
}

void word_state_apply(struct word_state *state, struct word *word)
{
    struct word *kept;

    if (word->kind != WORD_LEAVING)
        return;
    forget(state, word->member);
    if (word->tombstone)
        return;
    forget_oldest(state);
    kept = malloc(sizeof(*kept));
    mr_assert(kept != NULL);
    *kept = *word;
    *word = (struct word){0};
    map_set(state->leavers, kept->member, kept);
}

const struct word *word_state_next(const struct word_state *state, size_t *cursor)
{
    const char *member;
    void *word;

    return map_next(state->leavers, cursor, &member, &word) ? word : NULL;
}
