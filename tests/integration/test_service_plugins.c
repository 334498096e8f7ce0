/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that are no connector's, in the real worker. Config providers (tests/plugins/steward.c):
 * what they give reaches worker, connectors and tasks, and nobody else; what they do wrong is told,
 * and hurts whoever asked alone. REST filters (warden.c): what they don't let through is refused,
 * and so is everything they have no answer for. In a cluster each worker has its own, and asks
 * them. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MS 30000
#define FLOW_MS 30000
#define MEMBERS 3
#define QUICK \
    "session.timeout.ms=6000\nheartbeat.interval.ms=500\nscheduled.rebalance.max.delay.ms=0\n"
#define SECRET "a-word-that-nobody-sees"

static const char *const provider =
    "config.providers=steward\n"
    "config.providers.steward.class=org.example.StewardConfigProvider\n"
    "config.providers.steward.param.values=%s\n"
    "config.providers.steward.param.password=" SECRET "\n"
    "millrace.services.timeout.ms=5000\n%s";

/* A worker whose provider gives these lines of "key value". */
static struct worker_run *start(const char *values, const char *more)
{
    const char *file = scratch_path("values");

    scratch_write_text(file, values);
    return worker_run_start(
        &(struct worker_run_options){.props = scratch_text(provider, file, more)});
}

static const char *source(const char *file, const char *topic)
{
    return scratch_text("\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                        "\"topic\": \"%s\"",
                        file, topic);
}

static pid_t service_of(const struct worker_run *w, const char *name)
{
    const char *shown = scratch_text("millrace service %s", name);
    pid_t pids[64];
    size_t count = process_marked(w->mark, pids, 64);

    for (size_t i = 0; i < count && i < 64; i++)
        if (strcmp(process_arguments(pids[i]), shown) == 0)
            return pids[i];
    fail_msg("the service %s has no process", name);
    return 0;
}

static void assert_hidden(const struct worker_run *w, const char *conn)
{
    static const char *const paths[] = {"", "/config", "/status", "/tasks", "/tasks-config"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const char *path = scratch_text("/connectors/%s%s", conn, paths[i]);

        assert_null(strstr(worker_run_call(w, "GET", path, NULL).body, SECRET));
    }
    assert_false(scratch_contains(w->log, SECRET));
}

static void values_reach_the_worker_and_its_connectors_and_nobody_else(void **state)
{
    const char *topic = scratch_name("given"), *file = scratch_path("in.txt");
    struct worker_run *w = start(scratch_text("topic %s\nhost advertised.example\n", topic),
                                 "rest.advertised.host.name=${steward:host}\n");
    struct http_reply reply;

    (void)state;
    topic_create(w->servers, topic, 1);
    scratch_write_text(file, "a line\n");
    worker_run_put(
        w, "a",
        scratch_text("%s, \"note\": \"${steward:password}\"", source(file, "${steward:topic}")));
    worker_run_await(w, "a", "RUNNING", 1, STATE_MS);
    assert_string_equal(topic_read(w->servers, topic, 1, FLOW_MS).records[0].value, "a line");
    assert_non_null(strstr(worker_run_state(w, "a", "connector.worker_id"), "advertised.example:"));
    reply = worker_run_expect(w, 200, "GET", "/connectors/a/config", NULL);
    assert_non_null(strstr(reply.body, "\"topic\":\"${steward:topic}\""));
    assert_hidden(w, "a");
    reply = worker_run_expect(w, 200, "GET", "/connector-plugins?connectorsOnly=false", NULL);
    assert_null(strstr(reply.body, "Steward"));
}

