/* SPDX-License-Identifier: Apache-2.0 */
/* A host's lease, from its worker's end: the soft end makes quiet, the hard end kills what is not,
 * whatever is stopped. */
#include "base/clock.h"
#include "host_case.h"
#include "support/unit/side_by_side.h"
#include "task_rig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static void lease(int soft_in_ms, int hard_in_ms)
{
    int64_t now_ms = clock_boot_ms();

    host_peer_send(host_case_peer, MSG_LEASE,
                   json_pack("{s:o, s:o}", "soft_ms", json_integer(now_ms + soft_in_ms), "hard_ms",
                             json_integer(now_ms + hard_in_ms)));
}

static void await_words(const char *words, int ms)
{
    int64_t until = clock_ms() + ms;

    while (strstr(host_peer_printed(host_case_peer), words) == NULL) {
        if (clock_ms() > until)
            fail_msg("it does not print \"%s\" within %d ms", words, ms);
        host_peer_serve(host_case_peer, 5);
    }
}

static const char quiet_words[] = "all tasks are quiet: the lease's hard end is lifted";

/* Sources of two kinds: one that polls all the time, one that waits; a paused one; one that has
 * failed. */
static void lease_that_runs_out_makes_quiet_and_a_new_one_goes_on(void **state)
{
    static const char *const slow[] = {"interval.ms", "60000", NULL};
    static const char *const fails[] = {"where", "poll", "how", "error", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    lease(100000, 200000);
    host_case_task(0, host_case_nothing);
    host_case_task(1, slow);
    host_case_task(2, host_case_nothing);
    host_peer_send(host_case_peer, MSG_TASK_TARGET,
                   json_pack("{s:s, s:i, s:s}", "conn", "c", "task", 2, "target", "PAUSED"));
    json_decref(host_case_await(MSG_TASK_STATUS, "PAUSED", 5000));
    host_peer_task(host_case_peer, 3, fails);
    json_decref(host_case_await(MSG_TASK_STATUS, "FAILED", 5000));
    lease(100, 3000);
    await_words(quiet_words, 3000);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 3100)); /* and it lives on */
    assert_int_equal(host_peer_status(host_case_peer, 0), -1);
    host_case_assert_answers();
    lease(100000, 200000);
    await_words("the lease is renewed: tasks go on", 3000);
    /* No status has changed. */
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 100));
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    json_decref(host_case_await(MSG_DRAINED, NULL, 3000));
    assert_int_equal(host_peer_status(host_case_peer, 1000), 0);
}

static void leases_renewed_in_time_disturb_nobody(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    for (int i = 0; i < 25; i++) { /* longer than one of them holds */
        lease(1500, 3000);
        host_peer_serve(host_case_peer, 80);
    }
    host_peer_send(host_case_peer, MSG_LEASE, json_pack("{s:i, s:i}", "soft_ms", 0, "hard_ms", 0));
    host_peer_serve(host_case_peer, 1600); /* none is needed any more */
    host_case_assert_answers();
    assert_null(strstr(host_peer_printed(host_case_peer), "lease"));
}

static void task_started_without_a_lease_waits_for_it(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    lease(0, 3000);
    await_words(quiet_words, 3000);
    host_peer_task(host_case_peer, 0, host_case_nothing);
    host_peer_task(host_case_peer, 1, host_case_nothing);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 400));
    host_case_send(MSG_TASK_STOP, "task", json_integer(1));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 1000));
    lease(10000, 20000);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 3000));
}

static void assert_killed_at(int64_t boot_ms)
{
    int status = host_peer_status(host_case_peer, (int)(boot_ms - clock_boot_ms()) + 2000);

    assert_true(status != -1);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(clock_boot_ms() >= boot_ms - 5);
}

