/* SPDX-License-Identifier: Apache-2.0 */
/* Source tasks whose host loses its lease: quiet, and on again in place, against librdkafka's mock
 * cluster. */
#include "counter_source.h"

#include "base/clock.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static bool topic_has(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "numbers") >= n;
}

static bool asked_to_store(struct rig *rig, int64_t n)
{
    return (int64_t)rig_puts(rig) >= n;
}

static void without_a_lease_nothing_is_polled_sent_or_stored(void **state)
{
    struct rig *rig = *state;
    size_t puts, states;
    int64_t count;
    int polls;

    counter_script.limit = 1000000;
    counter_script.per_poll = 7;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 2000);
    states = rig->state_count;
    rig_lose_lease(rig, 100000);
    polls = counter_script.polls;
    puts = rig_puts(rig);
    count = rig_topic_end(rig, "numbers");
    usleep(300000); /* three times the interval of storing */
    assert_int_equal(rig_topic_end(rig, "numbers"), count);
    assert_int_equal(counter_script.polls, polls);
    assert_int_equal(rig_puts(rig), puts);
    assert_int_equal(rig->state_count, states);
    counter_script.limit = counter_script.polls * 7 + 700;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, counter_script.limit);
    assert_int_equal(rig->state_count, states); /* it went on in place */
    assert_int_equal(counter_script.started, 1);
    rig_stop(rig);
    check_no_gap(rig, counter_script.limit);
}

/* Much is under way when the lease is lost: it is taken back, and sent again in order. */
static void what_was_under_way_without_a_lease_is_sent_again_in_order(void **state)
{
    struct rig *rig = *state;
    int64_t count;

    counter_script.limit = 3000;
    counter_script.per_poll = 50;
    rig_init(rig, 1, "producer.override.batch.size", "1000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 50);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 200);
    assert_true(delivered_some(rig, 0) && !stored_is(rig, 3000));
    rig_lose_lease(rig, 100000);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    usleep(100000); /* what lay in the socket */
    count = rig_topic_end(rig, "numbers");
    assert_true(count < 3000);
    usleep(200000);
    assert_int_equal(rig_topic_end(rig, "numbers"), count);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, 3000);
    rig_stop(rig);
    check_no_gap(rig, 3000);
}

static void a_lease_that_comes_and_goes_loses_nothing(void **state)
{
    struct rig *rig = *state;
    unsigned seed = (unsigned)clock_wall_ms();

    print_message("seed %u\n", seed);
    srand(seed);
    counter_script.limit = 20000;
    counter_script.per_poll = 23;
    rig_init(rig, 1, "producer.override.batch.size", "500", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    for (int i = 0; i < 30; i++) {
        usleep((useconds_t)rand() % 30000);
        if (rand() % 2 == 0)
            rig_lose_lease(rig, 100000);
        else
            task_lease_lost(rig->task, INT64_MAX); /* renewed before it got around to it */
        task_lease_renewed(rig->task);
    }
    rig_wait_true(rig, stored_is, 20000);
    rig_stop(rig);
    check_no_gap(rig, 20000);
}

static void a_lease_lost_with_the_broker_away_makes_quiet_soon(void **state)
{
    struct rig *rig = *state;
    int64_t began;

    counter_script.limit = 5000;
    rig_init(rig, 1, "producer.override.reconnect.backoff.ms", "50",
             "producer.override.reconnect.backoff.max.ms", "100", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 5);
    rd_kafka_mock_broker_set_down(rig->cluster, 1);
    rig_wait_true(rig, polls_are, 50);
    began = clock_ms();
    rig_lose_lease(rig, 100000);
    assert_true(clock_ms() - began < 5000);
    rd_kafka_mock_broker_set_up(rig->cluster, 1);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, 5000);
    rig_stop(rig);
    check_no_gap(rig, 5000);
}

/* A warm producer would send at once what it is given. */
static void a_poll_that_outlasts_the_lease_is_waited_for_and_its_records_kept(void **state)
{
    struct rig *rig = *state;
    int polls;

    counter_script.limit = 10;
    rig_init(rig, 1, "producer.override.batch.size", "500", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    counter_script.per_poll = 20000;
    counter_script.limit = 20010;
    counter_script.slow_poll_ms = 400;
    polls = counter_script.polls;
    mr_wake(counter_script.handle);
    rig_wait_true(rig, polls_are, polls + 1);
    task_lease_lost(rig->task, INT64_MAX);
    assert_false(task_lease_quiet(rig->task));
    rig_lose_lease(rig, 100000);
    assert_int_equal(rig->quiets, 1);
    assert_int_equal(counter_script.polls, polls + 1);
    assert_int_equal(rig_topic_end(rig, "numbers"), 10);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, 20010);
    rig_stop(rig);
    check_topic(rig, 0, 20010);
}

