/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that form a cluster: state in three topics as a Java worker writes it, work shared by the
 * group, any worker answers for all, and what happens when one of them goes. Judged by the topics
 * and the records, read by a client of its own. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 20000
#define STATE_MS 20000
#define QUICK \
    "session.timeout.ms=6000\nheartbeat.interval.ms=500\nscheduled.rebalance.max.delay.ms=0\n"

static struct worker_run *member(const char *group, const char *name)
{
    return worker_run_start(
        &(struct worker_run_options){.name = name, .group = group, .props = QUICK});
}

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", "
                        "\"file\": \"%s\", \"topic\": \"%s\"",
                        file, topic);
}

static bool has_record(struct topic_records records, const char *key, const char *value)
{
    for (size_t i = 0; i < records.count; i++) {
        const struct topic_record *rec = &records.records[i];

        if (rec->key != NULL && strcmp(rec->key, key) == 0 && rec->value != NULL &&
            (value == NULL || strcmp(rec->value, value) == 0))
            return true;
    }
    return false;
}

static void assert_record(const char *topic, const char *key, const char *value)
{
    struct topic_records records = topic_read(kafka_run_servers(), topic, 1, FLOW_MS);

    if (has_record(records, key, value))
        return;
    for (size_t i = 0; i < records.count; i++)
        printf("%s => %s\n", records.records[i].key, records.records[i].value);
    fail_msg("%s has no %s => %s", topic, key, value);
}

/* --- one worker ------------------------------------------------------------------------------- */

static void state_is_in_the_topics_as_the_java_worker_writes_it(void **state)
{
    const char *group = scratch_name("one"), *topic = scratch_name("lines"),
               *file = scratch_path("in.txt");
    struct worker_run *w = member(group, "w");
    const char *id = scratch_text("127.0.0.1:%d", w->port);

    (void)state;
    scratch_write_text(file, "a\nb\n");
    worker_run_put(w, "src", source_config(file, topic));
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    topic_read(w->servers, topic, 2, FLOW_MS);
    assert_record(scratch_text("%s-configs", group), "connector-src",
                  scratch_text("{\"properties\":{\"connector.class\":\"FileStreamSource\","
                               "\"tasks.max\":\"1\",\"file\":\"%s\",\"topic\":\"%s\","
                               "\"name\":\"src\"}}",
                               file, topic));
    assert_record(
        scratch_text("%s-configs", group), "task-src-0",
        scratch_text("{\"properties\":{\"connector.class\":\"FileStreamSource\","
                     "\"tasks.max\":\"1\",\"file\":\"%s\",\"topic\":\"%s\",\"name\":\"src\","
                     "\"task.class\":\"org.apache.kafka.connect.file.FileStreamSourceTask\"}}",
                     file, topic));
    assert_record(scratch_text("%s-configs", group), "commit-src", "{\"tasks\":1}");
    assert_record(scratch_text("%s-configs", group), "session-key", NULL);
    wait_until(FLOW_MS, topic_count(w->servers, scratch_text("%s-offsets", group)) > 0);
    assert_record(scratch_text("%s-offsets", group),
                  scratch_text("[\"src\",{\"filename\":\"%s\"}]", file), "{\"position\":4}");
    assert_record(scratch_text("%s-status", group), "status-connector-src",
                  scratch_text("{\"state\":\"RUNNING\",\"trace\":null,\"worker_id\":\"%s\","
                               "\"generation\":2,\"version\":\"4.3.1\"}",
                               id));
    assert_int_equal(worker_run_stop(w), 0);
    assert_record(scratch_text("%s-status", group), "status-task-src-0",
                  scratch_text("{\"state\":\"UNASSIGNED\",\"trace\":null,\"worker_id\":\"%s\","
                               "\"generation\":3,\"version\":\"4.3.1\"}",
                               id));
}

