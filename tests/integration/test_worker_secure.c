/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a cluster that is locked: TLS, logins that end every few seconds, tokens that do so
 * too, and an authorizer that allows what a Java worker needs and nothing else. Nothing is lost by
 * any of it, no work moves, and what is missing is named. */
#include "support/acl.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/unit/secure_kafka.h"
#include "support/unit/token_endpoint.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 60000
#define STATE_MS 60000
#define REAUTH_MS 5000
#define TOKEN_S 8

#define AUTHORIZER \
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n" \
    "super.users=User:ANONYMOUS\nauto.create.topics.enable=false\n"
#define QUICK \
    "session.timeout.ms=6000\nheartbeat.interval.ms=500\nscheduled.rebalance.max.delay.ms=0\n"

/* --- who may do what -------------------------------------------------------------------------- */

/* What the documentation of Kafka Connect asks for: the group, the three topics (and to create
 * them), what is read and written, and the sinks' groups. Not the topic of the workers' words, the
 * one thing that is missed, and warned about once. */
static size_t needed(struct acl *acls, const char *group, const char *lines)
{
    static const char *const topics[] = {"configs", "offsets", "status"};
    size_t count = 0;

#define ALLOW(kind, text, op) \
    acls[count++] = (struct acl){RD_KAFKA_RESOURCE_##kind, text, RD_KAFKA_ACL_OPERATION_##op}
    ALLOW(GROUP, group, READ);
    for (size_t i = 0; i < 3; i++) {
        const char *topic = scratch_text("%s-%s", group, topics[i]);

        ALLOW(TOPIC, topic, CREATE);
        ALLOW(TOPIC, topic, READ);
        ALLOW(TOPIC, topic, WRITE);
    }
    ALLOW(TOPIC, lines, WRITE);
    ALLOW(TOPIC, lines, READ);
    ALLOW(GROUP, "connect-sink0", READ);
    ALLOW(GROUP, "connect-sink1", READ);
#undef ALLOW
    return count;
}

/* --- workers ---------------------------------------------------------------------------------- */

/* For the worker itself, and for the producers and consumers of its connectors. */
static const char *for_all_clients(const char *props)
{
    const char *out = scratch_text("%s", props);
    static const char *const prefixes[] = {"producer.", "consumer."};

    for (size_t i = 0; i < 2; i++) {
        const char *at = props;

        while (*at != '\0') {
            size_t len = strcspn(at, "\n");

            out = scratch_text("%s%s%.*s\n", out, prefixes[i], (int)len, at);
            at += len + (at[len] == '\n');
        }
    }
    return out;
}

static const char *over_tls(const struct secure_kafka *s)
{
    return scratch_text("security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
                        "ssl.truststore.location=%s\n",
                        s->trust);
}

static const char *by_password(const struct secure_kafka *s, const char *user)
{
    return for_all_clients(
        scratch_text("%ssasl.mechanism=PLAIN\n"
                     "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
                     "required username=\"%s\" password=\"secret\";\n",
                     over_tls(s), user));
}

static const char *by_token(const struct secure_kafka *s, const struct token_endpoint *endpoint,
                            const char *user)
{
    return for_all_clients(scratch_text(
        "%ssasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerLoginCallbackHandler\n"
        "sasl.oauthbearer.token.endpoint.url=%s\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
        "required clientId=\"%s\" clientSecret=\"" TOKEN_ENDPOINT_SECRET "\" scope=\"kafka\";\n",
        over_tls(s), token_endpoint_url(endpoint), user));
}

static struct worker_run *start(const struct secure_kafka *s, const char *group, const char *name,
                                const char *login, bool dont_wait)
{
    return worker_run_start(&(struct worker_run_options){.name = name,
                                                         .group = group,
                                                         .servers = s->servers,
                                                         .props = scratch_text(QUICK "%s", login),
                                                         .dont_wait = dont_wait});
}

static void stop_endpoint(void *arg)
{
    struct token_endpoint *e = arg;

    token_endpoint_stop(&e);
}

/* --- flows ------------------------------------------------------------------------------------ */

#define FLOWS 2

struct flows {
    const char *group;
    const char *topic;
    const char *in[FLOWS];
    const char *out[FLOWS];
    int sent; /* lines into each file */
};

static void create_source(const struct worker_run *w, const struct flows *f, int i)
{
    worker_run_put(w, scratch_text("source%d", i),
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": "
                                "\"1\", \"file\": \"%s\", \"topic\": \"%s\"",
                                f->in[i], f->topic));
}

static void create(const struct worker_run *w, const struct flows *f, int i)
{
    create_source(w, f, i);
    worker_run_put(w, scratch_text("sink%d", i),
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"tasks.max\": "
                                "\"1\", \"file\": \"%s\", \"topics\": \"%s\"",
                                f->out[i], f->topic));
}

