/* SPDX-License-Identifier: Apache-2.0 */
/* conn_config: the framework's tables, connector names and group ids; state: names of states. */
#include "model/conn_config.h"
#include "model/state.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_order(const struct mr_config_key *keys, const char *const *names)
{
    size_t i;

    for (i = 0; names[i] != NULL; i++)
        assert_string_equal(keys[i].name, names[i]);
    assert_null(keys[i].name);
}

static void keys_stand_in_connects_order(void **state)
{
    static const char *const common[] = {"name",
                                         "connector.class",
                                         "connector.plugin.version",
                                         "tasks.max",
                                         "tasks.max.enforce",
                                         "key.converter",
                                         "key.converter.plugin.version",
                                         "value.converter",
                                         "value.converter.plugin.version",
                                         "header.converter",
                                         "header.converter.plugin.version",
                                         "transforms",
                                         "predicates",
                                         "config.action.reload",
                                         "errors.retry.timeout",
                                         "errors.retry.delay.max.ms",
                                         "errors.tolerance",
                                         "errors.log.enable",
                                         "errors.log.include.messages",
                                         NULL};
    static const char *const sink[] = {"topics",
                                       "topics.regex",
                                       "errors.deadletterqueue.topic.name",
                                       "errors.deadletterqueue.topic.replication.factor",
                                       "errors.deadletterqueue.context.headers.enable",
                                       NULL};
    static const char *const source[] = {
        "topic.creation.groups", "exactly.once.support",
        "transaction.boundary",  "transaction.boundary.interval.ms",
        "offsets.storage.topic", NULL};

    assert_order(conn_config_common, common);
    assert_order(conn_config_sink, sink);
    assert_order(conn_config_source, source);
}

static void every_default_passes_its_own_check(void **state)
{
    const struct mr_config_key *tables[] = {conn_config_common, conn_config_sink,
                                            conn_config_source};
    struct props none;

    props_init(&none);
    for (size_t t = 0; t < 3; t++)
        for (const struct mr_config_key *key = tables[t]; key->name != NULL; key++) {
            assert_non_null(key->doc);
            assert_non_null(key->group);
            assert_non_null(key->display_name);
            assert_int_equal(config_def_check(key, &none, NULL, NULL, NULL),
                             (key->flags & MR_CFG_REQUIRED) ? 1 : 0);
        }
    props_deinit(&none);
}

static void refused(const char *name, const char *text)
{
    struct mr_error err = {0};

    assert_int_equal(conn_config_check_name(name, &err), MR_ERR_CONFIG);
    assert_string_equal(err.text, text);
}

static void names_are_refused_with_connects_words(void **state)
{
    refused("", "Invalid value  for configuration name: String may not be empty");
    refused("  \t", "Invalid value  for configuration name: String may not be empty");
    refused("a\r\nb", "Invalid value a\r\nb for configuration name: String may not contain control "
                      "sequences but had the "
                      "following ASCII chars: 13, 10");
    refused("a\xc2\x85x", "Invalid value a\xc2\x85x for configuration name: String may not contain "
                          "control sequences but had "
                          "the following ASCII chars: 133");
}

/* The spaces around it are no part of it. */
static void a_name_has_to_fit_the_path_of_a_request(void **state)
{
    char name[8003] = " ";

    (void)state;
    memset(name + 1, 'n', 8000);
    name[8001] = ' ';
    assert_int_equal(conn_config_check_name(name, NULL), 0);
    name[8000] = '/';
    refused(name,
            "Invalid value nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn... for configuration name: "
            "String may take at most 8000 bytes in the path of a request, percent-encoded, "
            "but takes 8002");
    assert_int_equal(conn_config_check_path("a%b", NULL), 0);
    assert_int_equal(conn_config_check_path(name, NULL), MR_ERR_CONFIG);
    name[7999] = '\0';
    name[1] = '%';
    memcpy(name + 2, "\xc3\xb6", 2);
    refused(name,
            "Invalid value %\xc3\xb6nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn... for configuration "
            "name: String may take at most 8000 bytes in the path of a request, "
            "percent-encoded, but takes 8004");
}

static void strange_names_are_names(void **state)
{
    static const char *const names[] = {
        "x", " x ", "a b", "a/b", "100%", "{y}", "\xf0\x9f\x9a\x80", "\"", "é", NULL};

    for (size_t i = 0; names[i] != NULL; i++)
        assert_int_equal(conn_config_check_name(names[i], NULL), 0);
}

static void a_sinks_group_is_its_name_or_the_override(void **state)
{
    struct props config;
    char out[32];

    props_init(&config);
    assert_int_equal(conn_config_group_id("s", &config, out, sizeof(out)), 0);
    assert_string_equal(out, "connect-s");
    assert_int_equal(props_set(&config, "consumer.override.group.id", "mine"), 0);
    assert_int_equal(conn_config_group_id("s", &config, out, sizeof(out)), 0);
    assert_string_equal(out, "mine");
    assert_int_equal(conn_config_group_id("s", NULL, out, 4), MR_ERR_TOO_LARGE);
    props_deinit(&config);
}

static void states_go_to_text_and_back(void **state)
{
    enum state s;
    enum target_state t;

    for (int i = STATE_UNASSIGNED; i <= STATE_RESTARTING; i++) {
        assert_true(state_from(state_name((enum state)i), &s));
        assert_int_equal(s, i);
    }
    for (int i = TARGET_STARTED; i <= TARGET_STOPPED; i++) {
        assert_true(target_state_from(target_state_name((enum target_state)i), &t));
        assert_int_equal(t, i);
    }
    assert_false(state_from("running", &s));
    assert_false(state_from(NULL, &s));
    assert_false(target_state_from("RUNNING", &t));
    assert_true(target_state_from_initial("Running", &t));
    assert_int_equal(t, TARGET_STARTED);
    assert_true(target_state_from_initial("stopped", &t));
    assert_int_equal(t, TARGET_STOPPED);
    assert_false(target_state_from_initial("STARTED", &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_stand_in_connects_order),
        cmocka_unit_test(every_default_passes_its_own_check),
        cmocka_unit_test(names_are_refused_with_connects_words),
        cmocka_unit_test(a_name_has_to_fit_the_path_of_a_request),
        cmocka_unit_test(strange_names_are_names),
        cmocka_unit_test(a_sinks_group_is_its_name_or_the_override),
        cmocka_unit_test(states_go_to_text_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
