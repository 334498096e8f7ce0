/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly once, three ways at once, under faults: R01, R08, R12, R20, R21, R41 and R46 of the
 * plan for sources, sinks that emit, and sinks that store their offsets. */
#include "chaos/chaos_flows.h"
#include "chaos/chaos_mix.h"
#include "chaos/chaos_naive.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Tasks whose transactions break this often are no fault here. */
#define PROPS "exactly.once.source.support=enabled\nmillrace.restart.max=100\n"
/* A request is given up soon, so that what is late is late. */
#define CLIENTS ", \"producer.override.request.timeout.ms\": \"2000\""
#define TASKS 3

static struct chaos_mix start(int workers, const char *props, int tasks, int rate,
                              const char *clients)
{
    return chaos_mix_start(
        chaos_cluster(0, scratch_text("%s%s", PROPS, props)), workers,
        &(struct chaos_flows_terms){
            .tasks = tasks, .rate = rate, .interval_ms = 200, .clients = clients});
}

/* --- everything ------------------------------------------------------------------------------- */

/* CHAOS_SECONDS=3600 CHAOS_RATE=1500 for the hour of the plan. */
static void all_three_at_once_under_everything(void **state)
{
    const char *rate = getenv("CHAOS_RATE");
    struct chaos_mix mix =
        start(3, "", TASKS, rate != NULL ? (int)strtol(rate, NULL, 10) : 500, CLIENTS);
    int64_t from, for_ms = chaos_seconds(120) * 1000L;

    (void)state;
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;) {
        int64_t next_ms = scratch_now_ms() + chaos_pick(4000);

        chaos_mix_fault(&mix);
        wait_until(10000, scratch_now_ms() > next_ms);
    }
    chaos_mix_judge(&mix);
}

/* --- requests that are late, lost, or not answered -------------------------------------------- */

#define TRIES 20

struct naive {
    struct chaos_proxy *proxy;
    int tries;
};

/* The next one is held when the last one was in vain: brokers may be busy with another end. */
static bool is_torn(void *arg)
{
    struct naive *naive = arg;
    struct chaos_proxy_counts counts = chaos_proxy_counts(naive->proxy);

    if (counts.torn == 0 && counts.overtaken == naive->tries && naive->tries < TRIES) {
        chaos_proxy_mishap(naive->proxy, CHAOS_LATE, CHAOS_END_TXN);
        naive->tries++;
    }
    return counts.torn > 0 || counts.overtaken == TRIES;
}

/* That it is not the proxy that is harmless: librdkafka by itself, which calls all commits well,
 * has a transaction ended by the end of the one before. */
static void a_late_end_tears_what_librdkafka_does_alone(void **state)
{
    struct chaos_cluster *c = chaos_cluster(0, "");
    struct naive naive = {.proxy = chaos_proxy_new(c->servers, "naive-")};
    const char *topic = scratch_name("naive");

    (void)state;
    topic_create(c->servers, topic, 1);
    chaos_naive_run(naive.proxy, c->servers, scratch_name("naive-id"), topic, is_torn, &naive);
    assert_int_equal(chaos_proxy_counts(naive.proxy).torn, 1);
}

/* R21: one late, lost or unanswered EndTxn after another, for CHAOS_SECONDS / 2. */
static void late_and_lost_ends_tear_nothing(void **state)
{
    static const char *const ends[] = {"EndTxn late", "EndTxn late", "EndTxn lost",
                                       "EndTxn unanswered"};
    struct chaos_mix mix = start(2, "", TASKS, 200, CLIENTS);
    int64_t from, for_ms = chaos_seconds(120) * 500L;

    (void)state;
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;)
        chaos_mix_do(&mix, ends[chaos_pick(4)]);
    chaos_mix_judge(&mix);
    assert_true(chaos_proxy_counts(mix.proxy).refused > 0);
}

/* --- the wire --------------------------------------------------------------------------------- */

static int descriptors_of(pid_t pid)
{
    DIR *dir = opendir(scratch_text("/proc/%d/fd", (int)pid));
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static int descriptors(const struct chaos_cluster *c)
{
    int sum = 0;

    for (int i = 0; i < c->count; i++) {
        pid_t pids[64];
        size_t count = process_marked(c->w[i]->mark, pids, 64);

        for (size_t p = 0; p < count && p < 64; p++)
            sum += descriptors_of(pids[p]);
    }
    return sum;
}

/* R20: all connections end each 5 s while everything takes 100 ms, 50 more or less, longer. */
static void resets_on_a_slow_wire_leave_nothing_behind(void **state)
{
    struct chaos_mix mix = start(2, "session.timeout.ms=20000\n", TASKS, 200, "");
    int64_t from, for_ms = chaos_seconds(120) * 500L;
    int before;

    (void)state;
    chaos_flows_await(mix.flows, CHAOS_HEAL_MS);
    before = descriptors(mix.cluster);
    chaos_proxy_slow(mix.proxy, 50, 100);
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;) {
        int64_t next_ms = scratch_now_ms() + 5000;

        wait_until(10000, scratch_now_ms() > next_ms);
        chaos_proxy_reset(mix.proxy);
    }
    chaos_mix_heal(&mix);
    chaos_flows_await(mix.flows, CHAOS_HEAL_MS * 2);
    printf("             descriptors: %d before, %d after\n", before, descriptors(mix.cluster));
    wait_until(CHAOS_HEAL_MS, descriptors(mix.cluster) < before + 40);
    chaos_mix_judge(&mix);
}

/* --- groups and ids --------------------------------------------------------------------------- */

