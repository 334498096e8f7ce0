/* SPDX-License-Identifier: Apache-2.0 */
/* The topic that a sink that emits keeps its state in, where that is not what it was, against
 * librdkafka's mock cluster. (test_state_table: what stands in memory;
 * integration/test_topic_to_topic: what comes back from real brokers.) */
#include "keep_sink.h"

#include "base/clock.h"
#include "kafka/topic_admin.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STATE "connect-conn-state-in"
#define NOTE "state" /* the metadata of an offset that goes with state */

static atomic_int calls;

static int tally_emits(void *self, const struct mr_batch *in, struct mr_emitter *out,
                       struct mr_error *err)
{
    struct mr_value key = mr_str("count");
    int64_t count = mr_state_long(out, key, 0) + (int64_t)mr_batch_count(in);

    calls++;
    mr_state_set(out, key, mr_long(count));
    return MR_OK;
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static const struct plugin tally_plugin = {
    .kind = MR_PLUGIN_SINK,
    .name = "Tally",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .sink = {.emits = tally_emits},
};

/* --- the clock of the task's thread ----------------------------------------------------------- */

/* It insists for half a minute that a topic is there: whenever it is told that there is none, ten
 * seconds of that have passed. The linker has both calls pass through here. */
static _Thread_local int64_t ahead_ms;

int64_t __real_clock_ms(void);
int64_t __wrap_clock_ms(void);
int __real_topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                                  int *count, struct mr_error *err);
int __wrap_topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                                  int *count, struct mr_error *err);

int64_t __wrap_clock_ms(void)
{
    return __real_clock_ms() + ahead_ms;
}

int __wrap_topic_admin_partitions(struct topic_admin *admin, const char *topic, int64_t timeout_ms,
                                  int *count, struct mr_error *err)
{
    int rc = __real_topic_admin_partitions(admin, topic, timeout_ms, count, err);

    ahead_ms += rc == MR_ERR_NOT_FOUND ? 10000 : 0;
    return rc;
}

static int tally_setup(void **state)
{
    calls = 0;
    return keep_setup(state);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void expect_failure(struct rig *rig, const char *text)
{
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &tally_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    if (strstr(rig->trace, text) == NULL)
        fail_msg("%s", rig->trace);
    assert_int_equal(calls, 0);
}

/* A key's records would be here, and its state there. */
static void it_has_as_many_partitions_as_what_is_read(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, STATE, 2, 1);
    expect_failure(rig, "topic in has 1 partitions, and the topic of its state, " STATE
                        ", has 2: these must be as many");
}

/* The group's offset, which says that there is state. */
static void commit_offset(struct rig *rig, const char *note)
{
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *part = rd_kafka_topic_partition_list_add(parts, "in", 0);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rd_kafka_conf_set(conf, "group.id", GROUP, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
    assert_non_null(rk);
    part->offset = 5;
    part->metadata = strdup(note);
    part->metadata_size = strlen(note);
    assert_int_equal(rd_kafka_commit(rk, parts, 0), 0);
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_destroy(rk);
}

/* A broker that has not heard of it is not believed, and in the end all have not: what it kept is
 * not begun anew in silence. */
static void without_it_nothing_goes_on_where_the_group_has_noted_that_there_is_state(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, STATE, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    commit_offset(rig, NOTE);
    expect_failure(rig, "topic " STATE " is gone, and with it what this connector keeps of in. Put "
                        "it back, or stop the connector, delete its offsets, and begin anew");
}

static bool called(struct rig *rig, int64_t n)
{
    return calls >= n;
}

static void without_such_a_note_there_is_none_yet(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rd_kafka_mock_topic_create(rig->cluster, "in", 1, 1);
    rd_kafka_mock_topic_set_error(rig->cluster, STATE, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    commit_offset(rig, "");
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &tally_plugin, TARGET_STARTED);
    rig_wait_true(rig, called, 1);
    rig_stop(rig);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, tally_setup, keep_teardown)
    const struct CMUnitTest tests[] = {
        T(it_has_as_many_partitions_as_what_is_read),
        T(without_it_nothing_goes_on_where_the_group_has_noted_that_there_is_state),
        T(without_such_a_note_there_is_none_yet),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
