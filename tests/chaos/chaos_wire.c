/* SPDX-License-Identifier: Apache-2.0 */
/* R18 of the plan: between workers and brokers each packet takes 100 ms, 50 more or less, and one in
 * twenty is lost. At least once and exactly once, at once; nobody is thrown out of his group, and
 * what goes through is what plain librdkafka gets through such a wire.
 *
 *   brokers, this program  ── chaos_link ──  two clusters of two workers, raw_produce
 *
 * Needs root; without it the scenario is left out, and says so. */
#include "chaos/chaos_flows.h"
#include "chaos/chaos_group.h"
#include "chaos/chaos_link.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAD ((struct chaos_link_harm){.lost_percent = 5, .ms = 100, .jitter_ms = 50})
#define PATIENT /* as Connect by default; what is under way takes its time at a stop */ \
    "session.timeout.ms=10000\nheartbeat.interval.ms=3000\n" \
    "scheduled.rebalance.max.delay.ms=5000\ntask.shutdown.graceful.timeout.ms=30000\n"
#define EXACT "exactly.once.source.support=enabled\n"
#define QUIET_MS 10000
#define RATE 20
#define TASKS 3
#define LINE "%09d 12345-123456789 123456789\n" /* as long as what a source writes */
#define LINE_BYTES 40
#define RAW_BYTES_S 300000 /* more than goes through */
/* What is under way, for both: it is to be delivered within a stop's time. */
#define BUFFER ", \"producer.override.buffer.memory\": \"1048576\""
#define RAW_BUFFER "queue.buffering.max.kbytes=1024", "queue.buffering.max.messages=3276"

static struct chaos_cluster *cluster_there(struct kafka_run *kafka, const struct chaos_link *link,
                                           const char *props)
{
    struct chaos_cluster *c = chaos_cluster_on(kafka, 0, props);

    c->host = CHAOS_LINK_THERE;
    chaos_link_go(link, CHAOS_THERE);
    chaos_join(c, NULL);
    chaos_join(c, NULL);
    chaos_link_go(link, CHAOS_HERE);
    return c;
}

/* Rounds that any group has begun, by what the brokers say of them. */
static int rounds(const struct kafka_run *kafka, bool told)
{
    static const char begins[] = "Preparing to rebalance group";
    glob_t logs;
    int count = 0;

    glob(scratch_text("%s/broker-*.log", kafka_run_folder_of(kafka)), 0, NULL, &logs);
    for (size_t i = 0; i < logs.gl_pathc; i++) {
        char *text = scratch_read(logs.gl_pathv[i], NULL);

        for (char *at = text; at != NULL && (at = strstr(at, begins)) != NULL; at++, count++)
            if (told)
                printf("             %.*s\n", (int)strcspn(at, "\n"), at);
    }
    globfree(&logs);
    return count;
}

/* Tasks that begin on the bad wire take their time until they are in their group. */
static void await_quiet(const struct kafka_run *kafka, const char *servers,
                        const char *const *groups)
{
    int before;

    for (; *groups != NULL; groups++)
        wait_until(CHAOS_HEAL_MS * 2, chaos_group_members(servers, *groups) == TASKS);
    do {
        int64_t from = scratch_now_ms();

        before = rounds(kafka, false);
        wait_until(QUIET_MS * 2, scratch_since(from) > QUIET_MS);
    } while (rounds(kafka, false) != before);
}

static void write_lines(const char *file, int count)
{
    FILE *out = fopen(file, "w");

    assert_non_null(out);
    for (int i = 0; i < count; i++)
        fprintf(out, LINE, i);
    assert_int_equal(fclose(out), 0);
}

/* raw_produce (tests/bench) does there what the source does, with its settings. */
static struct process *start_raw(const struct chaos_link *link, const char *servers,
                                 const char *topic, int seconds)
{
    const char *file = scratch_path("raw.lines");
    struct process *raw;

    write_lines(file, seconds * (RAW_BYTES_S / LINE_BYTES));
    topic_create(servers, topic, 1);
    chaos_link_go(link, CHAOS_THERE);
    raw = process_start((const char *const[]){TEST_BUILD "/tests/bench/raw_produce", servers, topic,
                                              file, "acks=all", "max.in.flight=1",
                                              "enable.idempotence=true", "linger.ms=0", RAW_BUFFER,
                                              NULL},
                        scratch_path("raw.log"), NULL);
    chaos_link_go(link, CHAOS_HERE);
    wait_until(CHAOS_HEAL_MS, topic_count(servers, topic) > 0);
    unlink(file); /* it has it */
    return raw;
}