/* Members are thrown out, strangers take partitions and ids, and a plugin is slow at that, for
 * CHAOS_SECONDS / 2: relays that live on have to abort, go back and read their state again. */
static void groups_and_ids_are_taken_away(void **state)
{
    static const char *const kinds[] = {"a member thrown out of its group", "a stranger in a group",
                                        "a call of the relay longer than its poll interval",
                                        "a call of the sink longer than its poll interval",
                                        "a transactional id taken by a stranger"};
    struct chaos_mix mix = start(2, "", TASKS, 200, CLIENTS);
    int64_t from, for_ms = chaos_seconds(120) * 500L;

    (void)state;
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;) {
        int64_t next_ms = scratch_now_ms() + chaos_pick(3000);

        chaos_mix_do(&mix, kinds[chaos_pick(5)]);
        wait_until(10000, scratch_now_ms() > next_ms);
    }
    chaos_mix_judge(&mix);
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* R12: hosts sleep for longer than their transactions may last, and keep their lease. */
static void a_transaction_that_timed_out_begins_anew(void **state)
{
    struct chaos_mix mix =
        start(1, "session.timeout.ms=60000\n", TASKS, 200,
              CLIENTS ", \"producer.override.transaction.timeout.ms\": \"3000\", "
                      "\"producer.override.delivery.timeout.ms\": \"2500\"");

    (void)state;
    for (int i = 0; i < 3; i++) {
        int64_t from = scratch_now_ms();

        chaos_signal(mix.cluster->w[0], CHAOS_HOSTS, SIGSTOP);
        wait_until(CHAOS_HEAL_MS, scratch_since(from) > 14000); /* brokers look each 10 s */
        chaos_signal(mix.cluster->w[0], CHAOS_HOSTS, SIGCONT);
        chaos_flows_await(mix.flows, CHAOS_HEAL_MS * 2);
    }
    chaos_mix_judge(&mix);
}

/* R46: tasks come and go, hosts die between, and a stranger takes the leader's id. */
static void tasks_come_and_go_exactly_once(void **state)
{
    static const int tasks[] = {3, 5, 1, 5, 3, 5};
    struct chaos_mix mix = start(2, "", 5, 200, CLIENTS);
    const struct chaos_flows *flows = mix.flows;

    (void)state;
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        chaos_mix_do(&mix, "kill -9 of a host");
        chaos_naive_take_over(mix.cluster->servers,
                              scratch_text("connect-cluster-%s", mix.cluster->group));
        chaos_flows_scale(flows, tasks[i]);
        chaos_mix_do(&mix, i % 2 == 0 ? "kill -9 of a worker" : "kill -9 of a host");
        chaos_mix_heal(&mix);
        chaos_await_progress(&(struct chaos_source){.cluster = mix.cluster,
                                                    .name = flows->source->name,
                                                    .topic = flows->source->topic,
                                                    .ledger = flows->source->ledger,
                                                    .tasks = tasks[i]},
                             CHAOS_HEAL_MS * 2);
    }
    chaos_mix_judge(&mix);
}

/* --- how soon --------------------------------------------------------------------------------- */

static void count(void *arg, const struct topic_record *rec)
{
    (void)rec;
    ++*(int64_t *)arg;
}

/* What a reader of committed records sees of a task. */
static int64_t visible(const struct chaos_source *s, int task)
{
    int64_t records = 0;

    topic_walk(s->cluster->servers, scratch_text("%s-%d", s->topic, task), count, &records);
    return records;
}

/* R04 under exactly-once: everything is killed in transactions that would be open for a minute if
 * nobody ended them. First committed records within 3 s of the start. */
static void a_cluster_killed_in_transactions_is_back_in_three_seconds(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, PROPS);
    const struct chaos_flows *flows = chaos_flows_start(
        c, &(struct chaos_flows_terms){
               .tasks = TASKS,
               .rate = 50,
               .interval_ms = 200,
               .clients = ", \"producer.override.transaction.timeout.ms\": \"60000\""});

    (void)state;
    for (int round = 0; round < 5; round++) {
        int64_t before[TASKS], from;

        chaos_flows_await(flows, CHAOS_HEAL_MS);
        for (int i = 0; i < c->count; i++)
            chaos_destroy(c->w[i]);
        for (int i = 0; i < TASKS; i++)
            before[i] = visible(flows->source, i);
        from = scratch_now_ms();
        for (int i = 0; i < c->count; i++)
            worker_run_launch(c->w[i]);
        for (int i = 0; i < TASKS; i++)
            wait_until(CHAOS_HEAL_MS, visible(flows->source, i) > before[i]);
        chaos_figure("committed records of all tasks after the start", scratch_since(from), 3000);
    }
    chaos_flows_judge(flows);
    chaos_atomic_judge(flows);
}

const struct CMUnitTest chaos_exactly_once[] = {
    scratch_test(a_late_end_tears_what_librdkafka_does_alone),
    scratch_test(late_and_lost_ends_tear_nothing),
    scratch_test(resets_on_a_slow_wire_leave_nothing_behind),
    scratch_test(groups_and_ids_are_taken_away),
    scratch_test(a_transaction_that_timed_out_begins_anew),
    scratch_test(tasks_come_and_go_exactly_once),
    scratch_test(a_cluster_killed_in_transactions_is_back_in_three_seconds),
    scratch_test(all_three_at_once_under_everything),
};
const size_t chaos_exactly_once_count = sizeof(chaos_exactly_once) / sizeof(chaos_exactly_once[0]);
