/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that go: one that is stopped in order says so, and its work goes on elsewhere at once;
 * one that is killed is waited for. Where waiting would be wrong the delay is a minute, beyond
 * every bound here. Judged by who runs what, and by the records. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MS 30000 /* far below the delay of a minute */
#define PATIENT "scheduled.rebalance.max.delay.ms=60000\n"
#define MEMBERS 3

struct cluster {
    const char *group;
    const char *topic;
    const char *file;
    struct worker_run *w[MEMBERS];
    int members;
    int conns;
};

static struct worker_run *member(const struct cluster *c, int i, const char *props)
{
    return worker_run_start(&(struct worker_run_options){
        .name = scratch_text("w%d", i), .group = c->group, .props = props});
}

static const char *conn_of(int i)
{
    return scratch_text("s%d", i);
}

static const char *topic_of(const struct cluster *c, int i)
{
    return scratch_text("%s-%d", c->topic, i);
}

/* So many sources that each member has one, all running, with one line each in their topics. */
static struct cluster cluster_in(const char *group, int members, const char *props)
{
    struct cluster c = {.group = group,
                        .topic = scratch_name("lines"),
                        .file = scratch_path("in"),
                        .members = members,
                        .conns = members};

    scratch_write_text(c.file, "a\n");
    for (int i = 0; i < members; i++)
        c.w[i] = member(&c, i, props);
    for (int i = 0; i < c.conns; i++)
        worker_run_put(c.w[0], conn_of(i),
                       scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": "
                                    "\"1\", \"file\": \"%s\", \"topic\": \"%s\"",
                                    c.file, topic_of(&c, i)));
    for (int i = 0; i < c.conns; i++) {
        worker_run_await(c.w[0], conn_of(i), "RUNNING", 1, STATE_MS);
        wait_until(STATE_MS, topic_count(c.w[0]->servers, topic_of(&c, i)) == 1);
    }
    return c;
}

static struct cluster cluster_start(int members, const char *props)
{
    return cluster_in(scratch_name("failover"), members, props);
}

/* Of all items, as w shows them: how many run on `by`? */
static int held_by(const struct cluster *c, const struct worker_run *w, const struct worker_run *by)
{
    const char *id = scratch_text("127.0.0.1:%d", by->port);
    int held = 0;

    for (int i = 0; i < c->conns; i++)
        for (int task = 0; task < 2; task++) {
            const char *of = task ? "tasks.0" : "connector";

            held += strcmp(worker_run_state(w, conn_of(i), scratch_text("%s.worker_id", of)), id) ==
                        0 &&
                    strcmp(worker_run_state(w, conn_of(i), scratch_text("%s.state", of)),
                           "RUNNING") == 0;
        }
    return held;
}

/* The last line that the log has about a round. */
static bool leads(const struct worker_run *w)
{
    char *log = scratch_read(w->log, NULL), *last = NULL;
    bool leader;

    for (char *at = log; (at = strstr(at, "worker.group round ")) != NULL; at++)
        last = at;
    assert_non_null(last);
    leader =
        strstr(last, ", leader") != NULL && strstr(last, ", leader") < last + strcspn(last, "\n");
    return leader;
}

/* Put the one that leads, or one that does not, at the end. */
static void last_is_leader(struct cluster *c, bool leader)
{
    for (int i = 0; i < c->members; i++)
        if (leads(c->w[i]) == leader) {
            struct worker_run *w = c->w[i];

            c->w[i] = c->w[c->members - 1];
            c->w[c->members - 1] = w;
            return;
        }
    fail_msg("no member does what it should");
}

/* Each line that was appended is in each topic, once. */
static void assert_lines(const struct cluster *c, int lines)
{
    for (int i = 0; i < c->conns; i++)
        wait_until(STATE_MS, topic_count(c->w[0]->servers, topic_of(c, i)) >= lines);
    for (int i = 0; i < c->conns; i++)
        assert_int_equal(topic_count(c->w[0]->servers, topic_of(c, i)), lines);
}

