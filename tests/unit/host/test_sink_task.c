/* SPDX-License-Identifier: Apache-2.0 */
/* The sink loop against librdkafka's mock cluster: delivery, ledger and commits, redelivery, pause,
 * flush, long puts. */
#include "keep_sink.h"

#include "base/clock.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void records_arrive_once_in_order_and_are_committed_after_flush(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 3, 0, 3000);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_state(rig, STATE_RUNNING);
    rig_wait_true(rig, accepted_is, 3000);
    rig_wait_true(rig, durable_is, 3000);
    rig_wait_true(rig, committed_is, 1000);
    assert_true(rig_stop(rig) < 5000);
    assert_int_equal(rig_committed(rig, GROUP, "in", 1), 1000);
    assert_int_equal(rig_committed(rig, GROUP, "in", 2), 1000);
    assert_int_equal(keep_script.stopped, 1);
    check_got(3000, 3);
}

static void a_stop_commits_what_was_put_and_the_next_start_goes_on_there(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", " in , other ", "worker:offset.flush.interval.ms", "60000", QUICK,
             NULL);
    rig_write_topic(rig, "in", 1, 0, 500);
    rd_kafka_mock_topic_create(rig->cluster, "other", 1, 1);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 500);
    rig_stop(rig);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), 500);
    rig_write_topic(rig, "in", 1, 500, 500);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 1000);
    rig_stop(rig);
    check_got(1000, 1);
}

static void a_put_that_asks_for_a_retry_gets_the_same_batch_again(void **state)
{
    struct rig *rig = *state;
    int64_t began;

    keep_script.retries = 3;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 3000); /* several batches: none may overtake */
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least, 1);
    began = clock_ms();
    rig_wait_true(rig, puts_at_least, 4);
    assert_true(clock_ms() - began >= 600);
    assert_true(clock_ms() - began < 3000);
    rig_wait_true(rig, accepted_is, 3000);
    assert_string_equal(keep_seen.first_try, keep_seen.second_try);
    rig_stop(rig);
    check_got(3000, 2);
}

/* The whole fetch is in the batch: its buffers are gone while the batch waits (a sanitizer sees a
 * read of them). */
static void a_batch_that_waits_lives_in_memory_of_its_own(void **state)
{
    struct rig *rig = *state;

    keep_script.retries = 2;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 300);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 300);
    assert_string_equal(keep_seen.first_try, keep_seen.second_try);
    rig_stop(rig);
    check_got(300, 1);
}

static void topics_are_told_once_a_record_of_theirs_was_converted(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in,other", "errors.tolerance", "all", QUICK, NULL);
    rig_write_topic(rig, "other", 1, 0, 10);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 10);
    rig_topics_are(rig, "other ");
    rig_write_topic(rig, "in", 1, 0, 300);
    rig_wait_true(rig, accepted_is, 310);
    rig_topics_are(rig, "other in ");
}

static void offsets_of_a_batch_that_waits_are_not_committed(void **state)
{
    struct rig *rig = *state;

    keep_script.retries = 1000;
    keep_script.retry_after = 50;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least, 10);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    assert_true(rig_stop(rig) < 5000);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_UNASSIGNED);
}

static void a_put_that_fails_ends_the_task_and_commits_only_what_came_before(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    keep_script.fail_put = MR_ERR_IO;
    rig_write_topic(rig, "in", 1, 100, 50);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(
        rig->trace, "ConnectException: the target is broken\n\tin put() of plugin Keep 1.0"));
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), 100);
}

static void a_flush_that_asks_for_a_retry_keeps_the_offsets_back(void **state)
{
    struct rig *rig = *state;

    keep_script.flush_code = MR_ERR_RETRY;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    rig_wait_true(rig, flushes_at_least, 3);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    keep_script.flush_code = 0;
    rig_wait_true(rig, committed_is, 100);
}

static void a_flush_that_fails_ends_the_task_and_commits_nothing(void **state)
{
    struct rig *rig = *state;

    keep_script.flush_code = MR_ERR_IO;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "the disk is full"));
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
}

static void a_flush_that_fails_at_the_stop_commits_nothing(void **state)
{
    struct rig *rig = *state;

    keep_script.flush_code = MR_ERR_IO;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    rig_stop(rig);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
}

static void a_flush_that_fails_in_a_revocation_ends_the_task_too(void **state)
{
    struct rig *rig = *state;
    rd_kafka_t *other;

    keep_script.flush_code = MR_ERR_IO;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    other = join(rig);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "the disk is full"));
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    rd_kafka_destroy(other);
}

