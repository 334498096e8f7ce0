/* SPDX-License-Identifier: Apache-2.0 */
/* config_state: the rules of the config topic, after every prefix of a recorded topic and every
 * compaction of it. What is right is said here a second time, without a state machine: `expected`
 * looks back from the end. */
#include "support/unit/golden.h"
#include "worker/store/config_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- a topic ---------------------------------------------------------------------------------- */

#define MAX 256

struct entry {
    const char *key;
    const char *value; /* NULL: tombstone */
    int64_t offset;
};

struct topic {
    struct entry entries[MAX];
    size_t count;
};

static void add(struct topic *topic, const char *key, const char *value)
{
    assert_true(topic->count < MAX);
    topic->entries[topic->count] = (struct entry){key, value, (int64_t)topic->count};
    topic->count++;
}

static enum config_change_kind apply(struct config_state *state, const struct entry *entry)
{
    struct config_record rec;
    struct config_change change = {0};
    int rc = config_records_parse(entry->key, strlen(entry->key), entry->value,
                                  entry->value != NULL ? strlen(entry->value) : 0, &rec, NULL);

    if (rc == MR_ERR_DATA)
        config_state_skip(state, entry->offset);
    if (rc != 0)
        return CONFIG_NOTHING;
    config_state_apply(state, entry->offset, &rec, &change);
    config_record_deinit(&rec);
    return change.kind;
}

static struct config_state *replay(const struct topic *topic, size_t count)
{
    struct config_state *state = config_state_new();

    for (size_t i = 0; i < count; i++)
        apply(state, &topic->entries[i]);
    return state;
}

/* --- what is right, said again ---------------------------------------------------------------- */

static bool is_key(const struct entry *entry, const char *prefix, const char *conn)
{
    size_t len = strlen(prefix);

    return strncmp(entry->key, prefix, len) == 0 && strcmp(entry->key + len, conn) == 0;
}

/* The last record of that key before `end`, or -1. */
static int last_of(const struct topic *topic, size_t end, const char *prefix, const char *conn)
{
    for (size_t i = end; i-- > 0;)
        if (is_key(&topic->entries[i], prefix, conn))
            return (int)i;
    return -1;
}

static bool exists(const struct topic *topic, size_t end, const char *conn)
{
    int at = last_of(topic, end, "connector-", conn);

    return at >= 0 && topic->entries[at].value != NULL;
}

/* A commit, or what takes tasks away, before `end`. */
static int last_break(const struct topic *topic, size_t end, const char *conn)
{
    for (size_t i = end; i-- > 0;)
        if (is_key(&topic->entries[i], "commit-", conn) ||
            (is_key(&topic->entries[i], "connector-", conn) && topic->entries[i].value == NULL))
            return (int)i;
    return -1;
}

static int task_between(const struct topic *topic, int from, int to, const char *conn, int task)
{
    char key[128];
    int found = -1;

    snprintf(key, sizeof(key), "task-%s-%d", conn, task);
    for (int i = from + 1; i < to; i++)
        if (strcmp(topic->entries[i].key, key) == 0)
            found = i;
    return found;
}

static int count_of(const struct entry *commit)
{
    int count = -1;

    sscanf(commit->value, "{\"tasks\":%d}", &count);
    return count;
}

/* Tasks of the last commit that counts (-1: none), and where each comes from. full: its set was
 * whole. */
static int expected_tasks(const struct topic *topic, size_t end, const char *conn, bool *full,
                          int from[16])
{
    int commit = last_break(topic, end, conn), before, count;

    *full = true;
    if (commit < 0 || !is_key(&topic->entries[commit], "commit-", conn) ||
        !exists(topic, (size_t)commit, conn))
        return -1;
    before = last_break(topic, (size_t)commit, conn);
    count = count_of(&topic->entries[commit]);
    for (int task = 0; task < count; task++) {
        from[task] = task_between(topic, before, commit, conn, task);
        *full = *full && from[task] >= 0;
    }
    return count;
}

static struct props props_of(const struct entry *entry)
{
    struct config_record rec;
    struct props props;

    assert_int_equal(config_records_parse(entry->key, strlen(entry->key), entry->value,
                                          strlen(entry->value), &rec, NULL),
                     0);
    assert_int_equal(props_copy(&props, &rec.props), 0);
    config_record_deinit(&rec);
    return props;
}

static void same_props(const struct props *have, const struct entry *entry)
{
    struct props want = props_of(entry);

    assert_non_null(have);
    assert_true(props_equal(have, &want));
    props_deinit(&want);
}

