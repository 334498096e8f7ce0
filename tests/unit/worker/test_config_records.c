/* SPDX-License-Identifier: Apache-2.0 */
/* config_records: byte for byte what the Java worker wrote, and a verdict of its own for every odd
 * record. */
#include "support/unit/golden.h"
#include "worker/store/config_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void javas_records_come_back_byte_for_byte(void **state)
{
    struct golden golden = golden_topic(NULL, "configs");
    size_t kinds[CONFIG_LOGGER + 1] = {0};

    (void)state;
    for (size_t i = 0; i < golden.count; i++) {
        const struct golden_record *java = &golden.records[i];
        struct config_record rec;
        struct mr_error err = {0};
        struct buf key, value;

        buf_init(&key, 1 << 20);
        buf_init(&value, 1 << 20);
        if (config_records_parse(java->key, java->key_len, java->value, java->value_len, &rec,
                                 &err) != 0)
            fail_msg("%s: %s", java->key, err.text);
        assert_int_equal(err.text[0], 0);
        kinds[rec.kind]++;
        assert_int_equal(config_records_render(&rec, &key, &value), 0);
        assert_string_equal(key.data, java->key);
        if (java->value == NULL)
            assert_int_equal(value.len, 0);
        else
            assert_string_equal(value.data, java->value);
        config_record_deinit(&rec);
        buf_deinit(&key);
        buf_deinit(&value);
    }
    for (size_t i = 0; i <= CONFIG_LOGGER; i++)
        if (kinds[i] == 0)
            fail_msg("no golden record of kind %zu", i);
    golden_free(&golden);
}

/* What the worker makes of odd.jsonl: 0 fine, D skipped but counts, P no JSON, R fine with a
 * remark. */
static const struct {
    const char *name;
    char verdict;
} odd[] = {
    {"bad JSON", 'P'},
    {"empty value", '0'},
    {"unknown key", 'D'},
    {"connector- not an object", 'D'},
    {"connector- without properties", 'D'},
    {"connector- properties not an object", 'D'},
    {"connector- value a number", '0'},
    {"task- of missing connector", '0'},
    {"commit- of missing connector", '0'},
    {"commit- tasks as string", 'D'},
    {"commit- tasks as float", 'D'},
    {"commit- without tasks", 'D'},
    {"task- bad id", 'D'},
    {"task- null", 'D'},
    {"commit- null", 'D'},
    {"commit- more than there are", '0'},
    {"target-state- unknown word", 'D'},
    {"target-state- number", 'D'},
    {"target-state- only old field", '0'},
    {"target-state- v2 unknown", 'D'},
    {"target-state tombstone", '0'},
    {"tasks-fencing- string", 'D'},
    {"tasks-fencing- null", 'D'},
    {"session-key bad base64", 'D'},
    {"session-key null", 'D'},
    {"session-key no timestamp", 'D'},
    {"restart- wrong types", 'R'},
    {"restart- of missing", '0'},
    {"logger- bad level", '0'},
    {"logger- null", 'D'},
    {"key null", 'D'},
    {"key not UTF-8", 'D'},
    {"key empty", 'D'},
};

static void odd_records_are_told_apart(void **state)
{
    struct golden golden = golden_odd();

    (void)state;
    assert_int_equal(golden.count, sizeof(odd) / sizeof(*odd));
    for (size_t i = 0; i < golden.count; i++) {
        const struct golden_record *java = &golden.records[i];
        struct config_record rec;
        struct mr_error err = {0};
        int rc = config_records_parse(java->key, java->key_len, java->value, java->value_len, &rec,
                                      &err);
        char verdict = (char)(rc == MR_ERR_PROTOCOL ? 'P'
                              : rc == MR_ERR_DATA   ? 'D'
                              : err.text[0] != '\0' ? 'R'
                                                    : '0');

        assert_string_equal(java->name, odd[i].name);
        if (verdict != odd[i].verdict)
            fail_msg("%s: %c and not %c: %s", java->name, verdict, odd[i].verdict, err.text);
        if (rc != 0)
            assert_true(err.text[0] != '\0' && rec.name == NULL && rec.props.count == 0);
        config_record_deinit(&rec);
    }
    golden_free(&golden);
}

static struct config_record parse(const char *key, const char *value)
{
    struct config_record rec;
    struct mr_error err = {0};

    if (config_records_parse(key, strlen(key), value, value != NULL ? strlen(value) : 0, &rec,
                             &err) != 0)
        fail_msg("%s: %s", key, err.text);
    return rec;
}

static int verdict(const char *key, const char *value)
{
    struct config_record rec;
    int rc = config_records_parse(key, strlen(key), value, strlen(value), &rec, NULL);

    config_record_deinit(&rec);
    return rc;
}

