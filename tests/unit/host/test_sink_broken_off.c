/* SPDX-License-Identifier: Apache-2.0 */
/* Sink tasks whose plugin ends the thread, against librdkafka's mock cluster. What such a task had
 * under way stays: the plugin may use it still. So leak checkers are told, for this program
 * alone. */
#include "keep_sink.h"

#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:task/sink/sink_task.c\n";
}

static void check_broken_off(struct rig *rig, const char *words)
{
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, words));
    assert_string_equal(rig->box.slots[1].member_id, "");
}

/* The other member has half of the partitions, and a member that was left behind would keep the
 * rest as long as its process lives. slow_ms: what put sleeps before; at a third of
 * max.poll.interval.ms control has the consumer. */
static void end_thread_in_put(struct rig *rig, int slow_ms)
{
    rd_kafka_t *other;

    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000",
             "consumer.override.max.poll.interval.ms", "6000", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 2, 1);
    keep_script.end_thread = 1;
    keep_script.slow_put_ms = slow_ms;
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    other = join(rig); /* both come before the group begins */
    wait_assignment(other, 1);
    rig_write_topic(rig, "in", 2, 0, 100);
    check_broken_off(rig, "the plugin ended its thread in put");
    wait_assignment(other, 2);
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
}

static atomic_int closes;

static int count_close(void *self, const struct mr_partition_list *parts, bool lost,
                       struct mr_error *err)
{
    closes++;
    return MR_OK;
}

/* Its partitions go after it has ended the thread. */
static void a_plugin_that_ends_its_thread_is_called_no_more(void **state)
{
    struct rig *rig = *state;
    struct plugin closing = keep_plugin;

    closes = 0;
    closing.sink.close = count_close;
    keep_script.end_thread = 1;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &closing, TARGET_STARTED);
    check_broken_off(rig, "the plugin ended its thread in put");
    assert_int_equal(closes, 0);
}

static void a_plugin_that_ends_its_thread_in_put_leaves_no_member_behind(void **state)
{
    end_thread_in_put(*state, 0);
}

static void a_plugin_that_ends_its_thread_in_a_long_put_leaves_no_member_behind(void **state)
{
    end_thread_in_put(*state, 3000);
}

/* The consumer is in the middle of a revocation. */
static void a_plugin_that_ends_its_thread_in_a_revocations_flush_commits_nothing(void **state)
{
    struct rig *rig = *state;
    rd_kafka_t *other;

    keep_script.end_thread = 2;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    other = join(rig);
    check_broken_off(rig, "the plugin ended its thread in flush");
    wait_assignment(other, 2);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, keep_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(a_plugin_that_ends_its_thread_in_a_revocations_flush_commits_nothing),
        T(a_plugin_that_ends_its_thread_in_a_long_put_leaves_no_member_behind),
        T(a_plugin_that_ends_its_thread_in_put_leaves_no_member_behind),
        T(a_plugin_that_ends_its_thread_is_called_no_more),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
