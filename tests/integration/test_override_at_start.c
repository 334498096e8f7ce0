/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's configurations outlive its workers' settings: what the policy of overrides forbids
 * now fails the task at its start, and the connector is still there to be mended. */
#include "support/kafka_run.h"
#include "support/scratch.h"
#include "support/worker_run.h"

#include <string.h>

#define FLOW_MS 30000

/* The task alone; each of the two is told of when it comes. */
static bool is_failed(const struct worker_run *w)
{
    return strcmp(worker_run_state(w, "old", "tasks.0.state"), "FAILED") == 0 &&
           strcmp(worker_run_state(w, "old", "connector.state"), "RUNNING") == 0;
}

static void put(const struct worker_run *w, const char *more)
{
    scratch_write_text(scratch_path("in.txt"), "");
    worker_run_put(w, "old",
                   scratch_text("\"connector.class\": \"FileStreamSource\", \"file\": \"%s\", "
                                "\"topic\": \"%s\"%s",
                                scratch_path("in.txt"), scratch_name("old"), more));
}

static void a_policy_holds_for_what_was_stored_before(void **state)
{
    struct worker_run *w =
        worker_run_start(&(struct worker_run_options){.group = scratch_name("policy")});

    (void)state;
    put(w, ", \"producer.override.linger.ms\": \"7\"");
    worker_run_await(w, "old", "RUNNING", 1, FLOW_MS);
    assert_int_equal(worker_run_stop(w), 0);
    scratch_append_text(w->config, "connector.client.config.override.policy=None\n");
    worker_run_again(w);
    wait_until(FLOW_MS, is_failed(w));
    assert_non_null(
        strstr(worker_run_state(w, "old", "tasks.0.trace"),
               "Client Config Overrides not allowed [[linger.ms,7,[],[The 'None' policy does not "
               "allow 'linger.ms' to be overridden in the connector configuration.],true]]"));
    put(w, "");
    worker_run_await(w, "old", "RUNNING", 1, FLOW_MS);
    assert_int_equal(worker_run_stop(w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_policy_holds_for_what_was_stored_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
