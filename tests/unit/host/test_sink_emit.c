/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that emits, against librdkafka's mock cluster: what goes with what, and what becomes of it
 * when Kafka or the plugin gives a transaction up. The mock shows what was aborted as well; what
 * readers of committed records see is for real brokers (integration/test_topic_to_topic). */
#include "base/log.h"
#include "keep_sink.h"
#include "support/unit/side_by_side.h"
#include "txn_watch.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ADD_OFFSETS_TO_TXN 25
#define TXN_OFFSET_COMMIT 28
#define DEAD "errors.deadletterqueue.topic.name", "dead"
#define ALL "errors.tolerance", "all"
#define DONE 300 /* records of most tests */

/* What the plugin does; set by tests. */
static struct {
    atomic_int starts;
    atomic_int calls;
    atomic_int mixed;   /* calls with records of several partitions */
    atomic_int refuses; /* a record whose value ends so is refused */
    atomic_int fails;   /* a call with such a record fails, behind all its emits */
    atomic_int code;    /* with this */
    atomic_int retries; /* calls that ask for a retry, behind their emits */
    atomic_int bad;     /* a record whose value ends so is emitted as what can't be converted */
    atomic_int each;    /* records that each one gives; their values are the same */
    atomic_int large;   /* bytes of each value; 0: the value as it came */
    atomic_int flushes;
    atomic_int firsts;   /* records 0 */
    atomic_int beside;   /* records of the call that had one, with it */
    atomic_int seek_to;  /* once, behind the call that has record 0; -1 never */
    atomic_bool outside; /* emits are called for in flush */
    const char *topic;
    struct mr_task *task;
    struct mr_emitter *out;
} step;

static int step_start(void *self, struct mr_task *task, struct mr_error *err)
{
    step.starts++;
    step.task = task;
    return MR_OK;
}

static int number(const struct mr_record *rec)
{
    struct mr_value v = mr_value(rec);
    char text[32];

    snprintf(text, sizeof(text), "%.*s", (int)v.len, (const char *)v.u.p);
    return (int)strtol(text, NULL, 10);
}

static bool ends_so(const struct mr_record *rec, int with)
{
    return with >= 0 && number(rec) % 100 == with;
}

static void emit_one(struct mr_emitter *out, const struct mr_record *rec)
{
    char *text;

    if (ends_so(rec, step.bad)) {
        mr_emit(out, step.topic, mr_key(rec), mr_long(1));
    } else if (step.large > 0) {
        text = mr_alloc(out->arena, (size_t)step.large);
        memset(text, 'x', (size_t)step.large);
        mr_emit(out, step.topic, mr_null(), mr_text(text, (size_t)step.large));
    } else {
        mr_emit(out, step.topic, mr_key(rec), mr_value(rec));
    }
}

static int step_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                      struct mr_error *err)
{
    bool broken = false;

    step.calls++;
    step.out = out;
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);

        if (number(rec) == 0) {
            step.firsts++;
            step.beside = (int)mr_batch_count(in);
        }
        step.mixed += rec->partition != mr_record_at(in, 0)->partition;
        broken = broken || ends_so(rec, step.fails);
        if (ends_so(rec, step.refuses))
            mr_reject(in, i, "no %d wanted", step.refuses);
        else
            for (int n = 0; n < step.each; n++)
                emit_one(out, rec);
    }
    if (step.retries > 0) {
        step.retries--;
        return mr_fail(err, MR_ERR_RETRY, "not just now");
    }
    if (step.firsts == 1 && step.seek_to >= 0)
        return mr_sink_seek(step.task, "in", 0, atomic_exchange(&step.seek_to, -1), err);
    return broken ? mr_fail(err, step.code, "it has a %d", step.fails) : MR_OK;
}

