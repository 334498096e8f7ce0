/* SPDX-License-Identifier: Apache-2.0 */
/* A source with an offsets topic of its own, against librdkafka's mock cluster: which of the two
 * topics counts, what is written where and when, and what a topic has to be. The mock knows no
 * requests of administrators: those are the test's own. */
#include "counter_source.h"

#include "base/clock.h"
#include "kafka/topic_admin.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define KEY "[\"conn\"," PART "]"

/* --- administrators --------------------------------------------------------------------------- */

static struct {
    rd_kafka_mock_cluster_t *cluster; /* where topics are created */
    int answer;                       /* to create */
    const char *policy;
    char created[256];
    atomic_int asked;
} admin;

int __wrap_topic_admin_create(struct topic_admin *a, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err);
int __wrap_topic_admin_setting(struct topic_admin *a, const char *topic, const char *key,
                               int64_t timeout_ms, char *out, size_t size, struct mr_error *err);

int __wrap_topic_admin_create(struct topic_admin *a, const struct topic_admin_spec *spec,
                              int64_t timeout_ms, struct mr_error *err)
{
    const char *segment = props_get(spec->settings, "segment.bytes");

    admin.asked++;
    snprintf(admin.created, sizeof(admin.created), "%s %d %d %s %s", spec->topic, spec->partitions,
             spec->replication, props_get(spec->settings, "cleanup.policy"),
             segment != NULL ? segment : "-");
    if (admin.answer == MR_OK)
        rd_kafka_mock_topic_create(admin.cluster, spec->topic, 3, 1);
    return admin.answer == MR_OK ? MR_OK : mr_fail(err, admin.answer, "the broker's words");
}

int __wrap_topic_admin_setting(struct topic_admin *a, const char *topic, const char *key,
                               int64_t timeout_ms, char *out, size_t size, struct mr_error *err)
{
    assert_string_equal(key, "cleanup.policy");
    snprintf(out, size, "%s", admin.policy);
    return MR_OK;
}

/* --- fixture ---------------------------------------------------------------------------------- */

#define CLUSTER \
    "worker:group.id", "g", "worker:offset.storage.topic", "all", "offsets.storage.topic", "own"

static void begin(struct rig *rig)
{
    rd_kafka_mock_topic_create(rig->cluster, "numbers", 1, 1);
    admin.cluster = rig->cluster;
    rig_start(rig, &counter_plugin, TARGET_STARTED);
}

static int setup(void **state)
{
    memset(&admin, 0, sizeof(admin));
    admin.policy = "compact";
    return counter_setup(state);
}

/* A record of a life before. */
static void stand_in_own(struct rig *rig, const char *key, const char *value)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rd_kafka_mock_topic_create(rig->cluster, "own", 3, 1);
    admin.answer = MR_ERR_EXISTS;
    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "partitioner", "murmur2_random", why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    assert_non_null(rk);
    assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("own"),
                                       RD_KAFKA_V_KEY(key, strlen(key)),
                                       RD_KAFKA_V_VALUE((void *)(uintptr_t)value, strlen(value)),
                                       RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
                     0);
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_destroy(rk);
}

/* The newest value in the topic. */
static void own_is(struct rig *rig, const char *value)
{
    json_t *values = rig_read_topic(rig, "own", 1);
    size_t count = json_array_size(values);

    assert_true(count > 0);
    assert_string_equal(json_string_value(json_array_get(values, count - 1)), value);
    json_decref(values);
}

static bool committed_some(struct rig *rig, int64_t n)
{
    return counter_script.committed >= n;
}

/* --- which counts ----------------------------------------------------------------------------- */

static void offsets_go_to_the_own_topic_and_then_to_the_worker(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, "worker:offset.storage.partitions", "3",
             "worker:offset.storage.replication.factor", "1", "worker:offset.storage.segment.bytes",
             "1000000", "worker:offset.storage.cleanup.policy", "delete", NULL);
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    own_is(rig, "{\"next\":1000}");
    assert_string_equal(admin.created, "own 3 1 compact 1000000");
    assert_true(counter_script.committed > 0);
}

static void the_own_topic_has_the_first_word(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    stand_in_own(rig, KEY, "{\"next\":950}");
    rig_store(rig, PART, "next", 900);
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    check_topic(rig, 950, 1000);
}

static void what_the_own_topic_does_not_know_the_worker_does(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    stand_in_own(rig, "[\"other\"," PART "]", "{\"next\":950}");
    rig_store(rig, PART, "next", 900);
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    check_topic(rig, 900, 1000);
}

static void a_worker_that_refuses_the_copy_holds_nothing_up(void **state)
{
    struct rig *rig = *state;

    counter_script.again_ms = 20;
    rig_init(rig, 1, CLUSTER, NULL);
    rig_refuse_puts(rig, true);
    begin(rig);
    rig_wait_true(rig, committed_some, 1);
    counter_script.limit = 1200;
    rig_wait_true(rig, committed_some, 2);
    rig_stop(rig);
    assert_int_equal(rig_stored(rig, PART, "next"), -1);
    own_is(rig, "{\"next\":1200}");
}

#define WIDE 400 /* bytes of names */

static bool all_are_copied(struct rig *rig, int64_t n)
{
    char part[WIDE + 16], name[WIDE + 1];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%0*d", WIDE, i);
        snprintf(part, sizeof(part), "{\"name\":\"%s\"}", name);
        if (rig_stored(rig, part, name) != i + 1)
            return false;
    }
    return true;
}

static void offsets_above_buffer_memory_go_in_turns(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = counter_script.per_poll = 500;
    counter_script.name_bytes = WIDE;
    rig_init(rig, 1, CLUSTER, "producer.override.buffer.memory", "32768", NULL);
    begin(rig);
    rig_wait_true(rig, all_are_copied, 500);
    rig_stop(rig);
}