static void await_running(const struct worker_run *w)
{
    for (int i = 0; i < FLOWS; i++) {
        worker_run_await(w, scratch_text("source%d", i), "RUNNING", 1, STATE_MS);
        worker_run_await(w, scratch_text("sink%d", i), "RUNNING", 1, STATE_MS);
    }
}

static size_t count_of(const char *path, const char *text)
{
    const char *p = scratch_read(path, NULL);
    size_t count = 0;

    for (; p != NULL && (p = strstr(p, text)) != NULL; p++)
        count++;
    return count;
}

static void send_lines(struct flows *f, int ms)
{
    int64_t from = scratch_now_ms();

    do {
        for (int i = 0; i < FLOWS; i++)
            scratch_append_text(f->in[i], scratch_text("%d:%d\n", i, f->sent));
        f->sent++;
        scratch_pause(50);
    } while (scratch_since(from) < ms);
}

/* Every line that was sent came out of every sink. */
static void assert_all_arrived(const struct flows *f)
{
    for (int i = 0; i < FLOWS; i++)
        for (int n = 0; n < f->sent; n++)
            for (int from = 0; from < FLOWS; from++)
                wait_until(FLOW_MS, scratch_contains(f->out[i], scratch_text("%d:%d\n", from, n)));
}

static void assert_none_twice(const struct flows *f)
{
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(count_of(f->out[i], "\n"), FLOWS * f->sent);
}

static size_t rounds_of(const struct worker_run *w)
{
    return count_of(w->log, "worker.group round ");
}

/* --- what is there, works --------------------------------------------------------------------- */

/* One worker logs in by password, the other by tokens; each runs a source and a sink. Every
 * connection's login ends twice at least, and so does the token. */
static void nothing_moves_and_nothing_is_lost_when_logins_end(struct worker_run *const *w,
                                                              struct flows *f,
                                                              struct token_endpoint *endpoint)
{
    size_t rounds = rounds_of(w[0]);
    int tokens = token_endpoint_given(endpoint);

    send_lines(f, 2 * REAUTH_MS + 1500);
    assert_all_arrived(f);
    assert_none_twice(f);
    assert_int_equal(rounds_of(w[0]), rounds);
    assert_true(token_endpoint_given(endpoint) > tokens);
    for (int i = 0; i < 2; i++) {
        assert_false(scratch_contains(w[i]->log, TOKEN_ENDPOINT_SECRET));
        assert_false(scratch_contains(w[i]->log, "eyJ"));
        assert_false(scratch_contains(w[i]->log, " ERROR "));
    }
}

/* A login that ends in the middle of a sink's last commit may cost its confirmation: then records
 * come twice. */
static void changes_and_restarts_work(struct worker_run *const *w, struct flows *f)
{
    worker_run_expect(w[1], 202, "PUT", "/connectors/source0/pause", NULL);
    worker_run_await(w[0], "source0", "PAUSED", 1, STATE_MS);
    worker_run_expect(w[0], 202, "PUT", "/connectors/source0/resume", NULL);
    worker_run_expect(w[1], 200, "PATCH", "/connectors/source1/config", "{\"batch.size\": \"7\"}");
    worker_run_await(w[1], "source0", "RUNNING", 1, STATE_MS);
    send_lines(f, 200);
    assert_int_equal(worker_run_stop(w[1]), 0);
    await_running(w[0]);
    wait_until(STATE_MS, strcmp(worker_run_state(w[0], "sink1", "tasks.0.worker_id"),
                                worker_run_state(w[0], "sink0", "tasks.0.worker_id")) == 0);
    send_lines(f, 200);
    assert_all_arrived(f);
}

static void a_locked_cluster_is_served(const struct secure_kafka *s, struct flows *f)
{
    struct token_endpoint *endpoint = token_endpoint_start();
    struct acl acls[32];
    struct worker_run *w[2];

    scratch_at_end(stop_endpoint, endpoint);
    token_endpoint_life(endpoint, TOKEN_S);
    acl_allow(s->open, "User:alice", acls, needed(acls, f->group, f->topic));
    w[0] = start(s, f->group, "w1", by_password(s, "alice"), false);
    w[1] = start(s, f->group, "w2", by_token(s, endpoint, "alice"), false);
    for (int i = 0; i < FLOWS; i++)
        create(w[0], f, i);
    await_running(w[0]);
    send_lines(f, 200);
    assert_all_arrived(f);
    nothing_moves_and_nothing_is_lost_when_logins_end(w, f, endpoint);
    for (int i = 0; i < 2; i++)
        assert_int_equal(count_of(w[i]->log, "needs the ACLs Create, Read, Write and Describe"), 1);
    changes_and_restarts_work(w, f);
    assert_int_equal(worker_run_stop(w[0]), 0);
}

/* --- what is missing, is named ---------------------------------------------------------------- */

