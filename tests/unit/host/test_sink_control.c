/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink's plugin and the framework tell each other about partitions, against librdkafka's
 * mock cluster. The plugin is a struct of the test; it writes down what it hears, and does what the
 * script says. */
#include "base/clock.h"
#include "base/log.h"
#include "keep_sink.h"
#include "lease_gap.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Written by the task's thread, read by the test, under lock. */
static struct {
    pthread_mutex_t lock;
    char story[65536];
    int got[3][1000]; /* how often each offset of a partition of topic in was put */
    size_t puts;      /* of records */
    size_t empty_puts;
    size_t commits; /* calls of pre_commit */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    int64_t seek_in_open; /* of partition 0; -1 none */
    int64_t seek_at;      /* once, when put sees this offset in partition 0: to seek_to */
    int64_t seek_to;
    int64_t pause_at; /* once, when put sees this offset in partition 0 */
    atomic_bool resume;
    int64_t put_in_ms; /* each put asks for the next; 0 none */
    bool commit_soon;
    int64_t durable; /* pre_commit says this; -2: what it was asked */
    bool foreign;    /* and a partition that is not its own */
    bool fail_open;
} script;

static struct mr_task *the_task;

static void tell(const char *fmt, ...)
{
    size_t used = strlen(seen.story);
    va_list args;

    va_start(args, fmt);
    vsnprintf(seen.story + used, sizeof(seen.story) - used, fmt, args);
    va_end(args);
}

static int start(void *self, struct mr_task *task, struct mr_error *err)
{
    the_task = task;
    return mr_sink_seek(task, "in", 0, 1, NULL) == MR_ERR_STATE ? MR_OK : MR_ERR_FATAL;
}

static int on_open(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    int rc = script.fail_open ? mr_fail(err, MR_ERR_FATAL, "no room") : MR_OK;

    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < parts->count; i++) {
        const struct mr_partition *part = mr_partition_at(parts, i);

        tell("open %s-%d@%lld; ", part->topic, part->partition, (long long)part->offset);
        if (part->partition == 0 && script.seek_in_open >= 0)
            rc = mr_sink_seek(the_task, part->topic, 0, script.seek_in_open, err);
    }
    pthread_mutex_unlock(&seen.lock);
    return rc;
}

static int on_close(void *self, const struct mr_partition_list *parts, bool lost,
                    struct mr_error *err)
{
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < parts->count; i++)
        tell("%s %s-%d; ", lost ? "lose" : "close", mr_partition_at(parts, i)->topic,
             mr_partition_at(parts, i)->partition);
    pthread_mutex_unlock(&seen.lock);
    return MR_OK;
}

static int look(const struct mr_record *rec, struct mr_error *err)
{
    seen.got[rec->partition][rec->offset]++;
    seen.puts++;
    if (rec->partition == 0 && rec->offset == script.seek_at) {
        script.seek_at = -1;
        return mr_sink_seek(the_task, rec->topic, 0, script.seek_to, err);
    }
    if (rec->partition == 0 && rec->offset == script.pause_at) {
        script.pause_at = -1;
        return mr_sink_pause(the_task, rec->topic, 0, err);
    }
    return MR_OK;
}

static int on_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    int rc = MR_OK;

    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; rc == MR_OK && i < mr_batch_count(in); i++)
        rc = look(mr_record_at(in, i), err);
    seen.empty_puts += mr_batch_count(in) == 0;
    if (rc == MR_OK && atomic_exchange(&script.resume, false))
        rc = mr_sink_resume(the_task, "in", 0, err);
    if (script.put_in_ms > 0)
        mr_sink_put_in(the_task, script.put_in_ms);
    if (script.commit_soon)
        mr_sink_commit(the_task);
    pthread_mutex_unlock(&seen.lock);
    return rc;
}

