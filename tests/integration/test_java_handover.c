/* SPDX-License-Identifier: Apache-2.0 */
/* The real Java worker and ours, one after the other on the same topics: Java hands fifty
 * connectors over to us and takes them back, and a class that only Java has is kept for it. Judged
 * by what each shows over REST, by every record in the topics, and by the lines that came out. */
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
#define PATIENCE_MS 30000
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

#define SOURCES 30 /* r0.. */
#define SINKS 10   /* k0.. */
#define PAUSED 4   /* p0.. */
#define STOPPED 4  /* t0.. */
#define MISSING 2  /* m0.., a class that only Java has */
#define MIRROR "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"

struct handover {
    const char *group;
    const char *lines; /* topic of the sources: "<connector> <number>" */
    const char *feed;  /* topic of the sinks */
    int count;         /* of lines of each */
    const char *configs_of_m0;
    const char *offsets_of_m0;
    const char *info_of_m0;
};

static const struct kind {
    char letter;
    int count;
    const char *verb; /* what it was told at last; NULL: to run */
} kinds[] = {{'r', SOURCES, NULL},
             {'k', SINKS, NULL},
             {'p', PAUSED, "pause"},
             {'t', STOPPED, "stop"},
             {'m', MISSING, NULL}};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static const char *member_of(const struct kind *kind, int i)
{
    return scratch_text("%c%d", kind->letter, i);
}

static const char *file_of(const char *conn)
{
    return scratch_path(scratch_text("%s.txt", conn));
}

static const char *config_of(const struct handover *h, const struct kind *kind, const char *conn)
{
    if (kind->letter == 'm')
        return scratch_text("\"connector.class\": \"" MIRROR "\", \"tasks.max\": \"1\", "
                            "\"source.cluster.alias\": \"%s\", \"target.cluster.alias\": \"here\", "
                            "\"source.cluster.bootstrap.servers\": \"%s\", "
                            "\"target.cluster.bootstrap.servers\": \"%s\", "
                            "\"heartbeats.topic.replication.factor\": \"1\"",
                            conn, kafka_run_servers(), kafka_run_servers());
    if (kind->letter == 'k')
        return scratch_text("\"connector.class\": \"" SINK "\", \"file\": \"%s\", "
                            "\"topics\": \"%s\"",
                            file_of(conn), h->feed);
    return source_config(file_of(conn), h->lines);
}

/* For curl: PUT of a connector's configuration. */
static void add_request(const struct handover *h, const struct worker_run *w,
                        const struct kind *kind, const char *conn)
{
    const char *body = scratch_path(scratch_text("%s.json", conn));

    scratch_write_text(body, scratch_text("{%s}", config_of(h, kind, conn)));
    scratch_append_text(scratch_path("create.curl"),
                        scratch_text("%surl = \"%s/connectors/%s/config\"\n"
                                     "request = PUT\n"
                                     "header = \"Content-Type: application/json\"\n"
                                     "data = \"@%s\"\n"
                                     "output = /dev/null\nsilent\nshow-error\nfail\n",
                                     strcmp(conn, "r0") == 0 ? "" : "next\n", w->url, conn, body));
}

/* What the Java worker does not get to run by itself, it does when it is told once more. */
static void await_running(const struct worker_run *java, const char *conn)
{
    int64_t from = scratch_now_ms();

    while (!worker_run_is(java, conn, "RUNNING", 1) && scratch_since(from) < PATIENCE_MS)
        scratch_pause(20);
    if (!worker_run_is(java, conn, "RUNNING", 1)) {
        printf("Java is told again: %s\n",
               rest_answer_get(java, scratch_text("/connectors/%s/status", conn)));
        rest_answer_call(java, "POST",
                         scratch_text("/connectors/%s/restart?includeTasks=true", conn), NULL);
    }
    worker_run_await(java, conn, "RUNNING", 1, WAIT_MS);
}

/* All at once, so that the Java worker makes one round of them and not fifty. */
static void create_all(const struct handover *h, const struct worker_run *w)
{
    char *output;

    for (size_t k = 0; k < KINDS; k++)
        for (int i = 0; i < kinds[k].count; i++)
            add_request(h, w, &kinds[k], member_of(&kinds[k], i));
    if (process_shell(scratch_text("curl --parallel --parallel-immediate --parallel-max 50 "
                                   "--config '%s'",
                                   scratch_path("create.curl")),
                      WAIT_MS, &output) != 0)
        fail_msg("the connectors could not be created: %s", output);
    for (size_t k = 0; k < KINDS; k++)
        for (int i = 0; i < kinds[k].count; i++)
            await_running(w, member_of(&kinds[k], i));
}

