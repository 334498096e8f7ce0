/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that store their offsets with their data, on a real Kafka: killed in the middle of a
 * commit, overtaken while they were frozen, changed by REST, ahead of and behind what the topic
 * has. What the sink of tests/plugins/vault.c has taken is read from its file, by this test's own
 * eyes. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/rest_answer.h"
#include "support/scratch.h"
#include "support/topic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MS 30000
#define FLOW_MS 60000
#define MOST 2000

static struct worker_run *start_worker(const char *name)
{
    return worker_run_start(&(struct worker_run_options){
        .name = name,
        .props = scratch_text("millrace.run.dir=%s\noffset.storage.file.filename=%s\n",
                              scratch_path(scratch_text("%s.run", name)),
                              scratch_path(scratch_text("%s.kept", name)))});
}

/* So many records in each of the partitions 0 and 1. */
static const char *filled_topic(const struct worker_run *w, const char *stem, int count)
{
    const char *topic = scratch_name(stem);

    topic_create(w->servers, topic, 2);
    topic_produce_numbers(w->servers, topic, 2, 0, 2 * count);
    return topic;
}

static void put_vault(const struct worker_run *w, const char *conn, const char *topic,
                      const char *more)
{
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"Vault\", \"tasks.max\": \"1\", "
                                "\"topics\": \"%s\", "
                                "\"consumer.override.max.poll.records\": \"40\", "
                                "\"consumer.override.session.timeout.ms\": \"6000\", %s",
                                topic, more));
}

static const char *vault_file(const char *more)
{
    return scratch_text("\"file\": \"%s\"%s", scratch_path("vault.txt"), more);
}

/* --- what the vault has ----------------------------------------------------------------------- */

struct seen {
    int times[2][MOST];
    size_t total;
};

static struct seen look_into(const char *file, const char *topic)
{
    struct seen seen = {0};
    char *text = scratch_read(file, NULL), *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *words = NULL, *bar = strchr(line, '|');

        for (char *word = strtok_r(bar + 1, " ", &words); word != NULL;
             word = strtok_r(NULL, " ", &words)) {
            char name[250];
            int partition, offset;

            assert_int_equal(sscanf(word, "%249[^:]:%d:%d", name, &partition, &offset), 3);
            if (strcmp(name, topic) != 0)
                continue;
            assert_true(partition < 2 && offset < MOST);
            seen.times[partition][offset]++;
            seen.total++;
        }
    }
    return seen;
}

static bool has(const char *file, const char *topic, size_t total)
{
    const char *text = scratch_read(file, NULL);

    return text != NULL && text[0] != '\0' && text[strlen(text) - 1] == '\n' &&
           look_into(file, topic).total >= total;
}

static void assert_times(const char *file, const char *topic, int partition, int from, int to,
                         int times)
{
    struct seen seen = look_into(file, topic);

    for (int i = from; i < to; i++)
        if (seen.times[partition][i] != times)
            fail_msg("%s: %s-%d@%d is there %d times, not %d", file, topic, partition, i,
                     seen.times[partition][i], times);
}

static void assert_each_once(const char *file, const char *topic, int count)
{
    for (int p = 0; p < 2; p++)
        assert_times(file, topic, p, 0, count, 1);
    assert_int_equal(look_into(file, topic).total, 2 * count);
}

/* --- crashes ---------------------------------------------------------------------------------- */

static void a_host_that_is_killed_in_a_commit_loses_and_doubles_nothing(void **state)
{
    static const char *const hows[] = {"before", "torn", "after"};
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 200);

    (void)state;
    for (size_t i = 0; i < 3; i++)
        put_vault(w, scratch_name(hows[i]), topic,
                  scratch_text("\"file\": \"%s\", \"crash\": \"%s\", \"crashed\": \"%s.done\"",
                               scratch_path(hows[i]), hows[i], scratch_path(hows[i])));
    for (size_t i = 0; i < 3; i++) {
        wait_until(FLOW_MS, has(scratch_path(hows[i]), topic, 400));
        assert_non_null(scratch_read(scratch_text("%s.done", scratch_path(hows[i])), NULL));
        assert_each_once(scratch_path(hows[i]), topic, 200);
    }
}

#define FILES 4
#define ROUNDS 2
#define LINES 20000