static int step_flush(void *self, struct mr_error *err)
{
    step.flushes++;
    if (step.outside)
        mr_emit(step.out, "out", mr_null(), mr_str("late"));
    return MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static struct plugin step_plugin = {
    .kind = MR_PLUGIN_SINK,
    .name = "Step",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .sink = {.start = step_start, .emits = step_emits, .flush = step_flush},
};

static int step_setup(void **state)
{
    step.starts = step.calls = step.mixed = step.retries = step.large = step.flushes = 0;
    step.firsts = 0;
    step.refuses = step.fails = step.bad = step.seek_to = -1;
    step.code = MR_ERR_DATA;
    step.each = 1;
    step.outside = false;
    step.topic = "out";
    txn_watch_clear();
    return keep_setup(state);
}

/* --- what is there afterwards ----------------------------------------------------------------- */

static void assert_values(struct rig *rig, const char *topic, int count, int without)
{
    json_t *values = rig_read_topic(rig, topic, (size_t)count);
    const json_t *value;
    size_t i;
    int next = 0;

    assert_int_equal(json_array_size(values), count);
    json_array_foreach(values, i, value)
    {
        while (next % 100 == without)
            next++;
        assert_int_equal(strtol(json_string_value(value), NULL, 10), next++);
    }
    json_decref(values);
}

/* Two partitions, so the order is that of each. */
static void assert_pairs(struct rig *rig, int count)
{
    json_t *values = rig_read_topic(rig, "out", (size_t)count);
    int next[2] = {0, 1};
    const json_t *value;
    size_t i;

    json_array_foreach(values, i, value)
    {
        int n = (int)strtol(json_string_value(value), NULL, 10);

        assert_int_equal(n, next[n % 2]);
        next[n % 2] += 2;
    }
    assert_int_equal(i, count);
    json_decref(values);
}

/* The mock makes topics that it is asked about, so that of the state is there from the first. */
static void open_rig(struct rig *rig, int partitions)
{
    rd_kafka_mock_topic_create(rig->cluster, "connect-conn-state-in", partitions, 1);
    rd_kafka_mock_topic_create(rig->cluster, "out", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
}

static void run_to_the_end(struct rig *rig)
{
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, DONE);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
}

/* --- tests ------------------------------------------------------------------------------------ */

static bool both_committed(struct rig *rig, int64_t n)
{
    return txn_watch.committed[0] == n && txn_watch.committed[1] == n;
}

static void what_is_emitted_goes_with_the_offsets(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    open_rig(rig, 2);
    rig_write_topic(rig, "in", 2, 0, DONE);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, both_committed, DONE / 2);
    rig_stop(rig);
    assert_pairs(rig, DONE);
    assert_int_equal(step.mixed, 0);
    assert_true(step.flushes > 0);
}

static void records_without_emits_are_committed_too(void **state)
{
    struct rig *rig = *state;

    step.each = 0;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    run_to_the_end(rig);
    assert_int_equal(rig_topic_end(rig, "out"), 0);
}

static void what_a_call_refuses_becomes_a_dead_letter_of_the_transaction(void **state)
{
    static const char *const dead[] = {"7", "107", "207"};
    struct rig *rig = *state;
    json_t *letters;

    step.refuses = 7;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    run_to_the_end(rig);
    assert_values(rig, "out", DONE - 3, 7);
    letters = rig_read_topic(rig, "dead", 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_array_get(letters, i)), dead[i]);
    json_decref(letters);
}

static void of_a_call_that_fails_nothing_stays_down_to_the_guilty_record(void **state)
{
    struct rig *rig = *state;

    step.fails = 33;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    run_to_the_end(rig);
    assert_values(rig, "out", DONE - 3, 33);
    assert_int_equal(rig_topic_end(rig, "dead"), 3);
}

/* It is the record's fault whose emits they are. */
static void what_can_t_be_converted_is_a_failure_of_the_call(void **state)
{
    struct rig *rig = *state;

    step.bad = 33;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    run_to_the_end(rig);
    assert_values(rig, "out", DONE - 3, 33);
    assert_int_equal(rig_topic_end(rig, "dead"), 3);
}

static void without_tolerance_it_fails_the_task_and_names_the_converter(void **state)
{
    struct rig *rig = *state;

    step.bad = 0;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "VALUE_CONVERTER of RigString, a record emitted to topic "
                                       "out: not text"));
    assert_int_equal(rig_topic_end(rig, "out"), 0);
    assert_int_equal(txn_watch.committed[0], -1);
}

static void what_asked_for_a_retry_is_emitted_once(void **state)
{
    struct rig *rig = *state;

    step.retries = 2;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    run_to_the_end(rig);
    assert_values(rig, "out", DONE, -1);
    assert_int_equal(step.starts, 1);
}

static void emits_outside_of_the_call_fail_the_task(void **state)
{
    struct rig *rig = *state;

    step.outside = true;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "Step: mr_emit was called outside of emits"));
    assert_int_equal(txn_watch.committed[0], -1);
}

/* 64 MiB, of which no more stands in memory than the producer takes, and a little. */
static void a_call_may_emit_more_than_memory_holds(void **state)
{
    struct rig *rig = *state;

    step.each = 4096;
    step.large = 1024;
    rig_init(rig, 1, "topics", "in", QUICK, "producer.override.buffer.memory", "1048576", NULL);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 16);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, txn_committed_is, 16);
    rig_stop(rig);
    assert_int_equal(rig_topic_end(rig, "out"), 16 * 4096);
}

/* The record's 20 MiB are with Kafka when the call fails. */
static void a_call_that_spilled_and_failed_is_taken_apart_too(void **state)
{
    struct rig *rig = *state;

    step.each = 20;
    step.large = 1000000;
    step.fails = 1;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, "producer.override.max.request.size",
             "2000000", NULL);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 3);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, txn_committed_is, 3);
    rig_stop(rig);
    assert_int_equal(rig_topic_end(rig, "dead"), 1);
    assert_int_equal(step.starts, 1);
}

/* The guilty one is behind others, which are read again before it each time. */
static void the_guilty_record_of_such_a_call_is_found_behind_others(void **state)
{
    struct rig *rig = *state;

    step.each = 20;
    step.large = 1000000;
    step.fails = 3;
    rig_init(rig, 1, "topics", "in", "consumer.override.fetch.min.bytes", "100", DEAD, ALL,
             "producer.override.max.request.size", "2000000", NULL);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 4);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, txn_committed_is, 4);
    rig_stop(rig);
    assert_int_equal(rig_topic_end(rig, "dead"), 1);
    assert_int_equal(step.starts, 1);
}

