/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly once, three ways at once, while what is replicated loses its replicas: three brokers,
 * three copies, two of them in sync, eligible leader replicas (KIP-966) as Kafka has them by
 * default. Nothing is restarted by hand but brokers. R14 of the plan, and what is beside it. */
#include "chaos/chaos_cut.h"
#include "chaos/chaos_flows.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tasks whose transactions break this often are no fault here. */
#define PROPS "exactly.once.source.support=enabled\nmillrace.restart.max=100\n"
#define TASKS 3
#define BROKERS 3
#define WAIT_MS 180000 /* bounds a fault */

static struct chaos_flows *flows_start(struct chaos_cluster *c)
{
    return chaos_flows_start(c,
                             &(struct chaos_flows_terms){
                                 .tasks = TASKS, .rate = 200, .interval_ms = 200, .clients = ""});
}

static void judge(const struct chaos_flows *flows)
{
    int64_t records;

    chaos_flows_await(flows, WAIT_MS);
    records = chaos_flows_judge(flows);
    chaos_atomic_judge(flows);
    printf("             %lld records in all\n", (long long)records);
}

static void broker(const struct chaos_cluster *c, const char *verb, int number)
{
    kafka_run_do(c->kafka, scratch_text("%s %d", verb, number));
}

/* SIGTERM: what it leads is handed over first. */
static void leave(const struct chaos_cluster *c, int number)
{
    kafka_run_do(c->kafka, scratch_text("leave broker-%d", number));
}

struct copies {
    int fewest; /* in sync, of all partitions */
};

static void count_copies(void *arg, const struct rd_kafka_metadata *meta)
{
    struct copies *copies = arg;

    copies->fewest = BROKERS;
    for (int t = 0; t < meta->topic_cnt; t++)
        for (int p = 0; p < meta->topics[t].partition_cnt; p++)
            if (meta->topics[t].partitions[p].isr_cnt < copies->fewest)
                copies->fewest = meta->topics[t].partitions[p].isr_cnt;
}

static int fewest_in_sync(const struct chaos_cluster *c)
{
    struct copies copies;

    chaos_metadata(c, count_copies, &copies);
    return copies.fewest;
}

static void await_in_sync(const struct chaos_cluster *c)
{
    wait_until(WAIT_MS, fewest_in_sync(c) == BROKERS);
}

/* --- one at a time ---------------------------------------------------------------------------- */

static int controller(const struct chaos_cluster *c)
{
    char *output;
    const char *at;

    if (process_shell(scratch_text("KAFKA_RUN='%s' tests/kafka/kafka.sh tool "
                                   "org.apache.kafka.tools.MetadataQuorumCommand "
                                   "--bootstrap-server %s describe --status",
                                   kafka_run_folder_of(c->kafka), c->servers),
                      WAIT_MS, &output) != 0 ||
        (at = strstr(output, "LeaderId:")) == NULL)
        fail_msg("no controller is known: %s", output);
    return (int)strtol(at + strlen("LeaderId:"), NULL, 10);
}

static int leader_of_a_topic(const struct chaos_cluster *c, const struct chaos_flows *flows)
{
    return chaos_leader(c, scratch_text("%s-%d", flows->source->topic, chaos_pick(TASKS)), NULL);
}

static int coordinator_of_the_workers(const struct chaos_cluster *c,
                                      const struct chaos_flows *flows)
{
    (void)flows;
    return chaos_coordinator(c);
}

static int coordinator_of_consumers(const struct chaos_cluster *c, const struct chaos_flows *flows)
{
    return chaos_leader(c, "__consumer_offsets", scratch_text("connect-%s", flows->relay));
}

static int coordinator_of_transactions(const struct chaos_cluster *c,
                                       const struct chaos_flows *flows)
{
    return chaos_leader(c, "__transaction_state",
                        scratch_text("%s-%s-%d", c->group, flows->source->name, chaos_pick(TASKS)));
}

static int active_controller(const struct chaos_cluster *c, const struct chaos_flows *flows)
{
    (void)flows;
    return controller(c);
}

static const struct role {
    const char *name;
    int (*who)(const struct chaos_cluster *c, const struct chaos_flows *flows);
} roles[] = {
    {"leader of a topic", leader_of_a_topic},
    {"coordinator of the workers' group", coordinator_of_the_workers},
    {"coordinator of the relay's consumers", coordinator_of_consumers},
    {"coordinator of a source's transactions", coordinator_of_transactions},
    {"active controller", active_controller},
};

static void whoever_dies_among_brokers_costs_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, PROPS);
    struct chaos_flows *flows = flows_start(c);

    (void)state;
    chaos_flows_await(flows, WAIT_MS);
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        int dead = roles[i].who(c, flows);
        int64_t from = scratch_now_ms();

        assert_in_range(dead, 1, BROKERS);
        broker(c, "kill", dead);
        chaos_flows_await(flows, WAIT_MS);
        printf("             %s: all three go on %lld ms after its death\n", roles[i].name,
               (long long)scratch_since(from));
        broker(c, "restart", dead);
        await_in_sync(c);
    }
    judge(flows);
}

