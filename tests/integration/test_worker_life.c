/* SPDX-License-Identifier: Apache-2.0 */
/* The worker as a process: how it starts, what it says when it can't, how it ends, and what is left
 * then. */
#include "support/process.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLOW_MS 15000

static const char *source_config(const char *file, const char *topic)
{
    return scratch_text(
        "\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", \"topic\": \"%s\"", file,
        topic);
}

/* Run `millrace <args>` to its end; args are the shell's. */
static int millrace(const char *args, char **output)
{
    return process_shell(scratch_text("'%s/millrace' %s", TEST_BUILD, args), 15000, output);
}

static void assert_says(const char *output, const char *text)
{
    if (strstr(output, text) == NULL)
        fail_msg("expected \"%s\" in: %s", text, output);
}

/* The one line that ends a start: no stack of follow-up errors. */
static void assert_one_error(const char *output)
{
    const char *first = strstr(output, " ERROR ");

    if (first != NULL && strstr(first + 1, " ERROR ") != NULL)
        fail_msg("more than one error line: %s", output);
}

static const char *minimal_config(int port)
{
    return scratch_text(
        "bootstrap.servers=%s\nlisteners=http://127.0.0.1:%d\nkey.converter=StringConverter\n"
        "value.converter=StringConverter\noffset.storage.file.filename=%s\nmillrace.run.dir=%s\n",
        kafka_run_servers(), port, scratch_path("offsets"), scratch_path("run"));
}

static void too_few_descriptors_for_the_connectors_are_told(void **state)
{
    const char *files[4] = {NULL}, *exe = scratch_path("few.sh");
    struct worker_run *worker;

    (void)state;
    scratch_write_text(
        exe, scratch_text("#!/bin/sh\nulimit -n 150\nexec '%s/millrace' \"$@\"\n", TEST_BUILD));
    assert_int_equal(chmod(exe, 0755), 0);
    for (int i = 0; i < 3; i++) {
        const char *name = scratch_path(scratch_text("few-%d.properties", i));

        scratch_write_text(name, scratch_text("name=few-%d\nconnector.class=FileStreamSource\n"
                                              "file=%s\ntopic=few\n",
                                              i, scratch_path("few.txt")));
        files[i] = name;
    }
    worker = worker_run_start(&(struct worker_run_options){.exe = exe, .files = files});
    wait_until(FLOW_MS, scratch_contains(worker->log,
                                         "limited to 150 (RLIMIT_NOFILE), which is enough for 1 "
                                         "connectors on this worker, and there are 3"));
}

static void help_and_version_are_told(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(millrace("--help", &output), 0);
    assert_says(output, "standalone");
    assert_int_equal(millrace("help standalone", &output), 0);
    assert_says(output, "WORKER.properties");
    assert_says(output, "\nA sample: " TEST_SOURCE "/config/standalone.properties\n");
    assert_int_equal(millrace("--version", &output), 0);
    assert_says(output, MILLRACE_VERSION);
}

static void wrong_usage_is_exit_1(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(millrace("", &output), 1);
    assert_int_equal(millrace("standalone", &output), 1);
    assert_says(output, "millrace standalone: the worker's properties file is missing\n"
                        "usage: millrace standalone WORKER.properties ");
    assert_says(output, "\nA sample: " TEST_SOURCE "/config/standalone.properties\n");
    assert_int_equal(millrace("fly", &output), 1);
    assert_says(output, "fly");
}

static void a_bad_configuration_is_exit_2_and_names_the_place(void **state)
{
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"listeners=ftp://:1", "listeners"},
        {"listeners=nonsense", "listeners"},
        {"task.shutdown.graceful.timeout.ms=soon",
         "Invalid value soon for configuration task.shutdown.graceful.timeout.ms"},
        {"offset.flush.interval.ms=99999999999999999999", "offset.flush.interval.ms"},
        {"millrace.restart.max=-1", "millrace.restart.max"},
        {"millrace.log.level=LOUD", "millrace.log.level"},
        {"key.converter=NoSuchConverter", "NoSuchConverter"},
        {"bad=\\u12", "line 7"},
    };
    const char *config = scratch_path("bad.properties");
    char *output;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scratch_write_text(
            config, scratch_text("%s%s\n", minimal_config(worker_run_free_port()), cases[i].line));
        assert_int_equal(millrace(scratch_text("standalone '%s'", config), &output), 2);
        assert_says(output, "bad.properties");
        if (strncmp(cases[i].text, "line", 4) != 0)
            assert_says(output, cases[i].text);
        assert_says(output, ":7");
        assert_one_error(output);
    }
}

