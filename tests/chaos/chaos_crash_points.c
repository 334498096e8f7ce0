/* SPDX-License-Identifier: Apache-2.0 */
/* R05: a build that can be made to die at each crash point (runtime/base/crash_point.h) does so,
 * CHAOS_TIMES times at each, under exactly-once, without, and as a standalone worker. Configurations
 * change all the while, so that lives begin and end and records of all kinds are written; what a
 * change was answered well for must be there at the end. Workers that died are started again, as a
 * machine would; hosts start by themselves. */
#include "chaos/chaos_flows.h"
#include "chaos/chaos_numbers.h"
#include "support/crash_trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CRASHING TEST_SOURCE "/build/crashing/millrace"
#define TASKS 2
#define MEET_MS 3000
/* Joins and takeovers are no matter here: dead workers are back soon, and their work at once. */
#define PROPS \
    "millrace.restart.max=100\nheartbeat.interval.ms=500\nsession.timeout.ms=3000\n" \
    "scheduled.rebalance.max.delay.ms=0\n"

/* Points from first to last. */
struct range {
    enum crash_point first;
    enum crash_point last;
};

struct trial {
    struct chaos_cluster *cluster;
    struct crash_trigger *trigger;
    const char *conns[4];            /* whose configurations change */
    const struct chaos_flows *flows; /* exactly once; NULL: the two below */
    const struct chaos_source *source;
    const struct chaos_sink *sink;
    int changes;
    int deaths;
};

static int times(void)
{
    const char *given = getenv("CHAOS_TIMES");

    return given != NULL && *given != '\0' ? (int)strtol(given, NULL, 10) : 1;
}

static struct crash_trigger *trigger_new(void)
{
    const char *file = scratch_path("trigger");
    struct crash_trigger *trigger = crash_trigger_map(file);

    assert_non_null(trigger);
    setenv("CRASH_TRIGGER", file, 1);
    return trigger;
}

static struct trial trial_new(const char *props)
{
    struct trial t = {.trigger = trigger_new(),
                      .cluster = chaos_cluster(0, scratch_text("%s%s", PROPS, props))};

    while (t.cluster->count < 2)
        chaos_join(t.cluster, CRASHING);
    return t;
}

/* --- changes ---------------------------------------------------------------------------------- */

static const char *change_of(const struct worker_run *w, const char *conn)
{
    return http_at(
        worker_run_call(w, "GET", scratch_text("/connectors/%s/config", conn), NULL).json,
        "change");
}

/* A key that nobody reads: connector and tasks are configured anew, and start again. */
static void change(const struct trial *t, const char *conn)
{
    const char *path = scratch_text("/connectors/%s/config", conn);
    json_t *config = json_deep_copy(chaos_call(t->cluster, "GET", path, NULL).json);
    struct http_reply reply;
    char *text;

    assert_non_null(config);
    json_object_set_new(config, "change", json_string(scratch_text("%d", t->changes)));
    text = json_dumps(config, 0);
    json_decref(config);
    reply = chaos_call(t->cluster, "PUT", path, text);
    free(text);
    if (reply.status != 200)
        fail_msg("PUT %s: %d: %s", path, reply.status, reply.body);
}

static void change_all(struct trial *t)
{
    t->changes++;
    for (size_t i = 0; t->conns[i] != NULL; i++)
        change(t, t->conns[i]);
}

/* What was asked for by REST is what all workers say, and what processes there are. */
static bool is_as_asked(const struct trial *t, const char *conn)
{
    int hosts = 0;

    for (int i = 0; i < t->cluster->count; i++) {
        const struct worker_run *w = t->cluster->w[i];

        hosts += worker_run_host(w, conn) != 0;
        if (strcmp(change_of(w, conn), scratch_text("%d", t->changes)) != 0 ||
            !worker_run_is(w, conn, "RUNNING", TASKS))
            return false;
    }
    return hosts > 0;
}

/* --- deaths ----------------------------------------------------------------------------------- */

static bool is_dead(const struct trial *t)
{
    return atomic_load(&t->trigger->victim) != 0;
}

static void bring_back(const struct trial *t)
{
    for (int i = 0; i < t->cluster->count; i++) {
        struct worker_run *w = t->cluster->w[i];

        if (w->process->pid == atomic_load(&t->trigger->victim)) {
            process_wait(w->process, CHAOS_HEAL_MS);
            worker_run_launch(w);
        } else if (!chaos_lives(w)) {
            fail_msg("%s ended, and nobody had killed it", w->config);
        }
    }
}

static void await_death(const struct trial *t)
{
    int64_t from = scratch_now_ms();

    while (!is_dead(t) && scratch_since(from) < MEET_MS)
        scratch_pause(5);
}

