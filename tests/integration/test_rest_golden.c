/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that the Java worker gave, recorded, and what a worker of ours gives to the same
 * requests. */
#include "support/kafka_run.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/worker_run.h"

#define REPLAY_MS 300000
#define JOBS "8"
#define PROVIDER "org.apache.kafka.common.config.provider."

/* As of the Java worker that was recorded. */
static const char settings[] =
    "key.converter=org.apache.kafka.connect.json.JsonConverter\n"
    "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
    "exactly.once.source.support=enabled\n"
    "offset.storage.partitions=5\n"
    "config.providers=file,env,directory\n"
    "config.providers.file.class=" PROVIDER "FileConfigProvider\n"
    "config.providers.env.class=" PROVIDER "EnvVarConfigProvider\n"
    "config.providers.directory.class=" PROVIDER "DirectoryConfigProvider\n"
    "scheduled.rebalance.max.delay.ms=0\n";

static void a_cluster_answers_as_the_java_worker_did(void **state)
{
    struct worker_run *worker = worker_run_start(
        &(struct worker_run_options){.group = scratch_name("golden"), .props = settings});
    char *told = NULL;

    (void)state;
    if (process_shell(scratch_text("python3 tests/compat/rest_diff.py compare %s "
                                   "tests/compat/rest_golden.json --jobs " JOBS
                                   " --meant tests/compat/known-differences.txt",
                                   worker->url),
                      REPLAY_MS, &told) != 0)
        fail_msg("%s", told);
    assert_int_equal(worker_run_stop(worker), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_cluster_answers_as_the_java_worker_did),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
