/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the offsets of a request with jansson, which has no integers beyond 64 bits: these are put
 * into a mark first, so that what they stand in can be refused as Java refuses it. Called by the
 * HTTP threads with bytes of clients. Pure. */
#include "worker/rest/request_offsets.h"

#include "base/map.h"
#include "worker/herder/offsets/offset_entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- integers beyond 64 bits ------------------------------------------------------------------ */

/* Behind the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

static bool is_large(const char *number, size_t len)
{
    char text[24];

    if (len < 19 || memchr(number, '.', len) != NULL || memchr(number, 'e', len) != NULL ||
        memchr(number, 'E', len) != NULL)
        return false;
    if (len >= sizeof(text))
        return true;
    memcpy(text, number, len);
    text[len] = '\0';
    errno = 0;
    (void)strtoll(text, NULL, 10);
    return errno == ERANGE;
}

static size_t number_len(const char *at, const char *end)
{
    const char *from = at;

    while (at < end && *at != '\0' && strchr("0123456789+-.eE", *at) != NULL)
        at++;
    return (size_t)(at - from);
}

/* The text with each such integer marked. */
static int mark_large(const char *data, size_t len, struct buf *out)
{
    const char *end = data + len, *from = data, *at = data;

    while (at < end) {
        size_t n;

        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        n = number_len(at, end);
        if (is_large(at, n)) {
            buf_append(out, from, (size_t)(at - from));
            buf_printf(out, "{\"" OFFSET_ENTRIES_BIG "\":\"%.*s\"}", (int)n, at);
            from = at + n;
        }
        at += n > 0 ? n : 1;
    }
    buf_append(out, from, (size_t)(end - from));
    return out->failed ? MR_ERR_NOMEM : 0;
}

/* --- the document ----------------------------------------------------------------------------- */

static int wrong(struct mr_error *err, const char *fmt, size_t i)
{
    mr_fail(err, MR_ERR_PROTOCOL, "%s of entry %zu of 'offsets' must be a JSON object or null", fmt,
            i);
    return MR_ERR_PROTOCOL;
}

/* A member that is an object, null, or absent, which is the same; false: something else. */
static bool object_or_null(const json_t *from, const char *key, json_t **out)
{
    json_t *value = json_object_get(from, key);

    *out = value != NULL ? value : json_null();
    return value == NULL || json_is_object(value) || json_is_null(value);
}

static int check_members(const json_t *object, const char *const *known, struct mr_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        bool found = false;

        for (size_t i = 0; known[i] != NULL; i++)
            found = found || strcmp(known[i], key) == 0;
        if (!found)
            return mr_fail(err, MR_ERR_PROTOCOL, "Unrecognized member '%.100s' (known are %s%s%s)",
                           key, known[0], known[1] != NULL ? " and " : "",
                           known[1] != NULL ? known[1] : "");
    }
    return 0;
}

/* As values: members in any order. */
static void add(json_t *out, struct map *known, json_t *partition, json_t *offset)
{
    char *key = json_dumps(partition, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *entry = key != NULL ? map_get(known, key) : NULL;

    mr_assert(key != NULL);
    if (entry != NULL) {
        json_array_set(entry, 1, offset);
    } else {
        entry = json_pack("[O, O]", partition, offset);
        json_array_append_new(out, entry);
        map_set(known, key, entry);
    }
    free(key);
}

static int read_entries(const json_t *list, json_t *out, struct mr_error *err)
{
    static const char *const members[] = {"partition", "offset", NULL};
    struct map *known = map_new();
    json_t *partition, *offset;
    const json_t *entry;
    size_t i;
    int rc = 0;

    json_array_foreach(list, i, entry)
    {
        if (!json_is_object(entry))
            rc = mr_fail(err, MR_ERR_PROTOCOL, "Entry %zu of 'offsets' must be a JSON object", i);
        else if ((rc = check_members(entry, members, err)) != 0)
            break;
        else if (!object_or_null(entry, "partition", &partition))
            rc = wrong(err, "The member 'partition'", i);
        else if (!object_or_null(entry, "offset", &offset))
            rc = wrong(err, "The member 'offset'", i);
        else
            add(out, known, partition, offset);
        if (rc != 0)
            break;
    }
    map_free(&known, NULL);
    return rc;
}

static int read_document(const json_t *document, json_t *out, struct mr_error *err)
{
    static const char *const members[] = {"offsets", NULL};
    const json_t *list = json_object_get(document, "offsets");
    int rc;

    if (!json_is_object(document))
        return mr_fail(err, MR_ERR_PROTOCOL, "The request body must be a JSON object");
    rc = check_members(document, members, err);
    if (rc != 0 || list == NULL || json_is_null(list))
        return rc;
    if (!json_is_array(list))
        return mr_fail(err, MR_ERR_PROTOCOL, "The member 'offsets' must be a JSON array");
    if (json_array_size(list) > REQUEST_OFFSETS_MAX)
        return mr_fail(err, MR_ERR_PROTOCOL, "One request may change at most %d offsets",
                       REQUEST_OFFSETS_MAX);
    return read_entries(list, out, err);
}

static bool is_blank(const char *data, size_t len)
{
    if (len >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0) {
        data += 3;
        len -= 3;
    }
    while (len > 0 && strchr(" \t\n\r", data[len - 1]) != NULL && data[len - 1] != '\0')
        len--;
    return len == 0;
}

static json_t *parse(const char *data, size_t len, struct mr_error *err)
{
    json_t *document = NULL;
    struct buf marked;

    buf_init(&marked, 4 * len + 64);
    if (mark_large(data, len, &marked) != 0)
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
    else if ((document = json_parse(marked.data, marked.len, err)) == NULL)
        err_prefix(err, "Malformed JSON");
    buf_deinit(&marked);
    return document;
}

int request_offsets_parse(const char *data, size_t len, json_t **out, bool *absent,
                          struct mr_error *err)
{
    json_t *document, *list = json_array();
    int rc = 0;

    mr_assert(list != NULL);
    *absent = is_blank(data, len);
    document = *absent ? NULL : parse(data, len, err);
    *absent = *absent || json_is_null(document);
    if (!*absent)
        rc = document == NULL ? err->code : read_document(document, list, err);
    json_decref(document);
    if (rc == 0)
        *out = list;
    else
        json_decref(list);
    return rc;
}
