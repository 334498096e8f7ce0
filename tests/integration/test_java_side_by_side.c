/* SPDX-License-Identifier: Apache-2.0 */
/* The real Java worker and two of ours in one group, whoever leads: work is shared by the
 * protocol's rules, each answers the same, a change may be asked of any, and connectors run on all.
 * test_java_handover.c has the one after the other. */
#include "support/java_worker.h"
#include "support/kafka_run.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 120000 /* bounds a fault: two JVMs on a busy machine take their time */
#define QUICK \
    "session.timeout.ms=6000\nheartbeat.interval.ms=200\nscheduled.rebalance.max.delay.ms=0\n"
#define SOURCE "org.apache.kafka.connect.file.FileStreamSourceConnector"
#define SINK "org.apache.kafka.connect.file.FileStreamSinkConnector"

static struct worker_run *member(const char *group, const char *name)
{
    return worker_run_start(
        &(struct worker_run_options){.name = name, .group = group, .props = QUICK});
}

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text("\"connector.class\": \"" SOURCE "\", \"tasks.max\": \"1\", "
                        "\"file\": \"%s\", \"topic\": \"%s\"",
                        file, topic);
}

/* A status comes to each by the topic, at its own moment: they agree in the end. */
static void assert_same_answers(struct worker_run *const *workers, size_t count, const char *path)
{
    int64_t from = scratch_now_ms();
    const char *first = "", *other = "";

    while (scratch_since(from) < WAIT_MS) {
        size_t same = 1;

        first = rest_answer_get(workers[0], path);
        while (same < count && strcmp(first, other = rest_answer_get(workers[same], path)) == 0)
            same++;
        if (same == count)
            return;
        scratch_pause(20);
    }
    fail_msg("GET %s differs:\n%s\n%s", path, first, other);
}

/* The session key stands in the topic as both write it. */
static void assert_session_key(const char *group)
{
    struct topic_records records =
        topic_read(kafka_run_servers(), scratch_text("%s-configs", group), 1, WAIT_MS);
    const char *value = "";
    int end = 0;

    for (size_t i = 0; i < records.count; i++)
        if (strcmp(records.records[i].key, "session-key") == 0)
            value = records.records[i].value;
    sscanf(value,
           "{\"key\":\"%*44[A-Za-z0-9+/=]\",\"algorithm\":\"HmacSHA256\","
           "\"creation-timestamp\":%*13[0-9]}%n",
           &end);
    if (end == 0 || value[end] != '\0')
        fail_msg("session-key => %s", value);
}

/* --- a mixed group ---------------------------------------------------------------------------- */

#define MEMBERS 3
#define CONNS 6

struct mixed {
    const char *group;
    struct worker_run *w[MEMBERS]; /* two of ours, then Java */
    const char *topic;
    const char *file;
    int64_t lines; /* in the file */
};

static struct mixed mixed_start(void)
{
    struct mixed m = {
        .group = scratch_name("mixed"), .topic = scratch_name("lines"), .file = scratch_path("in")};

    m.w[2] = java_worker_start(NULL, m.group, QUICK);
    m.w[0] = member(m.group, "w1");
    m.w[1] = member(m.group, "w2");
    java_worker_await(m.w[2]);
    return m;
}

static const char *conn_name(int i)
{
    return scratch_text("s%d", i);
}

static void create(const struct mixed *m)
{
    for (int i = 0; i < CONNS; i++)
        rest_answer_expect(
            m->w[i % MEMBERS], 201, "PUT", scratch_text("/connectors/%s/config", conn_name(i)),
            scratch_text("{%s}", source_config(m->file, scratch_text("%s-%d", m->topic, i))));
}

/* Connectors, or their tasks, that w sees on this worker. */
static int held_by(const struct worker_run *w, const struct worker_run *by, const char *item)
{
    const char *id = scratch_text("127.0.0.1:%d", by->port);
    int held = 0;

    for (int i = 0; i < CONNS; i++)
        held += strcmp(worker_run_state(w, conn_name(i), scratch_text("%s.worker_id", item)), id) ==
                    0 &&
                strcmp(worker_run_state(w, conn_name(i), scratch_text("%s.state", item)),
                       "RUNNING") == 0;
    return held;
}

static void assert_balanced(struct worker_run *const *workers, int count)
{
    for (int i = 0; i < count; i++) {
        wait_until(WAIT_MS, held_by(workers[0], workers[i], "connector") == CONNS / count);
        wait_until(WAIT_MS, held_by(workers[0], workers[i], "tasks.0") == CONNS / count);
    }
}

