/* SPDX-License-Identifier: Apache-2.0 */
/* From a file through a source into a topic, and from a topic through a sink into a file: what
 * arrives, in which order, and what is left after a restart. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 15000
#define STATE_MS 10000

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text(
        "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSourceConnector\","
        "\"tasks.max\": \"1\", \"file\": \"%s\", \"topic\": \"%s\"",
        file, topic);
}

static const char *sink_config(const char *file, const char *topic)
{
    return scratch_text(
        "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSinkConnector\","
        "\"tasks.max\": \"1\", \"file\": \"%s\", \"topics\": \"%s\"",
        file, topic);
}

static struct worker_run *worker(void)
{
    return worker_run_start(&(struct worker_run_options){0});
}

/* lines <first> to <last>, each "line <n>\n" */
static const char *numbered(int first, int last)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    for (int i = first; i <= last; i++)
        fprintf(out, "line %d\n", i);
    fclose(out);
    return scratch_keep(text);
}

static void assert_numbered(struct topic_records got, int first, int last)
{
    assert_int_equal(got.count, last - first + 1);
    for (size_t i = 0; i < got.count; i++)
        assert_string_equal(got.records[i].value, scratch_text("line %d", first + (int)i));
}

static void lines_become_records_byte_for_byte(void **state)
{
    static const char lines[] = "plain\n\nÄÖÜ € 🚣\n  spaces \t kept  \ncarriage\r\nnot ended";
    static const char *const values[] = {"plain", "", "ÄÖÜ € 🚣", "  spaces \t kept  ", "carriage"};
    const char *topic = scratch_name("lines"), *file = scratch_path("in.txt");
    struct worker_run *w = worker();
    struct topic_records got;

    (void)state;
    scratch_write_text(file, lines);
    worker_run_put(w, "source", source_config(file, topic));
    got = topic_read(w->servers, topic, 5, FLOW_MS);
    assert_int_equal(got.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(got.records[i].value, values[i]);
        assert_null(got.records[i].key);
        assert_true(got.records[i].timestamp_ms > 0);
    }
    holds_for(500, topic_count(w->servers, topic) == 5);
    scratch_append_text(file, " but now\n");
    got = topic_read(w->servers, topic, 6, FLOW_MS);
    assert_string_equal(got.records[5].value, "not ended but now");
}

static void records_become_lines_byte_for_byte(void **state)
{
    const char *topic = scratch_name("records"), *file = scratch_path("out.txt");
    struct worker_run *w = worker();

    (void)state;
    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, "key", "one");
    topic_produce(w->servers, topic, 0, NULL, "");
    topic_produce(w->servers, topic, 0, NULL, "ÄÖÜ € 🚣");
    topic_produce(w->servers, topic, 0, NULL, NULL);
    worker_run_put(w, "sink", sink_config(file, topic));
    wait_until(FLOW_MS, scratch_contains(file, "null"));
    assert_string_equal(scratch_read(file, NULL), "one\n\nÄÖÜ € 🚣\nnull\n");
    wait_until(FLOW_MS, topic_committed(w->servers, "connect-sink", topic, 0) == 4);
}

static void fifty_thousand_lines_go_round_in_order(void **state)
{
    const char *topic = scratch_name("round"), *in = scratch_path("in.txt"),
               *out = scratch_path("out.txt");
    const char *lines = numbered(1, 50000);
    struct worker_run *w = worker();
    size_t len = 0;

    (void)state;
    scratch_write_text(in, lines);
    worker_run_put(w, "source", source_config(in, topic));
    worker_run_put(w, "sink-round", sink_config(out, topic));
    wait_until(4 * FLOW_MS, scratch_contains(out, "line 50000"));
    assert_string_equal(scratch_read(out, &len), lines);
    assert_int_equal(len, strlen(lines));
}