static void names_may_have_hyphens_and_task_numbers_stand_last(void **state)
{
    struct config_record rec = parse("task-a-b--12-7", "{\"properties\":{}}");

    (void)state;
    assert_string_equal(rec.name, "a-b--12");
    assert_int_equal(rec.task, 7);
    config_record_deinit(&rec);
    assert_int_equal(verdict("task-7", "{\"properties\":{}}"), MR_ERR_DATA);
    assert_int_equal(verdict("task--7", "{\"properties\":{}}"), MR_ERR_DATA);
    assert_int_equal(verdict("task-a-99999999999", "{\"properties\":{}}"), MR_ERR_DATA);
    assert_int_equal(verdict("task-a-1x", "{\"properties\":{}}"), MR_ERR_DATA);
    assert_int_equal(verdict("session-key-2", "{}"), MR_ERR_DATA);
    assert_int_equal(verdict("connector-", "{\"properties\":{}}"), MR_ERR_DATA);
}

static void values_of_other_types_become_text(void **state)
{
    struct config_record rec =
        parse("connector-a",
              "{\"more\":[],\"properties\":{\"n\":1,\"t\":true,\"z\":null,\"o\":{\"a\":[1]}}}");

    (void)state;
    assert_string_equal(props_get(&rec.props, "n"), "1");
    assert_string_equal(props_get(&rec.props, "t"), "true");
    assert_string_equal(props_get(&rec.props, "o"), "{\"a\":[1]}");
    assert_non_null(props_find(&rec.props, "z"));
    assert_null(props_get(&rec.props, "z"));
    config_record_deinit(&rec);
    assert_int_equal(verdict("connector-a", "{\"properties\":{\"n\":\"\\u0000\"}}"), MR_ERR_DATA);
}

static void counts_keep_their_range(void **state)
{
    (void)state;
    assert_int_equal(verdict("commit-a", "{\"tasks\":0}"), 0);
    assert_int_equal(verdict("commit-a", "{\"tasks\":2147483647}"), 0);
    assert_int_equal(verdict("commit-a", "{\"tasks\":2147483648}"), MR_ERR_DATA);
    assert_int_equal(verdict("commit-a", "{\"tasks\":-1}"), MR_ERR_DATA);
    assert_int_equal(verdict("commit-a", "{\"tasks\":1.0}"), MR_ERR_DATA);
    assert_int_equal(verdict("tasks-fencing-a", "{\"task-count\":true}"), MR_ERR_DATA);
    assert_int_equal(verdict("tasks-fencing-a", "{\"task-count\":1000000}"), 0);
    assert_int_equal(verdict("tasks-fencing-a", "{\"task-count\":1000001}"), MR_ERR_DATA);
}

static void state_v2_wins_and_stopped_is_paused_for_old_workers(void **state)
{
    struct config_record rec =
        parse("target-state-a", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    struct buf key, value;

    (void)state;
    assert_int_equal(rec.target, TARGET_STOPPED);
    buf_init(&key, 100);
    buf_init(&value, 100);
    assert_int_equal(config_records_render(&rec, &key, &value), 0);
    assert_string_equal(value.data, "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    buf_deinit(&key);
    buf_deinit(&value);
    config_record_deinit(&rec);
    rec = parse("target-state-a", "{\"state\":\"PAUSED\",\"state.v2\":5}");
    assert_int_equal(rec.target, TARGET_PAUSED);
    config_record_deinit(&rec);
}

static void a_configuration_of_five_megabytes_passes(void **state)
{
    size_t len = (size_t)5 << 20;
    char *big = malloc(len + 1);
    struct config_record rec = {.kind = CONFIG_CONNECTOR, .name = (char *)"big"}, back;
    struct buf key, value;

    (void)state;
    memset(big, 'x', len);
    big[len] = '\0';
    props_init(&rec.props);
    props_set(&rec.props, "query", big);
    buf_init(&key, 100);
    buf_init(&value, (size_t)8 << 20);
    assert_int_equal(config_records_render(&rec, &key, &value), 0);
    assert_int_equal(config_records_parse(key.data, key.len, value.data, value.len, &back, NULL),
                     0);
    assert_string_equal(props_get(&back.props, "query"), big);
    config_record_deinit(&back);
    props_deinit(&rec.props);
    buf_deinit(&value);
    buf_init(&value, (size_t)4 << 20);
    props_init(&rec.props);
    props_set(&rec.props, "query", big);
    assert_int_equal(config_records_render(&rec, &key, &value), MR_ERR_FULL);
    props_deinit(&rec.props);
    buf_deinit(&key);
    buf_deinit(&value);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(javas_records_come_back_byte_for_byte),
        cmocka_unit_test(odd_records_are_told_apart),
        cmocka_unit_test(names_may_have_hyphens_and_task_numbers_stand_last),
        cmocka_unit_test(values_of_other_types_become_text),
        cmocka_unit_test(counts_keep_their_range),
        cmocka_unit_test(state_v2_wins_and_stopped_is_paused_for_old_workers),
        cmocka_unit_test(a_configuration_of_five_megabytes_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
