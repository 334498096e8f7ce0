/* SPDX-License-Identifier: Apache-2.0 */
/* Sources under exactly.once.source.support=enabled, against a real broker: what a reader of
 * committed records sees, whatever is killed; and that producers of an earlier set of tasks can't
 * commit any more. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include "kafka/producer.h"
#include "kafka/topic_admin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_MS 60000
#define LINES 500 /* that one append brings */

static struct worker_run *member(const char *name, const char *group, const char *props)
{
    return worker_run_start(&(struct worker_run_options){
        .name = name,
        .group = group,
        .props = scratch_text("exactly.once.source.support=enabled\n"
                              "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
                              "%s",
                              props)});
}

struct flow {
    const char *file;
    const char *topic;
    int lines; /* appended so far */
};

static struct flow flow_start(const struct worker_run *w, const char *conn, const char *more)
{
    struct flow f = {.file = scratch_path("in"), .topic = scratch_name("out")};

    scratch_write_text(f.file, "");
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": \"1\", "
                                "\"file\": \"%s\", \"topic\": \"%s\"%s",
                                f.file, f.topic, more));
    return f;
}

static void flow_append(struct flow *f)
{
    char lines[LINES * 12];
    size_t len = 0;

    for (int i = 0; i < LINES; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%d\n", f->lines++);
    scratch_append(f->file, lines, len);
}

/* Every line, once, in order, for a reader of committed records. */
static void flow_arrived(const struct flow *f, const char *servers)
{
    struct topic_records got = topic_read(servers, f->topic, (size_t)f->lines, STATE_MS);

    assert_int_equal(got.count, f->lines);
    for (int i = 0; i < f->lines; i++)
        assert_int_equal(atoi(got.records[i].value), i);
}

/* How far its only partition has come, open transactions included; 0 while it is not there. */
static int64_t end_of(const char *servers, const char *topic)
{
    struct props java;
    struct mr_error err = {0};
    struct topic_admin *admin;
    int64_t end = 0;

    props_init(&java);
    assert_int_equal(props_set(&java, "bootstrap.servers", servers), 0);
    admin = topic_admin_new(&java, NULL, NULL, &err);
    assert_non_null(admin);
    props_deinit(&java);
    if (topic_admin_ends(admin, topic, 1, 5000, &end, &err) != 0)
        end = 0;
    topic_admin_free(&admin);
    return end;
}

/* --- killed ----------------------------------------------------------------------------------- */

static void killed_hosts_lose_and_double_nothing(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    struct flow f = flow_start(w, "src", "");

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    for (int i = 0; i < 3; i++) {
        pid_t host;

        flow_append(&f);
        wait_until(STATE_MS, (host = worker_run_host(w, "src")) > 0);
        assert_int_equal(kill(host, SIGKILL), 0);
        flow_append(&f);
        wait_until(STATE_MS, worker_run_host(w, "src") > 0 && worker_run_host(w, "src") != host);
    }
    flow_arrived(&f, w->servers);
    assert_int_equal(worker_run_stop(w), 0);
}

/* By interval nothing is committed before the time is over. A host that outlives its worker commits
 * at its end: here all die at once. */
static void an_open_transaction_of_the_dead_vanishes(void **state)
{
    const char *props = "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"
                        "scheduled.rebalance.max.delay.ms=0\n";
    const char *group = scratch_name("eos");
    struct worker_run *w = member("w", group, props);
    struct flow f = flow_start(w, "src",
                               ", \"transaction.boundary\": \"interval\", "
                               "\"transaction.boundary.interval.ms\": \"300000\", "
                               "\"producer.override.transaction.timeout.ms\": \"600000\"");

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    wait_until(STATE_MS, end_of(w->servers, f.topic) >= LINES); /* sent, and not committed */
    assert_int_equal(topic_read(w->servers, f.topic, 0, 0).count, 0);
    process_signal(w->process, SIGSTOP);
    assert_int_equal(kill(worker_run_host(w, "src"), SIGKILL), 0);
    worker_run_kill(w);
    worker_run_again(w);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    wait_until(STATE_MS, end_of(w->servers, f.topic) > 3 * LINES);
    assert_int_equal(topic_read(w->servers, f.topic, 0, 0).count, 0);
    assert_int_equal(worker_run_stop(w), 0); /* the last transaction is committed */
    flow_arrived(&f, w->servers);
}

/* The work of a lost worker waits for minutes here, and so would who reads what it has left open,
 * without its leader. */
static void an_open_transaction_of_a_lost_worker_holds_no_reader_up(void **state)
{
    const char *props = "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"
                        "scheduled.rebalance.max.delay.ms=600000\n";
    const char *open = ", \"transaction.boundary\": \"interval\", "
                       "\"transaction.boundary.interval.ms\": \"600000\", "
                       "\"producer.override.transaction.timeout.ms\": \"600000\"";
    const char *group = scratch_name("eos");
    struct worker_run *leader = member("a", group, props), *lost = member("b", group, props);
    struct flow flows[2];
    int mine;

    (void)state;
    for (int i = 0; i < 2; i++)
        flows[i] = flow_start(leader, scratch_text("src%d", i), open);
    for (int i = 0; i < 2; i++)
        worker_run_await(leader, scratch_text("src%d", i), "RUNNING", 1, STATE_MS);
    mine =
        atoi(strrchr(worker_run_state(leader, "src0", "tasks.0.worker_id"), ':') + 1) != lost->port;
    flow_append(&flows[mine]);
    wait_until(STATE_MS, end_of(leader->servers, flows[mine].topic) >= LINES);
    topic_produce(leader->servers, flows[mine].topic, 0, NULL, "of another");
    assert_int_equal(topic_read(leader->servers, flows[mine].topic, 0, 0).count, 0);
    process_signal(lost->process, SIGSTOP);
    assert_int_equal(kill(worker_run_host(lost, scratch_text("src%d", mine)), SIGKILL), 0);
    worker_run_kill(lost);
    assert_int_equal(topic_read(leader->servers, flows[mine].topic, 1, STATE_MS).count, 1);
}

/* Nobody starts it again. */
static void an_open_transaction_of_a_dead_host_holds_no_reader_up(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "millrace.restart.max=0\n");
    struct flow f = flow_start(w, "src",
                               ", \"transaction.boundary\": \"interval\", "
                               "\"transaction.boundary.interval.ms\": \"600000\", "
                               "\"producer.override.transaction.timeout.ms\": \"600000\"");

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    wait_until(STATE_MS, end_of(w->servers, f.topic) >= LINES);
    topic_produce(w->servers, f.topic, 0, NULL, "of another");
    assert_int_equal(topic_read(w->servers, f.topic, 0, 0).count, 0);
    assert_int_equal(kill(worker_run_host(w, "src"), SIGKILL), 0);
    assert_int_equal(topic_read(w->servers, f.topic, 1, STATE_MS).count, 1);
    worker_run_await(w, "src", "FAILED", 1, STATE_MS);
}