static void await_life(const struct trial *t)
{
    int64_t from_boot_ms = chaos_boot_ms();

    if (t->flows != NULL) {
        chaos_flows_await(t->flows, CHAOS_HEAL_MS * 2);
        return;
    }
    chaos_await_progress(t->source, CHAOS_HEAL_MS * 2);
    wait_until(CHAOS_HEAL_MS * 2, chaos_sink_last_ms(t->sink) > from_boot_ms);
}

/* Two ways to have somebody come to a point that is not met all the time. Not change upon change:
 * a group that all have left waits 3 s for its members, and a sink would never get to put. */
static void provoke(struct trial *t, int number)
{
    if (number % 2 == 0) {
        change_all(t);
        return;
    }
    await_life(t);
    if (t->flows != NULL)
        chaos_group_throw_out(t->cluster->servers, &t->flows->in);
}

/* Whoever comes there dies: by itself, at a change, or when the relay's group throws a member out,
 * which then aborts. */
static void die_at(struct trial *t, enum crash_point point)
{
    int64_t from = scratch_now_ms();

    crash_trigger_set(t->trigger, point, 1 + chaos_pick(3));
    for (int i = 0; !is_dead(t); i++) {
        if (scratch_since(from) > CHAOS_HEAL_MS * 3)
            fail_msg("nobody has come to %s", crash_trigger_name(point));
        provoke(t, i);
        await_death(t);
    }
    t->deaths++;
    bring_back(t);
    await_life(t);
    printf("             %s: %lld ms\n", crash_trigger_name(point), (long long)scratch_since(from));
}

static void die_everywhere(struct trial *t, const struct range *ranges, size_t count)
{
    for (int round = 0; round < times(); round++)
        for (size_t i = 0; i < count; i++)
            for (int point = (int)ranges[i].first; point <= (int)ranges[i].last; point++)
                die_at(t, (enum crash_point)point);
    for (size_t i = 0; t->conns[i] != NULL; i++)
        wait_until(CHAOS_HEAL_MS, is_as_asked(t, t->conns[i]));
    printf("             %d deaths, %d changes of each, and everything is as asked for\n",
           t->deaths, t->changes);
}

#define DIE_EVERYWHERE(trial, ranges) \
    die_everywhere(trial, ranges, sizeof(ranges) / sizeof((ranges)[0]))

/* --- scenarios -------------------------------------------------------------------------------- */

static void a_crash_at_any_point_leaves_exactly_once(void **state)
{
    static const struct range points[] = {{CRASH_POINT_SEND, CRASH_POINT_COMMITTED},
                                          {CRASH_POINT_RECORD, CRASH_POINT_ROUND_NOTED}};
    struct trial t = trial_new("exactly.once.source.support=enabled\n");
    const struct chaos_flows *flows = chaos_flows_start(
        t.cluster, &(struct chaos_flows_terms){
                       .tasks = TASKS, .rate = 200, .interval_ms = 200, .clients = ""});

    (void)state;
    t.flows = flows;
    t.conns[0] = flows->source->name;
    t.conns[1] = flows->relay;
    t.conns[2] = flows->sink;
    DIE_EVERYWHERE(&t, points);
    printf("             %lld records in all\n", (long long)chaos_flows_judge(flows));
    chaos_atomic_judge(flows);
}

static void a_crash_at_any_point_loses_nothing(void **state)
{
    static const struct range points[] = {{CRASH_POINT_SEND, CRASH_POINT_SETTLED},
                                          {CRASH_POINT_PUT, CRASH_POINT_PUT_TAKEN},
                                          {CRASH_POINT_COMMIT, CRASH_POINT_RECORD_WRITTEN},
                                          {CRASH_POINT_STEP_DONE, CRASH_POINT_STATUS_WRITTEN}};
    struct trial t = trial_new("");
    const struct chaos_source *source = chaos_source(t.cluster, "src", TASKS, 200, "");
    const struct chaos_sink *sink = chaos_sink(source, "snk", TASKS, "");

    (void)state;
    t.source = source;
    t.sink = sink;
    t.conns[0] = source->name;
    t.conns[1] = sink->name;
    DIE_EVERYWHERE(&t, points);
    chaos_judge(source, &(struct chaos_terms){.rewinds = 9, .doubles = -1});
    chaos_judge_sink(sink);
}

/* --- standalone ------------------------------------------------------------------------------- */

static void take_number(void *arg, const struct topic_record *rec)
{
    assert_non_null(rec->value);
    chaos_numbers_take(arg, strtoll(rec->value, NULL, 10));
}

