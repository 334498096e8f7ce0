/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that store their offsets with their data, against librdkafka's mock cluster. The plugin is
 * a struct of the test: Vault, a target in memory that takes records and offsets together and only
 * if what it has is what the put says; `rob` is another task that was faster. */
#include "base/clock.h"
#include "base/log.h"
#include "keep_sink.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PARTS 2
#define MOST 4096
#define DEAD "errors.deadletterqueue.topic.name", "dead", "errors.tolerance", "all"

/* The target, and what else was seen; under lock. */
static struct {
    pthread_mutex_t lock;
    int64_t stored[PARTS]; /* -1: nothing */
    int got[PARTS][MOST];
    size_t taken;
    size_t opens;
    size_t most;    /* partitions that an open was asked about */
    size_t refused; /* puts whose condition did not hold */
    size_t bare;    /* puts of offsets alone */
    size_t early;   /* puts before open said where it stands */
    bool said;
} vault = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What it does next. */
static struct {
    atomic_int open_retries;
    atomic_int put_retries;
    atomic_int fails; /* on records with this number a put fails with MR_ERR_DATA; 0 none */
    int64_t rob_at;   /* before the put of this offset of partition 0; -1 never */
    int64_t rob_to;
    bool lie; /* open says something of a foreign partition */
} script;

static int on_open(void *self, const struct mr_partition_list *parts, struct mr_error *err)
{
    pthread_mutex_lock(&vault.lock);
    vault.opens++;
    vault.most = parts->count > vault.most ? parts->count : vault.most;
    vault.said = script.open_retries == 0;
    for (size_t i = 0; i < parts->count; i++) {
        struct mr_partition *part = mr_partition_at(parts, i);

        part->stored = vault.stored[part->partition];
        if (script.lie)
            part->partition = 7;
    }
    pthread_mutex_unlock(&vault.lock);
    if (script.open_retries == 0)
        return MR_OK;
    script.open_retries--;
    mr_fail(err, MR_ERR_RETRY, "the vault is locked");
    return mr_retry_after(err, 50);
}

static int number_of(const struct mr_record *rec)
{
    char text[16];

    snprintf(text, sizeof(text), "%.*s", (int)rec->value.len, (const char *)rec->value.u.p);
    return atoi(text);
}

static void rob(const struct mr_record *rec)
{
    if (rec->partition != 0 || script.rob_at < 0 || rec->offset < script.rob_at)
        return;
    script.rob_at = -1;
    for (int64_t o = vault.stored[0]; o < script.rob_to; o++)
        vault.got[0][o] += script.fails == 0 || o % 100 != script.fails; /* its dead letter, too */
    vault.stored[0] = script.rob_to;
}

static bool condition_holds(const struct mr_partition_list *offsets)
{
    for (size_t i = 0; i < offsets->count; i++) {
        const struct mr_partition *part = mr_partition_at(offsets, i);

        if (strcmp(part->topic, "in") != 0 || part->stored != vault.stored[part->partition])
            return false;
    }
    return true;
}

static int take(struct mr_batch *in)
{
    const struct mr_partition_list *offsets = mr_batch_offsets(in);

    if (!condition_holds(offsets))
        return MR_ERR_STALE;
    for (size_t i = 0; i < mr_batch_count(in); i++) {
        const struct mr_record *rec = mr_record_at(in, i);

        vault.got[rec->partition][rec->offset]++;
        vault.taken++;
    }
    for (size_t i = 0; i < offsets->count; i++)
        vault.stored[mr_partition_at(offsets, i)->partition] = mr_partition_at(offsets, i)->offset;
    vault.bare += mr_batch_count(in) == 0;
    return MR_OK;
}

static int on_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    int rc;

    if (script.put_retries > 0 && script.put_retries-- > 0) {
        mr_fail(err, MR_ERR_RETRY, "the vault is busy");
        return mr_retry_after(err, 20);
    }
    for (size_t i = 0; script.fails != 0 && i < mr_batch_count(in); i++)
        if (number_of(mr_record_at(in, i)) % 100 == script.fails)
            return mr_fail(err, MR_ERR_DATA, "it has a %d", script.fails);
    pthread_mutex_lock(&vault.lock);
    for (size_t i = 0; i < mr_batch_count(in); i++)
        rob(mr_record_at(in, i));
    vault.early += !vault.said;
    rc = take(in);
    vault.refused += rc != MR_OK;
    pthread_mutex_unlock(&vault.lock);
    return rc == MR_OK ? rc : mr_fail(err, rc, "another task was there");
}

