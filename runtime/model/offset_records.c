/* SPDX-License-Identifier: Apache-2.0 */
/* The table of source offsets that an offsets topic adds up to: the worker's, which its store
 * thread keeps, or one of a connector's own, which a task keeps.
 *
 * An entry stands for one partition of one connector, as a value: members sorted, numbers by value
 * (1 and 1.0 differ). It has one variant for each spelling of the key that was seen; normally one.
 * The newest variant (by the record's time, then by arrival) says what the offset is, tombstones
 * included. An offset is written under the newest spelling, since Java looks it up by those bytes;
 * a removal goes to all spellings, or the older one would come back. Keys that are no [connector,
 * partition] are somebody else's: skipped. */
#include "model/offset_records.h"

#include "base/map.h"
#include "base/text.h"
#include "model/stored_json.h"

#define KEY_MAX ((size_t)16 << 20)

struct variant {
    char *key; /* raw */
    size_t len;
    int64_t timestamp_ms;
    uint64_t arrival;
    json_t *offset; /* NULL: removed */
};

struct entry {
    char *conn;
    json_t *partition;
    struct variant *variants; /* the newest first */
    size_t count;
};

struct offset_table {
    struct map *entries; /* canonical key → struct entry */
    size_t max;
    uint64_t arrivals;
};

static void free_entry(void *arg)
{
    struct entry *entry = arg;

    for (size_t i = 0; i < entry->count; i++) {
        free(entry->variants[i].key);
        json_decref(entry->variants[i].offset);
    }
    free(entry->variants);
    free(entry->conn);
    json_decref(entry->partition);
    free(entry);
}

struct offset_table *offset_table_new(size_t max)
{
    struct offset_table *table = calloc(1, sizeof(*table));

    mr_assert(table != NULL);
    table->entries = map_new();
    table->max = max;
    return table;
}

void offset_table_free(struct offset_table **table)
{
    if (*table == NULL)
        return;
    map_free(&(*table)->entries, free_entry);
    free(*table);
    *table = NULL;
}

/* One text for all spellings. NULL out of memory. */
static char *canonical(const char *conn, const json_t *partition)
{
    json_t *pair = json_pack("[sO]", conn, partition);
    char *text = pair != NULL ? json_dumps(pair, JSON_SORT_KEYS | JSON_COMPACT) : NULL;

    json_decref(pair);
    return text;
}

static struct entry *find(const struct offset_table *table, const char *conn,
                          const json_t *partition)
{
    char *key = canonical(conn, partition);
    struct entry *entry = key != NULL ? map_get(table->entries, key) : NULL;

    free(key);
    return entry;
}

/* --- applying --------------------------------------------------------------------------------- */

static struct entry *entry_of(struct offset_table *table, const char *conn, json_t *partition,
                              struct mr_error *err)
{
    char *key = canonical(conn, partition);
    struct entry *entry = key != NULL ? map_get(table->entries, key) : NULL;

    mr_assert(key != NULL);
    if (entry == NULL && map_count(table->entries) >= table->max) {
        mr_fail(err, MR_ERR_FULL, "more than %zu partitions with an offset", table->max);
    } else if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        mr_assert(entry != NULL);
        entry->conn = text_dup(conn);
        entry->partition = json_incref(partition);
        map_set(table->entries, key, entry);
    }
    free(key);
    return entry;
}

/* The variant of these bytes; a new one at the end. */
static size_t variant_of(struct entry *entry, const void *key, size_t len)
{
    for (size_t i = 0; i < entry->count; i++)
        if (entry->variants[i].len == len && memcmp(entry->variants[i].key, key, len) == 0)
            return i;
    entry->variants = realloc(entry->variants, (entry->count + 1) * sizeof(*entry->variants));
    mr_assert(entry->variants != NULL);
    entry->variants[entry->count] = (struct variant){.key = malloc(len), .len = len};
    mr_assert(entry->variants[entry->count].key != NULL);
    memcpy(entry->variants[entry->count].key, key, len);
    return entry->count++;
}

static bool newer(const struct variant *a, const struct variant *b)
{
    return a->timestamp_ms != b->timestamp_ms ? a->timestamp_ms > b->timestamp_ms
                                              : a->arrival > b->arrival;
}

/* offset: taken; NULL removes. */
static void update(struct offset_table *table, struct entry *entry, const struct offset_record *rec,
                   json_t *offset)
{
    size_t i = variant_of(entry, rec->key, rec->key_len);
    struct variant now = entry->variants[i];

    json_decref(now.offset);
    now.offset = offset;
    now.timestamp_ms = rec->timestamp_ms;
    now.arrival = ++table->arrivals;
    memmove(entry->variants + i, entry->variants + i + 1,
            (entry->count - i - 1) * sizeof(*entry->variants));
    for (i = 0; i + 1 < entry->count && newer(&entry->variants[i], &now);)
        i++;
    memmove(entry->variants + i + 1, entry->variants + i,
            (entry->count - i - 1) * sizeof(*entry->variants));
    entry->variants[i] = now;
}