static void check_tasks(const struct topic *topic, size_t end, const struct config_conn *conn)
{
    int from[16], count;
    bool full;

    count = expected_tasks(topic, end, conn->name, &full, from);
    assert_int_equal(conn->task_count, count < 0 ? 0 : count);
    assert_int_equal(config_state_tasks(conn), count < 0 || conn->inconsistent ? 0 : count);
    if (count >= 0)
        assert_int_equal(conn->inconsistent, !full);
    for (int task = 0; task < config_state_tasks(conn); task++)
        same_props(config_state_task(conn, task), &topic->entries[from[task]]);
    assert_null(config_state_task(conn, config_state_tasks(conn)));
}

static void check_target(const struct topic *topic, size_t end, const struct config_conn *conn)
{
    int at = last_of(topic, end, "target-state-", conn->name);
    const char *value = at >= 0 ? topic->entries[at].value : NULL;
    const char *want = value == NULL                      ? "STARTED"
                       : strstr(value, "STOPPED") != NULL ? "STOPPED"
                       : strstr(value, "PAUSED") != NULL  ? "PAUSED"
                                                          : "STARTED";

    assert_string_equal(target_state_name(conn->target), want);
}

static void check_conn(const struct topic *topic, size_t end, const char *name,
                       const struct config_state *state)
{
    const struct config_conn *conn = config_state_conn(state, name);

    assert_int_equal(conn != NULL, exists(topic, end, name));
    if (conn == NULL)
        return;
    same_props(conn->config, &topic->entries[last_of(topic, end, "connector-", name)]);
    check_target(topic, end, conn);
    check_tasks(topic, end, conn);
}

/* Every connector that the topic ever names. */
static void check(const struct topic *topic, size_t end, const struct config_state *state)
{
    size_t live = 0;

    for (size_t i = 0; i < end; i++) {
        const char *key = topic->entries[i].key;

        if (strncmp(key, "connector-", 10) == 0 && last_of(topic, i, "connector-", key + 10) < 0)
            check_conn(topic, end, key + 10, state);
    }
    for (size_t cursor = 0; config_state_next(state, &cursor) != NULL;)
        live++;
    assert_int_equal(live, config_state_count(state));
    if (end > 0)
        assert_int_equal(config_state_offset(state), topic->entries[end - 1].offset + 1);
}

static void check_prefix(const struct topic *topic, size_t end)
{
    struct config_state *state = replay(topic, end);

    check(topic, end, state);
    config_state_free(&state);
}

/* --- compaction ------------------------------------------------------------------------------- */

/* A later record of the same key is there: this one may go. */
static bool compactable(const struct topic *topic, size_t i, size_t end)
{
    for (size_t later = i + 1; later < end; later++)
        if (strcmp(topic->entries[later].key, topic->entries[i].key) == 0)
            return true;
    return false;
}

/* Without what `gone` says, offsets kept. */
static struct topic without(const struct topic *topic, const bool *gone)
{
    struct topic out = {.count = 0};

    for (size_t i = 0; i < topic->count; i++)
        if (!gone[i])
            out.entries[out.count++] = topic->entries[i];
    return out;
}

/* The owner writes a full set where it finds none: then all is as before, whatever was lost. */
static void repair(const struct topic *whole, struct topic *topic, const char *conn)
{
    struct config_state *want = replay(whole, whole->count), *state;
    const struct config_conn *before = config_state_conn(want, conn);
    int count = config_state_tasks(before);
    char keys[16][128], commit[64], commit_key[128];
    int from[16];
    bool full;

    expected_tasks(whole, whole->count, conn, &full, from);
    for (int task = 0; task < count; task++) {
        snprintf(keys[task], sizeof(keys[task]), "task-%s-%d", conn, task);
        add(topic, keys[task], whole->entries[from[task]].value);
    }
    snprintf(commit_key, sizeof(commit_key), "commit-%s", conn);
    snprintf(commit, sizeof(commit), "{\"tasks\":%d}", count);
    add(topic, commit_key, commit);
    state = replay(topic, topic->count);
    assert_int_equal(config_state_tasks(config_state_conn(state, conn)), count);
    for (int task = 0; task < count; task++)
        assert_true(props_equal(config_state_task(config_state_conn(state, conn), task),
                                config_state_task(before, task)));
    config_state_free(&state);
    config_state_free(&want);
    topic->count -= (size_t)count + 1;
}

