/* SPDX-License-Identifier: Apache-2.0 */
/* topic.creation.*: which group a topic has, what it is created with, and what is refused with
 * which text. */
#include "model/topic_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "key=value", each below topic.creation., ended by NULL; a null value without "=". */
static struct props config_of(const char *const *lines)
{
    struct props config;

    props_init(&config);
    assert_int_equal(props_set(&config, "topic", "t"), 0);
    for (; *lines != NULL; lines++) {
        char key[300];
        const char *equals = strchr(*lines, '=');

        snprintf(key, sizeof(key), "topic.creation.%.*s",
                 (int)(equals != NULL ? equals - *lines : (long)strlen(*lines)), *lines);
        assert_int_equal(props_set(&config, key, equals != NULL ? equals + 1 : NULL), 0);
    }
    return config;
}

static struct topic_groups read(const char *const *lines)
{
    struct props config = config_of(lines);
    struct topic_groups groups;
    struct mr_error err = {0};

    if (topic_groups_read(&config, &groups, &err) != 0)
        fail_msg("%s", err.text);
    props_deinit(&config);
    return groups;
}

static void refused(const char *const *lines, const char *text)
{
    struct props config = config_of(lines);
    struct topic_groups groups;
    struct mr_error err = {0};

    assert_int_equal(topic_groups_read(&config, &groups, &err), MR_ERR_CONFIG);
    assert_string_equal(err.text, text);
    topic_groups_deinit(&groups);
    props_deinit(&config);
}

static void assert_group(const struct topic_groups *groups, const char *topic, const char *name)
{
    const struct topic_group *group = topic_groups_find(groups, topic, NULL);

    assert_non_null(group);
    assert_string_equal(group->name, name);
}

#define DEFAULTS "default.replication.factor=3", "default.partitions=-1"
#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void the_first_group_that_matches_the_whole_name_has_it(void **state)
{
    struct topic_groups groups =
        read(LINES(DEFAULTS, "groups=one,default,two,one", "one.include=a.*, .*-log",
                   "one.exclude=ab+", "two.include=a.*|c", "default.include=.*"));

    assert_int_equal(groups.count, 3);
    assert_group(&groups, "a", "one");
    assert_group(&groups, "x-log", "one");
    assert_group(&groups, "abb", "two"); /* excluded from the first */
    assert_group(&groups, "c", "two");
    assert_group(&groups, "cc", "default");
    assert_group(&groups, "xa", "default");
    topic_groups_deinit(&groups);
}

static void a_group_without_include_has_no_topic(void **state)
{
    struct topic_groups groups = read(LINES(DEFAULTS, "groups=one", "one.exclude=b"));

    assert_group(&groups, "a", "default");
    topic_groups_deinit(&groups);
}

static void patterns_of_a_list_are_one_expression(void **state)
{
    struct topic_groups groups = read(LINES(DEFAULTS, "groups=one", "one.include=(?i)a,b"));

    assert_group(&groups, "B", "one");
    topic_groups_deinit(&groups);
}

static void numbers_come_from_the_default_group_and_settings_do_not(void **state)
{
    struct topic_groups groups = read(LINES(
        "default.replication.factor=2", "default.partitions= 7 ", "default.cleanup.policy=compact",
        "groups=one,two", "one.include=a", "one.partitions=-1", "one.retention.ms=1000",
        "one.partitions.of=x", "two.replication.factor=1"));
    const struct topic_group *one = &groups.groups[0], *two = &groups.groups[1],
                             *rest = &groups.groups[2];

    assert_int_equal(one->partitions, -1);
    assert_int_equal(one->replication, 2);
    assert_int_equal(one->settings.count, 2);
    assert_string_equal(props_get(&one->settings, "retention.ms"), "1000");
    assert_string_equal(props_get(&one->settings, "partitions.of"), "x");
    assert_int_equal(two->partitions, 7);
    assert_int_equal(two->replication, 1);
    assert_int_equal(two->settings.count, 0);
    assert_int_equal(rest->partitions, 7);
    assert_int_equal(rest->settings.count, 1);
    assert_string_equal(props_get(&rest->settings, "cleanup.policy"), "compact");
    topic_groups_deinit(&groups);
}

