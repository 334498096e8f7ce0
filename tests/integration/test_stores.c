/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's stores against a real broker, and hand in hand with the Java worker: it reads what
 * we wrote and we read what it wrote. The store is used as the herder uses it, on a loop that this
 * test turns. */
#include "support/http.h"
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "worker/store/cluster_store.h"
#include "worker/store/internal_topics.h"

#include "base/clock.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READY_MS 60000
#define CALL_MS 40000

/* --- a store, and its loop -------------------------------------------------------------------- */

struct rig {
    const char *group;
    struct loop *loop;
    struct loop_timer tick;
    struct cluster_store *store;
    bool (*until)(struct rig *rig);
    int64_t deadline_ms;
    bool ready;
    int failed; /* code of ready */
    char failure[1024];
    bool done;
    int code; /* of the newest answer */
    char text[1024];
    json_t *entries;
    char lost[256];
    char lost_text[1024];
    int restarts;
    int levels;
    int updates;
    int statuses;
    int answers; /* that are still to come */
};

static void on_ready(void *arg, const struct mr_error *err)
{
    struct rig *rig = arg;

    rig->ready = true;
    rig->failed = err != NULL ? err->code : 0;
    snprintf(rig->failure, sizeof(rig->failure), "%s", err != NULL ? err->text : "");
}

static void on_config(void *arg, const struct config_change *change)
{
    struct rig *rig = arg;

    rig->restarts += change->kind == CONFIG_RESTARTING;
    rig->levels += change->kind == CONFIG_LOGGING;
    rig->updates += change->kind == CONFIG_UPDATED;
}

static void on_status(void *arg, const char *conn, int task)
{
    ((struct rig *)arg)->statuses++;
}

static void on_word(void *arg, const struct word *word)
{
    (void)arg;
    (void)word;
}

static void on_lost(void *arg, const char *topic, const struct mr_error *err)
{
    struct rig *rig = arg;

    snprintf(rig->lost, sizeof(rig->lost), "%s", topic);
    snprintf(rig->lost_text, sizeof(rig->lost_text), "%s", err->text);
}

static void on_done(void *arg, const struct mr_error *err)
{
    struct rig *rig = arg;

    rig->done = true;
    rig->code = err != NULL ? err->code : 0;
    snprintf(rig->text, sizeof(rig->text), "%s", err != NULL ? err->text : "");
}

static void on_entries(void *arg, json_t *entries, const char *error)
{
    struct rig *rig = arg;

    rig->done = true;
    json_decref(rig->entries);
    rig->entries = entries;
    snprintf(rig->text, sizeof(rig->text), "%s", error != NULL ? error : "");
}

static void on_written(void *arg, const char *error)
{
    on_entries(arg, NULL, error);
}

static void on_tick(void *arg)
{
    struct rig *rig = arg;

    if (rig->until(rig) || clock_ms() > rig->deadline_ms)
        loop_stop(rig->loop);
    else
        loop_timer_start(rig->loop, &rig->tick, 2, on_tick, rig);
}

static void turn(struct rig *rig, int ms, bool (*until)(struct rig *rig), const char *what)
{
    rig->until = until;
    rig->deadline_ms = clock_ms() + ms;
    loop_timer_start(rig->loop, &rig->tick, 0, on_tick, rig);
    loop_run(rig->loop);
    if (!until(rig))
        fail_msg("not within %d ms: %s (%s)", ms, what, rig->text);
}
#define turn_until(rig, ms, condition) turn(rig, ms, condition, #condition)

static bool is_ready(struct rig *rig)
{
    return rig->ready;
}

static bool is_done(struct rig *rig)
{
    return rig->done;
}

static bool is_lost(struct rig *rig)
{
    return rig->lost[0] != '\0';
}

static void close_rig(void *arg)
{
    struct rig *rig = arg;

    cluster_store_close(&rig->store, clock_ms() + 5000);
    loop_free(&rig->loop);
    json_decref(rig->entries);
    free(rig);
}

static const char *servers_of(const struct kafka_run *kafka)
{
    return kafka != NULL ? kafka_run_servers_of(kafka) : kafka_run_servers();
}

static struct rig *rig_open(const char *servers, const char *group, const char *more)
{
    static const struct cluster_store_events events = {.ready = on_ready,
                                                       .config = on_config,
                                                       .status = on_status,
                                                       .word = on_word,
                                                       .lost = on_lost};
    struct rig *rig = calloc(1, sizeof(*rig));
    const char *text = scratch_text("bootstrap.servers=%s\n"
                                    "group.id=%s\n"
                                    "config.storage.topic=%s-configs\n"
                                    "offset.storage.topic=%s-offsets\n"
                                    "status.storage.topic=%s-status\n"
                                    "config.storage.replication.factor=1\n"
                                    "offset.storage.replication.factor=1\n"
                                    "status.storage.replication.factor=1\n"
                                    "offset.storage.partitions=5\n%s",
                                    servers, group, group, group, group, more);
    struct cluster_store_options options = {.arg = rig};
    struct props worker;
    struct mr_error err = {0};

    assert_non_null(rig);
    rig->group = group;
    props_init(&worker);
    assert_int_equal(props_parse(&worker, text, strlen(text), "test", NULL), 0);
    rig->loop = loop_new(NULL);
    options.loop = rig->loop;
    options.worker = &worker;
    rig->store = cluster_store_open(&options, &events, &err);
    props_deinit(&worker);
    if (rig->store == NULL)
        fail_msg("%s", err.text);
    scratch_at_end(close_rig, rig);
    return rig;
}

static struct rig *rig_start_with(const char *servers, const char *group, const char *more)
{
    struct rig *rig = rig_open(servers, group, more);

    turn_until(rig, READY_MS, is_ready);
    if (rig->failed != 0)
        fail_msg("%s", rig->failure);
    return rig;
}