/* All died, and it can't start any more: what it refers to is gone. Its worker ends what it has
 * open. */
static void an_open_transaction_of_who_can_not_start_holds_no_reader_up(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"),
                                  "config.providers=file\n"
                                  "config.providers.file.class=FileConfigProvider\n");
    const char *secrets = scratch_path("secrets");
    struct flow f;

    (void)state;
    scratch_write_text(secrets, "note=here\n");
    f = flow_start(w, "src",
                   scratch_text(", \"transaction.boundary\": \"interval\", "
                                "\"transaction.boundary.interval.ms\": \"600000\", "
                                "\"producer.override.transaction.timeout.ms\": \"600000\", "
                                "\"note\": \"${file:%s:note}\"",
                                secrets));
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    wait_until(STATE_MS, end_of(w->servers, f.topic) >= LINES);
    topic_produce(w->servers, f.topic, 0, NULL, "of another");
    assert_int_equal(topic_read(w->servers, f.topic, 0, 0).count, 0);
    process_signal(w->process, SIGSTOP);
    assert_int_equal(kill(worker_run_host(w, "src"), SIGKILL), 0);
    worker_run_kill(w);
    assert_int_equal(unlink(secrets), 0);
    worker_run_again(w);
    wait_until(STATE_MS, strcmp(worker_run_state(w, "src", "tasks.0.state"), "FAILED") == 0);
    assert_int_equal(topic_read(w->servers, f.topic, 1, STATE_MS).count, 1);
}

