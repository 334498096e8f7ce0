/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers for integration tests, by tests/kafka/kafka.sh. */
#include "support/kafka_run.h"

#include "support/process.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_MS 300000 /* the jars may have to be fetched first */

struct kafka_run {
    char folder[4096];
    char servers[256];
};

static struct kafka_run shared;
static struct kafka_run shared_three;

static void take_servers(struct kafka_run *kafka, const char *output)
{
    const char *at = output == NULL ? NULL : strstr(output, "bootstrap.servers=");

    if (at == NULL || sscanf(at, "bootstrap.servers=%255s", kafka->servers) != 1)
        fail_msg("kafka.sh did not start a broker: %s", output);
}

static void script(const struct kafka_run *kafka, const char *env, const char *verb, char **output)
{
    const char *command =
        scratch_text("%s KAFKA_RUN='%s' tests/kafka/kafka.sh %s", env, kafka->folder, verb);
    int rc = process_shell(command, START_MS, output);

    if (rc != 0)
        fail_msg("%s: exit %d: %s", command, rc, output == NULL ? "" : *output);
}

/* After the last test: no scratch functions here. */
static void stop_folder(const struct kafka_run *kafka)
{
    char command[8400];

    snprintf(command, sizeof(command), "KAFKA_RUN='%s' '%s/tests/kafka/kafka.sh' stop",
             kafka->folder, TEST_SOURCE);
    if (system(command) != 0)
        fprintf(stderr, "could not stop the broker in %s\n", kafka->folder);
}

static void stop_shared(void)
{
    stop_folder(&shared);
}

static void stop_shared_three(void)
{
    stop_folder(&shared_three);
}

static void start_shared(struct kafka_run *kafka, const char *env, int brokers, void (*stop)(void))
{
    char *output;

    snprintf(kafka->folder, sizeof(kafka->folder), "/tmp/millrace-test-kafka-%d-%d", (int)getpid(),
             brokers);
    atexit(stop);
    script(kafka, env, scratch_text("start %d", brokers), &output);
    take_servers(kafka, output);
}

const char *kafka_run_servers(void)
{
    const char *given = getenv("MILLRACE_TEST_KAFKA");

    if (given != NULL && *given != '\0')
        return given;
    if (shared.servers[0] == '\0')
        start_shared(&shared, "", 1, stop_shared);
    return shared.servers;
}

const struct kafka_run *kafka_run_shared(void)
{
    const char *folder = getenv("MILLRACE_TEST_KAFKA_FOLDER");

    if (folder != NULL && *folder != '\0')
        snprintf(shared.folder, sizeof(shared.folder), "%s", folder);
    else if (strcmp(kafka_run_servers(), shared.servers) != 0)
        return NULL;
    return &shared;
}

struct kafka_run *kafka_run_share_three(const char *env)
{
    if (shared_three.servers[0] == '\0')
        start_shared(&shared_three, env, 3, stop_shared_three);
    return &shared_three;
}

static void stop_own(void *arg)
{
    struct kafka_run *kafka = arg;
    char command[8400];

    snprintf(command, sizeof(command),
             "KAFKA_RUN='%s' '%s/tests/kafka/kafka.sh' logs '%s/kafka-logs'; "
             "KAFKA_RUN='%s' '%s/tests/kafka/kafka.sh' stop",
             kafka->folder, TEST_SOURCE, scratch_dir(), kafka->folder, TEST_SOURCE);
    if (system(command) != 0)
        fprintf(stderr, "could not stop the broker in %s\n", kafka->folder);
    free(kafka);
}

static struct kafka_run *start_own(const char *env, const char *verb)
{
    struct kafka_run *kafka = calloc(1, sizeof(*kafka));
    char *output;

    assert_non_null(kafka);
    snprintf(kafka->folder, sizeof(kafka->folder), "%s", scratch_path("kafka"));
    scratch_at_end(stop_own, kafka);
    script(kafka, env, verb, &output);
    take_servers(kafka, output);
    return kafka;
}

struct kafka_run *kafka_run_start(const char *env)
{
    return start_own(env, "start 1");
}

struct kafka_run *kafka_run_start_three(const char *env, bool apart)
{
    return start_own(env, apart ? "start 3+1" : "start 3");
}

const char *kafka_run_servers_of(const struct kafka_run *kafka)
{
    return kafka->servers;
}

const char *kafka_run_folder_of(const struct kafka_run *kafka)
{
    return kafka->folder;
}

void kafka_run_do(const struct kafka_run *kafka, const char *verb)
{
    script(kafka, "", verb, NULL);
}