static void a_restarted_worker_goes_on_where_it_was(void **state)
{
    const char *topic = scratch_name("lines"), *file = scratch_path("in.txt");
    struct worker_run *w = member(scratch_name("again"), "w");

    (void)state;
    scratch_write_text(file, "a\nb\n");
    worker_run_put(w, "src", source_config(file, topic));
    topic_read(w->servers, topic, 2, FLOW_MS);
    assert_int_equal(worker_run_stop(w), 0);
    scratch_append_text(file, "c\n");
    worker_run_again(w);
    wait_until(FLOW_MS, topic_count(w->servers, topic) == 3);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    holds_for(500, topic_count(w->servers, topic) == 3);
}

static void target_states_and_deletion_are_written_and_obeyed(void **state)
{
    const char *group = scratch_name("states"), *topic = scratch_name("lines"),
               *configs = scratch_text("%s-configs", group), *file = scratch_path("in.txt");
    struct worker_run *w = member(group, "w");

    (void)state;
    scratch_write_text(file, "a\n");
    worker_run_expect(w, 201, "POST", "/connectors",
                      scratch_text("{\"name\": \"src\", \"config\": {%s}, "
                                   "\"initial_state\": \"stopped\"}",
                                   source_config(file, topic)));
    worker_run_await(w, "src", "STOPPED", 0, STATE_MS);
    assert_record(configs, "target-state-src", "{\"state\":\"PAUSED\",\"state.v2\":\"STOPPED\"}");
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, topic_count(w->servers, topic) == 1);
    worker_run_expect(w, 202, "PUT", "/connectors/src/pause", NULL);
    worker_run_await(w, "src", "PAUSED", 1, STATE_MS);
    scratch_append_text(file, "b\n");
    holds_for(700, topic_count(w->servers, topic) == 1);
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    wait_until(FLOW_MS, topic_count(w->servers, topic) == 2);
    worker_run_expect(w, 204, "PUT", "/connectors/src/stop", NULL);
    worker_run_await(w, "src", "STOPPED", 0, STATE_MS);
    assert_record(configs, "commit-src", "{\"tasks\":0}");
    worker_run_expect(w, 204, "DELETE", "/connectors/src", NULL);
    worker_run_expect(w, 404, "GET", "/connectors/src", NULL);
    wait_until(STATE_MS, worker_run_call(w, "GET", "/connectors/src/status", NULL).status == 404);
    wait_until(STATE_MS, worker_run_processes(w) == 2); /* it and its nest */
}

/* --- several ---------------------------------------------------------------------------------- */

#define MEMBERS 3

struct cluster {
    const char *group;
    struct worker_run *w[MEMBERS];
    const char *topic;
    const char *file;
};

static struct cluster cluster_start(int members)
{
    static const char *const names[MEMBERS] = {"w1", "w2", "w3"};
    struct cluster c = {.group = scratch_name("cluster"),
                        .topic = scratch_name("lines"),
                        .file = scratch_path("in")};

    scratch_write_text(c.file, "a\n");
    for (int i = 0; i < members; i++)
        c.w[i] = member(c.group, names[i]);
    return c;
}

/* Of all states of connectors s0 to s(count-1) as w shows them: how many name this worker? */
static int held_by(const struct worker_run *w, const struct worker_run *by, int count)
{
    const char *id = scratch_text("127.0.0.1:%d", by->port);
    int held = 0;

    for (int i = 0; i < count; i++) {
        const char *conn = scratch_text("s%d", i);

        held += strcmp(worker_run_state(w, conn, "connector.worker_id"), id) == 0;
        held += strcmp(worker_run_state(w, conn, "tasks.0.worker_id"), id) == 0;
    }
    return held;
}

static void create_many(const struct cluster *c, int members, int count)
{
    for (int i = 0; i < count; i++)
        worker_run_put(c->w[i % members], scratch_text("s%d", i),
                       source_config(c->file, scratch_text("%s-%d", c->topic, i)));
    for (int i = 0; i < count; i++)
        worker_run_await(c->w[0], scratch_text("s%d", i), "RUNNING", 1, STATE_MS);
}

static void work_is_shared_and_any_worker_answers_for_all(void **state)
{
    struct cluster c = cluster_start(MEMBERS);

    (void)state;
    create_many(&c, MEMBERS, 6);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(held_by(c.w[0], c.w[i], 6), 4); /* 12 items, even */
        for (int s = 0; s < 6; s++)
            worker_run_await(c.w[i], scratch_text("s%d", s), "RUNNING", 1, STATE_MS);
    }
    for (int s = 0; s < 6; s++)
        wait_until(FLOW_MS, topic_count(c.w[0]->servers, scratch_text("%s-%d", c.topic, s)) == 1);
}

