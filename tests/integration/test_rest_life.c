/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connector over REST, with records flowing: create, pause, resume, stop, restart,
 * change, delete. Each call is judged by what happens to the data and to the processes, not by its
 * answer alone. */
#include "support/process.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 15000
#define STATE_MS 10000

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", "
                        "\"file\": \"%s\", \"topic\": \"%s\"",
                        file, topic);
}

/* A worker with a running source connector `source` over in.txt, which has one line, that
 * arrived. */
struct flow {
    struct worker_run *w;
    const char *topic;
    const char *file;
};

static struct flow flow_start(void)
{
    struct flow flow = {worker_run_start(&(struct worker_run_options){0}), scratch_name("life"),
                        scratch_path("in.txt")};

    scratch_write_text(flow.file, "first\n");
    worker_run_put(flow.w, "source", source_config(flow.file, flow.topic));
    topic_read(flow.w->servers, flow.topic, 1, FLOW_MS);
    worker_run_await(flow.w, "source", "RUNNING", 1, STATE_MS);
    return flow;
}

static int64_t count(const struct flow *flow)
{
    return topic_count(flow->w->servers, flow->topic);
}

static void create_answers_as_connect_does(void **state)
{
    struct flow f = flow_start();
    const char *body =
        scratch_text("{\"name\": \"second\", \"config\": {%s}}", source_config(f.file, f.topic));
    struct http_reply reply = worker_run_expect(f.w, 201, "POST", "/connectors", body);

    (void)state;
    assert_string_equal(reply.content_type, "application/json");
    assert_string_equal(reply.location, scratch_text("%s/connectors/second", f.w->url));
    assert_string_equal(http_at(reply.json, "name"), "second");
    assert_string_equal(http_at(reply.json, "config.name"), "second");
    assert_string_equal(http_at(reply.json, "tasks.0.connector"), "second");
    assert_string_equal(http_at(reply.json, "type"), "source");
    reply = worker_run_expect(f.w, 409, "POST", "/connectors", body);
    assert_string_equal(http_at(reply.json, "error_code"), "409");
    assert_string_equal(http_at(reply.json, "message"), "Connector second already exists");
    reply = worker_run_expect(f.w, 200, "GET", "/connectors", NULL);
    assert_int_equal(json_array_size(reply.json), 2);
    reply = worker_run_expect(f.w, 200, "GET", "/connectors/second/status", NULL);
    assert_string_equal(http_at(reply.json, "connector.worker_id"),
                        scratch_text("127.0.0.1:%d", f.w->port));
}

/* What Connect takes in silence, and its users then search for. */
static void what_will_surprise_is_warned_about(void **state)
{
    struct flow f = flow_start();

    (void)state;
    worker_run_expect(f.w, 201, "POST", "/connectors",
                      scratch_text("{\"name\": \"a/b\", \"config\": {%s, \"tasks.maxx\": \"2\"}}",
                                   source_config(f.file, f.topic)));
    worker_run_expect(f.w, 400, "DELETE", "/connectors/a%2Fb", NULL);
    assert_true(scratch_contains(
        f.w->log, "WARN  worker.rest connector \"a/b\" can't be named in the path of a request: it "
                  "holds an encoded slash (%2F)."));
    assert_true(scratch_contains(f.w->log, "WARN  worker.herder [a/b] tasks.maxx has no effect: no "
                                           "such setting is known; did you mean tasks.max?"));
    assert_false(scratch_contains(f.w->log, "connector \"source\""));
}

/* The endpoint that every refusal names. */
static void validate_tells_all_that_a_refusal_tells(void **state)
{
    struct flow f = flow_start();
    struct http_reply reply = worker_run_expect(
        f.w, 200, "PUT", "/connector-plugins/FileStreamSource/config/validate",
        "{\"connector.class\": \"FileStreamSource\", \"name\": \"v\", \"tasks.max\": \"0\"}");

    (void)state;
    assert_string_equal(http_at(reply.json, "error_count"), "2");
    assert_string_equal(http_at(reply.json, "configs.0.value.value"), "v");
    assert_string_equal(http_at(reply.json, "configs.3.value.errors.0"),
                        "Invalid value 0 for configuration tasks.max: Value must be at least 1");
    reply = worker_run_expect(f.w, 200, "GET", "/connector-plugins/FileStreamSource/config", NULL);
    assert_string_equal(http_at(reply.json, "1.name"), "topic");
    worker_run_expect(f.w, 404, "GET", "/connectors/v", NULL);
}

