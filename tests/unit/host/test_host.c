/* SPDX-License-Identifier: Apache-2.0 */
/* host, hosted, connector_run: a real host process, spoken to over its link as the worker does. No
 * broker: records wait in the producer, which is all that most of this needs. */
#include "base/clock.h"
#include "base/file.h"
#include "host_case.h"
#include "link/inherit.h"
#include "support/unit/side_by_side.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *text_of(json_t *body, const char *key)
{
    static char text[8192];
    const char *value = json_string_value(json_object_get(body, key));

    snprintf(text, sizeof(text), "%s", value == NULL ? "" : value);
    json_decref(body);
    return text;
}

static void assert_says(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* --- birth ------------------------------------------------------------------------------------ */

static void command_typed_by_hand_is_refused(void **state)
{
    FILE *out = popen("/proc/$PPID/exe host x 2>&1 3<&- 4<&-", "r");
    char line[300] = "";

    (void)state;
    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(WEXITSTATUS(pclose(out)), 1);
    assert_string_equal(line,
                        "millrace host: this command is started by the worker, not by hand\n");
}

static void hello_names_version_build_and_pid(void **state)
{
    json_t *hello;

    (void)state;
    host_case_peer = host_peer_spawn();
    hello = host_case_await(MSG_HELLO, NULL, 5000);
    assert_int_equal(json_integer_value(json_object_get(hello, "version")), INHERIT_LINK_VERSION);
    assert_int_equal(json_integer_value(json_object_get(hello, "pid")), host_case_peer->pid);
    assert_string_equal(text_of(hello, "build"), MILLRACE_VERSION);
}

static void worker_of_another_version_is_refused(void **state)
{
    int status;

    (void)state;
    host_case_peer = host_peer_spawn();
    json_decref(host_case_await(MSG_HELLO, NULL, 5000));
    host_peer_send(host_case_peer, MSG_WELCOME,
                   json_pack("{s:i, s:{}, s:s}", "version", INHERIT_LINK_VERSION + 1, "worker",
                             "lock", "/tmp/never"));
    status = host_peer_status(host_case_peer, 3000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_says(host_peer_printed(host_case_peer), "speaks another version of the link");
}

static void lock_is_held_while_the_host_lives(void **state)
{
    struct mr_error err = {0};
    char path[100];
    int64_t holder = 0;
    int fd = -1;

    (void)state;
    host_case_peer = host_peer_start();
    host_case_assert_answers();
    snprintf(path, sizeof(path), "%s/lock", host_case_peer->dir);
    assert_int_equal(file_lock(path, &fd, &holder, &err), MR_ERR_EXISTS);
    assert_int_equal(holder, host_case_peer->pid);
    kill(host_case_peer->pid, SIGKILL);
    assert_true(host_peer_status(host_case_peer, 3000) != -1);
    assert_int_equal(file_lock(path, &fd, &holder, NULL), 0);
    close(fd);
}

/* Until it has taken its lock in this folder, or has ended. */
static void welcome_with_lock_in(const char *folder)
{
    char lock[160];

    snprintf(lock, sizeof(lock), "%s/lock", folder);
    json_decref(host_case_await(MSG_HELLO, NULL, 5000));
    host_peer_send(
        host_case_peer, MSG_WELCOME,
        json_pack("{s:i, s:{}, s:s}", "version", INHERIT_LINK_VERSION, "worker", "lock", lock));
}

static void a_run_folder_that_was_removed_is_made_again(void **state)
{
    char folder[100], lock[110];
    struct stat st;

    (void)state;
    host_case_peer = host_peer_spawn();
    snprintf(folder, sizeof(folder), "%s/run", host_case_peer->dir);
    snprintf(lock, sizeof(lock), "%s/lock", folder);
    welcome_with_lock_in(folder);
    host_case_assert_answers();
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_run_folder_that_cannot_be_made_is_named(void **state)
{
    char folder[100];

    (void)state;
    host_case_peer = host_peer_spawn();
    snprintf(folder, sizeof(folder), "%s/run", host_case_peer->dir);
    close(open(folder, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    welcome_with_lock_in(folder);
    assert_true(host_peer_status(host_case_peer, 5000) != -1);
    assert_says(host_peer_printed(host_case_peer), "millrace.run.dir");
    assert_says(host_peer_printed(host_case_peer), folder);
    assert_int_equal(unlink(folder), 0);
}

/* --- connectors ------------------------------------------------------------------------------- */

static void connector_starts_and_gives_task_configurations(void **state)
{
    static const char *const config[] = {"topic", "t", "count", "2", NULL};
    json_t *ready, *configs;

    (void)state;
    host_case_peer = host_peer_start();
    host_peer_connector(host_case_peer, "HostileSource", config);
    assert_string_equal(text_of(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000), "version"),
                        "1.0");
    host_case_send(MSG_TASK_CONFIGS, "max", json_integer(4));
    ready = host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000);
    configs = json_object_get(ready, "configs");
    assert_int_equal(json_array_size(configs), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(configs, 1), "number")),
                        "1");
    assert_string_equal(json_string_value(json_object_get(json_array_get(configs, 1), "topic")),
                        "t");
    json_decref(ready);
}

static void connector_follows_its_target(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("PAUSED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "PAUSED", 5000));
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STOPPED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "STOPPED", 5000));
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STARTED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000));
}

