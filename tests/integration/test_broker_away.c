/* SPDX-License-Identifier: Apache-2.0 */
/* The broker goes away and comes back, is not there at all, or refuses: nothing is lost, nothing
 * fails that need not, and what fails says why. Each test has a broker of its own. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 30000
#define AWAY_MS 30000

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text(
        "\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", \"topic\": \"%s\"", file,
        topic);
}

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

static bool trace_says(const struct worker_run *w, const char *conn, const char *text)
{
    return strstr(worker_run_state(w, conn, "tasks.0.trace"), text) != NULL;
}

static size_t times_in(const char *path, const char *text)
{
    size_t count = 0;

    for (const char *at = scratch_read(path, NULL); (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

/* 30 s without a broker while lines go on to come: source and sink stay RUNNING, REST answers, and
 * then every line arrives once or more, in order, none missing. The session is short since the
 * restarted broker waits for the member of before. */
static void thirty_seconds_without_a_broker_lose_nothing(void **state)
{
    struct kafka_run *kafka = kafka_run_start("");
    const char *file = scratch_path("in.txt"), *out = scratch_path("out.txt");
    struct worker_run *w = worker_run_start(
        &(struct worker_run_options){.servers = kafka_run_servers_of(kafka),
                                     .props = "consumer.session.timeout.ms=6000\n"
                                              "consumer.heartbeat.interval.ms=2000\n"});
    const char *seen;

    (void)state;
    scratch_write_text(file, numbered(1, 100));
    worker_run_put(w, "source", source_config(file, "away"));
    worker_run_put(
        w, "sink",
        scratch_text(
            "\"connector.class\": \"FileStreamSink\", \"file\": \"%s\", \"topics\": \"away\"",
            out));
    wait_until(FLOW_MS, scratch_contains(out, "line 100"));
    kafka_run_do(kafka, "kill 1");
    scratch_append_text(file, numbered(101, 200));
    holds_for(AWAY_MS, http_get(scratch_text("%s/connectors", w->url)).seconds < 1.0 &&
                           strcmp(worker_run_state(w, "source", "tasks.0.state"), "RUNNING") == 0 &&
                           strcmp(worker_run_state(w, "sink", "tasks.0.state"), "RUNNING") == 0);
    assert_true(scratch_contains(
        w->log, scratch_text("WARN  worker.kafka Kafka at %s does not answer: ", w->servers)));
    kafka_run_do(kafka, "restart 1");
    scratch_append_text(file, numbered(201, 300));
    wait_until(2 * FLOW_MS, scratch_contains(out, "line 300"));
    wait_until(FLOW_MS, scratch_contains(w->log, scratch_text("INFO  worker.kafka Kafka at %s "
                                                              "answers again, after ",
                                                              w->servers)));
    assert_int_equal(times_in(w->log, " does not answer: "), 1);
    assert_int_equal(times_in(w->log, "WARN  host.task.send [source|0] producer: "), 1);
    assert_int_equal(times_in(w->log, "WARN  host.task.sink [sink|0] consumer: "), 1);
    wait_until(FLOW_MS, scratch_contains(w->log, "[source|0] producer: Kafka takes records again"));
    wait_until(FLOW_MS, scratch_contains(w->log, "[sink|0] consumer: records come again"));
    seen = scratch_read(out, NULL);
    for (int i = 1; i <= 300; i++)
        assert_non_null(strstr(seen, scratch_text("line %d\n", i)));
}

static void without_auto_creation_a_missing_topic_fails_by_name(void **state)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_AUTO_CREATE=false");
    const char *file = scratch_path("in.txt");
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .servers = kafka_run_servers_of(kafka),
        .props = "producer.max.block.ms=3000\nproducer.delivery.timeout.ms=3000\n"
                 "producer.request.timeout.ms=2000\n"});

    (void)state;
    scratch_write_text(file, "a\n");
    worker_run_put(w, "source", source_config(file, "not-there"));
    wait_until(FLOW_MS, strcmp(worker_run_state(w, "source", "tasks.0.state"), "FAILED") == 0);
    assert_true(trace_says(w, "source", "not-there"));
    topic_create(w->servers, "not-there", 1);
    worker_run_expect(w, 204, "POST", "/connectors/source/tasks/0/restart", NULL);
    topic_read(w->servers, "not-there", 1, FLOW_MS);
}

static void a_record_that_the_broker_refuses_for_size_fails_the_task(void **state)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_EXTRA=message.max.bytes=1000");
    const char *file = scratch_path("in.txt");
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.servers = kafka_run_servers_of(kafka)});
    char *large = scratch_keep(malloc(20002));

    (void)state;
    memset(large, 'x', 20000);
    large[20000] = '\n';
    large[20001] = '\0';
    scratch_write_text(file, "small\n");
    scratch_append_text(file, large);
    worker_run_put(w, "source", source_config(file, "sizes"));
    wait_until(FLOW_MS, strcmp(worker_run_state(w, "source", "tasks.0.state"), "FAILED") == 0);
    assert_true(
        trace_says(w, "source", "20000 bytes is larger than the topic's max.message.bytes"));
    topic_read(w->servers, "sizes", 1, FLOW_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(thirty_seconds_without_a_broker_lose_nothing),
        scratch_test(without_auto_creation_a_missing_topic_fails_by_name),
        scratch_test(a_record_that_the_broker_refuses_for_size_fails_the_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