/* While a round is open some changes are answered with 409, as by the Java worker: then once
 * more. */
static void settled_expect(const struct worker_run *w, int status, const char *method,
                           const char *path)
{
    int64_t from = scratch_now_ms();
    struct http_reply reply;

    do
        reply = worker_run_call(w, method, path, NULL);
    while (reply.status == 409 && scratch_since(from) < STATE_MS);
    if (reply.status != status)
        fail_msg("%s %s: %d, not %d: %s", method, path, reply.status, status, reply.body);
}

/* Each call goes to a worker that may neither lead nor own. */
static void every_change_may_be_asked_of_any_worker(void **state)
{
    struct cluster c = cluster_start(MEMBERS);
    struct http_reply reply;

    (void)state;
    create_many(&c, MEMBERS, 3);
    for (int i = 0; i < MEMBERS; i++) {
        reply = worker_run_call(c.w[i], "POST", "/connectors",
                                scratch_text("{\"name\": \"n%d\", \"config\": {%s}}", i,
                                             source_config(c.file, "never-made")));
        assert_int_equal(reply.status, 201);
        assert_string_equal(reply.location, scratch_text("%s/connectors/n%d", c.w[i]->url, i));
        settled_expect(c.w[i], 204, "POST", "/connectors/s0/restart");
        settled_expect(c.w[i], 204, "POST", "/connectors/s1/tasks/0/restart");
        settled_expect(c.w[i], 202, "POST", "/connectors/s2/restart?includeTasks=true");
        worker_run_expect(c.w[i], 202, "PUT", "/connectors/s0/pause", NULL);
        worker_run_await(c.w[(i + 1) % MEMBERS], "s0", "PAUSED", 1, STATE_MS);
        worker_run_expect(c.w[i], 202, "PUT", "/connectors/s0/resume", NULL);
        worker_run_await(c.w[(i + 1) % MEMBERS], "s0", "RUNNING", 1, STATE_MS);
        worker_run_expect(c.w[i], 200, "PATCH", "/connectors/s1/config",
                          scratch_text("{\"batch.size\": \"%d\"}", 100 + i));
        wait_until(
            STATE_MS,
            strstr(
                worker_run_call(c.w[(i + 1) % MEMBERS], "GET", "/connectors/s1/tasks", NULL).body,
                scratch_text("\"batch.size\":\"%d\"", 100 + i)) != NULL);
        worker_run_await(c.w[i], "s1", "RUNNING", 1, STATE_MS);
        worker_run_expect(c.w[i], 404, "DELETE", "/connectors/none", NULL);
        worker_run_expect(c.w[(i + 1) % MEMBERS], 204, "DELETE", scratch_text("/connectors/n%d", i),
                          NULL);
    }
}

/* Brokers let the readers of this worker wait for more, so what the leader wrote comes to it late:
 * a client that was told of a change must not see what was before. */
#define SLOW QUICK "fetch.min.bytes=1000000\nfetch.max.wait.ms=500\n"

static void who_was_told_of_a_change_sees_it_on_the_worker_that_told(void **state)
{
    const char *group = scratch_name("told"), *file = scratch_path("in"), *config;
    struct worker_run *leader = member(group, "leader");
    struct worker_run *w = worker_run_start(
        &(struct worker_run_options){.name = "slow", .group = group, .props = SLOW});

    (void)state;
    scratch_write_text(file, "a\n");
    config = source_config(file, scratch_name("lines"));
    worker_run_expect(w, 201, "POST", "/connectors",
                      scratch_text("{\"name\": \"src\", \"config\": {%s}}", config));
    worker_run_expect(w, 200, "GET", "/connectors/src", NULL);
    worker_run_expect(w, 200, "PUT", "/connectors/src/config",
                      scratch_text("{%s, \"batch.size\": \"7\"}", config));
    assert_non_null(strstr(worker_run_expect(w, 200, "GET", "/connectors/src", NULL).body,
                           "\"batch.size\":\"7\""));
    worker_run_expect(w, 204, "DELETE", "/connectors/src", NULL);
    worker_run_expect(w, 404, "GET", "/connectors/src", NULL);
    worker_run_expect(leader, 404, "GET", "/connectors/src", NULL);
}