static void tell_all(const struct worker_run *w)
{
    for (size_t k = 0; k < KINDS; k++)
        for (int i = 0; kinds[k].verb != NULL && i < kinds[k].count; i++)
            rest_answer_expect(
                w, strcmp(kinds[k].verb, "stop") == 0 ? 204 : 202, "PUT",
                scratch_text("/connectors/%s/%s", member_of(&kinds[k], i), kinds[k].verb), NULL);
    rest_answer_expect(w, 202, "PUT", "/connectors/m1/pause", NULL);
    for (int i = 0; i < PAUSED; i++)
        worker_run_await(w, scratch_text("p%d", i), "PAUSED", 1, WAIT_MS);
    for (int i = 0; i < STOPPED; i++)
        worker_run_await(w, scratch_text("t%d", i), "STOPPED", 0, WAIT_MS);
    worker_run_await(w, "m1", "PAUSED", 1, WAIT_MS);
}

/* Texts of many lines: names the first that differs. */
static void assert_same(const char *what, const char *now, const char *before)
{
    size_t same = 0, line = 0;

    for (; now[same] != '\0' && now[same] == before[same]; same++)
        if (now[same] == '\n')
            line = same + 1;
    if (now[same] != before[same])
        fail_msg("%s: it was\n%.*s\nbut is\n%.*s\nafter\n%.*s", what,
                 (int)strcspn(before + line, "\n"), before + line, (int)strcspn(now + line, "\n"),
                 now + line, (int)line, before);
}

/* --- what stands in the topics ---------------------------------------------------------------- */

static const char *topic_of(const struct handover *h, const char *what)
{
    return scratch_text("%s-%s", h->group, what);
}

static struct topic_records records_of(const struct handover *h, const char *what)
{
    const char *topic = topic_of(h, what);

    return topic_read(kafka_run_servers(), topic, (size_t)topic_count(kafka_run_servers(), topic),
                      WAIT_MS);
}

static bool is_about(const char *key, const char *conn)
{
    static const char *const shapes[] = {"connector-%s",     "task-%s-0",
                                         "commit-%s",        "target-state-%s",
                                         "tasks-fencing-%s", "restart-connector-%s"};
    size_t len = strlen(scratch_text("[\"%s\",", conn));

    if (strncmp(key, scratch_text("[\"%s\",", conn), len) == 0)
        return true;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        if (strcmp(key, rest_answer_replaced(shapes[i], "%s", conn)) == 0)
            return true;
    return false;
}

/* Task configurations come in the order of Java's hash map, everything else as it was given. */
static const char *value_of(const struct topic_record *rec)
{
    json_t *json;
    const char *text;

    if (rec->value == NULL || strncmp(rec->key, "task-", 5) != 0)
        return rec->value != NULL ? rec->value : "null";
    json = json_loads(rec->value, 0, NULL);
    assert_non_null(json);
    text = rest_answer_canonical(json);
    json_decref(json);
    return text;
}

/* All records of a connector from an offset on, or those of all (NULL). */
static const char *written(const struct handover *h, const char *what, const char *conn,
                           int64_t from)
{
    struct topic_records records = records_of(h, what);
    const char *out = "";

    for (size_t i = 0; i < records.count; i++)
        if (records.records[i].offset >= from &&
            (conn == NULL || is_about(records.records[i].key, conn)))
            out = scratch_text("%s%s => %s\n", out, records.records[i].key,
                               value_of(&records.records[i]));
    return out;
}

/* A status without who wrote it when. */
static const char *masked(const char *value)
{
    const char *at = strstr(value, "\"worker_id\":\""), *end;

    if (at == NULL || (end = strstr(at, ",\"version\"")) == NULL)
        return value;
    return scratch_text("%.*s\"worker_id\":W,\"generation\":G%s", (int)(at - value), value, end);
}

/* What a reader of the compacted topic finds. */
static const char *last_of(const struct handover *h, const char *what, const char *key)
{
    struct topic_records records = records_of(h, what);
    const char *last = "none";

    for (size_t i = 0; i < records.count; i++)
        if (strcmp(records.records[i].key, key) == 0)
            last = records.records[i].value != NULL ? records.records[i].value : "null";
    return masked(last);
}

/* --- the same calls of both, and what each wrote ---------------------------------------------- */

#define SEQ_BODY "\"connector.class\": \"" SINK "\", \"file\": \"/dev/null\", \"topics\": \"@\""

