/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that emit, against a real broker: what a reader of committed records sees, and what the
 * group has committed, whatever is killed. */
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

#define STATE_MS 60000
#define PARTITIONS 4
#define PORTION 2000 /* records that one append brings */

static struct worker_run *member(const char *name, const char *group, const char *props)
{
    return worker_run_start(&(struct worker_run_options){
        .name = name,
        .group = group,
        .props =
            scratch_text("%s"
                         "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
                         "value.converter.schemas.enable=false\n"
                         "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
                         "%s",
                         group != NULL ? "exactly.once.source.support=enabled\n" : "", props)});
}

struct flow {
    const char *conn;
    const char *in;
    const char *out;
    int numbers; /* produced so far */
};

static struct flow flow_start(const struct worker_run *w, int tasks, const char *more)
{
    struct flow f = {
        .conn = scratch_name("relay"), .in = scratch_name("in"), .out = scratch_name("out")};

    topic_create(w->servers, f.in, PARTITIONS);
    topic_create(w->servers, f.out, PARTITIONS);
    worker_run_put(w, f.conn,
                   scratch_text("\"connector.class\": \"Relay\", \"tasks.max\": \"%d\", "
                                "\"topics\": \"%s\", \"to\": \"%s\"%s",
                                tasks, f.in, f.out, more));
    return f;
}

static void flow_append(const struct worker_run *w, struct flow *f)
{
    topic_produce_numbers(w->servers, f->in, PARTITIONS, f->numbers, PORTION);
    f->numbers += PORTION;
}

/* Every number once, in order within its partition, for a reader of committed records; and the
 * group stands behind the last. */
static void flow_arrived(const struct worker_run *w, const struct flow *f)
{
    struct topic_records got = topic_read(w->servers, f->out, (size_t)f->numbers, STATE_MS);
    int next[PARTITIONS];

    for (int p = 0; p < PARTITIONS; p++)
        next[p] = p;
    for (size_t i = 0; i < got.count; i++) {
        int number = atoi(got.records[i].value + 1);
        int p = got.records[i].partition;

        assert_int_equal(number, next[p]);
        next[p] += PARTITIONS;
    }
    assert_int_equal(got.count, f->numbers);
    for (int p = 0; p < PARTITIONS; p++)
        wait_until(STATE_MS, topic_committed(w->servers, scratch_text("connect-%s", f->conn), f->in,
                                             p) == f->numbers / PARTITIONS);
}

static void kill_host(const struct worker_run *w, const struct flow *f)
{
    pid_t host;

    wait_until(STATE_MS, (host = worker_run_host(w, f->conn)) > 0);
    assert_int_equal(kill(host, SIGKILL), 0);
    wait_until(STATE_MS, worker_run_host(w, f->conn) > 0 && worker_run_host(w, f->conn) != host);
}

/* --- killed, moved ---------------------------------------------------------------------------- */

/* By letter, in each partition: 1, 2, 3 … for each record that was read. */
static void tallies_arrived(const struct worker_run *w, const struct flow *f)
{
    struct topic_records got = topic_read(w->servers, f->out, (size_t)f->numbers, STATE_MS);
    int counts[PARTITIONS][10] = {{0}};

    for (size_t i = 0; i < got.count; i++) {
        const struct topic_record *rec = &got.records[i];
        int *count;

        assert_int_equal(rec->key_len, 1);
        count = &counts[rec->partition][rec->key[0] - '0'];
        assert_int_equal(atoi(rec->value), ++*count);
    }
    assert_int_equal(got.count, f->numbers);
    assert_int_equal(counts[0][0], f->numbers / 20); /* 0, 20, 40 … lie in partition 0 */
}

#define TALLY ", \"tally\": \"true\", \"pause.ms\": \"20\""

static void killed_hosts_lose_and_double_nothing(void **state)
{
    struct worker_run *w = member("w", scratch_name("t2t"), "");
    struct flow f = flow_start(w, 2, ", \"pause.ms\": \"20\"");
    struct flow tally = flow_start(w, 2, TALLY);
    const char *kept = scratch_text("connect-%s-state-%s", tally.conn, tally.in);

    (void)state;
    worker_run_await(w, f.conn, "RUNNING", 2, STATE_MS);
    worker_run_await(w, tally.conn, "RUNNING", 2, STATE_MS);
    for (int i = 0; i < 3; i++) {
        flow_append(w, &f);
        flow_append(w, &tally);
        kill_host(w, &f);
        kill_host(w, &tally);
        flow_append(w, &f);
        flow_append(w, &tally);
    }
    flow_arrived(w, &f);
    tallies_arrived(w, &tally);
    assert_string_equal(topic_setting(w->servers, kept, "cleanup.policy"), "compact");
    assert_int_equal(topic_partitions(w->servers, kept), PARTITIONS);
    assert_int_equal(worker_run_stop(w), 0);
}

