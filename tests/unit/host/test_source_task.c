/* SPDX-License-Identifier: Apache-2.0 */
/* The source loop against librdkafka's mock cluster: delivery, order, offsets behind delivery,
 * pause, stop, failures. */
#include "counter_source.h"

#include "base/clock.h"
#include "support/unit/side_by_side.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* --- delivery and offsets --------------------------------------------------------------------- */

static void records_arrive_in_order_and_their_offset_is_stored(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_state(rig, STATE_RUNNING);
    rig_wait_true(rig, stored_is, 1000);
    assert_true(rig_stop(rig) < 2000);
    assert_true(rig_saw(rig, STATE_UNASSIGNED));
    assert_true(counter_script.committed > 0);
    assert_int_equal(counter_script.stopped, 1);
    check_topic(rig, 0, 1000);
}

static void a_task_goes_on_where_the_stored_offset_stands(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_store(rig, PART, "next", 900);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    check_topic(rig, 900, 1000);
}

static void a_stop_under_load_loses_nothing_and_stores_what_was_delivered(void **state)
{
    struct rig *rig = *state;
    int64_t stored;

    counter_script.limit = 1000000;
    counter_script.per_poll = 7;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 2000);
    assert_true(rig_stop(rig) < 4000);
    stored = rig_stored(rig, PART, "next");
    assert_true(stored > 2000);
    check_topic(rig, 0, (int)stored); /* all that was handed over is there, and stored */
}

static void offsets_wait_for_the_delivery_report(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 700);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 10);
    assert_int_equal(rig_stored(rig, PART, "next"), -1);
    assert_int_equal(rig_puts(rig), 0);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    rig_wait_true(rig, stored_is, 1000);
}

static void a_topic_is_told_once_it_was_delivered_to_and_again_when_forgotten(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 500;
    counter_script.again_ms = 20;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 700);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 10);
    rig_topics_are(rig, "");
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    rig_wait_true(rig, stored_is, 500);
    rig_topics_are(rig, "numbers ");
    task_topics_forget(rig->task);
    counter_script.limit = 1000;
    rig_wait_true(rig, stored_is, 1000);
    rig_topics_are(rig, "numbers numbers ");
}

static void no_topic_is_told_where_the_worker_keeps_none(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "worker:topic.tracking.enable", "false", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_topics_are(rig, "");
}

static void offsets_that_could_not_be_stored_are_stored_later(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_refuse_puts(rig, true);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    for (int64_t until = clock_ms() + 10000; rig_puts(rig) < 3 && clock_ms() < until;)
        usleep(1000);
    assert_int_equal(rig_stored(rig, PART, "next"), -1);
    assert_int_equal(counter_script.committed, 0);
    rig_refuse_puts(rig, false);
    rig_wait_true(rig, stored_is, 1000);
}

static bool was_told(struct rig *rig, int64_t n)
{
    return counter_script.committed >= n;
}

static void a_busy_source_stores_at_each_interval_and_hears_of_it(void **state)
{
    struct rig *rig = *state;
    int64_t began;

    counter_script.limit = INT32_MAX;
    counter_script.per_poll = 7;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    began = clock_ms();
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, was_told, 5);
    assert_true((int64_t)rig_puts(rig) <= (clock_ms() - began) / 100 + 1);
}

static void a_broker_that_goes_and_comes_loses_nothing(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 20000;
    counter_script.per_poll = 50;
    rig_init(rig, 1, "producer.override.reconnect.backoff.ms", "50",
             "producer.override.reconnect.backoff.max.ms", "100", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 500);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    usleep(700000);
    rd_kafka_mock_broker_set_up(rig->cluster, 1);
    rig_wait_true(rig, stored_is, 20000);
    rig_stop(rig);
    {
        /* A request that was answered into the void is sent again: duplicates, but nothing is
         * missing and no gap. */
        json_t *values = rig_read_topic(rig, "numbers", 20000);
        int highest = -1;

        for (size_t i = 0; i < json_array_size(values); i++) {
            int n = (int)strtol(json_string_value(json_array_get(values, i)), NULL, 10);

            assert_true(n <= highest + 1);
            highest = n > highest ? n : highest;
        }
        assert_int_equal(highest, 19999);
        json_decref(values);
    }
}