/* A worker of a cluster may have tasks of a connector whose object is another's. */
static void tasks_run_without_the_connector_until_it_is_told_its_target(void **state)
{
    json_t *body;

    (void)state;
    host_case_peer = host_peer_start();
    body = host_peer_connector_body("HostileSource", host_case_nothing);
    json_object_set_new(body, "object", json_false());
    host_peer_send(host_case_peer, MSG_CONNECTOR_START, body);
    host_case_task(4, host_case_nothing);
    assert_null(host_peer_await(host_case_peer, MSG_CONNECTOR_STATUS, NULL, 100));
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STARTED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000));
}

static void more_tasks_than_allowed_fail_the_connector(void **state)
{
    static const char *const config[] = {"count", "3", NULL};
    static const char *const lenient[] = {"count", "3", "tasks.max.enforce", "false", NULL};
    json_t *ready;

    (void)state;
    host_case_start("HostileSource", config);
    host_case_send(MSG_TASK_CONFIGS, "max", json_integer(2));
    assert_says(text_of(host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000), "error"),
                "The connector c has generated 3 tasks, which is greater than 2, the maximum "
                "number of tasks");
    assert_says(text_of(host_case_await(MSG_CONNECTOR_STATUS, "FAILED", 5000), "trace"),
                "has generated 3 tasks");
    host_case_teardown(NULL);
    host_case_start("HostileSource", lenient);
    host_case_send(MSG_TASK_CONFIGS, "max", json_integer(2));
    ready = host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000);
    assert_int_equal(json_array_size(json_object_get(ready, "configs")), 3);
    json_decref(ready);
}

static void task_configurations_too_large_for_the_link_fail_the_connector(void **state)
{
    char *fill = calloc(1, 1000001);
    const char *config[] = {"count", "6", "topic", fill, NULL};

    (void)state;
    memset(fill, 'x', 1000000);
    host_case_start("HostileSource", config);
    free(fill);
    host_case_send(MSG_TASK_CONFIGS, "max", json_integer(6));
    assert_says(text_of(host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000), "error"),
                "larger than the link to the worker carries");
    assert_says(text_of(host_case_await(MSG_CONNECTOR_STATUS, "FAILED", 5000), "trace"),
                "larger than the link to the worker carries");
}

