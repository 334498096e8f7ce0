/* SPDX-License-Identifier: Apache-2.0 */
/* What PostgresSink has against a configuration, asked as `millrace check` asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/descriptor.h"
#include "host/task/stages/plugin_stage.h"

#include <stdio.h>
#include <string.h>

#define URL "jdbc:postgresql://h:5432/d"

extern const struct mr_module *millrace_module(void);

/* "key: text" of every key that it has something against, a line each. members: "key", "value", …,
 * NULL. */
static void expect(const char *want, const char *const *members)
{
    struct descriptor_set set;
    struct instance inst;
    struct props props = {0};
    char got[2000] = "";

    assert_int_equal(descriptor_read(millrace_module(), "test", &set, NULL), 0);
    for (; members[0] != NULL; members += 2)
        assert_int_equal(props_set(&props, members[0], members[1]), 0);
    assert_int_equal(instance_init_loose(&inst, &set.plugins[0], &props, NULL), 0);
    for (size_t i = 0; i < set.plugins[0].key_count; i++) {
        const char *key = set.plugins[0].keys[i].name;
        struct mr_error err = {0};

        if (plugin_stage_judge(&inst, key, key, &err) == MR_OK)
            continue;
        assert_int_equal(err.code, MR_ERR_CONFIG);
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s: %s\n", key, err.text);
    }
    assert_int_equal(inst.misuse.code, 0);
    assert_string_equal(got, want);
    instance_deinit(&inst);
    props_deinit(&props);
    descriptor_set_deinit(&set);
}

#define EXPECT(want, ...) expect(want, (const char *const[]){__VA_ARGS__, NULL})

static void nothing_is_wrong_with_what_can_work(void **state)
{
    (void)state;
    EXPECT("", "connection.url", URL);
    EXPECT("", "connection.url", "postgresql:///d?sslmode=require");
    EXPECT("", "connection.url", "host=h dbname=d", "insert.mode", "upsert", "pk.mode", "kafka");
    EXPECT("", "connection.url", URL, "insert.mode", "update", "pk.mode", "record_value");
    EXPECT("", "connection.url", URL, "delete.enabled", "true", "pk.mode", "record_key");
    EXPECT("", "connection.url", URL, "pk.mode", "kafka", "pk.fields", "a,b,c");
    EXPECT("", "connection.url", URL, "pk.mode", "record_key", "pk.fields", "id");
    EXPECT("", "connection.url", URL, "table.name.format", "s.t_${topic}", "millrace.offsets.table",
           "s.o");
}

static void a_url_that_is_none_is_told_without_its_password(void **state)
{
    (void)state;
    EXPECT("connection.url: Invalid value for configuration connection.url: it is neither a URL of "
           "PostgreSQL, such as jdbc:postgresql://host:5432/database, nor libpq's keywords, such "
           "as host=h dbname=d: missing \"=\" after \"mysql://h/d\" in connection info string\n",
           "connection.url", "mysql://h/d");
    EXPECT("connection.url: Invalid value for configuration connection.url: it is neither a URL of "
           "PostgreSQL, such as jdbc:postgresql://host:5432/database, nor libpq's keywords, such "
           "as host=h dbname=d\n",
           "connection.url", "mysql://u:secret@h/d");
}

static void modes_that_contradict_each_other_are_told_of_the_key_that_needs_the_other(void **state)
{
    (void)state;
    EXPECT("insert.mode: Invalid value upsert for configuration insert.mode: it needs a key: set "
           "pk.mode to record_key, record_value or kafka\n",
           "connection.url", URL, "insert.mode", "upsert");
    EXPECT("insert.mode: Invalid value update for configuration insert.mode: it needs a key: set "
           "pk.mode to record_key, record_value or kafka\n"
           "delete.enabled: Invalid value true for configuration delete.enabled: it needs "
           "pk.mode=record_key: a record without a value has nothing but its key\n",
           "connection.url", URL, "insert.mode", "update", "delete.enabled", "true");
    EXPECT("pk.fields: Invalid value a, b for configuration pk.fields: pk.mode=kafka takes three "
           "names, for topic, partition and offset, or none\n",
           "connection.url", URL, "pk.mode", "kafka", "pk.fields", "a, b");
}

/* It is its own key's error already. */
static void a_value_that_is_wrong_by_itself_contradicts_nothing(void **state)
{
    (void)state;
    EXPECT("", "connection.url", URL, "insert.mode", "upsert", "pk.mode", "primary");
    EXPECT("", "connection.url", URL, "delete.enabled", "true", "pk.mode", "primary");
    EXPECT("", "connection.url", URL, "insert.mode", "replace");
}

static void names_of_tables_are_never_empty(void **state)
{
    (void)state;
    EXPECT("table.name.format: Invalid value .t for configuration table.name.format: an empty name "
           "beside a dot\n"
           "millrace.offsets.table: Invalid value s. for configuration millrace.offsets.table: an "
           "empty name beside a dot\n",
           "connection.url", URL, "table.name.format", ".t", "millrace.offsets.table", "s.");
    EXPECT("table.name.format: Invalid value a..b for configuration table.name.format: an empty "
           "name beside a dot\n"
           "millrace.offsets.table: Invalid value a.b.c for configuration millrace.offsets.table: "
           "more than 2 names with dots between them\n",
           "connection.url", URL, "table.name.format", "a..b", "millrace.offsets.table", "a.b.c");
    EXPECT("table.name.format: Configuration table.name.format must not be null\n"
           "millrace.offsets.table: Configuration millrace.offsets.table must not be null\n",
           "connection.url", URL, "table.name.format", NULL, "millrace.offsets.table", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_wrong_with_what_can_work),
        cmocka_unit_test(a_url_that_is_none_is_told_without_its_password),
        cmocka_unit_test(modes_that_contradict_each_other_are_told_of_the_key_that_needs_the_other),
        cmocka_unit_test(a_value_that_is_wrong_by_itself_contradicts_nothing),
        cmocka_unit_test(names_of_tables_are_never_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
