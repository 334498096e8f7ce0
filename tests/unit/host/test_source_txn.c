/* SPDX-License-Identifier: Apache-2.0 */
/* A source task in transactions, against librdkafka's mock cluster: what becomes of it when Kafka
 * gives one up. What readers of committed records see is for real brokers
 * (integration/test_exactly_once). */
#include "base/log.h"
#include "counter_source.h"
#include "host/task/send/txn.h"

#include <poll.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define PRODUCE 0
#define ADD_PARTITIONS_TO_TXN 24
#define END_TXN 26

static atomic_int gives_way; /* lines that say so */

static void witness(const char *line, size_t len)
{
    (void)len;
    gives_way += strstr(line, " gives way to ") != NULL;
}

static void start(struct rig *rig)
{
    counter_script.again_ms = 1000;
    rig_init(rig, 1, "worker:exactly.once.source.support", "enabled", "worker:group.id", "g",
             "worker:offset.storage.topic", "offs", "worker:millrace.restart.max", "1", NULL);
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    rd_kafka_mock_topic_create(rig->cluster, "offs", 1, 1);
}

static void refuse_transactions(struct rig *rig, int times)
{
    for (int i = 0; i < times; i++)
        rd_kafka_mock_push_request_errors(rig->cluster, ADD_PARTITIONS_TO_TXN, 1,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
}

static bool committed_is(struct rig *rig, int64_t n)
{
    return counter_script.committed >= n;
}

static void offsets_go_with_their_records(void **state)
{
    struct rig *rig = *state;

    start(rig);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, counter_script.limit / counter_script.per_poll);
    rig_stop(rig);
    check_topic(rig, 0, counter_script.limit);
    assert_true(rig_topic_end(rig, "offs") > 0);
    assert_int_equal(rig_puts(rig), 0);
    assert_int_equal(counter_script.started, 1);
}

/* No record is to blame. */
static void a_transaction_that_kafka_gives_up_is_begun_anew(void **state)
{
    struct rig *rig = *state;

    start(rig);
    refuse_transactions(rig, 1);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
    assert_int_equal(counter_script.started, 2);
    rig_stop(rig);
    assert_true(rig_topic_end(rig, "offs") > 0);
}

/* The broker and the library no longer agree on what was sent: the producer is made anew. */
static void one_whose_end_the_broker_denies_is_begun_anew(void **state)
{
    struct rig *rig = *state;

    start(rig);
    rd_kafka_mock_push_request_errors(rig->cluster, END_TXN, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_TXN_STATE);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
    assert_int_equal(counter_script.started, 2);
    rig_stop(rig);
}