static void library_or_class_that_is_missing_fails_connector_and_tasks(void **state)
{
    (void)state;
    host_case_peer = host_peer_start();
    host_peer_connector(host_case_peer, "NoSuchClass", host_case_nothing);
    host_peer_task(host_case_peer, 0, host_case_nothing);
    assert_says(text_of(host_case_await(MSG_CONNECTOR_STATUS, "FAILED", 5000), "trace"),
                "org.apache.kafka.connect.errors.NotFoundException: " TEST_BUILD
                "/tests/plugins/hostile.so: holds no connector called NoSuchClass");
    assert_says(text_of(host_case_await(MSG_TASK_STATUS, "FAILED", 5000), "trace"),
                "holds no connector called NoSuchClass");
    host_peer_task(host_case_peer, 1, host_case_nothing);
    assert_says(text_of(host_case_await(MSG_TASK_STATUS, "FAILED", 5000), "trace"),
                "holds no connector called NoSuchClass");
}

static void bad_configuration_fails_with_every_problem(void **state)
{
    static const char *const config[] = {"after", "soon", "only", "never", NULL};
    const char *trace;

    (void)state;
    host_case_peer = host_peer_start();
    host_peer_connector(host_case_peer, "HostileSource", config);
    trace = text_of(host_case_await(MSG_CONNECTOR_STATUS, "FAILED", 5000), "trace");
    assert_says(trace, "org.apache.kafka.common.config.ConfigException: ");
    assert_says(trace, "Invalid value soon for configuration after: Not a number of type LONG");
    assert_says(trace, "Invalid value never for configuration only");
}

static void failed_connector_is_left_by_stopped_only(void **state)
{
    static const char *const config[] = {"where", "tasks", "how", "error", NULL};

    (void)state;
    host_case_start("HostileSource", config);
    host_case_send(MSG_TASK_CONFIGS, "max", json_integer(1));
    assert_says(text_of(host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000), "error"),
                "hostile was told to fail");
    assert_says(text_of(host_case_await(MSG_CONNECTOR_STATUS, "FAILED", 5000), "trace"),
                "hostile was told to fail\n\tin tasks");
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STARTED"));
    assert_null(host_peer_await(host_case_peer, MSG_CONNECTOR_STATUS, NULL, 200));
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STOPPED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "STOPPED", 5000));
    host_case_send(MSG_CONNECTOR_TARGET, "target", json_string("STARTED"));
    json_decref(host_case_await(MSG_CONNECTOR_STATUS, "RUNNING", 5000));
}

static void control_answers_while_the_connector_hangs(void **state)
{
    static const char *const config[] = {"where", "tasks", "how", "spin", NULL};

    (void)state;
    host_case_start("HostileSource", config);
    for (int i = 0; i < 70; i++)
        host_case_send(MSG_TASK_CONFIGS, "max", json_integer(1));
    assert_says(text_of(host_case_await(MSG_TASK_CONFIGS_READY, NULL, 5000), "error"),
                "hangs in plugin code");
    host_case_assert_answers();
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    json_decref(host_case_await(MSG_DRAINED, NULL, 2000));
    assert_int_equal(host_peer_status(host_case_peer, 3000), 0);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static void task_runs_and_stops_when_asked(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    host_case_send(MSG_TASK_STOP, "task", json_integer(0));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    /* and once more: what is not there is stopped already */
    host_case_send(MSG_TASK_STOP, "task", json_integer(0));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
}

static void task_waits_for_the_start_check(void **state)
{
    json_t *check;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_peer->silent = true;
    host_peer_task(host_case_peer, 7, host_case_nothing);
    check = host_case_await(MSG_START_CHECK, NULL, 5000);
    assert_int_equal(json_integer_value(json_object_get(check, "task")), 7);
    assert_int_equal(json_integer_value(json_object_get(check, "generation")), 3);
    json_decref(check);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 200));
    host_case_teardown(NULL);
    host_case_start("HostileSource", host_case_nothing);
    host_case_peer->refuse_start = true;
    host_peer_task(host_case_peer, 7, host_case_nothing);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 5000));
}