static void calls_between_workers_must_be_signed(void **state)
{
    struct cluster c = cluster_start(2);
    struct http_reply reply;
    int leaders = 0;

    (void)state;
    create_many(&c, 2, 2); /* one of the two was sent to the leader, with its signature */
    for (int i = 0; i < 2; i++) {
        reply = worker_run_call(c.w[i], "POST", "/connectors/s0/tasks", "[]");
        assert_int_equal(reply.status, 400);
        assert_string_equal(http_at(reply.json, "message"),
                            "Internal request missing required signature");
        leaders += scratch_contains(c.w[i]->log, "sent to the leader");
        worker_run_expect(c.w[i], 400, "POST", "/connectors/s0/tasks?forward=false", "[]");
    }
    assert_int_equal(leaders, 1);
}

static void a_request_is_sent_on_twice_at_most(void **state)
{
    struct cluster c = cluster_start(2);
    int refused = 0;

    (void)state;
    create_many(&c, 2, 1);
    for (int i = 0; i < 2; i++) {
        struct http_reply reply =
            worker_run_call(c.w[i], "DELETE", "/connectors/none?forward=false", NULL);

        assert_true(reply.status == 404 || reply.status == 409);
        refused += reply.status == 409;
        if (reply.status == 409)
            assert_string_equal(http_at(reply.json, "message"),
                                "Cannot complete request because of a conflicting operation (e.g. "
                                "worker rebalance)");
    }
    assert_int_equal(refused, 1); /* the one that does not lead */
}

static void an_advertised_address_that_can_not_be_reached_is_named(void **state)
{
    const char *group = scratch_name("deaf");
    struct worker_run *leader = worker_run_start(&(struct worker_run_options){
        .name = "w1", .group = group, .props = QUICK "rest.advertised.port=1\n"});
    struct worker_run *w = member(group, "w2");
    struct http_reply reply;

    (void)state;
    (void)leader;
    reply = worker_run_call(w, "PUT", "/connectors/src/config",
                            scratch_text("{%s}", source_config(scratch_path("in"), "never-made")));
    assert_int_equal(reply.status, 500);
    assert_non_null(strstr(reply.body, "127.0.0.1 port 1 "));
    assert_non_null(strstr(reply.body, "rest.advertised.host.name"));
    worker_run_expect(w, 200, "GET", "/connectors", NULL);
}

static void work_of_a_killed_worker_goes_on_elsewhere(void **state)
{
    struct cluster c = cluster_start(MEMBERS);

    (void)state;
    create_many(&c, MEMBERS, 3);
    worker_run_kill(c.w[1]);
    wait_until(STATE_MS, held_by(c.w[0], c.w[0], 3) + held_by(c.w[0], c.w[2], 3) == 6);
    scratch_append_text(c.file, "b\n");
    for (int s = 0; s < 3; s++) {
        worker_run_await(c.w[2], scratch_text("s%d", s), "RUNNING", 1, STATE_MS);
        wait_until(FLOW_MS, topic_count(c.w[0]->servers, scratch_text("%s-%d", c.topic, s)) >= 2);
    }
}

static void work_of_a_stopped_worker_goes_on_elsewhere_from_where_it_was(void **state)
{
    struct cluster c = cluster_start(2);

    (void)state;
    create_many(&c, 2, 2);
    for (int s = 0; s < 2; s++)
        wait_until(FLOW_MS, topic_count(c.w[0]->servers, scratch_text("%s-%d", c.topic, s)) == 1);
    assert_int_equal(worker_run_stop(c.w[0]), 0);
    wait_until(STATE_MS, held_by(c.w[1], c.w[1], 2) == 4);
    scratch_append_text(c.file, "b\n");
    for (int s = 0; s < 2; s++) {
        worker_run_await(c.w[1], scratch_text("s%d", s), "RUNNING", 1, STATE_MS);
        wait_until(FLOW_MS, topic_count(c.w[1]->servers, scratch_text("%s-%d", c.topic, s)) == 2);
    }
    worker_run_again(c.w[0]);
    wait_until(STATE_MS, held_by(c.w[1], c.w[0], 2) == 2);
    for (int s = 0; s < 2; s++)
        holds_for(300, topic_count(c.w[1]->servers, scratch_text("%s-%d", c.topic, s)) == 2);
}

