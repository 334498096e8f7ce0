/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that emit, against a real broker: what a reader of committed records sees, and what the
 * group has committed, whatever is killed. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

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

/* --- killed ----------------------------------------------------------------------------------- */

static void killed_hosts_lose_and_double_nothing(void **state)
{
    struct worker_run *w = member("w", scratch_name("t2t"), "");
    struct flow f = flow_start(w, 2, ", \"pause.ms\": \"20\"");

    (void)state;
    worker_run_await(w, f.conn, "RUNNING", 2, STATE_MS);
    for (int i = 0; i < 3; i++) {
        flow_append(w, &f);
        kill_host(w, &f);
        flow_append(w, &f);
    }
    flow_arrived(w, &f);
    assert_int_equal(worker_run_stop(w), 0);
}

/* --- state ------------------------------------------------------------------------------------ */

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

static void what_is_kept_goes_with_the_offsets_whatever_is_killed(void **state)
{
    struct worker_run *w = member("w", scratch_name("t2t"), "");
    struct flow f = flow_start(w, 2, ", \"tally\": \"true\", \"pause.ms\": \"20\"");

    (void)state;
    worker_run_await(w, f.conn, "RUNNING", 2, STATE_MS);
    for (int i = 0; i < 3; i++) {
        flow_append(w, &f);
        kill_host(w, &f);
        flow_append(w, &f);
    }
    tallies_arrived(w, &f);
    assert_string_equal(topic_setting(w->servers, scratch_text("connect-%s-state-%s", f.conn, f.in),
                                      "cleanup.policy"),
                        "compact");
    assert_int_equal(
        topic_partitions(w->servers, scratch_text("connect-%s-state-%s", f.conn, f.in)),
        PARTITIONS);
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(killed_hosts_lose_and_double_nothing),
        scratch_test(what_is_kept_goes_with_the_offsets_whatever_is_killed),
    };

    return cmocka_run_group_tests_name("topic_to_topic", tests, NULL, NULL);
}
