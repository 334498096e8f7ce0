/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to records between a plugin and Kafka, whole: transforms and predicates, records
 * that are bad, dead letters; and that a configuration which could not work is refused, also where
 * only plugin code knows. Connectors are written as for Kafka Connect. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 30000

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text(
        "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSourceConnector\","
        "\"tasks.max\": \"1\", \"file\": \"%s\", \"topic\": \"%s\","
        "\"value.converter\": \"org.apache.kafka.connect.json.JsonConverter\","
        "\"value.converter.schemas.enable\": \"false\","
        "\"transforms\": \"hoist,origin,route,mark\","
        "\"transforms.hoist.type\": \"org.apache.kafka.connect.transforms.HoistField$Value\","
        "\"transforms.hoist.field\": \"line\","
        "\"transforms.origin.type\": \"org.apache.kafka.connect.transforms.InsertField$Value\","
        "\"transforms.origin.static.field\": \"origin\","
        "\"transforms.origin.static.value\": \"a file\","
        "\"transforms.origin.topic.field\": \"topic\","
        "\"transforms.origin.predicate\": \"isRaw\","
        "\"transforms.route.type\": \"org.apache.kafka.connect.transforms.RegexRouter\","
        "\"transforms.route.regex\": \"(.*)-raw\","
        "\"transforms.route.replacement\": \"$1-done\","
        "\"transforms.mark.type\": \"org.apache.kafka.connect.transforms.ReplaceField$Value\","
        "\"transforms.mark.renames\": \"line:text\","
        "\"transforms.mark.predicate\": \"isRaw\","
        "\"transforms.mark.negate\": \"true\","
        "\"predicates\": \"isRaw\","
        "\"predicates.isRaw.type\": "
        "\"org.apache.kafka.connect.transforms.predicates.TopicNameMatches\","
        "\"predicates.isRaw.pattern\": \".*-raw\"",
        file, topic);
}

/* The predicate is asked of the topic as it is at that place of the chain. */
static void transforms_change_what_a_source_gives(const struct worker_run *w)
{
    const char *stem = scratch_name("lines"), *file = scratch_path("in.txt");
    const char *raw = scratch_text("%s-raw", stem), *done = scratch_text("%s-done", stem);
    struct topic_records got;

    scratch_write_text(file, "one\ntwo\n");
    worker_run_put(w, "source", source_config(file, raw));
    got = topic_read(w->servers, done, 2, FLOW_MS);
    assert_int_equal(got.count, 2);
    assert_string_equal(
        got.records[0].value,
        scratch_text("{\"text\":\"one\",\"topic\":\"%s\",\"origin\":\"a file\"}", raw));
    assert_string_equal(
        got.records[1].value,
        scratch_text("{\"text\":\"two\",\"topic\":\"%s\",\"origin\":\"a file\"}", raw));
    assert_int_equal(topic_count(w->servers, raw), 0);
}

static const char *sink_config(const char *file, const char *topic, const char *dead)
{
    return scratch_text(
        "\"connector.class\": \"org.apache.kafka.connect.file.FileStreamSinkConnector\","
        "\"tasks.max\": \"1\", \"file\": \"%s\", \"topics\": \"%s\","
        "\"key.converter\": \"org.apache.kafka.connect.storage.StringConverter\","
        "\"value.converter\": \"org.apache.kafka.connect.json.JsonConverter\","
        "\"value.converter.schemas.enable\": \"false\","
        "\"transforms\": \"cast,n\","
        "\"transforms.cast.type\": \"org.apache.kafka.connect.transforms.Cast$Value\","
        "\"transforms.cast.spec\": \"n:int32\","
        "\"transforms.n.type\": \"org.apache.kafka.connect.transforms.ExtractField$Value\","
        "\"transforms.n.field\": \"n\","
        "\"errors.tolerance\": \"all\","
        "\"errors.log.enable\": \"true\", \"errors.log.include.messages\": \"true\","
        "\"errors.deadletterqueue.topic.name\": \"%s\","
        "\"errors.deadletterqueue.topic.replication.factor\": \"1\","
        "\"errors.deadletterqueue.context.headers.enable\": \"true\"",
        file, topic, dead);
}

