/* SPDX-License-Identifier: Apache-2.0 */
/* Files, records and settings as they should not be, through the whole worker: what arrives all the
 * same, what fails, and the text that the user reads then. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FLOW_MS 20000

static struct worker_run *worker(void)
{
    return worker_run_start(&(struct worker_run_options){0});
}

static void put_source(const struct worker_run *w, const char *file, const char *topic)
{
    worker_run_put(w, "source",
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                                "\"topic\": \"%s\"",
                                file, topic));
}

static void put_sink(const struct worker_run *w, const char *name, const char *file,
                     const char *topic, const char *more)
{
    worker_run_put(w, name,
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"file\": \"%s\", "
                                "\"topics\": \"%s\"%s",
                                file, topic, more));
}

/* The task fails within a few seconds, and its trace has each of these texts (ended by NULL). */
static void assert_fails_with(const struct worker_run *w, const char *conn,
                              const char *const *texts)
{
    const char *trace;

    wait_until(FLOW_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_string_equal(worker_run_state(w, conn, "connector.state"), "RUNNING");
    trace = worker_run_state(w, conn, "tasks.0.trace");
    for (; *texts != NULL; texts++)
        if (strstr(trace, *texts) == NULL)
            fail_msg("no \"%s\" in the trace: %s", *texts, trace);
}

#define JSON ", \"value.converter\": \"org.apache.kafka.connect.json.JsonConverter\""

static void a_record_that_is_no_json_fails_the_sink_by_its_place(void **state)
{
    const char *topic = scratch_name("no-json"), *out = scratch_path("out.txt");
    struct worker_run *w = worker();

    (void)state;
    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, NULL, "{\"a\": 1}");
    topic_produce(w->servers, topic, 0, NULL, "no json");
    topic_produce(w->servers, topic, 0, NULL, "{\"a\": 2}");
    put_sink(w, topic, out, topic, JSON ", \"value.converter.schemas.enable\": \"false\"");
    assert_fails_with(w, topic,
                      (const char *const[]){"JsonConverter", scratch_text("%s-0@1", topic), NULL});
    assert_true(topic_committed(w->servers, scratch_text("connect-%s", topic), topic, 0) <= 1);
    put_sink(w, topic, out, topic,
             JSON ", \"value.converter.schemas.enable\": \"false\", \"errors.tolerance\": \"all\"");
    wait_until(FLOW_MS, scratch_contains(out, "{a=2}"));
    wait_until(FLOW_MS,
               topic_committed(w->servers, scratch_text("connect-%s", topic), topic, 0) == 3);
}

static void a_record_without_its_envelope_says_what_was_expected(void **state)
{
    const char *topic = scratch_name("no-envelope");
    struct worker_run *w = worker();

    (void)state;
    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, NULL, "{\"a\": 1}");
    put_sink(w, topic, scratch_path("out.txt"), topic, JSON);
    assert_fails_with(
        w, topic,
        (const char *const[]){"\"schema\" and \"payload\" fields", "schemas.enable", NULL});
}

static void a_full_disk_fails_the_sink_and_commits_nothing(void **state)
{
    const char *topic = scratch_name("full");
    struct worker_run *w = worker();

    (void)state;
    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, NULL, "lost?");
    put_sink(w, topic, "/dev/full", topic, "");
    assert_fails_with(w, topic,
                      (const char *const[]){"/dev/full", "No space left on device", NULL});
    assert_int_equal(topic_committed(w->servers, scratch_text("connect-%s", topic), topic, 0), -1);
    put_sink(w, topic, scratch_path("out.txt"), topic, "");
    wait_until(FLOW_MS, scratch_contains(scratch_path("out.txt"), "lost?"));
}

static void odd_bytes_of_a_file_arrive(void **state)
{
    static const char lines[] = "zero \0 inside\nbroken \xff\xfe utf-8\ncut \xe2\x82\nlast\r\n";
    const char *topic = scratch_name("odd"), *file = scratch_path("in.txt");
    struct worker_run *w = worker();
    struct topic_records got;

    (void)state;
    scratch_write(file, lines, sizeof(lines) - 1);
    put_source(w, file, topic);
    got = topic_read(w->servers, topic, 4, FLOW_MS);
    assert_int_equal(got.count, 4);
    assert_int_equal(got.records[0].value_len, 13);
    assert_memory_equal(got.records[0].value, "zero \0 inside", 13);
    assert_string_equal(got.records[1].value, "broken \xef\xbf\xbd\xef\xbf\xbd utf-8");
    assert_string_equal(got.records[2].value, "cut \xef\xbf\xbd");
    assert_string_equal(got.records[3].value, "last");
}

