/* SPDX-License-Identifier: Apache-2.0 */
/* Judges and translates the offsets of PATCH /connectors/X/offsets, with the Java worker's texts,
 * and makes the body of GET. Values that are wrong are shown as Java prints them. Called by
 * offset_changes.c. Pure. */
#include "worker/herder/offsets/offset_entries.h"

#include "base/map.h"
#include "base/text.h"
#include "model/stored_json.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 512

/* --- a source's ------------------------------------------------------------------------------- */

static bool is_big(const json_t *value)
{
    return json_object_size(value) == 1 &&
           json_is_string(json_object_get(value, OFFSET_ENTRIES_BIG));
}

/* How Java calls what it does not take; NULL: it does. */
static const char *foreign_type(const json_t *value)
{
    if (json_is_array(value))
        return "ARRAY";
    if (is_big(value))
        return "class " OFFSET_ENTRIES_BIG;
    return json_is_object(value) ? "MAP" : NULL;
}

static int check_object(const json_t *object, struct mr_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const char *type = foreign_type(value);

        if (type != NULL)
            return mr_fail(err, MR_ERR_DATA,
                           "Offsets may only contain primitive types as values, but field %.400s "
                           "contains %s",
                           key, type);
    }
    return 0;
}

int offset_entries_check(const json_t *entries, struct mr_error *err)
{
    const json_t *entry;
    size_t i;
    int rc = 0;

    json_array_foreach(entries, i, entry)
    {
        if (rc == 0)
            rc = check_object(json_array_get(entry, 0), err);
        if (rc == 0)
            rc = check_object(json_array_get(entry, 1), err);
    }
    return rc;
}

/* --- as Java prints it ------------------------------------------------------------------------ */

static void print(struct buf *out, const json_t *value);

static void print_object(struct buf *out, const json_t *object)
{
    const char *key, *between = "";
    json_t *value;

    buf_putc(out, '{');
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        buf_printf(out, "%s%s=", between, key);
        print(out, value);
        between = ", ";
    }
    buf_putc(out, '}');
}

static void print_array(struct buf *out, const json_t *array)
{
    const json_t *value;
    size_t i;

    buf_putc(out, '[');
    json_array_foreach(array, i, value)
    {
        buf_puts(out, i > 0 ? ", " : "");
        print(out, value);
    }
    buf_putc(out, ']');
}

static void print(struct buf *out, const json_t *value)
{
    if (is_big(value))
        buf_puts(out, json_string_value(json_object_get(value, OFFSET_ENTRIES_BIG)));
    else if (json_is_object(value))
        print_object(out, value);
    else if (json_is_array(value))
        print_array(out, value);
    else if (json_is_string(value))
        buf_puts(out, json_string_value(value));
    else
        (void)stored_json_write(out, value);
}

/* What is too long for a message is cut. malloc'ed. */
static char *shown(const json_t *value)
{
    struct buf text;
    char *copy;

    buf_init(&text, (size_t)16 << 20);
    print(&text, value);
    copy = text_dup_len(text.data != NULL ? text.data : "", text.len);
    buf_deinit(&text);
    return copy;
}

/* As Java's parseInt and parseLong: a sign and digits, nothing else. */
static bool read_number(const char *text, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    long long n;

    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno != 0 || n < min || n > max)
        return false;
    *out = n;
    return true;
}

/* --- a sink's --------------------------------------------------------------------------------- */

static int wrong(struct mr_error *err, const char *text)
{
    return mr_fail(err, MR_ERR_CONFIG, "%s", text);
}

static int read_shown(const json_t *value, const char *what, const char *plural,
                      const int64_t range[2], int64_t *out, struct mr_error *err)
{
    char *text = shown(value);
    int rc = 0;

    if (!read_number(text, range[0], range[1], out))
        rc = mr_fail(err, MR_ERR_CONFIG,
                     "Failed to parse the following Kafka %s value in the provided offsets: "
                     "'%.*s'. %s values for sink connectors need to be integers.",
                     what, SHOWN_MAX, text, plural);
    free(text);
    return rc;
}