static const struct change {
    const char *method;
    const char *path;  /* behind the connector's name */
    const char *body;  /* @: the topic; NULL none */
    const char *state; /* in which it then is; NULL: not waited for */
    int tasks;         /* whose configurations have the note, without a state */
} sequence[] = {
    {"PUT", "/config", "{" SEQ_BODY "}", "RUNNING", 1},
    {"PUT", "/pause", NULL, "PAUSED", 1},
    {"PUT", "/pause", NULL, NULL, 0},
    {"PUT", "/resume", NULL, "RUNNING", 1},
    {"PUT", "/config", "{" SEQ_BODY "}", NULL, 0},
    {"PUT", "/config", "{" SEQ_BODY ", \"note\": \"\\u00e9 \\\"\\\\/\\u0001\"}", NULL, 1},
    {"POST", "/restart", NULL, NULL, 0},
    {"POST", "/tasks/0/restart", NULL, NULL, 0},
    {"POST", "/restart?includeTasks=true", NULL, NULL, 0},
    {"POST", "/restart?onlyFailed=true", NULL, NULL, 0},
    {"PUT", "/stop", NULL, "STOPPED", 0},
    {"PUT", "/stop", NULL, NULL, 0},
    {"PUT", "/config", "{" SEQ_BODY ", \"note\": \"two\"}", NULL, 0},
    {"PUT", "/resume", NULL, "RUNNING", 1},
    {"DELETE", "", NULL, NULL, 0},
};

/* The states that are settled, and all that the config topic got. */
static const char *run_sequence(const struct handover *h, const struct worker_run *w)
{
    int64_t from = topic_count(kafka_run_servers(), topic_of(h, "configs"));
    const char *out = "";

    for (size_t i = 0; i < sizeof(sequence) / sizeof(*sequence); i++) {
        const struct change *change = &sequence[i];
        struct http_reply reply = rest_answer_call(
            w, change->method, scratch_text("/connectors/seq%s", change->path),
            change->body != NULL ? rest_answer_replaced(change->body, "@", h->feed) : NULL);

        out = scratch_text("%s%s %s %d\n", out, change->method, change->path, reply.status);
        if (change->state == NULL && change->tasks > 0)
            wait_until(WAIT_MS,
                       strstr(rest_answer_get(w, "/connectors/seq/tasks"), "note") != NULL);
        if (change->state == NULL)
            continue;
        worker_run_await(w, "seq", change->state, change->tasks, WAIT_MS);
        out = scratch_text("%s%s\n%s\n", out, last_of(h, "status", "status-connector-seq"),
                           last_of(h, "status", "status-task-seq-0"));
    }
    wait_until(WAIT_MS, strcmp(last_of(h, "status", "status-connector-seq"), "null") == 0);
    wait_until(WAIT_MS, strcmp(last_of(h, "status", "status-task-seq-0"), "null") == 0);
    return scratch_text("%s%s", out, written(h, "configs", "seq", from));
}

/* --- lines ------------------------------------------------------------------------------------ */

/* One more line in each file, and one in the topic of the sinks. */
static void add_line(struct handover *h)
{
    const char *number = scratch_text("%d", h->count++);

    for (size_t k = 0; k < KINDS; k++)
        for (int i = 0; kinds[k].letter != 'k' && i < kinds[k].count; i++) {
            const char *conn = member_of(&kinds[k], i);

            scratch_append_text(file_of(conn), scratch_text("%s %s\n", conn, number));
        }
    topic_produce(kafka_run_servers(), h->feed, 0, NULL, number);
}

static int compare_values(const void *a, const void *b)
{
    return strcmp(((const struct topic_record *)a)->value, ((const struct topic_record *)b)->value);
}

/* Exactly this many lines came out of the sources, none twice. */
static void assert_lines(const struct handover *h, int64_t count)
{
    struct topic_records records;
    struct topic_record *sorted;

    wait_until(WAIT_MS, topic_count(kafka_run_servers(), h->lines) == count);
    records = topic_read(kafka_run_servers(), h->lines, (size_t)count, WAIT_MS);
    assert_int_equal(records.count, count);
    sorted = scratch_keep(calloc(records.count, sizeof(*sorted)));
    memcpy(sorted, records.records, records.count * sizeof(*sorted));
    qsort(sorted, records.count, sizeof(*sorted), compare_values);
    for (size_t i = 1; i < records.count; i++)
        if (strcmp(sorted[i - 1].value, sorted[i].value) == 0)
            fail_msg("twice in %s: %s", h->lines, sorted[i].value);
}