static void set_tasks(const struct worker_run *w, const struct flow *f, int tasks)
{
    worker_run_put(w, f->conn,
                   scratch_text("\"connector.class\": \"Relay\", \"tasks.max\": \"%d\", "
                                "\"topics\": \"%s\", \"to\": \"%s\"" TALLY,
                                tasks, f->in, f->out));
}

/* Tasks come and go while records come; then the work moves to another worker. */
static void what_is_kept_moves_with_the_offsets(void **state)
{
    static const int tasks[] = {4, 1, 3};
    const char *group = scratch_name("t2t");
    struct worker_run *a = member("a", group, "");
    struct flow f = flow_start(a, 1, TALLY);
    struct worker_run *b;

    (void)state;
    worker_run_await(a, f.conn, "RUNNING", 1, STATE_MS);
    for (int i = 0; i < 3; i++) {
        flow_append(a, &f);
        set_tasks(a, &f, tasks[i]);
        flow_append(a, &f);
        worker_run_await(a, f.conn, "RUNNING", tasks[i], STATE_MS);
    }
    assert_true(scratch_contains(a->log, "fences the producers of 4 earlier tasks"));
    b = member("b", group, "");
    flow_append(b, &f);
    assert_int_equal(worker_run_stop(a), 0);
    flow_append(b, &f);
    tallies_arrived(b, &f);
    assert_int_equal(worker_run_stop(b), 0);
}

/* Records of its partitions, open transactions included. */
static int64_t sent_to(const char *servers, const char *topic)
{
    int64_t ends[PARTITIONS] = {0}, sum = 0;
    struct mr_error err = {0};
    struct topic_admin *admin;
    struct props java;

    props_init(&java);
    assert_int_equal(props_set(&java, "bootstrap.servers", servers), 0);
    admin = topic_admin_new(&java, NULL, NULL, &err);
    assert_non_null(admin);
    props_deinit(&java);
    if (topic_admin_ends(admin, topic, PARTITIONS, 5000, ends, &err) == 0)
        for (int p = 0; p < PARTITIONS; p++)
            sum += ends[p];
    topic_admin_free(&admin);
    return sum;
}

/* All die inside an open transaction: it vanishes with what it has changed. One task: a second that
 * joins would have the first commit. */
static void an_open_transaction_of_the_dead_vanishes(void **state)
{
    const char *props = "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"
                        "scheduled.rebalance.max.delay.ms=0\n";
    struct worker_run *w = member("w", scratch_name("t2t"), props);
    struct flow f = flow_start(w, 1,
                               ", \"tally\": \"true\", "
                               "\"millrace.commit.interval.ms\": \"50000\"");

    (void)state;
    worker_run_await(w, f.conn, "RUNNING", 1, STATE_MS);
    flow_append(w, &f);
    wait_until(STATE_MS, sent_to(w->servers, f.out) >= PORTION);
    assert_int_equal(topic_read(w->servers, f.out, 0, 0).count, 0);
    process_signal(w->process, SIGSTOP);
    assert_int_equal(kill(worker_run_host(w, f.conn), SIGKILL), 0);
    worker_run_kill(w);
    worker_run_again(w);
    worker_run_await(w, f.conn, "RUNNING", 1, STATE_MS);
    flow_append(w, &f);
    wait_until(STATE_MS, sent_to(w->servers, f.out) > 3 * PORTION);
    assert_int_equal(worker_run_stop(w), 0); /* the last transaction is committed */
    tallies_arrived(w, &f);
}

/* --- transactions of others ------------------------------------------------------------------- */

/* A producer of the test's own, in transactions. */
struct other {
    struct producer *p;
    struct producer_topic *topic;
};

static void must(int rc, const struct mr_error *err)
{
    if (rc != 0)
        fail_msg("%d: %s", rc, err->text);
}

static void ignore(void *arg, void *opaque, int code, const char *text)
{
    (void)arg, (void)opaque, (void)text;
    assert_int_equal(code, 0);
}

static void other_ends(struct other *o,
                       int (*end)(struct producer *p, int64_t timeout_ms, struct mr_error *err))
{
    struct mr_error err = {0};
    int rc;

    wait_until(STATE_MS, (rc = end(o->p, 500, &err)) != MR_AGAIN);
    must(rc, &err);
}

