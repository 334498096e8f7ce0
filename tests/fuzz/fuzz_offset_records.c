/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an offsets topic (record_input.h). What was taken is found, by the same key and by
 * every spelling of it; a removal names all spellings. */
#include "model/offset_records.h"
#include "model/stored_json.h"

#include "fuzz/record_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MAX ((size_t)1 << 20)

struct seen {
    const uint8_t *key;
    size_t len;
    int hits;
};

static int on_key(void *arg, const char *key, size_t len)
{
    struct seen *seen = arg;

    seen->hits += len == seen->len && memcmp(key, seen->key, len) == 0;
    return 0;
}

/* The record was the newest: its key is the one to write to, its value the one to find. */
static void check_found(const struct offset_table *table, const struct offset_record *rec)
{
    struct seen seen = {rec->key, rec->key_len, 0};
    json_t *key = NULL, *value = NULL;
    const json_t *found;
    struct buf text;

    mr_assert(stored_json_parse(rec->key, rec->key_len, &key, NULL) == 0);
    mr_assert(stored_json_parse(rec->value, rec->value_len, &value, NULL) == 0);
    found =
        offset_table_get(table, json_string_value(json_array_get(key, 0)), json_array_get(key, 1));
    mr_assert((found == NULL) == (value == NULL) && (found == NULL || json_equal(found, value)));
    for (int tombstone = 0; tombstone < 2; tombstone++)
        mr_assert(offset_table_keys(table, json_string_value(json_array_get(key, 0)),
                                    json_array_get(key, 1), tombstone != 0, on_key, &seen) == 0);
    mr_assert(seen.hits == 2);
    if (value != NULL) {
        json_t *back = NULL;

        buf_init(&text, MAX);
        if (offset_records_render(value, &text) == 0) {
            mr_assert(stored_json_parse(text.data, text.len, &back, NULL) == 0);
            mr_assert(json_equal(back, value));
        }
        json_decref(back);
        buf_deinit(&text);
    }
    json_decref(offset_table_list(table, json_string_value(json_array_get(key, 0))));
    json_decref(key);
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct offset_table *table = offset_table_new(16);
    struct record_input in = {.data = data, .len = len};

    for (int64_t offset = 0; record_input_next(&in); offset++) {
        struct mr_error err = {0};
        struct offset_record rec = {.key = in.key,
                                    .key_len = in.key_len,
                                    .value = in.value,
                                    .value_len = in.value_len,
                                    .timestamp_ms = offset,
                                    .offset = offset};
        int rc = offset_table_apply(table, &rec, &err);

        mr_assert(rc == 0 || rc == MR_ERR_DATA || rc == MR_ERR_FULL);
        if (rc == 0)
            check_found(table, &rec);
    }
    offset_table_free(&table);
    return 0;
}