static void put_file(const struct worker_run *w, const char *conn, const char *topic)
{
    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"FileStreamSink\", \"tasks.max\": \"2\", "
                                "\"topics\": \"%s\", \"file\": \"%s\", "
                                "\"millrace.file.exactly.once\": \"true\", "
                                "\"consumer.override.max.poll.records\": \"20\", "
                                "\"consumer.override.session.timeout.ms\": \"6000\"",
                                topic, scratch_path(conn)));
}

static size_t size_of(const char *file)
{
    size_t len = 0;

    return scratch_read(file, &len) == NULL ? 0 : len;
}

/* In the middle of whatever it does: none of these moments is chosen, and its file has grown since
 * the last. One that is through is left alone. */
static bool kill_host(const struct worker_run *w, const char *conn, size_t *size, size_t whole,
                      unsigned *chance)
{
    pid_t host;

    wait_until(FLOW_MS, size_of(scratch_path(conn)) > *size);
    scratch_pause((int)(rand_r(chance) % 100));
    *size = size_of(scratch_path(conn));
    if (*size >= whole)
        return false;
    wait_until(FLOW_MS, (host = worker_run_host(w, conn)) != 0);
    return kill(host, SIGKILL) == 0;
}

static void assert_each_line_once(const char *file)
{
    char *text = scratch_read(file, NULL), *save = NULL;
    bool *there = scratch_keep(calloc(LINES, sizeof(bool)));
    int count = 0;

    assert_true(text[strlen(text) - 1] == '\n');
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        int number = atoi(line + 1); /* behind a quotation mark */

        if (number < 0 || number >= LINES || there[number])
            fail_msg("%s: %s is there twice, or never was", file, line);
        there[number] = true;
        count++;
    }
    assert_int_equal(count, LINES);
}

static void a_file_has_each_line_once_whenever_its_host_is_killed(void **state)
{
    static const char *const conns[FILES] = {"f0", "f1", "f2", "f3"};
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", LINES / 2), *names[FILES];
    unsigned chance = (unsigned)scratch_now_ms();
    size_t sizes[FILES] = {0}, whole = 0, kills = 0;

    (void)state;
    for (int i = 0; i < LINES; i++)
        whole += (size_t)snprintf(NULL, 0, "\"%d\"\n", i);
    print_message("             seed %u\n", chance);
    for (size_t i = 0; i < FILES; i++)
        put_file(w, names[i] = scratch_name(conns[i]), topic);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < FILES; i++)
            kills += sizes[i] < whole && kill_host(w, names[i], &sizes[i], whole, &chance);
    assert_true(kills > 0);
    for (size_t i = 0; i < FILES; i++) {
        wait_until(FLOW_MS, size_of(scratch_path(names[i])) >= whole);
        assert_each_line_once(scratch_path(names[i]));
    }
}

/* --- a zombie --------------------------------------------------------------------------------- */

static void freeze(struct worker_run *w, pid_t host, int signal)
{
    process_signal(w->process, signal);
    assert_int_equal(kill(host, signal), 0);
}

/* The one has records in hand when it is frozen, with its worker; the other takes all of them
 * meanwhile. */
static void a_task_that_wakes_up_behind_another_changes_nothing(void **state)
{
    struct worker_run *one = start_worker("one"), *other = start_worker("other");
    const char *topic = filled_topic(one, "lines", 100), *conn = scratch_name("z"),
               *file = scratch_path("vault.txt"), *gate = scratch_path("hold");
    pid_t host;

    (void)state;
    scratch_write_text(gate, "");
    put_vault(one, conn, topic, vault_file(scratch_text(", \"hold\": \"%s\"", gate)));
    worker_run_await(one, conn, "RUNNING", 1, STATE_MS);
    wait_until(STATE_MS, scratch_contains(one->log, "partitions assigned: 2,"));
    wait_until(STATE_MS, (host = worker_run_host(one, conn)) != 0);
    wait_until(STATE_MS, scratch_read(scratch_text("%s.waits", gate), NULL) != NULL);
    freeze(one, host, SIGSTOP);
    put_vault(other, conn, topic, vault_file(""));
    wait_until(FLOW_MS, has(file, topic, 200));
    assert_int_equal(remove(gate), 0);
    freeze(one, host, SIGCONT);
    wait_until(FLOW_MS, scratch_contains(one->log, "another task has moved"));
    topic_produce(one->servers, topic, 0, NULL, "\"more\"");
    wait_until(FLOW_MS, has(file, topic, 201));
    worker_run_await(one, conn, "RUNNING", 1, STATE_MS);
    assert_times(file, topic, 0, 0, 101, 1);
    assert_times(file, topic, 1, 0, 100, 1);
}