/* A connector copies the value under another key, logs it, and fails with it. */
static void a_value_is_its_reference_wherever_a_connector_carries_it(void **state)
{
    struct worker_run *w = start("", "");
    struct http_reply reply;

    (void)state;
    worker_run_put(w, "tells",
                   "\"connector.class\": \"HostileSource\", \"topic\": \"none\", \"where\": "
                   "\"start\", \"how\": \"tell\", \"word\": \"${steward:password}\"");
    wait_until(STATE_MS, strcmp(worker_run_state(w, "tells", "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, "tells", "tasks.0.trace"),
                           "it does not open with ${steward:password}"));
    reply = worker_run_expect(w, 200, "GET", "/connectors/tells/tasks", NULL);
    assert_non_null(
        strstr(reply.body, "\"login\":\"user=a;password=${steward:password};retries=1\""));
    wait_until(STATE_MS, scratch_contains(w->log, "the word is ${steward:password}"));
    assert_hidden(w, "tells");
}

static void a_provider_that_misbehaves_fails_whoever_asked_alone(void **state)
{
    static const char *const ways[][2] = {
        {"hang", "path hang: it gave no answer within 5000 ms"},
        {"crash", "path crash: its process"},
        {"exit", "exited with code 3 when it was asked"},
        {"thread", "exited with code 0 when it was asked"},
        {"fork", "path fork: it gave no answer within 5000 ms"},
        {"stop", "path stop: its process"},
        {"nul", "path nul: its value for key k is no UTF-8 text, or holds a NUL"},
        {"huge", "path huge: its value for key k has 1073741824 bytes"},
        {"refuse", "path refuse: the cellar is?locked"},
    };
    const char *topic = scratch_name("steady"), *file = scratch_path("in.txt");
    struct worker_run *w = start(scratch_text("topic %s\n", topic), "");

    (void)state;
    topic_create(w->servers, topic, 1);
    scratch_write_text(file, "a line\n");
    worker_run_put(w, "steady", source(file, "${steward:topic}"));
    worker_run_await(w, "steady", "RUNNING", 1, STATE_MS);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *body =
            scratch_text("{%s}", source(file, scratch_text("${steward:%s:k}", ways[i][0])));
        struct http_reply reply = worker_run_expect(w, 500, "PUT", "/connectors/bad/config", body);

        if (strstr(reply.body, ways[i][1]) == NULL)
            fail_msg("expected \"%s\" in %s", ways[i][1], reply.body);
    }
    /* However much it prints, its answer is what it says by the link alone. */
    worker_run_put(
        w, "prints",
        scratch_text("%s, \"note\": \"${steward:print:k}\"", source(file, "${steward:topic}")));
    worker_run_await(w, "prints", "RUNNING", 1, STATE_MS);
    /* The next process serves as if nothing had been. */
    kill(service_of(w, "steward"), SIGKILL);
    worker_run_put(w, "after", source(file, "${steward:topic}"));
    worker_run_await(w, "after", "RUNNING", 1, STATE_MS);
    assert_true(worker_run_is(w, "steady", "RUNNING", 1));
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(worker_run_processes(w), 0);
}

/* Its worker is killed while the provider hangs, with a child of its own. */
static void nothing_of_a_service_outlives_its_worker(void **state)
{
    struct worker_run *w = start("", "");
    const char *body = scratch_text("{%s}", source("/in", "${steward:fork:k}"));
    const char *log = scratch_path("put.log");
    const char *put[] = {"curl", "-s", "-X",
                         "PUT",  "-H", "Content-Type: application/json",
                         "-d",   body, scratch_text("%s/connectors/a/config", w->url),
                         NULL};
    size_t idle = worker_run_processes(w);
    struct process *client = process_start(put, log, "client");

    (void)state;
    wait_until(STATE_MS, worker_run_processes(w) > idle);
    worker_run_kill(w);
    wait_until(STATE_MS, worker_run_processes(w) == 0);
    process_wait(client, STATE_MS);
}

/* What is posted counts, however little its references stand for: no process is asked of that. */
static void a_configuration_of_too_many_references_is_refused_at_once(void **state)
{
    static const char reference[] = "${steward:hang:k}";
    const size_t count = (size_t)1 << 16;
    struct worker_run *w = start("", "");
    char *note = malloc(count * (sizeof(reference) - 1) + 1);
    struct http_reply reply;

    (void)state;
    for (size_t i = 0; i < count; i++)
        memcpy(note + i * (sizeof(reference) - 1), reference, sizeof(reference));
    reply = worker_run_expect(w, 400, "PUT", "/connectors/a/config",
                              scratch_text("{%s, \"note\": \"%s\"}", source("/in", "t"), note));
    assert_non_null(strstr(reply.body, "The connector's configuration is too large"));
    free(note);
}

/* At once: the provider may read it at any moment. */
static void replace(const char *file, const char *text)
{
    const char *fresh = scratch_path("values.new");

    scratch_write_text(fresh, text);
    assert_int_equal(rename(fresh, file), 0);
}

static bool has_line(const struct worker_run *w, const char *topic)
{
    return topic_count(w->servers, topic) > 0;
}