static struct other other_opens(const char *servers, const char *topic)
{
    struct mr_error err = {0};
    struct other o;
    struct props java;

    props_init(&java);
    props_set(&java, "bootstrap.servers", servers);
    props_set(&java, "transactional.id", topic);
    props_set(&java, "enable.idempotence", "true");
    props_set(&java, "transaction.timeout.ms", "300000");
    o.p = producer_new(&java, NULL, NULL, &err);
    props_deinit(&java);
    assert_non_null(o.p);
    other_ends(&o, producer_txn_init);
    o.topic = producer_topic(o.p, topic, &err);
    assert_non_null(o.topic);
    return o;
}

/* Delivered, in an open transaction. */
static void other_sends(struct other *o, const struct topic_record *rec)
{
    struct producer_record out = {.topic = o->topic,
                                  .partition = rec->partition,
                                  .timestamp_ms = -1,
                                  .key = rec->key,
                                  .key_len = rec->key_len,
                                  .value = rec->value,
                                  .value_len = rec->value_len};
    struct mr_error err = {0};

    must(producer_txn_begin(o->p, &err), &err);
    must(producer_send(o->p, &out, &err), &err);
    wait_until(STATE_MS, producer_reports(o->p, 50, ignore, NULL) > 0);
}

/* The oldest record of partition 0, and the letter whose count it is: a byte of its key. */
static struct topic_record oldest_count(const char *servers, const char *kept, int *letter)
{
    struct topic_records all = topic_read(servers, kept, 1, STATE_MS);

    for (size_t i = 0; i < all.count; i++)
        if (all.records[i].partition == 0) {
            *letter = all.records[i].key[all.records[i].key_len - 1] - '0';
            assert_in_range(*letter, 0, 9);
            return all.records[i];
        }
    fail();
    return (struct topic_record){0};
}

/* Counts of partition 0 for a letter, in their order. */
static size_t counts_of(const char *servers, const char *out, int letter, int *counts, size_t max)
{
    struct topic_records got = topic_read(servers, out, 0, 0);
    size_t n = 0;

    for (size_t i = 0; i < got.count && n < max; i++)
        if (got.records[i].partition == 0 && got.records[i].key[0] - '0' == letter)
            counts[n++] = atoi(got.records[i].value);
    return n;
}

static size_t assignments(const struct worker_run *w)
{
    size_t len, n = 0;
    char *log = scratch_read(w->log, &len);

    for (const char *at = log; (at = strstr(at, "partitions assigned: 4,")) != NULL; at++)
        n++;
    return n;
}

/* What was aborted where it reads counts for nothing, whatever isolation.level says. And a zombie
 * has sent a count of its state and not ended its transaction when the task comes back: reading it
 * back ends behind that, so the task waits, and goes on from what is committed then. */
static void what_others_abort_is_not_read_and_what_they_leave_open_is_waited_for(void **state)
{
    static int counts[4 * PORTION];
    struct worker_run *w = member("w", NULL, "");
    struct flow f = flow_start(w, 1,
                               ", \"tally\": \"true\", "
                               "\"consumer.override.isolation.level\": \"read_uncommitted\"");
    const char *kept = scratch_text("connect-%s-state-%s", f.conn, f.in);
    struct other other = other_opens(w->servers, f.in);
    struct topic_record old;
    size_t before, arrived;
    int letter = -1;
    int64_t sent;

    (void)state;
    for (int i = 0; i < 2; i++) {
        flow_append(w, &f);
        other_sends(&other, &(struct topic_record){.value = "\"10\"", .value_len = 4});
        other_ends(&other, producer_txn_abort);
        tallies_arrived(w, &f);
    }
    producer_free(&other.p);
    worker_run_expect(w, 204, "PUT", scratch_text("/connectors/%s/stop", f.conn), NULL);
    worker_run_await(w, f.conn, "STOPPED", 0, STATE_MS);
    old = oldest_count(w->servers, kept, &letter);
    other = other_opens(w->servers, kept);
    other_sends(&other, &old);
    before = counts_of(w->servers, f.out, letter, counts, 4 * PORTION);
    sent = sent_to(w->servers, f.out);
    arrived = assignments(w);
    flow_append(w, &f);
    worker_run_expect(w, 202, "PUT", scratch_text("/connectors/%s/resume", f.conn), NULL);
    wait_until(STATE_MS, assignments(w) > arrived);
    holds_for(2000, sent_to(w->servers, f.out) == sent);
    other_ends(&other, producer_txn_commit);
    producer_free(&other.p);
    wait_until(STATE_MS, counts_of(w->servers, f.out, letter, counts, 4 * PORTION) > before);
    assert_true(counts[0] == 1 && counts[before - 1] == (int)before);
    assert_true(counts[before] <= (int)before); /* it went on from the old count */
    assert_int_equal(worker_run_stop(w), 0);
}