/* --- stopped, paused, moved ------------------------------------------------------------------- */

static void a_pause_commits_what_is_open(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    struct flow f = flow_start(w, "src",
                               ", \"transaction.boundary\": \"interval\", "
                               "\"transaction.boundary.interval.ms\": \"300000\", "
                               "\"producer.override.transaction.timeout.ms\": \"600000\"");

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    wait_until(STATE_MS, end_of(w->servers, f.topic) >= LINES);
    worker_run_expect(w, 202, "PUT", "/connectors/src/pause", NULL);
    flow_arrived(&f, w->servers);
    worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    assert_int_equal(worker_run_stop(w), 0);
    worker_run_again(w);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    wait_until(STATE_MS, end_of(w->servers, f.topic) >= 2 * LINES);
    assert_int_equal(worker_run_stop(w), 0);
    flow_arrived(&f, w->servers);
}

/* The interval alone would have brokers abort one after another. */
static void a_transaction_ends_before_its_timeout(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    struct flow f = flow_start(w, "src",
                               ", \"transaction.boundary\": \"interval\", "
                               "\"transaction.boundary.interval.ms\": \"600000\", "
                               "\"producer.override.transaction.timeout.ms\": \"10000\"");

    (void)state;
    flow_append(&f);
    flow_arrived(&f, w->servers);
}

static void work_that_moves_arrives_once(void **state)
{
    const char *group = scratch_name("eos");
    struct worker_run *a = member("a", group, "");
    struct worker_run *b = member("b", group, "");
    struct flow f = flow_start(a, "src", "");

    (void)state;
    worker_run_await(a, "src", "RUNNING", 1, STATE_MS);
    for (int i = 0; i < 2; i++) {
        struct worker_run *has = worker_run_host(a, "src") > 0 ? a : b;

        flow_append(&f);
        assert_int_equal(worker_run_stop(has), 0);
        flow_append(&f);
        worker_run_await(has == a ? b : a, "src", "RUNNING", 1, STATE_MS);
        flow_arrived(&f, has->servers);
        worker_run_again(has);
    }
}

static bool has_key(const char *servers, const char *topic, const char *key)
{
    struct topic_records got = topic_read(servers, topic, 0, 0);

    for (size_t i = 0; i < got.count; i++)
        if (got.records[i].key != NULL && strcmp(got.records[i].key, key) == 0)
            return true;
    return false;
}

/* disabled, then preparing on all, then enabled on all: each by a rolling restart under way. */
static void a_cluster_comes_to_it_by_rolling_restarts(void **state)
{
    static const char *const modes[] = {"disabled", "preparing", "enabled"};
    const char *group = scratch_name("eos");
    struct worker_run *w[2];
    struct flow f;
    pid_t host;

    (void)state;
    for (int i = 0; i < 2; i++)
        w[i] = member(scratch_text("w%d", i), group, "exactly.once.source.support=disabled\n");
    f = flow_start(w[0], "src", "");
    for (size_t mode = 1; mode < 3; mode++)
        for (int i = 0; i < 2; i++) {
            flow_append(&f);
            assert_int_equal(worker_run_stop(w[i]), 0);
            scratch_append_text(w[i]->config,
                                scratch_text("exactly.once.source.support=%s\n", modes[mode]));
            worker_run_again(w[i]);
            flow_append(&f);
            flow_arrived(&f, w[0]->servers);
        }
    for (int i = 0; i < 2; i++)
        if ((host = worker_run_host(w[i], "src")) > 0)
            assert_int_equal(kill(host, SIGKILL), 0);
    flow_append(&f);
    flow_arrived(&f, w[0]->servers);
    assert_true(has_key(w[0]->servers, scratch_text("%s-configs", group), "tasks-fencing-src"));
}

/* --- where the plugin says that they end ------------------------------------------------------ */

#define COUNT 495

static const char *chapters_start(const struct worker_run *w, const char *ends)
{
    const char *topic = scratch_name(ends);

    worker_run_put(w, "src",
                   scratch_text("\"connector.class\": \"Chapters\", \"topic\": \"%s\", "
                                "\"ends\": \"%s\", \"count\": \"%d\", "
                                "\"transaction.boundary\": \"connector\", "
                                "\"exactly.once.support\": \"required\"",
                                topic, ends, COUNT));
    return topic;
}

