/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the other integration tests, tried by themselves: the broker, the independent
 * client, processes, HTTP. */
#include "support/process.h"
#include "support/http.h"
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static void reads_what_it_produced_with_keys_and_nulls(void **state)
{
    const char *topic = scratch_name("harness"), *servers = kafka_run_servers();
    struct topic_records got;

    (void)state;
    topic_create(servers, topic, 2);
    topic_produce(servers, topic, 0, "k", "one");
    topic_produce(servers, topic, 0, NULL, NULL);
    topic_produce(servers, topic, 1, NULL, "three");
    got = topic_read(servers, topic, 3, 10000);
    assert_int_equal(got.count, 3);
    assert_string_equal(got.records[0].key, "k");
    assert_string_equal(got.records[0].value, "one");
    assert_null(got.records[1].value);
    assert_int_equal(got.records[1].offset, 1);
    assert_string_equal(got.records[2].value, "three");
    assert_int_equal(topic_count(servers, topic), 3);
    assert_int_equal(topic_committed(servers, scratch_name("group"), topic, 0), -1);
}

static void finds_orphans_by_their_mark(void **state)
{
    const char *argv[] = {"bash", "-c", "tail -f /dev/null & tail -f /dev/null & wait", NULL};
    const char *mark = scratch_name("mark");
    struct process *child = process_start(argv, scratch_path("out"), mark);
    pid_t pids[4];

    (void)state;
    wait_until(5000, process_marked(mark, pids, 4) == 3);
    process_signal(child, SIGKILL);
    assert_int_equal(process_wait(child, 1000), 128 + SIGKILL);
    assert_int_equal(process_marked(mark, pids, 4), 2);
    for (int i = 0; i < 2; i++)
        kill(pids[i], SIGKILL);
    wait_until(1000, process_marked(mark, NULL, 0) == 0);
}

static void gives_output_and_exit_code_of_a_command(void **state)
{
    char *output;

    (void)state;
    assert_int_equal(process_shell("echo a; ls Makefile; exit 7", 5000, &output), 7);
    assert_string_equal(output, "a\nMakefile\n");
}

static void says_when_nobody_answers(void **state)
{
    (void)state;
    assert_int_equal(http_get("http://127.0.0.1:1/").status, 0);
}

static void kafka_sh(const char *environment, const char *says)
{
    char *output;

    assert_int_equal(
        process_shell(scratch_text("%s tests/kafka/kafka.sh start", environment), 20000, &output),
        1);
    assert_string_equal(output, scratch_text("kafka.sh: %s\n", says));
}

static void a_broker_whose_port_is_taken_is_told_once_and_leaves_nothing(void **state)
{
    const char *port = strrchr(kafka_run_servers(), ':') + 1, *folder = scratch_path("kafka");

    (void)state;
    kafka_sh(
        scratch_text("KAFKA_RUN='%s' KAFKA_PORT=%s", folder, port),
        scratch_text("port %s is in use by another process: end it, or set KAFKA_PORT to another",
                     port));
    kafka_sh(scratch_text("KAFKA_RUN='%s' KAFKA_PORT=many", folder),
             "KAFKA_PORT is a number from 1 to 65535, not 'many'");
    assert_int_not_equal(access(folder, F_OK), 0);
}

/* A process of the test's stands for the broker. */
static void a_broker_that_runs_already_is_told_with_its_address(void **state)
{
    const char *folder = scratch_path("kafka");
    char *output;

    (void)state;
    assert_int_equal(
        process_shell(
            scratch_text("mkdir '%s' && cd '%s' && touch .millrace-kafka && echo "
                         "127.0.0.1:9 >bootstrap.servers && echo \"%d $(sed -n 's/^[0-9]* (.*) "
                         "//p' /proc/%d/stat | cut -d' ' -f20)\" >broker-1.pid",
                         folder, folder, (int)getpid(), (int)getpid()),
            5000, &output),
        0);
    kafka_sh(scratch_text("KAFKA_RUN='%s'", folder),
             scratch_text("a Kafka runs in %s already, at 127.0.0.1:9: use it, end it by "
                          "'tests/kafka/kafka.sh stop', or set KAFKA_RUN to another folder",
                          folder));
}

static void three_brokers_are_one_cluster(void **state)
{
    const char *servers = kafka_run_servers_of(kafka_run_start_three("", false));
    const char *topic = scratch_name("three");
    char *list = scratch_keep(strdup(servers)), *rest = NULL;
    int brokers = 0;

    (void)state;
    topic_create(servers, topic, 3);
    topic_produce(servers, topic, 2, NULL, "for all");
    for (char *one = strtok_r(list, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        assert_int_equal(topic_read(one, topic, 1, 10000).count, 1);
        brokers++;
    }
    assert_int_equal(brokers, 3);
}

/* As on a machine where pkg-config knows no library: nothing is compiled, the package is named. */
static void a_build_without_a_library_names_its_package(void **state)
{
    char *output;

    (void)state;
    assert_int_not_equal(process_shell("PKG_CONFIG_LIBDIR=/nowhere make all", 20000, &output), 0);
    assert_non_null(strstr(output, "librdkafka-dev is missing: make deps"));
    assert_null(strstr(output, "  CC "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(reads_what_it_produced_with_keys_and_nulls),
        scratch_test(finds_orphans_by_their_mark),
        scratch_test(gives_output_and_exit_code_of_a_command),
        scratch_test(says_when_nobody_answers),
        scratch_test(a_broker_whose_port_is_taken_is_told_once_and_leaves_nothing),
        scratch_test(a_broker_that_runs_already_is_told_with_its_address),
        scratch_test(three_brokers_are_one_cluster),
        scratch_test(a_build_without_a_library_names_its_package),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
