/* SPDX-License-Identifier: Apache-2.0 */
/* internal_topics: from the worker's file to topics and their clients; nothing here asks a
 * broker. */
#include "worker/store/internal_topics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NAMES \
    "bootstrap.servers=h:1\ngroup.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\n" \
    "status.storage.topic=s\n"

static int init(struct internal_topics *topics, const char *text, struct mr_error *err)
{
    struct props worker;
    int rc;

    props_init(&worker);
    assert_int_equal(props_parse(&worker, text, strlen(text), "test", NULL), 0);
    rc = internal_topics_init(topics, &worker, err);
    props_deinit(&worker);
    return rc;
}

static void defaults_are_connects(void **state)
{
    struct internal_topics topics;
    const struct internal_topic *config = &topics.topics[TOPIC_CONFIG],
                                *offsets = &topics.topics[TOPIC_OFFSETS],
                                *status = &topics.topics[TOPIC_STATUS];

    (void)state;
    assert_int_equal(init(&topics, NAMES, NULL), 0);
    assert_string_equal(config->name, "c");
    assert_int_equal(config->partitions, 1);
    assert_int_equal(offsets->partitions, 25);
    assert_int_equal(status->partitions, 5);
    assert_int_equal(config->replication, 3);
    assert_string_equal(props_get(&offsets->settings, "cleanup.policy"), "compact");
    assert_int_equal(offsets->settings.count, 1);
    assert_string_equal(props_get(&config->producer, "client.id"), "g-configs");
    assert_string_equal(props_get(&offsets->consumer, "client.id"), "g-offsets");
    assert_string_equal(props_get(&status->producer, "client.id"), "g-statuses");
    assert_string_equal(props_get(&topics.admin, "client.id"), "g-shared-admin");
    assert_string_equal(props_get(&config->producer, "acks"), "all");
    assert_string_equal(props_get(&config->producer, "max.in.flight.requests.per.connection"), "1");
    assert_string_equal(props_get(&config->producer, "enable.idempotence"), "false");
    assert_null(props_get(&config->producer, "retries"));
    assert_string_equal(props_get(&status->producer, "retries"), "0");
    assert_null(props_get(&config->consumer, "group.id"));
    assert_null(props_get(&config->consumer, "isolation.level"));
    internal_topics_deinit(&topics);
}

static void settings_of_a_topic_pass_but_for_the_forced_ones(void **state)
{
    struct internal_topics topics;
    const struct internal_topic *config = &topics.topics[TOPIC_CONFIG],
                                *status = &topics.topics[TOPIC_STATUS];

    (void)state;
    assert_int_equal(init(&topics,
                          NAMES
                          "client.id=x\nconfig.storage.partitions=7\n"
                          "config.storage.cleanup.policy=delete\n"
                          "config.storage.replication.factor=-1\n"
                          "status.storage.min.insync.replicas=2\nstatus.storage.partitions=-1\n"
                          "security.protocol=SASL_SSL\nproducer.acks=1\nrequest.timeout.ms=45000\n"
                          "isolation.level=read_committed\n",
                          NULL),
                     0);
    assert_int_equal(config->partitions, 1);
    assert_int_equal(config->replication, -1);
    assert_string_equal(props_get(&config->settings, "cleanup.policy"), "compact");
    assert_int_equal(config->settings.count, 1);
    assert_int_equal(status->partitions, -1);
    assert_string_equal(props_get(&status->settings, "min.insync.replicas"), "2");
    assert_string_equal(props_get(&config->producer, "client.id"), "g-x-configs");
    assert_string_equal(props_get(&config->producer, "security.protocol"), "SASL_SSL");
    assert_string_equal(props_get(&config->producer, "acks"), "all");
    assert_string_equal(props_get(&config->producer, "delivery.timeout.ms"), "45000");
    assert_string_equal(props_get(&config->consumer, "isolation.level"), "read_committed");
    internal_topics_deinit(&topics);
    assert_int_equal(init(&topics, NAMES "exactly.once.source.support=ENABLED\n", NULL), 0);
    assert_string_equal(props_get(&config->consumer, "isolation.level"), "read_committed");
    internal_topics_deinit(&topics);
}

static void what_is_missing_or_wrong_is_named(void **state)
{
    static const char *const wrong[][2] = {
        {"bootstrap.servers=h:1\n", "group.id"},
        {"bootstrap.servers=h:1\ngroup.id=g\n", "offset.storage.topic"},
        {NAMES "config.storage.topic= \n", "config.storage.topic"},
        {NAMES "offset.storage.partitions=0\n", "offset.storage.partitions"},
        {NAMES "offset.storage.partitions=many\n", "offset.storage.partitions"},
        {NAMES "status.storage.replication.factor=-2\n", "status.storage.replication.factor"},
        {NAMES "status.storage.replication.factor=99999999999999999999\n",
         "status.storage.replication.factor"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct internal_topics topics;
        struct mr_error err = {0};

        assert_int_equal(init(&topics, wrong[i][0], &err), MR_ERR_CONFIG);
        if (strstr(err.text, wrong[i][1]) == NULL)
            fail_msg("%s: %s", wrong[i][1], err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_connects),
        cmocka_unit_test(settings_of_a_topic_pass_but_for_the_forced_ones),
        cmocka_unit_test(what_is_missing_or_wrong_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