static struct rig *rig_start(const char *servers, const char *group)
{
    return rig_start_with(servers, group, "");
}

/* Ends in order now, and not with the test. */
static void rig_stop(struct rig *rig)
{
    cluster_store_close(&rig->store, clock_ms() + 5000);
}

static void await_done(struct rig *rig)
{
    turn_until(rig, CALL_MS, is_done);
    rig->done = false;
}

static void fine(struct rig *rig)
{
    await_done(rig);
    if (rig->text[0] != '\0')
        fail_msg("%s", rig->text);
}

static void refresh(struct rig *rig)
{
    cluster_store_refresh(rig->store, CALL_MS, on_done, rig);
    fine(rig);
}

static const struct config_conn *conn_of(struct rig *rig, const char *name)
{
    return config_state_conn(cluster_store_config(rig->store), name);
}

static struct props props_of(const char *text)
{
    struct props props;

    props_init(&props);
    assert_int_equal(props_parse(&props, text, strlen(text), "test", NULL), 0);
    return props;
}

static void put_connector(struct rig *rig, const char *name, const char *config)
{
    struct props props = props_of(config);

    cluster_store_put_connector(rig->store, name, &props, NULL, on_done, rig);
    props_deinit(&props);
    fine(rig);
}

static void put_tasks(struct rig *rig, const char *name, const char *config, size_t count)
{
    struct props tasks[8];

    for (size_t i = 0; i < count; i++)
        tasks[i] = props_of(scratch_text("%s\ntask.number=%zu\n", config, i));
    cluster_store_put_tasks(rig->store, name, tasks, count, on_done, rig);
    for (size_t i = 0; i < count; i++)
        props_deinit(&tasks[i]);
    fine(rig);
}

static json_t *json_of(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    assert_non_null(value);
    return value;
}

static void put_offset(struct rig *rig, const char *conn, const char *entries)
{
    struct offset_store offsets = cluster_store_offsets(rig->store);
    json_t *body = json_of(entries);

    offsets.put(offsets.self, conn, body, on_written, rig);
    fine(rig);
}

/* As text, members sorted. */
static const char *get_offsets(struct rig *rig, const char *conn, const char *partitions)
{
    struct offset_store offsets = cluster_store_offsets(rig->store);
    json_t *body = json_of(partitions);

    offsets.get(offsets.self, conn, body, on_entries, rig);
    json_decref(body);
    fine(rig);
    return scratch_keep(json_dumps(rig->entries, JSON_SORT_KEYS | JSON_COMPACT));
}

/* Statuses count twice: the newest that the connector or task must have. */
static const char *wanted_conn;
static int wanted_task;
static enum state wanted_state;

static bool has_status(struct rig *rig)
{
    const struct status_state *state = cluster_store_status(rig->store);
    const struct status *status = wanted_task < 0
                                      ? status_state_connector(state, wanted_conn)
                                      : status_state_task(state, wanted_conn, wanted_task);

    return status != NULL && status->state == wanted_state;
}

static void await_status(struct rig *rig, const char *conn, int task, enum state state)
{
    wanted_conn = conn;
    wanted_task = task;
    wanted_state = state;
    turn(rig, CALL_MS, has_status, scratch_text("%s %d is %s", conn, task, state_name(state)));
}