static void a_missing_file_or_key_is_exit_2(void **state)
{
    const char *config = scratch_path("bad.properties");
    char *output;

    (void)state;
    assert_int_equal(millrace("standalone /no/such.properties", &output), 2);
    assert_says(output, "/no/such.properties");
    scratch_write_text(
        config, "listeners=http://"
                "127.0.0.1:0\nkey.converter=StringConverter\nvalue.converter=StringConverter\n");
    assert_int_equal(millrace(scratch_text("standalone '%s'", config), &output), 2);
    assert_says(output, "Missing required configuration \"offset.storage.file.filename\"");
}

static void a_bad_connector_file_is_exit_3(void **state)
{
    const char *config = scratch_path("worker.properties"), *conn = scratch_path("conn.properties");
    char *output;

    (void)state;
    scratch_write_text(config, minimal_config(worker_run_free_port()));
    scratch_write_text(conn, "connector.class=FileStreamSource\ntopic=x\n");
    assert_int_equal(millrace(scratch_text("standalone '%s' '%s'", config, conn), &output), 3);
    assert_says(output, "conn.properties");
    assert_says(output, "is missing the mandatory 'name' configuration");
    scratch_write_text(conn, "name=a\nconnector.class=NoSuchConnector\n");
    assert_int_equal(millrace(scratch_text("standalone '%s' '%s'", config, conn), &output), 3);
    assert_says(output, "NoSuchConnector");
    assert_int_equal(millrace(scratch_text("standalone '%s' /no/conn.json", config), &output), 3);
    assert_says(output, "/no/conn.json");
}

static void an_unknown_key_is_warned_about_with_the_nearest_name(void **state)
{
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.props = "offset.flush.intervall.ms=1\n"});

    (void)state;
    assert_true(scratch_contains(w->log, "offset.flush.intervall.ms"));
    assert_true(scratch_contains(w->log, "offset.flush.interval.ms"));
}

static void an_api_that_is_open_to_all_is_warned_about(void **state)
{
    int port = worker_run_free_port();
    struct worker_run *local = worker_run_start(&(struct worker_run_options){.name = "local"});
    struct worker_run *open = worker_run_start(&(struct worker_run_options){
        .name = "open",
        .props = scratch_text("listeners=http://0.0.0.0:%d\nmillrace.run.dir=%s\n", port,
                              scratch_path("run2")),
        .dont_wait = true});

    (void)state;
    wait_until(FLOW_MS, scratch_contains(open->log, scratch_text("whoever reaches port %d may use "
                                                                 "the API",
                                                                 port)));
    assert_false(scratch_contains(local->log, "whoever reaches port"));
}

static void a_port_in_use_ends_the_start_with_one_line(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});
    const char *config = scratch_path("second.properties");
    char *output;
    int rc;

    (void)state;
    scratch_write_text(config, scratch_text("%smillrace.run.dir=%s\n", minimal_config(w->port),
                                            scratch_path("run2")));
    rc = millrace(scratch_text("standalone '%s'", config), &output);
    assert_true(rc == 2 || rc == 3);
    assert_says(output, scratch_text("port %d is in use: another process, or another "
                                     "listener of this worker, is on "
                                     "http://127.0.0.1:%d. Stop it, or set `listeners` to a free "
                                     "port, such as listeners=http://127.0.0.1:%d",
                                     w->port, w->port, w->port + 1));
    assert_one_error(output);
    worker_run_expect(w, 200, "GET", "/", NULL);
}

/* Whatever its run folder: the default one depends on the environment. */
static void an_offset_file_in_use_is_exit_2_and_names_its_worker(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});
    const char *config = scratch_path("second.properties");
    char *output;

    (void)state;
    scratch_write_text(config,
                       scratch_text("%soffset.storage.file.filename=%s\nmillrace.run.dir=%s\n",
                                    minimal_config(worker_run_free_port()), w->offsets,
                                    scratch_path("run2")));
    assert_int_equal(millrace(scratch_text("standalone '%s'", config), &output), 2);
    assert_says(output, w->offsets);
    assert_says(output, "another worker (pid ");
    assert_one_error(output);
    worker_run_expect(w, 200, "GET", "/", NULL);
}

