/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin binaries last: those of this build, and one that was kept from an earlier one, run on a
 * Millrace whose public structs have all grown by 8 bytes, as a later minor's may. That binary is
 * built here, by the Makefile, against headers that tests/support/pad-headers.sh writes. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLOW_MS 20000
#define PADDED TEST_SOURCE "/build/padded"
#define KEPT TEST_SOURCE "/tests/plugins/kept/hostile-0.1-x86_64.so"

static int build_padded(void **state)
{
    char *output = NULL;
    int code;

    (void)state;
    code =
        process_shell("tests/support/pad-headers.sh build/padded/include && env -u MAKEFLAGS -u "
                      "MAKELEVEL make -s VARIANT=padded "
                      "SAN= CPPFLAGS=-I$PWD/build/padded/include CFLAGS=-O1 build/padded/millrace",
                      200000, &output);
    if (code != 0)
        print_error("the padded build failed: %s\n", output);
    return code;
}

static struct worker_run *start(const char *exe, const char *plugin_path)
{
    return worker_run_start(&(struct worker_run_options){
        .exe = exe, .props = scratch_text("plugin.path=%s\n", plugin_path)});
}

/* Offsets, batches, headers, configuration, schemas and errors all cross between structs of two
 * sizes. */
static void plugins_of_today_run_on_a_millrace_that_has_grown(void **state)
{
    struct worker_run *w = start(PADDED "/millrace", TEST_BUILD "/plugins");
    const char *topic = scratch_name("abi"), *in = scratch_path("in.txt"),
               *out = scratch_path("out.txt");
    /* A group of its own: the broker remembers dead members. */
    const char *sink = scratch_name("out");
    const char *json = "\"value.converter\": \"org.apache.kafka.connect.json.JsonConverter\"";
    size_t len = 0;

    (void)state;
    scratch_write_text(in, "one\ntwo\nthree\n");
    worker_run_put(
        w, "in",
        scratch_text(
            "\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", \"topic\": \"%s\", %s",
            in, topic, json));
    worker_run_put(
        w, sink,
        scratch_text(
            "\"connector.class\": \"FileStreamSink\", \"file\": \"%s\", \"topics\": \"%s\", %s",
            out, topic, json));
    assert_string_equal(
        topic_read(w->servers, topic, 3, FLOW_MS).records[2].value,
        "{\"schema\":{\"type\":\"string\",\"optional\":false},\"payload\":\"three\"}");
    wait_until(FLOW_MS, scratch_contains(out, "three\n"));
    assert_string_equal(scratch_read(out, &len), "one\ntwo\nthree\n");
    worker_run_expect(w, 204, "POST", "/connectors/in/tasks/0/restart", NULL);
    scratch_append_text(in, "four\n");
    wait_until(FLOW_MS, scratch_contains(out, "four\n"));
    assert_string_equal(scratch_read(out, &len), "one\ntwo\nthree\nfour\n");
}

/* The kept library's own three plugins, round a topic, then its ways of failing. */
static void run_kept(const char *exe)
{
    const char *folder = scratch_path("kept"), *file = scratch_path("kept.txt"),
               *topic = scratch_name("kept");
    struct worker_run *w;
    size_t len;
    char *data = scratch_read(KEPT, &len);

    assert_non_null(data);
    assert_int_equal(mkdir(folder, 0700), 0);
    scratch_write(scratch_text("%s/hostile.so", folder), data, len);
    w = start(exe, scratch_text("%s,%s/plugins", folder, TEST_BUILD));
    worker_run_put(
        w, "source",
        scratch_text(
            "\"connector.class\": \"HostileSource\", \"tasks.max\": \"2\", \"topic\": \"%s\", "
            "\"value.converter\": \"HostileConverter\"",
            topic));
    worker_run_put(
        w, scratch_name("sink"),
        scratch_text("\"connector.class\": \"HostileSink\", \"topics\": \"%s\", \"file\": \"%s\", "
                     "\"value.converter\": \"HostileConverter\"",
                     topic, file));
    wait_until(FLOW_MS, scratch_contains(file, " 1 40\n") && scratch_contains(file, " 0 40\n"));
    worker_run_await(w, "source", "RUNNING", 2, FLOW_MS);
    worker_run_put(
        w, "source",
        "\"connector.class\": \"HostileSource\", \"where\": \"poll\", \"how\": \"error\"");
    wait_until(FLOW_MS, strstr(worker_run_state(w, "source", "tasks.0.trace"),
                               "hostile was told to fail") != NULL);
    worker_run_put(
        w, "source",
        "\"connector.class\": \"HostileSource\", \"where\": \"start\", \"how\": \"undeclared\"");
    wait_until(FLOW_MS,
               strstr(worker_run_state(w, "source", "tasks.0.trace"), "no.such.key") != NULL);
    assert_int_equal(worker_run_stop(w), 0);
}

static bool kept_fits_this_machine(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

static void kept_binary_runs_on_this_build(void **state)
{
    (void)state;
    if (kept_fits_this_machine())
        run_kept(TEST_BUILD "/millrace");
}

static void kept_binary_runs_on_a_millrace_that_has_grown(void **state)
{
    (void)state;
    if (kept_fits_this_machine())
        run_kept(PADDED "/millrace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(plugins_of_today_run_on_a_millrace_that_has_grown),
        scratch_test(kept_binary_runs_on_this_build),
        scratch_test(kept_binary_runs_on_a_millrace_that_has_grown),
    };

    return cmocka_run_group_tests(tests, build_padded, NULL);
}