/* --- what can't be ---------------------------------------------------------------------------- */

static int exit_code_with(const char *group, const char *props, const char *words)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .name = scratch_name("bad"), .group = group, .props = props, .dont_wait = true});
    int code = process_wait(w->process, STATE_MS);

    if (!scratch_contains(w->log, words))
        fail_msg("the log does not say: %s\n%s", words, scratch_read(w->log, NULL));
    return code;
}

/* All of config/distributed.properties but what the test's own brokers, ports and topics are. */
static const char *sample(void)
{
    static const char *const ours[] = {"bootstrap.servers",
                                       "group.id",
                                       "listeners",
                                       "config.storage.topic",
                                       "offset.storage.topic",
                                       "status.storage.topic"};
    const char *text = scratch_read("config/distributed.properties", NULL);

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        text = rest_answer_replaced(text, scratch_text("\n%s=", ours[i]),
                                    scratch_text("\n#%s=", ours[i]));
    return text;
}

static void the_sample_configuration_runs_a_worker(void **state)
{
    const char *topic = scratch_name("lines");
    struct worker_run *w = worker_run_start(
        &(struct worker_run_options){.group = scratch_name("sample"), .props = sample()});

    (void)state;
    scratch_write_text(scratch_path("in"), "1\n");
    worker_run_put(w, "a", source_config(scratch_path("in"), topic));
    assert_string_equal(topic_read(w->servers, topic, 1, FLOW_MS).records[0].value,
                        "{\"schema\":{\"type\":\"string\",\"optional\":false},\"payload\":\"1\"}");
    assert_false(scratch_contains(w->log, "WARN  worker.config"));
    assert_int_equal(worker_run_stop(w), 0);
}

static void a_worker_that_cannot_serve_ends_with_a_reason(void **state)
{
    const char *group = scratch_name("bad"), *topic = scratch_text("%s-wide", group);

    (void)state;
    topic_create(kafka_run_servers(), topic, 2);
    assert_int_equal(exit_code_with(group, "exactly.once.source.support=sometimes\n",
                                    "exactly.once.source.support"),
                     2);
    assert_int_equal(exit_code_with(group, "heartbeat.interval.ms=20000\n",
                                    "Heartbeat must be set lower than the session timeout"),
                     2);
    assert_int_equal(exit_code_with(group, "group.id=\n", "group.id"), 2);
    assert_int_equal(exit_code_with(group, scratch_text("status.storage.topic=%s\n", topic),
                                    "cleanup.policy=compact"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(state_is_in_the_topics_as_the_java_worker_writes_it),
        scratch_test(a_restarted_worker_goes_on_where_it_was),
        scratch_test(target_states_and_deletion_are_written_and_obeyed),
        scratch_test(work_is_shared_and_any_worker_answers_for_all),
        scratch_test(every_change_may_be_asked_of_any_worker),
        scratch_test(who_was_told_of_a_change_sees_it_on_the_worker_that_told),
        scratch_test(calls_between_workers_must_be_signed),
        scratch_test(a_request_is_sent_on_twice_at_most),
        scratch_test(an_advertised_address_that_can_not_be_reached_is_named),
        scratch_test(work_of_a_killed_worker_goes_on_elsewhere),
        scratch_test(work_of_a_stopped_worker_goes_on_elsewhere_from_where_it_was),
        scratch_test(a_worker_that_cannot_serve_ends_with_a_reason),
        scratch_test(the_sample_configuration_runs_a_worker),
    };

    return cmocka_run_group_tests_name("cluster", tests, NULL, NULL);
}