static void task_started_anew_waits_for_its_predecessor(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(3, host_case_nothing);
    host_peer_task(host_case_peer, 3, host_case_nothing);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 5000));
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
}

static void task_pauses_and_resumes(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    host_peer_send(host_case_peer, MSG_TASK_TARGET,
                   json_pack("{s:s, s:i, s:s}", "conn", "c", "task", 0, "target", "PAUSED"));
    json_decref(host_case_await(MSG_TASK_STATUS, "PAUSED", 5000));
    host_peer_send(host_case_peer, MSG_TASK_TARGET,
                   json_pack("{s:s, s:i, s:s}", "conn", "c", "task", 0, "target", "STARTED"));
    json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
    /* one that has gone in the meantime */
    host_peer_send(host_case_peer, MSG_TASK_TARGET,
                   json_pack("{s:s, s:i, s:s}", "conn", "c", "task", 9, "target", "PAUSED"));
    host_case_assert_answers();
}

static void plugin_errors_are_failures_with_a_trace(void **state)
{
    static const struct {
        const char *where, *how, *words;
    } cases[] = {
        {"start", "error",
         "org.apache.kafka.connect.errors.ConnectException: hostile was told to fail"},
        {"poll", "error", "hostile was told to fail"},
        {"poll", "strange-code", "FATAL"},
        {"start", "undeclared",
         "reads the configuration key no.such.key, which the plugin does not declare"},
        {"poll", "wrong-type", "configuration key after, which is declared as LONG"},
        {"poll", "length", "a value with a length and no pointer"},
        {"poll", "kind", "a value of an unknown kind"},
        {"poll", "null-topic", "topic"},
        {"start", "not-utf8", "is what hostile says"},
    };

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++) {
        const char *config[] = {"where", cases[i].where, "how", cases[i].how, NULL};
        const char *trace;

        host_peer_task(host_case_peer, i, config);
        trace = text_of(host_case_await(MSG_TASK_STATUS, "FAILED", 5000), "trace");
        assert_says(trace, cases[i].words);
        assert_says(trace, strcmp(cases[i].where, "start") == 0 ? "start" : "poll");
    }
    host_case_assert_answers();
}

/* Here a process is spent as soon as it is born. */
bool __wrap_schema_tree_spent(void);

bool __wrap_schema_tree_spent(void)
{
    return true;
}

static void a_failure_of_another_kind_does_not_say_that_the_process_is_spent(void **state)
{
    static const char *const full[] = {"where", "poll", "how", "full", NULL};
    static const char *const error[] = {"where", "poll", "how", "error", NULL};
    json_t *body;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, 0, full);
    body = host_case_await(MSG_TASK_STATUS, "FAILED", 5000);
    assert_true(json_is_true(json_object_get(body, "spent")));
    json_decref(body);
    host_peer_task(host_case_peer, 1, error);
    body = host_case_await(MSG_TASK_STATUS, "FAILED", 5000);
    assert_null(json_object_get(body, "spent"));
    json_decref(body);
}

/* A locale whose decimal sign is a comma, below folder; LOCPATH names that. */
static void make_locale(const char *folder)
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                 "grouping 3;3\nEND LC_NUMERIC\n";
    char command[300];
    FILE *localedef;

    snprintf(command, sizeof(command), "localedef -c -i - %s/comma >%s/log 2>&1", folder, folder);
    localedef = popen(command, "w");
    assert_non_null(localedef);
    fputs(source, localedef);
    pclose(localedef); /* 1: the other categories are C's */
    setenv("LOCPATH", folder, 1);
    setenv("HOSTILE_LOCALE", "comma", 1);
}

static void a_locale_set_by_the_plugin_changes_no_number(void **state)
{
    const char *config[] = {"where", "poll", "how", "locale", NULL};
    char folder[] = "/tmp/test-host-XXXXXX", command[64];
    const char *trace;

    (void)state;
    assert_non_null(mkdtemp(folder));
    make_locale(folder);
    host_case_start("HostileSource", host_case_nothing);
    host_peer_task(host_case_peer, 0, config);
    trace = text_of(host_case_await(MSG_TASK_STATUS, "FAILED", 5000), "trace");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_says(trace, "with ., 2.5 is 10 quarters");
}