/* Nothing is missing; what was not stored as done may be there twice. */
static void judge_topic(const char *servers, const char *topic)
{
    struct chaos_numbers numbers = {.of = topic};

    topic_walk(servers, topic, take_number, &numbers);
    printf("             %s: %lld numbers, %lld of them twice\n", topic, (long long)numbers.count,
           (long long)numbers.twice);
    assert_true(numbers.count > 0);
    assert_int_equal(numbers.next, numbers.count);
    assert_int_equal(numbers.late, 0);
    free(numbers.seen);
}

struct alone {
    struct worker_run *w;
    struct crash_trigger *trigger;
    const char *files[2];
    const char *topic;
    const char *ledger;
};

/* The number that the last life began with; *lives: how many there were. */
static int64_t last_first(const struct alone *a, int *lives)
{
    const char *text = scratch_read(a->ledger, NULL);
    long long first = -1;

    *lives = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at != 0)
        if (*at == 'S' && sscanf(at, "S %*s %lld", &first) == 1)
            ++*lives;
    return first;
}

static int64_t stored(const struct alone *a)
{
    const char *text = scratch_read(a->w->offsets, NULL);
    const char *at = text != NULL ? strstr(text, "\"next\":") : NULL;

    return at != NULL ? strtoll(at + 7, NULL, 10) : 0;
}

static int lives_of(const struct alone *a)
{
    int lives;

    last_first(a, &lives);
    return lives;
}

/* The next life begins no lower than what the file says when worker or host is dead. */
static void die_alone_at(const struct alone *a, enum crash_point point)
{
    int64_t from = scratch_now_ms(), records, next;
    int lives;

    crash_trigger_set(a->trigger, point, 1 + chaos_pick(3));
    wait_until(CHAOS_HEAL_MS, atomic_load(&a->trigger->victim) != 0);
    if (atomic_load(&a->trigger->victim) == a->w->process->pid)
        process_wait(a->w->process, CHAOS_HEAL_MS);
    next = stored(a);
    lives = lives_of(a);
    records = topic_count(a->w->servers, a->topic);
    if (atomic_load(&a->trigger->victim) == a->w->process->pid)
        worker_run_again(a->w);
    wait_until(CHAOS_HEAL_MS, lives_of(a) > lives);
    wait_until(CHAOS_HEAL_MS, topic_count(a->w->servers, a->topic) > records);
    if (last_first(a, &lives) < next)
        fail_msg("%s: %lld was stored, and a life began with %lld", crash_trigger_name(point),
                 (long long)next, (long long)last_first(a, &lives));
    printf("             %s: %lld ms, at %lld\n", crash_trigger_name(point),
           (long long)scratch_since(from), (long long)next);
}

static void start_alone(struct alone *a)
{
    const char *file = scratch_path("src.json"), *topic = scratch_name("alone");

    *a = (struct alone){
        .trigger = trigger_new(), .ledger = scratch_path("src.ledger.0"), .files = {file}};
    scratch_write_text(file, scratch_text("{\"name\": \"src\", \"config\": {\"connector.class\": "
                                          "\"LedgerSource\", \"tasks.max\": \"1\", \"topic\": "
                                          "\"%s\", \"ledger\": \"%s\", \"rate\": \"200\"}}",
                                          topic, scratch_path("src.ledger")));
    a->w = worker_run_start(
        &(struct worker_run_options){.exe = CRASHING,
                                     .servers = kafka_run_servers_of(chaos_kafka()),
                                     .props = "millrace.restart.max=100\n",
                                     .files = a->files});
    a->topic = scratch_text("%s-0", topic);
    wait_until(CHAOS_HEAL_MS, topic_count(a->w->servers, a->topic) > 0);
}

static void a_crash_at_any_point_of_the_offset_file_loses_nothing(void **state)
{
    static const struct range points[] = {{CRASH_POINT_OFFSETS, CRASH_POINT_OFFSETS_STORED},
                                          {CRASH_POINT_FILE_WRITE, CRASH_POINT_FILE_STORED}};
    struct alone a;

    (void)state;
    start_alone(&a);
    for (int round = 0; round < times(); round++)
        for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
            for (int at = (int)points[i].first; at <= (int)points[i].last; at++)
                die_alone_at(&a, (enum crash_point)at);
    judge_topic(a.w->servers, a.topic);
}

const struct CMUnitTest chaos_crash_points[] = {
    scratch_test(a_crash_at_any_point_leaves_exactly_once),
    scratch_test(a_crash_at_any_point_loses_nothing),
    scratch_test(a_crash_at_any_point_of_the_offset_file_loses_nothing),
};
const size_t chaos_crash_points_count = sizeof(chaos_crash_points) / sizeof(chaos_crash_points[0]);