/* One more line comes out of each connector, wherever it runs now; none came twice. */
static void assert_flow(struct mixed *m)
{
    scratch_append_text(m->file, "line\n");
    m->lines++;
    for (int i = 0; i < CONNS; i++)
        wait_until(WAIT_MS,
                   topic_count(m->w[0]->servers, scratch_text("%s-%d", m->topic, i)) == m->lines);
}

static void assert_one_cluster(struct mixed *m)
{
    static const char *const fixed[] = {"/connectors",
                                        "/connectors?expand=status&expand=info",
                                        "/connectors?expand=info",
                                        "/connectors?expand=none",
                                        "/connectors/none",
                                        "/connectors/none/config",
                                        "/connectors/none/status",
                                        "/connectors/none/tasks",
                                        "/connectors/s0/tasks/9/status",
                                        "/connectors/s0/tasks/x/status"};
    static const char *const each[] = {"", "/config", "/status", "/tasks", "/tasks/0/status"};

    assert_balanced(m->w, MEMBERS);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        assert_same_answers(m->w, MEMBERS, fixed[i]);
    for (int i = 0; i < CONNS; i++)
        for (size_t p = 0; p < sizeof(each) / sizeof(*each); p++)
            assert_same_answers(m->w, MEMBERS,
                                scratch_text("/connectors/%s%s", conn_name(i), each[p]));
    assert_flow(m);
}

/* --- changes, asked of each ------------------------------------------------------------------- */

struct change {
    const char *method;
    const char *path;  /* behind the connector's name; "/" the list */
    const char *body;  /* @: a name, new in each phase; NULL none */
    const char *state; /* in which all is afterwards; NULL gone, or never there */
    int tasks;
};

#define FILE_BODY "\"connector.class\": \"" SINK "\", \"file\": \"/dev/null\""

static const struct change changes[] = {
    {"PUT", "/pause", NULL, NULL, 0},
    {"POST", "/restart", NULL, NULL, 0},
    {"PATCH", "/config", "{\"topics\": \"@\"}", NULL, 0},
    {"PUT", "/config", "{" FILE_BODY "}", NULL, 0}, /* no topic */
    {"PUT", "/config", "{\"connector.class\": \"none.Such@\"}", NULL, 0},
    {"PUT", "/config", "{\"name\": \"other\", " FILE_BODY ", \"topics\": \"@\"}", NULL, 0},
    {"PUT", "/config", "{" FILE_BODY ", \"topics\": \"@\"}", "RUNNING", 1},
    {"PUT", "/config", "{" FILE_BODY ", \"topics\": \"@\", \"batch.size\": \"7\"}", "RUNNING", 1},
    {"PATCH", "/config", "{\"batch.size\": \"8\", \"topics\": \"@-2\"}", "RUNNING", 1},
    {"PUT", "/pause", NULL, "PAUSED", 1},
    {"PATCH", "/config", "{\"batch.size\": null}", "PAUSED", 1},
    {"PUT", "/resume", NULL, "RUNNING", 1},
    {"POST", "/restart", NULL, "RUNNING", 1},
    {"POST", "/tasks/0/restart", NULL, "RUNNING", 1},
    {"POST", "/tasks/5/restart", NULL, "RUNNING", 1},
    {"PUT", "/stop", NULL, "STOPPED", 0},
    {"PUT", "/pause", NULL, "PAUSED", 0},
    {"PUT", "/resume", NULL, "RUNNING", 1},
    {"POST", "/restart?onlyFailed=true", NULL, "RUNNING", 1},
    {"POST", "/restart?includeTasks=true", NULL, "RUNNING", 1},
    {"DELETE", "", NULL, NULL, 0},
    {"DELETE", "", NULL, NULL, 0},
};

/* The connector that is changed through worker i. */
static const char *asked(int i)
{
    return scratch_text("asked%d", i);
}

/* Of an answer, what must not depend on who was asked: not its own port, not what is installed
 * there. */