static void the_limit_of_descriptors_is_raised_as_far_as_it_may_be(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(process_shell(scratch_text("ulimit -Sn 200; ulimit -Hn 300; '%s/millrace' "
                                                "standalone nowhere.properties",
                                                TEST_BUILD),
                                   15000, &output),
                     2);
    assert_says(output, "open descriptors: at most 300, raised from 200");
}

static void too_few_descriptors_for_any_work_are_told_at_once(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(process_shell(scratch_text("ulimit -n 60; '%s/millrace' standalone "
                                                "nowhere.properties",
                                                TEST_BUILD),
                                   15000, &output),
                     2);
    assert_says(output, "open descriptors are limited to 60 (RLIMIT_NOFILE), and a worker needs "
                        "128 at least, and 12 more for each connector. Raise the hard limit "
                        "(ulimit -Hn, LimitNOFILE= of systemd, --ulimit nofile= of a container)");
    assert_one_error(output);
}

static void an_unwritable_folder_ends_the_start_with_one_line(void **state)
{
    const char *config = scratch_path("worker.properties");
    char *output;

    (void)state;
    scratch_write_text(scratch_path("file"), "");
    scratch_write_text(config,
                       scratch_text("%smillrace.run.dir=%s/run\n",
                                    minimal_config(worker_run_free_port()), scratch_path("file")));
    assert_int_not_equal(millrace(scratch_text("standalone '%s'", config), &output), 0);
    assert_says(output, scratch_path("file"));
    scratch_write_text(config,
                       scratch_text("%soffset.storage.file.filename=/no/such/folder/offsets\n",
                                    minimal_config(worker_run_free_port())));
    assert_int_not_equal(millrace(scratch_text("standalone '%s'", config), &output), 0);
    assert_says(output, "/no/such/folder");
}

static void a_damaged_offset_file_is_refused_by_name_and_byte(void **state)
{
    const char *config = scratch_path("worker.properties");
    char *output;

    (void)state;
    scratch_write_text(config, minimal_config(worker_run_free_port()));
    scratch_write(scratch_path("offsets"), "\xAC\xED\x00\x05sr", 6);
    assert_int_not_equal(millrace(scratch_text("standalone '%s'", config), &output), 0);
    assert_says(output, scratch_path("offsets"));
    assert_says(output, "Java");
    scratch_write_text(scratch_path("offsets"), "not offsets at all");
    assert_int_not_equal(millrace(scratch_text("standalone '%s'", config), &output), 0);
    assert_says(output, scratch_path("offsets"));
    assert_says(output, "byte");
}

/* A library that hangs in its constructor costs the look at plugins ten seconds. */
static struct worker_run *start_with_a_library_that_hangs(void)
{
    struct worker_run *w;

    scratch_write_text(scratch_path("how"), "sleep");
    assert_int_equal(setenv("HOSTILE_LOAD", scratch_path("how"), 1), 0);
    w = worker_run_start(&(struct worker_run_options){.dont_wait = true});
    assert_int_equal(unsetenv("HOSTILE_LOAD"), 0);
    wait_until(5000,
               worker_run_processes(w) == 2 && worker_run_call(w, "GET", "/", NULL).status != 0);
    return w;
}

static void a_worker_that_looks_at_plugins_answers_503(void **state)
{
    struct worker_run *w = start_with_a_library_that_hangs();
    struct http_reply reply = worker_run_expect(w, 503, "GET", "/connectors", NULL);

    (void)state;
    assert_string_equal(http_at(reply.json, "error_code"), "503");
    assert_string_equal(http_at(reply.json, "message"), "Worker is still starting up.");
    reply = worker_run_expect(w, 503, "PUT", "/connectors/c/config", "{}");
    assert_string_equal(http_at(reply.json, "error_code"), "503");
    reply = worker_run_expect(w, 503, "GET", "/health", NULL);
    assert_string_equal(http_at(reply.json, "status"), "starting");
    wait_until(30000, worker_run_call(w, "GET", "/health", NULL).status == 200);
    assert_true(scratch_contains(w->log, "it took longer than 10 s to open"));
    assert_int_equal(worker_run_stop(w), 0);
}

static void a_worker_that_looks_at_plugins_is_ended_at_once(void **state)
{
    struct worker_run *w = start_with_a_library_that_hangs();
    int64_t from = scratch_now_ms();

    (void)state;
    assert_int_equal(worker_run_stop(w), 0);
    assert_true(scratch_since(from) < 2000);
    assert_int_equal(worker_run_processes(w), 0);
    assert_false(scratch_contains(w->log, " ERROR "));
}

