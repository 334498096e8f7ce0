/* SPDX-License-Identifier: Apache-2.0 */
/* Two Kafkas that know nothing of each other. The worker's own is open; connectors work on the
 * other one, over TLS, as a user of their own whose rights an authorizer checks: what they read,
 * write, create and commit is there alone, and so are dead letters; source offsets, in a topic of
 * the connector's own, are there first. */
#include "support/acl.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/unit/secure_kafka.h"
#include "support/worker_run.h"

#include <string.h>

#define FLOW_MS 60000
#define USERS "user_bob=\"secret\" user_eve=\"secret\""
#define CLOSED \
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n" \
    "super.users=User:ANONYMOUS\nauto.create.topics.enable=false\n"

struct names {
    const char *out;  /* where the source writes */
    const char *in;   /* what the sink reads */
    const char *dead; /* what it could not */
    const char *own;  /* the source's offsets */
};

/* What bob needs for both connectors, and no more. */
static void allow(const struct secure_kafka *far, const struct names *n)
{
    const struct acl acls[] = {
        {RD_KAFKA_RESOURCE_TOPIC, n->out, RD_KAFKA_ACL_OPERATION_CREATE},
        {RD_KAFKA_RESOURCE_TOPIC, n->out, RD_KAFKA_ACL_OPERATION_WRITE},
        {RD_KAFKA_RESOURCE_TOPIC, n->in, RD_KAFKA_ACL_OPERATION_READ},
        {RD_KAFKA_RESOURCE_TOPIC, n->dead, RD_KAFKA_ACL_OPERATION_CREATE},
        {RD_KAFKA_RESOURCE_TOPIC, n->dead, RD_KAFKA_ACL_OPERATION_WRITE},
        {RD_KAFKA_RESOURCE_TOPIC, n->own, RD_KAFKA_ACL_OPERATION_CREATE},
        {RD_KAFKA_RESOURCE_TOPIC, n->own, RD_KAFKA_ACL_OPERATION_WRITE},
        {RD_KAFKA_RESOURCE_TOPIC, n->own, RD_KAFKA_ACL_OPERATION_READ},
        {RD_KAFKA_RESOURCE_GROUP, "connect-sink", RD_KAFKA_ACL_OPERATION_READ},
    };

    acl_allow(far->open, "User:bob", acls, sizeof(acls) / sizeof(acls[0]));
}

/* The far Kafka for one kind of client, as a connector's configuration says it. */
static const char *reach(const struct secure_kafka *far, const char *client, const char *user)
{
    return scratch_text(
        ", \"%s.override.bootstrap.servers\": \"%s\", \"%s.override.security.protocol\": "
        "\"SASL_SSL\", \"%s.override.ssl.truststore.type\": \"PEM\", "
        "\"%s.override.ssl.truststore.location\": \"%s\", \"%s.override.sasl.mechanism\": "
        "\"PLAIN\", \"%s.override.sasl.jaas.config\": "
        "\"org.apache.kafka.common.security.plain.PlainLoginModule required username=\\\"%s\\\" "
        "password=\\\"secret\\\";\"",
        client, far->servers, client, client, client, far->trust, client, client, user);
}

static const char *source_config(const struct secure_kafka *far, const char *user,
                                 const char *topic)
{
    const char *file = scratch_path(topic); /* its own: another's, written anew, is truncated */

    scratch_write_text(file, "one\ntwo\n");
    return scratch_text(
        "\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", \"file\": \"%s\", "
        "\"topic\": \"%s\", \"topic.creation.default.partitions\": \"3\", "
        "\"topic.creation.default.replication.factor\": \"1\"%s%s",
        file, topic, reach(far, "producer", user), reach(far, "admin", user));
}

static bool stands_last(const char *servers, const char *topic, const char *value)
{
    struct topic_records got = topic_read(servers, topic, 0, 0);

    return got.count > 0 && strcmp(got.records[got.count - 1].value, value) == 0;
}