static void a_line_of_100_mib_fails_its_task_and_nothing_else(void **state)
{
    const char *topic = scratch_name("huge"), *file = scratch_path("in.txt");
    struct worker_run *w = worker();
    size_t len = 100u * 1024 * 1024;
    char *line = malloc(len);

    (void)state;
    assert_non_null(line);
    memset(line, 'x', len);
    line[len - 1] = '\n';
    scratch_write_text(file, "before\n");
    scratch_append(file, line, len);
    free(line);
    put_source(w, file, topic);
    assert_fails_with(w, "source", (const char *const[]){"max.request.size", NULL});
    assert_string_equal(topic_read(w->servers, topic, 1, FLOW_MS).records[0].value, "before");
    assert_int_equal(topic_count(w->servers, topic), 1);
    assert_true(worker_run_expect(w, 200, "GET", "/connectors", NULL).seconds < 0.5);
    remove(file);
}

static void a_file_that_is_none_is_told(void **state)
{
    const char *topic = scratch_name("folder"), *file = scratch_path("folder");
    struct worker_run *w = worker();

    (void)state;
    assert_int_equal(mkdir(file, 0755), 0);
    put_source(w, file, topic);
    assert_fails_with(w, "source", (const char *const[]){file, "directory", NULL});
    put_sink(w, "sink", scratch_path("no/such/out.txt"), topic, "");
    assert_fails_with(w, "sink", (const char *const[]){"no/such", NULL});
}

static void a_file_that_comes_late_goes_and_comes_again_is_followed(void **state)
{
    const char *topic = scratch_name("late"), *file = scratch_path("in.txt");
    struct worker_run *w = worker();

    (void)state;
    put_source(w, file, topic);
    worker_run_await(w, "source", "RUNNING", 1, FLOW_MS);
    scratch_write_text(file, "late\n");
    topic_read(w->servers, topic, 1, FLOW_MS);
    remove(file);
    scratch_write_text(scratch_path("new.txt"), "new\n");
    assert_int_equal(rename(scratch_path("new.txt"), file), 0);
    assert_string_equal(topic_read(w->servers, topic, 2, FLOW_MS).records[1].value, "new");
}

/* Settings that no client can work with are refused when they are given, by name, and not met
 * later. */
static void settings_that_cannot_work_are_refused_by_name(void **state)
{
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"producer.override.plugin.library.paths", "/tmp/evil.so", "plugin.library.paths"},
        {"producer.override.sasl.mechanism",
         "NO-SUCH\", \"producer.override.security.protocol\": \"SASL_PLAINTEXT", "NO-SUCH"},
        {"producer.override.ssl.truststore.location",
         "/x.jks\", \"producer.override.security.protocol\": \"SSL", "JKS"},
        {"tasks.max", "0", "tasks.max"},
        {"tasks.max", "many", "tasks.max"},
        {"errors.tolerance", "some", "errors.tolerance"},
        {"value.converter", "NoSuchConverter", "NoSuchConverter"},
        {"batch.size", "x", "batch.size"},
    };
    struct worker_run *w = worker();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *body =
            scratch_text("{\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", "
                         "\"%s\": \"%s\"}",
                         cases[i].key, cases[i].value);
        struct http_reply reply = worker_run_call(w, "PUT", "/connectors/bad/config", body);

        if (reply.status != 400 || strstr(http_at(reply.json, "message"), cases[i].says) == NULL)
            fail_msg("%s=%s: %d %s", cases[i].key, cases[i].value, reply.status, reply.body);
    }
    worker_run_expect(w, 404, "GET", "/connectors/bad", NULL);
}

static void a_bad_bootstrap_address_ends_the_start(void **state)
{
    static const char *const bad[] = {"nonsense", "host:port", "host:0", "host:70000", ""};
    const char *config = scratch_path("bad.properties");
    char *output;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        scratch_write_text(config,
                           scratch_text("bootstrap.servers=%s\nlisteners=http://127.0.0.1:%d\n"
                                        "key.converter=StringConverter\n"
                                        "value.converter=StringConverter\n"
                                        "offset.storage.file.filename=%s\nmillrace.run.dir=%s\n",
                                        bad[i], worker_run_free_port(), scratch_path("offsets"),
                                        scratch_path("run")));
        assert_int_equal(
            process_shell(scratch_text("'%s/millrace' standalone '%s'", TEST_BUILD, config),
                          FLOW_MS, &output),
            2);
        if (strstr(output, "bad.properties:1") == NULL ||
            strstr(output, "bootstrap.servers") == NULL)
            fail_msg("bootstrap.servers=%s: %s", bad[i], output);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_record_that_is_no_json_fails_the_sink_by_its_place),
        scratch_test(a_record_without_its_envelope_says_what_was_expected),
        scratch_test(a_full_disk_fails_the_sink_and_commits_nothing),
        scratch_test(odd_bytes_of_a_file_arrive),
        scratch_test(a_line_of_100_mib_fails_its_task_and_nothing_else),
        scratch_test(a_file_that_is_none_is_told),
        scratch_test(a_file_that_comes_late_goes_and_comes_again_is_followed),
        scratch_test(settings_that_cannot_work_are_refused_by_name),
        scratch_test(a_bad_bootstrap_address_ends_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