/* Set for the worker, it holds for its hosts. */
static void the_log_level_holds_for_the_worker_and_its_hosts(void **state)
{
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.props = "millrace.log.level= debug\n"});

    (void)state;
    scratch_write_text(scratch_path("in.txt"), "a\n");
    worker_run_put(w, "source", source_config(scratch_path("in.txt"), scratch_name("level")));
    worker_run_await(w, "source", "RUNNING", 1, FLOW_MS);
    wait_until(5000, scratch_contains(w->log, " DEBUG worker."));
    assert_true(scratch_contains(w->log, " INFO  worker plugins found: "));
    assert_true(scratch_contains(w->log, " FileStreamSource 4.3.1, "));
    assert_true(scratch_contains(
        w->log, "FileStreamSource 4.3.1, org.apache.kafka.connect.file.FileStreamSourceConnector, "
                "is in " TEST_BUILD "/plugins/file.so"));
    wait_until(5000, scratch_contains(w->log, "for reading, from byte")); /* by the plugin, INFO */
    assert_int_equal(worker_run_stop(w), 0);
    scratch_write_text(w->log, "");
    scratch_append_text(w->config, "millrace.log.level=WARN\n");
    worker_run_again(w);
    worker_run_put(w, "source", source_config(scratch_path("in.txt"), scratch_name("level")));
    worker_run_await(w, "source", "RUNNING", 1, FLOW_MS);
    assert_int_equal(worker_run_stop(w), 0);
    assert_false(scratch_contains(w->log, " DEBUG "));
    assert_false(scratch_contains(w->log, "for reading, from byte"));
    assert_false(scratch_contains(w->log, " INFO  worker.herder"));
}

static bool health_says(const struct worker_run *w, int status, const char *text)
{
    struct http_reply reply = worker_run_call(w, "GET", "/health", NULL);

    return reply.status == status && strstr(http_at(reply.json, "message"), text) != NULL;
}

static void waits_for_kafka(const struct worker_run_options *options, const char *stage)
{
    struct worker_run *w = worker_run_start(options);
    const char *what = scratch_text("Kafka at %s has not answered since 20", w->servers);

    wait_until(10000, health_says(w, 503, what));
    assert_true(health_says(w, 503, scratch_text("currently %s, which began at 20", stage)));
    wait_until(10000, scratch_contains(w->log, w->servers));
    assert_true(process_running(w->process));
    assert_int_equal(worker_run_stop(w), 0);
}

static void an_unreachable_broker_is_waited_for(void **state)
{
    struct worker_run_options options = {
        .servers = scratch_text("127.0.0.1:%d", worker_run_free_port()), .dont_wait = true};

    (void)state;
    waits_for_kafka(&options, "waiting for the Kafka cluster to answer");
    options.name = options.group = "cluster";
    waits_for_kafka(&options, "reading the internal topics");
}

static void a_flood_of_harmless_signals_changes_nothing(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});

    (void)state;
    for (int i = 0; i < 50; i++) {
        process_signal(w->process, SIGHUP);
        process_signal(w->process, SIGPIPE);
        worker_run_expect(w, 200, "GET", "/connectors", NULL);
    }
    assert_true(process_running(w->process));
}

static void sigterm_delivers_and_notes_everything_and_exits_0(void **state)
{
    const char *topic = scratch_name("term"), *file = scratch_path("in.txt");
    struct worker_run *w = worker_run_start(
        &(struct worker_run_options){.props = "offset.flush.interval.ms=3600000\n"});
    const char *end;

    (void)state;
    scratch_write_text(file, "one\ntwo\nthree\n");
    worker_run_put(w, "source", source_config(file, topic));
    topic_read(w->servers, topic, 3, FLOW_MS);
    assert_int_equal(worker_run_stop(w), 0);
    assert_int_equal(worker_run_processes(w), 0);
    assert_int_not_equal(access(scratch_path("run"), F_OK), 0);
    assert_int_not_equal(access(scratch_text("%s.lock", w->offsets), F_OK), 0);
    end = scratch_read(w->offsets, NULL);
    assert_non_null(end);
    assert_says(end, "14");
}

static void sigint_ends_it_like_sigterm(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});

    (void)state;
    process_signal(w->process, SIGINT);
    assert_int_equal(process_wait(w->process, 10000), 0);
}