static void same_as_whole(const struct topic *whole, struct topic *topic)
{
    struct config_state *want = replay(whole, whole->count), *have = replay(topic, topic->count);
    const struct config_conn *conn;

    check(topic, topic->count, have);
    assert_int_equal(config_state_offset(want), config_state_offset(have));
    assert_int_equal(config_state_count(want), config_state_count(have));
    for (size_t i = 0; (conn = config_state_next(want, &i)) != NULL;) {
        const struct config_conn *other = config_state_conn(have, conn->name);

        assert_non_null(other);
        assert_true(props_equal(conn->config, other->config));
        assert_int_equal(conn->target, other->target);
        if (config_state_tasks(other) != config_state_tasks(conn)) {
            assert_int_equal(config_state_tasks(other), 0); /* never half a set */
            repair(whole, topic, conn->name);
        }
    }
    config_state_free(&want);
    config_state_free(&have);
}

static struct topic recorded(struct golden *golden)
{
    struct topic topic = {.count = 0};

    *golden = golden_topic("disabled", "configs");
    for (size_t i = 0; i < golden->count; i++) {
        add(&topic, golden->records[i].key, golden->records[i].value);
        topic.entries[topic.count - 1].offset = golden->records[i].offset;
    }
    return topic;
}

static void every_prefix_of_a_recorded_topic_is_right(void **state)
{
    struct golden golden;
    struct topic topic = recorded(&golden);

    (void)state;
    assert_true(topic.count > 80);
    for (size_t end = 0; end <= topic.count; end++)
        check_prefix(&topic, end);
    golden_free(&golden);
}

/* For each prefix: without any one record that may go, and without all of them up to some
 * record. */
static void compaction_between_any_two_writes_is_harmless(void **state)
{
    struct golden golden;
    struct topic whole = recorded(&golden);

    (void)state;
    for (size_t end = 1; end <= whole.count; end++) {
        struct topic prefix = whole;

        prefix.count = end;
        for (size_t i = 0; i < end; i++) {
            bool one[MAX] = {false}, all[MAX] = {false};
            struct topic left;

            if (!compactable(&prefix, i, end))
                continue;
            one[i] = true;
            left = without(&prefix, one);
            same_as_whole(&prefix, &left);
            for (size_t k = 0; k <= i; k++)
                all[k] = compactable(&prefix, k, end);
            left = without(&prefix, all);
            same_as_whole(&prefix, &left);
        }
    }
    golden_free(&golden);
}

static void any_mixture_of_compacted_records_is_harmless(void **state)
{
    struct golden golden;
    struct topic whole = recorded(&golden);

    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        bool gone[MAX] = {false};
        struct topic left;

        for (size_t i = 0; i < whole.count; i++)
            gone[i] = compactable(&whole, i, whole.count) && rand() % 3 == 0;
        left = without(&whole, gone);
        same_as_whole(&whole, &left);
    }
    golden_free(&golden);
}

/* --- single rules ----------------------------------------------------------------------------- */

#define P(text) "{\"properties\":{\"k\":\"" text "\"}}"

static const struct config_conn *conn_of(const struct config_state *state)
{
    return config_state_conn(state, "c");
}

static void put(struct config_state *state, enum config_change_kind want, const char *key,
                const char *value)
{
    struct entry entry = {key, value,
                          config_state_offset(state) < 0 ? 0 : config_state_offset(state)};
    enum config_change_kind have = apply(state, &entry);

    if (have != want)
        fail_msg("%s: change %d and not %d", key, have, want);
}

static void tasks_wait_for_their_commit(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    assert_int_equal(config_state_offset(state), -1);
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_NOTHING, "task-c-1", P("b"));
    assert_int_equal(config_state_tasks(conn_of(state)), 0);
    assert_null(config_state_task(conn_of(state), 0));
    assert_null(conn_of(state)->applied);
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    assert_int_equal(config_state_tasks(conn_of(state)), 2);
    assert_string_equal(props_get(config_state_task(conn_of(state), 1), "k"), "b");
    assert_string_equal(props_get(conn_of(state)->applied, "k"), "1");
    assert_int_equal(conn_of(state)->generation, 0);
    put(state, CONFIG_UPDATED, "connector-c", P("2"));
    assert_string_equal(props_get(conn_of(state)->applied, "k"), "1");
    put(state, CONFIG_NOTHING, "task-c-0", P("c"));
    assert_string_equal(props_get(config_state_task(conn_of(state), 0), "k"), "a");
    assert_int_equal(config_state_offset(state), 6);
    config_state_free(&state);
}

