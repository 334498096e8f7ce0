/* SPDX-License-Identifier: Apache-2.0 */
/* thread_guard: how a host process dies, and what it leaves in the black box. Real hosts. */
#include "base/clock.h"
#include "host_case.h"
#include "support/unit/side_by_side.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Run task `number` until its host dies of it. */
static int status_after(const char *where, const char *how, int number)
{
    const char *config[] = {"where", where, "how", how, NULL};
    int status;

    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, number, config);
    if (strcmp(where, "stop") == 0 || strcmp(where, "interrupt") == 0) {
        json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
        host_peer_send(host_case_peer, MSG_TASK_STOP,
                       json_pack("{s:s, s:i}", "conn", "c", "task", number));
    }
    status = host_peer_status(host_case_peer, 5000);
    if (status == -1)
        fail_msg("%s in %s does not end the host", how, where);
    return status;
}

static void assert_noted(const struct black_box *box, int task, const char *call, int sig)
{
    const struct black_box_slot *slot = black_box_last_call(box);

    assert_int_equal(box->deadly_signal, sig);
    assert_true(box->culprit > 0);
    assert_non_null(slot);
    assert_int_equal(slot->task, task);
    assert_string_equal(slot->call, call);
    assert_string_equal(slot->connector, "c");
}

static void deadly_signals_keep_their_status_and_leave_a_note(void **state)
{
    static const struct {
        const char *how;
        int sig;
    } cases[] = {
        {"segv", SIGSEGV},        {"abort", SIGABRT},    {"ill", SIGILL},
        {"fpe", SIGFPE},          {"overflow", SIGSEGV},
#ifndef __SANITIZE_ADDRESS__ /* it makes this its own report and exit code */
        {"double-free", SIGABRT},
#endif
    };
    static struct black_box box;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = status_after("poll", cases[i].how, 4);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != cases[i].sig)
            fail_msg("%s ended with status 0x%x", cases[i].how, status);
        host_peer_read_box(host_case_peer, &box);
        assert_noted(&box, 4, "poll", cases[i].sig);
        host_case_teardown(NULL);
    }
}

static void every_callback_is_named(void **state)
{
    static const char *const wheres[] = {"start", "poll", "stop"};
    static struct black_box box;

    (void)state;
    for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
        int status = status_after(wheres[i], "segv", 0);

        assert_true(WIFSIGNALED(status));
        host_peer_read_box(host_case_peer, &box);
        assert_noted(&box, 0, wheres[i], SIGSEGV);
        host_case_teardown(NULL);
    }
}

/* interrupt runs on a thread of its own, beside the task's call: the slot of the task is the
 * culprit all the same. */
static void crash_in_interrupt_is_laid_at_the_tasks_door(void **state)
{
    static struct black_box box;
    int status = status_after("interrupt", "segv", 2);

    (void)state;
    assert_true(WIFSIGNALED(status));
    host_peer_read_box(host_case_peer, &box);
    assert_true(box.culprit > 0);
    assert_int_equal(box.slots[box.culprit - 1].task, 2);
}

static void exit_code_of_a_plugin_comes_through(void **state)
{
    static struct black_box box;
    int status = status_after("poll", "exit", 1);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    host_peer_read_box(host_case_peer, &box);
    assert_noted(&box, 1, "poll", 0);
}

static void connector_thread_is_guarded_too(void **state)
{
    static const char *const config[] = {"where", "tasks", "how", "overflow", NULL};
    static struct black_box box;
    int status;

    (void)state;
    host_case_peer = host_peer_start();
    host_peer_connector(host_case_peer, "HostileSource", config);
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000));
    host_peer_send(host_case_peer, MSG_TASK_CONFIGS,
                   json_pack("{s:s, s:i}", "conn", "c", "max", 1));
    status = host_peer_status(host_case_peer, 5000);
    assert_true(status != -1 && WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    host_peer_read_box(host_case_peer, &box);
    assert_noted(&box, -1, "tasks", SIGSEGV);
}