static int on_pre_commit(void *self, struct mr_partition_list *offsets, struct mr_error *err)
{
    pthread_mutex_lock(&seen.lock);
    seen.commits++;
    for (size_t i = 0; i < offsets->count; i++) {
        struct mr_partition *part = mr_partition_at(offsets, i);

        if (script.durable != -2)
            part->offset = script.durable;
        if (script.foreign)
            part->partition = 77;
    }
    pthread_mutex_unlock(&seen.lock);
    return MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static const struct plugin told_plugin = {.kind = MR_PLUGIN_SINK,
                                          .name = "Told",
                                          .version = "1.0",
                                          .library = "test",
                                          .aliases = aliases,
                                          .keys = keys,
                                          .sink = {.start = start,
                                                   .put = on_put,
                                                   .open = on_open,
                                                   .close = on_close,
                                                   .pre_commit = on_pre_commit}};

static atomic_int assigned; /* lines about partitions that were */
static atomic_int revoked;

static void witness(const char *line, size_t len)
{
    (void)len;
    assigned += strstr(line, "partitions assigned: ") != NULL;
    revoked += strstr(line, "partitions revoked: ") != NULL;
}

static int setup(void **state)
{
    assigned = revoked = 0;
    log_witness(witness);
    lease_gap_clear();
    memset(&script, 0, sizeof(script));
    script.seek_in_open = script.seek_at = script.pause_at = -1;
    script.durable = -2;
    seen.story[0] = '\0';
    seen.puts = seen.empty_puts = seen.commits = 0;
    memset(seen.got, 0, sizeof(seen.got));
    *state = calloc(1, sizeof(struct rig));
    return 0;
}

static int teardown(void **state)
{
    rig_deinit(*state);
    free(*state);
    return 0;
}

static bool puts_is(struct rig *rig, int64_t n)
{
    bool is;

    pthread_mutex_lock(&seen.lock);
    is = (int64_t)seen.puts == n;
    pthread_mutex_unlock(&seen.lock);
    return is;
}

static bool empty_puts_reach(struct rig *rig, int64_t n)
{
    bool is;

    pthread_mutex_lock(&seen.lock);
    is = (int64_t)seen.empty_puts >= n;
    pthread_mutex_unlock(&seen.lock);
    return is;
}

static bool commits_reach(struct rig *rig, int64_t n)
{
    bool is;

    pthread_mutex_lock(&seen.lock);
    is = (int64_t)seen.commits >= n;
    pthread_mutex_unlock(&seen.lock);
    return is;
}

static bool all_put(struct rig *rig, int64_t n)
{
    bool all = true;

    pthread_mutex_lock(&seen.lock);
    for (int64_t i = 0; i < n; i++)
        all = all && seen.got[0][i] > 0;
    pthread_mutex_unlock(&seen.lock);
    return all;
}

/* The partition that is not paused, and the other one is. */
static bool other_is_through(struct rig *rig, int64_t n)
{
    bool is;

    pthread_mutex_lock(&seen.lock);
    is = script.pause_at == -1 && seen.got[1][n - 1] > 0;
    pthread_mutex_unlock(&seen.lock);
    return is;
}

static bool both_are_through(struct rig *rig, int64_t n)
{
    bool are;

    pthread_mutex_lock(&seen.lock);
    are = seen.got[0][n - 1] > 0 && seen.got[1][n - 1] > 0;
    pthread_mutex_unlock(&seen.lock);
    return are;
}

/* As the worker reads it: of another process, when that is dead. */
__attribute__((no_sanitize("thread"))) static bool left_group(struct rig *rig, int64_t n)
{
    return rig->box.slots[1].member_id[0] == '\0';
}

static void assert_got(int partition, int from, int to, int times)
{
    for (int i = from; i < to; i++)
        if (seen.got[partition][i] != times)
            fail_msg("in-%d@%d was put %d times, not %d", partition, i, seen.got[partition][i],
                     times);
}

static void partitions_are_opened_where_they_begin_and_closed_before_the_last_commit(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 20);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_is, 20);
    rig_stop(rig);
    assert_non_null(strstr(seen.story, "open in-0@0; open in-1@0; "));
    assert_non_null(strstr(seen.story, "close in-0; close in-1; "));
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), 10);
    seen.story[0] = '\0';
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_state(rig, STATE_RUNNING);
    rig_write_topic(rig, "in", 2, 20, 2);
    rig_wait_true(rig, puts_is, 22);
    rig_stop(rig);
    assert_non_null(strstr(seen.story, "open in-0@10; open in-1@10; "));
}

static void an_open_that_fails_fails_the_task(void **state)
{
    struct rig *rig = *state;

    script.fail_open = true;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "no room\n\tin open() of plugin Told"));
    assert_int_equal(seen.puts, 0);
}

static void open_may_say_where_reading_begins(void **state)
{
    struct rig *rig = *state;

    script.seek_in_open = 7;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_is, 3);
    rig_stop(rig);
    assert_got(0, 0, 7, 0);
    assert_got(0, 7, 10, 1);
}

/* Of the other partition nothing is read twice, or not at all. */
static void a_seek_goes_back_in_one_partition_alone(void **state)
{
    struct rig *rig = *state;

    script.seek_at = 299;
    script.seek_to = 100;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "50", NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, both_are_through, 500);
    rig_wait_true(rig, committed_is, 500);
    rig_stop(rig);
    assert_got(0, 0, 100, 1);
    assert_got(0, 100, 300, 2);
    assert_got(1, 0, 500, 1);
}

static void a_seek_may_skip_ahead(void **state)
{
    struct rig *rig = *state;

    script.seek_at = 9;
    script.seek_to = 400;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "10", NULL);
    rig_write_topic(rig, "in", 1, 0, 500);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 500);
    rig_stop(rig);
    assert_got(0, 20, 400, 0); /* the rest of the batch that had 9 was put, too */
    assert_got(0, 400, 500, 1);
}