static void a_set_that_is_not_full_empties_the_list_until_the_next(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    put(state, CONFIG_NOTHING, "task-c-1", P("b"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    assert_true(conn_of(state)->inconsistent);
    assert_int_equal(config_state_tasks(conn_of(state)), 0);
    assert_int_equal(conn_of(state)->task_count, 2);
    assert_int_equal(conn_of(state)->generation, 0);
    /* what waited is gone: another commit finds nothing of it */
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    assert_true(conn_of(state)->inconsistent);
    /* two of them, but not the two */
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_NOTHING, "task-c-2", P("c"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    assert_true(conn_of(state)->inconsistent);
    put(state, CONFIG_NOTHING, "task-c-0", P("x"));
    put(state, CONFIG_NOTHING, "task-c-1", P("y"));
    put(state, CONFIG_NOTHING, "task-c-2", P("z"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    assert_false(conn_of(state)->inconsistent);
    assert_int_equal(config_state_tasks(conn_of(state)), 2);
    assert_null(config_state_task(conn_of(state), 2));
    assert_int_equal(conn_of(state)->generation, 1);
    config_state_free(&state);
}

static void a_commit_of_nothing_counts_only_behind_tasks(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":0}");
    assert_int_equal(conn_of(state)->generation, -1);
    assert_false(conn_of(state)->inconsistent);
    assert_true(conn_of(state)->pending_fencing);
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":0}");
    assert_int_equal(config_state_tasks(conn_of(state)), 0);
    assert_int_equal(conn_of(state)->generation, 1);
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2147483647}");
    assert_true(conn_of(state)->inconsistent);
    config_state_free(&state);
}

/* The leader had written it before it knew of the two. */
static void a_count_of_earlier_tasks_is_not_about_those_committed_since(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_NOTHING, "task-c-1", P("b"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":2}");
    put(state, CONFIG_FENCED, "tasks-fencing-c", "{\"task-count\":1}");
    assert_true(conn_of(state)->pending_fencing);
    assert_int_equal(conn_of(state)->task_count_record, 1);
    put(state, CONFIG_FENCED, "tasks-fencing-c", "{\"task-count\":2}");
    assert_false(conn_of(state)->pending_fencing);
    config_state_free(&state);
}

static void deletion_takes_tasks_and_leaves_target_and_fencing(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_NOTHING, "target-state-c", "{\"state\":\"PAUSED\"}");
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    assert_int_equal(conn_of(state)->target, TARGET_PAUSED);
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    put(state, CONFIG_FENCED, "tasks-fencing-c", "{\"task-count\":1}");
    assert_false(conn_of(state)->pending_fencing);
    put(state, CONFIG_REMOVED, "connector-c", NULL);
    assert_null(conn_of(state));
    assert_int_equal(config_state_count(state), 0);
    assert_int_equal(config_state_find(state, "c")->task_count_record, 1);
    assert_int_equal(config_state_find(state, "c")->target, TARGET_PAUSED);
    put(state, CONFIG_NOTHING, "connector-c", NULL);
    put(state, CONFIG_NOTHING, "target-state-c", NULL);
    /* the leftovers of before don't make it whole again */
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_NOTHING, "commit-c", "{\"tasks\":1}");
    put(state, CONFIG_UPDATED, "connector-c", P("2"));
    assert_int_equal(config_state_tasks(conn_of(state)), 0);
    assert_int_equal(conn_of(state)->target, TARGET_STARTED);
    config_state_free(&state);
}

static void a_name_of_which_nothing_is_left_is_forgotten(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_NOTHING, "target-state-c", "{\"state\":\"PAUSED\"}");
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    assert_int_equal(conn_of(state)->generation, 0);
    put(state, CONFIG_REMOVED, "connector-c", NULL);
    assert_non_null(config_state_find(state, "c")); /* its target is left */
    put(state, CONFIG_NOTHING, "target-state-c", NULL);
    assert_null(config_state_find(state, "c"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    assert_non_null(config_state_find(state, "c")); /* that waits for a commit */
    put(state, CONFIG_NOTHING, "commit-c", "{\"tasks\":1}");
    assert_null(config_state_find(state, "c"));
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "task-c-0", P("a"));
    put(state, CONFIG_TASKS, "commit-c", "{\"tasks\":1}");
    assert_int_equal(conn_of(state)->generation, 1); /* not that of the one before */
    config_state_free(&state);
}

