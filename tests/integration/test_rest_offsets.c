/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets and topics of connectors by REST, judged by Kafka itself: groups and records are read by
 * a client of its own. What Java answers to the same requests is test_rest_golden.c's. */
#include "support/kafka_run.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"

#include <stdio.h>
#include <string.h>

#define FLOW_MS 20000
#define STATE_MS 20000

static struct worker_run *worker(const char *name, const char *group)
{
    return worker_run_start(&(struct worker_run_options){
        .name = name, .group = group, .props = "scheduled.rebalance.max.delay.ms=0\n"});
}

static void put_sink(const struct worker_run *w, const char *conn, const char *topic,
                     const char *more)
{
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"tasks.max\": \"1\", "
                                "\"topics\": \"%s\", \"file\": \"%s\"%s",
                                topic, scratch_path(conn), more));
    worker_run_await(w, conn, "RUNNING", 1, STATE_MS);
}

static void stop(const struct worker_run *w, const char *conn)
{
    rest_answer_expect(w, 204, "PUT", scratch_text("/connectors/%s/stop", conn), NULL);
    worker_run_await(w, conn, "STOPPED", 0, STATE_MS);
}

static const char *message(struct http_reply reply)
{
    return http_at(reply.json, "message");
}

static const char *entry(const char *topic, int partition, const char *offset)
{
    return scratch_text("{\"partition\": {\"kafka_topic\": \"%s\", \"kafka_partition\": %d}, "
                        "\"offset\": %s}",
                        topic, partition, offset);
}

static struct http_reply patch(const struct worker_run *w, const char *conn, int status,
                               const char *entries)
{
    return rest_answer_expect(w, status, "PATCH", scratch_text("/connectors/%s/offsets", conn),
                              scratch_text("{\"offsets\": [%s]}", entries));
}

static void assert_committed(const struct worker_run *w, const char *group, const char *topic,
                             int first, int second)
{
    assert_int_equal(topic_committed(w->servers, group, topic, 0), first);
    assert_int_equal(topic_committed(w->servers, group, topic, 1), second);
}

/* --- sinks ------------------------------------------------------------------------------------ */

static void a_sink_s_offsets_change_all_together_or_not_at_all(void **state)
{
    struct worker_run *w = worker("w", NULL);
    const char *conn = scratch_name("half"), *group = scratch_text("connect-%s", conn),
               *topic = scratch_name("lines");

    (void)state;
    topic_create(w->servers, topic, 2);
    for (int i = 0; i < 6; i++)
        topic_produce(w->servers, topic, i % 2, NULL, "\"x\"");
    put_sink(w, conn, topic, "");
    wait_until(FLOW_MS, topic_committed(w->servers, group, topic, 0) == 3 &&
                            topic_committed(w->servers, group, topic, 1) == 3);
    stop(w, conn);
    assert_string_equal(
        message(patch(w, conn, 500,
                      scratch_text("%s, %s", entry(topic, 0, "{\"kafka_offset\": 1}"),
                                   entry(topic, 7, "{\"kafka_offset\": 1}")))),
        scratch_text("Failed to alter consumer group offsets for connector %s", conn));
    patch(w, conn, 500,
          scratch_text("%s, %s", entry(topic, 0, "null"),
                       entry(scratch_name("nowhere"), 0, "{\"kafka_offset\": 1}")));
    patch(
        w, conn, 500,
        scratch_text("%s, %s", entry(topic, 0, "{\"kafka_offset\": 1}"), entry(topic, 9, "null")));
    assert_committed(w, group, topic, 3, 3);
    patch(
        w, conn, 200,
        scratch_text("%s, %s", entry(topic, 0, "{\"kafka_offset\": 1}"), entry(topic, 1, "null")));
    assert_committed(w, group, topic, 1, -1);
    rest_answer_expect(w, 200, "DELETE", scratch_text("/connectors/%s/offsets", conn), NULL);
    assert_committed(w, group, topic, -1, -1);
}

static void a_group_that_others_are_in_keeps_its_offsets(void **state)
{
    static const char *const because = " either because its tasks haven't stopped completely yet";
    struct worker_run *w = worker("w", NULL);
    const char *group = scratch_name("shared"), *topic = scratch_name("lines"),
               *own = scratch_text(", \"consumer.override.group.id\": \"%s\"", group);
    struct http_reply reply;

    (void)state;
    topic_produce(w->servers, topic, 0, NULL, "\"x\"");
    put_sink(w, "quiet", topic, own);
    stop(w, "quiet");
    put_sink(w, "loud", topic, own);
    wait_until(FLOW_MS, topic_committed(w->servers, group, topic, 0) == 1);
    reply = patch(w, "quiet", 500, entry(topic, 0, "{\"kafka_offset\": 0}"));
    assert_non_null(strstr(message(reply), because));
    reply = patch(w, "quiet", 500, entry(topic, 0, "null"));
    assert_non_null(strstr(message(reply), because));
    reply = rest_answer_expect(w, 500, "DELETE", "/connectors/quiet/offsets", NULL);
    assert_non_null(strstr(message(reply), because));
    assert_int_equal(topic_committed(w->servers, group, topic, 0), 1);
}