static void a_stop_without_a_lease_sends_and_stores_nothing(void **state)
{
    struct rig *rig = *state;
    size_t puts;

    counter_script.slow_poll_ms = 200;
    rig_init(rig, 1, "worker:offset.flush.interval.ms", "60000", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    task_lease_lost(rig->task, INT64_MAX);
    puts = rig_puts(rig);
    assert_true(rig_stop(rig) < 2000);
    assert_int_equal(counter_script.stopped, 1);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_UNASSIGNED);
    assert_int_equal(rig_puts(rig), puts);
    assert_int_equal(rig_topic_end(rig, "numbers"), 0);
}

/* --- in a stage ------------------------------------------------------------------------------- */

/* A converter that is busy while the test says so. */
static struct {
    atomic_bool on;
    atomic_int tries;
} busy;

static int busy_from_connect(void *self, struct mr_arena *arena, const char *topic,
                             const struct mr_schema *schema, struct mr_value value,
                             const void **data, size_t *len, struct mr_error *err)
{
    if (busy.on && value.kind == MR_KIND_STRING) {
        busy.tries++;
        return mr_fail(err, MR_ERR_RETRY, "busy");
    }
    return rig_string_converter.converter.from_connect(self, arena, topic, schema, value, data, len,
                                                       err);
}

static struct plugin busy_converter;
static const struct plugin *const busy_plugins[] = {&busy_converter, NULL};

/* Some 25 records a request, 100 ms each: there are seconds of them in the producer. */
#define SLOW "producer.override.batch.size", "500"

static bool tries_are(struct rig *rig, int64_t n)
{
    return busy.tries >= n;
}

static void be_busy(struct rig *rig)
{
    busy_converter = rig_string_converter;
    busy_converter.name = "Busy";
    busy_converter.converter.from_connect = busy_from_connect;
    rig_more = busy_plugins;
    props_set(&rig->config, "value.converter", "Busy");
    props_set(&rig->config, "errors.retry.timeout", "-1");
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    counter_script.limit = INT32_MAX;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 20);
    busy.on = true;
    rig_wait_true(rig, tries_are, 1);
    counter_script.limit = counter_script.polls * counter_script.per_poll;
}

/* Quiet means quiet; a request that is at the broker already is answered. */
static void check_silence(struct rig *rig)
{
    int64_t end;

    rig_lose_lease(rig, 100000);
    end = rig_topic_end(rig, "numbers");
    usleep(1000000); /* ten requests */
    assert_true(rig_topic_end(rig, "numbers") <= end + 50);
}

static void a_lease_lost_between_two_tries_of_a_stage_ends_sending(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, SLOW, NULL);
    be_busy(rig);
    check_silence(rig);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    busy.on = false;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, counter_script.limit);
    rig_stop(rig);
    check_no_gap(rig, counter_script.limit);
}

/* The task waits in something. */
static void let_polls_rest(void)
{
    int64_t until_ms = clock_ms() + 30000;
    int before;

    do {
        before = counter_script.polls;
        usleep(500000);
    } while (counter_script.polls != before && clock_ms() < until_ms);
    assert_true(clock_ms() < until_ms);
}

/* A record is bad; its letter waits for its topic, and for the letter all offsets. */
static void a_lease_lost_while_a_letter_is_awaited_ends_sending(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 0;
    counter_script.again_ms = 20;
    counter_script.bad_at = 1000;
    counter_script.slow_poll_ms = 5;
    rig_init(rig, 1, SLOW, "errors.tolerance", "all", "millrace.errors.deadletterqueue.topic.name",
             "dead", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 1);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, -1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    counter_script.limit = INT32_MAX;
    let_polls_rest();
    check_silence(rig);
    rd_kafka_mock_partition_set_leader(rig->cluster, "dead", 0, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    assert_int_equal(rig_topic_end(rig, "dead"), 0);
    counter_script.limit = counter_script.polls * counter_script.per_poll;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, counter_script.limit);
    rig_stop(rig);
    check_no_gap(rig, counter_script.limit);
    assert_int_equal(rig_topic_end(rig, "dead"), 1);
}

