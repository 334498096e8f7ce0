/* SPDX-License-Identifier: Apache-2.0 */
/* offset_records: Java's keys and values byte for byte; partitions are equal as values, and Java
 * finds what we write. */
#include "support/unit/golden.h"
#include "model/offset_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t moment;

static int put(struct offset_table *table, const char *key, const char *value)
{
    struct offset_record rec = {.key = key,
                                .key_len = strlen(key),
                                .value = value,
                                .value_len = value != NULL ? strlen(value) : 0,
                                .timestamp_ms = ++moment};

    return offset_table_apply(table, &rec, NULL);
}

static json_t *json_of(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    assert_non_null(value);
    return value;
}

/* The offset as text, "" for none. */
static const char *get(const struct offset_table *table, const char *conn, const char *partition)
{
    static char text[256];
    json_t *key = json_of(partition);
    const json_t *offset = offset_table_get(table, conn, key);
    char *dump = offset != NULL ? json_dumps(offset, JSON_COMPACT) : NULL;

    snprintf(text, sizeof(text), "%s", dump != NULL ? dump : "");
    free(dump);
    json_decref(key);
    return text;
}

static int on_key(void *arg, const char *key, size_t len)
{
    struct buf *keys = arg;

    buf_append(keys, key, len);
    return buf_putc(keys, '\n');
}

static const char *keys(const struct offset_table *table, const char *conn, const char *partition,
                        bool tombstone)
{
    static char text[512];
    json_t *key = json_of(partition);
    struct buf out;

    buf_init(&out, sizeof(text) - 1);
    assert_int_equal(offset_table_keys(table, conn, key, tombstone, on_key, &out), 0);
    snprintf(text, sizeof(text), "%s", out.data);
    buf_deinit(&out);
    json_decref(key);
    return text;
}

static void javas_records_are_found_and_written_as_they_were(void **state)
{
    struct golden golden = golden_topic("disabled", "offsets");
    struct offset_table *table = offset_table_new(100), *fresh = offset_table_new(1);

    (void)state;
    for (size_t i = 0; i < golden.count; i++) {
        const struct golden_record *java = &golden.records[i];
        json_t *key = json_of(java->key), *value;
        const char *conn = json_string_value(json_array_get(key, 0));
        char *partition = json_dumps(json_array_get(key, 1), JSON_COMPACT);
        char want[256];
        struct buf text;

        assert_int_equal(put(table, java->key, java->value), 0);
        assert_string_equal(get(table, conn, partition), java->value != NULL ? java->value : "");
        snprintf(want, sizeof(want), "%s\n", java->key);
        assert_string_equal(keys(table, conn, partition, false), want);
        /* and a table that never saw it writes the same */
        assert_string_equal(keys(fresh, conn, partition, false), want);
        buf_init(&text, 1000);
        if (java->value != NULL) {
            value = json_of(java->value);
            assert_int_equal(offset_records_render(value, &text), 0);
            assert_string_equal(text.data, java->value);
            json_decref(value);
        }
        buf_deinit(&text);
        free(partition);
        json_decref(key);
    }
    offset_table_free(&table);
    offset_table_free(&fresh);
    golden_free(&golden);
}

static void partitions_are_equal_as_values(void **state)
{
    struct offset_table *table = offset_table_new(100);

    (void)state;
    put(table, "[\"c\",{\"b\":1,\"a\":\"\\u00e9\"}]", "{\"o\":1}");
    assert_string_equal(get(table, "c", "{\"a\":\"\xc3\xa9\",\"b\":1}"), "{\"o\":1}");
    assert_string_equal(get(table, "c", "{\"a\":\"\xc3\xa9\",\"b\":1.0}"), "");
    assert_string_equal(get(table, "d", "{\"a\":\"\xc3\xa9\",\"b\":1}"), "");
    assert_string_equal(get(table, "c", "{\"b\":1}"), "");
    offset_table_free(&table);
}