/* At least half of what plain librdkafka gets through in that time. */
static void compare(const struct chaos_link *link, const struct chaos_source *flat, int seconds)
{
    const char *servers = flat->cluster->servers, *topic = scratch_name("raw");
    struct process *raw = start_raw(link, servers, topic, seconds);
    int64_t from, ours, theirs;

    from = scratch_now_ms();
    ours = chaos_progress(flat, 0);
    theirs = topic_count(servers, topic);
    wait_until(seconds * 2000, scratch_since(from) > seconds * 1000L);
    ours = chaos_progress(flat, 0) - ours;
    theirs = topic_count(servers, topic) - theirs;
    assert_true(process_running(raw)); /* or it had too few lines */
    process_signal(raw, SIGKILL);
    printf("             in %d s: %lld records of ours, %lld of plain librdkafka: %.2f of it, "
           "promised 0.50\n",
           seconds, (long long)ours, (long long)theirs, (double)ours / (double)theirs);
    fflush(stdout);
    assert_true(ours * 2 >= theirs);
}

static void start_brokers(struct chaos_link **link, struct kafka_run **kafka)
{
    const char *lacks = chaos_link_lacks();

    if (lacks != NULL) {
        printf("             no wire of its own: %s\n", lacks);
        skip();
    }
    assert_int_equal(process_shell("tests/kafka/kafka.sh fetch", CHAOS_HEAL_MS * 5, NULL), 0);
    *link = chaos_link_new();
    *kafka = kafka_run_start_three("KAFKA_HOST=" CHAOS_LINK_HERE
                                   " KAFKA_EXTRA=log.message.timestamp.type=LogAppendTime",
                                   false);
}

static void a_slow_wire_that_loses_packets_is_borne(void **state)
{
    const struct chaos_terms none = {.doubles = 0};
    struct chaos_cluster *plain, *exact;
    struct chaos_source *s, *flat;
    struct chaos_flows *flows;
    struct chaos_sink *sink;
    struct kafka_run *kafka;
    struct chaos_link *link;
    struct chaos_link_counts counts;
    int ports[CHAOS_BROKERS_MAX + 1], before, seconds = chaos_seconds(120);

    (void)state;
    start_brokers(&link, &kafka);
    plain = cluster_there(kafka, link, PATIENT);
    exact = cluster_there(kafka, link, PATIENT EXACT);
    s = chaos_source(plain, "plain", TASKS, RATE, "");
    sink = chaos_sink(s, "snk", TASKS, "");
    flows = chaos_flows_start(
        exact,
        &(struct chaos_flows_terms){
            .tasks = TASKS, .rate = RATE, .interval_ms = 1000, .poll_ms = 45000, .clients = ""});
    chaos_broker_ports(plain, ports);
    chaos_link_set(link, ports, BAD);
    flat = chaos_source(plain, "flat", 1, 50000, BUFFER);
    await_quiet(kafka, plain->servers,
                (const char *const[]){"connect-snk", flows->in.id, flows->out.id, NULL});
    before = rounds(kafka, false);
    compare(link, flat, seconds);
    counts = chaos_link_counts(link);
    printf("             %lld of %lld packets were lost\n", counts.lost, counts.packets);
    if (rounds(kafka, false) != before)
        fail_msg("%d rounds began in all, and %d of them on a good wire", rounds(kafka, true),
                 before);
    chaos_link_set(link, ports, (struct chaos_link_harm){0});
    assert_int_equal(chaos_judge(flat, &none).lives, 1);
    assert_int_equal(chaos_judge(s, &none).lives, 1);
    chaos_judge_sink(sink);
    chaos_flows_await(flows, CHAOS_HEAL_MS * 2);
    chaos_flows_judge(flows);
    chaos_atomic_judge(flows);
}

const struct CMUnitTest chaos_wire[] = {
    scratch_test(a_slow_wire_that_loses_packets_is_borne),
};
const size_t chaos_wire_count = sizeof(chaos_wire) / sizeof(chaos_wire[0]);
