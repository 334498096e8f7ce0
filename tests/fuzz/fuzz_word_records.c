/* SPDX-License-Identifier: Apache-2.0 */
/* Words among workers, many in one input: a byte with the key's length (0xff: no key), two with the
 * value's (0xffff: no value), key, value. Whatever they are, they are bounded, what is written
 * reads back as the same, and the list of leavers stays whole. */
#include "worker/store/word_state.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MAX ((size_t)1 << 20)

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
    struct buf key[2], value[2];
    struct word back;

    for (int i = 0; i < 2; i++) {
        buf_init(&key[i], MAX);
        buf_init(&value[i], MAX);
    }
    mr_assert(word_records_render(word, &key[0], &value[0]) == 0);
    mr_assert(word_records_parse(key[0].data, key[0].len, word->tombstone ? NULL : value[0].data,
                                 value[0].len, &back, NULL) == 0);
    mr_assert(word_records_render(&back, &key[1], &value[1]) == 0);
    mr_assert(key[0].len == key[1].len && memcmp(key[0].data, key[1].data, key[0].len) == 0);
    mr_assert(value[0].len == value[1].len &&
              (value[0].len == 0 || memcmp(value[0].data, value[1].data, value[0].len) == 0));
    word_deinit(&back);
    for (int i = 0; i < 2; i++) {
        buf_deinit(&key[i]);
        buf_deinit(&value[i]);
    }
}

static void take(struct word_state *state, const uint8_t *key, size_t key_len, const uint8_t *value,
                 size_t value_len)
{
    struct mr_error err = {0};
    struct word word;
    const struct word *leaver;
    size_t count = 0;
    int rc = word_records_parse(key, key_len, value, value_len, &word, &err);

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
    size_t at = 0;

    while (len - at >= 3) {
        size_t key_len = data[at], value_len = (size_t)data[at + 1] << 8 | data[at + 2];
        bool no_key = key_len == 0xff, no_value = value_len == 0xffff;
        const uint8_t *key, *value;

        at += 3;
        key_len = no_key ? 0 : key_len < len - at ? key_len : len - at;
        key = no_key ? NULL : data + at;
        at += key_len;
        value_len = no_value ? 0 : value_len < len - at ? value_len : len - at;
        value = no_value ? NULL : data + at;
        at += value_len;
        take(state, key, key_len, value, value_len);
    }
    word_state_free(&state);
    return 0;
}