static void a_small_memory_budget_slows_the_source_and_loses_nothing(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 30000;
    counter_script.per_poll = 1000;
    rig_init(rig, 1, "producer.override.buffer.memory", "300000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 30000);
    rig_stop(rig);
    check_topic(rig, 0, 30000);
}

/* --- pause and stop --------------------------------------------------------------------------- */

static void
a_stop_with_the_broker_away_ends_in_time_and_stores_only_what_was_delivered(void **state)
{
    struct rig *rig = *state;
    int64_t stored;

    counter_script.limit = 1000000;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "2000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 500);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    usleep(200000);
    assert_true(rig_stop(rig) < 3000);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_UNASSIGNED);
    stored = rig_stored(rig, PART, "next");
    rd_kafka_mock_broker_set_up(rig->cluster, 1);
    {
        json_t *values = rig_read_topic(rig, "numbers", (size_t)stored);

        assert_true((int64_t)json_array_size(values) >= stored);
        json_decref(values);
    }
}

static void what_a_late_poll_hands_over_is_delivered_and_stored(void **state)
{
    struct rig *rig = *state;

    counter_script.slow_poll_ms = 850;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "1000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 20);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    assert_true(rig_stop(rig) < 1500);
    assert_int_equal(counter_script.polls, 1);
    assert_int_equal(rig_stored(rig, PART, "next"), 100);
    check_topic(rig, 0, 100);
}

static void reports_that_arrive_while_offsets_are_stored_count(void **state)
{
    struct rig *rig = *state;

    counter_script.per_poll = 1;
    counter_script.limit = 100;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "4000",
             "worker:offset.flush.interval.ms", "60000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 100);
    usleep(100000); /* delivered, not stored */
    counter_script.limit = 101;
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 2600); /* its report comes behind 6/10 */
    pthread_mutex_lock(&rig->lock);
    rig->hold_puts = true; /* the first answer behind that, and before 9/10 */
    pthread_mutex_unlock(&rig->lock);
    mr_wake(counter_script.handle);
    rig_wait_true(rig, polls_are, 101);
    task_stop(rig->task);
    usleep(3000000);
    rig_answer_held(rig);
    rig_wait_end(rig);
    assert_int_equal(rig_stored(rig, PART, "next"), 101);
}

static void a_stop_within_a_batch_of_many_new_topics_ends_in_time(void **state)
{
    struct rig *rig = *state;

    counter_script.many_topics = 1;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "2000", NULL);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    assert_true(rig_stop(rig) < 2500);
}

static void a_paused_task_does_not_poll_and_goes_on_after(void **state)
{
    struct rig *rig = *state;
    int polls;

    counter_script.limit = 1000000;
    counter_script.per_poll = 10;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 100);
    task_set_target(rig->task, TARGET_PAUSED);
    rig_wait_state(rig, STATE_PAUSED);
    polls = counter_script.polls;
    usleep(200000);
    assert_int_equal(counter_script.polls, polls);
    assert_int_equal(rig_stored(rig, PART, "next"), polls * 10); /* flushed */
    task_set_target(rig->task, TARGET_STARTED);
    rig_wait_state(rig, STATE_RUNNING);
    rig_wait_true(rig, polls_are, polls + 5);
    rig_stop(rig);
    check_topic(rig, 0, (int)rig_stored(rig, PART, "next"));
}

static void a_task_that_begins_paused_is_not_started(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_PAUSED);
    rig_wait_state(rig, STATE_PAUSED);
    usleep(50000);
    assert_int_equal(counter_script.started, 0);
    task_set_target(rig->task, TARGET_STARTED);
    rig_wait_state(rig, STATE_RUNNING);
    assert_int_equal(counter_script.started, 1);
}

static void a_task_that_is_not_ours_ends_in_silence(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rig->not_ours = true;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(counter_script.started, 0);
    assert_int_equal(rig->state_count, 1);
    assert_int_equal(rig->states[0], STATE_UNASSIGNED);
}

static void a_task_that_can_t_ask_whether_it_is_ours_has_failed(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rig->no_answer = "out of memory";
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(counter_script.started, 0);
    assert_int_equal(rig->states[0], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "could not be asked whether the task is to run: out of "));
}

static void a_wait_for_the_next_poll_ends_at_once_on_stop(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 0;
    counter_script.again_ms = 100000;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    assert_true(rig_stop(rig) < 5000);
    assert_true(counter_script.interrupted <= 1); /* not at all when the stop was quicker */
}

