/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that come, go and are replaced: work stays even, and nothing stops that need not move.
 * R42 of the plan; the 1 → 5 → 2, and rolling from a build whose link speaks another
 * version. */
#include "chaos/chaos.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TASKS 10
#define MOST 5
#define OLDER TEST_SOURCE "/build/older/millrace"

struct places {
    int owner[TASKS];
    int lives[TASKS];
};

static struct places places_of(const struct chaos_source *s)
{
    struct places p;

    for (int i = 0; i < s->tasks; i++) {
        p.owner[i] = chaos_owner(s, i);
        p.lives[i] = chaos_lives_of(s, i);
    }
    return p;
}

/* Every task lives, and no worker has two more than another. */
static bool even(const struct chaos_source *s)
{
    struct places p = places_of(s);
    int count[CHAOS_WORKERS] = {0}, most = 0, least = TASKS;

    for (int i = 0; i < s->tasks; i++) {
        if (p.owner[i] < 0)
            return false;
        count[p.owner[i]]++;
    }
    for (int w = 0; w < s->cluster->count; w++) {
        if (!chaos_lives(s->cluster->w[w]))
            continue;
        most = count[w] > most ? count[w] : most;
        least = count[w] < least ? count[w] : least;
    }
    return most - least <= 1;
}

/* Who stayed where it was did not stop. Gives how many moved. */
static int assert_unmoved_live_on(const struct chaos_source *s, const struct places *before)
{
    struct places now = places_of(s);
    int moved = 0;

    for (int i = 0; i < s->tasks; i++) {
        moved += now.owner[i] != before->owner[i];
        if (now.owner[i] == before->owner[i] && now.lives[i] != before->lives[i])
            fail_msg("%s-%d was stopped, though it stays with worker %d", s->name, i, now.owner[i]);
    }
    return moved;
}

static void step_and_judge(const struct chaos_source *s, const struct places *before, int must_move)
{
    int64_t from = scratch_now_ms();
    int moved;

    wait_until(CHAOS_HEAL_MS, even(s));
    printf("             even after %lld ms\n", (long long)scratch_since(from));
    chaos_await_progress(s, CHAOS_HEAL_MS);
    moved = assert_unmoved_live_on(s, before);
    if (moved != must_move)
        fail_msg("%d tasks moved, %d had to", moved, must_move);
}

static int held_by(const struct places *p, int worker)
{
    int count = 0;

    for (int i = 0; i < TASKS; i++)
        count += p->owner[i] == worker;
    return count;
}

static void work_stays_even_and_moves_no_more_than_it_must(void **state)
{
    struct chaos_cluster *c = chaos_cluster(1, "");
    struct chaos_source *s = chaos_source(c, "src", TASKS, 50, ", \"slow.stop.ms\": \"300\"");
    struct places before = places_of(s);

    (void)state;
    for (int workers = 2; workers <= MOST; workers++) {
        chaos_join(c, NULL);
        step_and_judge(s, &before, TASKS / workers);
        before = places_of(s);
    }
    for (int w = MOST - 1; w >= 2; w--) {
        int must_move = held_by(&before, w);

        assert_int_equal(worker_run_stop(c->w[w]), 0);
        step_and_judge(s, &before, must_move);
        before = places_of(s);
    }
    chaos_figure("silence of a task that moved",
                 chaos_judge(s, &(struct chaos_terms){.doubles = 0}).gap_ms, 1000);
}

/* --- chance ----------------------------------------------------------------------------------- */

static void one_event(struct chaos_cluster *c)
{
    int at = chaos_pick(c->count), living = 0;
    struct worker_run *w = c->w[at];
    bool lives = chaos_lives(w);

    for (int i = 0; i < c->count; i++)
        living += chaos_lives(c->w[i]);
    if (!lives) {
        printf("             worker %d joins\n", at);
        worker_run_launch(w);
    } else if (living > 1 && chaos_pick(2) == 0) {
        printf("             worker %d is killed\n", at);
        worker_run_kill(w);
    } else if (living > 1) {
        printf("             worker %d leaves\n", at);
        process_signal(w->process, SIGTERM);
        process_wait(w->process, 20000);
    }
}

/* R42. */
static void joins_and_deaths_at_random_end_even(void **state)
{
    struct chaos_cluster *c = chaos_cluster(MOST, "");
    struct chaos_source *s = chaos_source(c, "src", TASKS, 50, "");
    int64_t from = scratch_now_ms(), for_ms = chaos_seconds(120) * 1000L, next_ms;

    (void)state;
    while (scratch_since(from) < for_ms) {
        one_event(c);
        next_ms = scratch_now_ms() + 500 + chaos_pick(5000);
        wait_until(10000, scratch_now_ms() > next_ms);
    }
    chaos_figure("even and alive after the last event", wait_until(CHAOS_HEAL_MS, even(s)),
                 CHAOS_FAILOVER_MS + 10000);
    chaos_judge(s, &(struct chaos_terms){.rewinds = 2, .doubles = -1});
}

/* --- rolling ---------------------------------------------------------------------------------- */

static void replace_file(const char *path, const char *by)
{
    char *output;

    if (process_shell(scratch_text("cp '%s' '%s.new' && mv '%s.new' '%s'", by, path, path, path),
                      10000, &output) != 0)
        fail_msg("%s", output);
}

/* The file under three running workers is replaced, hosts die meanwhile and are born of the old
 * image; then each is restarted. */
static void workers_roll_to_a_build_with_another_link(void **state)
{
    const char *exe = scratch_path("millrace");
    struct chaos_cluster *c =
        chaos_cluster(0, "plugin.path=" TEST_BUILD "/plugins," TEST_BUILD "/tests/plugins\n");
    struct chaos_source *s;
    struct chaos_sink *sink;

    (void)state;
    replace_file(exe, OLDER);
    for (int i = 0; i < 3; i++)
        chaos_join(c, exe);
    s = chaos_source(c, "src", 6, 200, "");
    sink = chaos_sink(s, "snk", 3, "");
    replace_file(exe, TEST_BUILD "/millrace");
    for (int i = 0; i < 3; i++) {
        int task = chaos_pick(s->tasks);
        pid_t pid = chaos_home(s, task);

        kill(pid, SIGKILL);
        wait_until(CHAOS_HEAL_MS, chaos_home(s, task) != 0 && chaos_home(s, task) != pid);
        chaos_await_progress(s, CHAOS_HEAL_MS);
        assert_int_equal(worker_run_stop(c->w[i]), 0);
        worker_run_again(c->w[i]);
        wait_until(CHAOS_HEAL_MS, even(s));
    }
    chaos_judge(s, &(struct chaos_terms){.doubles = -1});
    chaos_judge_sink(sink);
}

const struct CMUnitTest chaos_scaling[] = {
    scratch_test(work_stays_even_and_moves_no_more_than_it_must),
    scratch_test(joins_and_deaths_at_random_end_even),
    scratch_test(workers_roll_to_a_build_with_another_link),
};
const size_t chaos_scaling_count = sizeof(chaos_scaling) / sizeof(chaos_scaling[0]);
