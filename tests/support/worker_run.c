/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, watches and ends `millrace standalone` or `millrace worker` for a test. What it starts
 * carries a mark in the environment; when the test ends, everything with that mark is killed,
 * whoever its parent is by then. */
#include "support/worker_run.h"

#include "support/kafka_run.h"
#include "support/scratch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES_MAX 16
#define START_MS 60000
#define STOP_MS 15000

static bool port_is_free(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;

    close(fd);
    return is_free;
}

int worker_run_free_port(void)
{
    static unsigned seed;
    int port;

    if (seed == 0)
        seed = (unsigned)getpid() * 2654435761u;
    do
        port = 10000 + rand_r(&seed) % 10000;
    while (!port_is_free(port));
    return port;
}

static void end_marked(void *arg)
{
    pid_t pids[256];
    size_t count = process_marked(arg, pids, 256);

    for (size_t i = 0; i < count && i < 256; i++)
        kill(pids[i], SIGKILL);
}

/* Where its state is. */
static const char *storage_of(const struct worker_run *worker)
{
    if (worker->group == NULL)
        return scratch_text("offset.storage.file.filename=%s", worker->offsets);
    return scratch_text("group.id=%s\n"
                        "config.storage.topic=%s-configs\n"
                        "offset.storage.topic=%s-offsets\n"
                        "status.storage.topic=%s-status\n"
                        "config.storage.replication.factor=1\n"
                        "offset.storage.replication.factor=1\n"
                        "status.storage.replication.factor=1\n"
                        "offset.storage.partitions=2\n"
                        "status.storage.partitions=2",
                        worker->group, worker->group, worker->group, worker->group);
}

static void write_config(const struct worker_run *worker, const char *more)
{
    const char *storage = storage_of(worker);
    const char *text =
        scratch_text("bootstrap.servers=%s\n"
                     "listeners=%s\n"
                     "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
                     "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
                     "%s\n"
                     "offset.flush.interval.ms=200\n"
                     "plugin.path=%s/tests/plugins\n"
                     "millrace.run.dir=%s\n"
                     "%s",
                     worker->servers, worker->url, storage, TEST_BUILD, worker->run_dir,
                     more == NULL ? "" : more);

    scratch_write_text(worker->config, text);
}

void worker_run_launch(struct worker_run *worker)
{
    const char *argv[FILES_MAX + 4] = {worker->exe, worker->group != NULL ? "worker" : "standalone",
                                       worker->config};

    for (size_t i = 0; worker->files != NULL && worker->files[i] != NULL; i++) {
        assert_true(i < FILES_MAX);
        argv[3 + i] = worker->files[i];
    }
    worker->process = process_start(argv, worker->log, worker->mark);
}

static bool answers(struct worker_run *worker)
{
    if (!process_running(worker->process))
        fail_msg("the worker ended with status %d: %s", worker->process->status,
                 scratch_read(worker->log, NULL));
    return http_get(scratch_text("%s%s", worker->url, worker->group != NULL ? "/health" : "/"))
               .status == 200;
}

struct worker_run *worker_run_start(const struct worker_run_options *options)
{
    struct worker_run *worker = scratch_keep(calloc(1, sizeof(*worker)));
    const char *name = options->name == NULL ? "worker" : options->name;

    worker->exe = options->exe == NULL ? TEST_BUILD "/millrace" : options->exe;
    worker->servers = options->servers == NULL ? kafka_run_servers() : options->servers;
    worker->config = scratch_path(scratch_text("%s.properties", name));
    worker->log = scratch_path(scratch_text("%s.log", name));
    worker->offsets = scratch_path(scratch_text("%s.offsets", name));
    worker->group = options->group;
    worker->run_dir = scratch_path(worker->group != NULL ? scratch_text("%s.run", name) : "run");
    worker->mark = scratch_name("worker");
    worker->port = worker_run_free_port();
    worker->url = scratch_text("http://%s:%d", options->host == NULL ? "127.0.0.1" : options->host,
                               worker->port);
    worker->files = options->files;
    write_config(worker, options->props);
    scratch_at_end(end_marked, (void *)worker->mark);
    worker_run_launch(worker);
    if (!options->dont_wait)
        wait_until(START_MS, answers(worker));
    return worker;
}

void worker_run_again(struct worker_run *worker)
{
    worker_run_launch(worker);
    wait_until(START_MS, answers(worker));
}

void worker_run_kill(struct worker_run *worker)
{
    process_signal(worker->process, SIGKILL);
    process_wait(worker->process, STOP_MS);
}

int worker_run_stop(struct worker_run *worker)
{
    process_signal(worker->process, SIGTERM);
    return process_wait(worker->process, STOP_MS);
}

size_t worker_run_processes(const struct worker_run *worker)
{
    return process_marked(worker->mark, NULL, 0);
}

pid_t worker_run_host(const struct worker_run *worker, const char *conn)
{
    const char *args = scratch_text("millrace host %s", conn);
    pid_t pids[256];
    size_t count = process_marked(worker->mark, pids, 256);

    for (size_t i = 0; i < count && i < 256; i++)
        if (strcmp(process_arguments(pids[i]), args) == 0)
            return pids[i];
    return 0;
}

struct http_reply worker_run_call(const struct worker_run *worker, const char *method,
                                  const char *path, const char *body)
{
    return http_call(method, scratch_text("%s%s", worker->url, path), body);
}

struct http_reply worker_run_expect(const struct worker_run *worker, int status, const char *method,
                                    const char *path, const char *body)
{
    struct http_reply reply = worker_run_call(worker, method, path, body);

    if (reply.status != status)
        fail_msg("%s %s: %d, not %d: %s", method, path, reply.status, status, reply.body);
    return reply;
}

void worker_run_put(const struct worker_run *worker, const char *conn, const char *fields)
{
    const char *path = scratch_text("/connectors/%s/config", conn);
    struct http_reply reply = worker_run_call(worker, "PUT", path, scratch_text("{%s}", fields));

    if (reply.status != 200 && reply.status != 201)
        fail_msg("PUT %s: %d: %s", path, reply.status, reply.body);
}

const char *worker_run_state(const struct worker_run *worker, const char *conn, const char *path)
{
    struct http_reply reply =
        worker_run_call(worker, "GET", scratch_text("/connectors/%s/status", conn), NULL);

    return reply.status == 200 ? http_at(reply.json, path) : "";
}

bool worker_run_is(const struct worker_run *worker, const char *conn, const char *state, int tasks)
{
    struct http_reply reply =
        worker_run_call(worker, "GET", scratch_text("/connectors/%s/status", conn), NULL);

    if (reply.status != 200 || strcmp(http_at(reply.json, "connector.state"), state) != 0)
        return false;
    if ((int)json_array_size(json_object_get(reply.json, "tasks")) != tasks)
        return false;
    for (int i = 0; i < tasks; i++)
        if (strcmp(http_at(reply.json, scratch_text("tasks.%d.state", i)), state) != 0)
            return false;
    return true;
}

void worker_run_await(const struct worker_run *worker, const char *conn, const char *state,
                      int tasks, int ms)
{
    int64_t from = scratch_now_ms();

    while (!worker_run_is(worker, conn, state, tasks)) {
        if (scratch_since(from) > ms)
            fail_msg(
                "%s is not %s with %d tasks after %d ms: %s", conn, state, tasks, ms,
                worker_run_call(worker, "GET", scratch_text("/connectors/%s/status", conn), NULL)
                    .body);
        scratch_pause(5);
    }
}
