/* SPDX-License-Identifier: Apache-2.0 */
/* Wall clocks that are stepped, of single workers and their hosts: nothing is lost, nothing is
 * woken early or never, no round is made, no host ends, and calls between workers are accepted.
 * R43, R44 of the plan. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_S 3600
#define DAY_S 86400

struct clocks {
    struct chaos_cluster *cluster;
    const char *file[CHAOS_WORKERS];
};

/* Each worker with a clock of its own. */
static struct clocks clocks_start(int workers, const char *props)
{
    struct clocks k = {.cluster = chaos_cluster(0, props)};

    for (int i = 0; i < workers; i++) {
        k.file[i] = scratch_path(scratch_text("clock-%d", i));
        chaos_clock_use(k.file[i]);
        chaos_join(k.cluster, NULL);
    }
    chaos_clock_use(NULL);
    return k;
}

/* A task configuration that is made after the step goes to the leader, signed. */
static void assert_new_work_runs(const struct clocks *k, int number)
{
    struct chaos_source *s = chaos_source(k->cluster, scratch_text("new%d", number), 2, 20, "");

    assert_true(chaos_owner(s, 0) >= 0);
    assert_int_equal(
        chaos_call(k->cluster, "DELETE", scratch_text("/connectors/%s", s->name), NULL).status,
        204);
}

static void a_stepped_clock_is_not_noticed(void **state)
{
    static const int64_t steps[] = {HOUR_S, 0, -HOUR_S, 0, DAY_S, -DAY_S, 0};
    struct clocks k = clocks_start(3, "");
    struct chaos_source *s = chaos_source(k.cluster, "src", 6, 100, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");
    int number = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int victim = chaos_pick(3);
        int64_t from = scratch_now_ms();

        printf("             worker %d: %lld s\n", victim, (long long)steps[i]);
        chaos_clock_step(k.file[victim], steps[i]);
        while (scratch_since(from) < CHAOS_SESSION_MS)
            chaos_await_progress(s, 3000);
        assert_new_work_runs(&k, number++);
    }
    assert_int_equal(chaos_judge(s, &(struct chaos_terms){0}).lives, 1);
    chaos_judge_sink(sink);
}

/* The leader counts the delay before it gives away what a dead worker had; its clock goes back
 * meanwhile. */
static void a_clock_that_goes_back_does_not_lengthen_a_delay(void **state)
{
    struct clocks k = clocks_start(3, "");
    struct chaos_source *s = chaos_source(k.cluster, "src", 6, 100, "");
    int64_t from;

    (void)state;
    worker_run_kill(k.cluster->w[2]);
    from = scratch_now_ms();
    wait_until(CHAOS_SESSION_MS + 1000, scratch_since(from) > CHAOS_SESSION_MS);
    chaos_clock_step(k.file[0], -HOUR_S);
    chaos_clock_step(k.file[1], -HOUR_S);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_figure("taken over after", scratch_since(from), CHAOS_FAILOVER_MS);
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
}

/* Clients of the leader wait to connect anew, and to ask who leads now, while its clock goes back:
 * they may not wait for the hour to come again. The broker stays away meanwhile. */
static void a_clock_that_goes_back_holds_up_no_client(void **state)
{
    struct clocks k = clocks_start(2, "");
    struct chaos_source *s = chaos_source(k.cluster, "src", 4, 100, "");

    (void)state;
    for (int broker = 1; broker <= 3; broker++) {
        const char *conn = scratch_text("n%d", broker);
        int64_t from = scratch_now_ms();

        chaos_broker("kill", broker);
        wait_until(5000, scratch_since(from) > 1000 + chaos_pick(1000));
        chaos_clock_step(k.file[0], -HOUR_S * broker);
        wait_until(CHAOS_HEAL_MS,
                   worker_run_call(k.cluster->w[1], "PUT",
                                   scratch_text("/connectors/%s/config", conn),
                                   scratch_text("{\"connector.class\": \"LedgerSource\", "
                                                "\"topic\": \"%s-%s\", \"ledger\": \"%s-%s\"}",
                                                s->topic, conn, s->ledger, conn))
                               .status /
                           100 ==
                       2);
        worker_run_await(k.cluster->w[1], conn, "RUNNING", 1, CHAOS_HEAL_MS);
        chaos_broker("restart", broker);
        chaos_await_progress(s, CHAOS_HEAL_MS);
    }
    chaos_judge(s, &(struct chaos_terms){.rewinds = 9, .doubles = -1});
}

/* R43. A new key every few seconds, and a worker whose clock is ahead. */
static void keys_rotate_under_clocks_that_differ(void **state)
{
    struct clocks k = clocks_start(3, "inter.worker.key.ttl.ms=5000\n");
    struct chaos_source *s = chaos_source(k.cluster, "src", 3, 50, "");
    int64_t from = scratch_now_ms();

    (void)state;
    chaos_clock_step(k.file[1 + chaos_pick(2)], 600);
    for (int i = 0; scratch_since(from) < 25000; i++)
        assert_new_work_runs(&k, i);
    for (int i = 0; i < 3; i++) {
        char *code;

        assert_int_equal(
            worker_run_call(k.cluster->w[i], "POST", "/connectors/src/tasks", "[]").status, 400);
        process_shell(
            scratch_text("curl -s -m 20 -o /dev/null -w '%%{http_code}' -X POST -d '[]' "
                         "-H 'Content-Type: application/json' "
                         "-H 'X-Connect-Authorization: bm90IHRoZSBrZXkgdGhhdCB0aGV5IGhhdmU=' "
                         "-H 'X-Connect-Request-Signature-Algorithm: HmacSHA256' "
                         "'%s/connectors/src/tasks?forward=false'",
                         k.cluster->w[i]->url),
            30000, &code);
        if (strcmp(code, "403") != 0)
            fail_msg("a forged call to worker %d: %s", i, code);
    }
    assert_int_equal(chaos_judge(s, &(struct chaos_terms){0}).lives, 1);
}

const struct CMUnitTest chaos_clocks[] = {
    scratch_test(a_stepped_clock_is_not_noticed),
    scratch_test(a_clock_that_goes_back_does_not_lengthen_a_delay),
    scratch_test(a_clock_that_goes_back_holds_up_no_client),
    scratch_test(keys_rotate_under_clocks_that_differ),
};
const size_t chaos_clocks_count = sizeof(chaos_clocks) / sizeof(chaos_clocks[0]);