static void a_wait_beyond_all_time_is_one(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 0;
    counter_script.again_ms = INT64_MAX;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    usleep(50000);
    assert_int_equal(counter_script.polls, 1);
    mr_wake(counter_script.handle);
    rig_wait_true(rig, polls_are, 2);
    assert_true(rig_stop(rig) < 5000);
}

static void a_poll_that_blocks_in_read_is_interrupted(void **state)
{
    struct rig *rig = *state;

    counter_script.fault = FAULT_BLOCK;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    usleep(50000);
    assert_true(rig_stop(rig) < 2000);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_UNASSIGNED);
}

static void wake_ends_the_wait(void **state)
{
    struct rig *rig = *state;
    int64_t began;

    counter_script.limit = 0;
    counter_script.again_ms = 100000;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    began = clock_ms();
    mr_wake(counter_script.handle);
    rig_wait_true(rig, polls_are, 2);
    assert_true(clock_ms() - began < 5000);
}

static void a_readable_descriptor_ends_the_wait(void **state)
{
    struct rig *rig = *state;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    counter_script.limit = 0;
    counter_script.fd = fds[0];
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    usleep(50000);
    assert_int_equal(counter_script.polls, 1);
    assert_int_equal(write(fds[1], "x", 1), 1);
    rig_wait_true(rig, polls_are, 3);
    rig_stop(rig);
    close(fds[0]);
    close(fds[1]);
}

static void a_poll_that_gives_nothing_and_does_not_wait_takes_no_core(void **state)
{
    struct rig *rig = *state;
    int polls;

    counter_script.limit = 0;
    counter_script.again_ms = 0;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 20);
    usleep(300000);
    polls = counter_script.polls;
    usleep(500000);
    assert_true(counter_script.polls - polls < 100);
}

/* --- retries and failures --------------------------------------------------------------------- */

static void a_poll_that_asks_for_a_retry_has_its_records_dropped_and_is_called_again(void **state)
{
    struct rig *rig = *state;

    counter_script.retries = 3;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    check_topic(rig, 0, 1000);
}

static void a_poll_that_fails_leaves_what_was_delivered_stored(void **state)
{
    struct rig *rig = *state;

    counter_script.fail_at = 500;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_true(rig_saw(rig, STATE_FAILED));
    assert_non_null(
        strstr(rig->trace, "org.apache.kafka.connect.errors.ConnectException: the origin broke"));
    assert_non_null(strstr(rig->trace, "in poll() of plugin Counter 1.0"));
    assert_int_equal(rig_stored(rig, PART, "next"), 500);
    assert_int_equal(counter_script.stopped, 1);
    check_topic(rig, 0, 500);
}

/* As in Java; and no longer than a stop that comes meanwhile allows. */
static void a_task_that_failed_waits_for_what_is_under_way(void **state)
{
    struct rig *rig = *state;

    counter_script.fail_at = 500;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "500", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 1500);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_true(rig_saw(rig, STATE_FAILED));
    assert_int_equal(rig_stored(rig, PART, "next"), 500);
}

static void a_stop_bounds_the_wait_of_a_task_that_failed(void **state)
{
    struct rig *rig = *state;

    counter_script.fail_at = 500;
    rig_init(rig, 1, "worker:task.shutdown.graceful.timeout.ms", "500", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 20000);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 6);
    assert_true(rig_stop(rig) < 4000);
}

static void a_start_that_fails_is_shown_and_stop_is_called(void **state)
{
    struct rig *rig = *state;

    counter_script.start_code = MR_ERR_CONFIG;
    rig_init(rig, 1, NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_false(rig_saw(rig, STATE_RUNNING));
    assert_non_null(strstr(rig->trace, "ConfigException: the origin is not there"));
    assert_int_equal(counter_script.stopped, 1);
}

static void a_bad_record_fails_the_task_with_what_precedes_it_stored(void **state)
{
    struct rig *rig = *state;

    counter_script.bad_at = 350;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace,
                           "ConnectException: Tolerance exceeded in error handler\nCaused by: "
                           "org.apache.kafka.connect.errors.DataException: this value is bad"));
    assert_non_null(strstr(rig->trace, "VALUE_CONVERTER of RigString"));
    assert_int_equal(rig_stored(rig, PART, "next"), 350);
    check_topic(rig, 0, 350);
}