static bool stands_by_record(int number)
{
    return number % 10 < 5 || number % 10 > 7;
}

static bool stands_by_batch(int number)
{
    return number / 10 % 3 != 2;
}

static bool stands(int number)
{
    return number >= 0;
}

/* Exactly these numbers, in order, whatever was killed meanwhile. */
static void chapters_arrive(const char *ends, bool (*holds)(int number))
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    const char *topic = chapters_start(w, ends);
    struct topic_records got;
    size_t want = 0, seen = 0;

    for (int n = 0; n < COUNT; n++)
        want += holds(n);
    for (size_t i = 1; i <= 2; i++) {
        pid_t host;

        topic_read(w->servers, topic, i * want / 4, STATE_MS);
        wait_until(STATE_MS, (host = worker_run_host(w, "src")) > 0);
        assert_int_equal(kill(host, SIGKILL), 0);
    }
    got = topic_read(w->servers, topic, want, STATE_MS);
    assert_int_equal(got.count, want);
    for (int n = 0; n < COUNT; n++)
        if (holds(n))
            assert_int_equal(atoi(got.records[seen++].value), n);
    assert_int_equal(worker_run_stop(w), 0);
}

static void a_transaction_ends_behind_the_record_that_says_so(void **state)
{
    (void)state;
    chapters_arrive("record", stands_by_record);
}

static void a_transaction_ends_with_the_batch_that_says_so(void **state)
{
    (void)state;
    chapters_arrive("batch", stands_by_batch);
}

static void a_poll_without_records_can_end_one(void **state)
{
    (void)state;
    chapters_arrive("later", stands);
}

static void a_plugin_that_wants_both_ends_fails(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    const char *topic = chapters_start(w, "both");

    (void)state;
    wait_until(STATE_MS, strcmp(worker_run_state(w, "src", "tasks.0.state"), "FAILED") == 0);
    assert_non_null(
        strstr(worker_run_state(w, "src", "tasks.0.trace"), "both commit and abort were asked"));
    assert_int_equal(topic_read(w->servers, topic, 0, 0).count, 0);
}

/* --- fenced ----------------------------------------------------------------------------------- */

static void walked(void *arg, void *opaque, int code, const char *text)
{
    (void)opaque, (void)text;
    *(int *)arg += code == 0;
}

static int insist(int (*step)(struct producer *, int64_t, struct mr_error *), struct producer *p,
                  struct mr_error *err)
{
    int64_t from = scratch_now_ms();
    int rc;

    while ((rc = step(p, 100, err)) == MR_AGAIN && scratch_since(from) < STATE_MS)
        ;
    return rc;
}

/* A producer with this id and one record in an open transaction, as a task of an earlier set has
 * it. */
static struct producer *zombie(const char *servers, const char *id, const char *topic)
{
    struct props java;
    struct mr_error err = {0};
    struct producer *p;
    int delivered = 0;

    props_init(&java);
    assert_int_equal(props_set(&java, "bootstrap.servers", servers), 0);
    assert_int_equal(props_set(&java, "transactional.id", id), 0);
    assert_int_equal(props_set(&java, "transaction.timeout.ms", "600000"), 0);
    p = producer_new(&java, NULL, NULL, &err);
    props_deinit(&java);
    if (p == NULL || insist(producer_txn_init, p, &err) != 0 || producer_txn_begin(p, &err) != 0 ||
        producer_send(p,
                      &(struct producer_record){.topic = producer_topic(p, topic, &err),
                                                .timestamp_ms = -1,
                                                .key = "zombie",
                                                .key_len = 6,
                                                .value = "zombie",
                                                .value_len = 6},
                      &err) != 0)
        fail_msg("%s", err.text);
    wait_until(STATE_MS, producer_reports(p, 100, walked, &delivered) > 0);
    assert_int_equal(delivered, 1);
    return p;
}