static void thread_ended_by_the_plugin_is_a_failure(void **state)
{
    static const char *const wheres[] = {"start", "poll", "stop"};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
        const char *config[] = {"where", wheres[i], "how", "end-thread", NULL};
        char words[64];

        snprintf(words, sizeof(words), "the plugin ended its thread in %s", wheres[i]);
        host_peer_task(host_case_peer, 0, config);
        if (strcmp(wheres[i], "stop") == 0) { /* what was asked for is no failure: only logged */
            json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 5000));
            host_case_send(MSG_TASK_STOP, "task", json_integer(0));
            json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
            assert_says(host_peer_printed(host_case_peer), words);
        } else {
            assert_says(text_of(host_case_await(MSG_TASK_STATUS, "FAILED", 5000), "trace"), words);
        }
    }
    host_case_task(0, host_case_nothing); /* the place is free again */
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    json_decref(host_case_await(MSG_DRAINED, NULL, 3000));
    assert_int_equal(host_peer_status(host_case_peer, 1000), 0);
}

static void retriable_poll_and_empty_polls_go_on(void **state)
{
    static const char *const retry[] = {"where", "poll", "how", "retry", NULL};
    static const char *const empty[] = {"where", "poll", "how", "null-batch", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, retry);
    host_case_task(1, empty);
    assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 300));
    host_case_assert_answers();
}

/* C's own -1 is MR_ERR_RETRY: tried again, and the log says why. */
static void a_poll_that_gives_minus_one_is_told_how_to_fail(void **state)
{
    static const char *const config[] = {"where", "poll", "how", "minus-one", NULL};
    int64_t from = clock_ms();

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, config);
    while (strstr(host_peer_printed(host_case_peer), "poll failed with RETRY and no text (-1 is "
                                                     "MR_ERR_RETRY: it is called again; to fail, "
                                                     "return mr_fail(") == NULL) {
        assert_true(clock_ms() - from < 10000);
        assert_null(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 50));
    }
    host_case_assert_answers();
}

static void more_tasks_than_black_box_slots_run(void **state)
{
    static const char *const slow[] = {"interval.ms", "60000", NULL};
    int count = BLACK_BOX_SLOTS + 5;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    for (int i = 0; i < count; i++)
        host_peer_task(host_case_peer, i, slow);
    for (int i = 0; i < count; i++)
        json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 60000));
}

/* --- the worker's mistakes -------------------------------------------------------------------- */

static void assert_broken(enum msg_kind kind, json_t *body, const char *words)
{
    host_case_peer = host_peer_start();
    host_peer_send(host_case_peer, kind, body);
    assert_true(host_peer_status(host_case_peer, 3000) != -1);
    assert_says(host_peer_printed(host_case_peer), words);
    host_case_teardown(NULL);
}