static int no_flush(void *self, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FATAL, "flush is not for this one");
}

static const char *const aliases[] = {NULL};
static struct mr_config_key keys[] = {{0}};
static const struct plugin vault_plugin = {
    .kind = MR_PLUGIN_SINK,
    .name = "Vault",
    .version = "1.0",
    .library = "test",
    .aliases = aliases,
    .keys = keys,
    .sink = {.put = on_put, .open = on_open, .flush = no_flush, .stores_offsets = ""}};

static atomic_int assigned; /* lines about partitions that were */

static void witness(const char *line, size_t len)
{
    (void)len;
    assigned += strstr(line, "partitions assigned: ") != NULL;
}

static int setup(void **state)
{
    assigned = 0;
    log_witness(witness);
    memset(&script, 0, sizeof(script));
    script.rob_at = -1;
    memset(vault.got, 0, sizeof(vault.got));
    vault.stored[0] = vault.stored[1] = -1;
    vault.taken = vault.opens = vault.most = vault.refused = vault.bare = vault.early = 0;
    *state = calloc(1, sizeof(struct rig));
    return 0;
}

static int teardown(void **state)
{
    rig_deinit(*state);
    free(*state);
    return 0;
}

static bool stored_is(struct rig *rig, int64_t n)
{
    bool is;

    pthread_mutex_lock(&vault.lock);
    is = vault.stored[0] == n;
    pthread_mutex_unlock(&vault.lock);
    return is;
}

static bool both_stored(struct rig *rig, int64_t n)
{
    bool are;

    pthread_mutex_lock(&vault.lock);
    are = vault.stored[0] == n && vault.stored[1] == n;
    pthread_mutex_unlock(&vault.lock);
    return are;
}

static void assert_got(int partition, int from, int to, int times)
{
    for (int i = from; i < to; i++)
        if (vault.got[partition][i] != times)
            fail_msg("in-%d@%d was put %d times, not %d", partition, i, vault.got[partition][i],
                     times);
}

/* rig_write_topic with values of the test's choice. */
static void write_values(struct rig *rig, const char *value, int count)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", rig->bootstrap, why, sizeof(why));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    for (int i = 0; i < count; i++)
        assert_int_equal(
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0),
                              RD_KAFKA_V_VALUE((void *)(uintptr_t)value, strlen(value)),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
            0);
    assert_int_equal(rd_kafka_flush(rk, 10000), 0);
    rd_kafka_destroy(rk);
}

static void reading_goes_on_where_the_plugin_stands_and_the_group_follows(void **state)
{
    struct rig *rig = *state;

    vault.stored[0] = 7;
    rig_init(rig, 1, "topics", "in", "worker:offset.flush.interval.ms", "3600000", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    rig_wait_true(rig, committed_is, 10);
    rig_stop(rig);
    assert_got(0, 0, 7, 0);
    assert_got(0, 7, 10, 1);
}

/* Nothing was ever put here, so the group knows nothing; lag tools should. */
static void the_group_follows_also_where_nothing_more_comes(void **state)
{
    struct rig *rig = *state;

    vault.stored[0] = 10;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 10);
    rig_stop(rig);
    assert_int_equal(vault.taken, 0);
}

static void without_a_stored_offset_the_groups_counts(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    rig_wait_true(rig, committed_is, 10);
    rig_stop(rig);
    vault.stored[0] = -1;
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10); /* where it begins is stored, too, before anything comes */
    rig_write_topic(rig, "in", 1, 10, 10);
    rig_wait_true(rig, stored_is, 20);
    rig_stop(rig);
    assert_got(0, 0, 20, 1);
}

/* Each put's condition is what the put before it has stored. */
static void offsets_follow_on_each_other_put_by_put(void **state)
{
    struct rig *rig = *state;

    script.put_retries = 2;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "50", NULL);
    rig_write_topic(rig, "in", PARTS, 0, 2000);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, both_stored, 1000);
    rig_stop(rig);
    assert_got(0, 0, 1000, 1);
    assert_got(1, 0, 1000, 1);
    assert_int_equal(vault.refused, 0);
}

/* The other task has taken all up to 400, this one was at 299 or before. */
static void a_task_that_was_overtaken_changes_nothing_and_goes_on_behind(void **state)
{
    struct rig *rig = *state;

    script.rob_at = 200;
    script.rob_to = 400;
    rig_init(rig, 1, "topics", "in", QUICK, "consumer.override.max.poll.records", "50", NULL);
    rig_write_topic(rig, "in", PARTS, 0, 2000);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, both_stored, 1000);
    rig_stop(rig);
    assert_got(0, 0, 1000, 1);
    assert_got(1, 0, 1000, 1);
    assert_int_equal(vault.refused, 1);
    assert_int_equal(vault.opens, 2);
    assert_false(rig_saw(rig, STATE_FAILED));
}