static void producers_of_an_earlier_set_cannot_commit(void **state)
{
    const char *group = scratch_name("eos"), *configs = scratch_text("%s-configs", group);
    struct worker_run *w = member("w", group, "");
    const char *topic = scratch_name("z");
    struct producer *p;
    struct mr_error err = {0};
    struct flow f;

    (void)state;
    topic_create(w->servers, topic, 1);
    p = zombie(w->servers, scratch_text("%s-src-1", group), topic);
    topic_produce(w->servers, configs, 0, "tasks-fencing-src", "{\"task-count\":2}");
    f = flow_start(w, "src", "");
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    assert_int_equal(insist(producer_txn_commit, p, &err), MR_ERR_CLOSED);
    producer_free(&p);
    flow_append(&f);
    flow_arrived(&f, w->servers);
    assert_int_equal(topic_read(w->servers, topic, 0, 0).count, 0);
    assert_true(scratch_contains(w->log, "fences the producers of 2 earlier tasks"));
}

/* As tasks and a leader leave them that were killed while a transaction ended: in the topics that
 * every worker reads before it joins. */
static void a_cluster_starts_in_spite_of_open_transactions_of_the_dead(void **state)
{
    const char *group = scratch_name("eos");
    struct worker_run *w = member("w", group, "");
    struct flow f = flow_start(w, "src", "");
    struct producer *task, *leader;

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    flow_arrived(&f, w->servers);
    assert_int_equal(worker_run_stop(w), 0);
    task = zombie(w->servers, scratch_text("%s-src-0", group), scratch_text("%s-offsets", group));
    leader = zombie(w->servers, scratch_text("connect-cluster-%s", group),
                    scratch_text("%s-configs", group));
    worker_run_again(w);
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    flow_arrived(&f, w->servers);
    worker_run_expect(w, 204, "PUT", "/connectors/src/stop", NULL); /* the leader writes */
    worker_run_await(w, "src", "STOPPED", 0, STATE_MS);
    producer_free(&task);
    producer_free(&leader);
}

/* The id is taken from a running task: it goes on, with nothing lost and nothing doubled. */
static void a_task_whose_id_was_taken_begins_anew(void **state)
{
    const char *group = scratch_name("eos"), *topic = scratch_name("z");
    struct worker_run *w = member("w", group, "");
    struct flow f = flow_start(w, "src", "");
    struct producer *p;

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    flow_arrived(&f, w->servers);
    topic_create(w->servers, topic, 1);
    p = zombie(w->servers, scratch_text("%s-src-0", group), topic);
    flow_append(&f);
    flow_arrived(&f, w->servers);
    assert_true(scratch_contains(w->log, "the task begins anew"));
    producer_free(&p);
}

/* Offsets are changed by a leader that has ended all producers of before: what one of them had
 * under way can't come behind the change. */
static void offsets_are_changed_behind_a_fence(void **state)
{
    static const char *const methods[] = {"PATCH", "DELETE"};
    const char *group = scratch_name("eos"), *topic = scratch_name("z");
    struct worker_run *w = member("w", group, "");
    struct flow f = flow_start(w, "src", "");

    (void)state;
    topic_create(w->servers, topic, 1);
    for (size_t i = 0; i < 2; i++) {
        const char *body = scratch_text("{\"offsets\": [{\"partition\": {\"filename\": \"%s\"}, "
                                        "\"offset\": {\"position\": 0}}]}",
                                        f.file);
        struct mr_error err = {0};
        struct producer *p;

        worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
        worker_run_expect(w, 204, "PUT", "/connectors/src/stop", NULL);
        worker_run_await(w, "src", "STOPPED", 0, STATE_MS);
        p = zombie(w->servers, scratch_text("%s-src-0", group), topic);
        worker_run_expect(w, 200, methods[i], "/connectors/src/offsets", i == 0 ? body : NULL);
        assert_int_equal(insist(producer_txn_commit, p, &err), MR_ERR_CLOSED);
        producer_free(&p);
        worker_run_expect(w, 202, "PUT", "/connectors/src/resume", NULL);
    }
    assert_int_equal(topic_read(w->servers, topic, 0, 0).count, 0);
}

static bool is_refused(const struct worker_run *w, const char *conn)
{
    return strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0 &&
           strstr(worker_run_state(w, conn, "tasks.0.trace"),
                  "transaction.timeout.ms must not exceed transaction.max.timeout.ms") != NULL;
}

