/* SPDX-License-Identifier: Apache-2.0 */
/* Storms of changes, and all faults together at random for CHAOS_SECONDS. A model of what was asked
 * for says what must be there when it is quiet. R34 and R47 of the plan in their short forms. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREATED 60
#define NAMES 12

/* --- what there must be ----------------------------------------------------------------------- */

enum wanted { ABSENT, STOPPED, RUNNING };

struct model {
    struct chaos_cluster *cluster;
    struct chaos_source *source[NAMES];
    enum wanted wanted[NAMES];
    int change[NAMES]; /* number of the call that configured it last */
    int calls;
};

static const char *path_of(int i, const char *rest)
{
    return scratch_text("/connectors/m%d%s", i, rest);
}

/* Created anew, it goes on where its offsets are; with one task or two. */
static void create(struct model *m, int i)
{
    if (m->source[i] == NULL) {
        m->source[i] = scratch_keep(calloc(1, sizeof(*m->source[i])));
        *m->source[i] = (struct chaos_source){
            .cluster = m->cluster,
            .name = scratch_text("m%d", i),
            .topic = scratch_text("%s-m%d", m->cluster->group, i),
            .ledger = scratch_path(scratch_text("m%d.ledger", i)),
            .tasks = 1,
            .rate = 50,
        };
    }
    assert_true(
        chaos_call(m->cluster, "PUT", path_of(i, "/config"),
                   scratch_text("{\"connector.class\": \"LedgerSource\", \"tasks.max\": \"1\", "
                                "\"topic\": \"%s\", \"ledger\": \"%s\", \"rate\": \"%d\", "
                                "\"slow.stop.ms\": \"%d\", \"change\": \"%d\"}",
                                m->source[i]->topic, m->source[i]->ledger, m->source[i]->rate,
                                chaos_pick(3), m->calls))
            .status < 300);
    m->change[i] = m->calls;
    if (m->wanted[i] == ABSENT)
        m->wanted[i] = RUNNING;
}

static void call_202(struct model *m, int i, const char *method, const char *rest)
{
    int status = chaos_call(m->cluster, method, path_of(i, rest), NULL).status;

    if (status / 100 != 2 && status != 404)
        fail_msg("%s %s: %d", method, path_of(i, rest), status);
}

static void one_call(struct model *m)
{
    int i = chaos_pick(NAMES), what = chaos_pick(8);

    m->calls++;
    if (m->wanted[i] == ABSENT || what < 3) {
        create(m, i);
    } else if (what == 3) {
        call_202(m, i, "DELETE", "");
        m->wanted[i] = ABSENT;
    } else if (what == 4) {
        call_202(m, i, "PUT", "/stop");
        m->wanted[i] = STOPPED;
    } else if (what == 5) {
        call_202(m, i, "PUT", "/resume");
        m->wanted[i] = RUNNING;
    } else {
        call_202(m, i, "POST", "/restart?includeTasks=true");
    }
}

static bool lives_as_wanted(const struct model *m, int i)
{
    const struct chaos_source *s = m->source[i];

    return s == NULL || (m->wanted[i] == RUNNING ? chaos_owner(s, 0) >= 0 : chaos_rests(s, 0));
}

static bool told_as_wanted(const struct model *m, int i, const struct worker_run *w)
{
    struct http_reply config = worker_run_call(w, "GET", path_of(i, "/config"), NULL);

    if (m->wanted[i] == ABSENT)
        return config.status == 404;
    return config.status == 200 &&
           strcmp(http_at(config.json, "change"), scratch_text("%d", m->change[i])) == 0 &&
           strcmp(worker_run_state(w, scratch_text("m%d", i), "connector.state"),
                  m->wanted[i] == STOPPED ? "STOPPED" : "RUNNING") == 0;
}