static void put_status(struct rig *rig, const char *conn, int task, enum state state,
                       int generation, bool safe)
{
    struct status status = {.state = state,
                            .generation = generation,
                            .worker_id = (char *)(uintptr_t)rig->group,
                            .version = (char *)(uintptr_t) "1.0"};

    cluster_store_put_status(rig->store, conn, task, &status, safe);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void topics_are_created_compacted_and_found_again(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("made");
    struct rig *rig = rig_start(servers, group);
    struct props java;
    struct topic_admin *admin;
    char policy[64];
    int partitions = 0;

    rig_stop(rig);
    props_init(&java);
    props_set(&java, "bootstrap.servers", servers);
    admin = topic_admin_new(&java, NULL, NULL, NULL);
    assert_int_equal(topic_admin_setting(admin, scratch_text("%s-configs", group), "cleanup.policy",
                                         CALL_MS, policy, sizeof(policy), NULL),
                     0);
    assert_string_equal(policy, "compact");
    assert_int_equal(topic_admin_partitions(admin, scratch_text("%s-configs", group), CALL_MS,
                                            &partitions, NULL),
                     0);
    assert_int_equal(partitions, 1);
    assert_int_equal(topic_admin_partitions(admin, scratch_text("%s-offsets", group), CALL_MS,
                                            &partitions, NULL),
                     0);
    assert_int_equal(partitions, 5);
    topic_admin_free(&admin);
    props_deinit(&java);
    rig = rig_start(servers, group); /* verified this time */
}

static void refused(const char *servers, const char *group, const char *more, const char *text)
{
    struct rig *rig = rig_open(servers, group, more);

    turn_until(rig, READY_MS, is_ready);
    if (rig->failed == 0 || strstr(rig->failure, text) == NULL)
        fail_msg("not \"%s\": %s", text, rig->failure);
    /* what is asked now is answered with that */
    cluster_store_refresh(rig->store, CALL_MS, on_done, rig);
    await_done(rig);
    assert_int_equal(rig->code, rig->failed);
}

static void topics_that_would_lose_records_are_refused_by_name(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("refused");

    topic_create(servers, scratch_text("%s-offsets", group), 5); /* policy: the broker's, delete */
    refused(servers, group, "",
            scratch_text("Topic '%s-offsets' supplied via the 'offset.storage.topic' property is "
                         "required to have 'cleanup.policy=compact' to guarantee consistency and "
                         "durability of source connector offsets, but found the topic currently "
                         "has 'cleanup.policy=delete'.",
                         group));
}

/* A topic that somebody made before us. */
static void create_as(const char *servers, const char *topic, int partitions, const char *policy)
{
    struct topic_admin_spec spec = {topic, partitions, 1, NULL};
    struct props java, settings;
    struct topic_admin *admin;

    props_init(&java);
    props_set(&java, "bootstrap.servers", servers);
    props_init(&settings);
    props_set(&settings, "cleanup.policy", policy);
    spec.settings = &settings;
    admin = topic_admin_new(&java, NULL, NULL, NULL);
    assert_int_equal(topic_admin_create(admin, &spec, CALL_MS, NULL), 0);
    assert_int_equal(topic_admin_create(admin, &spec, CALL_MS, NULL), MR_ERR_EXISTS);
    topic_admin_free(&admin);
    props_deinit(&java);
    props_deinit(&settings);
}

static void a_topic_that_deletes_besides_compacting_is_refused(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("both");

    create_as(servers, scratch_text("%s-status", group), 5, "compact,delete");
    refused(servers, group, "", "'cleanup.policy=compact,delete'");
}

static void a_config_topic_of_two_partitions_is_refused(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("two");

    create_as(servers, scratch_text("%s-configs", group), 2, "compact");
    refused(servers, group, "",
            "required to have a single partition in order to guarantee consistency "
            "of connector configurations, but found 2 partitions.");
}

static void settings_of_a_topic_are_the_brokers_to_judge(void **state)
{
    const char *servers = kafka_run_servers();

    refused(servers, scratch_name("odd"), "status.storage.no.such.setting=1\n", "no.such.setting");
}

static void more_replicas_than_brokers_is_told_in_kafkas_words(void **state)
{
    struct internal_topics topics;
    struct topic_admin *admin;
    struct mr_error err = {0};
    struct props worker = props_of(scratch_text("bootstrap.servers=%s\ngroup.id=g\n"
                                                "config.storage.topic=%s\noffset.storage.topic=o\n"
                                                "status.storage.topic=s\n",
                                                kafka_run_servers(), scratch_name("three")));
    int partitions;

    assert_int_equal(internal_topics_init(&topics, &worker, &err), 0);
    admin = topic_admin_new(&topics.admin, NULL, NULL, &err);
    assert_int_equal(
        internal_topics_ensure(&topics.topics[TOPIC_CONFIG], admin, 1000, &partitions, &err),
        MR_ERR_CONFIG);
    if (strstr(err.text,
               "Unable to replicate the partition 3 time(s): The target replication factor "
               "of 3 cannot be reached because only 1 broker(s) are registered") == NULL)
        fail_msg("%s", err.text);
    topic_admin_free(&admin);
    internal_topics_deinit(&topics);
    props_deinit(&worker);
}

static void what_was_written_is_there_at_the_answer_and_after_a_restart(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("life");
    struct rig *rig = rig_start(servers, group);
    enum target_state paused = TARGET_PAUSED;
    struct config_session_key key = {.key = {1, 2, 3}, .key_len = 3, .algorithm = "HmacSHA256"};
    struct props props = props_of("name=c\nconnector.class=X\n");
    int64_t offset;

    cluster_store_put_connector(rig->store, "c", &props, &paused, on_done, rig);
    props_deinit(&props);
    fine(rig);
    assert_string_equal(props_get(conn_of(rig, "c")->config, "connector.class"), "X");
    assert_int_equal(conn_of(rig, "c")->target, TARGET_PAUSED);
    put_tasks(rig, "c", "task.class=T", 3);
    assert_int_equal(config_state_tasks(conn_of(rig, "c")), 3);
    assert_string_equal(props_get(config_state_task(conn_of(rig, "c"), 2), "task.number"), "2");
    cluster_store_put_target(rig->store, "c", TARGET_STOPPED, on_done, rig);
    fine(rig);
    cluster_store_put_session_key(rig->store, &key, on_done, rig);
    fine(rig);
    assert_int_equal(config_state_session_key(cluster_store_config(rig->store))->key_len, 3);
    for (int count = 0; count < 100; count++) {
        cluster_store_put_task_count(rig->store, "c", count, on_done, rig);
        fine(rig);
        assert_int_equal(conn_of(rig, "c")->task_count_record, count);
    }
    cluster_store_put_restart(rig->store, "c", true, false, on_done, rig);
    fine(rig);
    assert_int_equal(rig->restarts, 1);
    cluster_store_put_logger(rig->store, "a.b", "DEBUG", on_done, rig);
    fine(rig);
    refresh(rig);
    assert_int_equal(rig->levels, 1);
    assert_int_equal(conn_of(rig, "c")->target, TARGET_STOPPED);
    put_connector(rig, "gone", "name=gone\n");
    cluster_store_remove_connector(rig->store, "gone", on_done, rig);
    fine(rig);
    assert_null(conn_of(rig, "gone"));
    offset = config_state_offset(cluster_store_config(rig->store));
    rig_stop(rig);

    rig = rig_start(servers, group);
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), offset);
    assert_int_equal(config_state_count(cluster_store_config(rig->store)), 1);
    assert_int_equal(config_state_tasks(conn_of(rig, "c")), 3);
    assert_int_equal(conn_of(rig, "c")->target, TARGET_STOPPED);
    assert_int_equal(rig->restarts + rig->levels + rig->updates, 0); /* old news are no news */
}

static void read_to_end_sees_what_another_writer_wrote(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("others");
    const char *topic = scratch_text("%s-configs", group);
    struct rig *rig = rig_start(servers, group);

    for (int i = 0; i < 20; i++) {
        const char *name = scratch_text("c%d", i);

        topic_produce(servers, topic, 0, scratch_text("connector-%s", name),
                      "{\"properties\":{\"name\":\"x\"}}");
        refresh(rig);
        assert_non_null(conn_of(rig, name));
    }
    assert_int_equal(rig->updates, 20);
}

