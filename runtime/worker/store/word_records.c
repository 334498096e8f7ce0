/* SPDX-License-Identifier: Apache-2.0 */
/* The words among workers of Millrace as records, read on the store thread and written for it by
 * the loop. The topic is ours, but anybody may write into it: a record that does not fit is refused
 * in words and skipped. A word is believed only as far as its key and its value say the same, and
 * unknown members of a value are left alone, so that a newer version may say more. */
#include "worker/store/word_records.h"

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"

#include <string.h>

#define LEAVING "leaving-"
#define CONSUMER "consumer-"
#define VALUE_MAX ((size_t)64 << 10)

void word_deinit(struct word *word)
{
    free(word->member);
    free(word->other);
    free(word->url);
    *word = (struct word){0};
}

static int odd(struct mr_error *err, const char *text)
{
    return mr_fail(err, MR_ERR_DATA, "%s", text);
}

static bool keep(const char *text, size_t max, char **out)
{
    if (text == NULL || text[0] == '\0' || strlen(text) > max)
        return false;
    *out = text_dup(text);
    return true;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_generation(const json_t *value, struct word *word, struct mr_error *err)
{
    if (json_get_int(value, "generation", 0, INT32_MAX, &word->generation))
        return 0;
    return odd(err, "its field 'generation' is no generation");
}

static int read_leaving(const json_t *value, struct word *word, struct mr_error *err)
{
    const char *member, *work;

    if (!json_get_text(value, "member", &member) || strcmp(member, word->member) != 0)
        return odd(err, "its field 'member' is not the member that its key names");
    if (!keep(json_string_value(json_object_get(value, "url")), WORD_URL_MAX, &word->url))
        return odd(err, "its field 'url' is no URL");
    if (!json_get_text(value, "work", &work))
        return odd(err, "its field 'work' is no text");
    word->stopped = strcmp(work, "stopped") == 0;
    return read_generation(value, word, err);
}

static int read_round(const json_t *value, struct word *word, struct mr_error *err)
{
    if (!keep(json_string_value(json_object_get(value, "member")), WORD_MEMBER_MAX, &word->member))
        return odd(err, "its field 'member' is no member id");
    return read_generation(value, word, err);
}

static int read_twins(const json_t *value, struct word *word, struct mr_error *err)
{
    const json_t *members = json_object_get(value, "members");

    if (json_array_size(members) != 2 ||
        !keep(json_string_value(json_array_get(members, 0)), WORD_MEMBER_MAX, &word->member) ||
        !keep(json_string_value(json_array_get(members, 1)), WORD_MEMBER_MAX, &word->other))
        return odd(err, "its field 'members' is not two member ids");
    if (!keep(json_string_value(json_object_get(value, "url")), WORD_URL_MAX, &word->url))
        return odd(err, "its field 'url' is no URL");
    return 0;
}

static int read_consumer(const json_t *value, struct word *word, struct mr_error *err)
{
    if (keep(json_string_value(json_object_get(value, "member")), WORD_MEMBER_MAX, &word->member))
        return 0;
    return odd(err, "its field 'member' is no member id");
}

static void write_leaving(const struct word *word, struct buf *out);
static void write_round(const struct word *word, struct buf *out);
static void write_twins(const struct word *word, struct buf *out);
static void write_consumer(const struct word *word, struct buf *out);

/* named: the rest of the key says which one: the member's id, or the consumer's task. */
static const struct kind {
    const char *key;
    bool named;
    int (*read)(const json_t *value, struct word *word, struct mr_error *err);
    void (*write)(const struct word *word, struct buf *out);
} kinds[] = {
    [WORD_LEAVING] = {LEAVING, true, read_leaving, write_leaving},
    [WORD_ROUND] = {"round-wanted", false, read_round, write_round},
    [WORD_TWINS] = {"twins", false, read_twins, write_twins},
    [WORD_CONSUMER] = {CONSUMER, true, read_consumer, write_consumer},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Where that stands. */
static char **name_of(struct word *word)
{
    return word->kind == WORD_CONSUMER ? &word->other : &word->member;
}

static bool is_of(const struct kind *kind, const char *key, size_t len)
{
    size_t known = strlen(kind->key);

    return (kind->named ? len >= known : len == known) && memcmp(key, kind->key, known) == 0;
}

static int read_key(const char *key, size_t len, struct word *word, struct mr_error *err)
{
    if (key == NULL)
        return odd(err, "it has no key");
    if (memchr(key, 0, len) != NULL || !utf8_valid(key, len))
        return odd(err, "its key is not text");
    for (size_t i = 0; i < KINDS; i++) {
        size_t known = strlen(kinds[i].key);

        if (!is_of(&kinds[i], key, len))
            continue;
        word->kind = (enum word_kind)i;
        if (!kinds[i].named)
            return 0;
        if (len == known || len - known > WORD_MEMBER_MAX)
            return odd(err, "its key does not end in a name");
        *name_of(word) = text_dup_len(key + known, len - known);
        return 0;
    }
    return odd(err, "its key is of no known kind");
}

static int read_value(const char *value, size_t len, struct word *word, struct mr_error *err)
{
    json_t *json;
    int rc;

    if (len > VALUE_MAX)
        return odd(err, "its value is too long");
    json = json_parse(value, len, err);
    if (json == NULL)
        return MR_ERR_DATA;
    rc = json_is_object(json) ? kinds[word->kind].read(json, word, err)
                              : odd(err, "its value is no object");
    json_decref(json);
    return rc;
}

int word_records_parse(const void *key, size_t key_len, const void *value, size_t value_len,
                       struct word *word, struct mr_error *err)
{
    struct mr_error own = {0};
    int rc;

    err = err != NULL ? err : &own;
    *word = (struct word){0};
    rc = read_key(key, key_len, word, err);
    word->tombstone = value == NULL || value_len == 0;
    if (rc == 0 && !word->tombstone)
        rc = read_value(value, value_len, word, err);
    if (rc == 0)
        return 0;
    word_deinit(word);
    err->code = MR_ERR_DATA;
    return MR_ERR_DATA;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_text(struct buf *out, const char *text)
{
    json_t *value = json_string(text);

    if (value != NULL)
        json_write(out, value);
    else
        out->failed = true; /* not UTF-8 */
    json_decref(value);
}

static void write_leaving(const struct word *word, struct buf *out)
{
    buf_puts(out, "{\"member\":");
    write_text(out, word->member);
    buf_puts(out, ",\"url\":");
    write_text(out, word->url);
    buf_printf(out, ",\"generation\":%lld,\"work\":\"%s\"}", (long long)word->generation,
               word->stopped ? "stopped" : "unknown");
}

static void write_round(const struct word *word, struct buf *out)
{
    buf_puts(out, "{\"member\":");
    write_text(out, word->member);
    buf_printf(out, ",\"generation\":%lld}", (long long)word->generation);
}

static void write_twins(const struct word *word, struct buf *out)
{
    buf_puts(out, "{\"members\":[");
    write_text(out, word->member);
    buf_putc(out, ',');
    write_text(out, word->other);
    buf_puts(out, "],\"url\":");
    write_text(out, word->url);
    buf_putc(out, '}');
}

static void write_consumer(const struct word *word, struct buf *out)
{
    buf_puts(out, "{\"member\":");
    write_text(out, word->member);
    buf_putc(out, '}');
}

int word_records_render(const struct word *word, struct buf *key, struct buf *value)
{
    buf_puts(key, kinds[word->kind].key);
    if (kinds[word->kind].named)
        buf_puts(key, word->kind == WORD_CONSUMER ? word->other : word->member);
    if (!word->tombstone)
        kinds[word->kind].write(word, value);
    return key->failed || value->failed ? MR_ERR_FULL : 0;
}