/* Its offsets too; the worker's Kafka has a copy. REST looks there, as the same user. */
static void its_offsets_are_there(const struct worker_run *w, const struct secure_kafka *far,
                                  const struct names *n)
{
    const char *all = scratch_text("%s-offsets", w->group);

    wait_until(FLOW_MS, stands_last(far->open, n->own, "{\"position\":8}"));
    wait_until(FLOW_MS, stands_last(w->servers, all, "{\"position\":8}"));
    assert_string_equal(topic_setting(far->open, n->own, "cleanup.policy"), "compact");
    assert_int_equal(topic_partitions(w->servers, n->own), 0);
    assert_string_equal(
        http_at(worker_run_expect(w, 200, "GET", "/connectors/source/offsets", NULL).json,
                "offsets.0.offset.position"),
        "8");
}

static void a_source_creates_and_writes_there(const struct worker_run *w,
                                              const struct secure_kafka *far, const struct names *n)
{
    struct topic_records got;

    worker_run_put(w, "source",
                   scratch_text("%s, \"offsets.storage.topic\": \"%s\"%s",
                                source_config(far, "bob", n->out), n->own,
                                reach(far, "consumer", "bob")));
    got = topic_read(far->open, n->out, 2, FLOW_MS);
    assert_int_equal(got.count, 2);
    assert_int_equal(topic_partitions(far->open, n->out), 3);
    assert_int_equal(topic_partitions(w->servers, n->out), 0);
    its_offsets_are_there(w, far, n);
}

static void a_sink_reads_commits_and_writes_dead_letters_there(const struct worker_run *w,
                                                               const struct secure_kafka *far,
                                                               const struct names *n)
{
    const char *file = scratch_path("out.txt");
    struct topic_records got;

    topic_produce(far->open, n->in, 0, "k", "{\"a\":1}");
    topic_produce(far->open, n->in, 0, "k", "{\"a\":");
    topic_produce(far->open, n->in, 0, "k", "{\"a\":3}");
    worker_run_put(
        w, "sink",
        scratch_text(
            "\"connector.class\": \"FileStreamSink\", \"tasks.max\": \"1\", \"file\": "
            "\"%s\", \"topics\": \"%s\", \"value.converter\": "
            "\"org.apache.kafka.connect.json.JsonConverter\", "
            "\"value.converter.schemas.enable\": \"false\", \"errors.tolerance\": \"all\", "
            "\"errors.deadletterqueue.topic.name\": \"%s\", "
            "\"errors.deadletterqueue.topic.replication.factor\": \"1\"%s%s%s",
            file, n->in, n->dead, reach(far, "consumer", "bob"), reach(far, "producer", "bob"),
            reach(far, "admin", "bob")));
    got = topic_read(far->open, n->dead, 1, FLOW_MS);
    assert_int_equal(got.count, 1);
    assert_string_equal(got.records[0].value, "{\"a\":");
    wait_until(FLOW_MS, topic_committed(far->open, "connect-sink", n->in, 0) == 3);
    assert_string_equal(scratch_read(file, NULL), "{a=1}\n{a=3}\n");
    assert_int_equal(topic_committed(w->servers, "connect-sink", n->in, 0), -1);
    assert_int_equal(topic_partitions(w->servers, n->dead), 0);
}

/* She logs in, and may nothing. */
static void another_user_has_none_of_bobs_rights(const struct worker_run *w,
                                                 const struct secure_kafka *far,
                                                 const struct names *n)
{
    worker_run_put(w, "eves", source_config(far, "eve", scratch_text("%s-eve", n->out)));
    wait_until(FLOW_MS, strstr(worker_run_state(w, "eves", "tasks.0.trace"), "uthoriz") != NULL);
    assert_int_equal(topic_partitions(far->open, scratch_text("%s-eve", n->out)), 0);
    worker_run_await(w, "source", "RUNNING", 1, FLOW_MS);
}

static void connectors_live_on_another_kafka_than_their_worker(void **state)
{
    const struct names n = {scratch_name("far-out"), scratch_name("far-in"),
                            scratch_name("far-dead"), scratch_name("far-own")};
    struct secure_kafka far = secure_kafka_start(0, USERS, CLOSED);
    struct worker_run *w = worker_run_start(&(struct worker_run_options){
        .group = scratch_name("two"), .props = "scheduled.rebalance.max.delay.ms=0\n"});

    (void)state;
    topic_create(far.open, n.in, 1);
    allow(&far, &n);
    a_source_creates_and_writes_there(w, &far, &n);
    a_sink_reads_commits_and_writes_dead_letters_there(w, &far, &n);
    another_user_has_none_of_bobs_rights(w, &far, &n);
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(connectors_live_on_another_kafka_than_their_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