static void assert_letter(const struct topic_record *letter, const char *value, const char *headers)
{
    assert_string_equal(letter->key, "k");
    assert_string_equal(letter->value, value);
    if (strncmp(letter->headers, headers, strlen(headers)) != 0)
        fail_msg("the letter '%s' has the headers\n%swhere these belong\n%s", value,
                 letter->headers, headers);
}

static void bad_records_become_dead_letters(const struct worker_run *w)
{
    const char *topic = scratch_name("numbers"), *dead = scratch_name("dead"),
               *file = scratch_path("out.txt");
    struct topic_records got;

    topic_create(w->servers, topic, 1);
    topic_produce(w->servers, topic, 0, "k", "{\"n\": \"1\"}");
    topic_produce(w->servers, topic, 0, "k", "{\"n\": ");
    topic_produce(w->servers, topic, 0, "k", "{\"n\": \"2\"}");
    topic_produce(w->servers, topic, 0, "k", "{\"n\": \"two\"}");
    topic_produce(w->servers, topic, 0, "k", "{\"n\": \"3\"}");
    worker_run_put(w, "sink", sink_config(file, topic, dead));
    wait_until(FLOW_MS, scratch_contains(file, "3\n"));
    assert_string_equal(scratch_read(file, NULL), "1\n2\n3\n");
    got = topic_read(w->servers, dead, 2, FLOW_MS);
    assert_int_equal(got.count, 2);
    assert_letter(&got.records[0], "{\"n\": ",
                  scratch_text("__connect.errors.topic=%s\n__connect.errors.partition=0\n"
                               "__connect.errors.offset=1\n__connect.errors.connector.name=sink\n"
                               "__connect.errors.task.id=0\n"
                               "__connect.errors.stage=VALUE_CONVERTER\n"
                               "__connect.errors.class.name=org.apache.kafka.connect.json."
                               "JsonConverter\n"
                               "__connect.errors.exception.class.name=org.apache.kafka.connect."
                               "errors.DataException\n__connect.errors.exception.message=",
                               topic));
    assert_letter(&got.records[1], "{\"n\": \"two\"}",
                  scratch_text("__connect.errors.topic=%s\n__connect.errors.partition=0\n"
                               "__connect.errors.offset=3\n__connect.errors.connector.name=sink\n"
                               "__connect.errors.task.id=0\n"
                               "__connect.errors.stage=TRANSFORMATION\n"
                               "__connect.errors.class.name=org.apache.kafka.connect.transforms."
                               "Cast$Value\n",
                               topic));
    assert_int_equal(topic_partitions(w->servers, dead), 1);
    wait_until(FLOW_MS, topic_committed(w->servers, "connect-sink", topic, 0) == 5);
    assert_true(scratch_contains(
        w->log, scratch_text("Error encountered in task sink-0. Executing stage 'VALUE_CONVERTER' "
                             "with class 'org.apache.kafka.connect.json.JsonConverter', where "
                             "consumed record is {topic='%s', partition=0, offset=1, timestamp=",
                             topic)));
    assert_true(scratch_contains(w->log, ", timestampType=CreateTime}.: "));
}

/* --- refusals --------------------------------------------------------------------------------- */

/* What the refusal says, between its first line and its last. */
static void refused_config(const struct worker_run *w, const char *fields, const char *want)
{
    struct http_reply reply = worker_run_expect(w, 400, "PUT", "/connectors/refused/config",
                                                scratch_text("{%s}", fields));

    assert_string_equal(
        http_at(reply.json, "message"),
        scratch_text("Connector configuration is invalid and contains the following 1 error(s):\n"
                     "%s\nYou can also find the above list of errors at the endpoint "
                     "`/connector-plugins/{connectorType}/config/validate`",
                     want));
}

