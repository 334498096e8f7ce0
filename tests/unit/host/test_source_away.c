/* SPDX-License-Identifier: Apache-2.0 */
/* A source task whose topic the brokers do not know for a while, against librdkafka's mock cluster:
 * for a broker that is behind, a topic that was just made does not exist. */
#include "counter_source.h"

#include "base/clock.h"
#include "base/log.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#define AGE "producer.override.metadata.max.age.ms", "1000"
#define TIMEOUT \
    "producer.override.delivery.timeout.ms", "3000", "producer.override.request.timeout.ms", "1000"

/* How often the log said that a topic is, or, where the client kept the records, that they wait. */
static atomic_int away;
static atomic_int broken;

static void witness(const char *line, size_t len)
{
    (void)len;
    if (strstr(line, "wait until it is there") != NULL || strstr(line, "records wait;") != NULL)
        away++;
    if (strstr(line, "begins anew") != NULL)
        broken++;
}

static bool is_away(struct rig *rig, int64_t n)
{
    return away >= n;
}

static bool is_broken(struct rig *rig, int64_t n)
{
    return broken >= n;
}

static bool committed_is(struct rig *rig, int64_t n)
{
    return counter_script.committed >= n;
}

static void know_topic(struct rig *rig, const char *topic, bool known)
{
    rd_kafka_mock_topic_set_error(rig->cluster, topic,
                                  known ? RD_KAFKA_RESP_ERR_NO_ERROR
                                        : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

static void set_rtt(struct rig *rig, int ms)
{
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, ms);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 2, ms);
}

static void make_topic(struct rig *rig)
{
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_partition_set_leader(rig->cluster, "numbers", 0, 1);
}

/* The next request finds no leader, so the producer asks for it, and hears that there is no such
 * topic: all that is queued fails. */
static void lose_topic_under_way(struct rig *rig)
{
    know_topic(rig, "numbers", false);
    rd_kafka_mock_partition_set_leader(rig->cluster, "numbers", 0, 2);
}

static void start_many(struct rig *rig, const char *key, const char *value)
{
    counter_script.limit = 20000;
    counter_script.per_poll = 50;
    rig_init(rig, 2, "producer.override.batch.size", "1000", key, value, NULL);
    make_topic(rig);
    set_rtt(rig, 20);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 200);
}

static void what_was_under_way_to_a_topic_that_is_away_is_sent_again_in_order(void **state)
{
    struct rig *rig = *state;

    start_many(rig, NULL, NULL);
    lose_topic_under_way(rig);
    rig_wait_true(rig, is_away, 1);
    know_topic(rig, "numbers", true);
    set_rtt(rig, 0);
    rig_wait_true(rig, stored_is, 20000);
    assert_false(rig_saw(rig, STATE_FAILED));
    rig_stop(rig);
    check_no_gap(rig, 20000);
}

/* The client hears that the topic is away when its partitions rest, since brokers are slow; then it
 * keeps what is under way, and does not ask for the topic by itself. */
static void what_rests_when_its_topic_is_away_is_sent_when_it_is_back(void **state)
{
    struct rig *rig = *state;

    start_many(rig, NULL, NULL);
    set_rtt(rig, 550);
    lose_topic_under_way(rig);
    rig_wait_true(rig, is_away, 1);
    know_topic(rig, "numbers", true);
    set_rtt(rig, 0);
    rig_wait_true(rig, stored_is, 20000);
    assert_false(rig_saw(rig, STATE_FAILED));
    rig_stop(rig);
    check_no_gap(rig, 20000);
}

/* The same where the plugin says which partition: it is there, whatever one broker says. */
static void a_partition_that_was_there_is_waited_for(void **state)
{
    struct rig *rig = *state;

    counter_script.partition = 0;
    start_many(rig, NULL, NULL);
    lose_topic_under_way(rig);
    rig_wait_true(rig, is_away, 1);
    know_topic(rig, "numbers", true);
    set_rtt(rig, 0);
    rig_wait_true(rig, stored_is, 20000);
    rig_stop(rig);
    check_no_gap(rig, 20000);
}

static bool last_is_there(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "numbers-19") == n;
}

/* Each record has a topic of its own; one has no leader, and then it is away: librdkafka lets go of
 * what it holds for that partition without a word of why. */