static void values_that_change_after_their_time_start_a_connector_again(void **state)
{
    const char *first = scratch_name("first"), *second = scratch_name("second");
    const char *ours = scratch_path("ours.txt"), *theirs = scratch_path("theirs.txt");
    struct worker_run *w =
        start(scratch_text("topic %s\n", first), "config.providers.steward.param.ttl.ms=300\n");
    pid_t host, staying;

    (void)state;
    topic_create(w->servers, first, 1);
    topic_create(w->servers, second, 1);
    scratch_write_text(ours, "a line\n");
    scratch_write_text(theirs, "");
    worker_run_put(w, "follows", source(ours, "${steward:topic}"));
    worker_run_put(
        w, "stays",
        scratch_text("%s, \"config.action.reload\": \"none\"", source(theirs, "${steward:topic}")));
    worker_run_await(w, "follows", "RUNNING", 1, STATE_MS);
    worker_run_await(w, "stays", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, has_line(w, first));
    host = worker_run_host(w, "follows");
    staying = worker_run_host(w, "stays");
    /* The same values again are no reason to start anything. */
    holds_for(1000, worker_run_host(w, "follows") == host);
    replace(scratch_path("values"), scratch_text("topic %s\n", second));
    wait_until(FLOW_MS, worker_run_host(w, "follows") != host);
    worker_run_await(w, "follows", "RUNNING", 1, STATE_MS);
    scratch_append_text(ours, "another line\n");
    wait_until(FLOW_MS, has_line(w, second));
    assert_string_equal(topic_read(w->servers, second, 1, FLOW_MS).records[0].value,
                        "another line");
    assert_int_equal(worker_run_host(w, "stays"), staying);
    assert_true(worker_run_is(w, "stays", "RUNNING", 1));
}

static int times(const char *path, const char *word)
{
    char *text = scratch_read(path, &(size_t){0});
    int count = 0;

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        count++;
    return count;
}

/* Ten times a second is what it has asked for; not for its processes to be started so often. */
static void values_that_cannot_be_read_again_are_not_asked_for_all_the_time(void **state)
{
    static const char *const goes_on = "it goes on with what it has";
    const char *topic = scratch_name("kept"), *file = scratch_path("in.txt");
    struct worker_run *w =
        start(scratch_text("topic %s\n", topic), "config.providers.steward.param.ttl.ms=100\n");
    pid_t host;

    (void)state;
    topic_create(w->servers, topic, 1);
    scratch_write_text(file, "");
    worker_run_put(w, "keeps", source(file, "${steward:topic}"));
    worker_run_await(w, "keeps", "RUNNING", 1, STATE_MS);
    host = worker_run_host(w, "keeps");
    replace(scratch_path("values"), "crash\n");
    wait_until(FLOW_MS, scratch_contains(w->log, goes_on));
    holds_for(2000, times(w->log, goes_on) == 1);
    assert_true(worker_run_is(w, "keeps", "RUNNING", 1));
    assert_int_equal(worker_run_host(w, "keeps"), host);
}

static void a_start_names_what_is_wrong_with_its_plugins(void **state)
{
    struct worker_run *w;

    (void)state;
    w = worker_run_start(&(struct worker_run_options){
        .props = "config.providers=s\nconfig.providers.s.class=Steward\n"
                 "config.providers.s.param.fail=the cellar is under water\n",
        .dont_wait = true});
    assert_int_equal(process_wait(w->process, STATE_MS), 2);
    wait_until(1000, scratch_contains(w->log, "config.providers.s.class: config provider s did not "
                                              "start: the cellar is under water"));
    w = worker_run_start(&(struct worker_run_options){
        .name = "second",
        .props = "rest.extension.classes=Warden\nmillrace.rest.filter.fail=no guards today\n",
        .dont_wait = true});
    assert_int_equal(process_wait(w->process, STATE_MS), 2);
    wait_until(1000, scratch_contains(w->log, "Invalid value Warden for configuration "
                                              "rest.extension.classes: no guards today"));
    w = worker_run_start(&(struct worker_run_options){
        .name = "third", .props = "rest.extension.classes=Sentinel\n", .dont_wait = true});
    assert_int_equal(process_wait(w->process, STATE_MS), 2);
    wait_until(1000, scratch_contains(w->log, "Invalid value Sentinel for configuration "
                                              "rest.extension.classes: no plugin in plugin.path"));
}

/* Whoever needs services looks at plugins before it reads the rest of its properties. */
static void a_worker_with_services_looks_at_its_plugins_once(void **state)
{
    struct worker_run *w = start("", "");
    const char *told = scratch_read(w->log, NULL);

    (void)state;
    told = strstr(told, "wrong_magic.so is left out");
    assert_non_null(told);
    assert_null(strstr(told + 1, "wrong_magic.so is left out"));
}

/* --- REST filters ----------------------------------------------------------------------------- */

struct told {
    int status;
    const char *body;
};