static void constructor_that_crashes_is_noted(void **state)
{
    static struct black_box box;
    char file[100];
    FILE *f;
    int status;

    (void)state;
    host_case_peer = host_peer_start();
    host_case_teardown(NULL);
    snprintf(file, sizeof(file), "/tmp/test-thread-guard-%d", (int)getpid());
    f = fopen(file, "w");
    fputs("segv", f);
    fclose(f);
    setenv("HOSTILE_LOAD", file, 1);
    host_case_peer = host_peer_start();
    unsetenv("HOSTILE_LOAD");
    host_peer_connector(host_case_peer, "HostileSource", host_case_nothing);
    status = host_peer_status(host_case_peer, 5000);
    unlink(file);
    assert_true(status != -1 && WIFSIGNALED(status));
    host_peer_read_box(host_case_peer, &box);
    assert_noted(&box, -1, "load", SIGSEGV);
}

static void last_log_lines_stand_in_the_black_box(void **state)
{
    static struct black_box box;
    char words[BLACK_BOX_WORDS];

    (void)state;
    assert_true(WIFSIGNALED(status_after("poll", "segv", 0)));
    host_case_teardown(NULL);
    host_case_start("HostileSource", host_case_nothing);
    kill(host_case_peer->pid, SIGTERM);
    assert_int_equal(host_peer_status(host_case_peer, 3000), 0);
    host_peer_read_box(host_case_peer, &box);
    black_box_words(&box, words, sizeof(words));
    if (strstr(words, "asked to end by signal 15") == NULL)
        fail_msg("the last words are: %s", words);
}

/* A child that a plugin forks and that goes on: it holds neither the link nor the box. */
static void forked_child_is_cut_off(void **state)
{
    static const char *const config[] = {"where", "start", "how", "fork-off", NULL};
    struct black_box box;
    json_t *body;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, 0, config);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
    kill(host_case_peer->pid, SIGKILL);
    assert_true(host_peer_status(host_case_peer, 2000) != -1);
    assert_true(host_peer_group_alive(host_case_peer));
    /* the link ends with the host, although its child lives */
    body = host_peer_await(host_case_peer, MSG_KIND_END, NULL, 1000);
    assert_null(body);
    assert_int_equal(host_case_peer->link, -1);
    /* the group's SIGTERM ends the child: it does not inherit what the host blocks */
    kill(-host_case_peer->pid, SIGTERM);
    for (int i = 0; i < 100 && host_peer_group_alive(host_case_peer); i++)
        usleep(10000);
    assert_false(host_peer_group_alive(host_case_peer));
    host_peer_read_box(host_case_peer, &box);
    assert_int_equal(box.deadly_signal, 0);
}

static void flood_on_stdout_hurts_nobody(void **state)
{
    static const char *const config[] = {"where", "start", "how", "flood", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, 0, config);
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
    for (json_int_t i = 1; i <= 20; i++) {
        host_peer_send(host_case_peer, MSG_PING, json_pack("{s:I}", "id", i));
        json_decref(host_case_await(MSG_PONG, NULL, 5000));
        host_peer_serve(host_case_peer, 10);
    }
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    assert_int_equal(host_peer_status(host_case_peer, 3000), 0);
}

#define host_test(f) cmocka_unit_test_teardown(f, host_case_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(deadly_signals_keep_their_status_and_leave_a_note),
        host_test(every_callback_is_named),
        host_test(crash_in_interrupt_is_laid_at_the_tasks_door),
        host_test(exit_code_of_a_plugin_comes_through),
        host_test(connector_thread_is_guarded_too),
        host_test(constructor_that_crashes_is_noted),
        host_test(last_log_lines_stand_in_the_black_box),
        host_test(forked_child_is_cut_off),
        host_test(flood_on_stdout_hurts_nobody),
    };

    host_peer_main(argc, argv);
    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