/* A source with one transform. */
static void refused(const struct worker_run *w, const char *transform, const char *want)
{
    refused_config(w,
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", "
                                "\"transforms\": \"a\", %s",
                                transform),
                   want);
}

static void what_only_plugin_code_knows_is_refused(const struct worker_run *w)
{
    struct http_reply reply;

    refused(w,
            "\"transforms.a.type\": \"RegexRouter\", \"transforms.a.regex\": \"(a\", "
            "\"transforms.a.replacement\": \"b\"",
            "Invalid value (a for configuration regex: Invalid regex: Unclosed group near index "
            "2\n(a");
    refused(w,
            "\"transforms.a.type\": \"org.apache.kafka.connect.transforms.Cast$Value\", "
            "\"transforms.a.spec\": \"f:frog\"",
            "Invalid value java.lang.IllegalArgumentException: No enum constant "
            "org.apache.kafka.connect.data.Schema.Type.FROG for configuration Invalid type found "
            "in casting spec: frog");
    refused(w, "\"transforms.a.type\": \"Picky\", \"transforms.a.mood\": \"crash\"",
            "Configuration transforms.a.mood could not be checked: its class was killed by signal "
            "11 (SIGSEGV)");
    refused_config(w, "\"connector.class\": \"PickyChecked\", \"mood\": \"bad\"",
                   "Invalid value bad for configuration mood: it is\nbad");
    refused_config(w, "\"connector.class\": \"PickyChecked\", \"mood\": \"exit\"",
                   "Configuration mood could not be checked: its class ended the process with code "
                   "3");
    worker_run_expect(w, 404, "GET", "/connectors/refused", NULL);
    reply = worker_run_expect(w, 200, "PUT", "/connector-plugins/FileStreamSource/config/validate",
                              "{\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", "
                              "\"name\": \"v\", \"predicates\": \"p\", \"predicates.p.type\": "
                              "\"TopicNameMatches\", \"predicates.p.pattern\": \"[\"}");
    assert_string_equal(http_at(reply.json, "error_count"), "1");
    assert_non_null(strstr(reply.body, "\"Invalid value [ for configuration pattern: Invalid "
                                       "regex: Unclosed character class near index 0\\n[\\n^\""));
}

/* The rest is asked and answered while plugin code hangs; and whoever hung leaves nothing
 * behind. */
static void plugin_code_that_hangs_holds_nobody_up(struct worker_run *w)
{
    const char *argv[] = {"curl",
                          "-s",
                          "-X",
                          "PUT",
                          "-H",
                          "Content-Type: application/json",
                          "-d",
                          "{\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", "
                          "\"transforms\": \"a\", \"transforms.a.type\": \"Picky\", "
                          "\"transforms.a.mood\": \"hang\"}",
                          scratch_text("%s/connectors/hung/config", w->url),
                          NULL};
    struct process *curl;
    size_t before = worker_run_processes(w);

    curl = process_start(argv, scratch_path("curl.log"), NULL);
    wait_until(FLOW_MS, worker_run_processes(w) > before);
    worker_run_expect(w, 200, "GET", "/connectors/sink/status", NULL);
    refused(w, "\"transforms.a.type\": \"Picky\", \"transforms.a.mood\": \"bad\"",
            "Invalid value bad for configuration mood: it is\nbad");
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(worker_run_processes(w), 0);
    process_wait(curl, FLOW_MS);
}

static void records_go_their_whole_way(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});

    (void)state;
    what_only_plugin_code_knows_is_refused(w);
    transforms_change_what_a_source_gives(w);
    bad_records_become_dead_letters(w);
    plugin_code_that_hangs_holds_nobody_up(w);
}

/* --- a converter of somebody else ------------------------------------------------------------- */

#define CAESAR \
    "\"key.converter\": \"com.example.CaesarConverter\", \"key.converter.shift\": \"2\", " \
    "\"value.converter\": \"Caesar\", \"value.converter.shift\": \"3\", " \
    "\"errors.tolerance\": \"all\", \"errors.retry.timeout\": \"20000\", "