static void a_client_that_can_not_be_made_is_told(void **state)
{
    struct worker_run *w = worker("w", NULL);
    const char *topic = scratch_name("lines");
    struct http_reply reply;

    (void)state;
    topic_produce(w->servers, topic, 0, NULL, "\"x\"");
    put_sink(w, "lost", topic,
             ", \"admin.override.security.protocol\": \"SSL\", "
             "\"admin.override.ssl.truststore.type\": \"PEM\", "
             "\"admin.override.ssl.truststore.location\": \"/no/such.pem\"");
    reply = worker_run_expect(w, 500, "GET", "/connectors/lost/offsets", NULL);
    assert_string_equal(message(reply),
                        "Failed to retrieve consumer group offsets for sink connector lost");
}

/* --- sources ---------------------------------------------------------------------------------- */

static void a_source_goes_on_from_where_its_offsets_were_set(void **state)
{
    struct worker_run *w = worker("w", NULL);
    const char *topic = scratch_name("lines"), *file = scratch_path("in.txt");

    (void)state;
    scratch_write_text(file, "one\ntwo\n");
    worker_run_put(w, "src",
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", "
                                "\"file\": \"%s\", \"topic\": \"%s\"",
                                file, topic));
    wait_until(FLOW_MS,
               strcmp(http_at(worker_run_call(w, "GET", "/connectors/src/offsets", NULL).json,
                              "offsets.0.offset.position"),
                      "8") == 0);
    stop(w, "src");
    patch(w, "src", 200,
          scratch_text("{\"partition\": {\"filename\": \"%s\"}, \"offset\": {\"position\": 4}}",
                       file));
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    wait_until(FLOW_MS, topic_count(w->servers, topic) == 3);
    assert_string_equal(topic_read(w->servers, topic, 3, FLOW_MS).records[2].value, "two");
    stop(w, "src");
    rest_answer_expect(w, 200, "DELETE", "/connectors/src/offsets", NULL);
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    wait_until(FLOW_MS, topic_count(w->servers, topic) == 5);
}

static void what_a_plugin_says_or_does_not_say_comes_in_time(void **state)
{
    static const char entry_of_a[] =
        "{\"partition\": {\"name\": \"a\"}, \"offset\": {\"next\": 7}}";
    struct worker_run *w = worker("w", NULL);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        worker_run_put(w, "picky",
                       scratch_text("\"connector.class\": \"PickySource\", \"mood\": \"%s\"",
                                    i == 0 ? "tell" : "crash"));
        stop(w, "picky");
        assert_string_equal(message(patch(w, "picky", 500, entry_of_a)),
                            i == 0 ? "a=7"
                                   : "Failed to modify offsets for connector picky: its class was "
                                     "killed by signal 11 (SIGSEGV)");
    }
    worker_run_put(w, "silent", "\"connector.class\": \"PickySilent\"");
    stop(w, "silent");
    assert_non_null(strstr(message(patch(w, "silent", 200, entry_of_a)),
                           "The Connect framework-managed offsets for this connector have been "
                           "altered successfully. However,"));
}

/* --- a cluster -------------------------------------------------------------------------------- */

static const struct topic_record *find(struct topic_records records, const char *key)
{
    for (size_t i = records.count; i-- > 0;)
        if (records.records[i].key != NULL && strcmp(records.records[i].key, key) == 0)
            return &records.records[i];
    return NULL;
}