/* What curl gets, with one more header. */
static struct told call_with(const struct worker_run *w, const char *method, const char *path,
                             const char *header, const char *body)
{
    char *output;
    size_t len;
    struct told told;

    process_shell(scratch_text("curl -s -m 30 -X %s -H '%s' -H 'Content-Type: application/json' "
                               "-w '%%{http_code}' -d '%s' '%s%s'",
                               method, header, body, w->url, path),
                  40000, &output);
    len = strlen(output);
    assert_true(len >= 3);
    told.status = (int)strtol(output + len - 3, NULL, 10);
    output[len - 3] = '\0';
    told.body = output;
    return told;
}

static struct told call(const struct worker_run *w, const char *method, const char *path,
                        const char *header)
{
    return call_with(w, method, path, header, "{}");
}

static void assert_told(struct told told, int status, const char *part)
{
    if (told.status != status || strstr(told.body, part) == NULL)
        fail_msg("%d with \"%s\" where %d with \"%s\" belongs", told.status, told.body, status,
                 part);
}

static void a_filter_says_who_may_do_what_and_fails_closed(void **state)
{
    static const char *const closed = "A REST filter did not say whether this request may pass";
    static const char *const ways[] = {"crash", "hang", "odd", "fail", "silent", "positive"};
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .props = "rest.extension.classes=org.example.WardenRestExtension\n"
                 "millrace.rest.filter.badge=silver\nmillrace.services.timeout.ms=5000\n"});

    (void)state;
    assert_told(call(w, "GET", "/connectors", "X-Badge: tin"), 200, "[]");
    assert_told(call(w, "DELETE", "/connectors/a", "X-Badge: tin"), 403,
                "{\"error_code\":403,\"message\":\"Without a badge nothing is changed\"}");
    assert_told(call(w, "OPTIONS", "/connectors", "X-Badge: tin"), 403, "Without a badge");
    assert_told(call(w, "PUT", "/connectors/a/config", "Expect: 100-continue"), 403,
                "Without a badge");
    assert_told(call(w, "DELETE", "/connectors/a", "X-Badge: silver"), 404, "a not found");
    assert_told(call(w, "PUT", "/connectors/a/config", "X-Badge: silver"), 400, "");
    assert_told(call(w, "GET", "/connectors/a%20b?x=y", "X-Warden: teapot"), 418,
                "127.0.0.1 GET /connectors/a%20b?x=y");
    assert_told(call(w, "GET --request-target http://elsewhere:1/connectors/a?x=y", "/",
                     "X-Warden: teapot"),
                418, "127.0.0.1 GET /connectors/a?x=y");
    assert_told(call(w, "GET", "/no/such/thing", "X-Warden: teapot"), 404, "");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        assert_told(call(w, "GET", "/connectors", scratch_text("X-Warden: %s", ways[i])), 503,
                    closed);
    assert_told(call(w, "GET", "/connectors", "X-Badge: tin"), 200, "[]");
    assert_false(scratch_contains(w->log, "silver"));
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(worker_run_processes(w), 0);
}

/* --- in a cluster ----------------------------------------------------------------------------- */

/* The first one leads: it was alone when the others came. */
static void cluster_start(struct worker_run **members, const char *props)
{
    static const char *const names[MEMBERS] = {"w1", "w2", "w3"};
    const char *group = scratch_name("cluster");

    for (int i = 0; i < MEMBERS; i++)
        members[i] = worker_run_start(&(struct worker_run_options){
            .name = names[i], .group = group, .props = scratch_text("%s%s", QUICK, props)});
}

static bool is_at(const struct worker_run *w, const char *conn, const char *what)
{
    return strcmp(worker_run_state(w, conn, scratch_text("%s.worker_id", what)),
                  scratch_text("127.0.0.1:%d", w->port)) == 0;
}

static struct worker_run *with_task(struct worker_run *const *members, const char *conn)
{
    for (int i = 0; i < MEMBERS; i++)
        if (is_at(members[i], conn, "tasks.0"))
            return members[i];
    fail_msg("nobody has the task of %s", conn);
    return NULL;
}

