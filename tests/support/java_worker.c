/* SPDX-License-Identifier: Apache-2.0 */
/* The Java Connect worker, by tests/kafka/kafka.sh: a folder of its own in the test's, that uses
 * the broker which is there. */
#include "support/java_worker.h"

#include "support/kafka_run.h"
#include "support/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_MS 300000 /* the jars may have to be fetched first */
#define VERB_MS 60000

static const char *command(const struct worker_run *java, const char *verb)
{
    return scratch_text("KAFKA_RUN='%s' '%s/tests/kafka/kafka.sh' %s", java->run_dir, TEST_SOURCE,
                        verb);
}

static void script(const struct worker_run *java, const char *verb)
{
    char *output;
    const char *line = command(java, verb);
    int rc = process_shell(line, VERB_MS, &output);

    if (rc != 0)
        fail_msg("%s: exit %d: %s", line, rc, output);
}

static void stop(void *arg)
{
    const struct worker_run *java = arg;
    char line[3 * 4096];

    snprintf(line, sizeof(line),
             "export KAFKA_RUN='%s'; '%s/tests/kafka/kafka.sh' logs '%s/java.logs'; "
             "'%s/tests/kafka/kafka.sh' stop",
             java->run_dir, TEST_SOURCE, scratch_dir(), TEST_SOURCE);
    if (system(line) != 0)
        fprintf(stderr, "could not stop the Java worker in %s\n", java->run_dir);
}

static void launch(struct worker_run *java)
{
    const char *verb = scratch_text("connect '%s'", java->group);
    const char *line =
        scratch_text("export CONNECT_EXTRA=\"$(cat '%s')\"; %s", java->config, command(java, verb));
    const char *argv[] = {"bash", "-c", line, NULL};

    java->log = scratch_path(scratch_name("java"));
    java->process = process_start(argv, java->log, NULL);
}

struct worker_run *java_worker_start(const char *servers, const char *group, const char *props)
{
    struct worker_run *java = scratch_keep(calloc(1, sizeof(*java)));

    java->servers = servers != NULL ? servers : kafka_run_servers();
    java->group = group;
    java->run_dir = scratch_path("java");
    java->config = scratch_path("java.more");
    scratch_write_text(
        java->config,
        scratch_text("exactly.once.source.support=disabled\n"
                     "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
                     "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
                     "offset.storage.partitions=2\n"
                     "status.storage.partitions=2\n"
                     "offset.flush.interval.ms=200\n"
                     "%s",
                     props != NULL ? props : ""));
    scratch_at_end(stop, java);
    script(java, scratch_text("use '%s'", java->servers));
    launch(java);
    return java;
}

void java_worker_await(struct worker_run *java)
{
    int rc = process_wait(java->process, START_MS);
    const char *output = scratch_read(java->log, NULL), *url = strstr(output, "http://");

    if (rc != 0 || url == NULL || sscanf(url, "http://127.0.0.1:%d", &java->port) != 1)
        fail_msg("the Java worker did not start: %s", output);
    java->url = scratch_text("http://127.0.0.1:%d", java->port);
}

void java_worker_again(struct worker_run *java)
{
    launch(java);
    java_worker_await(java);
}

void java_worker_leave(struct worker_run *java)
{
    script(java, scratch_text("leave '%s'", java->group));
}

void java_worker_kill(struct worker_run *java)
{
    script(java, scratch_text("end '%s'", java->group));
}

void java_worker_signal(const struct worker_run *java, int signal)
{
    const char *file = scratch_text("%s/%s.pid", java->run_dir, java->group);
    const char *text = scratch_read(file, NULL);

    if (text == NULL || kill((pid_t)atoi(text), signal) != 0)
        fail_msg("no Java worker by %s", file);
}