/* Rounds and starts of tasks wait for it. */
static void read_to_end_waits_for_no_clock(void **state)
{
    struct rig *rig = rig_start(kafka_run_servers(), scratch_name("quick"));
    int64_t since = scratch_now_ms();

    for (int i = 0; i < 50; i++)
        refresh(rig);
    assert_true(scratch_since(since) < 9000); /* by a tick of 200 ms each: 10000 */
}

static void eighty_odd_records_cost_none_of_the_good_ones(void **state)
{
    static const char *const odd[][2] = {
        {"connector-z", "{nope"},
        {"millrace-thing", "{\"a\":1}"},
        {"commit-c", "{\"tasks\":\"1\"}"},
        {"session-key", "{\"key\":\"***\",\"algorithm\":\"HmacSHA256\",\"creation-timestamp\":1}"},
        {"tasks-fencing-c", "{\"task-count\":1.5}"},
        {"target-state-c", "{\"state\":5}"},
        {"task-c-x", "{\"properties\":{}}"},
        {"", "{\"a\":1}"},
    };
    const char *servers = kafka_run_servers(), *group = scratch_name("eighty");
    struct rig *rig = rig_start(servers, group);
    int64_t before;

    refresh(rig);
    for (int i = 0; i < 80; i++)
        topic_produce(servers, scratch_text("%s-configs", group), 0, odd[i % 8][0], odd[i % 8][1]);
    topic_produce(servers, scratch_text("%s-status", group), 0, "status-nothing", "{");
    topic_produce(servers, scratch_text("%s-offsets", group), 0, "no key of ours", "{}");
    refresh(rig);
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 80);
    topic_produce(servers, scratch_text("%s-configs", group), 0, "connector-z", "{");
    refresh(rig);
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 80);
    put_connector(rig, "good", "name=good\n");
    assert_non_null(conn_of(rig, "good"));
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 82);
    put_offset(rig, "good", "[[{\"p\":1},{\"o\":1}]]");
    assert_string_equal(get_offsets(rig, "good", "[{\"p\":1}]"), "[[{\"p\":1},{\"o\":1}]]");
    before = config_state_offset(cluster_store_config(rig->store));
    rig_stop(rig);
    rig = rig_start(servers, group);
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), before);
    assert_non_null(conn_of(rig, "good"));
}

static void a_configuration_of_five_megabytes(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("big");
    size_t len = (size_t)5 << 20;
    char *big = malloc(len + 1);
    struct rig *rig = rig_start(servers, group);
    struct props props;

    memset(big, 'x', len);
    big[len] = '\0';
    props_init(&props);
    props_set(&props, "query", big);
    cluster_store_put_connector(rig->store, "big", &props, NULL, on_done, rig);
    await_done(rig);
    assert_int_equal(rig->code, MR_ERR_TOO_LARGE);
    assert_non_null(strstr(rig->text, "max.request.size"));
    put_connector(rig, "small", "name=small\n"); /* the next one is not its victim */
    rig_stop(rig);

    group = scratch_name("bigger");
    rig = rig_open(servers, group,
                   "max.request.size=8000000\nconfig.storage.max.message.bytes=8000000\n");
    turn_until(rig, READY_MS, is_ready);
    cluster_store_put_connector(rig->store, "big", &props, NULL, on_done, rig);
    fine(rig);
    assert_true(props_equal(conn_of(rig, "big")->config, &props));
    put_connector(rig, "small", "name=small\n");
    rig_stop(rig);
    rig = rig_start(servers, group); /* whose own limit is Kafka's default */
    assert_true(props_equal(conn_of(rig, "big")->config, &props));
    assert_non_null(conn_of(rig, "small"));
    props_deinit(&props);
    free(big);
}

static void offsets_are_found_as_values_and_removed_wherever_they_stand(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("offsets");
    const char *topic = scratch_text("%s-offsets", group);
    struct rig *rig = rig_start(servers, group);
    struct topic_records records;

    put_offset(rig, "c", "[[{\"b\":1,\"a\":\"x\"},{\"o\":1}],[{\"p\":2},{\"o\":2.0,\"s\":\"t\"}]]");
    assert_string_equal(get_offsets(rig, "c", "[{\"a\":\"x\",\"b\":1},{\"q\":9}]"),
                        "[[{\"a\":\"x\",\"b\":1},{\"o\":1}]]");
    assert_string_equal(get_offsets(rig, "other", "[{\"a\":\"x\",\"b\":1}]"), "[]");
    /* somebody else spells the key in another way, and then in both */
    topic_produce(servers, topic, -1, "[\"c\",{\"b\":1,\"a\":\"x\"}]", "{\"o\":7}");
    assert_string_equal(get_offsets(rig, "c", "[{\"a\":\"x\",\"b\":1}]"),
                        "[[{\"a\":\"x\",\"b\":1},{\"o\":7}]]");
    put_offset(rig, "c", "[[{\"a\":\"x\",\"b\":1},{\"o\":8}]]");
    records = topic_read(servers, topic, 4, CALL_MS);
    assert_int_equal(records.count, 4);
    cluster_store_list_offsets(rig->store, "c", on_entries, rig);
    fine(rig);
    assert_int_equal(json_array_size(rig->entries), 2);
    put_offset(rig, "c", "[[{\"a\":\"x\",\"b\":1},null]]");
    assert_string_equal(get_offsets(rig, "c", "[{\"a\":\"x\",\"b\":1}]"), "[]");
    records = topic_read(servers, topic, 6, CALL_MS);
    assert_int_equal(records.count, 6); /* both spellings were removed */
    rig_stop(rig);
    rig = rig_start(servers, group);
    assert_string_equal(get_offsets(rig, "c", "[{\"a\":\"x\",\"b\":1},{\"p\":2}]"),
                        "[[{\"p\":2},{\"o\":2.0,\"s\":\"t\"}]]");
}

