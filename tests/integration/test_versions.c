/* SPDX-License-Identifier: Apache-2.0 */
/* Several versions of one class side by side: what is asked for is what runs, of the connector and
 * of its transforms each. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/topic.h"
#include "support/worker_run.h"

#include <string.h>

#define FLOW_MS 30000

/* A connector with these more fields writes this. */
static void expect(const struct worker_run *w, const char *more, const char *version,
                   const char *value)
{
    const char *topic = scratch_name("aged"), *conn = scratch_name("conn");

    worker_run_put(w, conn,
                   scratch_text("\"connector.class\": \"Aged\", \"topic\": \"%s\", "
                                "\"value.converter\": \"StringConverter\", "
                                "\"transforms\": \"g\", \"transforms.g.type\": \"Grow\"%s",
                                topic, more));
    worker_run_await(w, conn, "RUNNING", 1, FLOW_MS);
    assert_string_equal(worker_run_state(w, conn, "connector.version"), version);
    assert_string_equal(topic_read(w->servers, topic, 1, FLOW_MS).records[0].value, value);
    worker_run_expect(w, 204, "DELETE", scratch_text("/connectors/%s", conn), NULL);
}

static void the_versions_that_are_asked_for_run(void **state)
{
    struct worker_run *w = worker_run_start(&(struct worker_run_options){0});
    struct http_reply reply;

    (void)state;
    expect(w, "", "2.0", "source 2.0, transform 2.0");
    expect(w, ", \"connector.plugin.version\": \"1.0\"", "1.0", "source 1.0, transform 1.0");
    expect(w,
           ", \"connector.plugin.version\": \"[1,2)\", \"transforms.g.plugin.version\": "
           "\"[1.5,)\"",
           "1.0", "source 1.0, transform 2.0");
    reply = worker_run_call(w, "PUT", "/connectors/none/config",
                            "{\"connector.class\": \"Aged\", \"topic\": \"t\", "
                            "\"connector.plugin.version\": \"3\"}");
    assert_int_equal(reply.status, 400);
    assert_non_null(strstr(http_at(reply.json, "message"),
                           "Plugin Aged not found that matches the version range [3,3], available "
                           "versions: [1.0, 2.0]"));
    reply = worker_run_call(w, "GET", "/connector-plugins/Aged/config?version=[1", NULL);
    assert_int_equal(reply.status, 400);
    assert_string_equal(http_at(reply.json, "message"), "Invalid version specification: [1");
    worker_run_expect(w, 200, "GET", "/connector-plugins/Aged/config?version=1.0", NULL);
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_versions_that_are_asked_for_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
