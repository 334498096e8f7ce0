/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that emits and its group and lease, against librdkafka's mock cluster: of what a task did
 * while it had lost its place or its lease nothing is committed. What it is to read, and where it
 * may write. (test_sink_emit: what goes with what.) */
#include "keep_sink.h"
#include "base/clock.h"
#include "base/log.h"
#include "lease_gap.h"
#include "support/unit/side_by_side.h"
#include "txn_watch.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define TXN_OFFSET_COMMIT 28
#define HEARTBEAT 12
#define DONE 300 /* records of a test */
/* The mock waits for the member that it has forgotten. */
#define SHORT \
    "consumer.override.heartbeat.interval.ms", "300", "consumer.override.session.timeout.ms", "3000"
#define LONG "millrace.commit.interval.ms", "50000"
#define OUT_MS 20000 /* until a member that is thrown out knows it: a bound of a fault */

/* What the plugin does; set by tests. */
static struct {
    atomic_int starts;
    atomic_int calls;
    atomic_int emitted;
    atomic_int first;           /* of these in the first call */
    atomic_bool hold;           /* calls last as long as this is set */
    atomic_bool until_cast_out; /* the next one until its member has no place in the group */
    atomic_bool busy;           /* flush asks for a retry */
} pass;

static struct consumer *consumer; /* the task's newest */
static char isolation[32];        /* that it was made with */
static atomic_int told;           /* lines about isolation.level */
static atomic_int away;           /* lines about a topic that is */
static atomic_int revoked;        /* lines about partitions that were */

struct consumer *__real_consumer_new(const struct props *java, const struct consumer_events *events,
                                     client_conf_warn warn, void *arg, struct mr_error *err);
struct consumer *__wrap_consumer_new(const struct props *java, const struct consumer_events *events,
                                     client_conf_warn warn, void *arg, struct mr_error *err);

struct consumer *__wrap_consumer_new(const struct props *java, const struct consumer_events *events,
                                     client_conf_warn warn, void *arg, struct mr_error *err)
{
    const char *level = props_get(java, "isolation.level");

    snprintf(isolation, sizeof(isolation), "%s", level != NULL ? level : "");
    consumer = __real_consumer_new(java, events, warn, arg, err);
    return consumer;
}

static atomic_int freed; /* producers */

void __real_producer_free(struct producer **p);
void __wrap_producer_free(struct producer **p);

void __wrap_producer_free(struct producer **p)
{
    freed += *p != NULL;
    __real_producer_free(p);
}

static int pass_start(void *self, struct mr_task *task, struct mr_error *err)
{
    pass.starts++;
    return MR_OK;
}

/* Its librdkafka has heard that the group does not know it any more. */
static bool is_cast_out(void)
{
    return consumer_member_id(consumer)[0] == '\0';
}

static int pass_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                      struct mr_error *err)
{
    int64_t until_ms = clock_ms() + OUT_MS;

    for (size_t i = 0; i < mr_batch_count(in); i++)
        mr_emit(out, "out", mr_null(), mr_value(mr_record_at(in, i)));
    pass.emitted += (int)mr_batch_count(in);
    if (pass.calls == 0)
        pass.first = (int)mr_batch_count(in);
    pass.calls++; /* for whoever waits for it, all else of this call is told */
    while (pass.hold && clock_ms() < until_ms)
        usleep(1000);
    while (pass.until_cast_out && !is_cast_out() && clock_ms() < until_ms)
        usleep(1000);
    pass.until_cast_out = false;
    return MR_OK;
}

