/* SPDX-License-Identifier: Apache-2.0 */
/* A source that keeps its offsets in a topic of its own (offsets.storage.topic), with and without
 * exactly-once: where it goes on whatever dies, what stands in which topic, what REST shows and
 * changes; and that keys and values are Java's, which hands over to us. */
#include "support/java_worker.h"
#include "support/kafka_run.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"

#include <signal.h>
#include <string.h>

#define FLOW_MS 60000
#define JAVA_MS 120000 /* bounds a fault: a JVM on a busy machine takes its time */
#define STRINGS \
    "value.converter=org.apache.kafka.connect.storage.StringConverter\n" \
    "scheduled.rebalance.max.delay.ms=0\nsession.timeout.ms=6000\nheartbeat.interval.ms=500\n"
#define EXACTLY_ONCE "exactly.once.source.support=enabled\n"

struct flow {
    const char *servers;
    const char *file;
    const char *topic; /* lines */
    const char *own;   /* offsets */
    const char *all;   /* the worker's */
    const char *key;   /* of an offset */
};

static struct flow flow_new(const char *group)
{
    const char *file = scratch_path("in.txt");

    scratch_write_text(file, "");
    return (struct flow){.servers = kafka_run_servers(),
                         .file = file,
                         .topic = scratch_name("lines"),
                         .own = scratch_name("own"),
                         .all = scratch_text("%s-offsets", group),
                         .key = scratch_text("[\"src\",{\"filename\":\"%s\"}]", file)};
}

static struct worker_run *member(const char *group, const char *props)
{
    return worker_run_start(&(struct worker_run_options){
        .name = "w", .group = group, .props = scratch_text(STRINGS "%s", props)});
}

static void put(const struct worker_run *w, const struct flow *f)
{
    worker_run_put(w, "src",
                   scratch_text("\"connector.class\": "
                                "\"org.apache.kafka.connect.file.FileStreamSourceConnector\", "
                                "\"tasks.max\": \"1\", \"file\": \"%s\", \"topic\": \"%s\", "
                                "\"offsets.storage.topic\": \"%s\"",
                                f->file, f->topic, f->own));
}

/* The newest value of the flow's key, "null" for a removal, "" for none. */
static const char *newest(const struct flow *f, const char *topic)
{
    struct topic_records got = topic_read(f->servers, topic, 0, 0);

    for (size_t i = got.count; i-- > 0;)
        if (got.records[i].key != NULL && strcmp(got.records[i].key, f->key) == 0)
            return got.records[i].value != NULL ? got.records[i].value : "null";
    return "";
}

/* Both have it: first its own, then the worker's. */
static void await_position(const struct flow *f, int position)
{
    const char *value = scratch_text("{\"position\":%d}", position);

    wait_until(FLOW_MS, strcmp(newest(f, f->all), value) == 0);
    assert_string_equal(newest(f, f->own), value);
}

static void expect_lines(const struct flow *f, const char *lines)
{
    struct topic_records got = topic_read(f->servers, f->topic, strlen(lines), FLOW_MS);

    assert_int_equal(got.count, strlen(lines));
    for (size_t i = 0; i < got.count; i++)
        assert_int_equal(got.records[i].value[0], lines[i]);
}

/* --- killed ----------------------------------------------------------------------------------- */

static void go_on(const struct worker_run *w, const struct flow *f, char line, int position)
{
    worker_run_await(w, "src", "RUNNING", 1, FLOW_MS);
    scratch_append_text(f->file, scratch_text("%c\n", line));
    await_position(f, position);
}

static void resumes_whatever_dies(const char *props, bool kills)
{
    const char *group = scratch_name("mine");
    struct flow f = flow_new(group);
    struct worker_run *w = member(group, props);
    pid_t host;

    put(w, &f);
    go_on(w, &f, 'a', 2);
    assert_int_equal(topic_partitions(f.servers, f.own), 2);
    assert_string_equal(topic_setting(f.servers, f.own, "cleanup.policy"), "compact");
    wait_until(FLOW_MS, (host = worker_run_host(w, "src")) > 0);
    assert_int_equal(kill(host, SIGKILL), 0);
    wait_until(FLOW_MS, worker_run_host(w, "src") > 0 && worker_run_host(w, "src") != host);
    go_on(w, &f, 'b', 4);
    if (kills) {
        worker_run_kill(w);
        worker_run_again(w);
    }
    go_on(w, &f, 'c', 6);
    /* what the worker's topic says does not count where its own has something to say */
    assert_int_equal(worker_run_stop(w), 0);
    topic_produce(f.servers, f.all, -1, f.key, NULL);
    worker_run_again(w);
    go_on(w, &f, 'd', 8);
    assert_int_equal(worker_run_stop(w), 0);
    topic_produce(f.servers, f.all, -1, f.key, "{\"position\":0}");
    worker_run_again(w);
    go_on(w, &f, 'e', 10);
    expect_lines(&f, "abcde");
}

static void a_source_goes_on_from_its_own_topic(void **state)
{
    (void)state;
    resumes_whatever_dies("", true);
}

static void so_it_does_under_exactly_once(void **state)
{
    (void)state;
    resumes_whatever_dies(EXACTLY_ONCE, false);
}