static const char *told(const struct mixed *m, int i, const struct http_reply *reply)
{
    const char *text =
        scratch_text("%d %s %s", reply->status, reply->location,
                     reply->json != NULL ? rest_answer_canonical(reply->json) : reply->body);
    const char *plugins;

    for (int k = 0; k < MEMBERS; k++)
        text = rest_answer_replaced(text, scratch_text("127.0.0.1:%d", m->w[k]->port),
                                    k == i && reply->location[0] != '\0' ? "me" : "a worker");
    text = rest_answer_replaced(text, asked(i), "asked");
    text = rest_answer_replaced(text, "\"UNASSIGNED\"", "\"RUNNING\""); /* balanced away just now */
    text = rest_answer_replaced(text, "\"version\":null", "\"version\":\"4.3.1\"");
    if ((plugins = strstr(text, "available connectors are:")) != NULL)
        text = scratch_text("%.*s", (int)(plugins - text), text);
    return text;
}

static void await_change(const struct mixed *m, const struct change *change)
{
    for (int i = 0; i < MEMBERS; i++) {
        const struct worker_run *other = m->w[(i + 1) % MEMBERS];

        if (change->state != NULL)
            worker_run_await(other, asked(i), change->state, change->tasks, WAIT_MS);
        else
            wait_until(WAIT_MS,
                       rest_answer_call(other, "GET",
                                        scratch_text("/connectors/%s/status", asked(i)), NULL)
                               .status == 404);
    }
}

static void ask_all(const struct mixed *m, const struct change *change)
{
    const char *first = NULL;
    const char *body =
        change->body != NULL
            ? rest_answer_replaced(change->body, "@",
                                   scratch_text("%s-asked-%d", m->topic, (int)m->lines))
            : NULL;

    for (int i = 0; i < MEMBERS; i++) {
        struct http_reply reply =
            rest_answer_call(m->w[i], change->method,
                             scratch_text("/connectors/%s%s", asked(i), change->path), body);
        const char *now = told(m, i, &reply);

        if (first == NULL)
            first = now;
        else if (strcmp(first, now) != 0)
            fail_msg("%s %s through w%d:\n%s\nbut through w1:\n%s", change->method, change->path,
                     i + 1, now, first);
    }
    await_change(m, change);
}

/* Of those that this worker has. */
static const char *one_on(const struct mixed *m, const struct worker_run *by, const char *item)
{
    const char *id = scratch_text("127.0.0.1:%d", by->port);

    for (int i = 0; i < CONNS; i++)
        if (strcmp(worker_run_state(m->w[0], conn_name(i), scratch_text("%s.worker_id", item)),
                   id) == 0)
            return conn_name(i);
    fail_msg("%s has no %s", by->url, item);
    return NULL;
}

/* Asked of each, of what each has: to the leader and on to the owner, in both directions. */
static void restart_everywhere(const struct mixed *m)
{
    for (int i = 0; i < MEMBERS * MEMBERS; i++) {
        const struct worker_run *w = m->w[i % MEMBERS], *owner = m->w[i / MEMBERS];

        rest_answer_expect(w, 204, "POST",
                           scratch_text("/connectors/%s/restart", one_on(m, owner, "connector")),
                           NULL);
        rest_answer_expect(
            w, 204, "POST",
            scratch_text("/connectors/%s/tasks/0/restart", one_on(m, owner, "tasks.0")), NULL);
    }
}

static void assert_changes(struct mixed *m)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
        ask_all(m, &changes[i]);
    restart_everywhere(m);
    for (int i = 0; i < CONNS; i++)
        worker_run_await(m->w[i % MEMBERS], conn_name(i), "RUNNING", 1, WAIT_MS);
    assert_flow(m);
}

static void a_mixed_group_is_one_cluster_whoever_leads(void **state)
{
    struct mixed m = mixed_start();

    (void)state;
    assert_false(rest_answer_leads(m.w[2]));
    assert_session_key(m.group);
    create(&m);
    assert_one_cluster(&m);
    assert_changes(&m);
    assert_int_equal(worker_run_stop(m.w[0]), 0);
    assert_int_equal(worker_run_stop(m.w[1]), 0);
    wait_until(WAIT_MS, rest_answer_leads(m.w[2]));
    assert_balanced(m.w + 2, 1);
    assert_flow(&m);
    worker_run_again(m.w[0]);
    worker_run_again(m.w[1]);
    assert_true(rest_answer_leads(m.w[2]));
    assert_one_cluster(&m);
    assert_changes(&m);
    java_worker_kill(m.w[2]);
    assert_balanced(m.w, 2);
    scratch_append_text(m.file, "line\n");
    for (int i = 0; i < CONNS; i++)
        wait_until(WAIT_MS,
                   topic_count(m.w[0]->servers, scratch_text("%s-%d", m.topic, i)) > m.lines);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_mixed_group_is_one_cluster_whoever_leads),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("java side by side", tests, NULL, NULL);
}