static void frames_that_make_no_sense_end_the_host_with_a_reason(void **state)
{
    (void)state;
    assert_broken(MSG_TASK_CONFIGS, json_pack("{s:s, s:i}", "conn", "none", "max", 1),
                  "frame TASK_CONFIGS: there is no connector none here");
    assert_broken(MSG_TASK_CONFIGS, json_pack("{s:s, s:i}", "conn", "none", "max", 0),
                  "frame TASK_CONFIGS: its member max is missing or wrong");
    assert_broken(MSG_TASK_START,
                  json_pack("{s:s, s:i, s:{}, s:s}", "conn", "none", "task", -1, "config", "target",
                            "STARTED"),
                  "frame TASK_START: its member task");
    assert_broken(MSG_CONNECTOR_START,
                  json_pack("{s:s, s:s, s:s, s:[], s:s}", "conn", "c", "library", "l", "class", "k",
                            "config", "target", "STARTED"),
                  "frame CONNECTOR_START: its member config");
    assert_broken(MSG_CONNECTOR_START,
                  json_pack("{s:s, s:s, s:s, s:{}, s:s, s:{s:{s:s}}}", "conn", "c", "library", "l",
                            "class", "k", "config", "target", "STARTED", "plugins",
                            "value.converter", "library", "l"),
                  "frame CONNECTOR_START: its member plugins");
    assert_broken(MSG_CONNECTOR_TARGET, json_pack("{s:s, s:s}", "conn", "c", "target", "FLYING"),
                  "frame CONNECTOR_TARGET: its member target");
    assert_broken(MSG_LEASE, json_pack("{s:i, s:i}", "hard_ms", 5, "soft_ms", 6),
                  "frame LEASE: its member soft_ms");
    assert_broken(MSG_LEASE, json_pack("{s:i, s:i}", "hard_ms", 5, "soft_ms", 0),
                  "frame LEASE: its member soft_ms");
    assert_broken(MSG_OFFSETS, json_pack("{s:s}", "id", "x"), "frame OFFSETS: its member id");
    assert_broken(MSG_PING, NULL, "frame PING: its member id");
    assert_broken(MSG_WELCOME, NULL, "WELCOME");
}

static void answers_to_nothing_are_ignored(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_peer_send(host_case_peer, MSG_OFFSETS, json_pack("{s:i, s:[]}", "id", 4711, "entries"));
    host_peer_send(host_case_peer, MSG_START_CHECKED, json_pack("{s:i, s:b}", "id", 4712, "ok", 1));
    host_case_assert_answers();
}

/* --- the end ---------------------------------------------------------------------------------- */

static void drain_stops_everything_and_exits_with_0(void **state)
{
    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    host_case_task(1, host_case_nothing);
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    json_decref(host_case_await(MSG_DRAINED, NULL, 3000));
    assert_int_equal(host_peer_status(host_case_peer, 1000), 0);
}

static void sigterm_drains(void **state)
{
    int64_t from;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, host_case_nothing);
    from = clock_ms();
    kill(host_case_peer->pid, SIGTERM);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    assert_int_equal(host_peer_status(host_case_peer, 2000), 0);
    assert_true(clock_ms() - from < 2500);
}

static void new_work_while_ending_is_not_begun(void **state)
{
    static const char *const hang[] = {"where", "poll", "how", "sleep", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, hang);
    host_peer_await_call(host_case_peer, "poll"); /* stopped before it, nothing would hang */
    kill(host_case_peer->pid, SIGTERM);
    json_decref(host_peer_await(host_case_peer, MSG_TASK_STATUS, NULL, 100));
    host_peer_task(host_case_peer, 5, host_case_nothing);
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 2000));
    host_case_assert_answers();
}

/* Whatever a plugin leaves behind, the process ends: exit handlers, threads, children, destructors
 * of threads. */
static void leftovers_do_not_hold_up_the_end(void **state)
{
    static const char *const hows[] = {"exit-hook", "threads", "fork-off", "thread-end"};

    (void)state;
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        const char *config[] = {"where", "start", "how", hows[i], NULL};

        host_case_start("HostileSource", host_case_nothing);
        host_case_task(0, config);
        host_peer_send(host_case_peer, MSG_DRAIN, NULL);
        if (host_peer_status(host_case_peer, 3000) != 0)
            fail_msg("%s held up the end", hows[i]);
        for (int turn = 0; turn < 100 && host_peer_group_alive(host_case_peer); turn++)
            usleep(10000);
        assert_false(host_peer_group_alive(host_case_peer));
        host_case_teardown(NULL);
    }
}

static volatile sig_atomic_t signalled;

static void on_sigterm(int sig)
{
    signalled = sig;
}

/* The group of this test stands for the worker's: a host that was moved into it must not signal
 * it. */
