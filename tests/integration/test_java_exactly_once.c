/* SPDX-License-Identifier: Apache-2.0 */
/* The real Java worker and ours under exactly.once.source.support=enabled, in one group and one
 * after the other: each has to fence the producers of the other before what it takes over begins
 * (KIP-618), whoever leads. Judged by a reader of committed records alone: each line of each file
 * once, in order. test_exactly_once.c has ours among themselves. */
#include "support/java_worker.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 120000 /* bounds a fault: two JVMs on a busy machine take their time */
#define PROPS \
    "session.timeout.ms=6000\nheartbeat.interval.ms=200\nscheduled.rebalance.max.delay.ms=0\n" \
    "exactly.once.source.support=enabled\n" \
    "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
#define SOURCE "org.apache.kafka.connect.file.FileStreamSourceConnector"
#define CONNS 4
#define LINES 200 /* that one append brings to each file */

struct pair {
    struct worker_run *java, *ours;
    const char *topic; /* of s0: <topic>-0 */
    int lines;         /* appended to each file so far */
};

static const char *conn_name(int i)
{
    return scratch_text("s%d", i);
}

static const char *file_of(int i)
{
    return scratch_path(scratch_text("%s.txt", conn_name(i)));
}

static const char *topic_of(const struct pair *p, int i)
{
    return scratch_text("%s-%d", p->topic, i);
}

/* Java alone leads at first. Transactions stay open for a while, so that a fault finds one. */
static struct pair pair_start(void)
{
    const char *group = scratch_name("fences");
    struct pair p = {.java = java_worker_start(NULL, group, PROPS), .topic = scratch_name("lines")};

    java_worker_await(p.java);
    for (int i = 0; i < CONNS; i++) {
        scratch_write_text(file_of(i), "");
        rest_answer_expect(p.java, 201, "PUT", scratch_text("/connectors/%s/config", conn_name(i)),
                           scratch_text("{\"connector.class\": \"" SOURCE
                                        "\", \"tasks.max\": \"1\", "
                                        "\"file\": \"%s\", \"topic\": \"%s\", "
                                        "\"exactly.once.support\": \"required\", "
                                        "\"transaction.boundary\": \"interval\", "
                                        "\"transaction.boundary.interval.ms\": \"500\"}",
                                        file_of(i), topic_of(&p, i)));
    }
    p.ours = worker_run_start(
        &(struct worker_run_options){.name = "ours", .group = group, .props = PROPS});
    return p;
}

static void append(struct pair *p)
{
    char lines[LINES * 12];
    size_t len = 0;

    for (int i = 0; i < LINES; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%d\n", p->lines++);
    for (int i = 0; i < CONNS; i++)
        scratch_append(file_of(i), lines, len);
}

static void arrived(const struct pair *p)
{
    for (int i = 0; i < CONNS; i++) {
        const char *topic = topic_of(p, i);
        struct topic_records got = topic_read(p->java->servers, topic, (size_t)p->lines, WAIT_MS);

        for (size_t n = 0; n < got.count; n++)
            if (atoi(got.records[n].value) != (int)n)
                fail_msg("%s: where %zu was expected there is %s", topic, n, got.records[n].value);
        if (got.count != (size_t)p->lines)
            fail_msg("%s: %zu of %d lines", topic, got.count, p->lines);
    }
}

static int tasks_of(const struct worker_run *by, const struct worker_run *asked)
{
    const char *id = scratch_text("127.0.0.1:%d", by->port);
    int count = 0;

    for (int i = 0; i < CONNS; i++)
        count += strcmp(worker_run_state(asked, conn_name(i), "tasks.0.worker_id"), id) == 0 &&
                 strcmp(worker_run_state(asked, conn_name(i), "tasks.0.state"), "RUNNING") == 0;
    return count;
}

/* What the Java worker failed with, when it woke up fenced, it leaves so until it is told. */
static void restart_failed(const struct pair *p)
{
    const char *java = scratch_text("127.0.0.1:%d", p->java->port);

    for (int i = 0; i < CONNS; i++)
        if (strcmp(worker_run_state(p->ours, conn_name(i), "tasks.0.state"), "FAILED") == 0 &&
            strcmp(worker_run_state(p->ours, conn_name(i), "tasks.0.worker_id"), java) == 0)
            rest_answer_call(p->ours, "POST",
                             scratch_text("/connectors/%s/tasks/0/restart", conn_name(i)), NULL);
}

static bool java_has_work(const struct pair *p)
{
    restart_failed(p);
    return tasks_of(p->java, p->ours) == CONNS / 2;
}

static void both_have_work(const struct pair *p)
{
    wait_until(WAIT_MS, java_has_work(p));
    wait_until(WAIT_MS, tasks_of(p->ours, p->ours) == CONNS / 2);
}

static void signal_ours(const struct pair *p, int signal)
{
    pid_t pids[64];
    size_t count = process_marked(p->ours->mark, pids, 64);

    for (size_t i = 0; i < count && i < 64; i++)
        kill(pids[i], signal);
}

static void signal_java(const struct pair *p, int signal)
{
    java_worker_signal(p->java, signal);
}

/* One is frozen for longer than its session, with transactions open; the other takes its work over,
 * and what wakes up has nothing more to say. */
static void freeze(struct pair *p, void (*tell)(const struct pair *, int), struct worker_run *other)
{
    append(p);
    tell(p, SIGSTOP);
    append(p);
    wait_until(WAIT_MS, tasks_of(other, other) == CONNS);
    append(p);
    arrived(p);
    tell(p, SIGCONT);
    both_have_work(p);
    append(p);
    arrived(p);
}

static void each_fences_the_other_whoever_leads(void **state)
{
    struct pair p = pair_start();

    (void)state;
    both_have_work(&p);
    assert_true(rest_answer_leads(p.java));
    append(&p);
    arrived(&p);
    freeze(&p, signal_java, p.ours);
    assert_true(rest_answer_leads(p.ours));
    freeze(&p, signal_ours, p.java);
    assert_true(rest_answer_leads(p.java));
}

static void java_hands_over_and_takes_back(void **state)
{
    struct pair p = pair_start();

    (void)state;
    both_have_work(&p);
    append(&p);
    java_worker_leave(p.java);
    append(&p);
    arrived(&p);
    java_worker_again(p.java);
    both_have_work(&p);
    append(&p);
    assert_int_equal(worker_run_stop(p.ours), 0);
    append(&p);
    arrived(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scratch_test(each_fences_the_other_whoever_leads),
        scratch_test(java_hands_over_and_takes_back),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("java exactly once", tests, NULL, NULL);
}