static void nothing_is_put_before_the_plugin_has_said_where_it_stands(void **state)
{
    struct rig *rig = *state;

    script.open_retries = 3;
    vault.stored[0] = 5;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    rig_stop(rig);
    assert_int_equal(vault.opens, 4);
    assert_int_equal(vault.early, 0);
    assert_got(0, 0, 5, 0);
    assert_got(0, 5, 10, 1);
}

static bool letters_are(struct rig *rig, int64_t n)
{
    return rig_topic_end(rig, "dead") == n;
}

static void a_guilty_record_is_found_and_all_others_are_put_once(void **state)
{
    struct rig *rig = *state;
    json_t *letters;

    script.fails = 99;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, NULL);
    rig_write_topic(rig, "in", 1, 0, 300);
    rd_kafka_mock_topic_create(rig->cluster, "dead", 1, 1);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, letters_are, 3); /* what is behind the last one is stored at once */
    rig_stop(rig);
    assert_int_equal(vault.stored[0], 300);
    for (int i = 0; i < 300; i++)
        assert_int_equal(vault.got[0][i], i % 100 != 99);
    assert_int_equal(vault.refused, 0);
    rig_start(rig, &vault_plugin, TARGET_STARTED); /* the last letter is not written again */
    rig_write_topic(rig, "in", 1, 300, 1);
    rig_wait_true(rig, stored_is, 301);
    rig_stop(rig);
    letters = rig_read_topic(rig, "dead", 3);
    assert_int_equal(json_array_size(letters), 3);
    json_decref(letters);
}

/* In the middle of the parts another task is faster: what was put of them is not put again. */
static void parts_that_were_put_stay_put_when_a_later_one_is_stale(void **state)
{
    struct rig *rig = *state;

    script.fails = 60;
    script.rob_at = 61;
    script.rob_to = 80;
    rig_init(rig, 1, "topics", "in", QUICK, DEAD, NULL);
    rig_write_topic(rig, "in", 1, 0, 100);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 100);
    rig_stop(rig);
    for (int i = 0; i < 100; i++)
        assert_int_equal(vault.got[0][i], i != 60);
}

/* No converter reads them: offsets are stored without records. */
static void offsets_of_records_that_never_reach_put_are_stored_too(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", "errors.tolerance", "all", "worker:offset.flush.interval.ms",
             "200", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 5);
    write_values(rig, "bad", 20);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 25);
    rig_wait_true(rig, committed_is, 25);
    rig_stop(rig);
    assert_got(0, 0, 5, 1);
}

static void fails_out_of_range(struct rig *rig, const char *text)
{
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_end(rig);
    if (strstr(rig->trace, text) == NULL)
        fail_msg("%s", rig->trace);
    assert_int_equal(vault.taken, 0);
}

static void an_offset_that_the_topic_does_not_have_fails_the_task(void **state)
{
    struct rig *rig = *state;

    vault.stored[0] = 17;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    fails_out_of_range(rig, "Vault has stored offset 17 of partition in-0, of which the topic has "
                            "offsets from 0 up to 10: records are gone, by retention, or with a "
                            "topic that was made anew. Set the connector's offsets by REST while "
                            "it is STOPPED, or set millrace.offsets.out.of.range to earliest or "
                            "latest");
}

/* Under a task that runs: the group's offset would leave out what was lost with it. */
static void an_offset_that_is_gone_fails_the_task(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 10);
    pthread_mutex_lock(&vault.lock);
    vault.stored[0] = -1;
    pthread_mutex_unlock(&vault.lock);
    rig_write_topic(rig, "in", 1, 10, 10);
    rig_wait_end(rig);
    if (strstr(rig->trace, "Vault has no offset any more of partition in-0, where it had stored "
                           "10: what it has written may be lost") == NULL)
        fail_msg("%s", rig->trace);
    assert_int_equal(vault.taken, 10);
}