/* Each sink has written each line once, in order. */
static void assert_sunk(const struct handover *h)
{
    const char *want = "";

    for (int i = 0; i < h->count; i++)
        want = scratch_text("%s%d\n", want, i);
    for (int i = 0; i < SINKS; i++) {
        const char *file = file_of(scratch_text("k%d", i));

        wait_until(WAIT_MS, scratch_contains(file, scratch_text("%d\n", h->count - 1)));
        assert_string_equal(scratch_read(file, NULL), want);
    }
}

/* --- what is shown ---------------------------------------------------------------------------- */

/* What w shows of all that both can run: where it runs is masked. */
static const char *shown(const struct worker_run *w)
{
    struct http_reply reply =
        rest_answer_expect(w, 200, "GET", "/connectors?expand=status&expand=info", NULL);

    for (int i = 0; i < MISSING; i++)
        json_object_del((json_t *)(uintptr_t)reply.json, scratch_text("m%d", i));
    return rest_answer_replaced(rest_answer_canonical(reply.json),
                                scratch_text("127.0.0.1:%d", w->port), "W");
}

static void assert_shows(const struct worker_run *w, const char *before)
{
    int64_t from = scratch_now_ms();
    const char *now;

    while (strcmp(now = shown(w), before) != 0) {
        if (scratch_since(from) > WAIT_MS)
            fail_msg("it was\n%s\nbut is\n%s", before, now);
        scratch_pause(50);
    }
}

/* --- the hand-over ---------------------------------------------------------------------------- */

static const char *info_of(const struct worker_run *w, const char *conn)
{
    struct http_reply reply =
        rest_answer_expect(w, 200, "GET", scratch_text("/connectors/%s", conn), NULL);

    json_object_del((json_t *)(uintptr_t)reply.json, "type"); /* of what is missing: unknown */
    return rest_answer_canonical(reply.json);
}

/* All states that there are, and one of each kind of record. */
static void java_works(struct handover *h, const struct worker_run *java)
{
    add_line(h);
    add_line(h);
    create_all(h, java);
    assert_lines(h, 2 * (SOURCES + PAUSED + STOPPED));
    assert_sunk(h);
    tell_all(java);
    rest_answer_expect(java, 204, "PUT", "/admin/loggers/org.apache.kafka.connect?scope=cluster",
                       "{\"level\": \"DEBUG\"}");
    topic_produce(kafka_run_servers(), topic_of(h, "configs"), 0, "tasks-fencing-m0",
                  "{\"task-count\":1}");
    wait_until(WAIT_MS, strstr(written(h, "offsets", "m0", 0), "[\"m0\"") != NULL);
}

static void java_hands_over(struct handover *h, struct worker_run *java)
{
    h->info_of_m0 = info_of(java, "m0");
    java_worker_leave(java);
    h->configs_of_m0 = written(h, "configs", "m0", 0);
    h->offsets_of_m0 = written(h, "offsets", "m0", 0);
}

static void assert_untouched(const struct handover *h)
{
    assert_same("configuration of m0", written(h, "configs", "m0", 0), h->configs_of_m0);
    assert_same("offsets of m0", written(h, "offsets", "m0", 0), h->offsets_of_m0);
}

/* A class that only Java has: with ours it is kept and FAILED, and what stands of it in the topics
 * stays. */
static void assert_kept(const struct handover *h, const struct worker_run *ours)
{
    for (int i = 0; i < MISSING; i++) {
        const char *conn = scratch_text("m%d", i);

        worker_run_await(ours, conn, "FAILED", 1, WAIT_MS);
        assert_non_null(strstr(worker_run_state(ours, conn, "connector.trace"), MIRROR));
        assert_non_null(strstr(worker_run_state(ours, conn, "tasks.0.trace"), MIRROR));
        assert_string_equal(worker_run_state(ours, conn, "connector.version"), "null");
        assert_string_equal(worker_run_state(ours, conn, "type"), "unknown");
    }
    assert_same("GET /connectors/m0", info_of(ours, "m0"), h->info_of_m0);
    assert_untouched(h);
}

