/* SPDX-License-Identifier: Apache-2.0 */
/* Puts references in place of the values that they stand for. Used by the log, by a host for traces
 * and task configurations, and by the worker for what validation says.
 *
 * Pairs are kept with the longest value first, so that of two values of which one is part of the
 * other the whole is found. Texts are searched pair by pair at each place: there are few pairs, and
 * texts are short. */
#include "base/secrets.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX ((size_t)16 << 20)
#define CUT_MIN 8 /* bytes of a value at a text's end that are taken for it */

struct pair {
    char *reference;
    char *value;
    size_t len; /* of value */
};

struct secrets {
    struct pair *pairs; /* longest value first */
    size_t count;
};

struct secrets *secrets_new(void)
{
    struct secrets *secrets = calloc(1, sizeof(*secrets));

    mr_assert(secrets != NULL);
    return secrets;
}

void secrets_free(struct secrets **secretsp)
{
    struct secrets *secrets = *secretsp;

    *secretsp = NULL;
    for (size_t i = 0; secrets != NULL && i < secrets->count; i++) {
        free(secrets->pairs[i].reference);
        explicit_bzero(secrets->pairs[i].value, secrets->pairs[i].len);
        free(secrets->pairs[i].value);
    }
    if (secrets != NULL)
        free(secrets->pairs);
    free(secrets);
}

static bool tells(const char *value)
{
    static const char *const common[] = {"true", "false", "none", "null"};

    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        if (strcasecmp(value, common[i]) == 0)
            return false;
    return strlen(value) >= SECRETS_SHORTEST;
}

/* Where a pair belongs; SIZE_MAX: its value is there already. */
static size_t place_of(const struct secrets *secrets, const char *value, size_t len)
{
    size_t i = 0;

    while (i < secrets->count && secrets->pairs[i].len > len)
        i++;
    for (size_t same = i; same < secrets->count && secrets->pairs[same].len == len; same++)
        if (strcmp(secrets->pairs[same].value, value) == 0)
            return SIZE_MAX;
    return i;
}

bool secrets_add(struct secrets *secrets, const char *reference, const char *value)
{
    struct pair pair = {.len = strlen(value)};
    size_t at = tells(value) ? place_of(secrets, value, pair.len) : SIZE_MAX;

    if (at == SIZE_MAX || secrets->count >= SECRETS_MAX)
        return false;
    pair.reference = text_dup(reference);
    pair.value = text_dup(value);
    secrets->pairs = realloc(secrets->pairs, (secrets->count + 1) * sizeof(pair));
    mr_assert(secrets->pairs != NULL);
    memmove(&secrets->pairs[at + 1], &secrets->pairs[at], (secrets->count - at) * sizeof(pair));
    secrets->pairs[at] = pair;
    secrets->count++;
    return true;
}

bool secrets_at(const struct secrets *secrets, size_t i, const char **reference, const char **value)
{
    if (i >= secrets->count)
        return false;
    *reference = secrets->pairs[i].reference;
    *value = secrets->pairs[i].value;
    return true;
}

/* --- hiding ----------------------------------------------------------------------------------- */

/* The pair whose value begins here; left: bytes of text. */
static const struct pair *pair_at(const struct secrets *secrets, const char *text, size_t left)
{
    for (size_t i = 0; i < secrets->count; i++) {
        const struct pair *pair = &secrets->pairs[i];
        size_t len = pair->len <= left ? pair->len : left;

        if ((len == pair->len || len >= CUT_MIN) && memcmp(text, pair->value, len) == 0)
            return pair;
    }
    return NULL;
}

char *secrets_hide(const struct secrets *secrets, const char *text)
{
    struct buf out;
    size_t left = strlen(text), kept = 0;
    bool found = false;
    char *hidden = NULL;

    if (secrets->count == 0)
        return NULL;
    buf_init(&out, TEXT_MAX);
    while (left > kept) {
        const struct pair *pair = pair_at(secrets, text + kept, left - kept);
        size_t skipped;

        if (pair == NULL) {
            kept++;
            continue;
        }
        found = true;
        skipped = kept + (pair->len < left - kept ? pair->len : left - kept);
        buf_append(&out, text, kept);
        buf_puts(&out, pair->reference);
        text += skipped;
        left -= skipped;
        kept = 0;
    }
    buf_append(&out, text, left);
    if (found)
        hidden = out.failed ? strdup("***") : buf_take(&out);
    mr_assert(!found || hidden != NULL);
    buf_deinit(&out);
    return hidden;
}
