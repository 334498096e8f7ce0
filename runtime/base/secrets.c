/* SPDX-License-Identifier: Apache-2.0 */
/* Puts references in place of the values that they stand for. Used by the log, by a host for traces
 * and task configurations, and by the worker for what validation says.
 *
 * Pairs are kept with the longest value first, so that of two values of which one is part of the
 * other the whole is found. Texts are searched pair by pair at each place where any value could
 * begin, by its first two bytes. */
#include "base/secrets.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX ((size_t)16 << 20)
#define CUT_MIN 8 /* bytes of a value at a text's end that are taken for it */

struct pair {
    char *reference;
    char *value;
    size_t len;    /* of value */
    uint64_t turn; /* when it was noted last */
};

struct secrets {
    struct pair *pairs; /* longest value first, then by bytes */
    size_t count;
    size_t bytes;                    /* of all values */
    uint64_t turn;                   /* of the last that was noted */
    unsigned char starts[65536 / 8]; /* which two bytes a value begins with: a bit each */
};

struct secrets *secrets_new(void)
{
    struct secrets *secrets = calloc(1, sizeof(*secrets));

    mr_assert(secrets != NULL);
    return secrets;
}

static void pair_deinit(struct pair *pair)
{
    free(pair->reference);
    explicit_bzero(pair->value, pair->len);
    free(pair->value);
}

void secrets_free(struct secrets **secretsp)
{
    struct secrets *secrets = *secretsp;

    *secretsp = NULL;
    for (size_t i = 0; secrets != NULL && i < secrets->count; i++)
        pair_deinit(&secrets->pairs[i]);
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

static unsigned start_of(const char *value)
{
    return (unsigned)(unsigned char)value[0] << 8 | (unsigned char)value[1];
}

/* Where the pair of this value is, or belongs. */
static size_t place_of(const struct secrets *secrets, const char *value, size_t len)
{
    size_t low = 0, high = secrets->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct pair *pair = &secrets->pairs[middle];

        if (pair->len > len || (pair->len == len && memcmp(pair->value, value, len) < 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_at(const struct secrets *secrets, size_t at, const char *value, size_t len)
{
    return at < secrets->count && secrets->pairs[at].len == len &&
           memcmp(secrets->pairs[at].value, value, len) == 0;
}

static bool has_room(const struct secrets *secrets, size_t len)
{
    return secrets->count < SECRETS_MAX && secrets->bytes + len <= SECRETS_BYTES_MAX;
}

bool secrets_add(struct secrets *secrets, const char *reference, const char *value)
{
    struct pair pair = {.len = strlen(value), .turn = ++secrets->turn};
    size_t at;

    if (!tells(value))
        return true;
    at = place_of(secrets, value, pair.len);
    if (has_at(secrets, at, value, pair.len)) {
        secrets->pairs[at].turn = pair.turn;
        return true;
    }
    if (!has_room(secrets, pair.len))
        return false;
    pair.reference = text_dup(reference);
    pair.value = text_dup(value);
    secrets->pairs = realloc(secrets->pairs, (secrets->count + 1) * sizeof(pair));
    mr_assert(secrets->pairs != NULL);
    memmove(&secrets->pairs[at + 1], &secrets->pairs[at], (secrets->count - at) * sizeof(pair));
    secrets->pairs[at] = pair;
    secrets->count++;
    secrets->bytes += pair.len;
    secrets->starts[start_of(value) / 8] |= (unsigned char)(1u << start_of(value) % 8);
    return true;
}

static void drop_oldest(struct secrets *secrets)
{
    size_t oldest = 0;

    for (size_t i = 1; i < secrets->count; i++)
        if (secrets->pairs[i].turn < secrets->pairs[oldest].turn)
            oldest = i;
    secrets->bytes -= secrets->pairs[oldest].len;
    pair_deinit(&secrets->pairs[oldest]);
    secrets->count--;
    memmove(&secrets->pairs[oldest], &secrets->pairs[oldest + 1],
            (secrets->count - oldest) * sizeof(struct pair));
}

void secrets_keep(struct secrets *secrets, const char *reference, const char *value)
{
    while (!secrets_add(secrets, reference, value) && secrets->count > 0)
        drop_oldest(secrets);
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
    if (left < 2 || (secrets->starts[start_of(text) / 8] & 1u << start_of(text) % 8) == 0)
        return NULL;
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