/* A host that slept for longer than its transaction may last finds both over. */
static void records_that_run_out_of_time_begin_it_anew(void **state)
{
    struct rig *rig = *state;

    start(rig);
    props_set(&rig->config, "producer.override.request.timeout.ms", "300");
    props_set(&rig->config, "producer.override.delivery.timeout.ms", "600");
    props_set(&rig->worker, "millrace.restart.max", "20");
    for (int i = 0; i < 8; i++) /* tried again after 100 ms at least */
        rd_kafka_mock_push_request_errors(rig->cluster, PRODUCE, 1,
                                          RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
    assert_true(counter_script.started >= 2);
    rig_stop(rig);
}

/* A setting that nobody wrote is not what is told. */
static void acks_below_all_fail_the_task_in_one_line(void **state)
{
    struct rig *rig = *state;

    start(rig);
    props_set(&rig->config, "producer.override.acks", "1");
    gives_way = 0;
    log_witness(witness);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    log_witness(NULL);
    assert_string_equal(rig->trace, "org.apache.kafka.common.config.ConfigException: "
                                    "producer.override.acks=1: exactly-once needs acks=all");
    assert_int_equal(gives_way, 0);
    assert_int_equal(counter_script.started, 0);
}

/* --- secrets ---------------------------------------------------------------------------------- */

static struct {
    char path[64];    /* of the file that has it */
    char seen[2][64]; /* by the first lives */
} secret;

static void write_secret(const char *text)
{
    FILE *file = fopen(secret.path, "w");

    assert_non_null(file);
    fprintf(file, "secret=%s\nother=followed\n", text);
    fclose(file);
}

/* What it is given, and then the secret is another one. */
static int secret_start(void *self, struct mr_task *task, struct mr_error *err)
{
    if (counter_script.started < 2)
        snprintf(secret.seen[counter_script.started], sizeof(secret.seen[0]), "%s",
                 mr_config_str(task, "secret"));
    write_secret("another");
    return counter_plugin.source.start(self, task, err);
}

/* A reference is followed once: what it stands for may look like another. */
static void each_life_resolves_what_was_configured(void **state)
{
    static struct mr_config_key keys[] = {{.name = "secret", .type = MR_CFG_STRING}, {0}};
    struct rig *rig = *state;
    struct plugin plugin = counter_plugin;
    char text[128];

    plugin.keys = keys;
    plugin.key_count = 1;
    plugin.source.start = secret_start;
    snprintf(secret.path, sizeof(secret.path), "/tmp/test_source_txn.XXXXXX");
    close(mkstemp(secret.path));
    start(rig);
    props_set(&rig->worker, "config.providers", "file");
    props_set(&rig->worker, "config.providers.file.class", "FileConfigProvider");
    snprintf(text, sizeof(text), "${file:%s:other}", secret.path);
    write_secret(text);
    snprintf(text, sizeof(text), "${file:%s:secret}", secret.path);
    props_set(&rig->config, "secret", text);
    refuse_transactions(rig, 1);
    rig_start(rig, &plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    unlink(secret.path);
    snprintf(text, sizeof(text), "${file:%s:other}", secret.path);
    assert_string_equal(secret.seen[0], text);
    assert_string_equal(secret.seen[1], "another");
}

/* --- offsets ---------------------------------------------------------------------------------- */

static void limit_memory(struct rig *rig, const char *bytes, int name_bytes)
{
    start(rig);
    props_set(&rig->config, "producer.override.buffer.memory", bytes);
    counter_script.limit = counter_script.per_poll = 500;
    counter_script.name_bytes = name_bytes;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
}

/* 500 of them are more than the producer takes at a time. */
static void offsets_above_buffer_memory_go_in_turns(void **state)
{
    struct rig *rig = *state;

    limit_memory(rig, "131072", 400);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    assert_true(rig_topic_end(rig, "offs") >= 500);
    assert_int_equal(counter_script.started, 1);
}

static void one_offset_above_it_fails_the_task(void **state)
{
    struct rig *rig = *state;

    limit_memory(rig, "1024", 2000);
    rig_wait_end(rig);
    if (strstr(rig->trace, "is larger than buffer.memory, which is 1024") == NULL)
        fail_msg("%s", rig->trace);
}

/* --- a lease that goes while offsets are under way -------------------------------------------- */

static struct {
    struct rig *rig;     /* NULL: it stays */
    atomic_bool arrived; /* the reports of the offsets, before they are taken back */
} lapse;

int __real_txn_wait(struct txn *t, struct mr_error *err);
int __wrap_txn_wait(struct txn *t, struct mr_error *err);
void __real_sender_again_take_back(struct sender *s);
void __wrap_sender_again_take_back(struct sender *s);

/* The commit is given up, which is told. */
static void renew(const char *line, size_t len)
{
    struct rig *rig = lapse.rig;

    (void)len;
    if (rig == NULL || strstr(line, " host.task.source ") == NULL)
        return;
    lapse.rig = NULL;
    lapse.arrived = true;
    task_lease_renewed(rig->task);
}

int __wrap_txn_wait(struct txn *t, struct mr_error *err)
{
    if (lapse.rig != NULL && !lapse.arrived)
        task_lease_lost(lapse.rig->task, INT64_MAX);
    return __real_txn_wait(t, err);
}

void __wrap_sender_again_take_back(struct sender *s)
{
    struct pollfd reports = {.fd = producer_fd(s->producer), .events = POLLIN};

    if (lapse.rig != NULL)
        lapse.arrived = poll(&reports, 1, 10000) == 1;
    __real_sender_again_take_back(s);
}

static bool lapsed(struct rig *rig, int64_t n)
{
    (void)rig, (void)n;
    return lapse.arrived;
}

static void offsets_delivered_without_the_lease_are_not_taken_for_records(void **state)
{
    struct rig *rig = *state;

    start(rig);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    lapse.arrived = false;
    lapse.rig = rig;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, lapsed, 0);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    lapse.rig = NULL;
    assert_int_equal(counter_script.started, 2);
}

/* --- ends that the plugin wants --------------------------------------------------------------- */

/* The counter, which says where transactions end. */
static struct {
    atomic_int aborts;     /* so many batches, the first ones */
    atomic_int ends_at;    /* behind this record of a batch; -1: behind the last one */
    atomic_bool till_stop; /* polls last until the task is stopped */
} ends;

static int ending_poll(void *self, struct mr_batch *out, struct mr_error *err)
{
    struct pollfd stop = {.fd = mr_stop_fd(counter_script.handle), .events = POLLIN};
    int rc = counter_plugin.source.poll(self, out, err);
    size_t count = mr_batch_count(out);

    while (ends.till_stop && poll(&stop, 1, -1) < 1)
        ;
    if (rc < 0 || count == 0)
        return rc;
    if (ends.aborts > 0 && ends.aborts-- > 0)
        mr_batch_abort(out);
    else if (ends.ends_at < 0)
        mr_batch_commit(out);
    else
        mr_record_commit(mr_record_at(out, (size_t)ends.ends_at));
    return rc;
}

static void start_with_ends(struct rig *rig, struct plugin *plugin)
{
    *plugin = counter_plugin;
    plugin->source.poll = ending_poll;
    plugin->source.boundaries = true;
    start(rig);
    props_set(&rig->config, "transaction.boundary", "connector");
    rd_kafka_mock_push_request_errors(rig->cluster, END_TXN, 1,
                                      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
    rig_start(rig, plugin, TARGET_STARTED);
}

/* Behind it the offsets of what was aborted can't be committed: this producer begins nothing. */
static void an_abort_that_was_sent_twice_is_begun_anew(void **state)
{
    struct rig *rig = *state;
    struct plugin plugin;

    ends.aborts = 1;
    ends.ends_at = -1;
    ends.till_stop = false;
    start_with_ends(rig, &plugin);
    rig_wait_true(rig, committed_is, 1);
    assert_false(rig_saw(rig, STATE_FAILED));
    assert_int_equal(counter_script.started, 2);
    rig_stop(rig);
}

/* The stop has arrived, and behind the boundary the batch has more. */
static void behind_a_commit_that_was_sent_twice_a_stop_sends_nothing(void **state)
{
    struct rig *rig = *state;
    struct plugin plugin;

    ends.aborts = 0;
    ends.ends_at = 49;
    ends.till_stop = true;
    start_with_ends(rig, &plugin);
    rig_wait_true(rig, polls_are, 1);
    rig_stop(rig);
    assert_int_equal(counter_script.committed, 1);
    assert_int_equal(counter_script.stopped, 1);
    assert_int_equal(rig->states[rig->state_count - 1], STATE_UNASSIGNED);
    check_topic(rig, 0, 50);
}

static void not_for_ever(void **state)
{
    struct rig *rig = *state;

    start(rig);
    refuse_transactions(rig, 2);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "A transaction could not be committed 2 times"));
    assert_non_null(strstr(rig->trace, "Topic authorization failed"));
    assert_int_equal(rig_topic_end(rig, "offs"), 0);
}