static void only_real_changes_of_the_target_are_told(void **arg)
{
    struct config_state *state = config_state_new();

    (void)arg;
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    put(state, CONFIG_NOTHING, "target-state-c",
        "{\"state\":\"STARTED\",\"state.v2\":\"STARTED\"}");
    put(state, CONFIG_TARGETED, "target-state-c",
        "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    put(state, CONFIG_NOTHING, "target-state-c", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    put(state, CONFIG_NOTHING, "target-state-c", "{\"state\":\"JUMPING\"}");
    assert_int_equal(conn_of(state)->target, TARGET_STOPPED);
    put(state, CONFIG_TARGETED, "target-state-c", NULL);
    assert_int_equal(conn_of(state)->target, TARGET_STARTED);
    put(state, CONFIG_NOTHING, "target-state-other", "{\"state\":\"PAUSED\"}");
    config_state_free(&state);
}

static void odd_records_between_good_ones_hurt_nobody(void **arg)
{
    struct golden odd = golden_odd();
    struct config_state *state = config_state_new();
    int64_t offset = 0;

    (void)arg;
    put(state, CONFIG_UPDATED, "connector-c", P("1"));
    for (int i = 0; i < 80; i++) {
        const struct golden_record *java = &odd.records[(size_t)i % odd.count];
        struct config_record rec;
        struct config_change change;
        char key[32];
        int rc = config_records_parse(java->key, java->key_len, java->value, java->value_len, &rec,
                                      NULL);

        offset = config_state_offset(state);
        if (rc == 0)
            config_state_apply(state, offset, &rec, &change);
        else if (rc == MR_ERR_DATA)
            config_state_skip(state, offset);
        assert_int_equal(config_state_offset(state), offset + (rc == MR_ERR_PROTOCOL ? 0 : 1));
        config_record_deinit(&rec);
        snprintf(key, sizeof(key), "connector-good-%d", i);
        put(state, CONFIG_UPDATED, key, P("x"));
        assert_non_null(config_state_conn(state, key + 10));
    }
    assert_string_equal(props_get(conn_of(state)->config, "k"), "1");
    golden_free(&odd);
    config_state_free(&state);
}

static void session_keys_restarts_and_loggers_are_told(void **arg)
{
    struct config_state *state = config_state_new();
    struct config_record rec;
    struct config_change change;

    (void)arg;
    assert_null(config_state_session_key(state));
    put(state, CONFIG_KEYED, "session-key",
        "{\"key\":\"AAECAw==\",\"algorithm\":\"HmacSHA256\",\"creation-timestamp\":5}");
    assert_int_equal(config_state_session_key(state)->key_len, 4);
    assert_string_equal(config_state_session_key(state)->algorithm, "HmacSHA256");
    put(state, CONFIG_NOTHING, "session-key", "{\"key\":\"***\"}");
    assert_int_equal(config_state_session_key(state)->created_wall_ms, 5);
    assert_int_equal(
        config_records_parse("restart-connector-c", 19, "{\"include-tasks\":true}", 22, &rec, NULL),
        0);
    config_state_apply(state, 9, &rec, &change);
    assert_int_equal(change.kind, CONFIG_RESTARTING);
    assert_true(change.include_tasks && !change.only_failed);
    assert_string_equal(change.name, "c");
    config_record_deinit(&rec);
    assert_int_equal(
        config_records_parse("logger-cluster-a.b", 18, "{\"level\":\"LOUD\"}", 16, &rec, NULL), 0);
    config_state_apply(state, 10, &rec, &change);
    assert_int_equal(change.kind, CONFIG_LOGGING);
    assert_string_equal(change.level, "LOUD");
    config_record_deinit(&rec);
    assert_int_equal(config_state_offset(state), 11);
    config_state_free(&state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_of_a_recorded_topic_is_right),
        cmocka_unit_test(compaction_between_any_two_writes_is_harmless),
        cmocka_unit_test(any_mixture_of_compacted_records_is_harmless),
        cmocka_unit_test(tasks_wait_for_their_commit),
        cmocka_unit_test(a_set_that_is_not_full_empties_the_list_until_the_next),
        cmocka_unit_test(a_commit_of_nothing_counts_only_behind_tasks),
        cmocka_unit_test(a_count_of_earlier_tasks_is_not_about_those_committed_since),
        cmocka_unit_test(deletion_takes_tasks_and_leaves_target_and_fencing),
        cmocka_unit_test(a_name_of_which_nothing_is_left_is_forgotten),
        cmocka_unit_test(only_real_changes_of_the_target_are_told),
        cmocka_unit_test(odd_records_between_good_ones_hurt_nobody),
        cmocka_unit_test(session_keys_restarts_and_loggers_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