static size_t words_left(const struct cluster *c)
{
    struct topic_records records =
        topic_read(c->w[0]->servers, scratch_text("%s-millrace", c->group), 1, 1000);
    size_t left = 0;

    for (size_t i = 0; i < records.count; i++) {
        bool newest =
            records.records[i].value != NULL && strncmp(records.records[i].key, "leaving-", 8) == 0;

        for (size_t j = i + 1; newest && j < records.count; j++)
            newest = strcmp(records.records[j].key, records.records[i].key) != 0;
        left += newest;
    }
    return left;
}

/* --- stopped in order ------------------------------------------------------------------------- */

static void stop_one(bool leader)
{
    struct cluster c = cluster_start(2, PATIENT);

    last_is_leader(&c, leader);
    assert_true(held_by(&c, c.w[0], c.w[1]) > 0);
    scratch_append_text(c.file, "b\n");
    assert_int_equal(worker_run_stop(c.w[1]), 0);
    scratch_append_text(c.file, "c\n");
    wait_until(STATE_MS, held_by(&c, c.w[0], c.w[0]) == 4);
    assert_lines(&c, 3);
    if (!leader) /* who leads anew was told nothing */
        wait_until(STATE_MS, words_left(&c) == 0);
    worker_run_again(c.w[1]);
    wait_until(STATE_MS, held_by(&c, c.w[0], c.w[1]) == 2);
    wait_until(STATE_MS, words_left(&c) == 0);
    assert_lines(&c, 3);
}

static void work_of_a_stopped_follower_moves_at_once(void **state)
{
    (void)state;
    stop_one(false);
}

static void work_of_a_stopped_leader_moves_at_once(void **state)
{
    (void)state;
    stop_one(true);
}

static void two_may_stop_together(void **state)
{
    struct cluster c = cluster_start(3, PATIENT);

    (void)state;
    last_is_leader(&c, true);
    process_signal(c.w[1]->process, SIGTERM);
    process_signal(c.w[2]->process, SIGTERM);
    assert_int_equal(process_wait(c.w[1]->process, STATE_MS), 0);
    assert_int_equal(process_wait(c.w[2]->process, STATE_MS), 0);
    scratch_append_text(c.file, "b\n");
    wait_until(STATE_MS, held_by(&c, c.w[0], c.w[0]) == 6);
    assert_lines(&c, 2);
}

/* --- killed ----------------------------------------------------------------------------------- */

static void work_of_a_killed_worker_waits_for_its_session_and_the_delay(void **state)
{
    struct cluster c = cluster_start(2, "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"
                                        "scheduled.rebalance.max.delay.ms=5000\n");
    int64_t took;

    (void)state;
    last_is_leader(&c, false);
    worker_run_kill(c.w[1]);
    took = wait_until(6000 + 5000 + STATE_MS, held_by(&c, c.w[0], c.w[0]) == 4);
    if (took < 6000 - 500 + 5000 - 500)
        fail_msg("after %d ms already", (int)took);
    scratch_append_text(c.file, "b\n");
    for (int i = 0; i < c.conns; i++)
        wait_until(STATE_MS, topic_count(c.w[0]->servers, topic_of(&c, i)) >= 2);
}

/* Its ghost would be a member for two minutes. */
static void a_worker_that_starts_again_takes_the_place_of_its_ghost(void **state)
{
    struct cluster c =
        cluster_start(2, "session.timeout.ms=120000\nheartbeat.interval.ms=1000\n" PATIENT
                         "rebalance.timeout.ms=120000\n");

    (void)state;
    last_is_leader(&c, false);
    worker_run_kill(c.w[1]);
    worker_run_again(c.w[1]);
    wait_until(STATE_MS, held_by(&c, c.w[0], c.w[0]) + held_by(&c, c.w[0], c.w[1]) == 4 &&
                             held_by(&c, c.w[0], c.w[1]) == 2);
    scratch_append_text(c.file, "b\n");
    for (int i = 0; i < c.conns; i++)
        wait_until(STATE_MS, topic_count(c.w[0]->servers, topic_of(&c, i)) >= 2);
}