static void a_bad_record_is_skipped_by_tolerance_and_its_offset_stored(void **state)
{
    struct rig *rig = *state;
    json_t *values;

    counter_script.bad_at = 999; /* the last one */
    rig_init(rig, 1, "errors.tolerance", "all", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    values = rig_read_topic(rig, "numbers", 999);
    assert_int_equal(json_array_size(values), 999);
    json_decref(values);
}

static void a_record_above_max_request_size_fails_the_task_at_that_record(void **state)
{
    struct rig *rig = *state;

    counter_script.large_at = 120;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "topic numbers"));
    assert_non_null(strstr(rig->trace, "larger than max.request.size"));
    assert_int_equal(rig_stored(rig, PART, "next"), 120);
    check_topic(rig, 0, 120);
}

static void a_record_above_max_request_size_is_skipped_by_tolerance(void **state)
{
    struct rig *rig = *state;

    counter_script.large_at = 120;
    rig_init(rig, 1, "errors.tolerance", "all", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
}

static void a_record_above_buffer_memory_fails_the_task_by_name(void **state)
{
    struct rig *rig = *state;

    counter_script.large_at = 120;
    rig_init(rig, 1, "producer.override.max.request.size", "10000000",
             "producer.override.buffer.memory", "300000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "topic numbers"));
    assert_non_null(strstr(rig->trace, "larger than buffer.memory, which is 300000"));
    assert_int_equal(rig_stored(rig, PART, "next"), 120);
    check_topic(rig, 0, 120);
}

static void a_record_above_buffer_memory_is_skipped_by_tolerance(void **state)
{
    struct rig *rig = *state;

    counter_script.large_at = 120;
    rig_init(rig, 1, "errors.tolerance", "all", "producer.override.max.request.size", "10000000",
             "producer.override.buffer.memory", "300000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
}

/* Requests are refused that no single record is too large for: all are sent again, so that the last
 * of each stands in order (what was under way when the refusal came may stand before them). */
static void a_refused_request_is_sent_again_in_order(void **state)
{
    struct rig *rig = *state;
    static size_t last[1000];
    json_t *values;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, 0, 2, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    values = rig_read_topic(rig, "numbers", 1000);
    memset(last, 0, sizeof(last));
    for (size_t i = 0; i < json_array_size(values); i++)
        last[strtol(json_string_value(json_array_get(values, i)), NULL, 10)] = i + 1;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(last[i] > 0);
        assert_true(i == 0 || last[i] > last[i - 1]);
    }
    json_decref(values);
}

/* A request that is refused for now must not be overtaken by the one that was built behind it: a
 * record each 30 ms, 200 ms a request. */
static void a_leader_that_moves_changes_no_order(void **state)
{
    struct rig *rig = *state;

    counter_script.per_poll = 1;
    counter_script.slow_poll_ms = 30;
    counter_script.limit = 20;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 200);
    rd_kafka_mock_push_request_errors(rig->cluster, 0, 3, RD_KAFKA_RESP_ERR_NO_ERROR,
                                      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 20);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    rig_stop(rig);
    check_topic(rig, 0, 20);
}

static void what_tolerance_dropped_is_not_sent_again_behind_a_refused_request(void **state)
{
    struct rig *rig = *state;
    json_t *values;

    counter_script.large_at = 50;
    rig_init(rig, 1, "errors.tolerance", "all", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, 0, 2, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    values = rig_read_topic(rig, "numbers", 999);
    assert_true(json_array_size(values) >= 999);
    json_decref(values);
}

/* 2000 records, half of them fit the producer; the first request is refused after the stop. */
static void after_a_refusal_at_the_stop_nothing_more_is_sent(void **state)
{
    struct rig *rig = *state;
    json_t *values;

    counter_script.per_poll = counter_script.limit = 2000;
    rig_init(rig, 1, "producer.override.buffer.memory", "300000",
             "worker:task.shutdown.graceful.timeout.ms", "3000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 300);
    rd_kafka_mock_push_request_errors(rig->cluster, 0, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    usleep(100000);
    rig_stop(rig);
    assert_int_equal(rig_stored(rig, PART, "next"), -1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    values = rig_read_topic(rig, "numbers", 0);
    assert_true(json_array_size(values) < 1000);
    json_decref(values);
}

static void a_topic_that_does_not_exist_fails_the_task_by_name(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_set_error(rig->cluster, "numbers", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    props_set(&rig->config, "producer.override.delivery.timeout.ms", "2000");
    props_set(&rig->config, "producer.override.request.timeout.ms", "1000");
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "numbers"));
    assert_int_equal(rig_stored(rig, PART, "next"), -1);
}

static void mistakes_of_the_plugin_are_named(void **state)
{
    struct rig *rig = *state;
    static const struct {
        int fault;
        const char *text;
    } cases[] = {
        {FAULT_NO_TOPIC, "without a topic"},
        {FAULT_TIMESTAMP, "Invalid record timestamp -5"},
        {FAULT_BAD_FD, "descriptor 999"},
        {FAULT_UNDECLARED, "nonsense"},
        {FAULT_NAME, "source partition {name: caf\\xe9} can't be stored: its name is not UTF-8"},
        {FAULT_KEY, "a key that is not UTF-8"},
        {FAULT_HUGE, "more memory than a batch may hold"},
    };

    rig_init(rig, 1, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        counter_script.fault = cases[i].fault;
        rig_start(rig, &counter_plugin, TARGET_STARTED);
        rig_wait_end(rig);
        assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
        if (strstr(rig->trace, cases[i].text) == NULL)
            fail_msg("%s not in %s", cases[i].text, rig->trace);
    }
}

static void settings_that_cannot_work_fail_the_task(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "value.converter", "NoSuch", NULL);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "value.converter: no converter called NoSuch"));
    assert_int_equal(counter_script.started, 0);
    props_set(&rig->config, "value.converter", "RigString");
    props_set(&rig->config, "producer.override.acks", "seven");
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    assert_non_null(strstr(rig->trace, "acks"));
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, counter_setup, counter_teardown)
    const struct CMUnitTest tests[] = {
        T(records_arrive_in_order_and_their_offset_is_stored),
        T(a_task_goes_on_where_the_stored_offset_stands),
        T(a_stop_under_load_loses_nothing_and_stores_what_was_delivered),
        T(offsets_wait_for_the_delivery_report),
        T(a_topic_is_told_once_it_was_delivered_to_and_again_when_forgotten),
        T(no_topic_is_told_where_the_worker_keeps_none),
        T(offsets_that_could_not_be_stored_are_stored_later),
        T(a_busy_source_stores_at_each_interval_and_hears_of_it),
        T(a_broker_that_goes_and_comes_loses_nothing),
        T(a_small_memory_budget_slows_the_source_and_loses_nothing),
        T(a_stop_with_the_broker_away_ends_in_time_and_stores_only_what_was_delivered),
        T(what_a_late_poll_hands_over_is_delivered_and_stored),
        T(reports_that_arrive_while_offsets_are_stored_count),
        T(a_stop_within_a_batch_of_many_new_topics_ends_in_time),
        T(a_paused_task_does_not_poll_and_goes_on_after),
        T(a_task_that_begins_paused_is_not_started),
        T(a_task_that_is_not_ours_ends_in_silence),
        T(a_task_that_can_t_ask_whether_it_is_ours_has_failed),
        T(a_wait_for_the_next_poll_ends_at_once_on_stop),
        T(a_wait_beyond_all_time_is_one),
        T(a_poll_that_blocks_in_read_is_interrupted),
        T(wake_ends_the_wait),
        T(a_readable_descriptor_ends_the_wait),
        T(a_poll_that_gives_nothing_and_does_not_wait_takes_no_core),
        T(a_poll_that_asks_for_a_retry_has_its_records_dropped_and_is_called_again),
        T(a_poll_that_fails_leaves_what_was_delivered_stored),
        T(a_task_that_failed_waits_for_what_is_under_way),
        T(a_stop_bounds_the_wait_of_a_task_that_failed),
        T(a_start_that_fails_is_shown_and_stop_is_called),
        T(a_bad_record_fails_the_task_with_what_precedes_it_stored),
        T(a_bad_record_is_skipped_by_tolerance_and_its_offset_stored),
        T(a_record_above_max_request_size_fails_the_task_at_that_record),
        T(a_record_above_max_request_size_is_skipped_by_tolerance),
        T(a_record_above_buffer_memory_fails_the_task_by_name),
        T(a_record_above_buffer_memory_is_skipped_by_tolerance),
        T(a_refused_request_is_sent_again_in_order),
        T(a_leader_that_moves_changes_no_order),
        T(what_tolerance_dropped_is_not_sent_again_behind_a_refused_request),
        T(after_a_refusal_at_the_stop_nothing_more_is_sent),
        T(a_topic_that_does_not_exist_fails_the_task_by_name),
        T(mistakes_of_the_plugin_are_named),
        T(settings_that_cannot_work_fail_the_task),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