static void a_partition_that_is_paused_waits_while_others_go_on(void **state)
{
    struct rig *rig = *state;

    script.pause_at = 49;
    script.put_in_ms = 20;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "50", NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, other_is_through, 500);
    pthread_mutex_lock(&seen.lock);
    assert_int_equal(seen.got[0][499], 0);
    seen.empty_puts = 0;
    pthread_mutex_unlock(&seen.lock);
    rig_wait_true(rig, empty_puts_reach, 5);
    assert_int_equal(seen.got[0][499], 0);
    script.resume = true;
    rig_wait_true(rig, puts_is, 1000);
    rig_stop(rig);
    assert_got(0, 0, 500, 1);
    assert_got(1, 0, 500, 1);
}

static void put_is_called_when_the_plugin_asks_for_it(void **state)
{
    struct rig *rig = *state;

    script.put_in_ms = 10;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 1);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, empty_puts_reach, 10);
    rig_stop(rig);
}

/* Also while the answer to the one before is under way: each put has one record. */
static void a_commit_comes_when_the_plugin_asks_for_it(void **state)
{
    struct rig *rig = *state;

    script.commit_soon = true;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "3600000",
             "consumer.override.max.poll.records", "1", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 5);
    rig_stop(rig);
}

static void only_what_pre_commit_allows_is_committed(void **state)
{
    struct rig *rig = *state;

    script.durable = 3;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "50", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 3);
    script.durable = -1;
    rig_wait_true(rig, commits_reach, 5);
    rig_stop(rig);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), 3);
}

static void offsets_that_are_none_of_its_own_are_not_committed(void **state)
{
    struct rig *rig = *state;

    script.foreign = true;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "50", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, commits_reach, 3);
    script.foreign = false;
    script.durable = 11; /* more than put took */
    rig_wait_true(rig, commits_reach, 10);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    rig_stop(rig);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
}

/* Plugin code does not run without a lease: what went and came meanwhile is told with the new one,
 * in that order. */
static void partitions_that_went_without_a_lease_are_lost_before_others_open(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_is, 5);
    rig_lose_lease(rig, 50); /* its hard end: the group is left */
    rig_wait_true(rig, left_group, 0);
    assert_string_equal(seen.story, "open in-0@0; ");
    task_lease_renewed(rig->task);
    rig_write_topic(rig, "in", 1, 5, 5);
    rig_wait_true(rig, all_put, 10);
    rig_stop(rig);
    assert_non_null(strstr(seen.story, "open in-0@0; lose in-0; open in-0@"));
}

static bool is_assigned(void)
{
    return assigned > 0;
}

static bool is_revoked(void)
{
    return revoked > 0;
}

static bool is_assigned_again(void)
{
    return assigned > 1;
}

static bool assigned_at_least(struct rig *rig, int64_t n)
{
    return assigned >= n;
}

static bool revoked_at_least(struct rig *rig, int64_t n)
{
    return revoked >= n;
}

static void come_and_go(struct rig *rig)
{
    rd_kafka_t *other = join(rig);

    rig_wait_true(rig, revoked_at_least, 1);
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
}

/* It comes without a lease, and goes with a new one before the loop has looked. */
static void a_partition_that_was_never_opened_is_not_closed(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    lease_gap_arm(rig);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    lease_gap_open(is_assigned, is_revoked);
    rig_wait_true(rig, assigned_at_least, 1);
    come_and_go(rig);
    rig_write_topic(rig, "in", 1, 0, 5);
    rig_wait_true(rig, puts_is, 5);
    rig_stop(rig);
    assert_string_equal(seen.story, "open in-0@0; close in-0; ");
}

/* It goes without a lease, and comes back with a new one before the loop has looked. */
static void a_partition_that_comes_back_at_once_is_lost_before(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, "worker:offset.flush.interval.ms", "60000", NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    lease_gap_arm(rig);
    rig_start(rig, &told_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_is, 5);
    lease_gap_open(is_revoked, is_assigned_again);
    come_and_go(rig);
    rig_wait_true(rig, puts_is, 10);
    rig_stop(rig);
    assert_string_equal(seen.story, "open in-0@0; lose in-0; open in-0@0; close in-0; ");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_partition_that_comes_back_at_once_is_lost_before), /* the longest begin first */
        T(a_partition_that_was_never_opened_is_not_closed),
        T(partitions_are_opened_where_they_begin_and_closed_before_the_last_commit),
        T(an_open_that_fails_fails_the_task),
        T(open_may_say_where_reading_begins),
        T(a_seek_goes_back_in_one_partition_alone),
        T(a_seek_may_skip_ahead),
        T(a_partition_that_is_paused_waits_while_others_go_on),
        T(put_is_called_when_the_plugin_asks_for_it),
        T(a_commit_comes_when_the_plugin_asks_for_it),
        T(only_what_pre_commit_allows_is_committed),
        T(offsets_that_are_none_of_its_own_are_not_committed),
        T(partitions_that_went_without_a_lease_are_lost_before_others_open),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
