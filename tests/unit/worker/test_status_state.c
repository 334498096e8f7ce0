/* SPDX-License-Identifier: Apache-2.0 */
/* status_records and status_state: Java's bytes, and Java's rules about who may have the last
 * word. */
#include "support/unit/golden.h"
#include "worker/store/status_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void javas_records_come_back_byte_for_byte(void **arg)
{
    struct golden golden = golden_topic(NULL, "status");
    size_t kinds[STATUS_TOPIC + 1] = {0};

    (void)arg;
    for (size_t i = 0; i < golden.count; i++) {
        const struct golden_record *java = &golden.records[i];
        struct status_record rec;
        struct mr_error err = {0};
        struct buf key, value;

        buf_init(&key, 1 << 20);
        buf_init(&value, 1 << 20);
        if (status_records_parse(java->key, java->key_len, java->value, java->value_len, &rec,
                                 &err) != 0)
            fail_msg("%s: %s", java->key, err.text);
        kinds[rec.kind]++;
        assert_int_equal(status_records_render(&rec, &key, &value), 0);
        assert_string_equal(key.data, java->key);
        if (java->value != NULL)
            assert_string_equal(value.data, java->value);
        status_record_deinit(&rec);
        buf_deinit(&key);
        buf_deinit(&value);
    }
    for (size_t i = 0; i <= STATUS_TOPIC; i++)
        assert_true(kinds[i] > 0);
    golden_free(&golden);
}

#define VALUE(state, worker, generation) \
    "{\"state\":\"" state "\",\"trace\":null,\"worker_id\":\"" worker \
    "\",\"generation\":" generation ",\"version\":null}"

static void odd_records_are_refused_in_words(void **arg)
{
    static const char *const odd[][2] = {
        {"status-connector-", VALUE("RUNNING", "w", "1")},
        {"status-task-c", VALUE("RUNNING", "w", "1")},
        {"status-task-c-x", VALUE("RUNNING", "w", "1")},
        {"status-task--1", VALUE("RUNNING", "w", "1")},
        {"status-topic-t", "{}"},
        {"status-topic-:connector-c", "{}"},
        {"status-topic-t:connector-", "{}"},
        {"status-topic-t:other-c", "{}"},
        {"status-other-c", VALUE("RUNNING", "w", "1")},
        {"", VALUE("RUNNING", "w", "1")},
        {"status-connector-c", VALUE("JUMPING", "w", "1")},
        {"status-connector-c", VALUE("RUNNING", "w", "1.5")},
        {"status-connector-c", VALUE("RUNNING", "w", "3000000000")},
        {"status-connector-c", "{\"state\":\"RUNNING\",\"generation\":1}"},
        {"status-connector-c",
         "{\"state\":\"RUNNING\",\"generation\":1,\"worker_id\":\"w\",\"trace\":5}"},
        {"status-connector-c", "[1]"},
        {"status-connector-c", "{"},
        {"status-topic-t:connector-c", "{\"topic\":{\"name\":\"t\"}}"},
        {"status-topic-t:connector-c",
         "{\"topic\":{\"name\":\"u\",\"connector\":\"c\",\"task\":0,\"discoverTimestamp\":1}}"},
    };

    (void)arg;
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        struct status_record rec;
        struct mr_error err = {0};

        assert_int_equal(status_records_parse(odd[i][0], strlen(odd[i][0]), odd[i][1],
                                              strlen(odd[i][1]), &rec, &err),
                         MR_ERR_DATA);
        assert_int_equal(err.code, MR_ERR_DATA);
        assert_true(err.text[0] != '\0');
    }
    assert_int_equal(status_records_parse(NULL, 0, "{}", 2, &(struct status_record){0}, NULL),
                     MR_ERR_DATA);
}

static bool put(struct status_state *state, const char *key, const char *value)
{
    struct status_record rec;
    bool changed;

    assert_int_equal(status_records_parse(key, strlen(key), value,
                                          value != NULL ? strlen(value) : 0, &rec, NULL),
                     0);
    changed = status_state_apply(state, &rec);
    status_record_deinit(&rec);
    return changed;
}

static void the_last_record_wins_and_a_tombstone_takes_the_tasks_along(void **arg)
{
    struct status_state *state = status_state_new();

    (void)arg;
    assert_true(put(state, "status-connector-c", VALUE("RUNNING", "a", "1")));
    assert_true(put(state, "status-task-c-10", VALUE("RUNNING", "a", "1")));
    assert_true(put(state, "status-task-c-2", VALUE("FAILED", "b", "1")));
    assert_true(put(state, "status-connector-c", VALUE("PAUSED", "b", "0")));
    assert_int_equal(status_state_connector(state, "c")->state, STATE_PAUSED);
    assert_int_equal(status_state_next_task(state, "c", -1), 2);
    assert_int_equal(status_state_next_task(state, "c", 2), 10);
    assert_int_equal(status_state_next_task(state, "c", 10), -1);
    assert_true(put(state, "status-task-c-10", NULL));
    assert_false(put(state, "status-task-c-10", NULL));
    assert_null(status_state_task(state, "c", 10));
    assert_true(put(state, "status-connector-c", NULL));
    assert_null(status_state_connector(state, "c"));
    assert_null(status_state_task(state, "c", 2));
    assert_false(put(state, "status-connector-c", NULL));
    status_state_free(&state);
}