static void on_one_written(void *arg, const char *error)
{
    struct rig *rig = arg;

    assert_null(error);
    assert_null(rig->entries);
    rig->answers--;
}

static void requests_about_one_connector_keep_their_order(void **state)
{
    struct rig *rig = rig_start(kafka_run_servers(), scratch_name("order"));
    struct offset_store offsets = cluster_store_offsets(rig->store);
    json_t *partitions = json_of("[{\"p\":1}]");

    /* none of these waits for the one before */
    for (rig->answers = 0; rig->answers < 100; rig->answers++) {
        json_t *body = json_of(scratch_text("[[{\"p\":1},{\"o\":%d}]]", rig->answers));

        offsets.put(offsets.self, "c", body, on_one_written, rig);
    }
    offsets.get(offsets.self, "c", partitions, on_entries, rig);
    json_decref(partitions);
    fine(rig);
    assert_int_equal(rig->answers, 0);
    assert_string_equal(scratch_keep(json_dumps(rig->entries, JSON_COMPACT)),
                        "[[{\"p\":1},{\"o\":99}]]");
}

static void status_is_written_in_order_and_never_over_a_newer_owners(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("status");
    const char *topic = scratch_text("%s-status", group);
    struct rig *rig = rig_start(servers, group);

    for (int i = 0; i < 50; i++)
        put_status(rig, "c", 0, i % 2 ? STATE_RUNNING : STATE_PAUSED, 1, false);
    await_status(rig, "c", 0, STATE_RUNNING);
    put_status(rig, "c", -1, STATE_RUNNING, 1, false);
    await_status(rig, "c", -1, STATE_RUNNING);
    assert_true(topic_count(servers, topic) < 10);
    /* another worker, a newer generation */
    topic_produce(servers, topic, -1, "status-task-c-0",
                  "{\"state\":\"PAUSED\",\"trace\":null,\"worker_id\":\"other\",\"generation\":9,"
                  "\"version\":null}");
    await_status(rig, "c", 0, STATE_PAUSED);
    put_status(rig, "c", 0, STATE_FAILED, 2, true);
    put_status(rig, "c", 1, STATE_RUNNING, 2, true);
    await_status(rig, "c", 1, STATE_RUNNING);
    assert_int_equal(status_state_task(cluster_store_status(rig->store), "c", 0)->generation, 9);
    cluster_store_put_topic(rig->store, "c", "lines", 0);
    cluster_store_remove_status(rig->store, "c", -1);
    put_status(rig, "last", 0, STATE_UNASSIGNED, 3, false);
    rig_stop(rig); /* what waits is written first */
    rig = rig_start(servers, group);
    await_status(rig, "last", 0, STATE_UNASSIGNED);
    assert_null(status_state_connector(cluster_store_status(rig->store), "c"));
}

/* More than requests may wait. */
static void every_status_is_written_before_the_end(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("flush");
    struct rig *rig = rig_start(servers, group);
    const struct status_state *seen;
    size_t len = 200;
    char *trace = malloc(len + 1);

    memset(trace, 'x', len);
    trace[len] = '\0';
    for (int task = 0; task < 6000; task++)
        cluster_store_put_status(rig->store, "many", task,
                                 &(struct status){.state = STATE_FAILED,
                                                  .generation = 1,
                                                  .worker_id = (char *)(uintptr_t) "me",
                                                  .trace = trace},
                                 false);
    free(trace);
    rig_stop(rig);
    rig = rig_start(servers, group);
    seen = cluster_store_status(rig->store);
    for (int task = 0; task < 6000; task++)
        if (status_state_task(seen, "many", task) == NULL)
            fail_msg("nothing of task %d", task);
}

/* An admin client, its queue, and the answer to what was asked through them. */
static rd_kafka_t *admin_of(const char *servers, rd_kafka_queue_t **queue)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(rk);
    *queue = rd_kafka_queue_new(rk);
    return rk;
}

