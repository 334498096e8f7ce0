/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's worker and what others put in its way: records that are none in its topics, calls
 * with a wrong signature, a group that is somebody else's. What each part makes of such input is
 * tested by its own; here the whole worker goes on, and says why not. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 60000

static struct worker_run *worker(const char *group)
{
    return worker_run_start(
        &(struct worker_run_options){.group = group, .props = "heartbeat.interval.ms=200\n"});
}

static const char *config_for(const char *topic)
{
    return scratch_text("\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                        "\"topic\": \"%s\"",
                        scratch_path("in"), topic);
}

static rd_kafka_t *client(rd_kafka_type_t type, const char *servers, const char *group)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text));
    if (group != NULL)
        rd_kafka_conf_set(conf, "group.id", group, text, sizeof(text));
    rk = rd_kafka_new(type, conf, text, sizeof(text));
    assert_non_null(rk);
    return rk;
}

/* --- odd records ------------------------------------------------------------------------------ */

static const struct odd {
    const char *key;
    const char *value;
} odd_configs[] =
    {
        {"connector-odd", "no JSON"},
        {"connector-odd", "[]"},
        {"connector-odd", "{\"properties\":7}"},
        {"connector-", "{\"properties\":{}}"},
        {"task-a-x", "{\"properties\":{}}"},
        {"task-a-99999999999", "{\"properties\":{}}"},
        {"commit-a", "{\"tasks\":\"one\"}"},
        {"commit-a", "{\"tasks\":-1}"},
        {"commit-a", "{\"tasks\":0.5}"},
        {"target-state-a", "{\"state.v2\":\"ASLEEP\"}"},
        {"session-key", "{\"key\":\"*\",\"algorithm\":\"HmacSHA256\",\"creation-timestamp\":1}"},
        {"session-key", "{\"key\":null}"},
        {"tasks-fencing-a", "{\"task-count\":\"x\"}"},
        {"restart-connector-a", "{}"},
        {"logger-cluster-", "{\"level\":3}"},
        {"nothing-we-know", "{\"a\":{\"b\":[1,2,null]}}"},
},
  odd_statuses[] =
      {
          {"status-connector-a", "{"},
          {"status-connector-a", "{\"state\":\"WELL\"}"},
          {"status-task-a-", "{\"state\":\"RUNNING\",\"worker_id\":\"x:1\",\"generation\":1}"},
          {"status-task-a-0", "{\"state\":\"RUNNING\",\"worker_id\":7,\"generation\":\"y\"}"},
          {"status-topic-x", "{}"},
          {"stat", "null"},
},
  odd_offsets[] = {
      {"a", "{\"position\":1}"},
      {"[\"a\"]", "{\"position\":1}"},
      {"[\"a\",7]", "{\"position\":1}"},
      {"[\"a\",{\"filename\":\"x\"}]", "{\"position\":"},
      {"[\"a\",{\"filename\":[1]}]", "[]"},
};

#define ODD 80

/* Over and over the same kinds; in every partition. */
static void add_odd(const struct worker_run *w, const char *what, int partitions,
                    const struct odd *odd, size_t kinds)
{
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, w->servers, NULL);

    for (size_t i = 0; i < ODD; i++)
        assert_int_equal(
            rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scratch_text("%s-%s", w->group, what)),
                              RD_KAFKA_V_PARTITION((int32_t)i % partitions),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_KEY(odd[i % kinds].key, strlen(odd[i % kinds].key)),
                              RD_KAFKA_V_VALUE((void *)(uintptr_t)odd[i % kinds].value,
                                               strlen(odd[i % kinds].value)),
                              RD_KAFKA_V_END),
            0);
    assert_int_equal(rd_kafka_flush(rk, WAIT_MS), 0);
    rd_kafka_destroy(rk);
}

#define ADD_ODD(w, what, partitions, list) \
    add_odd(w, what, partitions, list, sizeof(list) / sizeof(*(list)))