/* R14. Twice around. */
static void a_rolling_restart_of_brokers_costs_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, PROPS);
    struct chaos_flows *flows = flows_start(c);

    (void)state;
    chaos_flows_await(flows, WAIT_MS);
    for (int i = 0; i < 2 * BROKERS; i++) {
        leave(c, 1 + i % BROKERS);
        chaos_flows_await(flows, WAIT_MS);
        broker(c, "restart", 1 + i % BROKERS);
        await_in_sync(c);
    }
    worker_run_await(c->w[0], flows->source->name, "RUNNING", TASKS, CHAOS_HEAL_MS);
    worker_run_await(c->w[0], flows->relay, "RUNNING", TASKS, CHAOS_HEAL_MS);
    worker_run_await(c->w[0], flows->sink, "RUNNING", TASKS, CHAOS_HEAL_MS);
    judge(flows);
}

/* --- a minority that is cut off --------------------------------------------------------------- */

#define CUT_MS 25000 /* longer than the brokers' session: others lead */

/* Of its listeners, where its fellows connect to: as its configuration says. */
static int ports_of(const struct chaos_cluster *c, int number, int *ports)
{
    const char *file =
        scratch_text("%s/broker-%d.properties", kafka_run_folder_of(c->kafka), number);
    const char *at = strstr(scratch_read(file, NULL), "\nlisteners=");

    if (at == NULL || sscanf(at, "\nlisteners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d",
                             &ports[0], &ports[1]) != 2)
        fail_msg("%s has other listeners", file);
    return 2;
}

static struct chaos_cut *cut_from(const struct chaos_cluster *c, unsigned brokers)
{
    int ports[2 * BROKERS + 1], count = 0;

    for (int i = 1; i <= BROKERS; i++)
        if ((brokers >> i & 1) != 0)
            count += ports_of(c, i, ports + count);
    ports[count] = 0;
    return chaos_cut_new(ports);
}

static void restart_behind(const struct chaos_cluster *c, int number, const struct chaos_cut *cut)
{
    chaos_cut_use(cut);
    broker(c, "restart", number);
    chaos_cut_use(NULL);
    await_in_sync(c);
}

/* Clients reach all three, also the one that knows nothing of those that lead in its place. */
static void a_minority_that_is_cut_off_costs_nothing(void **state)
{
    static const enum chaos_way ways[] = {CHAOS_BOTH_WAYS, CHAOS_OUT, CHAOS_IN};
    struct chaos_cluster *c = chaos_cluster_on(
        kafka_run_start_three("KAFKA_EXTRA=broker.session.timeout.ms=9000", false), 2, PROPS);
    struct chaos_flows *flows = flows_start(c);
    int alone = 1 + chaos_pick(BROKERS);
    struct chaos_cut *out = cut_from(c, ~(1u << alone)), *in = cut_from(c, 1u << alone);

    (void)state;
    await_in_sync(c);
    for (int i = 1; i <= BROKERS; i++)
        restart_behind(c, i, i == alone ? out : in);
    chaos_flows_await(flows, WAIT_MS);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        int64_t from = scratch_now_ms();

        chaos_cut_now(out, ways[i]);
        chaos_cut_now(in, ways[i] == CHAOS_BOTH_WAYS ? ways[i] : CHAOS_BOTH_WAYS - ways[i]);
        wait_until(CUT_MS * 2, scratch_since(from) > CUT_MS);
        chaos_cut_now(out, 0);
        chaos_cut_now(in, 0);
        await_in_sync(c);
        chaos_flows_await(flows, WAIT_MS);
        printf("             broker %d cut off: all three go on %lld ms after it was mended\n",
               alone, (long long)scratch_since(from) - CUT_MS);
    }
    judge(flows);
}

/* --- one after another ------------------------------------------------------------------------ */

/* All die unclean, so nobody but the last that led may lead again: Kafka waits for it. With the
 * controller apart, which sees it all. */
static void the_last_copy_leads_again(void **state)
{
    struct chaos_cluster *c = chaos_cluster_on(
        kafka_run_start_three("KAFKA_EXTRA=broker.session.timeout.ms=9000", true), 2, PROPS);
    struct chaos_flows *flows = flows_start(c);
    const char *topic = scratch_text("%s-0", flows->source->topic);

    (void)state;
    chaos_flows_await(flows, WAIT_MS);
    await_in_sync(c);
    for (int round = 0; round < 2; round++) {
        int first = 1 + chaos_pick(BROKERS), second = 1 + first % BROKERS;
        int last = 1 + second % BROKERS;

        broker(c, "kill", first);
        wait_until(WAIT_MS, fewest_in_sync(c) == 2);
        broker(c, "kill", second);
        wait_until(WAIT_MS, fewest_in_sync(c) == 1);
        broker(c, "kill", last);
        broker(c, "restart", first);
        broker(c, "restart", second);
        assert_int_equal(chaos_leader(c, topic, NULL), -1);
        broker(c, "restart", last);
        await_in_sync(c);
        chaos_flows_await(flows, WAIT_MS);
        broker(c, "kill", 4);
        chaos_flows_await(flows, WAIT_MS);
        broker(c, "restart", 4);
    }
    judge(flows);
}

const struct CMUnitTest chaos_replicas[] = {
    scratch_test(whoever_dies_among_brokers_costs_nothing),
    scratch_test(a_rolling_restart_of_brokers_costs_nothing),
    scratch_test(a_minority_that_is_cut_off_costs_nothing),
    scratch_test(the_last_copy_leads_again),
};
const size_t chaos_replicas_count = sizeof(chaos_replicas) / sizeof(chaos_replicas[0]);
