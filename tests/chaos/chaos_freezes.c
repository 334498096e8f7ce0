/* SPDX-License-Identifier: Apache-2.0 */
/* Freezes, longer than the session: the worker alone, its hosts alone, both, and the leader. What
 * is frozen can't stop anything, so the lease must: each host's own timers make it quiet or end it
 * before the group gives its work away. R08, R09, R10 of the plan, at least once. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3

/* Until its tasks are elsewhere; then a while longer, and it wakes among its successors. */
static int freeze_until_replaced(const struct chaos_source *s, enum chaos_part part)
{
    int victim = chaos_owner(s, chaos_pick(s->tasks));
    const struct worker_run *w = s->cluster->w[victim];
    int64_t took_ms;

    chaos_signal(w, part, SIGSTOP);
    took_ms = wait_until(CHAOS_FAILOVER_MS + 10000, (chaos_owners(s) & (1u << victim)) == 0);
    chaos_figure("taken over after", took_ms, CHAOS_FAILOVER_MS);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_signal(w, part, SIGCONT);
    return victim;
}

static void freeze_and_judge(enum chaos_part part)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 3, 200, "");
    struct chaos_sink *sink = chaos_sink(s, "snk", 3, "");

    for (int i = 0; i < ROUNDS; i++) {
        int victim = freeze_until_replaced(s, part);

        wait_until(CHAOS_HEAL_MS, (chaos_owners(s) & (1u << victim)) != 0);
        chaos_await_progress(s, CHAOS_HEAL_MS);
    }
    chaos_figure("silence of a frozen worker's task",
                 chaos_judge(s, &(struct chaos_terms){.rewinds = ROUNDS, .doubles = -1}).gap_ms,
                 CHAOS_FAILOVER_MS);
    chaos_judge_sink(sink);
}

static void a_frozen_worker_and_its_hosts_are_replaced(void **state)
{
    (void)state;
    freeze_and_judge(CHAOS_BOTH);
}

/* Its hosts live: their lease makes them quiet, and what wakes up does not go on. */
static void a_frozen_workers_hosts_fall_silent_by_themselves(void **state)
{
    (void)state;
    freeze_and_judge(CHAOS_WORKER);
}

/* The worker beats on, but a host that can't read its lease ends when it is over, and starts again
 * where it was: no round. */
static void frozen_hosts_end_with_their_lease(void **state)
{
    struct chaos_cluster *c = chaos_cluster(2, "");
    struct chaos_source *s = chaos_source(c, "src", 2, 200, ""),
                        *other = chaos_source(c, "other", 2, 200, "");

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = chaos_home(s, 0);
        int64_t stopped_ms = chaos_boot_ms();

        kill(pid, SIGSTOP);
        wait_until(CHAOS_FAILOVER_MS, kill(pid, 0) != 0);
        chaos_figure("a frozen host is gone after", chaos_boot_ms() - stopped_ms, CHAOS_SESSION_MS);
        wait_until(40000, chaos_home(s, 0) != 0);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        chaos_assert_silent(s, pid, stopped_ms + 1000);
    }
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
    assert_int_equal(chaos_judge(other, &(struct chaos_terms){0}).lives, 1);
}

/* Shorter than the margin of the lease, nothing happens at all. */
static void a_short_freeze_costs_nothing(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 6, 200, "");

    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct worker_run *w = c->w[chaos_pick(c->count)];
        enum chaos_part part = (enum chaos_part)(1 + chaos_pick(3));
        int64_t from = scratch_now_ms();

        chaos_signal(w, part, SIGSTOP);
        wait_until(3000, scratch_since(from) > CHAOS_SESSION_MS / 6);
        chaos_signal(w, part, SIGCONT);
        chaos_await_progress(s, CHAOS_HEAL_MS);
    }
    assert_int_equal(chaos_judge(s, &(struct chaos_terms){0}).lives, 1);
}

/* --- the leader ------------------------------------------------------------------------------- */

#define CALLS 6

/* All at once, each with all the time that a request has; codes into `answers`. */
static char *call_followers(const struct chaos_cluster *c, const struct chaos_source *like)
{
    const char *script = "";
    char *output;

    for (int i = 0; i < CALLS; i++)
        script = scratch_text(
            "%scurl -s -m 100 -o '%s' -w '%d %%{http_code} %%{time_total}\\n' -X PUT "
            "-H 'Content-Type: application/json' -d '{\"connector.class\": \"LedgerSource\", "
            "\"tasks.max\": \"1\", \"topic\": \"%s-n%d\", \"ledger\": \"%s-n%d\"}' "
            "%s/connectors/n%d/config & ",
            script, scratch_path(scratch_text("answer-%d", i)), i, like->topic, i, like->ledger, i,
            c->w[1 + i % 2]->url, i);
    assert_int_equal(process_shell(scratch_text("{ %s wait; }", script), 120000, &output), 0);
    return output;
}

static void judge_answer(const struct chaos_cluster *c, const char *line)
{
    double seconds;
    int number, code;

    assert_int_equal(sscanf(line, "%d %d %lf", &number, &code, &seconds), 3);
    printf("             n%d: %d after %.1f s\n", number, code, seconds);
    if (code == 0)
        fail_msg("n%d was not answered in 100 s", number);
    if (code < 300)
        for (int w = 1; w < c->count; w++)
            wait_until(CHAOS_HEAL_MS, worker_run_call(c->w[w], "GET",
                                                      scratch_text("/connectors/n%d", number), NULL)
                                              .status == 200);
    else if (!scratch_contains(scratch_path(scratch_text("answer-%d", number)), "forward"))
        fail_msg("n%d: %d does not say for what it waited", number, code);
}

/* R10. The first worker that joined leads. Callers of the others get an answer, and what was
 * acknowledged is there after. */
static void a_frozen_leader_holds_up_no_caller_for_long(void **state)
{
    struct chaos_cluster *c = chaos_cluster(3, "");
    struct chaos_source *s = chaos_source(c, "src", 3, 100, "");
    char *answers, *save = NULL;

    (void)state;
    chaos_signal(c->w[0], CHAOS_BOTH, SIGSTOP);
    answers = call_followers(c, s);
    for (char *line = strtok_r(answers, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        judge_answer(c, line);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_signal(c->w[0], CHAOS_BOTH, SIGCONT);
    chaos_await_progress(s, CHAOS_HEAL_MS);
    chaos_judge(s, &(struct chaos_terms){.rewinds = 1, .doubles = -1});
}

const struct CMUnitTest chaos_freezes[] = {
    scratch_test(a_frozen_worker_and_its_hosts_are_replaced),
    scratch_test(a_frozen_workers_hosts_fall_silent_by_themselves),
    scratch_test(frozen_hosts_end_with_their_lease),
    scratch_test(a_short_freeze_costs_nothing),
    scratch_test(a_frozen_leader_holds_up_no_caller_for_long),
};
const size_t chaos_freezes_count = sizeof(chaos_freezes) / sizeof(chaos_freezes[0]);