/* By REST on every worker, by ledgers, and by processes. */
static void judge_model(const struct model *m)
{
    for (int i = 0; i < NAMES; i++) {
        for (int w = 0; w < m->cluster->count; w++) {
            wait_until(CHAOS_HEAL_MS, told_as_wanted(m, i, m->cluster->w[w]));
            if (m->wanted[i] == ABSENT)
                wait_until(CHAOS_HEAL_MS,
                           worker_run_host(m->cluster->w[w], scratch_text("m%d", i)) == 0);
        }
        wait_until(CHAOS_HEAL_MS, lives_as_wanted(m, i));
        if (m->wanted[i] == RUNNING)
            chaos_await_progress(m->source[i], CHAOS_HEAL_MS);
    }
    printf("             %d calls, and everything is as asked for\n", m->calls);
    for (int i = 0; i < NAMES; i++)
        if (m->wanted[i] == RUNNING)
            chaos_judge(m->source[i], &(struct chaos_terms){.rewinds = 9, .doubles = -1});
}

/* --- storms ----------------------------------------------------------------------------------- */

static void post(const struct chaos_cluster *c, int i)
{
    struct http_reply reply = chaos_call(
        c, "POST", "/connectors",
        scratch_text("{\"name\": \"c%d\", \"config\": {\"connector.class\": \"LedgerSource\", "
                     "\"tasks.max\": \"1\", \"topic\": \"%s-c%d\", \"ledger\": \"%s\", "
                     "\"rate\": \"5\"}}",
                     i, c->group, i, scratch_path(scratch_text("c%d.ledger", i))));

    if (reply.status != 201)
        fail_msg("POST c%d: %d: %s", i, reply.status, reply.body);
}

static bool started(int i)
{
    return scratch_contains(scratch_path(scratch_text("c%d.ledger.0", i)), "P ");
}

static void sixty_creates_run_in_ten_seconds(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    int64_t from = scratch_now_ms();

    (void)state;
    for (int i = 0; i < CREATED; i++)
        post(c, i);
    for (int i = 0; i < CREATED; i++)
        wait_until(CHAOS_HEAL_MS, started(i));
    chaos_figure("sixty creates, all polling", scratch_since(from), 10000);
    for (int i = 0; i < CREATED; i++)
        assert_int_equal(chaos_call(c, "DELETE", scratch_text("/connectors/c%d", i), NULL).status,
                         204);
    for (int i = 0; i < c->count; i++)
        wait_until(CHAOS_HEAL_MS, chaos_hosts(c->w[i], (pid_t[1]){0}, 1) == 0);
}

static void a_storm_of_changes_ends_as_asked(void **state)
{
    struct model m = {.cluster = chaos_cluster(3, "")};
    struct chaos_source *s = chaos_source(m.cluster, "src", 3, 100, "");
    int64_t from = scratch_now_ms(), for_ms = chaos_seconds(120) * 1000L / 4;

    (void)state;
    while (scratch_since(from) < for_ms)
        one_call(&m);
    judge_model(&m);
    chaos_judge(s, &(struct chaos_terms){.doubles = 0});
}

/* --- everything ------------------------------------------------------------------------------- */

struct mix {
    struct model model;
    const char *clock[CHAOS_WORKERS];
    int broker_down; /* 0 none */
    int faults;
};

static int random_living(const struct chaos_cluster *c)
{
    for (int tries = 0; tries < 50; tries++) {
        int at = chaos_pick(c->count);

        if (chaos_lives(c->w[at]))
            return at;
    }
    return -1;
}

static void come_back(struct mix *x, int at)
{
    chaos_clock_use(x->clock[at]);
    worker_run_launch(x->model.cluster->w[at]);
    chaos_clock_use(NULL);
}

static void fault_kill_worker(struct mix *x, int at)
{
    worker_run_kill(x->model.cluster->w[at]);
}

static void fault_end_worker(struct mix *x, int at)
{
    process_signal(x->model.cluster->w[at]->process, SIGTERM);
    process_wait(x->model.cluster->w[at]->process, 30000);
}

static void fault_lose_machine(struct mix *x, int at)
{
    chaos_destroy(x->model.cluster->w[at]);
}

static void fault_kill_host(struct mix *x, int at)
{
    pid_t hosts[32];
    size_t count = chaos_hosts(x->model.cluster->w[at], hosts, 32);

    if (count > 0)
        kill(hosts[chaos_pick((int)count)], SIGKILL);
}