static void await_answer(rd_kafka_t *rk, rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, CALL_MS);

    assert_non_null(event);
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("%s", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

static void a_topic_that_is_deleted_is_told_and_not_made_anew(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("deleted");
    const char *topic = scratch_text("%s-configs", group);
    struct rig *rig = rig_start(servers, group);

    put_connector(rig, "c", "name=c\n");
    put_offset(rig, "c", "[[{\"p\":1},{\"o\":1}]]");
    topic_delete(servers, topic);
    turn_until(rig, CALL_MS, is_lost);
    assert_string_equal(rig->lost, topic);
    assert_non_null(strstr(rig->lost_text, "deleted"));
    cluster_store_put_target(rig->store, "c", TARGET_PAUSED, on_done, rig);
    await_done(rig);
    assert_int_equal(rig->code, MR_ERR_FATAL);
    assert_non_null(strstr(rig->text, topic));
    assert_non_null(conn_of(rig, "c")); /* memory goes on to answer */
    assert_string_equal(get_offsets(rig, "c", "[{\"p\":1}]"), "[[{\"p\":1},{\"o\":1}]]");
    assert_int_equal(topic_count(servers, topic), 0);
}

/* Whatever the client sees first: no topic, or one that begins again and would forget. */
static void a_topic_that_is_made_anew_without_compaction_is_told(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("anew");
    const char *topic = scratch_text("%s-configs", group);
    struct rig *rig = rig_start(servers, group);

    put_connector(rig, "c", "name=c\n");
    topic_delete(servers, topic);
    topic_create(servers, topic, 1);
    turn_until(rig, CALL_MS, is_lost);
    assert_string_equal(rig->lost, topic);
    assert_non_null(conn_of(rig, "c"));
}

/* As brokers do that create what is asked for. */
static void a_topic_that_is_made_anew_with_fewer_partitions_is_told(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("fewer");
    const char *topic = scratch_text("%s-offsets", group);
    struct rig *rig = rig_start(servers, group);

    put_offset(rig, "c", "[[{\"p\":1},{\"o\":1}]]");
    topic_delete(servers, topic);
    topic_create(servers, topic, 1);
    turn_until(rig, CALL_MS, is_lost);
    assert_string_equal(rig->lost, topic);
    assert_non_null(strstr(rig->lost_text, "has 1 partitions, where it had "));
}

static void acl(const char *servers, const char *principal, rd_kafka_AclOperation_t operation,
                const char *topic)
{
    rd_kafka_queue_t *queue;
    rd_kafka_t *rk = admin_of(servers, &queue);
    char text[256];
    rd_kafka_AclBinding_t *binding = rd_kafka_AclBinding_new(
        RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal, "*",
        operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, text, sizeof(text));

    assert_non_null(binding);
    rd_kafka_CreateAcls(rk, &binding, 1, NULL, queue);
    rd_kafka_AclBinding_destroy(binding);
    await_answer(rk, queue);
}

/* Once a topic has an ACL for somebody, all others have none. */
static void missing_rights_are_named_with_the_topic(void **state)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_EXTRA='authorizer.class.name=org.apache.kafka."
                                              "metadata.authorizer.StandardAuthorizer\n"
                                              "allow.everyone.if.no.acl.found=true'");
    const char *servers = servers_of(kafka);
    struct rig *rig = rig_start(servers, "acl");
    struct props props = props_of("name=c\n");

    put_connector(rig, "first", "name=first\n");
    rig_stop(rig);
    acl(servers, "User:other", RD_KAFKA_ACL_OPERATION_READ, "acl-configs");
    refused(servers, "acl", "",
            "Topic 'acl-configs' (config.storage.topic) may not be used: the worker's principal "
            "needs the ACLs Read, Write and Describe on it");
    acl(servers, "User:ANONYMOUS", RD_KAFKA_ACL_OPERATION_DESCRIBE, "acl-configs");
    refused(servers, "acl", "", "Topic acl-configs may not be read");
    acl(servers, "User:ANONYMOUS", RD_KAFKA_ACL_OPERATION_READ, "acl-configs");
    rig = rig_start(servers,
                    "acl"); /* its policy can't be looked at: taken to be right, as in Java */
    cluster_store_put_connector(rig->store, "c", &props, NULL, on_done, rig);
    props_deinit(&props);
    await_done(rig);
    assert_int_equal(rig->code, MR_ERR_FATAL);
    assert_non_null(strstr(rig->text,
                           "Topic acl-configs may not be written: the worker's principal "
                           "needs the ACL Write on it"));
    acl(servers, "User:ANONYMOUS", RD_KAFKA_ACL_OPERATION_WRITE, "acl-configs");
    for (int tries = 0; rig->code != 0 && tries < 100;
         tries++) { /* and the right is all it takes */
        props = props_of("name=c\n");
        cluster_store_put_connector(rig->store, "c", &props, NULL, on_done, rig);
        props_deinit(&props);
        await_done(rig);
        scratch_pause(rig->code != 0 ? 100 : 0);
    }
    assert_non_null(conn_of(rig, "c"));
}

static void a_store_can_be_closed_at_any_moment(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("closed");
    struct rig *rig = rig_open(servers, group, "");

    cluster_store_refresh(rig->store, CALL_MS, on_done, rig);
    rig_stop(rig); /* while it starts */
    assert_true(rig->done && rig->code == MR_ERR_CLOSED);
    rig = rig_open("127.0.0.1:1", group, "");
    rig_stop(rig); /* nobody there */
    assert_false(rig->ready);
    rig = rig_start(servers, group);
    for (int i = 0; i < 50; i++) {
        struct props props = props_of("a=b\n");

        cluster_store_put_connector(rig->store, scratch_text("c%d", i), &props, NULL, on_done, rig);
        put_status(rig, scratch_text("c%d", i), -1, STATE_RUNNING, 1, false);
        props_deinit(&props);
    }
    rig_stop(rig); /* in the middle of it */
}

static void a_broker_that_comes_back_is_all_it_takes(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    struct rig *rig = rig_start(servers_of(kafka), "back");

    put_connector(rig, "c", "name=c\n");
    kafka_run_do(kafka, "kill 1");
    put_status(rig, "c", -1, STATE_RUNNING, 1, false);
    cluster_store_refresh(rig->store, 1000, on_done, rig);
    await_done(rig);
    assert_int_equal(rig->code, MR_ERR_TIMEOUT);
    kafka_run_do(kafka, "restart 1");
    put_connector(rig, "d", "name=d\n");
    refresh(rig);
    assert_non_null(conn_of(rig, "d"));
    await_status(rig, "c", -1, STATE_RUNNING);
}

static void ask_to_put(struct rig *rig, const char *conn, const char *entries)
{
    struct offset_store offsets = cluster_store_offsets(rig->store);
    json_t *body = json_of(entries);

    offsets.put(offsets.self, conn, body, on_written, rig);
}