/* Lines of the log that name an offset of this topic. */
static int told(const struct worker_run *w, const char *topic)
{
    const char *words = scratch_text("topic %s, partition ", topic);
    const char *at = scratch_read(w->log, NULL);
    int count = 0;

    for (; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

/* Well-formed, and not true. */
static void say_failed(const struct worker_run *w, const char *task)
{
    topic_produce(w->servers, scratch_text("%s-status", w->group), -1,
                  scratch_text("status-task-%s", task),
                  "{\"state\":\"FAILED\",\"trace\":\"none\",\"worker_id\":\"x:1\","
                  "\"generation\":99}");
    wait_until(WAIT_MS, scratch_contains(w->log, "in the status topic FAILED, by x:1: written "
                                                 "again"));
}

/* Each is told once. The connector that was there goes on where it was, one whose records stand
 * behind the odd ones is there too. */
static void odd_records_in_each_topic_cost_nothing(void **state)
{
    const char *topic = scratch_name("lines"), *configs;
    struct worker_run *w = worker(scratch_name("odd"));

    (void)state;
    configs = scratch_text("%s-configs", w->group);
    scratch_write_text(scratch_path("in"), "1\n");
    worker_run_put(w, "a", config_for(topic));
    wait_until(WAIT_MS, topic_count(w->servers, topic) == 1);
    ADD_ODD(w, "configs", 1, odd_configs);
    ADD_ODD(w, "status", 2, odd_statuses);
    ADD_ODD(w, "offsets", 2, odd_offsets);
    topic_produce(w->servers, configs, 0, "connector-b",
                  scratch_text("{\"properties\":{%s,\"name\":\"b\"}}",
                               config_for(scratch_text("%s-b", topic))));
    worker_run_await(w, "b", "RUNNING", 1, WAIT_MS);
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    say_failed(w, "a-0");
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(told(w, configs), ODD);
    assert_int_equal(told(w, scratch_text("%s-status", w->group)), ODD);
    assert_int_equal(told(w, scratch_text("%s-offsets", w->group)), ODD);
    scratch_append_text(scratch_path("in"), "2\n");
    worker_run_again(w);
    worker_run_await(w, "b", "RUNNING", 1, WAIT_MS);
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    wait_until(WAIT_MS, topic_count(w->servers, topic) == 2);
    wait_until(WAIT_MS, topic_count(w->servers, scratch_text("%s-b", topic)) == 2);
    holds_for(300, topic_count(w->servers, topic) == 2);
    worker_run_expect(w, 204, "DELETE", "/connectors/b", NULL);
}

/* --- calls between workers -------------------------------------------------------------------- */

/* POST of an empty set for connector a, with this signature. Gives the status. */
static const char *signed_call(const struct worker_run *w, const char *signature,
                               const char *algorithm)
{
    char *output;
    const char *line =
        scratch_text("curl -s -o /dev/null -w '%%{http_code}' -X POST -d '[]' "
                     "-H 'X-Connect-Authorization: %s' "
                     "-H 'X-Connect-Request-Signature-Algorithm: %s' '%s/connectors/a/tasks'",
                     signature, algorithm, w->url);

    assert_int_equal(process_shell(line, WAIT_MS, &output), 0);
    return output;
}

static const char *session_key(const struct worker_run *w)
{
    struct topic_records records =
        topic_read(w->servers, scratch_text("%s-configs", w->group), 1, WAIT_MS);
    const char *key = "";

    for (size_t i = 0; i < records.count; i++)
        if (strcmp(records.records[i].key, "session-key") == 0)
            key = http_at(json_loads(records.records[i].value, 0, NULL), "key");
    return key;
}

static const char *signature_of(const char *key, const char *body)
{
    char *output;

    assert_int_equal(
        process_shell(
            scratch_text("printf '%s' | openssl dgst -sha256 -mac HMAC -macopt "
                         "hexkey:$(printf '%s' | base64 -d | od -An -v -tx1 | tr -d ' \\n') "
                         "-binary | base64",
                         body, key),
            WAIT_MS, &output),
        0);
    output[strcspn(output, "\n")] = '\0';
    return output;
}

static void a_signature_must_be_the_clusters(void **state)
{
    struct worker_run *w = worker(scratch_name("signed"));
    const char *right, *wrong, *topic = scratch_name("lines");

    (void)state;
    scratch_write_text(scratch_path("in"), "1\n");
    worker_run_put(w, "a", config_for(topic));
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    right = signature_of(session_key(w), "[]");
    wrong = signature_of(session_key(w), "[ ]");
    assert_string_equal(signed_call(w, wrong, "HmacSHA256"), "403");
    assert_string_equal(signed_call(w, "", "HmacSHA256"), "400");
    assert_string_equal(signed_call(w, "%%%", "HmacSHA256"), "400"); /* no base64 */
    assert_string_equal(signed_call(w, right, "HmacMD5"), "400");
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    assert_string_equal(signed_call(w, right, "HmacSHA256"), "204");
    worker_run_await(w, "a", "RUNNING", 0, WAIT_MS); /* what the leader was told counts */
}

/* --- a name that a Java worker takes ---------------------------------------------------------- */

#define LONG_NAME 9000

static const char *long_name(int i)
{
    char *name = malloc(LONG_NAME + 1);

    assert_non_null(name);
    memset(name, 'a' + i, LONG_NAME);
    name[LONG_NAME] = '\0';
    return scratch_keep(name);
}

/* GET of such a connector has no room in a path either. */
static int running_tasks(const struct worker_run *w)
{
    struct http_reply reply = worker_run_call(w, "GET", "/connectors?expand=status", NULL);
    const json_t *of_conn;
    const char *name;
    int running = 0;

    json_object_foreach((json_t *)(uintptr_t)reply.json, name, of_conn)
    {
        const char *state = http_at(of_conn, "status.tasks.0.state");

        running += strlen(name) == LONG_NAME && strcmp(state, "RUNNING") == 0;
    }
    return running;
}

/* Each of the two has one; who leads writes its tasks. */
static void a_name_longer_than_a_path_has_tasks_by_who_leads_alone(void **state)
{
    static const char *const told = "its tasks don't run unless this worker leads";
    const char *group = scratch_name("wordy"), *configs = scratch_text("%s-configs", group);
    struct worker_run *first, *second;

    (void)state;
    scratch_write_text(scratch_path("in"), "1\n");
    first = worker_run_start(&(struct worker_run_options){.name = "first", .group = group});
    second = worker_run_start(&(struct worker_run_options){.name = "second", .group = group});
    for (int i = 0; i < 2; i++)
        topic_produce(first->servers, configs, 0, scratch_text("connector-%s", long_name(i)),
                      scratch_text("{\"properties\":{\"name\":\"%s\",%s}}", long_name(i),
                                   config_for(scratch_name("lines"))));
    wait_until(WAIT_MS, scratch_contains(second->log, told));
    wait_until(WAIT_MS, running_tasks(second) == 1);
    assert_false(scratch_contains(first->log, told));
    worker_run_put(second, "a", config_for(scratch_name("lines")));
    worker_run_await(second, "a", "RUNNING", 1, WAIT_MS);
    assert_int_equal(worker_run_stop(first), 0);
    wait_until(WAIT_MS, running_tasks(second) == 2);
}

/* --- what is taken away, or somebody else's --------------------------------------------------- */

/* Not on a broker that makes topics by use: it would come back, and with another policy. */
static void a_config_topic_deleted_in_the_run_is_named_and_what_runs_goes_on(void **state)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_AUTO_CREATE=false");
    const char *servers = kafka_run_servers_of(kafka), *topic = "lines";
    struct worker_run *w;
    struct http_reply reply;

    (void)state;
    topic_create(servers, topic, 1);
    scratch_write_text(scratch_path("in"), "1\n");
    w = worker_run_start(&(struct worker_run_options){.group = "bereft", .servers = servers});
    worker_run_put(w, "a", config_for(topic));
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    wait_until(WAIT_MS, topic_count(servers, topic) == 1);
    topic_delete(servers, "bereft-configs");
    wait_until(WAIT_MS, scratch_contains(w->log, "bereft-configs is lost"));
    reply = worker_run_call(w, "PUT", "/connectors/a/pause", NULL);
    assert_int_equal(reply.status, 500);
    assert_non_null(strstr(reply.body, "bereft-configs"));
    worker_run_expect(w, 200, "GET", "/connectors/a", NULL);
    worker_run_await(w, "a", "RUNNING", 1, WAIT_MS);
    scratch_append_text(scratch_path("in"), "2\n");
    wait_until(WAIT_MS, topic_count(servers, topic) == 2);
    assert_int_equal(worker_run_stop(w), 0);
}

static void stop_consumer(void *arg)
{
    rd_kafka_destroy(arg);
}

static bool has_assignment(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *list = NULL;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 10);
    bool has;

    if (message != NULL)
        rd_kafka_message_destroy(message);
    assert_int_equal(rd_kafka_assignment(rk, &list), 0);
    has = list->cnt > 0;
    rd_kafka_topic_partition_list_destroy(list);
    return has;
}