/* Each follower's connector is created by the leader, and its task runs on any of the three. */
static void a_provider_serves_whatever_worker_has_the_work(void **state)
{
    const char *first = scratch_name("first"), *second = scratch_name("second");
    const char *values = scratch_path("values"), *file = scratch_path("in.txt");
    struct worker_run *members[MEMBERS], *home;
    pid_t host, service;

    (void)state;
    scratch_write_text(values, scratch_text("topic %s\n", first));
    scratch_write_text(file, "a line\n");
    cluster_start(members, scratch_text(provider, values, ""));
    topic_create(members[0]->servers, first, 1);
    topic_create(members[0]->servers, second, 1);
    worker_run_put(members[1], "a", source(file, "${steward:topic}"));
    worker_run_put(members[2], "b", source(file, "${steward:topic}"));
    for (int i = 0; i < MEMBERS; i++)
        for (const char *conn = "a"; conn != NULL; conn = *conn == 'a' ? "b" : NULL)
            worker_run_await(members[i], conn, "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, topic_count(members[0]->servers, first) == 2);
    /* What is under way needs no provider. */
    home = with_task(members, "a");
    host = worker_run_host(home, "a");
    service = service_of(home, "steward");
    kill(service, SIGKILL);
    scratch_append_text(file, "another line\n");
    wait_until(FLOW_MS, topic_count(members[0]->servers, first) == 4);
    assert_int_equal(worker_run_host(home, "a"), host);
    assert_true(worker_run_is(members[0], "a", "RUNNING", 1));
    /* What starts asks it, and its next process answers. */
    replace(values, scratch_text("topic %s\n", second));
    wait_until(STATE_MS,
               worker_run_call(members[1], "POST", "/connectors/a/tasks/0/restart", NULL).status ==
                   204);
    worker_run_await(members[2], "a", "RUNNING", 1, STATE_MS);
    scratch_append_text(file, "a third\n");
    assert_string_equal(topic_read(members[0]->servers, second, 1, FLOW_MS).records[0].value,
                        "a third");
    assert_int_not_equal(service_of(home, "steward"), service);
    for (int i = 0; i < MEMBERS; i++)
        assert_hidden(members[i], "a");
}

/* As in Java: of what the client sent, Authorization alone goes on to who leads, and to who has the
 * connector; there it is asked about anew. */
static void a_filter_is_asked_on_each_worker_that_a_request_comes_to(void **state)
{
    static const char *const badge = "Authorization: Badge silver";
    struct worker_run *members[MEMBERS];

    (void)state;
    cluster_start(members, "rest.extension.classes=Warden\nmillrace.rest.filter.badge=silver\n"
                           "millrace.services.timeout.ms=5000\n");
    for (int i = 0; i < MEMBERS; i++) {
        assert_told(call(members[i], "DELETE", "/connectors/a", "X-Badge: tin"), 403,
                    "Without a badge nothing is changed");
        assert_told(call(members[i], "DELETE", "/connectors/a", badge), 404, "a not found");
        /* Let through here, and sent on without what let it through. */
        assert_told(call(members[i], "DELETE", "/connectors/a", "X-Badge: silver"),
                    i == 0 ? 404 : 403, i == 0 ? "a not found" : "Without a badge");
        assert_told(call(members[i], "DELETE", "/connectors/a?forward=false", badge),
                    i == 0 ? 404 : 409, i == 0 ? "a not found" : "conflicting operation");
    }
    /* Its next process is asked; and not about what workers sign, such as the task's
     * configuration. */
    kill(service_of(members[0], "filter.Warden"), SIGKILL);
    scratch_write_text(scratch_path("in.txt"), "a line\n");
    for (int i = 0; i < MEMBERS; i++) {
        const char *conn = scratch_text("c%d", i), *topic = scratch_name("lines");

        assert_told(call_with(members[i], "PUT", scratch_text("/connectors/%s/config", conn), badge,
                              scratch_text("{%s}", source(scratch_path("in.txt"), topic))),
                    201, conn);
        worker_run_await(members[i], conn, "RUNNING", 1, STATE_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(values_reach_the_worker_and_its_connectors_and_nobody_else),
        scratch_test(a_value_is_its_reference_wherever_a_connector_carries_it),
        scratch_test(a_provider_that_misbehaves_fails_whoever_asked_alone),
        scratch_test(nothing_of_a_service_outlives_its_worker),
        scratch_test(a_configuration_of_too_many_references_is_refused_at_once),
        scratch_test(values_that_change_after_their_time_start_a_connector_again),
        scratch_test(values_that_cannot_be_read_again_are_not_asked_for_all_the_time),
        scratch_test(a_filter_says_who_may_do_what_and_fails_closed),
        scratch_test(a_start_names_what_is_wrong_with_its_plugins),
        scratch_test(a_worker_with_services_looks_at_its_plugins_once),
        scratch_test(a_provider_serves_whatever_worker_has_the_work),
        scratch_test(a_filter_is_asked_on_each_worker_that_a_request_comes_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