static int pass_flush(void *self, struct mr_error *err)
{
    return pass.busy ? mr_fail(err, MR_ERR_RETRY, "not just now") : MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static struct plugin pass_plugin = {
    .kind = MR_PLUGIN_SINK,
    .name = "Pass",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .sink = {.start = pass_start, .emits = pass_emits, .flush = pass_flush},
};

static void witness(const char *line, size_t len)
{
    (void)len;
    told += strstr(line, "isolation.level=read_uncommitted gives way to read_committed") != NULL;
    away += strstr(line, "its records wait until it is there") != NULL;
    revoked += strstr(line, "partitions revoked: ") != NULL;
}

static int pass_setup(void **state)
{
    pass.starts = pass.calls = pass.emitted = 0;
    pass.hold = pass.until_cast_out = pass.busy = false;
    told = away = revoked = freed = 0;
    lease_gap_clear();
    log_witness(witness);
    txn_watch_clear();
    return keep_setup(state);
}

static void begin(struct rig *rig)
{
    rd_kafka_mock_topic_create(rig->cluster, "connect-conn-state-in", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rig_write_topic(rig, "in", 1, 0, DONE);
    rig_start(rig, &pass_plugin, TARGET_STARTED);
}

static bool calls_at_least(struct rig *rig, int64_t n)
{
    return pass.calls >= n;
}

static bool emitted_at_least(struct rig *rig, int64_t n)
{
    return pass.emitted >= n;
}

/* --- the group -------------------------------------------------------------------------------- */

/* The first call lasts until the group has thrown its member out. */
static void lose_the_place_in_a_call(struct rig *rig)
{
    pass.hold = pass.until_cast_out = true;
    begin(rig);
    rig_wait_true(rig, calls_at_least, 1);
    rd_kafka_mock_push_request_errors(rig->cluster, HEARTBEAT, 1,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    pass.hold = false;
}

/* The commit is due when the call returns, before anything else is heard of the group: the
 * transaction is asked for offsets by a consumer that has no generation. Brokers let these pass. */
static void offsets_without_a_generation_are_committed_by_nobody(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", SHORT, NULL);
    lose_the_place_in_a_call(rig);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
    assert_int_equal(txn_watch.order[0], 'a');
    assert_true(pass.emitted >= pass.first + DONE); /* read again, with a place in the group */
    assert_int_equal(pass.starts, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

/* Here nothing is due: it hears that its partitions are lost, and gets them again. */
static void what_was_emitted_for_lost_partitions_is_aborted(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", SHORT, LONG, NULL);
    lose_the_place_in_a_call(rig);
    rig_wait_true(rig, emitted_at_least, pass.first + DONE); /* all once more */
    assert_int_equal(txn_watch.order[0], 'a');
    assert_int_equal(txn_watch.commits, 0);
    rig_stop(rig); /* commits the last transaction */
    assert_int_equal(txn_watch.committed[0], DONE);
    assert_int_equal(txn_watch.commits, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static bool revoked_at_least(struct rig *rig, int64_t n)
{
    return revoked >= n;
}

/* Another member comes, and the group takes the partition from the task; when it has gone, that
 * gets it again. */
static void take_the_partition_for_a_while(struct rig *rig)
{
    rd_kafka_t *other = join(rig);

    rig_wait_true(rig, revoked_at_least, 1);
    pass.busy = false;
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
}

/* Whoever gets the partition reads its records again. */
static void what_can_t_be_flushed_as_its_partition_goes_is_aborted(void **state)
{
    struct rig *rig = *state;

    pass.busy = true;
    rig_init(rig, 1, "topics", "in", QUICK, LONG, NULL);
    begin(rig);
    rig_wait_true(rig, emitted_at_least, DONE);
    take_the_partition_for_a_while(rig);
    rig_wait_true(rig, emitted_at_least, 2 * DONE);
    rig_stop(rig);
    assert_string_equal(txn_watch.order, "ac");
    assert_int_equal(txn_watch.committed[0], DONE);
    assert_int_equal(pass.starts, 1);
}

/* --- aborts ----------------------------------------------------------------------------------- */

/* The producer is gone before its partitions go. */
static void an_abort_that_fails_begins_the_task_anew(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    txn_watch.refused = 1;
    rd_kafka_mock_push_request_errors(rig->cluster, TXN_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    begin(rig);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
    assert_int_equal(txn_watch.refused, 0);
    assert_int_equal(pass.starts, 2);
    assert_false(rig_saw(rig, STATE_FAILED));
}

/* --- the lease -------------------------------------------------------------------------------- */

static void without_a_lease_nothing_is_committed_and_then_all_begins_anew(void **state)
{
    struct rig *rig = *state;
    int calls;

    rig_init(rig, 1, "topics", "in", QUICK, LONG, NULL);
    begin(rig);
    rig_wait_true(rig, emitted_at_least, DONE);
    rig_lose_lease(rig, 100000);
    calls = pass.calls;
    rig_write_topic(rig, "in", 1, DONE, DONE);
    assert_int_equal(txn_watch.commits, 0);
    assert_int_equal(pass.calls, calls);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, emitted_at_least, 3 * DONE); /* once more from where the group stands */
    assert_int_equal(pass.starts, 2);
    assert_int_equal(txn_watch.commits, 0);
    assert_false(rig_saw(rig, STATE_UNASSIGNED));
    rig_stop(rig);
    assert_int_equal(txn_watch.committed[0], 2 * DONE);
}

/* The commit is due when the call returns. */
static void a_call_that_outlasts_the_lease_is_not_committed(void **state)
{
    struct rig *rig = *state;

    pass.hold = true;
    rig_init(rig, 1, "topics", "in", QUICK, "millrace.commit.interval.ms", "1", NULL);
    begin(rig);
    rig_wait_true(rig, calls_at_least, 1);
    task_lease_lost(rig->task, INT64_MAX);
    assert_false(task_lease_quiet(rig->task));
    pass.hold = false;
    rig_lose_lease(rig, 100000);
    assert_int_equal(pass.calls, 1);
    assert_int_equal(txn_watch.commits, 0);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
    assert_int_equal(pass.starts, 2);
}

static bool starts_at_least(struct rig *rig, int64_t n)
{
    return pass.starts >= n;
}

static bool is_revoked(void)
{
    return revoked > 0;
}

/* Between two looks of the loop at its lease. */
static void what_goes_as_the_lease_is_gone_for_a_moment_is_not_committed(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, LONG, NULL);
    lease_gap_arm(rig);
    begin(rig);
    rig_wait_true(rig, emitted_at_least, DONE);
    lease_gap_open(is_revoked, is_revoked);
    take_the_partition_for_a_while(rig);
    rig_wait_true(rig, starts_at_least, 2);
    rig_stop(rig);
    assert_int_equal(txn_watch.commits, 0);
}

static bool freed_at_least(struct rig *rig, int64_t n)
{
    return freed >= n;
}

static void stop_without_a_lease(struct rig *rig, int producers_gone)
{
    rig_init(rig, 1, "topics", "in", QUICK, LONG, NULL);
    begin(rig);
    rig_wait_true(rig, emitted_at_least, DONE);
    rig_lose_lease(rig, 100000);
    rig_wait_true(rig, freed_at_least, producers_gone);
    assert_true(rig_stop(rig) < 4000);
    assert_int_equal(txn_watch.commits, 0);
    assert_int_equal(txn_watch.committed[0], -1);
}

static void a_stop_as_the_lease_goes_commits_nothing(void **state)
{
    stop_without_a_lease(*state, 0);
}

static void a_stop_long_after_that_commits_nothing(void **state)
{
    stop_without_a_lease(*state, 1);
}

/* --- coordinators ----------------------------------------------------------------------------- */

/* A task that has committed, and then the broker goes that coordinates its group, and nothing
 * else. */
static void lose_the_coordinator(struct rig *rig)
{
    static const char *const topics[] = {"in", "out", "connect-conn-state-in"};

    for (size_t i = 0; i < 3; i++) {
        rd_kafka_mock_topic_create(rig->cluster, topics[i], 1, 1);
        rd_kafka_mock_partition_set_leader(rig->cluster, topics[i], 0, 1);
    }
    rd_kafka_mock_coordinator_set(rig->cluster, "transaction", "connect-conn-0", 1);
    rd_kafka_mock_coordinator_set(rig->cluster, "group", GROUP, 2);
    begin(rig);
    rig_wait_true(rig, emitted_at_least, DONE);
    rd_kafka_mock_broker_set_down(rig->cluster, 2);
}

/* So many slices of that were too short in a row. */
static bool is_adding_offsets(struct rig *rig, int64_t n)
{
    return txn_watch.offsets_again >= n;
}

/* Longer than the interval, and than a slice of the wait. */
static void a_coordinator_that_is_away_is_waited_for(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 2, "topics", "in", QUICK, NULL);
    lose_the_coordinator(rig);
    rig_write_topic(rig, "in", 1, DONE, DONE);
    rig_wait_true(rig, is_adding_offsets, 3);
    rd_kafka_mock_broker_set_up(rig->cluster, 2);
    rig_wait_true(rig, txn_committed_is, 2 * DONE);
    rig_stop(rig);
    assert_int_equal(pass.starts, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static void a_stop_does_not_wait_for_it(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 2, "topics", "in", QUICK, LONG, NULL);
    lose_the_coordinator(rig);
    assert_true(rig_stop(rig) < 5000); /* the graceful time */
    assert_int_equal(txn_watch.commits, 0);
}

static void a_lease_that_goes_meanwhile_does_not_wait_for_it(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 2, "topics", "in", QUICK, NULL);
    lose_the_coordinator(rig);
    rig_write_topic(rig, "in", 1, DONE, DONE);
    rig_wait_true(rig, is_adding_offsets, 1);
    rig_lose_lease(rig, 100000);
    rd_kafka_mock_broker_set_up(rig->cluster, 2);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, txn_committed_is, 2 * DONE);
    rig_stop(rig);
    assert_int_equal(pass.starts, 2);
}

/* --- what it reads, and where it writes ------------------------------------------------------- */

#define DIRTY "consumer.override.isolation.level", "read_uncommitted"

static void whoever_emits_reads_what_is_committed(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, DIRTY, NULL);
    begin(rig);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
    assert_string_equal(isolation, "read_committed");
    assert_int_equal(told, 1);
}

static void other_sinks_read_as_they_are_told(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, DIRTY, NULL);
    rig_write_topic(rig, "in", 1, 0, 1);
    rig_start(rig, &keep_plugin, TARGET_STARTED);
    rig_wait_true(rig, accepted_is, 1);
    rig_stop(rig);
    assert_string_equal(isolation, "read_uncommitted");
    assert_int_equal(told, 0);
}

static void know_topic(struct rig *rig, bool known)
{
    rd_kafka_mock_topic_set_error(rig->cluster, "out",
                                  known ? RD_KAFKA_RESP_ERR_NO_ERROR
                                        : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

static bool is_away(struct rig *rig, int64_t n)
{
    return away >= n;
}

/* It has written, and then there is no such topic any more, nor do brokers make it by themselves:
 * what is emitted waits in the producer when that becomes known. */
static void lose_the_topic(struct rig *rig, const char *timeout_ms)
{
    int calls;

    rig_init(rig, 1, "topics", "in", QUICK, "producer.override.metadata.max.age.ms", "1000",
             "producer.override.request.timeout.ms", "1000",
             "producer.override.delivery.timeout.ms", timeout_ms, NULL);
    begin(rig);
    rig_wait_true(rig, txn_committed_is, DONE);
    pass.hold = true;
    calls = pass.calls;
    rig_write_topic(rig, "in", 1, DONE, DONE);
    rig_wait_true(rig, calls_at_least, calls + 1);
    know_topic(rig, false);
    pass.hold = false;
    rig_wait_true(rig, is_away, 1);
}

static void a_topic_that_is_not_there_fails_the_task_and_is_named(void **state)
{
    struct rig *rig = *state;

    lose_the_topic(rig, "3000");
    rig_wait_end(rig);
    if (strstr(rig->trace, "opic out") == NULL)
        fail_msg("%s", rig->trace);
    assert_int_equal(txn_watch.committed[0], DONE);
}

static void a_topic_that_is_away_for_a_while_is_waited_for(void **state)
{
    struct rig *rig = *state;

    lose_the_topic(rig, "60000");
    know_topic(rig, true);
    rig_wait_true(rig, txn_committed_is, 2 * DONE);
    rig_stop(rig);
    assert_int_equal(pass.starts, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, pass_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(offsets_without_a_generation_are_committed_by_nobody), /* the longest begin first */
        T(what_was_emitted_for_lost_partitions_is_aborted),
        T(a_coordinator_that_is_away_is_waited_for),
        T(what_can_t_be_flushed_as_its_partition_goes_is_aborted),
        T(a_lease_that_goes_meanwhile_does_not_wait_for_it),
        T(a_stop_does_not_wait_for_it),
        T(what_goes_as_the_lease_is_gone_for_a_moment_is_not_committed),
        T(a_topic_that_is_away_for_a_while_is_waited_for),
        T(a_topic_that_is_not_there_fails_the_task_and_is_named),
        T(without_a_lease_nothing_is_committed_and_then_all_begins_anew),
        T(a_call_that_outlasts_the_lease_is_not_committed),
        T(a_stop_as_the_lease_goes_commits_nothing),
        T(a_stop_long_after_that_commits_nothing),
        T(an_abort_that_fails_begins_the_task_anew),
        T(whoever_emits_reads_what_is_committed),
        T(other_sinks_read_as_they_are_told),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