static void a_paused_source_stands_still_and_a_resumed_one_goes_on(void **state)
{
    struct flow f = flow_start();

    (void)state;
    worker_run_expect(f.w, 202, "PUT", "/connectors/source/pause", NULL);
    worker_run_await(f.w, "source", "PAUSED", 1, STATE_MS);
    scratch_append_text(f.file, "second\n");
    holds_for(1500, count(&f) == 1);
    worker_run_expect(f.w, 202, "PUT", "/connectors/source/resume", NULL);
    worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, count(&f) == 2);
}

static void a_stopped_connector_has_no_tasks_and_resumes_where_it_was(void **state)
{
    struct flow f = flow_start();

    (void)state;
    worker_run_expect(f.w, 204, "PUT", "/connectors/source/stop", NULL);
    worker_run_await(f.w, "source", "STOPPED", 0, STATE_MS);
    scratch_append_text(f.file, "second\n");
    holds_for(1000, count(&f) == 1);
    worker_run_expect(f.w, 202, "PUT", "/connectors/source/resume", NULL);
    worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, count(&f) == 2);
    holds_for(500, count(&f) == 2);
}

static void restarts_neither_lose_nor_double(void **state)
{
    struct flow f = flow_start();

    (void)state;
    for (int i = 0; i < 5; i++) {
        scratch_append_text(f.file, "more\n");
        wait_until(FLOW_MS, count(&f) == i + 2);
        worker_run_expect(
            f.w, 204, "POST",
            i % 2 == 0 ? "/connectors/source/restart" : "/connectors/source/tasks/0/restart", NULL);
        worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    }
    worker_run_expect(f.w, 202, "POST", "/connectors/source/restart?includeTasks=true", NULL);
    worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    scratch_append_text(f.file, "last\n");
    wait_until(FLOW_MS, count(&f) == 7);
    holds_for(500, count(&f) == 7);
}

static void a_deleted_connector_leaves_nothing_behind(void **state)
{
    struct flow f = flow_start();

    (void)state;
    assert_int_equal(worker_run_processes(f.w), 3);
    worker_run_expect(f.w, 204, "DELETE", "/connectors/source", NULL);
    worker_run_expect(f.w, 404, "GET", "/connectors/source", NULL);
    wait_until(STATE_MS, worker_run_processes(f.w) == 2);
    wait_until(STATE_MS,
               worker_run_call(f.w, "GET", "/connectors/source/status", NULL).status == 404);
    scratch_append_text(f.file, "second\n");
    holds_for(500, count(&f) == 1);
    worker_run_put(f.w, "source", source_config(f.file, f.topic));
    wait_until(FLOW_MS, count(&f) == 2);
}

static long lives(void)
{
    const char *given = getenv("MILLRACE_LIVES");

    return given != NULL ? strtol(given, NULL, 10) : 24;
}

/* One name, created and deleted again and again, a source's and a sink's in turn; two of three
 * lives end before they have begun. No task of an earlier one works on, and offsets outlive them:
 * each line is read once. */
static void live_and_die(struct worker_run *w, const char *file, const char *topic)
{
    const char *source = source_config(file, topic),
               *sink = scratch_text("\"connector.class\": \"FileStreamSink\", \"topics\": \"%s\", "
                                    "\"file\": \"%s\"",
                                    topic, scratch_path("out.txt"));

    for (long i = 0; i < lives(); i++) {
        if (i % 2 == 0)
            scratch_append_text(file, "a line\n");
        worker_run_expect(
            w, 201, "POST", "/connectors",
            scratch_text("{\"name\": \"again\", \"config\": {%s}}", i % 2 == 0 ? source : sink));
        if (i % 3 == 0)
            worker_run_await(w, "again", "RUNNING", 1, STATE_MS);
        worker_run_expect(w, 204, "DELETE", "/connectors/again", NULL);
    }
    worker_run_put(w, "again", source);
    worker_run_await(w, "again", "RUNNING", 1, STATE_MS);
}

