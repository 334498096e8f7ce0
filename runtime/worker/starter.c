/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a start that may take long: a library that hangs in its constructor costs the scan
 * ten seconds, an earlier worker's hosts three. Made by worker.c once the port is bound; the thread
 * reads the configuration, which nobody changes, and posts what it found to the loop as its last
 * act. Called off by an eventfd that every wait of the thread looks at.
 *
 *   loop:    starter_new ───────────── serves 503 ─────────────► deliver ─► fn (starter_free)
 *   thread:      └──► catalog_scan ─► supervisor_bury_orphans ───┘ */
#include "worker/starter.h"

#include "worker/supervisor/catalog.h"
#include "worker/supervisor/supervisor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct starter {
    struct loop *loop;
    const char *exe;
    const struct worker_config *config;
    starter_fn fn;
    void *arg;
    pthread_t thread;
    int cancel_fd;
    struct catalog *catalog; /* the thread's until it has posted, and then the loop's */
    struct mr_error err;
};

static void deliver(void *arg)
{
    struct starter *starter = arg;
    struct catalog *catalog = starter->catalog;

    starter->catalog = NULL;
    starter->fn(starter->arg, catalog, &starter->err);
}

static void *run(void *arg)
{
    struct starter *starter = arg;
    const struct worker_config *config = starter->config;

    pthread_setname_np(pthread_self(), "starter");
    if (starter->catalog == NULL)
        starter->catalog = catalog_scan(starter->exe, (const char *const *)config->plugin_path,
                                        starter->cancel_fd, &starter->err);
    if (starter->catalog != NULL &&
        supervisor_bury_orphans(config->run_dir, starter->cancel_fd, &starter->err) != 0)
        catalog_free(&starter->catalog);
    mr_assert(loop_post(starter->loop, deliver, starter) == 0);
    return NULL;
}

struct starter *starter_new(struct loop *loop, const char *exe, struct worker_config *config,
                            starter_fn fn, void *arg, struct mr_error *err)
{
    struct starter *starter = calloc(1, sizeof(*starter));

    mr_assert(starter != NULL);
    *starter = (struct starter){
        .loop = loop, .exe = exe, .config = config, .fn = fn, .arg = arg, .catalog = config->found};
    config->found = NULL;
    starter->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (starter->cancel_fd >= 0)
        errno = pthread_create(&starter->thread, NULL, run, starter);
    if (starter->cancel_fd >= 0 && errno == 0)
        return starter;
    err_errno(err, "cannot start the thread that looks at plugins");
    if (starter->cancel_fd >= 0)
        close(starter->cancel_fd);
    catalog_free(&starter->catalog);
    free(starter);
    return NULL;
}

void starter_cancel(struct starter *starter)
{
    uint64_t one = 1;

    mr_assert(write(starter->cancel_fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

void starter_free(struct starter **starterp)
{
    struct starter *starter = *starterp;

    *starterp = NULL;
    if (starter == NULL)
        return;
    pthread_join(starter->thread, NULL);
    close(starter->cancel_fd);
    free(starter);
}