/* The worker's topic is asked for what its own does not know, as after it was given one. */
static void a_source_that_gets_a_topic_of_its_own_goes_on_where_it_was(void **state)
{
    const char *group = scratch_name("mine");
    struct flow f = flow_new(group);
    struct worker_run *w = member(group, "");

    (void)state;
    worker_run_put(w, "src",
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                                "\"topic\": \"%s\"",
                                f.file, f.topic));
    worker_run_await(w, "src", "RUNNING", 1, FLOW_MS);
    scratch_append_text(f.file, "a\n");
    wait_until(FLOW_MS, strcmp(newest(&f, f.all), "{\"position\":2}") == 0);
    put(w, &f);
    wait_until(FLOW_MS, topic_partitions(f.servers, f.own) > 0); /* by the task that knows of it */
    scratch_append_text(f.file, "b\n");
    await_position(&f, 4);
    expect_lines(&f, "ab");
}

/* --- REST ------------------------------------------------------------------------------------- */

static void stop(const struct worker_run *w)
{
    rest_answer_expect(w, 204, "PUT", "/connectors/src/stop", NULL);
    worker_run_await(w, "src", "STOPPED", 0, FLOW_MS);
}

static const char *shown(const struct worker_run *w)
{
    return rest_answer_expect(w, 200, "GET", "/connectors/src/offsets", NULL).body;
}

static void rest_shows_and_changes_both(const char *props)
{
    const char *group = scratch_name("mine");
    struct flow f = flow_new(group);
    struct worker_run *w = member(group, props);
    const char *entry = scratch_text("{\"partition\":{\"filename\":\"%s\"},\"offset\":", f.file);

    put(w, &f);
    scratch_append_text(f.file, "a\nb\n");
    await_position(&f, 4);
    topic_produce(f.servers, f.all, -1, "[\"src\",{\"filename\":\"old\"}]", "{\"position\":7}");
    topic_produce(f.servers, f.all, -1, f.key, "{\"position\":1}");
    assert_string_equal(shown(w), scratch_text("{\"offsets\":[%s{\"position\":4}},{\"partition\":"
                                               "{\"filename\":\"old\"},\"offset\":{\"position\":7}}"
                                               "]}",
                                               entry));
    stop(w);
    rest_answer_expect(w, 200, "PATCH", "/connectors/src/offsets",
                       scratch_text("{\"offsets\": [%s{\"position\":2}}]}", entry));
    assert_string_equal(newest(&f, f.own), "{\"position\":2}");
    assert_string_equal(newest(&f, f.all), "{\"position\":2}");
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    await_position(&f, 4);
    expect_lines(&f, "abb");
    stop(w);
    rest_answer_expect(w, 200, "DELETE", "/connectors/src/offsets", NULL);
    assert_string_equal(newest(&f, f.own), "null");
    assert_string_equal(newest(&f, f.all), "null");
    assert_string_equal(shown(w), "{\"offsets\":[]}");
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    await_position(&f, 4);
    expect_lines(&f, "abbab");
}

static void rest_shows_and_changes_both_topics(void **state)
{
    (void)state;
    rest_shows_and_changes_both("");
}

static void so_it_does_with_transactions(void **state)
{
    (void)state;
    rest_shows_and_changes_both(EXACTLY_ONCE);
}

static void a_topic_that_can_not_be_had_is_told(void **state)
{
    struct worker_run *w = member(scratch_name("mine"), "");
    struct flow f = flow_new("none");

    (void)state;
    topic_produce(f.servers, f.own, 0, "k", "v"); /* made by use: cleanup.policy=delete */
    put(w, &f);
    wait_until(FLOW_MS, strcmp(worker_run_state(w, "src", "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, "src", "tasks.0.trace"),
                           "required to have 'cleanup.policy=compact'"));
    assert_string_equal(
        http_at(rest_answer_expect(w, 500, "GET", "/connectors/src/offsets", NULL).json, "message"),
        "Failed to retrieve offsets for source connector src");
}

/* --- Java ------------------------------------------------------------------------------------- */

static void what_java_wrote_there_we_go_on_with(void **state)
{
    const char *group = scratch_name("mine");
    struct worker_run *java = java_worker_start(NULL, group, STRINGS), *w;
    struct flow f = flow_new(group);

    (void)state;
    java_worker_await(java);
    put(java, &f);
    worker_run_await(java, "src", "RUNNING", 1, JAVA_MS);
    scratch_append_text(f.file, "a\n");
    await_position(&f, 2);
    assert_int_equal(topic_partitions(f.servers, f.own), 2);
    assert_string_equal(topic_setting(f.servers, f.own, "cleanup.policy"), "compact");
    java_worker_leave(java);
    topic_produce(f.servers, f.all, -1, f.key, "{\"position\":0}");
    w = member(group, "");
    go_on(w, &f, 'b', 4);
    expect_lines(&f, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_source_goes_on_from_its_own_topic),
        scratch_test(so_it_does_under_exactly_once),
        scratch_test(a_source_that_gets_a_topic_of_its_own_goes_on_where_it_was),
        scratch_test(rest_shows_and_changes_both_topics),
        scratch_test(so_it_does_with_transactions),
        scratch_test(a_topic_that_can_not_be_had_is_told),
        scratch_test(what_java_wrote_there_we_go_on_with),
    };

    return cmocka_run_group_tests_name("own_topic", tests, NULL, NULL);
}