static int read_partition(const json_t *from, struct group_offset *out, struct mr_error *err)
{
    static const int64_t range[2] = {INT32_MIN, INT32_MAX};
    const json_t *topic = json_object_get(from, "kafka_topic"),
                 *number = json_object_get(from, "kafka_partition");
    int64_t n = 0;
    int rc;

    if (!json_is_object(from))
        return wrong(err, "The partition for a sink connector offset cannot be null or missing");
    if (topic == NULL || number == NULL)
        return wrong(err, "The partition for a sink connector offset must contain the keys "
                          "'kafka_topic' and 'kafka_partition'");
    if (json_is_null(topic))
        return wrong(err, "Kafka topic names must be valid strings and may not be null");
    if (json_is_null(number))
        return wrong(err, "Kafka partitions must be valid numbers and may not be null");
    rc = read_shown(number, "partition", "Partition", range, &n, err);
    if (rc != 0)
        return rc;
    out->partition = (int32_t)n;
    out->topic = shown(topic);
    return 0;
}

static int read_offset(const json_t *from, struct group_offset *out, struct mr_error *err)
{
    static const int64_t range[2] = {INT64_MIN, INT64_MAX};
    const json_t *offset = json_object_get(from, "kafka_offset");
    int rc;

    out->offset = -1;
    if (!json_is_object(from))
        return 0;
    if (offset == NULL)
        return wrong(err, "The offset for a sink connector should either be null or contain the "
                          "key 'kafka_offset'");
    rc = read_shown(offset, "offset", "Offset", range, &out->offset, err);
    if (rc == 0 && out->offset < 0)
        rc = mr_fail(err, MR_ERR_DATA, "an offset is negative: %lld", (long long)out->offset);
    return rc;
}

struct group_list {
    struct group_offset *items;
    size_t count;
    struct map *known; /* "PARTITION TOPIC" → struct group_offset */
};

/* one: taken. */
static void add(struct group_list *list, const struct group_offset *one)
{
    struct group_offset *before;
    char *key = NULL;

    mr_assert(asprintf(&key, "%d %s", (int)one->partition, one->topic) > 0);
    before = map_get(list->known, key);
    if (before != NULL) {
        free(before->topic);
        *before = *one;
    } else {
        list->items[list->count] = *one;
        map_set(list->known, key, &list->items[list->count++]);
    }
    free(key);
}

static int read_all(const json_t *entries, struct group_list *list, struct mr_error *err)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(entries, i, entry)
    {
        struct group_offset one = {0};
        int rc = read_partition(json_array_get(entry, 0), &one, err);

        if (rc == 0)
            rc = read_offset(json_array_get(entry, 1), &one, err);
        if (rc != 0) {
            free(one.topic);
            return rc;
        }
        add(list, &one);
    }
    return 0;
}

int offset_entries_to_group(const json_t *entries, struct group_offset **out, size_t *count,
                            struct mr_error *err)
{
    struct group_list list = {.items = calloc(json_array_size(entries) + 1, sizeof(*list.items)),
                              .known = map_new()};
    int rc;

    mr_assert(list.items != NULL);
    rc = read_all(entries, &list, err);
    map_free(&list.known, NULL);
    if (rc != 0) {
        group_offsets_free(list.items, list.count);
        return rc;
    }
    *out = list.items;
    *count = list.count;
    return 0;
}

/* --- the body of GET -------------------------------------------------------------------------- */

static void write_one(struct buf *out, size_t i, const json_t *partition, const json_t *offset)
{
    buf_puts(out, i > 0 ? ",{\"partition\":" : "{\"partition\":");
    (void)json_write(out, partition);
    buf_puts(out, ",\"offset\":");
    (void)json_write(out, offset);
    buf_putc(out, '}');
}

int offset_entries_write(struct buf *out, const json_t *entries)
{
    const json_t *entry;
    size_t i;

    buf_puts(out, "{\"offsets\":[");
    json_array_foreach(entries, i, entry)
    {
        write_one(out, i, json_array_get(entry, 0), json_array_get(entry, 1));
    }
    buf_puts(out, "]}");
    return out->failed ? MR_ERR_FULL : 0;
}

int offset_entries_write_group(struct buf *out, const struct group_offset *list, size_t count)
{
    buf_puts(out, "{\"offsets\":[");
    for (size_t i = 0; i < count; i++) {
        json_t *partition = json_pack("{s:i, s:s}", "kafka_partition", (int)list[i].partition,
                                      "kafka_topic", list[i].topic);
        json_t *offset = json_pack("{s:I}", "kafka_offset", (json_int_t)list[i].offset);

        mr_assert(partition != NULL && offset != NULL);
        write_one(out, i, partition, offset);
        json_decref(partition);
        json_decref(offset);
    }
    buf_puts(out, "]}");
    return out->failed ? MR_ERR_FULL : 0;
}