static void pause_stops_delivery_and_resume_loses_nothing(void **state)
{
    struct rig *rig = *state;
    size_t puts;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 1000);
    for (int i = 1; i <= 3; i++) {
        task_set_target(rig->task, TARGET_PAUSED);
        rig_wait_state(rig, STATE_PAUSED);
        puts = keep_seen.puts;
        rig_write_topic(rig, "in", 2, i * 1000, 1000);
        usleep(300000);
        assert_int_equal(keep_seen.puts, puts);
        task_set_target(rig->task, TARGET_STARTED);
        rig_wait_state(rig, STATE_RUNNING);
        rig_wait_true(rig, accepted_is, (i + 1) * 1000);
    }
    rig_stop(rig);
    check_got(4000, 2);
}

/* Gives how many records before it were put. */
static size_t fails_on_the_bad_record(struct rig *rig, const char *group)
{
    keep_seen.accepted = 0;
    props_set(&rig->config, "consumer.override.group.id", group);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace,
                           "Tolerance exceeded in error handler\nCaused by: "
                           "org.apache.kafka.connect.errors.DataException: this value is bad"));
    assert_non_null(strstr(rig->trace, "VALUE_CONVERTER of RigString, record in-0@7"));
    assert_int_equal(rig_committed(rig, group, "in", 0),
                     keep_seen.accepted == 0 ? -1 : (int64_t)keep_seen.accepted);
    return keep_seen.accepted;
}

static void a_bad_record_fails_the_task_before_anything_of_its_poll_is_put(void **state)
{
    struct rig *rig = *state;
    size_t accepted = 7;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "linger.ms", "10000", why, sizeof(why)); /* all in one request */
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    for (int i = 0; i < 10; i++) {
        char value[] = "bad";

        value[0] = i == 7 ? 'b' : 'm';
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_VALUE(value, 3), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                          RD_KAFKA_V_HEADER("h", "x", 1), RD_KAFKA_V_END);
    }
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_destroy(rk);
    /* A poll may end anywhere, and what earlier ones gave was put: but not time and again just
     * before the bad record. */
    for (int i = 0; i < 10 && accepted == 7; i++) {
        snprintf(why, sizeof(why), "group-%d", i);
        accepted = fails_on_the_bad_record(rig, why);
    }
    assert_true(accepted < 7);

    keep_seen.accepted = 0;
    keep_script.headers = 0;
    props_remove(&rig->config, "consumer.override.group.id");
    props_set(&rig->config, "errors.tolerance", "all");
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 10);
    rig_stop(rig);
    assert_int_equal(keep_seen.accepted, 9);
    assert_int_equal(keep_script.headers, 9);
}

/* 400 MB of converted records in one poll, where a batch may have 256. No partition has a committed
 * offset, so what waits behind the first batch is found again by the ledger alone. */
static void a_poll_of_large_records_is_put_in_several_batches(void **state)
{
    struct rig *rig = *state;

    rig_dense_bytes = 1 << 20;
    keep_script.retries = 1;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 4, 0, 400);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 400);
    assert_true(keep_seen.puts > 400 / 33);
    rig_wait_true(rig, committed_is, 100);
    rig_stop(rig);
    check_got(400, 4);
}

/* 26 batches of one poll, together far longer than max.poll.interval.ms. */
static void many_puts_of_one_poll_keep_the_place_in_the_group(void **state)
{
    struct rig *rig = *state;

    rig_dense_bytes = 1 << 20;
    keep_script.each_put_ms = 350;
    rig_init(rig, 1, "topics", "in", "consumer.override.max.poll.interval.ms", "6000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 400);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 400);
    rig_wait_true(rig, committed_is, 400);
    rig_stop(rig);
    check_got(400, 1);
}

/* As after a topic was created anew: the group stands behind the end of the log. */
static void a_topic_that_became_shorter_is_read_from_its_beginning(void **state)
{
    struct rig *rig = *state;
    rd_kafka_topic_partition_list_t *far = rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *other;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    other = group_client(rig);
    rd_kafka_topic_partition_list_add(far, "in", 0)->offset = 1000;
    assert_int_equal(rd_kafka_commit(other, far, 0), 0);
    rd_kafka_topic_partition_list_destroy(far);
    rd_kafka_destroy(other);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    rig_wait_true(rig, committed_is, 100);
    rig_stop(rig);
    check_got(100, 1);
}

static void topics_must_be_named_in_one_way(void **state)
{
    struct rig *rig = *state;
    static const char *const cases[][2] = {{"", ""}, {"in", "i.*"}, {" , ", ""}};

    rig_init(rig, 1, NULL);
    for (size_t i = 0; i < 3; i++) {
        props_set(&rig->config, "topics", cases[i][0]);
        props_set(&rig->config, "topics.regex", cases[i][1]);
        rig_start(rig, &keep_plugin, TARGET_STARTED);
        rig_wait_end(rig);
        assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
        assert_non_null(strstr(rig->trace, "topics"));
    }
}

static void a_stop_with_the_broker_away_ends_in_time_with_the_plugins_stop(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000",
             "worker:task.shutdown.graceful.timeout.ms", "2000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    assert_true(rig_stop(rig) < 2300);
    assert_int_equal(keep_script.stopped, 1);
}

static void topics_can_be_named_by_a_pattern(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics.regex", "i[a-z]", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_write_topic(rig, "inner", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_at_least, 100);
    usleep(200000);
    rig_stop(rig);
    check_got(100, 1);
}

/* max.poll.interval.ms is 6 s here; the put takes 9 s. Without help the group would throw the
 * member out. */
static void a_long_put_keeps_its_place_in_the_group(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", "consumer.override.max.poll.interval.ms", "6000", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 400);
    keep_script.slow_put_ms = 9000;
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_at_least, 1);
    rig_wait_true(rig, accepted_is, 400);
    rig_write_topic(rig, "in", 2, 400, 400);
    rig_wait_true(rig, accepted_is, 800);
    rig_wait_true(rig, committed_is, 400);
    rig_stop(rig);
    check_got(800, 2);
}

