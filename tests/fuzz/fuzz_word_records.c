/* SPDX-License-Identifier: Apache-2.0 */
/* Words among workers (record_input.h). Whatever they are, they are bounded, what is written reads
 * back as the same, and the list of leavers stays whole. */
#include "worker/store/word_state.h"

#include "fuzz/record_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_word(const struct word *word)
{
    bool named = word->kind == WORD_LEAVING || !word->tombstone;

    mr_assert((word->member != NULL) == named);
    mr_assert(word->member == NULL ||
              (word->member[0] != '\0' && strlen(word->member) <= WORD_MEMBER_MAX));
    mr_assert((word->other != NULL) == (word->kind == WORD_TWINS && !word->tombstone));
    mr_assert((word->url != NULL) == (word->kind != WORD_ROUND && !word->tombstone));
    mr_assert(word->generation >= 0);
}

static void check_round_trip(const struct word *word)
{
    struct record_bytes first, second;
    struct word back;

    record_bytes_init(&first);
    record_bytes_init(&second);
    mr_assert(word_records_render(word, &first.key, &first.value) == 0);
    mr_assert(word_records_parse(first.key.data, first.key.len,
                                 word->tombstone ? NULL : first.value.data, first.value.len, &back,
                                 NULL) == 0);
    mr_assert(word_records_render(&back, &second.key, &second.value) == 0);
    record_bytes_same(&first, &second);
    word_deinit(&back);
    record_bytes_deinit(&first);
    record_bytes_deinit(&second);
}

static void take(struct word_state *state, const struct record_input *in)
{
    struct mr_error err = {0};
    struct word word;
    const struct word *leaver;
    size_t count = 0;
    int rc = word_records_parse(in->key, in->key_len, in->value, in->value_len, &word, &err);

    mr_assert(rc == 0 || (rc == MR_ERR_DATA && err.code == rc && err.text[0] != '\0'));
    if (rc != 0)
        return;
    check_word(&word);
    check_round_trip(&word);
    word_state_apply(state, &word);
    word_deinit(&word);
    for (size_t i = 0; (leaver = word_state_next(state, &i)) != NULL; count++)
        mr_assert(leaver->kind == WORD_LEAVING && !leaver->tombstone && leaver->url != NULL);
    mr_assert(count <= WORD_STATE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct word_state *state = word_state_new();
    struct record_input in = {.data = data, .len = len};

    while (record_input_next(&in))
        take(state, &in);
    word_state_free(&state);
    return 0;
}