/* Key, value and header, each with a shift of its own; the header's is the worker's. */
static void caesar_writes(const struct worker_run *w, const char *topic)
{
    const char *file = scratch_path("letters.txt");
    struct topic_records got;

    scratch_write_text(file, "abc\nno!\nbusy bee\n");
    worker_run_put(
        w, "writes",
        scratch_text(CAESAR
                     "\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                     "\"topic\": \"%s\", \"transforms\": \"a,b,c,d,e\", "
                     "\"transforms.a.type\": \"org.apache.kafka.connect.transforms."
                     "HoistField$Value\", \"transforms.a.field\": \"line\", "
                     "\"transforms.b.type\": \"ValueToKey\", \"transforms.b.fields\": \"line\", "
                     "\"transforms.c.type\": \"org.apache.kafka.connect.transforms."
                     "ExtractField$Key\", \"transforms.c.field\": \"line\", "
                     "\"transforms.d.type\": \"org.apache.kafka.connect.transforms."
                     "ExtractField$Value\", \"transforms.d.field\": \"line\", "
                     "\"transforms.e.type\": \"InsertHeader\", \"transforms.e.header\": \"h\", "
                     "\"transforms.e.value.literal\": \"xyz\"",
                     file, topic));
    got = topic_read(w->servers, topic, 2, FLOW_MS);
    assert_int_equal(got.count, 2);
    assert_string_equal(got.records[0].key, "cde");
    assert_string_equal(got.records[0].value, "def");
    assert_string_equal(got.records[0].headers, "h=yza\n");
    assert_string_equal(got.records[1].value, "exvb ehh");
}

static void caesar_reads(const struct worker_run *w, const char *topic)
{
    const char *file = scratch_path("read.txt"), *dead = scratch_name("caesars-dead");
    struct topic_records got;

    topic_produce(w->servers, topic, 0, "mg", "qr!"); /* "ke", "no!" */
    topic_produce(w->servers, topic, 0, NULL, "ab");
    worker_run_put(w, "reads",
                   scratch_text(CAESAR
                                "\"connector.class\": \"FileStreamSink\", \"file\": \"%s\", "
                                "\"topics\": \"%s\", \"errors.deadletterqueue.topic.name\": "
                                "\"%s\", \"errors.deadletterqueue.topic.replication.factor\": "
                                "\"1\", \"errors.deadletterqueue.context.headers.enable\": "
                                "\"true\"",
                                file, topic, dead));
    wait_until(FLOW_MS, topic_committed(w->servers, "connect-reads", topic, 0) == 4);
    assert_string_equal(scratch_read(file, NULL), "abc\nbusy bee\nxy\n");
    got = topic_read(w->servers, dead, 1, FLOW_MS);
    assert_int_equal(got.count, 1);
    assert_string_equal(got.records[0].key, "mg");
    assert_string_equal(got.records[0].value, "qr!");
    assert_non_null(strstr(got.records[0].headers,
                           "__connect.errors.stage=VALUE_CONVERTER\n__connect.errors.class.name="
                           "com.example.CaesarConverter\n"));
    assert_non_null(strstr(got.records[0].headers,
                           "__connect.errors.exception.message=Caesar does not shout\n"));
}

static void a_converter_of_somebody_else_is_one_like_ours(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .props = "header.converter=com.example.CaesarConverter\nheader.converter.shift=1\n"});
    const char *topic = scratch_name("letters");
    struct http_reply reply;

    (void)state;
    topic_create(w->servers, topic, 1);
    caesar_writes(w, topic);
    caesar_reads(w, topic);
    refused_config(w,
                   "\"connector.class\": \"FileStreamSource\", \"topic\": \"t\", "
                   "\"value.converter\": \"Caesar\", \"value.converter.shift\": \"many\"",
                   "Invalid value many for configuration shift: Not a number of "
                   "type INT");
    reply = worker_run_expect(w, 200, "GET", "/connector-plugins?connectorsOnly=false", NULL);
    assert_non_null(strstr(
        reply.body,
        "{\"class\":\"com.example.CaesarConverter\",\"type\":\"converter\",\"version\":\"1.0\"}"));
    assert_int_equal(worker_run_stop(w), 0);
}