/* By then a successor elsewhere may have written its own. */
static void offsets_are_not_written_after_the_lease(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    /* What is not given up is sent for a long time. */
    struct rig *rig = rig_start_with(servers_of(kafka), "lease", "request.timeout.ms=300000\n");
    int64_t from_ms = clock_ms();

    put_offset(rig, "c", "[[{\"p\":1},{\"o\":1}]]");
    kafka_run_do(kafka, "kill 1");
    cluster_store_lease(rig->store, clock_boot_ms() + 1500);
    ask_to_put(rig, "c", "[[{\"p\":1},{\"o\":2}]]"); /* the client has it */
    await_done(rig);
    assert_true(clock_ms() - from_ms < 15000);
    assert_non_null(strstr(rig->text, "not sure to be in its group"));
    ask_to_put(rig, "c", "[[{\"p\":1},{\"o\":3}]]");
    await_done(rig);
    assert_non_null(strstr(rig->text, "not sure to be in its group"));
    kafka_run_do(kafka, "restart 1");
    put_connector(rig, "d", "name=d\n"); /* configuration is nobody's but the leader's */
    assert_string_equal(get_offsets(rig, "c", "[{\"p\":1}]"), "[[{\"p\":1},{\"o\":1}]]");
    cluster_store_lease(rig->store, clock_boot_ms() + 60000);
    put_offset(rig, "c", "[[{\"p\":1},{\"o\":4}]]");
    assert_string_equal(get_offsets(rig, "c", "[{\"p\":1}]"), "[[{\"p\":1},{\"o\":4}]]");
}

/* --- another writer's transactions ------------------------------------------------------------ */

static void must(rd_kafka_error_t *error)
{
    if (error != NULL)
        fail_msg("%s", rd_kafka_error_string(error));
}

static void destroy(void *rk)
{
    rd_kafka_destroy(rk);
}

static rd_kafka_t *transactional(const char *servers, const char *id)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text));
    rd_kafka_conf_set(conf, "transactional.id", id, text, sizeof(text));
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(rk);
    scratch_at_end(destroy, rk);
    must(rd_kafka_init_transactions(rk, CALL_MS));
    return rk;
}

static void write_in(rd_kafka_t *rk, const char *topic, const char *key)
{
    static const char value[] = "{\"properties\":{}}";

    must(rd_kafka_begin_transaction(rk));
    assert_int_equal(rd_kafka_producev(
                         rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                         RD_KAFKA_V_KEY(key, strlen(key)),
                         RD_KAFKA_V_VALUE((void *)(uintptr_t)value, strlen(value)), RD_KAFKA_V_END),
                     0);
    assert_int_equal(rd_kafka_flush(rk, CALL_MS), 0);
}

/* Reading to the end passes markers and aborted records, waits for what is open, and counts
 * neither. */
static void transactions_of_another_writer(void **state)
{
    const char *servers = kafka_run_servers(), *group = scratch_name("transactions");
    const char *topic = scratch_text("%s-configs", group);
    rd_kafka_t *rk;
    struct rig *rig = rig_open(servers, group, "exactly.once.source.support=enabled\n"), *loose;

    turn_until(rig, READY_MS, is_ready);
    rk = transactional(servers, group);
    write_in(rk, topic, "connector-kept");
    must(rd_kafka_commit_transaction(rk, CALL_MS));
    refresh(rig);
    assert_non_null(conn_of(rig, "kept"));
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 1);
    write_in(rk, topic, "connector-dropped");
    must(rd_kafka_abort_transaction(rk, CALL_MS));
    refresh(rig); /* the topic ends in a marker */
    assert_null(conn_of(rig, "dropped"));
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 1);
    write_in(rk, topic, "connector-open");
    cluster_store_refresh(rig->store, 1500, on_done, rig);
    await_done(rig);
    assert_int_equal(rig->code, MR_ERR_TIMEOUT);
    must(rd_kafka_commit_transaction(rk, CALL_MS));
    refresh(rig);
    assert_non_null(conn_of(rig, "open"));
    assert_int_equal(config_state_offset(cluster_store_config(rig->store)), 5);
    loose = rig_start(servers, group); /* without exactly-once nothing is held back, as in Java */
    assert_non_null(conn_of(loose, "dropped"));
    assert_int_equal(config_state_offset(cluster_store_config(loose->store)), 5);
}

/* --- hand in hand with Java ------------------------------------------------------------------- */

static const char *java_start(const struct kafka_run *kafka)
{
    char *output;
    const char *url;

    if (process_shell(
            scratch_text("KAFKA_RUN='%s' CONNECT_EXTRA='exactly.once.source.support=disabled\n"
                         "offset.flush.interval.ms=200' tests/kafka/kafka.sh connect java",
                         scratch_path("kafka")),
            120000, &output) != 0)
        fail_msg("%s", output);
    url = strstr(output, "http://");
    assert_non_null(url);
    return scratch_text("%.*s", (int)strcspn(url, "\n"), url);
}

static void java_put(const char *url, const char *name, const char *body)
{
    struct http_reply reply =
        http_call("PUT", scratch_text("%s/connectors/%s/config", url, name), body);

    for (int i = 0; reply.status == 409 && i < 200; i++) { /* a round is open */
        scratch_pause(50);
        reply = http_call("PUT", scratch_text("%s/connectors/%s/config", url, name), body);
    }
    if (reply.status / 100 != 2)
        fail_msg("%s: %d %s", name, reply.status, reply.body);
}

static const char *java_state(const char *url, const char *name, const char *path)
{
    return http_at(http_get(scratch_text("%s/connectors/%s/status", url, name)).json, path);
}

static const char *java_offset(const char *url, const char *name)
{
    return http_at(http_get(scratch_text("%s/connectors/%s/offsets", url, name)).json,
                   "offsets.0.offset.position");
}

static bool on_entries_or_error(struct rig *rig)
{
    return rig->done;
}

static const char *listed(struct rig *rig, const char *conn)
{
    cluster_store_list_offsets(rig->store, conn, on_entries, rig);
    turn_until(rig, CALL_MS, on_entries_or_error);
    rig->done = false;
    assert_string_equal(rig->text, "");
    return scratch_keep(json_dumps(rig->entries, JSON_SORT_KEYS | JSON_COMPACT));
}

