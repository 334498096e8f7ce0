/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that freezes with its hosts for longer than its session, and a cluster that is killed as
 * a whole: the short forms of what `make chaos` does at length, judged by the same oracles
 * (tests/chaos/chaos_ledger.c). */
#include "chaos/chaos.h"
#include "support/topic.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define QUICK \
    "session.timeout.ms=3000\nheartbeat.interval.ms=500\nscheduled.rebalance.max.delay.ms=0\n"

/* Sessions this short may end by themselves on a machine that has other work: then tasks rest a
 * moment. */
static const struct chaos_terms busy = {.rewinds = 9, .doubles = -1};

static void a_frozen_worker_is_replaced_and_does_nothing_when_it_wakes(void **state)
{
    struct chaos_cluster *c = chaos_cluster_small(2, QUICK);
    struct chaos_source *s = chaos_source(c, "src", 2, 100, "");
    int victim;
    pid_t pid;

    (void)state;
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 3);
    victim = chaos_owner(s, 0);
    pid = chaos_home(s, 0);
    chaos_signal(c->w[victim], CHAOS_BOTH, SIGSTOP);
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 1u << (1 - victim));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    wait_until(CHAOS_HEAL_MS, kill(pid, 0) != 0 || process_arguments(pid)[0] == '\0');
    chaos_signal(c->w[victim], CHAOS_BOTH, SIGCONT);
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 3);
    chaos_judge(s, &busy);
}

static void a_frozen_workers_hosts_fall_silent_by_themselves(void **state)
{
    struct chaos_cluster *c = chaos_cluster_small(2, QUICK);
    struct chaos_source *s = chaos_source(c, "src", 2, 100, "");
    int victim;

    (void)state;
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 3);
    victim = chaos_owner(s, 0);
    chaos_signal(c->w[victim], CHAOS_WORKER, SIGSTOP);
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 1u << (1 - victim));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_signal(c->w[victim], CHAOS_WORKER, SIGCONT);
    wait_until(CHAOS_HEAL_MS, chaos_owners(s) == 3);
    chaos_judge(s, &busy);
}

/* Whose member of its group the task is stands where its successor finds it. */
static bool is_told(const struct chaos_cluster *c, const char *task)
{
    struct topic_records words =
        topic_read(c->servers, scratch_text("%s-millrace", c->group), 0, 0);
    const char *key = scratch_text("consumer-%s", task);
    bool told = false;

    for (size_t i = 0; i < words.count; i++)
        told = told || strcmp(words.records[i].key, key) == 0;
    return told;
}

static void a_killed_cluster_goes_on_where_it_was(void **state)
{
    struct chaos_cluster *c = chaos_cluster_small(2, "");
    struct chaos_source *s = chaos_source(c, "src", 2, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 1, "");
    int64_t from, died_ms;

    (void)state;
    wait_until(CHAOS_HEAL_MS, is_told(c, "snk-0"));
    for (int i = 0; i < 2; i++)
        chaos_destroy(c->w[i]);
    died_ms = chaos_boot_ms();
    for (int i = 0; i < 2; i++)
        worker_run_launch(c->w[i]);
    from = scratch_now_ms();
    chaos_await_progress(s, CHAOS_HEAL_MS);
    wait_until(CHAOS_HEAL_MS, chaos_sink_last_ms(sink) > died_ms);
    printf("             first records of all after %lld ms\n", (long long)scratch_since(from));
    assert_true(scratch_since(from) < 40000); /* not the 45 s of a dead consumer's session */
    chaos_judge(s, &busy);
    chaos_judge_sink(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_frozen_worker_is_replaced_and_does_nothing_when_it_wakes),
        scratch_test(a_frozen_workers_hosts_fall_silent_by_themselves),
        scratch_test(a_killed_cluster_goes_on_where_it_was),
    };

    return cmocka_run_group_tests_name("freeze", tests, NULL, NULL);
}