/* Three copies, which is the default, on one broker: told before its user has given up. */
static void dead_letters_that_no_brokers_can_keep_fail_the_task(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});
    const char *topic = scratch_name("letters");

    (void)state;
    topic_create(w->servers, topic, 1);
    worker_run_put(w, "copies",
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"file\": \"%s\", "
                                "\"topics\": \"%s\", \"errors.deadletterqueue.topic.name\": \"%s\"",
                                scratch_path("copies.txt"), topic, scratch_name("dead")));
    wait_until(20000,
               strstr(worker_run_expect(w, 200, "GET", "/connectors/copies/status", NULL).body,
                      "errors.deadletterqueue.topic.replication.factor=3: ") != NULL);
    assert_int_equal(worker_run_stop(w), 0);
}

/* --- more schemas than a process may hold ----------------------------------------------------- */

#define FIELDS 12000 /* each with a schema of its own: eight records fill a process */

static const char *record_of_new_schemas(int number)
{
    size_t size = FIELDS * 80 + 200, at = 0;
    char *text = scratch_keep(malloc(size));

    assert_non_null(text);
    at += (size_t)snprintf(text + at, size - at,
                           "{\"schema\":{\"type\":\"struct\",\"fields\":["
                           "{\"type\":\"int32\",\"field\":\"n\"}");
    for (int i = 0; i < FIELDS; i++)
        at += (size_t)snprintf(text + at, size - at,
                               ",{\"type\":\"int8\",\"optional\":true,\"name\":\"%d.%d\","
                               "\"field\":\"%d\"}",
                               number, i, i);
    snprintf(text + at, size - at, "]},\"payload\":{\"n\":%d}}", number);
    return text;
}

/* By itself as often as over a death, and then by a request: each time in a new process. */
static void a_topic_of_ever_new_schemas_goes_on_in_new_processes(void **state)
{
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.props = "millrace.restart.max=1\n"});
    const char *topic = scratch_name("schemas"), *file = scratch_path("schemas.txt");

    (void)state;
    topic_create(w->servers, topic, 1);
    for (int i = 0; i < 20; i++)
        topic_produce(w->servers, topic, 0, NULL, record_of_new_schemas(i));
    worker_run_put(w, "schemas",
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"tasks.max\": \"1\", "
                                "\"file\": \"%s\", \"topics\": \"%s\", "
                                "\"consumer.override.max.poll.records\": \"1\", "
                                "\"value.converter\": "
                                "\"org.apache.kafka.connect.json.JsonConverter\", "
                                "\"transforms\": \"n\", \"transforms.n.type\": "
                                "\"org.apache.kafka.connect.transforms.ExtractField$Value\", "
                                "\"transforms.n.field\": \"n\"",
                                file, topic));
    wait_until(FLOW_MS, strcmp(worker_run_state(w, "schemas", "tasks.0.state"), "FAILED") == 0);
    assert_non_null(
        strstr(worker_run_state(w, "schemas", "tasks.0.trace"), "different schemas were made"));
    assert_int_equal(topic_committed(w->servers, "connect-schemas", topic, 0), 16);
    worker_run_expect(w, 204, "POST", "/connectors/schemas/tasks/0/restart", NULL);
    wait_until(FLOW_MS, topic_committed(w->servers, "connect-schemas", topic, 0) == 20);
    assert_string_equal(scratch_read(file, NULL), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n"
                                                  "14\n15\n16\n17\n18\n19\n");
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(records_go_their_whole_way),
        scratch_test(a_converter_of_somebody_else_is_one_like_ours),
        scratch_test(dead_letters_that_no_brokers_can_keep_fail_the_task),
        scratch_test(a_topic_of_ever_new_schemas_goes_on_in_new_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
