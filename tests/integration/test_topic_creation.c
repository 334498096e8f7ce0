/* SPDX-License-Identifier: Apache-2.0 */
/* topic.creation.*: source tasks make their topics themselves, on a broker that makes none. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <string.h>

#define FLOW_MS 30000
#define GROUPS \
    "\"topic.creation.default.replication.factor\": \"1\", " \
    "\"topic.creation.default.partitions\": \"2\", " \
    "\"topic.creation.default.retention.ms\": \"86400000\", " \
    "\"topic.creation.groups\": \"logs\", " \
    "\"topic.creation.logs.include\": \"log-(?!private).*\", " \
    "\"topic.creation.logs.partitions\": \"3\", " \
    "\"topic.creation.logs.max.message.bytes\": \"50000\", " \
    "\"topic.creation.logs.min.compaction.lag.ms\": \"60000\""

static const char *source_config(const char *topic)
{
    const char *file = scratch_path(topic);

    scratch_write_text(file, "a\nb\n");
    return scratch_text(
        "\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", \"topic\": \"%s\"", file,
        topic);
}

static void put_source(const struct worker_run *w, const char *conn, const char *topic,
                       const char *more)
{
    worker_run_put(w, conn, scratch_text("%s, %s", source_config(topic), more));
}

static void a_topic_is_made_as_its_group_says(const struct worker_run *w)
{
    put_source(w, "logs", "log-public", GROUPS);
    topic_read(w->servers, "log-public", 2, FLOW_MS);
    assert_int_equal(topic_partitions(w->servers, "log-public"), 3);
    assert_string_equal(topic_setting(w->servers, "log-public", "max.message.bytes"), "50000");
    assert_string_equal(topic_setting(w->servers, "log-public", "min.compaction.lag.ms"), "60000");
    assert_string_not_equal(topic_setting(w->servers, "log-public", "retention.ms"), "86400000");

    put_source(w, "rest", "log-private", GROUPS);
    topic_read(w->servers, "log-private", 2, FLOW_MS);
    assert_int_equal(topic_partitions(w->servers, "log-private"), 2);
    assert_string_equal(topic_setting(w->servers, "log-private", "retention.ms"), "86400000");
    wait_until(FLOW_MS, scratch_contains(
                            w->log, "created topic log-private by topic creation group default"));
}

static void a_topic_that_is_there_stays_as_it_is(const struct worker_run *w)
{
    topic_create(w->servers, "log-old", 1);
    put_source(w, "old", "log-old", GROUPS);
    topic_read(w->servers, "log-old", 2, FLOW_MS);
    assert_int_equal(topic_partitions(w->servers, "log-old"), 1);
}

static void await_trace(const struct worker_run *w, const char *conn, const char *path,
                        const char *text)
{
    wait_until(FLOW_MS, strstr(worker_run_state(w, conn, path), text) != NULL);
}

/* Wrong groups fail the connector; what the broker refuses fails the task. */
static void mistakes_are_told(const struct worker_run *w)
{
    const char *wrong =
        scratch_text("{%s, \"topic.creation.default.partitions\": \"1\"}", source_config("t1"));
    struct http_reply reply = worker_run_call(w, "PUT", "/connectors/missing/config", wrong);

    assert_non_null(strstr(reply.body, "Missing required configuration"));
    assert_non_null(strstr(reply.body, "topic.creation.default.replication.factor"));
    put_source(w, "missing", "t1",
               "\"topic.creation.default.partitions\": \"1\", "
               "\"topic.creation.default.replication.factor\": \"1\"");
    worker_run_await(w, "missing", "RUNNING", 1, FLOW_MS);
    topic_read(w->servers, "t1", 2, FLOW_MS);

    put_source(w, "setting", "t2", GROUPS ", \"topic.creation.default.cleanup.policy\": \"none\"");
    await_trace(
        w, "setting", "tasks.0.trace",
        "org.apache.kafka.connect.errors.ConnectException: Unable to create topic(s) 't2': ");
    put_source(w, "many", "t3",
               "\"topic.creation.default.partitions\": \"1\", "
               "\"topic.creation.default.replication.factor\": \"3\"");
    await_trace(w, "many", "tasks.0.trace",
                "org.apache.kafka.connect.errors.ConnectException: Error while attempting to "
                "create/find topic(s) 't3': ");
    assert_int_equal(topic_partitions(w->servers, "t3"), 0);
}

static void source_tasks_make_their_topics(void **state)
{
    struct kafka_run *kafka = kafka_run_start("KAFKA_AUTO_CREATE=false");
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.servers = kafka_run_servers_of(kafka)});

    (void)state;
    a_topic_is_made_as_its_group_says(w);
    a_topic_that_is_there_stays_as_it_is(w);
    mistakes_are_told(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(source_tasks_make_their_topics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