static pthread_t main_thread;

/* What a task's thread asks for once its plugin was polled is offsets. */
static void *allocate(size_t bytes)
{
    bool of_task = !pthread_equal(pthread_self(), main_thread) && counter_script.polls > 0;

    return of_task ? NULL : malloc(bytes);
}

static void no_memory_for_offsets_fails_the_task_alone(void **state)
{
    struct rig *rig = *state;

    main_thread = pthread_self();
    start(rig);
    json_set_alloc_funcs(allocate, free);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    json_set_alloc_funcs(malloc, free);
    assert_non_null(strstr(rig->trace, "out of memory for source offsets"));
    assert_int_equal(rig_topic_end(rig, "offs"), 0);
}

/* What was to be committed is not: what comes next must not be taken for its end. */
static void a_lapse_that_is_over_at_once_begins_it_anew(void **state)
{
    struct rig *rig = *state;

    start(rig);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 100);
    lapse.arrived = false;
    lapse.rig = rig;
    log_witness(renew);
    rig_start(rig, &counter_plugin, TARGET_STARTED);
    rig_wait_true(rig, lapsed, 0);
    rd_kafka_mock_broker_set_rtt(rig->cluster, 1, 0);
    rig_wait_true(rig, committed_is, 1);
    rig_stop(rig);
    log_witness(NULL);
    assert_int_equal(counter_script.started, 2);
    assert_false(rig_saw(rig, STATE_FAILED));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, counter_setup, counter_teardown)
    const struct CMUnitTest tests[] = {
        T(offsets_go_with_their_records),
        T(a_transaction_that_kafka_gives_up_is_begun_anew),
        T(one_whose_end_the_broker_denies_is_begun_anew),
        T(records_that_run_out_of_time_begin_it_anew),
        T(acks_below_all_fail_the_task_in_one_line),
        T(each_life_resolves_what_was_configured),
        T(offsets_above_buffer_memory_go_in_turns),
        T(one_offset_above_it_fails_the_task),
        T(offsets_delivered_without_the_lease_are_not_taken_for_records),
        T(a_lapse_that_is_over_at_once_begins_it_anew),
        T(an_abort_that_was_sent_twice_is_begun_anew),
        T(behind_a_commit_that_was_sent_twice_a_stop_sends_nothing),
        T(not_for_ever),
        T(no_memory_for_offsets_fails_the_task_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
