/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly once three ways at once, through each kind of fault: the short form of what `make chaos`
 * does for an hour, on one broker, judged by the same oracles (tests/chaos/README.md). */
#include "chaos/chaos_mix.h"

#include <signal.h>
#include <stdio.h>

#define BOUND_MS 120000 /* of a busy machine; seconds otherwise */
#define PROPS \
    "exactly.once.source.support=enabled\nmillrace.restart.max=100\nheartbeat.interval.ms=500\n" \
    "session.timeout.ms=3000\nscheduled.rebalance.max.delay.ms=0\n"
#define CLIENTS ", \"producer.override.request.timeout.ms\": \"2000\""
#define TASKS 2
#define RELAY_IN_DOUBT "a relay's id taken behind an unanswered EndTxn"
#define SOURCE_IN_DOUBT "a source's id taken behind an unanswered EndTxn"
#define UNSEEN "tasks that change places behind a worker's back"
#define TRIES 5

/* So that what broke each of the three has come right again before the next. */
static void each(struct chaos_mix *mix, const char *const *kinds)
{
    for (; *kinds != NULL; kinds++) {
        chaos_mix_do(mix, *kinds);
        chaos_flows_await(mix->flows, BOUND_MS);
    }
}

static void kill_hosts(struct chaos_mix *mix)
{
    for (int i = 0; i < mix->cluster->count; i++) {
        chaos_signal(mix->cluster->w[i], CHAOS_HOSTS, SIGKILL);
        chaos_flows_await(mix->flows, BOUND_MS);
    }
}

/* Others go on with its work before it wakes. */
static void freeze_beyond_the_session(struct chaos_mix *mix)
{
    const struct worker_run *w = mix->cluster->w[0];

    chaos_signal(w, CHAOS_BOTH, SIGSTOP);
    wait_until(BOUND_MS, chaos_owners(mix->flows->source) == 1u << 1);
    chaos_flows_await(mix->flows, BOUND_MS);
    chaos_signal(w, CHAOS_BOTH, SIGCONT);
    wait_until(BOUND_MS, chaos_owners(mix->flows->source) == (1u << 0 | 1u << 1));
}

static void change_tasks(struct chaos_mix *mix)
{
    static const int tasks[] = {1, TASKS};

    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        chaos_flows_scale(mix->flows, tasks[i]);
        wait_until(BOUND_MS, chaos_rests(mix->flows->source, TASKS - 1) == (tasks[i] < TASKS));
    }
}

/* These need an occasion that a busy machine may not give at once. */
static void has_come_about(struct chaos_mix *mix, const char *kind, const int *times)
{
    for (int i = 0; i < TRIES && *times == 0; i++)
        each(mix, (const char *const[]){kind, NULL});
    assert_true(*times > 0);
}

static void each_kind_of_fault_leaves_all_three_exactly_once(void **state)
{
    static const char *const wire[] = {"EndTxn late", "EndTxn lost", "EndTxn unanswered",
                                       "all connections reset", NULL};
    static const char *const groups[] = {"a member thrown out of its group",
                                         "a stranger in a group",
                                         "a call of the relay longer than its poll interval",
                                         "a call of the sink longer than its poll interval",
                                         "a transactional id taken by a stranger",
                                         RELAY_IN_DOUBT,
                                         SOURCE_IN_DOUBT,
                                         UNSEEN,
                                         "kill -9 of a worker",
                                         NULL};
    struct chaos_mix mix =
        chaos_mix_start(chaos_cluster_small(0, PROPS), 2,
                        &(struct chaos_flows_terms){
                            .tasks = TASKS, .rate = 200, .interval_ms = 200, .clients = CLIENTS});

    (void)state;
    kill_hosts(&mix);
    freeze_beyond_the_session(&mix);
    each(&mix, wire);
    change_tasks(&mix);
    each(&mix, groups);
    has_come_about(&mix, RELAY_IN_DOUBT, &mix.relays_doubted);
    has_come_about(&mix, SOURCE_IN_DOUBT, &mix.sources_doubted);
    has_come_about(&mix, UNSEEN, &mix.overtaken);
    chaos_mix_judge(&mix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(each_kind_of_fault_leaves_all_three_exactly_once),
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
