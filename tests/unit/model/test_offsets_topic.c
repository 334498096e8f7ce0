/* SPDX-License-Identifier: Apache-2.0 */
/* offsets_topic: when a connector has an offsets topic besides the worker's. */
#include "model/offsets_topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *support; /* exactly.once.source.support */
    const char *own;
    const char *servers;  /* producer.override.bootstrap.servers */
    const char *prefixed; /* producer.bootstrap.servers of the worker */
    const char *topic;
};

static void a_topic_is_its_own_by_name_or_by_kafka(void **state)
{
    static const struct row rows[] = {
        {NULL, NULL, NULL, NULL, NULL},
        {NULL, "", NULL, NULL, NULL},
        {NULL, "own", NULL, NULL, "own"},
        {NULL, " own\t", NULL, NULL, "own"},
        {NULL, "all", NULL, NULL, NULL},
        {NULL, "all", " b:2 ,a:1", NULL, NULL},
        {NULL, "all", "a:1", NULL, "all"},
        {NULL, "all", "a:1,b:2,c:3", NULL, "all"},
        {NULL, "all", NULL, "c:3", "all"},
        {NULL, NULL, "c:3", NULL, NULL},
        {"preparing", NULL, "c:3", NULL, NULL},
        {"enabled", NULL, NULL, NULL, NULL},
        {"ENABLED", NULL, "c:3", NULL, "all"},
        {"enabled", "own", NULL, NULL, "own"},
        {"enabled", "all", "a:1,b:2", "c:3", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct props worker, conn;
        char *topic;

        props_init(&worker);
        props_init(&conn);
        props_set(&worker, "group.id", "g");
        props_set(&worker, "offset.storage.topic", "all");
        props_set(&worker, "bootstrap.servers", "a:1, b:2");
        if (row->support != NULL)
            props_set(&worker, "exactly.once.source.support", row->support);
        if (row->prefixed != NULL)
            props_set(&worker, "producer.bootstrap.servers", row->prefixed);
        if (row->own != NULL)
            props_set(&conn, "offsets.storage.topic", row->own);
        if (row->servers != NULL)
            props_set(&conn, "producer.override.bootstrap.servers", row->servers);
        topic = offsets_topic_own(&worker, &conn);
        if (row->topic != NULL ? topic == NULL || strcmp(topic, row->topic) != 0 : topic != NULL)
            fail_msg("row %zu gives %s", i, topic != NULL ? topic : "none");
        free(topic);
        props_deinit(&worker);
        props_deinit(&conn);
    }
}

static void a_standalone_worker_knows_none(void **state)
{
    struct props worker, conn;

    (void)state;
    props_init(&worker);
    props_init(&conn);
    props_set(&worker, "exactly.once.source.support", "enabled");
    props_set(&worker, "offset.storage.topic", "all");
    props_set(&conn, "offsets.storage.topic", "own");
    assert_null(offsets_topic_own(&worker, &conn));
    assert_false(offsets_topic_transactions(&worker));
    props_deinit(&worker);
    props_deinit(&conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_is_its_own_by_name_or_by_kafka),
        cmocka_unit_test(a_standalone_worker_knows_none),
    };

    return cmocka_run_group_tests_name("offsets_topic", tests, NULL, NULL);
}