static void or_goes_on_where_the_user_says_so(void **state)
{
    struct rig *rig = *state;

    rig_init(rig, 1, "topics", "in", "millrace.offsets.out.of.range", "earliest", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, committed_is, 10);
    pthread_mutex_lock(&vault.lock);
    vault.stored[0] = -1;
    pthread_mutex_unlock(&vault.lock);
    rig_write_topic(rig, "in", 1, 10, 10);
    rig_wait_true(rig, stored_is, 20);
    rig_stop(rig);
    assert_got(0, 0, 10, 2);
    assert_got(0, 10, 20, 1);
}

static void where_the_user_says_so_it_goes_on_at_the_beginning(void **state)
{
    struct rig *rig = *state;

    vault.stored[0] = 17;
    rig_init(rig, 1, "topics", "in", QUICK, "millrace.offsets.out.of.range", "earliest", NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    rig_stop(rig);
    assert_got(0, 0, 10, 1);
}

static void or_at_the_end(void **state)
{
    struct rig *rig = *state;

    vault.stored[0] = 17;
    rig_init(rig, 1, "topics", "in", QUICK, "millrace.offsets.out.of.range", "latest", NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, stored_is, 10);
    rig_write_topic(rig, "in", 1, 10, 5);
    rig_wait_true(rig, stored_is, 15);
    rig_stop(rig);
    assert_got(0, 0, 10, 0);
    assert_got(0, 10, 15, 1);
}

static bool assigned_times(struct rig *rig, int64_t n)
{
    return assigned >= n;
}

/* Two partitions, of which a second member has one; the task hears of that without a lease. */
static rd_kafka_t *share_without_a_lease(struct rig *rig)
{
    rd_kafka_t *other;

    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", PARTS, 0, 100);
    rig_start(rig, &vault_plugin, TARGET_STARTED);
    rig_wait_true(rig, both_stored, 50);
    rig_lose_lease(rig, 100000);
    other = join(rig);
    wait_assignment(other, 1);
    rig_wait_true(rig, assigned_times, 2);
    return other;
}

static void go_on_with_a_lease(struct rig *rig)
{
    task_lease_renewed(rig->task);
    rig_write_topic(rig, "in", PARTS, 100, 100);
    rig_wait_true(rig, both_stored, 100);
    rig_stop(rig);
    assert_true(vault.most <= PARTS);
    assert_got(0, 0, 100, 1);
    assert_got(1, 0, 100, 1);
}

static void what_came_twice_without_a_lease_is_opened_once(void **state)
{
    struct rig *rig = *state;
    rd_kafka_t *other = share_without_a_lease(rig);

    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
    rig_wait_true(rig, assigned_times, 3);
    go_on_with_a_lease(rig);
}

/* At the hard end the group is left: what came before is not the task's when the lease is back. */
static void what_came_and_went_without_a_lease_is_not_opened(void **state)
{
    struct rig *rig = *state;
    rd_kafka_t *other = share_without_a_lease(rig);

    rig_lose_lease(rig, 0);
    wait_assignment(other, 2);
    rd_kafka_consumer_close(other);
    rd_kafka_destroy(other);
    go_on_with_a_lease(rig);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct rig *rig = *state;

    script.lie = true;
    rig_init(rig, 1, "topics", "in", QUICK, NULL);
    rig_write_topic(rig, "in", 1, 0, 10);
    fails_out_of_range(rig,
                       "open of Vault said something of a partition that it was not asked for");
    props_set(&rig->config, "millrace.offsets.out.of.range", "newest");
    fails_out_of_range(rig, "Invalid value newest for configuration millrace.offsets.out.of.range: "
                            "it is fail, earliest or latest");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_came_and_went_without_a_lease_is_not_opened), /* the longest begin first */
        T(what_came_twice_without_a_lease_is_opened_once),
        T(reading_goes_on_where_the_plugin_stands_and_the_group_follows),
        T(the_group_follows_also_where_nothing_more_comes),
        T(without_a_stored_offset_the_groups_counts),
        T(offsets_follow_on_each_other_put_by_put),
        T(a_task_that_was_overtaken_changes_nothing_and_goes_on_behind),
        T(nothing_is_put_before_the_plugin_has_said_where_it_stands),
        T(a_guilty_record_is_found_and_all_others_are_put_once),
        T(parts_that_were_put_stay_put_when_a_later_one_is_stale),
        T(offsets_of_records_that_never_reach_put_are_stored_too),
        T(an_offset_that_the_topic_does_not_have_fails_the_task),
        T(an_offset_that_is_gone_fails_the_task),
        T(or_goes_on_where_the_user_says_so),
        T(where_the_user_says_so_it_goes_on_at_the_beginning),
        T(or_at_the_end),
        T(what_makes_no_sense_is_refused),
    };

    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