/* As timeout(1) does it: to the process and to its group. */
static void a_signal_that_comes_twice_at_once_is_one(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});

    (void)state;
    scratch_write_text(scratch_path("in.txt"), "a\n");
    worker_run_put(w, "source", source_config(scratch_path("in.txt"), scratch_name("twice")));
    process_signal(w->process, SIGTERM);
    process_signal(w->process, SIGTERM);
    assert_int_equal(process_wait(w->process, 10000), 0);
    assert_int_equal(worker_run_processes(w), 0);
}

/* Of all processes of the worker, in kB. */
static long memory(const struct worker_run *w)
{
    pid_t pids[64];
    size_t count = process_marked(w->mark, pids, 64);
    long sum = 0;

    for (size_t i = 0; i < count; i++) {
        const char *path = scratch_text("/proc/%d/smaps_rollup", (int)pids[i]);
        const char *pss = strstr(scratch_read(path, NULL), "\nPss:");

        assert_non_null(pss);
        sum += strtol(pss + 5, NULL, 10);
    }
    return sum;
}

static void put_idle(const struct worker_run *w, int number)
{
    const char *name = scratch_text("idle-%d", number);

    worker_run_put(w, name, source_config(scratch_path("in.txt"), scratch_name("idle")));
    worker_run_await(w, name, "RUNNING", 1, FLOW_MS);
}

/* The promise is 15 MB for a worker, and 1.5 MB for each connector that has nothing to do. */
static void an_idle_connector_costs_less_than_a_megabyte_and_a_half(void **state)
{
    enum { MORE = 6 };
    struct worker_run *w;
    long one;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    w = worker_run_start(&(struct worker_run_options){0});
    scratch_write_text(scratch_path("in.txt"), "");
    put_idle(w, 0);
    one = memory(w);
    assert_in_range(one, 1000, 15000);
    for (int i = 1; i <= MORE; i++)
        put_idle(w, i);
    assert_in_range((memory(w) - one) / MORE, 100, 1500);
}

static void hosts_are_gone_two_seconds_after_the_worker_was_killed(void **state)
{
    const char *topic = scratch_name("orphans");
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});

    (void)state;
    for (int i = 0; i < 4; i++) {
        scratch_write_text(scratch_path(scratch_text("in-%d.txt", i)), "a\n");
        worker_run_put(w, scratch_text("source-%d", i),
                       source_config(scratch_path(scratch_text("in-%d.txt", i)), topic));
    }
    topic_read(w->servers, topic, 4, FLOW_MS);
    assert_int_equal(worker_run_processes(w), 6);
    worker_run_kill(w);
    wait_until(2000, worker_run_processes(w) == 0);
    worker_run_again(w);
    worker_run_expect(w, 200, "GET", "/", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(help_and_version_are_told),
        scratch_test(too_few_descriptors_for_the_connectors_are_told),
        scratch_test(wrong_usage_is_exit_1),
        scratch_test(a_bad_configuration_is_exit_2_and_names_the_place),
        scratch_test(a_missing_file_or_key_is_exit_2),
        scratch_test(a_bad_connector_file_is_exit_3),
        scratch_test(an_unknown_key_is_warned_about_with_the_nearest_name),
        scratch_test(an_api_that_is_open_to_all_is_warned_about),
        scratch_test(a_port_in_use_ends_the_start_with_one_line),
        scratch_test(an_offset_file_in_use_is_exit_2_and_names_its_worker),
        scratch_test(the_limit_of_descriptors_is_raised_as_far_as_it_may_be),
        scratch_test(too_few_descriptors_for_any_work_are_told_at_once),
        scratch_test(an_unwritable_folder_ends_the_start_with_one_line),
        scratch_test(a_damaged_offset_file_is_refused_by_name_and_byte),
        scratch_test(a_worker_that_looks_at_plugins_answers_503),
        scratch_test(a_worker_that_looks_at_plugins_is_ended_at_once),
        scratch_test(the_log_level_holds_for_the_worker_and_its_hosts),
        scratch_test(an_unreachable_broker_is_waited_for),
        scratch_test(a_flood_of_harmless_signals_changes_nothing),
        scratch_test(sigterm_delivers_and_notes_everything_and_exits_0),
        scratch_test(sigint_ends_it_like_sigterm),
        scratch_test(a_signal_that_comes_twice_at_once_is_one),
        scratch_test(an_idle_connector_costs_less_than_a_megabyte_and_a_half),
        scratch_test(hosts_are_gone_two_seconds_after_the_worker_was_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