static void host_in_another_group_ends_without_signalling_it(void **state)
{
    static const char *const leave[] = {"where", "start", "how", "leave-group", NULL};
    void (*before)(int) = signal(SIGTERM, on_sigterm);
    pid_t group = getpgrp();

    (void)state;
    setpgid(0, 0); /* nobody else is in it */
    signalled = 0;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, leave);
    assert_int_equal(getpgid(host_case_peer->pid), getpgrp());
    host_peer_send(host_case_peer, MSG_DRAIN, NULL);
    assert_int_equal(host_peer_status(host_case_peer, 3000), 0);
    assert_int_equal(signalled, 0);
    setpgid(0, group);
    signal(SIGTERM, before);
}

/* The same for SIGKILL, which would end this process. */
static void orphan_in_another_group_does_not_kill_it(void **state)
{
    static const char *const leave[] = {"where", "start", "how", "leave-group", NULL};
    pid_t group = getpgrp();

    (void)state;
    setpgid(0, 0);
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, leave);
    assert_int_equal(getpgid(host_case_peer->pid), getpgrp());
    host_peer_close(host_case_peer);
    assert_true(host_peer_status(host_case_peer, 3000) != -1);
    setpgid(0, group);
}

static void interrupt_that_hangs_does_not_hang_control(void **state)
{
    static const char *const config[] = {"where", "interrupt", "how", "sleep", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, config);
    host_case_task(1, host_case_nothing);
    host_case_send(MSG_TASK_STOP, "task", json_integer(0));
    host_case_assert_answers();
    host_case_send(MSG_TASK_STOP, "task", json_integer(1));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
    host_case_assert_answers();
}

static void polite_wait_ends_with_eintr(void **state)
{
    static const char *const config[] = {"where", "poll", "how", "polite-read", NULL};

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, config);
    host_peer_await_call(host_case_peer, "poll");
    host_case_send(MSG_TASK_STOP, "task", json_integer(0));
    json_decref(host_case_await(MSG_TASK_STATUS, "UNASSIGNED", 3000));
}

static void lost_worker_ends_the_host_at_once_when_all_is_well(void **state)
{
    int64_t from;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    from = clock_ms();
    host_peer_close(host_case_peer);
    assert_true(host_peer_status(host_case_peer, 5000) != -1);
    assert_true(clock_ms() - from < 1900); /* when it is killed */
    assert_false(host_peer_group_alive(host_case_peer));
}

/* Promise: gone within two seconds, with all that was forked, whatever the plugin does. All at the
 * same time. */
static void lost_worker_ends_hung_hosts_within_two_seconds(void **state)
{
    static const char *const cases[][2] = {
        {"start", "sleep"}, {"poll", "spin"},      {"stop", "lock"}, {"poll", "read"},
        {"poll", "fork"},   {"interrupt", "spin"}, {"tasks", "spin"}};
    struct host_peer *peers[sizeof(cases) / sizeof(cases[0])];
    const size_t count = sizeof(cases) / sizeof(cases[0]);
    int64_t from;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const char *config[] = {"where", cases[i][0], "how", cases[i][1], NULL};

        host_case_start("HostileSource", config);
        host_peer_task(host_case_peer, 0, config);
        host_case_send(MSG_TASK_CONFIGS, "max", json_integer(1));
        /* (a host that hangs in a call of its end is not in it yet) */
        if (strcmp(cases[i][0], "stop") == 0 || strcmp(cases[i][0], "interrupt") == 0)
            json_decref(host_case_await(MSG_TASK_STATUS, "RUNNING", 10000));
        else
            host_peer_await_call(host_case_peer, cases[i][0]);
        peers[i] = host_case_peer;
    }
    host_case_peer = NULL;
    from = clock_ms();
    for (size_t i = 0; i < count; i++)
        host_peer_close(peers[i]);
    for (size_t i = 0; i < count; i++) {
        if (host_peer_status(peers[i], (int)(from + 2200 - clock_ms())) == -1)
            fail_msg("%s in %s outlives its worker", cases[i][1], cases[i][0]);
        assert_false(host_peer_group_alive(peers[i]));
        host_peer_end(peers[i]);
    }
}