static void java_and_we_take_over_from_each_other(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    const char *url = java_start(kafka), *file = scratch_path("in.txt"), *partition;
    const struct config_conn *conn;
    struct rig *rig;
    enum target_state stopped = TARGET_STOPPED;
    struct props props;

    scratch_write_text(file, "one\ntwo\nthree\n");
    java_put(url, "src",
             scratch_text(
                 "{\"connector.class\":\"FileStreamSource\",\"tasks.max\":\"1\",\"file\":\"%s\","
                 "\"topic\":\"lines\",\"note\":\"\\u00e9\\u4e2d\"}",
                 file));
    java_put(
        url, "snk",
        scratch_text("{\"connector.class\":\"FileStreamSink\",\"tasks.max\":\"2\",\"file\":\"%s\","
                     "\"topics\":\"lines\"}",
                     scratch_path("out.txt")));
    wait_until(CALL_MS, strcmp(java_offset(url, "src"), "14") == 0);
    wait_until(CALL_MS, strcmp(java_state(url, "snk", "tasks.1.state"), "RUNNING") == 0);
    assert_int_equal(http_call("PUT", scratch_text("%s/connectors/snk/pause", url), NULL).status,
                     202);
    wait_until(CALL_MS, strcmp(java_state(url, "snk", "tasks.1.state"), "PAUSED") == 0);
    kafka_run_do(kafka, "end java");

    /* we read exactly that */
    rig = rig_start(servers_of(kafka), "java");
    assert_int_equal(config_state_count(cluster_store_config(rig->store)), 2);
    conn = conn_of(rig, "src");
    assert_string_equal(props_get(conn->config, "note"), "\xc3\xa9\xe4\xb8\xad");
    assert_int_equal(config_state_tasks(conn), 1);
    assert_string_equal(props_get(config_state_task(conn, 0), "file"), file);
    assert_int_equal(conn_of(rig, "snk")->target, TARGET_PAUSED);
    assert_int_equal(config_state_tasks(conn_of(rig, "snk")), 2);
    assert_non_null(config_state_session_key(cluster_store_config(rig->store)));
    partition = scratch_text("{\"filename\":\"%s\"}", file);
    assert_string_equal(listed(rig, "src"), scratch_text("[[%s,{\"position\":14}]]", partition));
    await_status(rig, "snk", 1, STATE_PAUSED);
    await_status(rig, "src", 0, STATE_RUNNING);

    /* and write: the offset goes back, a connector of ours, one is gone, one resumes */
    put_offset(rig, "src", scratch_text("[[%s,{\"position\":4}]]", partition));
    props =
        props_of(scratch_text("name=ours\nconnector.class=FileStreamSource\ntasks.max=1\nfile=%s\n"
                              "topic=ours\n",
                              scratch_path("ours.txt")));
    cluster_store_put_connector(rig->store, "ours", &props, &stopped, on_done, rig);
    props_deinit(&props);
    fine(rig);
    put_offset(
        rig, "ours",
        scratch_text("[[{\"filename\":\"%s\"},{\"position\":77}]]", scratch_path("ours.txt")));
    cluster_store_put_target(rig->store, "snk", TARGET_STARTED, on_done, rig);
    fine(rig);
    put_status(rig, "src", -1, STATE_UNASSIGNED, 100, false);
    rig_stop(rig);

    /* Java goes on from there */
    url = java_start(kafka);
    wait_until(CALL_MS, strcmp(java_state(url, "ours", "connector.state"), "STOPPED") == 0);
    assert_string_equal(java_offset(url, "ours"), "77");
    wait_until(CALL_MS, strcmp(java_state(url, "snk", "tasks.0.state"), "RUNNING") == 0);
    wait_until(CALL_MS, strcmp(java_offset(url, "src"), "14") == 0);
    wait_until(CALL_MS, topic_count(servers_of(kafka), "lines") == 5); /* 3, and the last 2 again */
    kafka_run_do(kafka, "end java");
    rig = rig_start(servers_of(kafka), "java");
    assert_string_equal(listed(rig, "src"), scratch_text("[[%s,{\"position\":14}]]", partition));
    assert_int_equal(conn_of(rig, "ours")->target, TARGET_STOPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(topics_are_created_compacted_and_found_again),
        scratch_test(topics_that_would_lose_records_are_refused_by_name),
        scratch_test(a_topic_that_deletes_besides_compacting_is_refused),
        scratch_test(a_config_topic_of_two_partitions_is_refused),
        scratch_test(settings_of_a_topic_are_the_brokers_to_judge),
        scratch_test(more_replicas_than_brokers_is_told_in_kafkas_words),
        scratch_test(what_was_written_is_there_at_the_answer_and_after_a_restart),
        scratch_test(read_to_end_sees_what_another_writer_wrote),
        scratch_test(read_to_end_waits_for_no_clock),
        scratch_test(eighty_odd_records_cost_none_of_the_good_ones),
        scratch_test(a_configuration_of_five_megabytes),
        scratch_test(offsets_are_found_as_values_and_removed_wherever_they_stand),
        scratch_test(requests_about_one_connector_keep_their_order),
        scratch_test(status_is_written_in_order_and_never_over_a_newer_owners),
        scratch_test(every_status_is_written_before_the_end),
        scratch_test(a_topic_that_is_deleted_is_told_and_not_made_anew),
        scratch_test(a_topic_that_is_made_anew_without_compaction_is_told),
        scratch_test(a_topic_that_is_made_anew_with_fewer_partitions_is_told),
        scratch_test(missing_rights_are_named_with_the_topic),
        scratch_test(a_store_can_be_closed_at_any_moment),
        scratch_test(transactions_of_another_writer),
        scratch_test(a_broker_that_comes_back_is_all_it_takes),
        scratch_test(offsets_are_not_written_after_the_lease),
        scratch_test(java_and_we_take_over_from_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
