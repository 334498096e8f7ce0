/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets topics that are deleted under a source whose transactions run: the worker's, and the
 * connector's own. Nothing is doubled, nothing is lost, and who can't go on says why. On a broker
 * that makes no topics by use, so that none comes back by itself. */
#include "support/kafka_run.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MS 60000
/* What a broker does not know librdkafka waits for until the transaction is over. */
#define SHORT ", \"producer.override.transaction.timeout.ms\": \"8000\""
#define LINES 200 /* that one append brings */

struct flow {
    struct worker_run *w;
    const char *file;
    const char *topic;
    int lines; /* appended so far */
    size_t bytes;
};

static struct flow flow_start(const char *group, const char *more)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_AUTO_CREATE=false");
    struct flow f = {.file = scratch_path("in"), .topic = scratch_name("out")};

    scratch_write_text(f.file, "");
    f.w = worker_run_start(&(struct worker_run_options){
        .group = group,
        .servers = kafka_run_servers_of(kafka),
        .props = "exactly.once.source.support=enabled\n"
                 "value.converter=org.apache.kafka.connect.storage.StringConverter\n"});
    topic_create(f.w->servers, f.topic, 1);
    worker_run_put(f.w, "src",
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", "
                                "\"file\": \"%s\", \"topic\": \"%s\"%s",
                                f.file, f.topic, more));
    worker_run_await(f.w, "src", "RUNNING", 1, STATE_MS);
    return f;
}

static void flow_append(struct flow *f)
{
    char lines[LINES * 12];
    size_t len = 0;

    for (int i = 0; i < LINES; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%d\n", f->lines++);
    scratch_append(f->file, lines, len);
    f->bytes += len;
}

/* So many lines, each once, in order, for a reader of committed records. */
static void flow_arrived(const struct flow *f, int lines)
{
    struct topic_records got = topic_read(f->w->servers, f->topic, (size_t)lines, STATE_MS);

    assert_int_equal(got.count, lines);
    for (int i = 0; i < lines; i++)
        assert_int_equal(atoi(got.records[i].value), i);
}

/* Its transactions can't be committed any more, and begun anew it does not know where: it fails,
 * and a user who says where it was has lost and doubled nothing. */
static void without_the_workers_topic_the_task_fails_by_its_name(void **state)
{
    const char *group = scratch_name("bereft"), *topic = scratch_text("%s-offsets", group);
    struct flow f = flow_start(group, SHORT);
    const char *trace;
    size_t known;

    (void)state;
    flow_append(&f);
    flow_arrived(&f, LINES);
    known = f.bytes;
    topic_delete(f.w->servers, topic);
    flow_append(&f);
    wait_until(STATE_MS, strcmp(worker_run_state(f.w, "src", "tasks.0.state"), "FAILED") == 0);
    trace = worker_run_state(f.w, "src", "tasks.0.trace");
    if (strstr(trace, topic) == NULL)
        fail_msg("%s", trace);
    flow_arrived(&f, LINES);
    wait_until(STATE_MS, worker_run_call(f.w, "GET", "/health", NULL).status == 500);
    assert_non_null(strstr(worker_run_call(f.w, "GET", "/health", NULL).body, topic));
    rest_answer_expect(f.w, 204, "PUT", "/connectors/src/stop", NULL);
    worker_run_await(f.w, "src", "STOPPED", 0, STATE_MS);
    assert_int_equal(worker_run_stop(f.w), 0);
    worker_run_again(f.w); /* which makes the topic anew */
    rest_answer_expect(f.w, 200, "PATCH", "/connectors/src/offsets",
                       scratch_text("{\"offsets\": [{\"partition\": {\"filename\": \"%s\"}, "
                                    "\"offset\": {\"position\": %zu}}]}",
                                    f.file, known));
    worker_run_expect(f.w, 202, "PUT", "/connectors/src/resume", NULL);
    flow_arrived(&f, 2 * LINES);
}

/* The worker's has the same offsets: it goes on from these, in a topic that is made anew. */
static void without_its_own_topic_the_task_goes_on_from_the_workers(void **state)
{
    const char *group = scratch_name("bereft"), *own = scratch_name("own");
    struct flow f =
        flow_start(group, scratch_text(SHORT ", \"offsets.storage.topic\": \"%s\"", own));

    (void)state;
    flow_append(&f);
    flow_arrived(&f, f.lines);
    topic_delete(f.w->servers, own);
    flow_append(&f);
    flow_arrived(&f, f.lines);
    assert_true(scratch_contains(f.w->log, scratch_text("source offsets into topic %s", own)));
    wait_until(STATE_MS, topic_count(f.w->servers, own) > 0);
    assert_string_equal(topic_setting(f.w->servers, own, "cleanup.policy"), "compact");
    worker_run_await(f.w, "src", "RUNNING", 1, STATE_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(without_the_workers_topic_the_task_fails_by_its_name),
        scratch_test(without_its_own_topic_the_task_goes_on_from_the_workers),
    };

    return cmocka_run_group_tests_name("lost_offsets", tests, NULL, NULL);
}