static void offsets_that_the_group_refuses_are_read_again(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_push_request_errors(rig->cluster, TXN_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    run_to_the_end(rig);
    assert_true(rig_topic_end(rig, "out") > DONE);
    assert_int_equal(step.starts, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

/* What comes before the seek is not lost with its transaction; and it is not emitted again by
 * whoever goes on after it. How many the first poll brings is the broker's affair. */
static void a_seek_is_a_part_of_the_transaction(void **state)
{
    struct rig *rig = *state;

    step.seek_to = DONE;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "10", NULL);
    run_to_the_end(rig);
    assert_in_range(step.beside, 1, 10);
    assert_int_equal(rig_topic_end(rig, "out"), step.beside);
}

static void a_seek_whose_transaction_is_turned_back_leads_nowhere(void **state)
{
    struct rig *rig = *state;

    step.seek_to = DONE - 10;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "10", NULL);
    rd_kafka_mock_push_request_errors(rig->cluster, TXN_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    run_to_the_end(rig);
    assert_int_equal(step.firsts, 2);
    assert_int_equal(step.starts, 1);
}

static void not_for_ever(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, "worker:millrace.restart.max", "1", NULL);
    for (int i = 0; i < 30; i++)
        rd_kafka_mock_push_request_errors(rig->cluster, TXN_OFFSET_COMMIT, 1,
                                          RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    open_rig(rig, 1);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "2 transactions in a row could not be committed"));
    assert_non_null(strstr(rig->trace, "Group authorization failed"));
    assert_int_equal(txn_watch.committed[0], -1);
}

static void whose_id_was_taken_over_begins_anew(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_push_request_errors(rig->cluster, ADD_OFFSETS_TO_TXN, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH);
    run_to_the_end(rig);
    assert_int_equal(step.starts, 2);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static atomic_int wanted; /* lines that the topic of dead letters is not ready */

static void witness(const char *line, size_t len)
{
    (void)len;
    wanted += strstr(line, "the dead-letter topic dead: not ready yet") != NULL;
}

static bool is_wanted(struct rig *rig, int64_t n)
{
    return wanted >= n;
}

/* What was claimed before is claimed anew. */
static void a_lapse_while_the_topic_of_dead_letters_is_looked_for_fails_no_task(void **state)
{
    struct rig *rig = *state;

    log_witness(witness);
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, ALL, NULL);
    open_rig(rig, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, "dead", RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
    rig_write_topic(rig, "in", 1, 0, DONE);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_true(rig, is_wanted, 1);
    rig_lose_lease(rig, 100000);
    rd_kafka_mock_topic_set_error(rig->cluster, "dead", RD_KAFKA_RESP_ERR_NO_ERROR);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, txn_committed_is, DONE);
    rig_stop(rig);
    assert_int_equal(step.starts, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static void two_kafkas_have_no_transaction(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, "producer.override.bootstrap.servers", "other:9092",
             NULL);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "its producer's other:9092; set both alike"));
    assert_int_equal(step.starts, 0);
}

static void an_interval_that_no_transaction_lasts_is_refused(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, "millrace.commit.interval.ms", "60000", NULL);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "millrace.commit.interval.ms=60000 must be below the "
                                       "producer's transaction.timeout.ms, which is 60000"));
}

static void settings_that_are_no_numbers_are_refused(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, "millrace.state.max.bytes", "much", NULL);
    open_rig(rig, 1);
    rig_start(rig, &step_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "Invalid value much for configuration "
                                       "millrace.state.max.bytes: it must be a whole number"));
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, step_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_emitted_goes_with_the_offsets),
        T(records_without_emits_are_committed_too),
        T(what_a_call_refuses_becomes_a_dead_letter_of_the_transaction),
        T(of_a_call_that_fails_nothing_stays_down_to_the_guilty_record),
        T(what_can_t_be_converted_is_a_failure_of_the_call),
        T(without_tolerance_it_fails_the_task_and_names_the_converter),
        T(what_asked_for_a_retry_is_emitted_once),
        T(emits_outside_of_the_call_fail_the_task),
        T(a_call_may_emit_more_than_memory_holds),
        T(a_call_that_spilled_and_failed_is_taken_apart_too),
        T(the_guilty_record_of_such_a_call_is_found_behind_others),
        T(offsets_that_the_group_refuses_are_read_again),
        T(a_seek_is_a_part_of_the_transaction),
        T(a_seek_whose_transaction_is_turned_back_leads_nowhere),
        T(not_for_ever),
        T(whose_id_was_taken_over_begins_anew),
        T(a_lapse_while_the_topic_of_dead_letters_is_looked_for_fails_no_task),
        T(two_kafkas_have_no_transaction),
        T(settings_that_are_no_numbers_are_refused),
        T(an_interval_that_no_transaction_lasts_is_refused),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