static void ends_with(const struct secure_kafka *s, const char *group, const char *name,
                      const char *login, const char *const *words)
{
    struct worker_run *w = start(s, group, name, login, true);

    assert_true(process_wait(w->process, STATE_MS) > 0);
    for (; *words != NULL; words++)
        if (!scratch_contains(w->log, *words))
            fail_msg("the log does not say: %s\n%s", *words, scratch_read(w->log, NULL));
    assert_false(scratch_contains(w->log, "s3cret"));
}

/* All rights but one: users are named after it. */
static void allow_all_but(const struct secure_kafka *s, const char *group, const char *topic,
                          size_t left_out)
{
    struct acl acls[32];
    size_t count = needed(acls, group, topic);

    memmove(acls + left_out, acls + left_out + 1, (count - left_out - 1) * sizeof(*acls));
    acl_allow(s->open, scratch_text("User:u%zu", left_out), acls, count - 1);
}

#define NO_GROUP 0
#define NO_CONFIG_READ 2
#define NO_OFFSETS_READ 5
#define NO_LINES_WRITE 10
#define NO_LINES_READ 11
#define NO_SINK1_GROUP 13
#define RIGHTS 14

static void a_worker_without_its_rights_ends_and_names_them(const struct secure_kafka *s,
                                                            const struct flows *f)
{
    const char *empty = scratch_name("empty");

    allow_all_but(s, empty, f->topic, NO_OFFSETS_READ);
    ends_with(s, empty, "noread", by_password(s, scratch_text("u%d", NO_OFFSETS_READ)),
              (const char *const[]){"offset.storage.topic",
                                    scratch_text("Topic %s-offsets may not be read", empty),
                                    "ACLs Read and Describe", NULL});
    ends_with(s, f->group, "nogroup", by_password(s, scratch_text("u%d", NO_GROUP)),
              (const char *const[]){f->group, "must allow this principal Read on the group", NULL});
    ends_with(s, f->group, "noconfig", by_password(s, scratch_text("u%d", NO_CONFIG_READ)),
              (const char *const[]){scratch_text("Topic %s-configs may not be read", f->group),
                                    "ACLs Read and Describe", NULL});
    ends_with(s, scratch_name("other"), "nocreate", by_password(s, "alice"),
              (const char *const[]){"(offset.storage.topic) may not be used",
                                    "the ACLs Read, Write and Describe on it", NULL});
}

static void await_failed(const struct worker_run *w, const char *conn, const char *const *words)
{
    const char *trace;

    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    trace = worker_run_state(w, conn, "tasks.0.trace");
    for (; *words != NULL; words++)
        if (strstr(trace, *words) == NULL)
            fail_msg("%s: \"%s\" is not in: %s", conn, *words, trace);
}

/* One worker whose connectors log in as users that lack one right each. */
static void a_task_without_its_rights_fails_and_names_them(const struct secure_kafka *s,
                                                           struct flows *f)
{
    static const struct {
        const char *conn;
        int user;
        const char *class_and_name;
        const char *client;
        const char *word;
    } cases[] = {
        {"source0", NO_LINES_WRITE, "FileStreamSource\", \"topic", "producer", "Write to produce"},
        {"sink0", NO_LINES_READ, "FileStreamSink\", \"topics", "consumer", "Read on the topic"},
        {"sink1", NO_SINK1_GROUP, "FileStreamSink\", \"topics", "consumer",
         "Read on its consumer group"},
    };
    struct worker_run *w = start(s, f->group, "w3", by_password(s, "alice"), false);

    for (size_t i = 0; i < 3; i++) {
        worker_run_put(w, cases[i].conn,
                       scratch_text("\"connector.class\": \"%s\": \"%s\", \"file\": \"%s\", "
                                    "\"%s.override.sasl.jaas.config\": "
                                    "\"org.apache.kafka.common.security.plain.PlainLoginModule "
                                    "required username='u%d' password='secret';\"",
                                    cases[i].class_and_name, f->topic, f->in[0], cases[i].client,
                                    cases[i].user));
        if (i == 0)
            send_lines(f, 0);
    }
    for (size_t i = 0; i < 3; i++)
        await_failed(w, cases[i].conn, (const char *const[]){cases[i].word, NULL});
}

/* --- exactly once ------------------------------------------------------------------------------ */

/* Users who may all but: 0 nothing is missing, 1 the leader's id, 2 the ids of tasks. */
#define EXACTLY 3

/* This librdkafka knows no rights on transactional ids. */
static void allow_ids(const struct secure_kafka *s, const char *users, const char *id)
{
    char *output;
    const char *command =
        scratch_text("c=org.apache.kafka.tools.AclCommand; "
                     "[ \"${KAFKA_VERSION:-4}\" != 3.9.1 ] || c=kafka.admin.AclCommand; "
                     "KAFKA_RUN='%s' tests/kafka/kafka.sh tool $c --bootstrap-server %s --add %s "
                     "--operation Write --operation Describe --transactional-id %s",
                     kafka_run_folder_of(s->kafka), s->open, users, id);

    if (process_shell(command, STATE_MS, &output) != 0)
        fail_msg("%s: %s", command, output);
}