static void a_group_that_consumers_use_is_refused_by_name(void **state)
{
    const char *group = scratch_name("taken"), *topic = scratch_name("lines");
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, kafka_run_servers(), group);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    struct worker_run *w;

    (void)state;
    scratch_at_end(stop_consumer, rk);
    topic_create(kafka_run_servers(), topic, 1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    assert_int_equal(rd_kafka_subscribe(rk, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    wait_until(WAIT_MS, has_assignment(rk));
    w = worker_run_start(&(struct worker_run_options){.group = group, .dont_wait = true});
    assert_int_equal(process_wait(w->process, WAIT_MS), 1);
    assert_true(scratch_contains(w->log, "INCONSISTENT_GROUP_PROTOCOL"));
    assert_true(scratch_contains(w->log, group));
}

/* --- topics of another cluster ---------------------------------------------------------------- */

/* The leader of either sees states of a worker that it does not know. */
static void two_clusters_on_the_same_topics_are_named(void **state)
{
    const char *group = scratch_name("shared");
    struct worker_run *w = worker(group), *other;

    (void)state;
    scratch_write_text(scratch_path("in"), "1\n");
    other = worker_run_start(&(struct worker_run_options){
        .name = "other",
        .group = scratch_name("guest"),
        .props = scratch_text("config.storage.topic=%s-configs\noffset.storage.topic=%s-offsets\n"
                              "status.storage.topic=%s-status\n",
                              group, group, group)});
    worker_run_put(w, "a", config_for(scratch_name("lines")));
    wait_until(WAIT_MS, scratch_contains(w->log, "another cluster uses the same topics") ||
                            scratch_contains(other->log, "another cluster uses the same topics"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scratch_test(odd_records_in_each_topic_cost_nothing),
        scratch_test(a_signature_must_be_the_clusters),
        scratch_test(a_name_longer_than_a_path_has_tasks_by_who_leads_alone),
        scratch_test(a_config_topic_deleted_in_the_run_is_named_and_what_runs_goes_on),
        scratch_test(a_group_that_consumers_use_is_refused_by_name),
        scratch_test(two_clusters_on_the_same_topics_are_named),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("bad input of a cluster", tests, NULL, NULL);
}