/* Nothing is heard of the worker's Kafka: one copy is under way, and what waits is newer ones. */
static void a_worker_that_does_not_answer_is_asked_once(void **state)
{
    struct rig *rig = *state;

    counter_script.per_poll = 1;
    counter_script.slow_poll_ms = 1;
    rig_init(rig, 1, CLUSTER, "worker:offset.flush.interval.ms", "10", NULL);
    rig->hold_puts = true;
    begin(rig);
    rig_wait_true(rig, committed_some, 5);
    assert_int_equal(rig_puts(rig), 1);
    rig_answer_held(rig);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
}

static void what_waits_to_be_copied_goes_before_the_end(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    counter_script.again_ms = 20;
    rig->hold_puts = true;
    begin(rig);
    rig_wait_true(rig, committed_some, 1);
    counter_script.limit = 1200;
    rig_wait_true(rig, committed_some, 2);
    rig_stop(rig);
    assert_int_equal(rig_puts(rig), 2);
}

static bool has_all(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "numbers") == n;
}

/* The worker's would be ahead of it otherwise. */
static void nothing_is_copied_that_does_not_stand_in_the_own_topic(void **state)
{
    struct rig *rig = *state;

    counter_script.limit = 0;
    counter_script.again_ms = 20;
    rig_init(rig, 1, CLUSTER, NULL);
    begin(rig);
    rig_wait_true(rig, polls_are, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, "own",
                                  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    counter_script.limit = 1000;
    rig_wait_true(rig, has_all, 1000);
    rig_wait_true(rig, polls_are, counter_script.polls + 25); /* five intervals */
    assert_int_equal(rig_puts(rig), 0);
    assert_int_equal(counter_script.committed, 0);
    rd_kafka_mock_topic_set_error(rig->cluster, "own", RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_wait_true(rig, stored_is, 1000);
    own_is(rig, "{\"next\":1000}");
}

/* --- when there is one ------------------------------------------------------------------------ */

static void the_worker_s_topic_by_its_own_name_is_no_second_one(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "worker:group.id", "g", "worker:offset.storage.topic", "all",
             "offsets.storage.topic", " all ", NULL);
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    assert_int_equal(admin.asked, 0);
}

static void a_standalone_worker_knows_no_own_topics(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "offsets.storage.topic", "own", NULL);
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    assert_int_equal(admin.asked, 0);
}

/* --- what it has to be ------------------------------------------------------------------------ */

static void a_topic_that_forgets_fails_the_task(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "own", 3, 1);
    admin.answer = MR_ERR_EXISTS;
    admin.policy = "compact,delete";
    begin(rig);
    rig_wait_end(rig);
    assert_true(rig_saw(rig, STATE_FAILED));
    assert_non_null(strstr(rig->trace, "'offsets.storage.topic' property is required to have "
                                       "'cleanup.policy=compact'"));
    assert_int_equal(counter_script.started, 0);
}

static void who_may_not_create_it_uses_the_one_that_is_there(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    stand_in_own(rig, KEY, "{\"next\":990}");
    admin.answer = MR_ERR_UNSUPPORTED;
    begin(rig);
    rig_wait_true(rig, stored_is, 1000);
    rig_stop(rig);
    check_topic(rig, 990, 1000);
}

static void settings_that_brokers_refuse_fail_the_task(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    admin.answer = MR_ERR_CONFIG;
    begin(rig);
    rig_wait_end(rig);
    assert_non_null(strstr(rig->trace, "create/find topic(s) 'own': the broker's words"));
}

/* It waits for brokers, and is told to stop meanwhile. */
static void a_stop_ends_the_wait_for_the_topic(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, CLUSTER, NULL);
    admin.answer = MR_ERR_RETRY;
    begin(rig);
    for (int64_t until = clock_ms() + 20000; admin.asked < 3 && clock_ms() < until;)
        usleep(1000);
    assert_true(admin.asked >= 3);
    assert_true(rig_stop(rig) < 4000);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static void without_a_lease_nothing_is_written_there(void **state)
{
    struct rig *rig = *state;
    int64_t end;

    counter_script.limit = INT32_MAX;
    counter_script.per_poll = 7;
    rig_init(rig, 1, CLUSTER, NULL);
    begin(rig);
    rig_wait_true(rig, delivered_some, 1000);
    rig_lose_lease(rig, 60000);
    usleep(100000); /* what had left before */
    end = rig_topic_end(rig, "own");
    usleep(300000); /* three intervals */
    assert_int_equal(rig_topic_end(rig, "own"), end);
    task_lease_renewed(rig->task);
    rig_wait_true(rig, delivered_some, rig_stored(rig, PART, "next") + 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, counter_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(offsets_go_to_the_own_topic_and_then_to_the_worker),
        T(the_own_topic_has_the_first_word),
        T(what_the_own_topic_does_not_know_the_worker_does),
        T(a_worker_that_refuses_the_copy_holds_nothing_up),
        T(offsets_above_buffer_memory_go_in_turns),
        T(a_worker_that_does_not_answer_is_asked_once),
        T(what_waits_to_be_copied_goes_before_the_end),
        T(nothing_is_copied_that_does_not_stand_in_the_own_topic),
        T(the_worker_s_topic_by_its_own_name_is_no_second_one),
        T(a_standalone_worker_knows_no_own_topics),
        T(a_topic_that_forgets_fails_the_task),
        T(who_may_not_create_it_uses_the_one_that_is_there),
        T(settings_that_brokers_refuse_fail_the_task),
        T(a_stop_ends_the_wait_for_the_topic),
        T(without_a_lease_nothing_is_written_there),
    };

    return cmocka_run_group_tests_name("own_offsets", tests, NULL, NULL);
}