static void an_offset_goes_to_the_newest_spelling_a_removal_to_all(void **state)
{
    struct offset_table *table = offset_table_new(100);

    (void)state;
    assert_string_equal(keys(table, "c", "{\"b\":1,\"a\":2}", false),
                        "[\"c\",{\"a\":2,\"b\":1}]\n");
    put(table, "[\"c\",{\"b\":1,\"a\":2}]", "{\"o\":1}");
    assert_string_equal(keys(table, "c", "{\"a\":2,\"b\":1}", false),
                        "[\"c\",{\"b\":1,\"a\":2}]\n");
    put(table, "[\"c\", {\"a\":2,\"b\":1}]", "{\"o\":2}");
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), "{\"o\":2}");
    assert_string_equal(keys(table, "c", "{\"a\":2,\"b\":1}", false),
                        "[\"c\", {\"a\":2,\"b\":1}]\n");
    assert_string_equal(keys(table, "c", "{\"a\":2,\"b\":1}", true),
                        "[\"c\", {\"a\":2,\"b\":1}]\n[\"c\",{\"b\":1,\"a\":2}]\n");
    put(table, "[\"c\",{\"b\":1,\"a\":2}]", "{\"o\":3}");
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), "{\"o\":3}");
    put(table, "[\"c\", {\"a\":2,\"b\":1}]", NULL);
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), ""); /* the newest word counts */
    offset_table_free(&table);
}

/* Partitions of the topic are read one after another at a start: time decides and not the order of
 * reading. */
static void of_two_spellings_the_later_in_time_wins(void **state)
{
    struct offset_table *table = offset_table_new(100);

    (void)state;
    moment = 100;
    put(table, "[\"c\",{\"b\":1,\"a\":2}]", "{\"o\":\"late\"}");
    moment = 10;
    put(table, "[\"c\",{\"a\":2,\"b\":1}]", "{\"o\":\"early\"}");
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), "{\"o\":\"late\"}");
    moment = 20;
    put(table, "[\"c\",{\"a\":2,\"b\":1}]", "{\"o\":\"still early\"}");
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), "{\"o\":\"late\"}");
    moment = 200;
    put(table, "[\"c\",{\"a\":2,\"b\":1}]", "{\"o\":\"now\"}");
    assert_string_equal(get(table, "c", "{\"a\":2,\"b\":1}"), "{\"o\":\"now\"}");
    offset_table_free(&table);
}

static void foreign_keys_are_skipped(void **state)
{
    static const char *const odd[][2] = {
        {"", "{}"},
        {"x", "{}"},
        {"{}", "{}"},
        {"[]", "{}"},
        {"[\"c\"]", "{}"},
        {"[\"c\",1]", "{}"},
        {"[1,{}]", "{}"},
        {"[\"c\",{},{}]", "{}"},
        {"[\"c\",{}]", "[1]"},
        {"[\"c\",{}]", "{"},
        {"[\"c\\u0000\",{}]", "{}"},
        {"[\"c\",null]", "{}"},
    };
    struct offset_table *table = offset_table_new(100);
    json_t *all;

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
        assert_int_equal(put(table, odd[i][0], odd[i][1]), MR_ERR_DATA);
    assert_int_equal(put(table, "[\"c\",{\"p\":1}]", "{\"o\":1}"), 0);
    all = offset_table_list(table, "c");
    assert_int_equal(json_array_size(all), 1);
    json_decref(all);
    offset_table_free(&table);
}

static void a_full_table_says_so_and_keeps_what_it_has(void **state)
{
    struct offset_table *table = offset_table_new(2);

    (void)state;
    assert_int_equal(put(table, "[\"c\",{\"p\":1}]", "{\"o\":1}"), 0);
    assert_int_equal(put(table, "[\"c\",{\"p\":2}]", "{\"o\":1}"), 0);
    assert_int_equal(put(table, "[\"c\",{\"p\":3}]", "{\"o\":1}"), MR_ERR_FULL);
    assert_int_equal(put(table, "[\"c\",{\"p\":1}]", "{\"o\":5}"), 0);
    assert_string_equal(get(table, "c", "{\"p\":1}"), "{\"o\":5}");
    offset_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(javas_records_are_found_and_written_as_they_were),
        cmocka_unit_test(partitions_are_equal_as_values),
        cmocka_unit_test(an_offset_goes_to_the_newest_spelling_a_removal_to_all),
        cmocka_unit_test(of_two_spellings_the_later_in_time_wins),
        cmocka_unit_test(foreign_keys_are_skipped),
        cmocka_unit_test(a_full_table_says_so_and_keeps_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