static void a_name_has_many_lives(void **state)
{
    static const char *const modes[] = {"standalone", "cluster"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *topic = scratch_name("lives"),
                   *file = scratch_path(scratch_text("%s.txt", modes[i]));
        struct worker_run *w = worker_run_start(&(struct worker_run_options){
            .name = modes[i], .group = i == 0 ? NULL : scratch_name("lives")});

        topic_create(w->servers, topic, 1);
        live_and_die(w, file, topic);
        wait_until(FLOW_MS, topic_count(w->servers, topic) == (lives() + 1) / 2);
        holds_for(500, topic_count(w->servers, topic) == (lives() + 1) / 2);
        assert_int_equal(worker_run_processes(w), 3);
        assert_int_equal(worker_run_stop(w), 0);
    }
}

static void a_changed_configuration_takes_effect_at_once(void **state)
{
    struct flow f = flow_start();
    const char *other = scratch_name("other");

    (void)state;
    worker_run_expect(f.w, 200, "PUT", "/connectors/source/config",
                      scratch_text("{%s}", source_config(f.file, other)));
    scratch_append_text(f.file, "second\n");
    assert_string_equal(topic_read(f.w->servers, other, 1, FLOW_MS).records[0].value, "second");
    assert_int_equal(count(&f), 1);
}

static void mistakes_of_the_client_change_nothing(void **state)
{
    static const struct {
        int status;
        const char *method, *path, *body;
    } calls[] = {
        {404, "GET", "/connectors/none", NULL},
        {404, "GET", "/connectors/none/status", NULL},
        {404, "PUT", "/connectors/none/pause", NULL},
        {404, "DELETE", "/connectors/none", NULL},
        {404, "POST", "/connectors/source/tasks/7/restart", NULL},
        {400, "POST", "/connectors", "{\"name\": "},
        {400, "POST", "/connectors", "[]"},
        {400, "POST", "/connectors", "{\"name\": \"x\", \"config\": {\"a\": {}}}"},
        {400, "POST", "/connectors", "{\"name\": \"x\", \"config\": {}}"},
        {400, "POST", "/connectors",
         "{\"config\": {\"connector.class\": \"FileStreamSource\", \"topic\": \"t\"}}"},
        {400, "POST", "/connectors",
         "{\"name\": \"x\", \"config\": {\"connector.class\": \"NoSuch\"}}"},
        {400, "PUT", "/connectors/source/config", "{\"connector.class\": \"FileStreamSource\"}"},
        {400, "PUT", "/connectors/source/config",
         "{\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", \"name\": \"other\"}"},
    };
    struct flow f = flow_start();

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct http_reply reply =
            worker_run_expect(f.w, calls[i].status, calls[i].method, calls[i].path, calls[i].body);

        assert_string_equal(reply.content_type, "application/json");
        assert_string_equal(http_at(reply.json, "error_code"), scratch_text("%d", calls[i].status));
        assert_true(strlen(http_at(reply.json, "message")) > 5);
    }
    /* As in Java, before an operation is found no kind of content is told. */
    worker_run_expect(f.w, 404, "GET", "/nothing", NULL);
    worker_run_expect(f.w, 405, "DELETE", "/connectors", NULL);
    worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    scratch_append_text(f.file, "second\n");
    wait_until(FLOW_MS, count(&f) == 2);
}

