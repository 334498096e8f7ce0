/* SPDX-License-Identifier: Apache-2.0 */
/* Sink tasks whose host loses its lease: quiet in their place in the group, out of it after the
 * hard end, and on again, against librdkafka's mock cluster. */
#include "keep_sink.h"

#include "base/clock.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static size_t puts_now(void)
{
    size_t puts;

    pthread_mutex_lock(&keep_seen.lock);
    puts = keep_seen.puts;
    pthread_mutex_unlock(&keep_seen.lock);
    return puts;
}

/* Every number of 0..count-1 at least once, none before those that precede it in its partition. */
static void check_got_all(int count, int partitions)
{
    int highest[8];
    char *save = NULL;

    for (int p = 0; p < partitions; p++)
        highest[p] = p - partitions;
    for (char *word = strtok_r(keep_seen.got, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        int value = (int)strtol(word, NULL, 10);
        int *high = &highest[value % partitions];

        assert_true(value <= *high + partitions);
        *high = value > *high ? value : *high;
    }
    for (int p = 0; p < partitions; p++)
        assert_true(highest[p] >= count - partitions);
}

static void without_a_lease_nothing_is_put_flushed_or_committed(void **state)
{
    struct rig *rig = *state;
    char member[512];
    size_t puts, states;
    int flushes;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 1000);
    rig_wait_true(rig, committed_is, 500);
    snprintf(member, sizeof(member), "%s", rig->box.slots[1].member_id);
    states = rig->state_count;
    rig_lose_lease(rig, 100000);
    puts = puts_now();
    flushes = keep_script.flushes;
    rig_write_topic(rig, "in", 2, 1000, 1000);
    usleep(400000);
    assert_int_equal(puts_now(), puts);
    assert_int_equal(keep_script.flushes, flushes);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), 500);
    assert_true(task_lease_quiet(rig->task));
    task_lease_renewed(rig->task);
    rig_wait_true(rig, accepted_is, 2000);
    rig_wait_true(rig, committed_is, 1000);
    assert_string_equal(rig->box.slots[1].member_id, member); /* it went on in its place */
    assert_int_equal(rig->state_count, states);
    rig_stop(rig);
    check_got(2000, 2);
}

static bool is_in_put(struct rig *rig, int64_t n)
{
    return __atomic_load_n(&rig->box.slots[1].call[0], __ATOMIC_ACQUIRE) == 'p';
}

static void what_was_put_before_the_lease_was_lost_is_committed_after(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 500);
    keep_script.slow_put_ms = 500;
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, is_in_put, 0);
    task_lease_lost(rig->task, INT64_MAX);
    assert_false(task_lease_quiet(rig->task)); /* the call is waited for */
    rig_lose_lease(rig, 100000);
    assert_int_equal(puts_now(), 1);
    usleep(300000);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, 500);
    rig_stop(rig);
    check_got(500, 1);
}

/* Several batches of one poll: those behind the first are read again. */
static void a_poll_that_outlasts_the_lease_is_put_no_further(void **state)
{
    struct rig *rig = *state;

    rig_dense_bytes = 1 << 20;
    keep_script.each_put_ms = 50;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 4, 0, 400);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least, 2);
    rig_lose_lease(rig, 100000);
    assert_in_range(puts_now(), 2, 4);
    usleep(200000);
    assert_in_range(puts_now(), 2, 4);
    keep_script.each_put_ms = 0;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, accepted_is, 400);
    rig_stop(rig);
    check_got(400, 4);
}

static void a_batch_that_waits_to_be_put_again_waits_for_the_lease(void **state)
{
    struct rig *rig = *state;
    size_t puts;

    keep_script.retries = 1000;
    keep_script.retry_after = 20;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 300);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, puts_at_least, 2);
    rig_lose_lease(rig, 100000);
    puts = puts_now();
    usleep(200000);
    assert_int_equal(puts_now(), puts);
    keep_script.retries = 0;
    task_lease_renewed(rig->task);
    rig_wait_true(rig, accepted_is, 300);
    rig_stop(rig);
    check_got(300, 1);
}

/* Another member comes while it is quiet: it gives way without a commit, and leaves all to it at
 * the hard end. */
static void a_quiet_sink_leaves_its_group_at_the_hard_end(void **state)
{
    struct rig *rig = *state;
    rd_kafka_t *other;

    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 1000);
    rig_lose_lease(rig, 1500);
    other = join(rig);
    wait_assignment(other, 2);
    assert_true(task_lease_quiet(rig->task));
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
    assert_string_equal(rig->box.slots[1].member_id, "");
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
    rig_write_topic(rig, "in", 2, 1000, 1000);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, accepted_at_least, 3000); /* from the beginning: nothing was committed */
    assert_false(rig_saw(rig, STATE_UNASSIGNED));
    rig_stop(rig);
    check_got_all(2000, 2);
}