/* This test, its worker, does nothing more: a worker that is stopped looks the same to its host. */
static void hung_task_is_killed_at_the_hard_end_of_the_lease(void **state)
{
    static const char *const cases[][2] = {{"poll", "sleep"}, {"poll", "spin"}, {"start", "lock"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *config[] = {"where", cases[i][0], "how", cases[i][1], NULL};
        int64_t hard_ms;

        host_case_start("HostileSource", host_case_nothing);
        host_case_task(1, host_case_nothing); /* that one becomes quiet */
        host_peer_task(host_case_peer, 0, config);
        host_peer_await_call(host_case_peer, cases[i][0]);
        hard_ms = clock_boot_ms() + 500;
        lease(100, 500);
        assert_killed_at(hard_ms);
        assert_null(strstr(host_peer_printed(host_case_peer), quiet_words));
        host_case_teardown(NULL);
    }
}

static void stopped_host_is_killed_at_the_hard_end_of_the_lease(void **state)
{
    int64_t hard_ms;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    hard_ms = clock_boot_ms() + 2500;
    lease(2000, 2500);
    host_case_assert_answers(); /* it has read the frame before */
    kill(host_case_peer->pid, SIGSTOP);
    assert_killed_at(hard_ms);
}

/* No test may step the machine's clock; but the kernel says by which one each deadline goes. 7 is
 * CLOCK_BOOTTIME. */
static void leases_go_by_the_clock_that_nobody_steps(void **state)
{
    char path[64], line[128];
    int boot_timers = 0, other_timers = 0;
    FILE *file;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    lease(100000, 200000);
    host_case_assert_answers();
    snprintf(path, sizeof(path), "/proc/%d/timers", (int)host_case_peer->pid);
    file = fopen(path, "r");
    if (file == NULL)
        skip(); /* a kernel without CONFIG_CHECKPOINT_RESTORE */
    while (fgets(line, sizeof(line), file) != NULL) {
        boot_timers += strcmp(line, "ClockID: 7\n") == 0;
        other_timers += strncmp(line, "ClockID: ", 9) == 0 && strcmp(line, "ClockID: 7\n") != 0;
    }
    fclose(file);
    assert_int_equal(boot_timers, 2); /* the lease's hard end, and the orphan's */
    assert_int_equal(other_timers, 0);
    snprintf(path, sizeof(path), "grep -l 'clockid: 7' /proc/%d/fdinfo/*",
             (int)host_case_peer->pid);
    file = popen(path, "r");
    assert_non_null(fgets(line, sizeof(line), file)); /* the soft end */
    pclose(file);
}

static void lease_that_has_passed_ends_at_once(void **state)
{
    static const char *const config[] = {"where", "poll", "how", "sleep", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, 0, config);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
    host_peer_await_call(host_case_peer, "poll");
    lease(-2000, -1000);
    assert_killed_at(clock_boot_ms());
}

static void assert_lives(void)
{
    host_case_assert_answers();
    assert_int_equal(host_peer_status(host_case_peer, 100), -1);
}

/* As the worker tells every host that is born while the coordinator is away. */
static void hard_end_that_has_passed_spares_a_host_without_tasks(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    lease(-2000, -1000);
    assert_lives();
    host_peer_task(host_case_peer, 0, host_case_nothing);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 200));
    lease(-1500, -500); /* its task has not begun */
    assert_lives();
    lease(10000, 20000);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 3000));
}

static void hard_end_that_has_passed_spares_a_quiet_host(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    lease(100000, 200000);
    host_case_task(0, host_case_nothing);
    lease(100, 5000);
    await_words(quiet_words, 3000);
    lease(-2000, -1000);
    assert_lives();
    lease(100, 1000); /* one that holds for a while */
    await_words("the lease is renewed: tasks go on", 3000);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 1200));
    assert_lives();
    lease(10000, 20000);
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    json_decref(host_case_await(MSG_DRAINED, NULL, 3000));
    assert_int_equal(host_peer_status(host_case_peer, 1000), 0);
}

/* What the host's plugin has forked; 0 none. */
static int child_of_host(void)
{
    char command[100];
    int child = 0;
    FILE *found;

    snprintf(command, sizeof(command), "grep -ls '^PPid:.%d$' /proc/[0-9]*/status",
             (int)host_case_peer->pid);
    found = popen(command, "r");
    if (fscanf(found, "/proc/%d/status", &child) != 1)
        child = 0;
    pclose(found);
    return child;
}

/* Until its task waits in poll for the child, and what it polled before has arrived. */
static int await_child(struct rig *rig, int64_t records)
{
    int64_t until = clock_ms() + 5000;
    int child;

    while ((child = child_of_host()) == 0 || rig_topic_end(rig, "hostile") < records) {
        if (clock_ms() > until)
            fail_msg("no child within 5 s");
        host_peer_serve(host_case_peer, 5);
    }
    return child;
}

/* The round after a lapse: what it takes away is stopped, then the lease comes. Its successor may
 * be at work elsewhere. */
static void lease_that_follows_a_stop_is_not_the_stopped_tasks(void **state)
{
    static const char *const config[] = {"where", "poll",        "how", "fork", "after",
                                         "20",    "interval.ms", "1",   NULL};
    struct rig rig;
    int child;

    (void)state;
    rig_init(&rig, 1, NULL);
    rd_kafka_mock_topic_create(rig.cluster, "hostile", 1, 1);
    host_peer_servers = rig.bootstrap;
    host_peer_flush_ms = "60000"; /* there are offsets that it would store at its end */
    host_case_start("HostileSource", host_case_nothing);
    lease(100000, 200000);
    host_case_task(0, config);
    child = await_child(&rig, 19);
    lease(0, 100000);
    host_case_send(MSG_TASK_STOP, "task", json_integer(0));
    lease(10000, 20000);
    host_case_assert_answers(); /* it has read them */
    kill(child, SIGKILL);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    assert_int_equal(host_case_peer->puts, 0);
    assert_int_equal(rig_topic_end(&rig, "hostile"), 19);
    host_case_task(0, host_case_nothing); /* one that is started now has the new lease */
    rig_deinit(&rig);
}

#define host_test(f) cmocka_unit_test_teardown(f, host_case_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(lease_that_runs_out_makes_quiet_and_a_new_one_goes_on),
        host_test(leases_renewed_in_time_disturb_nobody),
        host_test(task_started_without_a_lease_waits_for_it),
        host_test(hung_task_is_killed_at_the_hard_end_of_the_lease),
        host_test(stopped_host_is_killed_at_the_hard_end_of_the_lease),
        host_test(leases_go_by_the_clock_that_nobody_steps),
        host_test(lease_that_has_passed_ends_at_once),
        host_test(hard_end_that_has_passed_spares_a_host_without_tasks),
        host_test(hard_end_that_has_passed_spares_a_quiet_host),
        host_test(lease_that_follows_a_stop_is_not_the_stopped_tasks),
    };

    host_peer_main(argc, argv);
    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