static void a_killed_host_comes_back_and_its_neighbour_sees_nothing(void **state)
{
    struct flow f = flow_start();
    const char *file = scratch_path("neighbour.txt"), *topic = scratch_name("neighbour");
    pid_t victim = worker_run_host(f.w, "source");

    (void)state;
    assert_int_not_equal(victim, 0);
    scratch_write_text(file, "a\n");
    worker_run_put(f.w, "neighbour", source_config(file, topic));
    topic_read(f.w->servers, topic, 1, FLOW_MS);
    kill(victim, SIGKILL);
    scratch_append_text(file, "b\n");
    wait_until(1000, topic_count(f.w->servers, topic) == 2);
    scratch_append_text(f.file, "after the kill\n");
    wait_until(FLOW_MS, count(&f) >= 2);
    worker_run_await(f.w, "source", "RUNNING", 1, STATE_MS);
    worker_run_expect(f.w, 204, "DELETE", "/connectors/neighbour", NULL);
    wait_until(STATE_MS, worker_run_processes(f.w) == 3);
    assert_int_not_equal(worker_run_host(f.w, "source"), 0);
    assert_int_not_equal(worker_run_host(f.w, "source"), victim);
}

/* How often the log says it. */
static int said(const struct worker_run *w, const char *text)
{
    char *log = scratch_read(w->log, NULL);
    int times = 0;

    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        times++;
    return times;
}

static void what_a_config_provider_refuses_is_one_line_of_the_log(void **state)
{
    static const char *const refused = "is not allowed to be accessed";
    const char *secret = scratch_path("secret.properties");
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .props = "config.providers=file\n"
                 "config.providers.file.class=FileConfigProvider\n"
                 "config.providers.file.param.allowed.paths=/usr/share\n"});
    const char *topic = scratch_name("refused"),
               *sink = scratch_text("\"connector.class\": \"FileStreamSink\", \"topics\": \"%s\", "
                                    "\"file\": \"%s\", \"note\": \"${file:%s:k}\", "
                                    "\"tasks.max\": ",
                                    topic, scratch_path("out.txt"), secret);
    struct http_reply reply;

    (void)state;
    scratch_write_text(secret, "k=1\n");
    topic_create(w->servers, topic, 3);
    worker_run_put(w, "runs", scratch_text("%s\"3\"", sink));
    worker_run_await(w, "runs", "RUNNING", 3, STATE_MS);
    wait_until(STATE_MS, said(w, refused) > 0);
    assert_int_equal(said(w, "[runs] note has a reference ${file:"), 1);
    worker_run_expect(w, 201, "POST", "/connectors",
                      scratch_text("{\"name\": \"rests\", \"initial_state\": \"STOPPED\", "
                                   "\"config\": {%s\"1\"}}",
                                   sink));
    assert_int_equal(said(w, "[rests] note has a reference ${file:"), 1);
    reply = worker_run_expect(w, 400, "PUT", "/connectors/wrong/config",
                              scratch_text("{%s\"none\"}", sink));
    assert_non_null(strstr(reply.body, "Invalid value none for configuration tasks.max"));
    assert_int_equal(said(w, "[wrong] note has a reference ${file:"), 1);
    /* A question is told to nobody but who asked. */
    worker_run_expect(w, 200, "PUT", "/connector-plugins/FileStreamSink/config/validate",
                      scratch_text("{\"name\": \"asked\", %s\"1\"}", sink));
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(said(w, refused), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(create_answers_as_connect_does),
        scratch_test(what_will_surprise_is_warned_about),
        scratch_test(validate_tells_all_that_a_refusal_tells),
        scratch_test(a_paused_source_stands_still_and_a_resumed_one_goes_on),
        scratch_test(a_stopped_connector_has_no_tasks_and_resumes_where_it_was),
        scratch_test(restarts_neither_lose_nor_double),
        scratch_test(a_deleted_connector_leaves_nothing_behind),
        scratch_test(a_name_has_many_lives),
        scratch_test(a_changed_configuration_takes_effect_at_once),
        scratch_test(mistakes_of_the_client_change_nothing),
        scratch_test(what_a_config_provider_refuses_is_one_line_of_the_log),
        scratch_test(a_killed_host_comes_back_and_its_neighbour_sees_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