static void the_old_owners_farewell_does_not_hide_the_new_owner(void **arg)
{
    struct status_state *state = status_state_new();

    (void)arg;
    put(state, "status-task-c-0", VALUE("RUNNING", "new", "5"));
    assert_false(put(state, "status-task-c-0", VALUE("UNASSIGNED", "old", "4")));
    assert_false(put(state, "status-task-c-0", VALUE("UNASSIGNED", "old", "5")));
    assert_int_equal(status_state_task(state, "c", 0)->state, STATE_RUNNING);
    assert_true(put(state, "status-task-c-0", VALUE("UNASSIGNED", "old", "6")));
    assert_true(put(state, "status-task-c-0", VALUE("FAILED", "old", "4")));
    assert_true(put(state, "status-task-c-0", VALUE("UNASSIGNED", "old", "3")));
    /* the owner's own last word counts: it ends in order, and nobody else has the task yet */
    put(state, "status-task-c-0", VALUE("RUNNING", "new", "7"));
    assert_true(put(state, "status-task-c-0", VALUE("UNASSIGNED", "new", "7")));
    /* connectors have no such rule */
    put(state, "status-connector-c", VALUE("RUNNING", "new", "5"));
    assert_true(put(state, "status-connector-c", VALUE("UNASSIGNED", "old", "4")));
    status_state_free(&state);
}

static bool may(const struct status_state *state, const char *key, const char *value)
{
    struct status_record rec;
    bool yes;

    assert_int_equal(status_records_parse(key, strlen(key), value, strlen(value), &rec, NULL), 0);
    yes = status_state_may_put(state, &rec);
    status_record_deinit(&rec);
    return yes;
}

static void a_safe_write_spares_a_newer_owner(void **arg)
{
    struct status_state *state = status_state_new();

    (void)arg;
    assert_true(may(state, "status-task-c-0", VALUE("FAILED", "me", "1")));
    put(state, "status-task-c-0", VALUE("RUNNING", "other", "5"));
    put(state, "status-connector-c", VALUE("RUNNING", "other", "7"));
    assert_false(may(state, "status-task-c-0", VALUE("FAILED", "me", "4")));
    assert_true(may(state, "status-task-c-0", VALUE("FAILED", "me", "5")));
    assert_true(may(state, "status-task-c-0", VALUE("FAILED", "other", "1")));
    assert_false(may(state, "status-connector-c", VALUE("UNASSIGNED", "me", "6")));
    assert_true(may(state, "status-task-c-1", VALUE("UNASSIGNED", "me", "0")));
    status_state_free(&state);
}

static void topics_of_a_connector_are_kept_once(void **arg)
{
#define TOPIC \
    "{\"topic\":{\"name\":\"t.1\",\"connector\":\"c:x\",\"task\":3,\"discoverTimestamp\":9}}"
    struct status_state *state = status_state_new();
    size_t cursor = 0;

    (void)arg;
    assert_true(put(state, "status-topic-t.1:connector-c:x", TOPIC));
    assert_false(put(state, "status-topic-t.1:connector-c:x", TOPIC));
    assert_string_equal(status_state_next_topic(state, "c:x", &cursor), "t.1");
    assert_null(status_state_next_topic(state, "c:x", &cursor));
    assert_true(put(state, "status-topic-t.1:connector-c:x", NULL));
    cursor = 0;
    assert_null(status_state_next_topic(state, "c:x", &cursor));
    status_state_free(&state);
}

/* Replaying a compacted topic gives the same: the rule about UNASSIGNED apart, only last records
 * count. */
static void javas_topic_ends_in_what_its_last_records_say(void **arg)
{
    struct golden golden = golden_topic("disabled", "status");
    struct status_state *state = status_state_new();

    (void)arg;
    for (size_t i = 0; i < golden.count; i++)
        put(state, golden.records[i].key, golden.records[i].value);
    for (size_t i = golden.count; i-- > 0;) {
        const struct golden_record *rec = &golden.records[i];
        const char *conn = rec->key + strlen("status-connector-");
        bool last = true;

        for (size_t k = i + 1; k < golden.count; k++)
            last = last && strcmp(golden.records[k].key, rec->key) != 0;
        if (!last || strncmp(rec->key, "status-connector-", 17) != 0)
            continue;
        if (rec->value == NULL)
            assert_null(status_state_connector(state, conn));
        else
            assert_non_null(
                strstr(rec->value, state_name(status_state_connector(state, conn)->state)));
    }
    status_state_free(&state);
    golden_free(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(javas_records_come_back_byte_for_byte),
        cmocka_unit_test(odd_records_are_refused_in_words),
        cmocka_unit_test(the_last_record_wins_and_a_tombstone_takes_the_tasks_along),
        cmocka_unit_test(the_old_owners_farewell_does_not_hide_the_new_owner),
        cmocka_unit_test(a_safe_write_spares_a_newer_owner),
        cmocka_unit_test(topics_of_a_connector_are_kept_once),
        cmocka_unit_test(javas_topic_ends_in_what_its_last_records_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