/* User patterns of the default group mean nothing, not even when they are none. */
static void patterns_of_the_default_group_are_ignored(void **state)
{
    struct topic_groups groups = read(LINES(DEFAULTS, "default.include=(", "default.exclude=.*"));

    assert_group(&groups, "a", "default");
    assert_int_equal(groups.groups[0].settings.count, 0);
    topic_groups_deinit(&groups);
}

#define POSITIVE_REPLICATION \
    "Replication factor must be positive and not larger than the number of brokers in the Kafka " \
    "cluster, or -1 to use the broker's default"
#define POSITIVE_PARTITIONS \
    "Number of partitions must be positive, or -1 to use the broker's default"

static void mistakes_have_connects_text(void **state)
{
    refused(LINES("default.partitions=1"),
            "Missing required configuration \"topic.creation.default.replication.factor\" which "
            "has no default value.");
    refused(LINES("groups="),
            "Missing required configuration \"topic.creation.default.replication.factor\" which "
            "has no default value.");
    refused(LINES("default.replication.factor=1"),
            "Missing required configuration \"topic.creation.default.partitions\" which has no "
            "default value.");
    refused(LINES("default.replication.factor=1", "default.partitions=x"),
            "Invalid value x for configuration topic.creation.default.partitions: Not a number of "
            "type INT");
    refused(LINES("default.replication.factor=40000", "default.partitions=x"),
            "Invalid value 40000 for configuration topic.creation.default.replication.factor: Not "
            "a number of type SHORT");
    refused(LINES("default.replication.factor=0", "default.partitions=1"),
            "Invalid value 0 for configuration "
            "topic.creation.default.replication.factor: " POSITIVE_REPLICATION);
    refused(LINES("default.replication.factor=-1", "default.partitions=-2"),
            "Invalid value -2 for configuration "
            "topic.creation.default.partitions: " POSITIVE_PARTITIONS);
    refused(
        LINES(DEFAULTS, "groups=one", "one.partitions=0"),
        "Invalid value 0 for configuration topic.creation.one.partitions: " POSITIVE_PARTITIONS);
    refused(LINES(DEFAULTS, "groups=one", "one.include=a,b("),
            "Invalid value [a, b(] for configuration topic.creation.one.include: Syntax error in "
            "regular expression: Unclosed group near index 2\nb(");
    refused(LINES(DEFAULTS, "groups=one", "one.exclude=*"),
            "Invalid value [*] for configuration topic.creation.one.exclude: Syntax error in "
            "regular expression: Dangling meta character '*' near index 0\n*\n^");
    refused(LINES(DEFAULTS, "groups=one", "one.include=(?<n>a),(?<n>b)"),
            "Named capturing group <n> is already defined near index 12\n(?<n>a)|(?<n>b)\n"
            "            ^");
}

static void a_pattern_that_takes_for_ever_is_an_error(void **state)
{
    struct topic_groups groups = read(LINES(DEFAULTS, "groups=one", "one.include=(a+)+[bc]"));
    char topic[250] = "";
    struct mr_error err = {0};

    memset(topic, 'a', sizeof(topic) - 1);
    assert_null(topic_groups_find(&groups, topic, &err));
    assert_non_null(strstr(err.text, "topic creation group one: "));
    topic_groups_deinit(&groups);
}

static void the_worker_and_any_setting_turn_it_on(void **state)
{
    struct props on = config_of(LINES("other"));
    struct props off = config_of(LINES("enable= FALSE "));
    struct props none;

    props_init(&none);
    assert_true(topic_groups_wanted(&none, &on));
    assert_false(topic_groups_wanted(&none, &none));
    assert_false(topic_groups_wanted(&off, &on));
    props_deinit(&on);
    props_deinit(&off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_group_that_matches_the_whole_name_has_it),
        cmocka_unit_test(a_group_without_include_has_no_topic),
        cmocka_unit_test(patterns_of_a_list_are_one_expression),
        cmocka_unit_test(numbers_come_from_the_default_group_and_settings_do_not),
        cmocka_unit_test(patterns_of_the_default_group_are_ignored),
        cmocka_unit_test(mistakes_have_connects_text),
        cmocka_unit_test(a_pattern_that_takes_for_ever_is_an_error),
        cmocka_unit_test(the_worker_and_any_setting_turn_it_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
