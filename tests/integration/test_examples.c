/* SPDX-License-Identifier: Apache-2.0 */
/* The examples as a newcomer meets them: installed headers, their own Makefiles out of the tree, a
 * worker that finds them. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_MS 20000

static void run(const char *command)
{
    char *output = NULL;

    if (process_shell(command, 120000, &output) != 0)
        fail_msg("%s\n%s", command, output);
}

/* Install, copy, make: in the test's folder, with nothing of this tree but what `make install` put
 * there. */
static void build_examples(void)
{
    const char *root = scratch_path("root"), *copy = scratch_path("examples");

    run(scratch_text(
        "env -u MAKEFLAGS -u MAKELEVEL make -s install BUILD=%s DESTDIR=%s PREFIX=/usr", TEST_BUILD,
        root));
    run(scratch_text("cp -r examples %s", copy));
    run(scratch_text("cd %s && for e in hello_source hello_sink hello_transform hello_cpp "
                     "command_provider writers_filter visits; do env "
                     "-u MAKEFLAGS -u "
                     "MAKELEVEL -u CFLAGS "
                     "PKG_CONFIG_SYSROOT_DIR=%s PKG_CONFIG_PATH=%s/usr/lib/pkgconfig make -s -C $e "
                     "CFLAGS='-O2 -Wall -Wextra "
                     "-Wshadow -Wno-unused-parameter -Werror' CXXFLAGS='-O2 -Wall -Wextra "
                     "-Wno-unused-parameter -Werror' || "
                     "exit 1; done && mkdir plugins && cp */*.so plugins",
                     copy, root, root));
}

/* Every relative link of an installed page leads to an installed file, and the page for authors of
 * plugins is among them. */
static void installed_pages_have_no_dead_links(void **state)
{
    const char *root = scratch_path("root");

    (void)state;
    run(scratch_text(
        "env -u MAKEFLAGS -u MAKELEVEL make -s install BUILD=%s DESTDIR=%s PREFIX=/usr", TEST_BUILD,
        root));
    run(scratch_text("test -e %s/usr/share/doc/millrace/include/millrace/README.md", root));
    run(scratch_text(
        "cd %s/usr/share/doc/millrace && find . -name '*.md' | while read -r page; do "
        "grep -o '](\\([^)#:]*\\))' $page | tr -d '()]' | while read -r link; do "
        "[ -e \"$(dirname $page)/$link\" ] || { echo \"$page: $link\"; exit 1; }; done || "
        "exit 1; done",
        root));
}

/* pkg-config finds millrace where it looks, and where it does not the user is told. */
static void an_installation_says_when_pkg_config_does_not_look_there(void **state)
{
    const char *command = "env -u MAKEFLAGS -u MAKELEVEL %s make -s install BUILD=%s PREFIX=%s";
    const char *prefix = scratch_path("prefix");
    char *output = NULL;

    (void)state;
    assert_int_equal(process_shell(scratch_text(command, "PKG_CONFIG_PATH=", TEST_BUILD, prefix),
                                   120000, &output),
                     0);
    assert_non_null(
        strstr(output, scratch_text("export PKG_CONFIG_PATH=%s/lib/pkgconfig", prefix)));
    assert_int_equal(
        process_shell(scratch_text(command,
                                   scratch_text("PKG_CONFIG_PATH=/x:%s/lib/pkgconfig", prefix),
                                   TEST_BUILD, prefix),
                      120000, &output),
        0);
    assert_null(strstr(output, "PKG_CONFIG_PATH"));
}

static void the_installed_binary_names_the_installed_sample(void **state)
{
    const char *prefix = scratch_path("prefix");
    char *output = NULL;

    (void)state;
    run(scratch_text("env -u MAKEFLAGS -u MAKELEVEL make -s install BUILD=%s PREFIX=%s", TEST_BUILD,
                     prefix));
    assert_int_equal(
        process_shell(scratch_text("%s/bin/millrace help standalone", prefix), 10000, &output), 0);
    assert_non_null(
        strstr(output, scratch_text("A sample: %s/etc/millrace/standalone.properties\n", prefix)));
}