/* At the start, by its name: of a source, and of a sink that emits. */
static void a_transaction_timeout_above_the_brokers_is_refused(void **state)
{
    struct worker_run *w = member("w", scratch_name("eos"), "");
    const char *more = ", \"producer.override.transaction.timeout.ms\": \"900001\"";
    const char *in = scratch_name("in"), *conn = scratch_name("relay");

    (void)state;
    flow_start(w, "src", more);
    topic_create(w->servers, in, 1);
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"Relay\", \"topics\": \"%s\", "
                                "\"to\": \"%s\"%s",
                                in, scratch_name("out"), more));
    wait_until(STATE_MS, is_refused(w, "src"));
    wait_until(STATE_MS, is_refused(w, conn));
}

/* One broker: replicas are one, and a single one is enough to confirm. */
static void topics_too_weak_for_the_promise_are_named_with_their_settings(void **state)
{
    const char *group = scratch_name("eos");
    struct worker_run *w = member("w", group, "");
    struct flow f = flow_start(w, "src", "");
    const char *topics[] = {f.topic, scratch_text("%s-configs", group),
                            scratch_text("%s-offsets", group), "__transaction_state"};

    (void)state;
    flow_append(&f);
    flow_arrived(&f, w->servers);
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        wait_until(STATE_MS,
                   scratch_contains(w->log, scratch_text("holds for topic %s as long as brokers "
                                                         "lose nothing: it has replication factor "
                                                         "1, min.insync.replicas=1",
                                                         topics[i])));
}

/* A leader's id is taken over by another: it asks for a round, and takes it back since it still
 * leads; what a client asked for meanwhile is done, or refused and done when it is asked for
 * again. */
static void a_leader_whose_id_was_taken_claims_it_again(void **state)
{
    const char *group = scratch_name("eos"), *topic = scratch_name("z");
    struct worker_run *w = member("w", group, "");
    struct flow f = flow_start(w, "src", "");
    struct producer *p;

    (void)state;
    worker_run_await(w, "src", "RUNNING", 1, STATE_MS);
    topic_create(w->servers, topic, 1);
    p = zombie(w->servers, scratch_text("connect-cluster-%s", group), topic);
    wait_until(STATE_MS, worker_run_call(w, "DELETE", "/connectors/src", NULL).status == 204);
    assert_true(scratch_contains(w->log, "its right to write as the leader is in doubt"));
    producer_free(&p);
    f = flow_start(w, "again", "");
    worker_run_await(w, "again", "RUNNING", 1, STATE_MS);
    flow_append(&f);
    flow_arrived(&f, w->servers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(killed_hosts_lose_and_double_nothing),
        scratch_test(an_open_transaction_of_the_dead_vanishes),
        scratch_test(an_open_transaction_of_a_lost_worker_holds_no_reader_up),
        scratch_test(an_open_transaction_of_a_dead_host_holds_no_reader_up),
        scratch_test(an_open_transaction_of_who_can_not_start_holds_no_reader_up),
        scratch_test(a_pause_commits_what_is_open),
        scratch_test(a_transaction_ends_before_its_timeout),
        scratch_test(work_that_moves_arrives_once),
        scratch_test(a_cluster_comes_to_it_by_rolling_restarts),
        scratch_test(a_transaction_ends_behind_the_record_that_says_so),
        scratch_test(a_transaction_ends_with_the_batch_that_says_so),
        scratch_test(a_poll_without_records_can_end_one),
        scratch_test(a_plugin_that_wants_both_ends_fails),
        scratch_test(producers_of_an_earlier_set_cannot_commit),
        scratch_test(a_cluster_starts_in_spite_of_open_transactions_of_the_dead),
        scratch_test(a_task_whose_id_was_taken_begins_anew),
        scratch_test(offsets_are_changed_behind_a_fence),
        scratch_test(a_transaction_timeout_above_the_brokers_is_refused),
        scratch_test(topics_too_weak_for_the_promise_are_named_with_their_settings),
        scratch_test(a_leader_whose_id_was_taken_claims_it_again),
    };

    return cmocka_run_group_tests_name("exactly_once", tests, NULL, NULL);
}