static bool committed_is(struct rig *rig, int64_t n)
{
    return counter_script.committed >= n;
}

/* Another may have taken the id over meanwhile, and the offsets on. */
static void in_a_stage_of_a_transaction_the_task_begins_anew(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "worker:exactly.once.source.support", "enabled", "worker:group.id", "g",
             "worker:offset.storage.topic", "offs", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "offs", 1, 1);
    be_busy(rig);
    rig_lose_lease(rig, 100000);
    counter_script.limit = INT32_MAX;
    busy.on = false;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, counter_script.committed + 2);
    assert_int_equal(counter_script.started, 2);
    assert_false(rig_saw(rig, STATE_FAILED));
    rig_stop(rig);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Delivered, and not stored before the lease went. Gives how long the stop took. */
static int64_t stop_with_offsets_left(struct rig *rig)
{
    int64_t took_ms;

    rig_refuse_puts(rig, true);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, topic_has, 300);
    rig_wait_true(rig, asked_to_store, (int64_t)rig_puts(rig) + 2); /* of all that is there */
    rig_lose_lease(rig, 100000);
    rig_refuse_puts(rig, false);
    took_ms = rig_stop(rig);
    assert_false(stored_is(rig, 300));
    return took_ms;
}

/* It would be in vain: a task that is being stopped is given none. A machine that is busy may need
 * more than one try. */
static void a_stop_without_a_lease_waits_for_no_other(void **state)
{
    struct rig *rig = *state;
    int64_t least_ms = INT64_MAX;

    counter_script.limit = 300;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    for (int i = 0; i < 10 && least_ms >= 400; i++) {
        int64_t took_ms = stop_with_offsets_left(rig);

        least_ms = took_ms < least_ms ? took_ms : least_ms;
    }
    assert_in_range(least_ms, 0, 400);
}

static void the_last_offsets_are_stored_when_the_lease_is_back_before_the_stop(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 300;
    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig_refuse_puts(rig, true);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, topic_has, 300);
    rig_wait_true(rig, asked_to_store, (int64_t)rig_puts(rig) + 2);
    rig_lose_lease(rig, 100000);
    rig_refuse_puts(rig, false);
    task_lease_renewed(rig->task);
    rig_stop(rig);
    assert_true(stored_is(rig, 300));
}

/* Some 25 records a request, 100 ms each: all would be there long before the plugin's stop has
 * returned. */
static void a_lease_lost_while_the_task_stops_ends_sending(void **state)
{
    struct rig *rig = *state;

    counter_script.slow_stop_ms = 1500;
    rig_init(rig, 1, "worker:offset.flush.interval.ms", "60000", "producer.override.batch.size",
             "500", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, polls_are, 10);
    task_stop(rig->task);
    usleep(50000);
    task_lease_lost(rig->task, INT64_MAX);
    assert_true(rig_stop(rig) < 2500);
    assert_int_equal(rig_puts(rig), 0);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    assert_in_range(rig_topic_end(rig, "numbers"), 0, 400);
}

static void a_task_that_begins_without_a_lease_waits_for_it(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rig->lease_lost = true;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    usleep(100000);
    assert_int_equal(counter_script.started, 0);
    assert_true(task_lease_quiet(rig->task));
    task_lease_renewed(rig->task);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    assert_true(rig_stop(rig) < 5000);
    assert_int_equal(counter_script.started, 1);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, counter_setup, counter_teardown)
    const struct CMUnitTest tests[] = {
        T(without_a_lease_nothing_is_polled_sent_or_stored),
        T(what_was_under_way_without_a_lease_is_sent_again_in_order),
        T(a_lease_that_comes_and_goes_loses_nothing),
        T(a_lease_lost_with_the_broker_away_makes_quiet_soon),
        T(a_poll_that_outlasts_the_lease_is_waited_for_and_its_records_kept),
        T(a_stop_without_a_lease_sends_and_stores_nothing),
        T(a_stop_without_a_lease_waits_for_no_other),
        T(the_last_offsets_are_stored_when_the_lease_is_back_before_the_stop),
        T(a_lease_lost_between_two_tries_of_a_stage_ends_sending),
        T(a_lease_lost_while_a_letter_is_awaited_ends_sending),
        T(in_a_stage_of_a_transaction_the_task_begins_anew),
        T(a_lease_lost_while_the_task_stops_ends_sending),
        T(a_task_that_begins_without_a_lease_waits_for_it),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