static void a_sink_stopped_without_a_lease_commits_nothing(void **state)
{
    struct rig *rig = *state;
    int flushes;

    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "60000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 100);
    rig_lose_lease(rig, 100000);
    flushes = keep_script.flushes;
    assert_true(rig_stop(rig) < 4000);
    assert_int_equal(keep_script.stopped, 1);
    assert_int_equal(keep_script.flushes, flushes);
    assert_int_equal(rig_committed(rig, GROUP, "in", 0), -1);
}

static bool all_committed(struct rig *rig, int64_t each)
{
    for (int p = 0; p < 3; p++)
        if (rig_committed(rig, GROUP, "in", p) != each)
            return false;
    return true;
}

static void a_sink_whose_lease_comes_and_goes_loses_nothing(void **state)
{
    struct rig *rig = *state;
    unsigned seed = (unsigned)clock_wall_ms();

    print_message("seed %u\n", seed);
    srand(seed);
    keep_script.each_put_ms = 3;
    rig_init(rig, 1, "topics", "in", "consumer.override.max.poll.records", "20", QUICK, NULL);
    rig_write_topic(rig, "in", 3, 0, 6000);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_at_least, 1);
    for (int i = 0; i < 40; i++) {
        usleep((useconds_t)rand() % 20000);
        if (i == 20 || rand() % 2 == 0)
            rig_lose_lease(rig, i == 20 ? 0 : 100000);
        else
            task_lease_lost(rig->task, INT64_MAX); /* renewed before it got around to it */
        usleep((useconds_t)rand() % 3000);
        task_lease_renewed(rig->task);
    }
    rig_wait_true(rig, all_committed, 2000);
    rig_stop(rig);
    check_got_all(6000, 3);
}

#define TRICKLE 4000

/* One record at a time, for a second or so. */
static void *trickle(void *arg)
{
    struct rig *rig = arg;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *producer;
    char text[256];

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, text, sizeof(text));
    rd_kafka_conf_set(conf, "linger.ms", "0", text, sizeof(text));
    producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    for (int i = 0; i < TRICKLE; i++) {
        int len = snprintf(text, sizeof(text), "%d", i);

        rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                          RD_KAFKA_V_VALUE(text, (size_t)len), RD_KAFKA_V_END);
        rd_kafka_poll(producer, 0);
        usleep(100);
    }
    rd_kafka_flush(producer, 10000);
    rd_kafka_destroy(producer);
    return NULL;
}

static void spin(int64_t us)
{
    struct timespec from, now;

    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

/* The task is in its poll most of the time: again and again records come in that very poll, and may
 * be put only when there is a lease again, which may be at once. None is passed by. */
static void what_comes_as_the_lease_goes_is_read_again(void **state)
{
    struct rig *rig = *state;
    pthread_t writer;

    rig_init(rig, 1, "topics", "in", "consumer.override.fetch.max.wait.ms", "1", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    assert_int_equal(pthread_create(&writer, NULL, trickle, rig), 0);
    rig_wait_true(rig, accepted_at_least, 1);
    for (int i = 0; i < 1500; i++) {
        usleep(100);
        task_lease_lost(rig->task, INT64_MAX);
        spin(i % 30 * 10);
        task_lease_renewed(rig->task);
    }
    pthread_join(writer, NULL);
    rig_wait_true(rig, committed_is, TRICKLE);
    rig_stop(rig);
    check_got_all(TRICKLE, 1);
}

/* One time in eight that the task asks for its lease it is told that it has none, though nothing
 * was said of it: as if it were lost and renewed in that moment. The linker has all calls pass
 * through here. */
static atomic_bool lying;
bool __real_task_lease_act(struct task *task);
bool __wrap_task_lease_act(struct task *task);

bool __wrap_task_lease_act(struct task *task)
{
    return (!lying || random() % 8 != 0) && __real_task_lease_act(task);
}

static void a_lease_that_is_gone_for_a_moment_loses_nothing(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", "consumer.override.max.poll.records", "7", QUICK, NULL);
    rig_write_topic(rig, "in", 2, 0, 1000);
    lying = true;
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_at_least, 500);
    lying = false;
    task_lease_renewed(rig->task); /* ends the wait of one that has no lease */
    rig_wait_true(rig, accepted_at_least, 1000);
    rig_wait_true(rig, committed_is, 500);
    rig_stop(rig);
    check_got_all(1000, 2);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, keep_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(a_sink_whose_lease_comes_and_goes_loses_nothing), /* the longest begin first */
        T(what_comes_as_the_lease_goes_is_read_again),
        T(a_lease_that_is_gone_for_a_moment_loses_nothing),
        T(a_quiet_sink_leaves_its_group_at_the_hard_end),
        T(without_a_lease_nothing_is_put_flushed_or_committed),
        T(what_was_put_before_the_lease_was_lost_is_committed_after),
        T(a_poll_that_outlasts_the_lease_is_put_no_further),
        T(a_batch_that_waits_to_be_put_again_waits_for_the_lease),
        T(a_sink_stopped_without_a_lease_commits_nothing),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