/* --- changes by REST -------------------------------------------------------------------------- */

static void stop(const struct worker_run *w, const char *conn)
{
    rest_answer_expect(w, 204, "PUT", scratch_text("/connectors/%s/stop", conn), NULL);
    worker_run_await(w, conn, "STOPPED", 0, STATE_MS);
}

static void resume(const struct worker_run *w, const char *conn)
{
    worker_run_expect(w, 202, "PUT", scratch_text("/connectors/%s/resume", conn), NULL);
}

static void change(const struct worker_run *w, const char *method, const char *conn,
                   const char *body)
{
    struct http_reply reply =
        rest_answer_expect(w, 200, method, scratch_text("/connectors/%s/offsets", conn), body);

    assert_non_null(strstr(reply.body, "successfully\""));
}

static void patch(const struct worker_run *w, const char *conn, const char *topic, int partition,
                  int offset)
{
    change(w, "PATCH", conn,
           scratch_text("{\"offsets\": [{\"partition\": {\"kafka_topic\": \"%s\", "
                        "\"kafka_partition\": %d}, \"offset\": {\"kafka_offset\": %d}}]}",
                        topic, partition, offset));
}

static void it_is_the_plugin_that_a_user_changes(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 50), *conn = scratch_name("v"),
               *group = scratch_text("connect-%s", conn), *file = scratch_path("vault.txt");

    (void)state;
    put_vault(w, conn, topic, vault_file(""));
    wait_until(FLOW_MS, has(file, topic, 100));
    wait_until(FLOW_MS, topic_committed(w->servers, group, topic, 0) == 50 &&
                            topic_committed(w->servers, group, topic, 1) == 50);
    stop(w, conn);
    patch(w, conn, topic, 0, 40);
    resume(w, conn);
    wait_until(FLOW_MS, has(file, topic, 110));
    assert_times(file, topic, 0, 0, 40, 1);
    assert_times(file, topic, 0, 40, 50, 2);
    assert_times(file, topic, 1, 0, 50, 1);
    stop(w, conn);
    change(w, "DELETE", conn, NULL);
    resume(w, conn);
    wait_until(FLOW_MS, has(file, topic, 210));
    assert_times(file, topic, 1, 0, 50, 2);
}

/* --- offsets that the topic does not have ----------------------------------------------------- */

#define EARLIEST ", \"millrace.offsets.out.of.range\": \"earliest\""
#define LATEST ", \"millrace.offsets.out.of.range\": \"latest\""

static void await_refusal(const struct worker_run *w, const char *conn, const char *topic,
                          int stored, int from, int to)
{
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, conn, "tasks.0.trace"),
                           scratch_text("Vault has stored offset %d of partition %s-0, of which "
                                        "the topic has offsets from %d up to %d",
                                        stored, topic, from, to)));
}

static void what_retention_took_fails_the_task_until_the_user_decides(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 50), *conn = scratch_name("v"),
               *file = scratch_path("vault.txt");

    (void)state;
    put_vault(w, conn, topic, vault_file(""));
    wait_until(FLOW_MS, has(file, topic, 100));
    stop(w, conn);
    patch(w, conn, topic, 0, 10);
    topic_delete_before(w->servers, topic, 0, 30);
    resume(w, conn);
    await_refusal(w, conn, topic, 10, 30, 50);
    put_vault(w, conn, topic, vault_file(EARLIEST));
    wait_until(FLOW_MS, has(file, topic, 120));
    assert_times(file, topic, 0, 30, 50, 2);
    assert_false(scratch_contains(w->log, "has no effect"));
}

static void what_retention_took_is_left_out_if_the_user_says_latest(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 50), *conn = scratch_name("v"),
               *file = scratch_path("vault.txt");

    (void)state;
    put_vault(w, conn, topic, vault_file(LATEST));
    wait_until(FLOW_MS, has(file, topic, 100));
    stop(w, conn);
    patch(w, conn, topic, 0, 10);
    topic_delete_before(w->servers, topic, 0, 30);
    resume(w, conn);
    wait_until(FLOW_MS, scratch_contains(w->log, "going on at 50 by"));
    topic_produce(w->servers, topic, 0, NULL, "\"more\"");
    wait_until(FLOW_MS, has(file, topic, 101));
    assert_times(file, topic, 0, 0, 51, 1);
}

