/* SPDX-License-Identifier: Apache-2.0 */
/* R05: a build that can be made to die at each crash point (runtime/base/crash_point.h) does so,
 * CHAOS_TIMES times at each that is met under exactly-once. Configurations change all the while, so
 * that lives begin and end and records of all kinds are written; what a change was answered well
 * for must be there at the end. Workers that died are started again, as a machine would; hosts
 * start by themselves. */
#include "chaos/chaos_flows.h"
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
    const char *conns[4]; /* whose configurations change */
    const struct chaos_flows *flows;
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
    chaos_flows_await(t->flows, CHAOS_HEAL_MS * 2);
}

/* Two ways to have somebody come to a point that is not met all the time. */
static void provoke(struct trial *t, int number)
{
    if (number % 2 == 0) {
        change_all(t);
        return;
    }
    chaos_flows_await(t->flows, CHAOS_HEAL_MS * 2);
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

const struct CMUnitTest chaos_crash_points[] = {
    scratch_test(a_crash_at_any_point_leaves_exactly_once),
};
const size_t chaos_crash_points_count = sizeof(chaos_crash_points) / sizeof(chaos_crash_points[0]);