static void fault_freeze(struct mix *x, int at)
{
    enum chaos_part part = (enum chaos_part)(1 + chaos_pick(3));
    int64_t until = scratch_now_ms() + 500 + chaos_pick(CHAOS_SESSION_MS * 2);

    chaos_signal(x->model.cluster->w[at], part, SIGSTOP);
    wait_until(CHAOS_SESSION_MS * 3, scratch_now_ms() > until);
    chaos_signal(x->model.cluster->w[at], part, SIGCONT);
}

static void fault_step_clock(struct mix *x, int at)
{
    chaos_clock_step(x->clock[at], (chaos_pick(3) - 1) * 3600);
}

static void fault_broker(struct mix *x, int at)
{
    (void)at;
    if (x->broker_down != 0)
        chaos_broker("restart", x->broker_down);
    x->broker_down = x->broker_down != 0 ? 0 : 1 + chaos_pick(3);
    if (x->broker_down != 0)
        chaos_broker("kill", x->broker_down);
}

static void fault_calls(struct mix *x, int at)
{
    (void)at;
    for (int i = 0; i < 5; i++)
        one_call(&x->model);
}

static const struct {
    const char *name;
    void (*run)(struct mix *x, int worker);
} faults[] = {
    {"kill -9 of", fault_kill_worker},      {"SIGTERM to", fault_end_worker},
    {"machine lost:", fault_lose_machine},  {"a host killed of", fault_kill_host},
    {"a host killed of", fault_kill_host},  {"frozen:", fault_freeze},
    {"clock stepped of", fault_step_clock}, {"a broker, beside", fault_broker},
    {"calls, beside", fault_calls},         {"calls, beside", fault_calls},
};

static void one_fault(struct mix *x)
{
    int at = random_living(x->model.cluster);
    size_t what = (size_t)chaos_pick((int)(sizeof(faults) / sizeof(faults[0])));

    for (int i = 0; i < x->model.cluster->count; i++)
        if (!chaos_lives(x->model.cluster->w[i]) && (at < 0 || chaos_pick(2) == 0))
            come_back(x, i);
    if (at < 0)
        return;
    printf("             %d: %s worker %d\n", ++x->faults, faults[what].name, at);
    faults[what].run(x, at);
}

static void heal(struct mix *x)
{
    if (x->broker_down != 0)
        chaos_broker("restart", x->broker_down);
    for (int i = 0; i < x->model.cluster->count; i++) {
        chaos_clock_step(x->clock[i], 0);
        if (!chaos_lives(x->model.cluster->w[i]))
            come_back(x, i);
    }
}

static void everything_at_random_loses_nothing(void **state)
{
    struct mix x = {.model = {.cluster = chaos_cluster(0, "")}};
    int64_t from, for_ms = chaos_seconds(120) * 1000L;
    struct chaos_source *s;
    struct chaos_sink *sink;

    (void)state;
    for (int i = 0; i < 4; i++) {
        x.clock[i] = scratch_path(scratch_text("clock-%d", i));
        chaos_clock_use(x.clock[i]);
        chaos_join(x.model.cluster, NULL);
    }
    chaos_clock_use(NULL);
    s = chaos_source(x.model.cluster, "src", 4, 100, "");
    sink = chaos_sink(s, "snk", 2, "");
    for (from = scratch_now_ms(); scratch_since(from) < for_ms;) {
        int64_t next_ms = scratch_now_ms() + chaos_pick(4000);

        one_fault(&x);
        wait_until(10000, scratch_now_ms() > next_ms);
    }
    heal(&x);
    chaos_await_progress(s, CHAOS_HEAL_MS * 2);
    chaos_judge(s, &(struct chaos_terms){.rewinds = 9, .doubles = -1});
    chaos_judge_sink(sink);
    judge_model(&x.model);
}

const struct CMUnitTest chaos_storms[] = {
    scratch_test(sixty_creates_run_in_ten_seconds),
    scratch_test(a_storm_of_changes_ends_as_asked),
    scratch_test(everything_at_random_loses_nothing),
};
const size_t chaos_storms_count = sizeof(chaos_storms) / sizeof(chaos_storms[0]);
