/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths: a worker, a host, all workers, a machine; and those that were asked to go. R01, R03, R04,
 * R07 of the plan. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>

#define KILLS 4

/* R01. Its tasks run elsewhere no later than session, delay and a second. */
static void a_killed_workers_tasks_go_on_elsewhere(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 3, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");

    (void)state;
    for (int i = 0; i < KILLS; i++) {
        int victim = chaos_owner(s, chaos_pick(s->tasks));

        assert_true(victim >= 0);
        worker_run_kill(c->w[victim]);
        wait_until(CHAOS_FAILOVER_MS + 5000, (chaos_owners(s) & (1u << victim)) == 0);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        worker_run_again(c->w[victim]);
        wait_until(CHAOS_HEAL_MS, (chaos_owners(s) & (1u << victim)) != 0);
    }
    chaos_figure("silence after kill -9 of a worker",
                 chaos_judge(s, &(struct chaos_terms){.doubles = -1}).gap_ms, CHAOS_FAILOVER_MS);
    chaos_judge_sink(sink);
}

/* R03. Hosts of a dead worker are gone in 2 s, and what they had sent is all that comes. */
static void hosts_of_a_killed_worker_are_gone_in_two_seconds(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 4, 200, "");
    pid_t hosts[8];
    int victim = chaos_owner(s, 0);
    int64_t died_ms;

    (void)state;
    assert_true(victim >= 0 && chaos_hosts(c->w[victim], hosts, 8) > 0);
    worker_run_kill(c->w[victim]);
    died_ms = chaos_boot_ms();
    chaos_figure("hosts outlive their worker by",
                 wait_until(10000, worker_run_processes(c->w[victim]) == 0), 2000);
    wait_until(CHAOS_FAILOVER_MS + 5000, chaos_owners(s) == (1u << (1 - victim)));
    chaos_assert_silent(s, hosts[0], died_ms + 2000);
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
}

/* A host alone: its tasks start again at once, on the same worker, and nobody else's stop. */
static void a_killed_host_is_nobody_elses_matter(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *hit = chaos_source(c, "hit", 1, 100, ""),
                        *other = chaos_source(c, "other", 2, 100, "");

    (void)state;
    for (int i = 0; i < KILLS; i++) {
        int owner = chaos_owner(hit, 0);
        pid_t pid = chaos_home(hit, 0);

        assert_true(owner >= 0);
        kill(pid, SIGKILL);
        wait_until(40000, chaos_home(hit, 0) != 0 && chaos_home(hit, 0) != pid);
        assert_int_equal(chaos_owner(hit, 0), owner);
        chaos_await_progress(hit, CHAOS_HEAL_MS);
    }
    assert_int_equal(chaos_judge(hit, &(struct chaos_terms){.doubles = -1}).lives, KILLS + 1);
    assert_int_equal(chaos_judge(other, &(struct chaos_terms){0}).lives, 1);
}

/* R04. All workers and hosts at once, again and again: first record within 3 s of the start. */
static void a_killed_cluster_is_back_in_three_seconds(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 3, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");

    (void)state;
    for (int round = 0; round < KILLS; round++) {
        int64_t before[3], from, from_boot_ms;

        for (int i = 0; i < c->count; i++)
            chaos_destroy(c->w[i]);
        for (int i = 0; i < s->tasks; i++)
            before[i] = chaos_progress(s, i);
        from = scratch_now_ms();
        from_boot_ms = chaos_boot_ms();
        for (int i = 0; i < c->count; i++)
            worker_run_launch(c->w[i]);
        for (int i = 0; i < s->tasks; i++)
            wait_until(CHAOS_HEAL_MS, chaos_progress(s, i) > before[i]);
        chaos_figure("first records of all tasks after the start", scratch_since(from), 3000);
        wait_until(CHAOS_HEAL_MS, chaos_sink_last_ms(sink) > from_boot_ms);
        chaos_figure("first record of the sink after the start", scratch_since(from), 3000);
        chaos_await_progress(s, CHAOS_HEAL_MS);
    }
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
    chaos_judge_sink(sink);
}

static bool all_live(const struct chaos_source *s)
{
    for (int i = 0; i < s->tasks; i++)
        if (chaos_home(s, i) == 0)
            return false;
    return true;
}

/* R07. Three workers under load, each told to end and started again: nothing lost, nothing twice.
 * Its work runs elsewhere before it comes back: were it taken for a casualty, the others would wait
 * for a delay that no busy machine hides. */
static void a_rolling_restart_loses_and_doubles_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "scheduled.rebalance.max.delay.ms=20000\n");
    struct chaos_source *s = chaos_source(c, "src", 6, 200, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");

    (void)state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < c->count; i++) {
            int64_t from = scratch_now_ms();

            assert_int_equal(worker_run_stop(c->w[i]), 0);
            chaos_figure("a worker ends after", scratch_since(from), 5000);
            wait_until(15000, all_live(s));
            worker_run_again(c->w[i]);
            wait_until(CHAOS_HEAL_MS, (chaos_owners(s) & (1u << i)) != 0);
        }
    chaos_figure("silence of a task in a rolling restart",
                 chaos_judge(s, &(struct chaos_terms){.doubles = 0}).gap_ms, 2000);
    chaos_judge_sink(sink);
}

/* A machine with worker and hosts: its sinks deliver elsewhere after session and delay, not after
 * the 45 s of their consumers. */
static void a_lost_machines_sinks_deliver_elsewhere(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 1, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 1, "");
    int64_t lost_ms;
    int victim;

    (void)state;
    wait_until(CHAOS_HEAL_MS, chaos_sink_home(sink) != 0);
    victim = chaos_worker_of(c, chaos_sink_home(sink));
    assert_true(victim >= 0);
    chaos_destroy(c->w[victim]);
    lost_ms = chaos_boot_ms();
    chaos_figure("a lost machine's sink delivers elsewhere after",
                 wait_until(CHAOS_HEAL_MS, chaos_sink_last_ms(sink) > lost_ms), CHAOS_FAILOVER_MS);
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
    chaos_judge_sink(sink);
}

const struct CMUnitTest chaos_deaths[] = {
    scratch_test(a_killed_workers_tasks_go_on_elsewhere),
    scratch_test(hosts_of_a_killed_worker_are_gone_in_two_seconds),
    scratch_test(a_killed_host_is_nobody_elses_matter),
    scratch_test(a_killed_cluster_is_back_in_three_seconds),
    scratch_test(a_rolling_restart_loses_and_doubles_nothing),
    scratch_test(a_lost_machines_sinks_deliver_elsewhere),
};
const size_t chaos_deaths_count = sizeof(chaos_deaths) / sizeof(chaos_deaths[0]);