static void an_ordered_restart_neither_loses_nor_doubles(void **state)
{
    const char *topic = scratch_name("restart"), *file = scratch_path("in.txt"),
               *out = scratch_path("out.txt");
    const char *source_file = scratch_path("source.json"),
               *sink_file = scratch_path("sink.properties");
    const char *files[] = {source_file, sink_file, NULL};
    struct worker_run *w;

    (void)state;
    scratch_write_text(file, numbered(1, 1000));
    scratch_write_text(source_file, scratch_text("{\"name\": \"source\", \"config\": {%s}}",
                                                 source_config(file, topic)));
    scratch_write_text(
        sink_file,
        scratch_text("name=sink-restart\nconnector.class=FileStreamSink\ntopics=%s\nfile=%s\n",
                     topic, out));
    w = worker_run_start(&(struct worker_run_options){.files = files});
    wait_until(FLOW_MS, scratch_contains(out, "line 1000"));
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(worker_run_processes(w), 0);
    assert_int_equal(topic_committed(w->servers, "connect-sink-restart", topic, 0), 1000);
    scratch_append_text(file, numbered(1001, 1500));
    worker_run_again(w);
    wait_until(FLOW_MS, scratch_contains(out, "line 1500"));
    assert_numbered(topic_read(w->servers, topic, 1500, FLOW_MS), 1, 1500);
    assert_string_equal(scratch_read(out, NULL), numbered(1, 1500));
}

/* kill -9 may repeat what was not yet noted, and may not lose or reorder: the topic is a chain of
 * runs, each rising by one, each beginning at or before the number after the last. */
static void assert_no_gap(struct topic_records got, int last)
{
    int highest = 0;

    for (size_t i = 0; i < got.count; i++) {
        int n = 0;

        assert_int_equal(sscanf(got.records[i].value, "line %d", &n), 1);
        if (n > highest + 1)
            fail_msg("after line %d comes line %d: lost", highest, n);
        if (n > highest)
            highest = n;
    }
    assert_int_equal(highest, last);
}

static void killing_the_worker_loses_nothing(void **state)
{
    const char *topic = scratch_name("killed"), *file = scratch_path("in.txt"),
               *source_file = scratch_path("source.json");
    const char *files[] = {source_file, NULL};
    struct worker_run *w;

    (void)state;
    scratch_write_text(file, "");
    scratch_write_text(source_file,
                       scratch_text("{\"name\": \"source\", %s}", source_config(file, topic)));
    w = worker_run_start(&(struct worker_run_options){.files = files});
    for (int round = 0; round < 3; round++) {
        scratch_append_text(file, numbered(round * 5000 + 1, round * 5000 + 5000));
        wait_until(FLOW_MS, topic_count(w->servers, topic) > round * 5000 + 100);
        worker_run_kill(w);
        worker_run_again(w);
    }
    wait_until(FLOW_MS, topic_count(w->servers, topic) >= 15000);
    scratch_append_text(file, numbered(15001, 15001));
    wait_until(FLOW_MS, topic_count(w->servers, topic) >= 15001);
    worker_run_await(w, "source", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS,
               scratch_contains(w->offsets, scratch_text("%zu", strlen(numbered(1, 15001)))));
    assert_no_gap(topic_read(w->servers, topic, 15001, FLOW_MS), 15001);
}

static void a_json_record_passes_with_its_schema(void **state)
{
    static const char json[] =
        "\"value.converter\": \"org.apache.kafka.connect.json.JsonConverter\"";
    const char *topic = scratch_name("json"), *in = scratch_path("in.txt"),
               *out = scratch_path("out.txt");
    struct worker_run *w = worker();
    struct topic_records got;

    (void)state;
    scratch_write_text(in, "say \"hi\"\n");
    worker_run_put(w, "source", scratch_text("%s, %s", source_config(in, topic), json));
    got = topic_read(w->servers, topic, 1, FLOW_MS);
    assert_string_equal(
        got.records[0].value,
        "{\"schema\":{\"type\":\"string\",\"optional\":false},\"payload\":\"say \\\"hi\\\"\"}");
    worker_run_put(w, "sink-json", scratch_text("%s, %s", sink_config(out, topic), json));
    wait_until(FLOW_MS, scratch_contains(out, "say \"hi\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(lines_become_records_byte_for_byte),
        scratch_test(records_become_lines_byte_for_byte),
        scratch_test(fifty_thousand_lines_go_round_in_order),
        scratch_test(an_ordered_restart_neither_loses_nor_doubles),
        scratch_test(killing_the_worker_loses_nothing),
        scratch_test(a_json_record_passes_with_its_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