static void records_of_topics_that_are_there_are_not_sent_again(void **state)
{
    struct rig *rig = *state;
    char topic[32];

    counter_script.many_topics = 1;
    counter_script.limit = counter_script.per_poll = 20;
    rig_init(rig, 1, NULL);
    for (int i = 0; i < 20; i++) {
        snprintf(topic, sizeof(topic), "numbers-%d", i);
        rd_kafka_mock_topic_create(rig->cluster, topic, 1, 1);
    }
    rd_kafka_mock_partition_set_leader(rig->cluster, "numbers-5", 0, -1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, last_is_there, 1);
    know_topic(rig, "numbers-5", false);
    rig_wait_true(rig, is_away, 1);
    rd_kafka_mock_partition_set_leader(rig->cluster, "numbers-5", 0, 1);
    know_topic(rig, "numbers-5", true);
    rig_wait_true(rig, stored_is, 20);
    assert_int_equal(rig_topic_end(rig, "numbers-5"), 1);
    assert_int_equal(rig_topic_end(rig, "numbers-6"), 1);
    assert_int_equal(rig_topic_end(rig, "numbers-19"), 1);
}

/* Nothing is under way; the next record is refused when it is sent. */
static void a_record_for_a_topic_that_is_away_waits(void **state)
{
    struct rig *rig = *state;

    counter_script.per_poll = 1;
    counter_script.slow_poll_ms = 20;
    counter_script.limit = INT32_MAX;
    rig_init(rig, 2, AGE, NULL);
    make_topic(rig);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 3);
    know_topic(rig, "numbers", false);
    rig_wait_true(rig, is_away, 1);
    know_topic(rig, "numbers", true);
    counter_script.limit = counter_script.polls + 20;
    rig_wait_true(rig, stored_is, counter_script.limit);
    assert_false(rig_saw(rig, STATE_FAILED));
    rig_stop(rig);
    check_no_gap(rig, counter_script.limit);
}

static void a_topic_that_stays_away_fails_the_task_after_delivery_timeout(void **state)
{
    struct rig *rig = *state;
    int64_t began_ms;

    counter_script.limit = INT32_MAX;
    counter_script.per_poll = 50;
    rig_init(rig, 2, TIMEOUT, NULL);
    make_topic(rig);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, delivered_some, 200);
    began_ms = clock_ms();
    lose_topic_under_way(rig);
    rig_wait_end(rig);
    assert_true(clock_ms() - began_ms >= 3000);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_FAILED);
    if (strstr(rig->trace, "opic numbers ") == NULL)
        fail_msg("%s", rig->trace);
}

static void a_partition_that_is_not_there_fails_the_task_by_name(void **state)
{
    struct rig *rig = *state;

    counter_script.partition = 7;
    rig_init(rig, 2, NULL);
    make_topic(rig);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "Topic numbers has no partition 7"));
    assert_int_equal(away, 0);
}

static void a_stop_is_not_held_up_by_a_topic_that_is_away(void **state)
{
    struct rig *rig = *state;
    int64_t stored;

    start_many(rig, "worker:task.shutdown.graceful.timeout.ms", "2000");
    counter_script.limit = INT32_MAX;
    lose_topic_under_way(rig);
    rig_wait_true(rig, is_away, 1);
    assert_true(rig_stop(rig) < 4000);
    stored = rig_stored(rig, PART, "next");
    know_topic(rig, "numbers", true);
    set_rtt(rig, 0);
    assert_true((int64_t)check_no_gap(rig, (int)stored) >= stored);
}

static void a_transaction_whose_topic_is_away_is_begun_anew(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = INT32_MAX;
    counter_script.per_poll = 50;
    rig_init(rig, 2, "worker:exactly.once.source.support", "enabled", "worker:group.id", "g",
             "worker:offset.storage.topic", "offs", AGE, NULL);
    make_topic(rig);
    rd_kafka_mock_topic_create(rig->cluster, "offs", 1, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 2);
    lose_topic_under_way(rig);
    rig_wait_true(rig, is_broken, 1);
    know_topic(rig, "numbers", true);
    rig_wait_true(rig, committed_is, counter_script.committed + 10);
    assert_false(rig_saw(rig, STATE_FAILED));
    assert_true(counter_script.started > 1);
    rig_stop(rig);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, counter_setup, counter_teardown)
    const struct CMUnitTest tests[] = {
        T(what_was_under_way_to_a_topic_that_is_away_is_sent_again_in_order),
        T(what_rests_when_its_topic_is_away_is_sent_when_it_is_back),
        T(a_partition_that_was_there_is_waited_for),
        T(records_of_topics_that_are_there_are_not_sent_again),
        T(a_record_for_a_topic_that_is_away_waits),
        T(a_topic_that_stays_away_fails_the_task_after_delivery_timeout),
        T(a_partition_that_is_not_there_fails_the_task_by_name),
        T(a_stop_is_not_held_up_by_a_topic_that_is_away),
        T(a_transaction_whose_topic_is_away_is_begun_anew),
    };

    log_witness(witness);
    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
