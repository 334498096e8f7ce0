/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers that die or are away, and members that are late at a round: neither may cost a host its
 * life. R13, R15 of the plan, and the lost coordinator at the broker's default settings. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTAGE_S 30 /* CHAOS_OUTAGE_S: 600 is the plan's */
#define BROKERS 3

struct homes {
    pid_t pid[16];
};

static struct homes homes_of(const struct chaos_source *s)
{
    struct homes homes = {{0}};

    for (int i = 0; i < s->tasks; i++) {
        homes.pid[i] = chaos_home(s, i);
        assert_int_not_equal(homes.pid[i], 0);
    }
    return homes;
}

static void assert_same_homes(const struct chaos_source *s, const struct homes *before)
{
    for (int i = 0; i < s->tasks; i++)
        if (chaos_home(s, i) != before->pid[i])
            fail_msg("%s-%d lived in host %d and lives in %d now", s->name, i, before->pid[i],
                     chaos_home(s, i));
}

static void assert_workers_live(const struct chaos_cluster *c)
{
    for (int i = 0; i < c->count; i++)
        assert_true(chaos_lives(c->w[i]));
}

/* --- the coordinator -------------------------------------------------------------------------- */

/* Found lost after 9 s, which is longer than the lease: tasks rest, and go on where they are. */
static void a_lost_coordinator_costs_no_host_its_life(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 6, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");

    (void)state;
    for (int round = 0; round < 2; round++) {
        struct homes before = homes_of(s);
        int coordinator = chaos_coordinator(c);
        int64_t from = scratch_now_ms();

        chaos_broker("kill", coordinator);
        wait_until(CHAOS_HEAL_MS, chaos_coordinator(c) != coordinator);
        printf("             broker %d is replaced after %lld ms\n", coordinator,
               (long long)scratch_since(from));
        chaos_await_progress(s, CHAOS_HEAL_MS);
        assert_same_homes(s, &before);
        chaos_broker("restart", coordinator);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        assert_same_homes(s, &before);
    }
    assert_workers_live(c);
    assert_int_equal(chaos_judge(s, &(struct chaos_terms){.rewinds = 4, .doubles = -1}).lives, 1);
    chaos_judge_sink(sink);
}

/* A member whose task takes 40 s to stop keeps everybody's round open that long: the others' work
 * goes on meanwhile. */
static void a_member_that_is_40_s_late_costs_no_host_its_life(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "task.shutdown.graceful.timeout.ms=50000\n"
                                               "rebalance.timeout.ms=120000\n");
    struct chaos_source *s = chaos_source(c, "src", 4, 100, "");
    struct homes before = homes_of(s);
    int64_t from = scratch_now_ms();

    (void)state;
    chaos_source(c, "slow", 2, 10, ", \"slow.stop.ms\": \"40000\"");
    assert_int_equal(
        chaos_call(c, "PUT", "/connectors/slow/config",
                   scratch_text("{\"connector.class\": \"LedgerSource\", \"tasks.max\": \"1\", "
                                "\"topic\": \"%s-x\", \"ledger\": \"%s-x\"}",
                                s->topic, s->ledger))
            .status,
        200);
    while (scratch_since(from) < 50000) {
        chaos_await_progress(s, 5000);
        assert_same_homes(s, &before);
    }
    wait_until(CHAOS_HEAL_MS, topic_count(c->servers, scratch_text("%s-x-0", s->topic)) > 0);
    assert_same_homes(s, &before);
    chaos_figure("silence of the others", chaos_judge(s, &(struct chaos_terms){0}).gap_ms, 1000);
}

/* --- all brokers ------------------------------------------------------------------------------ */

static void for_all_brokers(const char *verb)
{
    for (int i = 1; i <= BROKERS; i++)
        chaos_broker(verb, i);
}

/* A broker of several that waits for its fellows is not ready alone: all are launched at once. */
static void restart_all(void)
{
    char *output;
    const char *folder = kafka_run_folder_of(chaos_kafka());
    const char *one = scratch_text("KAFKA_RUN='%s' tests/kafka/kafka.sh restart", folder);

    if (process_shell(scratch_text("{ %s 1 & %s 2 & %s 3 & wait; }", one, one, one), 120000,
                      &output) != 0)
        fail_msg("the brokers did not come back: %s", output);
}

/* R13, with all of them. */
static void brokers_that_crash_cost_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 4, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 2, "");
    int64_t from;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for_all_brokers("kill");
        restart_all();
        from = scratch_now_ms();
        chaos_await_progress(s, CHAOS_HEAL_MS);
        chaos_figure("delivered again after the brokers are back", scratch_since(from), 15000);
    }
    assert_workers_live(c);
    chaos_judge(s, &(struct chaos_terms){.rewinds = 4, .doubles = -1});
    chaos_judge_sink(sink);
}

static void poll_while_away(const struct chaos_cluster *c, const struct chaos_source *s, int ms)
{
    int64_t from = scratch_now_ms();
    double slowest = 0;

    while (scratch_since(from) < ms)
        for (int i = 0; i < c->count; i++) {
            struct http_reply reply = worker_run_expect(
                c->w[i], 200, "GET", scratch_text("/connectors/%s/status", s->name), NULL);

            worker_run_expect(c->w[i], 200, "GET", "/connectors", NULL);
            slowest = reply.seconds > slowest ? reply.seconds : slowest;
            scratch_pause(50);
        }
    chaos_figure("slowest read", (int64_t)(slowest * 1000), 50);
}

/* R15. Reads are answered from memory; a write says what it waited for; all goes on when they are
 * back. */
static void reads_are_answered_while_brokers_are_away(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 2, 100, "");
    const char *outage = getenv("CHAOS_OUTAGE_S");
    char *output;
    int64_t from;

    (void)state;
    for_all_brokers("kill");
    poll_while_away(c, s, (outage != NULL ? (int)strtol(outage, NULL, 10) : OUTAGE_S) * 1000);
    process_shell(scratch_text("curl -s -m 100 -w ' code %%{http_code}' -X PUT "
                               "-H 'Content-Type: application/json' -d '{\"connector.class\": "
                               "\"LedgerSource\", \"topic\": \"a\", \"ledger\": \"b\"}' "
                               "%s/connectors/new/config",
                               c->w[0]->url),
                  110000, &output);
    printf("             a write: %s\n", output);
    assert_true(strstr(output, "message") != NULL &&
                (strstr(output, "code 500") != NULL || strstr(output, "code 409") != NULL));
    restart_all();
    from = scratch_now_ms();
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_figure("delivered again after the brokers are back", scratch_since(from), 20000);
    assert_workers_live(c);
    chaos_judge(s, &(struct chaos_terms){.rewinds = 4, .doubles = -1});
}

const struct CMUnitTest chaos_brokers[] = {
    scratch_test(a_lost_coordinator_costs_no_host_its_life),
    scratch_test(a_member_that_is_40_s_late_costs_no_host_its_life),
    scratch_test(brokers_that_crash_cost_nothing),
    scratch_test(reads_are_answered_while_brokers_are_away),
};
const size_t chaos_brokers_count = sizeof(chaos_brokers) / sizeof(chaos_brokers[0]);