static void allow_exactly_once(const struct secure_kafka *s, const char *group, const char *topic)
{
    struct acl acls[32];

    for (int i = 0; i < EXACTLY; i++)
        acl_allow(s->open, scratch_text("User:e%d", i), acls, needed(acls, group, topic));
    allow_ids(s, "--allow-principal User:e0 --allow-principal User:e2",
              scratch_text("connect-cluster-%s", group));
    allow_ids(s, "--allow-principal User:e0 --allow-principal User:e1",
              scratch_text("%s-source0-0", group));
}

static struct worker_run *start_exactly_once(const struct secure_kafka *s, const char *group, int i)
{
    return start(s, group, scratch_text("e%d", i),
                 scratch_text("exactly.once.source.support=enabled\n%s",
                              by_password(s, scratch_text("e%d", i))),
                 false);
}

static void exactly_once_works_and_names_what_is_missing(const struct secure_kafka *s,
                                                         const struct flows *all)
{
    const char *group = scratch_name("eos");
    struct flows f = {.group = group, .topic = all->topic};
    int64_t before = topic_count(s->open, f.topic);
    struct worker_run *w;

    f.in[0] = scratch_path("in-eos");
    scratch_write_text(f.in[0], "a\nb\n");
    allow_exactly_once(s, group, f.topic);
    w = start_exactly_once(s, group, 0);
    create_source(w, &f, 0);
    worker_run_await(w, "source0", "RUNNING", 1, STATE_MS);
    wait_until(FLOW_MS, topic_count(s->open, f.topic) >= before + 2);
    assert_int_equal(worker_run_stop(w), 0);
    w = start_exactly_once(s, group, 2);
    await_failed(w, "source0",
                 (const char *const[]){"Write", scratch_text("%s-source0-0", group), NULL});
    assert_int_equal(worker_run_stop(w), 0);
    w = start_exactly_once(s, group, 1);
    wait_until(STATE_MS, scratch_contains(w->log, "can't be written by this worker as the leader"));
    assert_true(scratch_contains(w->log, scratch_text("connect-cluster-%s", group)));
    assert_int_equal(worker_run_stop(w), 0);
}

/* --- logins that can't be --------------------------------------------------------------------- */

static void logins_that_can_not_be_end_the_start(const struct secure_kafka *s, const char *group)
{
    struct token_endpoint *endpoint = token_endpoint_start();
    const char *wrong = by_token(s, endpoint, "alice");

    scratch_at_end(stop_endpoint, endpoint);
    token_endpoint_answer(endpoint,
                          "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n"
                          "{\"error\":\"invalid_client\",\"x\":\"" TOKEN_ENDPOINT_SECRET "\"}");
    ends_with(s, group, "gssapi", scratch_text("%ssasl.mechanism=GSSAPI\n", over_tls(s)),
              (const char *const[]){"sasl.mechanism", "GSSAPI", NULL});
    ends_with(s, group, "refused", wrong,
              (const char *const[]){"invalid_client", "/token answered with status 401", NULL});
}

/* One broker for all: each part has users of its own. */
static void a_locked_cluster_works_and_names_what_is_missing(void **state)
{
    const char *users = "user_broker=\"secret\" user_alice=\"secret\"";
    struct flows f = {.group = scratch_name("secure"), .topic = scratch_name("lines")};
    struct secure_kafka s;

    (void)state;
    for (int i = 0; i < RIGHTS; i++)
        users = scratch_text("%s user_u%d=\"secret\"", users, i);
    for (int i = 0; i < EXACTLY; i++)
        users = scratch_text("%s user_e%d=\"secret\"", users, i);
    for (int i = 0; i < FLOWS; i++) {
        f.in[i] = scratch_path(scratch_text("in%d", i));
        f.out[i] = scratch_path(scratch_text("out%d", i));
        scratch_write_text(f.in[i], "");
    }
    s = secure_kafka_start(REAUTH_MS, users, AUTHORIZER);
    topic_create(s.open, f.topic, 1);
    for (size_t i = 0; i < RIGHTS; i++)
        allow_all_but(&s, f.group, f.topic, i);
    a_locked_cluster_is_served(&s, &f);
    a_worker_without_its_rights_ends_and_names_them(&s, &f);
    a_task_without_its_rights_fails_and_names_them(&s, &f);
    exactly_once_works_and_names_what_is_missing(&s, &f);
    logins_that_can_not_be_end_the_start(&s, f.group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_locked_cluster_works_and_names_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