/* Gives the connector, and the partition (borrowed from key). */
static int read_key(const json_t *key, const char **conn, json_t **partition, struct mr_error *err)
{
    const json_t *name = json_array_get(key, 0);

    *partition = json_array_get(key, 1);
    if (json_array_size(key) != 2 || !json_is_string(name) ||
        strlen(json_string_value(name)) != json_string_length(name))
        return mr_fail(err, MR_ERR_DATA, "its key is no [connector, partition]");
    if (json_is_null(*partition))
        return MR_ERR_DATA;
    if (!json_is_object(*partition))
        return mr_fail(err, MR_ERR_DATA, "the partition in its key is no object");
    *conn = json_string_value(name);
    return 0;
}

static int apply(struct offset_table *table, const json_t *key, json_t *offset,
                 const struct offset_record *rec, struct mr_error *err)
{
    const char *conn = NULL;
    json_t *partition = NULL;
    struct entry *entry;
    int rc = read_key(key, &conn, &partition, err);

    if (rc != 0)
        return rc;
    if (offset != NULL && !json_is_object(offset))
        return mr_fail(err, MR_ERR_DATA, "its value is no object");
    entry = entry_of(table, conn, partition, err);
    if (entry == NULL)
        return MR_ERR_FULL;
    update(table, entry, rec, json_incref(offset));
    return 0;
}

int offset_table_apply(struct offset_table *table, const struct offset_record *rec,
                       struct mr_error *err)
{
    json_t *key = NULL, *offset = NULL;
    int rc;

    if (rec->key_len == 0 || rec->key_len > KEY_MAX)
        return mr_fail(err, MR_ERR_DATA, "its key is empty, or longer than %zu bytes", KEY_MAX);
    rc = stored_json_parse(rec->key, rec->key_len, &key, err);
    if (rc == 0)
        rc = stored_json_parse(rec->value, rec->value != NULL ? rec->value_len : 0, &offset, err);
    if (rc == 0)
        rc = apply(table, key, offset, rec, err);
    json_decref(key);
    json_decref(offset);
    return rc == MR_ERR_PROTOCOL ? MR_ERR_DATA : rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

const json_t *offset_table_get(const struct offset_table *table, const char *conn,
                               const json_t *partition)
{
    const struct entry *entry = find(table, conn, partition);

    return entry != NULL ? entry->variants[0].offset : NULL;
}

json_t *offset_table_list(const struct offset_table *table, const char *conn)
{
    json_t *list = json_array();
    const char *key;
    void *value;

    mr_assert(list != NULL);
    for (size_t i = 0; map_next(table->entries, &i, &key, &value);) {
        const struct entry *entry = value;

        if (strcmp(entry->conn, conn) == 0 && entry->variants[0].offset != NULL)
            mr_assert(json_array_append_new(list, json_pack("[OO]", entry->partition,
                                                            entry->variants[0].offset)) == 0);
    }
    return list;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A partition that nobody wrote yet: members by name. */
static int new_key(const char *conn, const json_t *partition, offset_table_key_fn fn, void *arg)
{
    char *sorted = json_dumps(partition, JSON_SORT_KEYS | JSON_COMPACT);
    json_t *members = sorted != NULL ? json_loads(sorted, JSON_ALLOW_NUL, NULL) : NULL;
    json_t *pair = members != NULL ? json_pack("[sO]", conn, members) : NULL;
    struct buf text;
    int rc = MR_ERR_NOMEM;

    buf_init(&text, KEY_MAX);
    if (pair != NULL && stored_json_write(&text, pair) == 0)
        rc = fn(arg, text.data, text.len);
    buf_deinit(&text);
    json_decref(pair);
    json_decref(members);
    free(sorted);
    return rc;
}

int offset_table_keys(const struct offset_table *table, const char *conn, const json_t *partition,
                      bool tombstone, offset_table_key_fn fn, void *arg)
{
    const struct entry *entry = find(table, conn, partition);
    int rc = 0;

    if (entry == NULL)
        return new_key(conn, partition, fn, arg);
    for (size_t i = 0; rc == 0 && i < (tombstone ? entry->count : 1); i++)
        rc = fn(arg, entry->variants[i].key, entry->variants[i].len);
    return rc;
}

int offset_records_render(const json_t *offset, struct buf *value)
{
    return stored_json_write(value, offset);
}