/* --- elsewhere -------------------------------------------------------------------------------- */

/* Transactions are no matter of exactly.once.source.support. */
static void a_standalone_worker_has_them_too(void **state)
{
    struct worker_run *w = member("w", NULL, "");
    struct flow f = flow_start(w, 2, TALLY);

    (void)state;
    worker_run_await(w, f.conn, "RUNNING", 2, STATE_MS);
    flow_append(w, &f);
    wait_until(STATE_MS, topic_count(w->servers, f.out) > 0); /* it has joined its group */
    kill_host(w, &f);
    flow_append(w, &f);
    tallies_arrived(w, &f);
    assert_int_equal(worker_run_stop(w), 0);
}

/* --- bad input -------------------------------------------------------------------------------- */

static void what_can_t_be_is_named(void **state)
{
    struct worker_run *w = member("w", NULL, "");
    const char *in = scratch_name("in"), *conn = scratch_name("relay");
    const char *config = scratch_text("\"connector.class\": \"Relay\", \"topics\": \"%s\"", in);

    (void)state;
    topic_create(w->servers, in, 1);
    topic_produce_numbers(w->servers, in, 1, 0, 1);
    worker_run_put(w, conn, scratch_text("%s, \"to\": \"no topic!\"", config));
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(
        strstr(worker_run_state(w, conn, "tasks.0.trace"), "\"no topic!\" can't be a topic"));
    assert_int_equal(topic_committed(w->servers, scratch_text("connect-%s", conn), in, 0), -1);
    /* Round and round, as it was told to; from here on each comes back. */
    worker_run_put(w, conn, scratch_text("%s, \"to\": \"%s\"", config, in));
    wait_until(STATE_MS, topic_count(w->servers, in) > 10);
    assert_true(scratch_contains(w->log, "which it reads as well"));
    assert_int_equal(worker_run_stop(w), 0);
}

/* What a key has would be gone after a week. */
static void a_topic_of_state_that_is_not_compacted_is_refused(void **state)
{
    struct worker_run *w = member("w", NULL, "");
    const char *in = scratch_name("in"), *conn = scratch_name("relay");
    const char *kept = scratch_text("connect-%s-state-%s", conn, in);

    (void)state;
    topic_create(w->servers, in, 1);
    topic_create(w->servers, kept, 1);
    topic_produce_numbers(w->servers, in, 1, 0, 1);
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"Relay\", \"topics\": \"%s\", "
                                "\"to\": \"%s\"" TALLY,
                                in, scratch_name("out")));
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, conn, "tasks.0.trace"),
                           scratch_text("topic %s has cleanup.policy=delete", kept)));
    assert_int_equal(worker_run_stop(w), 0);
}

/* A million records from one, in one transaction: more than a host may hold. */
static void one_call_may_emit_a_million_records(void **state)
{
    struct worker_run *w = member("w", NULL, "");
    const char *in = scratch_name("in"), *out = scratch_name("out"), *conn = scratch_name("relay");
    pid_t host;
    char *rss = NULL;

    (void)state;
    topic_create(w->servers, in, 1);
    topic_create(w->servers, out, 1);
    topic_produce_numbers(w->servers, in, 1, 0, 1);
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"Relay\", \"topics\": \"%s\", "
                                "\"to\": \"%s\", \"times\": \"1000000\"",
                                in, out));
    wait_until(STATE_MS, topic_committed(w->servers, scratch_text("connect-%s", conn), in, 0) == 1);
    host = worker_run_host(w, conn);
    assert_int_equal(
        process_shell(scratch_text("grep VmHWM /proc/%d/status | tr -dc 0-9", host), 5000, &rss),
        0);
    assert_true(atoi(rss) < 200 * 1024);
    assert_true(topic_count(w->servers, out) > 1000000);
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(killed_hosts_lose_and_double_nothing),
        scratch_test(what_is_kept_moves_with_the_offsets),
        scratch_test(an_open_transaction_of_the_dead_vanishes),
        scratch_test(what_others_abort_is_not_read_and_what_they_leave_open_is_waited_for),
        scratch_test(a_standalone_worker_has_them_too),
        scratch_test(what_can_t_be_is_named),
        scratch_test(a_topic_of_state_that_is_not_compacted_is_refused),
        scratch_test(one_call_may_emit_a_million_records),
    };

    return cmocka_run_group_tests_name("topic_to_topic", tests, NULL, NULL);
}