/* Our life: everything once. Gives the lines that come of it at once. */
static int64_t we_change(const struct handover *h, const struct worker_run *w)
{
    scratch_write_text(file_of("n0"), "n0 0\n");
    rest_answer_expect(w, 202, "PUT", "/connectors/r0/pause", NULL);
    rest_answer_expect(w, 204, "PUT", "/connectors/r1/stop", NULL);
    rest_answer_expect(w, 204, "DELETE", "/connectors/r2", NULL);
    rest_answer_expect(w, 200, "PATCH", "/connectors/r3/config", "{\"note\": \"ours\"}");
    rest_answer_expect(w, 204, "POST", "/connectors/r4/tasks/0/restart", NULL);
    rest_answer_expect(w, 202, "PUT", "/connectors/p0/resume", NULL);
    rest_answer_expect(w, 202, "PUT", "/connectors/t0/resume", NULL);
    rest_answer_expect(w, 201, "PUT", "/connectors/n0/config",
                       scratch_text("{%s}", source_config(file_of("n0"), h->lines)));
    worker_run_await(w, "r0", "PAUSED", 1, WAIT_MS);
    worker_run_await(w, "r1", "STOPPED", 0, WAIT_MS);
    wait_until(WAIT_MS, strstr(rest_answer_get(w, "/connectors/r3/tasks"), "ours") != NULL);
    worker_run_await(w, "r3", "RUNNING", 1, WAIT_MS);
    worker_run_await(w, "p0", "RUNNING", 1, WAIT_MS);
    worker_run_await(w, "t0", "RUNNING", 1, WAIT_MS);
    worker_run_await(w, "n0", "RUNNING", 1, WAIT_MS);
    return 3; /* p0 and t0 catch up, n0's */
}

static void we_take_over(const struct handover *h, const struct worker_run *ours,
                         const char *before)
{
    assert_shows(ours, before);
    assert_sunk(h);
    assert_kept(h, ours);
}

static void java_takes_back(const struct handover *h, struct worker_run *java, const char *before)
{
    int64_t beats = topic_count(kafka_run_servers(), "heartbeats");

    java_worker_again(java);
    assert_shows(java, before);
    assert_sunk(h);
    worker_run_await(java, "m0", "RUNNING", 1, WAIT_MS);
    worker_run_await(java, "m1", "PAUSED", 1, WAIT_MS);
    wait_until(WAIT_MS, topic_count(kafka_run_servers(), "heartbeats") > beats);
    assert_same("GET /connectors/m0", info_of(java, "m0"), h->info_of_m0);
}

/* Both in one group for a while; then Java leaves, and its part comes here. */
static void java_leaves_us_the_rest(struct handover *h, struct worker_run *java,
                                    struct worker_run *ours, const char *before)
{
    worker_run_again(ours);
    wait_until(WAIT_MS, strstr(rest_answer_get(java, "/connectors?expand=status"),
                               scratch_text("127.0.0.1:%d", ours->port)) != NULL);
    java_hands_over(h, java);
    we_take_over(h, ours, before);
}

/* No line is lost or comes twice, and taking over writes no configuration anew: the tasks are made
 * as the other made them. */
static void java_hands_over_and_takes_back(void **state)
{
    struct handover h = {.group = scratch_name("hand"),
                         .lines = scratch_name("lines"),
                         .feed = scratch_name("feed")};
    struct worker_run *java = java_worker_start(NULL, h.group, QUICK), *ours;
    const char *configs, *before, *sequence_of_java;
    int64_t lines = 2 * (SOURCES + PAUSED + STOPPED);

    (void)state;
    java_worker_await(java);
    java_works(&h, java);
    sequence_of_java = run_sequence(&h, java);
    before = shown(java);
    java_hands_over(&h, java);

    configs = written(&h, "configs", NULL, 0);
    add_line(&h);
    ours = member(h.group, "ours");
    we_take_over(&h, ours, before);
    assert_lines(&h, lines += SOURCES);
    assert_same("config topic", written(&h, "configs", NULL, 0), configs);
    assert_same("what the calls wrote", run_sequence(&h, ours), sequence_of_java);
    assert_lines(&h, lines += we_change(&h, ours));
    before = shown(ours);
    assert_int_equal(worker_run_stop(ours), 0);
    assert_untouched(&h);

    configs = written(&h, "configs", NULL, 0);
    add_line(&h);
    java_takes_back(&h, java, before);
    assert_lines(&h, lines += SOURCES - 3 + 2); /* r0, r1, r2 no more; p0, t0 */
    assert_same("config topic", written(&h, "configs", NULL, 0), configs);
    java_leaves_us_the_rest(&h, java, ours, before);
    add_line(&h);
    assert_lines(&h, lines + SOURCES - 3 + 2);
    assert_sunk(&h);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scratch_test(java_hands_over_and_takes_back),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("java hand-over", tests, NULL, NULL);
}
