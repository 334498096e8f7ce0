/* SPDX-License-Identifier: Apache-2.0 */
/* connector_file: the three forms, and what is told about each that is wrong. */
#include "worker/herder/connector_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void taken(const char *path, const char *text, enum target_state initial)
{
    struct connector_file file;
    struct mr_error err = {0};

    if (connector_file_parse(text, strlen(text), path, &file, &err) != 0)
        fail_msg("%s", err.text);
    assert_string_equal(file.name, "c");
    assert_string_equal(props_get(&file.config, "name"), "c");
    assert_string_equal(props_get(&file.config, "topics"), "a,b");
    assert_int_equal(file.initial, initial);
    connector_file_deinit(&file);
}

static void refused(const char *path, const char *text, const char *want)
{
    struct connector_file file;
    struct mr_error err = {0};

    assert_int_not_equal(connector_file_parse(text, strlen(text), path, &file, &err), 0);
    if (strncmp(err.text, want, strlen(want)) != 0)
        fail_msg("'%s' where '%s' belongs", err.text, want);
    assert_null(file.name);
}

static void the_three_forms_are_told_apart_by_their_content(void **state)
{
    taken("c.properties", "name=c\ntopics=a,b\n", TARGET_STARTED);
    taken("c.properties", "  {\"name\":\"c\",\"topics\":\"a,b\"}", TARGET_STARTED);
    taken("c.json", "{\"name\":\"c\",\"topics\":\"a,b\",\"tasks.max\":2,\"flag\":true}",
          TARGET_STARTED);
    taken("c.json",
          "\xef\xbb\xbf{\"name\":\"c\",\"config\":{\"topics\":\"a,b\"},\"initial_state\":"
          "\"Paused\",\"more\":[1]}",
          TARGET_PAUSED);
    taken("c.json",
          "{\"name\":\"c\",\"config\":{\"name\":\"c\",\"topics\":\"a,b\"},\"initial_state\":null}",
          TARGET_STARTED);
    taken("c.json", "{\"name\":\"c\",\"config\":\"a key of the connector\",\"topics\":\"a,b\"}",
          TARGET_STARTED);
}

static void mistakes_are_told_with_file_and_place(void **state)
{
    refused("f", "topics=a\n",
            "Connector configuration at 'f' is missing the mandatory 'name' configuration");
    refused("f.json", "{\"topics\":\"a\"}",
            "Connector configuration at 'f.json' is missing the mandatory 'name' configuration");
    refused("f.json", "name=c\n", "f.json: line 1, column ");
    refused("f.json", "", "f.json: ");
    refused("f.json", "{\"name\":\"c\",\n\"topics\":}", "f.json: line 2, column 10: ");
    refused("f.json", "[]", "f.json: expected a JSON object, found an array");
    refused("f.json", "{\"name\":\"c\",\"topics\":[\"a\"]}",
            "f.json: member topics: expected text, found an array");
    refused("f.json", "{\"name\":\"c\",\"config\":{\"topics\":{}}}",
            "f.json: member config.topics: expected text, found an object");
    refused("f.json", "{\"name\":7,\"config\":{}}",
            "f.json: member name: expected text, found a number");
    refused("f.json", "{\"config\":{}}", "f.json: member name: expected text, found nothing");
    refused("f.json", "{\"name\":\"c\",\"config\":{\"name\":\"d\"}}",
            "f.json: Connector name configuration in 'config' (d) doesn't match the one specified "
            "in 'name' (c)");
    refused("f.json", "{\"name\":\"c\",\"config\":{},\"initial_state\":\"HALTED\"}",
            "f.json: member initial_state: expected RUNNING, PAUSED or STOPPED, found HALTED");
    refused("f.json", "{\"name\":\"c\",\"config\":{},\"initial_state\":1}",
            "f.json: member initial_state: expected RUNNING, PAUSED or STOPPED, found a number");
    refused("f.properties", "name=c\nx=\\u12\n", "f.properties:2: ");
}

static void a_file_that_is_not_there_is_named(void **state)
{
    struct connector_file file;
    struct mr_error err = {0};

    assert_int_equal(connector_file_read("/nope/c.json", &file, &err), MR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nope/c.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_forms_are_told_apart_by_their_content),
        cmocka_unit_test(mistakes_are_told_with_file_and_place),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
