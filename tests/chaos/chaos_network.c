/* SPDX-License-Identifier: Apache-2.0 */
/* Wires that are cut: between a worker and all brokers, both ways and either way alone; and between
 * workers. R17, R19 of the plan, at least once; R17 exactly once, too. */
#include "chaos/chaos.h"
#include "chaos/chaos_cut.h"
#include "chaos/chaos_flows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_MS 20000
#define VICTIM 2
/* R17's own: a second more than after a death. A worker that hears nothing still sends the
 * heartbeat that was due within an interval (a second) of the last answer, and the session is
 * counted from that one; it can't be given away sooner. */
#define CUT_OFF_MS (CHAOS_FAILOVER_MS + 1000)

/* Whichever way is cut, the group hears no more heartbeats (the next one waits for the answer to
 * the last) and gives the work away; the worker must have fallen silent before. */
static void cut_and_mend(enum chaos_way ways)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_cut *cut;
    struct chaos_source *s;
    struct chaos_sink *sink;
    int ports[8];

    chaos_broker_ports(c, ports);
    cut = chaos_cut_new(ports);
    chaos_cut_use(cut);
    chaos_join(c, NULL);
    chaos_cut_use(NULL);
    s = chaos_source(c, "src", 6, 100, "");
    sink = chaos_sink(s, "snk", 3, "");
    for (int round = 0; round < 2; round++) {
        int64_t from = scratch_now_ms();

        assert_true((chaos_owners(s) & (1u << VICTIM)) != 0);
        chaos_cut_now(cut, ways);
        wait_until(CHAOS_HEAL_MS, (chaos_owners(s) & (1u << VICTIM)) == 0);
        chaos_figure("taken over after", scratch_since(from), CUT_OFF_MS);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        wait_until(CUT_MS * 2, scratch_since(from) > CUT_MS);
        chaos_cut_now(cut, 0);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        wait_until(CHAOS_HEAL_MS, (chaos_owners(s) & (1u << VICTIM)) != 0);
        chaos_await_progress(s, CHAOS_HEAL_MS);
    }
    assert_true(chaos_lives(c->w[VICTIM]));
    chaos_judge(s, &(struct chaos_terms){.rewinds = 4, .doubles = -1, .late = true});
    chaos_judge_sink(sink);
}

static void a_worker_without_brokers_is_replaced(void **state)
{
    (void)state;
    cut_and_mend(CHAOS_BOTH_WAYS);
}

static void a_worker_that_is_not_heard_is_replaced(void **state)
{
    (void)state;
    cut_and_mend(CHAOS_OUT);
}

static void a_worker_that_hears_nothing_falls_silent(void **state)
{
    (void)state;
    cut_and_mend(CHAOS_IN);
}

/* R17's other half. Sources, topic to topic and sinks: what it had open is ended by others, and what
 * it had under way comes too late when the wire is mended. */
static void a_worker_that_is_cut_off_commits_nothing_any_more(void **state)
{
    static const struct {
        enum chaos_way ways;
        int ms;
    } cuts[] = {{CHAOS_BOTH_WAYS, CUT_MS},
                {CHAOS_OUT, CUT_MS},
                {CHAOS_IN, CUT_MS},
                {CHAOS_BOTH_WAYS, 60000}};
    struct chaos_cluster *c =
        chaos_cluster(1, "exactly.once.source.support=enabled\nmillrace.restart.max=100\n");
    const struct chaos_flows *flows;
    struct chaos_cut *cut;
    int ports[CHAOS_BROKERS_MAX + 1];

    (void)state;
    chaos_broker_ports(c, ports);
    cut = chaos_cut_new(ports);
    chaos_cut_use(cut);
    chaos_join(c, NULL);
    chaos_cut_use(NULL);
    flows = chaos_flows_start(
        c, &(struct chaos_flows_terms){.tasks = 3, .rate = 200, .interval_ms = 200, .clients = ""});
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        int64_t from;

        wait_until(CHAOS_HEAL_MS, (chaos_owners(flows->source) & 1u << 1) != 0);
        from = scratch_now_ms();
        chaos_cut_now(cut, cuts[i].ways);
        wait_until(CHAOS_HEAL_MS, chaos_owners(flows->source) == 1u << 0);
        chaos_figure("taken over after", scratch_since(from), CUT_OFF_MS);
        chaos_flows_await(flows, CHAOS_HEAL_MS * 2);
        wait_until(cuts[i].ms * 2, scratch_since(from) > cuts[i].ms);
        chaos_cut_now(cut, 0);
        wait_until(CHAOS_HEAL_MS, (chaos_owners(flows->source) & 1u << 1) != 0);
        chaos_flows_await(flows, CHAOS_HEAL_MS * 2);
    }
    printf("             %lld records in all\n", (long long)chaos_flows_judge(flows));
    chaos_atomic_judge(flows);
}

/* R19. The second worker can't reach the first, which leads: data goes on, calls that must be sent
 * on fail in words, and task configurations that wait are written once the wire is mended. */
static void workers_that_cannot_reach_the_leader_go_on(void **state)
{
    struct chaos_cluster *c = chaos_cluster(1, "");
    struct chaos_cut *cut = chaos_cut_new((int[]){c->w[0]->port, 0});
    struct chaos_source *s;
    int64_t from;
    char *output;

    (void)state;
    chaos_cut_use(cut);
    chaos_join(c, NULL);
    chaos_cut_use(NULL);
    s = chaos_source(c, "src", 4, 100, "");
    chaos_cut_now(cut, CHAOS_BOTH_WAYS);
    process_shell(scratch_text("curl -s -m 100 -w ' code %%{http_code} %%{time_total}' -X DELETE "
                               "%s/connectors/none",
                               c->w[1]->url),
                  110000, &output);
    printf("             a call that is sent on: %s\n", output);
    assert_true(strstr(output, "message") != NULL && strstr(output, "code 500") != NULL);
    /* some of these objects are made on the second worker */
    for (int i = 0; i < 4; i++)
        assert_true(worker_run_call(c->w[0], "PUT", scratch_text("/connectors/n%d/config", i),
                                    scratch_text("{\"connector.class\": \"LedgerSource\", "
                                                 "\"topic\": \"%s-n%d\", \"ledger\": \"%s-n%d\"}",
                                                 s->topic, i, s->ledger, i))
                        .status == 201);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_cut_now(cut, 0);
    from = scratch_now_ms();
    for (int i = 0; i < 4; i++)
        wait_until(CHAOS_HEAL_MS,
                   topic_count(c->servers, scratch_text("%s-n%d-0", s->topic, i)) > 0);
    chaos_figure("reconfigured after healing", scratch_since(from), 10000);
    chaos_judge(s, &(struct chaos_terms){.doubles = 0});
}

const struct CMUnitTest chaos_network[] = {
    scratch_test(a_worker_without_brokers_is_replaced),
    scratch_test(a_worker_that_is_not_heard_is_replaced),
    scratch_test(a_worker_that_hears_nothing_falls_silent),
    scratch_test(a_worker_that_is_cut_off_commits_nothing_any_more),
    scratch_test(workers_that_cannot_reach_the_leader_go_on),
};
const size_t chaos_network_count = sizeof(chaos_network) / sizeof(chaos_network[0]);