static void any_worker_takes_a_change_and_topics_are_known_to_all(void **state)
{
    const char *group = scratch_name("pair"), *topic = scratch_name("lines"),
               *file = scratch_path("in.txt"), *status = scratch_text("%s-status", group),
               *key = scratch_text("status-topic-%s:connector-src", topic);
    struct worker_run *w[2] = {worker("a", group), worker("b", group)};
    const struct topic_record *found;

    (void)state;
    scratch_write_text(file, "one\n");
    rest_answer_expect(w[0], 201, "PUT", "/connectors/src/config",
                       scratch_text("{\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                                    "\"topic\": \"%s\"}",
                                    file, topic));
    for (size_t i = 0; i < 2; i++)
        wait_until(FLOW_MS,
                   strcmp(http_at(worker_run_call(w[i], "GET", "/connectors/src/topics", NULL).json,
                                  "src.topics.0"),
                          topic) == 0);
    found = find(topic_read(w[0]->servers, status, 1, FLOW_MS), key);
    assert_non_null(found);
    assert_non_null(
        strstr(found->value, scratch_text("{\"topic\":{\"name\":\"%s\",\"connector\":\"src\","
                                          "\"task\":0,\"discoverTimestamp\":",
                                          topic)));
    worker_run_expect(w[1], 202, "PUT", "/connectors/src/topics/reset", NULL);
    wait_until(FLOW_MS, strcmp(worker_run_call(w[0], "GET", "/connectors/src/topics", NULL).body,
                               "{\"src\":{\"topics\":[]}}") == 0);
    found = find(topic_read(w[0]->servers, status, 1, FLOW_MS), key);
    assert_true(found != NULL && found->value == NULL);
    stop(w[0], "src");
    for (size_t i = 0; i < 2; i++) {
        const char *position = scratch_text("{\"position\": %zu}", i + 1);

        patch(w[i], "src", 200,
              scratch_text("{\"partition\": {\"filename\": \"%s\"}, \"offset\": %s}", file,
                           position));
        assert_string_equal(
            http_at(worker_run_call(w[1 - i], "GET", "/connectors/src/offsets", NULL).json,
                    "offsets.0.offset.position"),
            scratch_text("%zu", i + 1));
    }
}

#define MANY 50000

static const char *many_file(int i)
{
    return scratch_text("/in/a \\\"file\\\" of é %d", i);
}

/* As standalone keeps them; whoever writes the file by hand leaves its checksum out. */
static void fill_offsets(const char *path)
{
    FILE *out = fopen(path, "we");

    assert_non_null(out);
    fprintf(out, "{\"millrace\":\"by hand\",\"format\":1}\n");
    for (int i = 0; i < MANY; i++)
        fprintf(out,
                "{\"connector\":\"src\",\"partition\":{\"filename\":\"%s\"},"
                "\"offset\":{\"position\":%d}}\n",
                many_file(i), i);
    fprintf(out, "{\"end\":%d}\n", MANY);
    assert_int_equal(fclose(out), 0);
}

static struct http_reply get_many(const struct worker_run *w, int count)
{
    struct http_reply reply = worker_run_expect(w, 200, "GET", "/connectors/src/offsets", NULL);

    assert_int_equal(json_array_size(json_object_get(reply.json, "offsets")), count);
    return reply;
}

/* Written, judged and forgotten beside the worker's loop; who asks for something else is answered
 * meanwhile. */
static void very_many_offsets_are_shown_changed_and_forgotten(void **state)
{
    static const char *const body = "{\"offsets\":[{\"partition\":{\"filename\":\"/in/a ";
    struct worker_run *w = worker("w", NULL);
    struct http_reply reply;

    (void)state;
    assert_int_equal(worker_run_stop(w), 0);
    fill_offsets(w->offsets);
    worker_run_again(w);
    worker_run_expect(w, 201, "POST", "/connectors",
                      "{\"name\": \"src\", \"initial_state\": \"STOPPED\", \"config\": "
                      "{\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", \"file\": "
                      "\"/in\"}}");
    reply = get_many(w, MANY);
    assert_int_equal(strncmp(reply.body, body, strlen(body)), 0);
    for (int i = 0; i < MANY; i += 4999) {
        const json_t *one = json_array_get(json_object_get(reply.json, "offsets"), (size_t)i);

        assert_string_equal(http_at(one, "partition.filename"),
                            scratch_text("/in/a \"file\" of é %d", i));
        assert_string_equal(http_at(one, "offset.position"), scratch_text("%d", i));
    }
    patch(w, "src", 200,
          scratch_text("{\"partition\": {\"filename\": \"%s\"}, \"offset\": {\"position\": 7}}, "
                       "{\"partition\": {\"filename\": \"%s\"}, \"offset\": null}",
                       many_file(0), many_file(1)));
    reply = get_many(w, MANY - 1);
    assert_string_equal(http_at(reply.json, "offsets.0.offset.position"), "7");
    worker_run_expect(w, 200, "DELETE", "/connectors/src/offsets", NULL);
    reply = get_many(w, 0);
    assert_string_equal(reply.body, "{\"offsets\":[]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_sink_s_offsets_change_all_together_or_not_at_all),
        scratch_test(a_group_that_others_are_in_keeps_its_offsets),
        scratch_test(a_client_that_can_not_be_made_is_told),
        scratch_test(a_source_goes_on_from_where_its_offsets_were_set),
        scratch_test(what_a_plugin_says_or_does_not_say_comes_in_time),
        scratch_test(very_many_offsets_are_shown_changed_and_forgotten),
        scratch_test(any_worker_takes_a_change_and_topics_are_known_to_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