/* A topic that was made anew has other records where the stored offset points, or none. */
static void what_is_stored_ahead_of_the_topic_fails_the_task_until_the_user_decides(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 50), *conn = scratch_name("v"),
               *file = scratch_path("vault.txt");

    (void)state;
    put_vault(w, conn, topic, vault_file(""));
    wait_until(FLOW_MS, has(file, topic, 100));
    stop(w, conn);
    topic_make_anew(w->servers, topic, 2);
    topic_produce_numbers(w->servers, topic, 2, 0, 40);
    resume(w, conn);
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, conn, "tasks.0.trace"),
                           "of which the topic has offsets from 0 up to 20"));
    assert_int_equal(look_into(file, topic).total, 100);
    put_vault(w, conn, topic, vault_file(EARLIEST));
    wait_until(FLOW_MS, has(file, topic, 140));
    assert_times(file, topic, 0, 0, 20, 2);
    assert_times(file, topic, 1, 0, 20, 2);
    stop(w, conn);
    patch(w, conn, topic, 1, 33);
    resume(w, conn);
    wait_until(FLOW_MS, scratch_contains(w->log, "has stored offset 33 of partition"));
    wait_until(FLOW_MS, has(file, topic, 160));
    assert_times(file, topic, 1, 0, 20, 3);
    put_vault(w, conn, topic, vault_file(LATEST));
    worker_run_await(w, conn, "RUNNING", 1, STATE_MS);
    stop(w, conn);
    patch(w, conn, topic, 0, 33);
    resume(w, conn);
    wait_until(FLOW_MS, scratch_contains(w->log, "going on at 20 by"));
    topic_produce(w->servers, topic, 0, NULL, "\"more\"");
    wait_until(FLOW_MS, has(file, topic, 161));
    assert_times(file, topic, 0, 0, 20, 2);
    assert_times(file, topic, 0, 20, 21, 2); /* 20 of the first topic, and of this */
}

/* It has begun, and has what it has fetched: what it asks for next is gone. */
static void retention_that_overtakes_a_reader_fails_the_task_until_the_user_decides(void **state)
{
    struct worker_run *w = start_worker("w");
    const char *topic = filled_topic(w, "lines", 50), *conn = scratch_name("v"),
               *file = scratch_path("vault.txt");

    (void)state;
    put_vault(w, conn, topic, vault_file(""));
    wait_until(FLOW_MS, has(file, topic, 100));
    worker_run_expect(w, 202, "PUT", scratch_text("/connectors/%s/pause", conn), NULL);
    worker_run_await(w, conn, "PAUSED", 1, STATE_MS);
    topic_produce_numbers(w->servers, topic, 2, 100, 100);
    topic_delete_before(w->servers, topic, 0, 75);
    resume(w, conn);
    wait_until(STATE_MS, strcmp(worker_run_state(w, conn, "tasks.0.state"), "FAILED") == 0);
    assert_non_null(strstr(worker_run_state(w, conn, "tasks.0.trace"), "by retention"));
    assert_times(file, topic, 0, 50, 100, 0);
    put_vault(w, conn, topic, vault_file(EARLIEST));
    wait_until(FLOW_MS, has(file, topic, 175));
    assert_times(file, topic, 0, 75, 100, 1);
    assert_times(file, topic, 1, 0, 100, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_host_that_is_killed_in_a_commit_loses_and_doubles_nothing),
        scratch_test(a_file_has_each_line_once_whenever_its_host_is_killed),
        scratch_test(a_task_that_wakes_up_behind_another_changes_nothing),
        scratch_test(it_is_the_plugin_that_a_user_changes),
        scratch_test(what_retention_took_fails_the_task_until_the_user_decides),
        scratch_test(what_retention_took_is_left_out_if_the_user_says_latest),
        scratch_test(what_is_stored_ahead_of_the_topic_fails_the_task_until_the_user_decides),
        scratch_test(retention_that_overtakes_a_reader_fails_the_task_until_the_user_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
