/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the other integration tests, tried by themselves: the broker, the independent client, processes, HTTP. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(reads_what_it_produced_with_keys_and_nulls),
        scratch_test(finds_orphans_by_their_mark),
        scratch_test(gives_output_and_exit_code_of_a_command),
        scratch_test(says_when_nobody_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