/* --- without words ---------------------------------------------------------------------------- */

static void without_the_topic_a_stopped_worker_is_waited_for_as_in_java(void **state)
{
    const char *group = scratch_name("silent");
    struct cluster c;
    int64_t took;

    (void)state;
    topic_create(kafka_run_servers(), scratch_text("%s-millrace", group), 1);
    c = cluster_in(group, 2, "scheduled.rebalance.max.delay.ms=4000\n");
    for (int i = 0; i < 2; i++)
        wait_until(STATE_MS, scratch_contains(c.w[i]->log, "has 'cleanup.policy=delete'"));
    last_is_leader(&c, false);
    assert_int_equal(worker_run_stop(c.w[1]), 0);
    took = wait_until(4000 + STATE_MS, held_by(&c, c.w[0], c.w[0]) == 4);
    if (took < 3000)
        fail_msg("after %d ms already", (int)took);
    assert_lines(&c, 1);
}

/* --- storms, and twins ------------------------------------------------------------------------ */

static int rounds(const struct worker_run *w)
{
    char *log = scratch_read(w->log, NULL), *last = NULL;
    int number = 0;

    for (char *at = log; (at = strstr(at, "worker.group round ")) != NULL; at++)
        last = at;
    if (last != NULL)
        number = atoi(last + strlen("worker.group round "));
    return number;
}

#define STORM 30

static void many_creates_and_deletes_make_few_rounds(void **state)
{
    struct cluster c = cluster_start(2, PATIENT);
    int64_t from = scratch_now_ms();
    int before = rounds(c.w[0]), most;

    (void)state;
    for (int i = 0; i < STORM; i++)
        worker_run_put(c.w[i % 2], scratch_text("m%d", i),
                       scratch_text("\"connector.class\": \"FileStreamSource\", \"tasks.max\": "
                                    "\"1\", \"file\": \"%s\", \"topic\": \"%s\"",
                                    c.file, c.topic));
    for (int i = 0; i < STORM; i++)
        worker_run_await(c.w[0], scratch_text("m%d", i), "RUNNING", 1, 2 * STATE_MS);
    for (int i = 0; i < STORM; i++)
        worker_run_expect(c.w[i % 2], 204, "DELETE", scratch_text("/connectors/m%d", i), NULL);
    /* Rounds of a storm are 400 ms apart, once they are; what moves makes one of its own now and
     * then. */
    most = 10 + (int)(scratch_since(from) / 300);
    if (rounds(c.w[0]) - before > most)
        fail_msg("%d rounds, at most %d in this time", rounds(c.w[0]) - before, most);
}

static void twins_are_named_in_the_logs_of_both_and_both_live(void **state)
{
    struct cluster c = {.group = scratch_name("twins")};
    const char *props = "rest.advertised.host.name=localhost\nrest.advertised.port=4\n";

    (void)state;
    for (int i = 0; i < 2; i++)
        c.w[i] = member(&c, i, props);
    for (int i = 0; i < 2; i++)
        wait_until(STATE_MS, scratch_contains(c.w[i]->log, "rest.advertised.port of one of them"));
    holds_for(1000, process_running(c.w[0]->process) && process_running(c.w[1]->process));
    assert_false(scratch_contains(c.w[0]->log, "dropped this worker"));
    assert_false(scratch_contains(c.w[1]->log, "dropped this worker"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(work_of_a_stopped_follower_moves_at_once),
        scratch_test(work_of_a_stopped_leader_moves_at_once),
        scratch_test(two_may_stop_together),
        scratch_test(work_of_a_killed_worker_waits_for_its_session_and_the_delay),
        scratch_test(a_worker_that_starts_again_takes_the_place_of_its_ghost),
        scratch_test(without_the_topic_a_stopped_worker_is_waited_for_as_in_java),
        scratch_test(many_creates_and_deletes_make_few_rounds),
        scratch_test(twins_are_named_in_the_logs_of_both_and_both_live),
    };

    return cmocka_run_group_tests_name("failover", tests, NULL, NULL);
}