/* All partitions were stopped already when control took the consumer. */
static void a_batch_that_takes_long_the_second_time_lets_reading_go_on(void **state)
{
    struct rig *rig = *state;

    keep_script.retries = 1;
    keep_script.retry_after = 1500;
    rig_init(rig, 1, "topics", "in", "consumer.override.max.poll.interval.ms", "6000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least, 1);
    keep_script.slow_put_ms = 3500;
    rig_wait_true(rig, accepted_is, 100);
    rig_write_topic(rig, "in", 1, 100, 100);
    rig_wait_true(rig, accepted_is, 200);
    rig_stop(rig);
    check_got(200, 1);
}

static void the_members_id_stands_in_the_black_box_until_it_leaves(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 10);
    assert_true(rig->box.slots[1].member_id[0] != '\0');
    rig_stop(rig);
    assert_true(rig->box.slots[1].member_id[0] == '\0'); /* it has left by itself */
}

static struct rig *looked_at;
static int puts_untold; /* the task's thread alone counts until it has ended */

static int put_and_look(void *self, struct mr_batch *in, struct mr_error *err)
{
    puts_untold += looked_at->member[0] == '\0';
    return keep_plugin.sink.put(self, in, err);
}

/* A broker gives a new member its id seconds before its partitions, the mock cluster both at once:
 * here only the order shows. */
static void the_members_id_is_told_before_it_has_records(void **state)
{
    struct plugin looking = keep_plugin;
    struct rig *rig = looked_at = *state;

    puts_untold = 0;
    looking.sink.put = put_and_look;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &looking, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 10);
    rig_stop(rig);
    assert_int_equal(puts_untold, 0);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, keep_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(many_puts_of_one_poll_keep_the_place_in_the_group), /* the longest begin first */
        T(a_long_put_keeps_its_place_in_the_group),
        T(a_batch_that_takes_long_the_second_time_lets_reading_go_on),
        T(records_arrive_once_in_order_and_are_committed_after_flush),
        T(a_stop_commits_what_was_put_and_the_next_start_goes_on_there),
        T(a_put_that_asks_for_a_retry_gets_the_same_batch_again),
        T(a_batch_that_waits_lives_in_memory_of_its_own),
        T(offsets_of_a_batch_that_waits_are_not_committed),
        T(topics_are_told_once_a_record_of_theirs_was_converted),
        T(a_put_that_fails_ends_the_task_and_commits_only_what_came_before),
        T(a_flush_that_asks_for_a_retry_keeps_the_offsets_back),
        T(a_flush_that_fails_ends_the_task_and_commits_nothing),
        T(a_flush_that_fails_at_the_stop_commits_nothing),
        T(a_flush_that_fails_in_a_revocation_ends_the_task_too),
        T(pause_stops_delivery_and_resume_loses_nothing),
        T(a_bad_record_fails_the_task_before_anything_of_its_poll_is_put),
        T(a_poll_of_large_records_is_put_in_several_batches),
        T(a_topic_that_became_shorter_is_read_from_its_beginning),
        T(topics_must_be_named_in_one_way),
        T(a_stop_with_the_broker_away_ends_in_time_with_the_plugins_stop),
        T(topics_can_be_named_by_a_pattern),
        T(the_members_id_stands_in_the_black_box_until_it_leaves),
        T(the_members_id_is_told_before_it_has_records),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