/* And what its plugin has forked, though this host can do nothing for that any more. */
static void frozen_orphan_is_killed_by_the_kernel(void **state)
{
    static const char *const config[] = {"where", "poll", "how", "fork", NULL};
    int status;

    (void)state;
    host_case_start("HostileSource", host_case_nothing);
    host_case_task(0, config);
    host_peer_await_call(host_case_peer, "poll");
    host_peer_close(host_case_peer);
    /* said once the timer is armed */
    for (int tries = 0; strstr(host_peer_printed(host_case_peer), "the worker is gone") == NULL;
         tries++)
        if (tries == 200 || host_peer_status(host_case_peer, 5) != -1)
            fail_msg("it does not say that its worker is gone");
    kill(host_case_peer->pid, SIGSTOP);
    status = host_peer_status(host_case_peer, 2500);
    assert_true(status != -1);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    for (int turn = 0; turn < 500 && host_peer_group_alive(host_case_peer); turn++)
        usleep(10000);
    assert_false(host_peer_group_alive(host_case_peer));
}

#define host_test(f) cmocka_unit_test_teardown(f, host_case_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(command_typed_by_hand_is_refused),
        host_test(hello_names_version_build_and_pid),
        host_test(worker_of_another_version_is_refused),
        host_test(lock_is_held_while_the_host_lives),
        host_test(a_run_folder_that_was_removed_is_made_again),
        host_test(a_run_folder_that_cannot_be_made_is_named),
        host_test(connector_starts_and_gives_task_configurations),
        host_test(connector_follows_its_target),
        host_test(tasks_run_without_the_connector_until_it_is_told_its_target),
        host_test(more_tasks_than_allowed_fail_the_connector),
        host_test(task_configurations_too_large_for_the_link_fail_the_connector),
        host_test(library_or_class_that_is_missing_fails_connector_and_tasks),
        host_test(bad_configuration_fails_with_every_problem),
        host_test(failed_connector_is_left_by_stopped_only),
        host_test(control_answers_while_the_connector_hangs),
        host_test(task_runs_and_stops_when_asked),
        host_test(task_waits_for_the_start_check),
        host_test(task_started_anew_waits_for_its_predecessor),
        host_test(task_pauses_and_resumes),
        host_test(plugin_errors_are_failures_with_a_trace),
        host_test(a_failure_of_another_kind_does_not_say_that_the_process_is_spent),
        host_test(a_locale_set_by_the_plugin_changes_no_number),
        host_test(thread_ended_by_the_plugin_is_a_failure),
        host_test(retriable_poll_and_empty_polls_go_on),
        host_test(a_poll_that_gives_minus_one_is_told_how_to_fail),
        host_test(more_tasks_than_black_box_slots_run),
        host_test(frames_that_make_no_sense_end_the_host_with_a_reason),
        host_test(answers_to_nothing_are_ignored),
        host_test(drain_stops_everything_and_exits_with_0),
        host_test(sigterm_drains),
        host_test(new_work_while_ending_is_not_begun),
        host_test(leftovers_do_not_hold_up_the_end),
        host_test(host_in_another_group_ends_without_signalling_it),
        host_test(orphan_in_another_group_does_not_kill_it),
        host_test(interrupt_that_hangs_does_not_hang_control),
        host_test(polite_wait_ends_with_eintr),
        host_test(lost_worker_ends_the_host_at_once_when_all_is_well),
        host_test(lost_worker_ends_hung_hosts_within_two_seconds),
        host_test(frozen_orphan_is_killed_by_the_kernel),
    };

    host_peer_main(argc, argv);
    return side_by_side_run(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL,
                            NULL, NULL);
}