/* `standalone --port 8083 FILE` is a wrong call, no worker file that is missing. */
static void options_that_a_verb_does_not_have_are_refused(void **state)
{
    static const char *const calls[] = {"standalone --port 8083 f", "standalone f --port",
                                        "worker -p f", "version --port"};
    char *output = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_int_equal(process_shell(scratch_text("%s/millrace %s 2>&1", TEST_BUILD, calls[i]),
                                       10000, &output),
                         1);
        assert_non_null(strstr(output, "has no option -"));
        assert_non_null(strstr(output, "usage: millrace "));
    }
}

/* A standalone worker has no exactly-once: what the class says of itself is enough. */
static void assert_exactly_once_may_be_required_of_hello(void)
{
    char *output = NULL;

    assert_int_equal(process_shell(scratch_text("%s/millrace scan %s/plugins/hello_source.so",
                                                TEST_BUILD, scratch_path("examples")),
                                   10000, &output),
                     0);
    assert_non_null(strstr(output, "\"exactly_once\":\"\""));
}

static void examples_run_as_their_readme_says(void **state)
{
    const char *topic = scratch_name("greetings");
    struct topic_records records;
    struct http_reply refused;
    struct worker_run *w;

    (void)state;
    build_examples();
    w = worker_run_start(&(struct worker_run_options){
        .props = scratch_text("plugin.path=%s,%s/plugins\n", scratch_path("examples/plugins"),
                              TEST_BUILD)});
    refused = worker_run_expect(w, 400, "PUT", "/connectors/hello/config",
                                "{\"connector.class\": \"HelloSource\", \"topic\": \"t\", "
                                "\"pause.ms\": \"-5\"}");
    assert_non_null(
        strstr(http_at(refused.json, "message"),
               "Invalid value -5 for configuration pause.ms: Value must be at least 1"));
    refused = worker_run_expect(w, 400, "PUT", "/connectors/hello/config",
                                "{\"connector.class\": \"HelloSource\", \"topic\": \"\"}");
    assert_non_null(strstr(http_at(refused.json, "message"),
                           "Invalid value  for configuration topic: String must be non-empty"));
    assert_exactly_once_may_be_required_of_hello();
    worker_run_put(
        w, "hello",
        scratch_text("\"connector.class\": \"HelloSource\", \"topic\": \"%s\", \"whom\": \"Ada\", "
                     "\"pause.ms\": \"10\", "
                     "\"key.converter\": \"org.apache.kafka.connect.storage.StringConverter\", "
                     "\"value.converter\": \"org.apache.kafka.connect.storage.StringConverter\"",
                     topic));
    records = topic_read(w->servers, topic, 3, FLOW_MS);
    assert_string_equal(records.records[0].key, "Ada");
    assert_string_equal(records.records[2].value, "3");
    worker_run_put(
        w, scratch_name("listen"),
        scratch_text("\"connector.class\": \"HelloSink\", \"topics\": \"%s\", "
                     "\"greeting\": \"good day\", "
                     "\"value.converter\": \"org.apache.kafka.connect.storage.StringConverter\"",
                     topic));
    worker_run_put(
        w, scratch_name("words"),
        scratch_text("\"connector.class\": \"HelloCpp\", \"topics\": \"%s\", "
                     "\"value.converter\": \"org.apache.kafka.connect.storage.StringConverter\"",
                     topic));
    wait_until(FLOW_MS, scratch_contains(w->log, "good day, 2"));
    wait_until(FLOW_MS, scratch_contains(w->log, "2: 1"));
    assert_int_equal(worker_run_stop(w), 0);
    assert_false(scratch_contains(w->log, "FAILED"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(installed_pages_have_no_dead_links),
        scratch_test(an_installation_says_when_pkg_config_does_not_look_there),
        scratch_test(the_installed_binary_names_the_installed_sample),
        scratch_test(options_that_a_verb_does_not_have_are_refused),
        scratch_test(examples_run_as_their_readme_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
