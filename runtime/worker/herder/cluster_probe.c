/* SPDX-License-Identifier: Apache-2.0 */
/* Connect asks for the cluster's id before anything else and gives up after a minute. Here everything starts at once, and
 * this thread asks until it is answered: the connectors' own clients wait for the broker just as patiently. It is started
 * by the herder and ends with the answer, or within SLICE_MS when it is stopped; the Kafka client it used is gone by then (an
 * idle worker keeps none). */
#define LOGGER "worker.kafka"
#include "worker/herder/cluster_probe.h"

#include "base/clock.h"
#include "base/log.h"
#include "kafka/cluster.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#define SLICE_MS 250 /* how late a stop is noticed */
#define END_MS 1000  /* how long the end of its client is waited for */
#define FIRST_SIGN_MS 2000
#define SIGN_MS 5000

struct cluster_probe {
    struct loop *loop;
    cluster_probe_fn fn;
    void *arg;
    struct cluster *cluster; /* the thread's */
    char *servers;
    pthread_t thread;
    atomic_bool stop;
    bool stopped;   /* loop */
    bool posted;    /* thread until joined, then loop */
    bool delivered; /* loop */
    char id[256];
};

static void probe_free(struct cluster_probe *probe)
{
    free(probe->servers);
    free(probe);
}

/* On the loop. */
static void deliver(void *arg)
{
    struct cluster_probe *probe = arg;

    probe->delivered = true;
    if (probe->stopped)
        probe_free(probe);
    else
        probe->fn(probe->arg, probe->id);
}

static void *run(void *arg)
{
    struct cluster_probe *probe = arg;
    int64_t sign_ms = clock_ms() + FIRST_SIGN_MS;
    int rc = MR_ERR_TIMEOUT;

    pthread_setname_np(pthread_self(), "cluster-probe");
    while (rc != 0 && !atomic_load(&probe->stop)) {
        struct mr_error err = {0};

        rc = cluster_id(probe->cluster, SLICE_MS, probe->id, sizeof(probe->id), &err);
        if (rc != 0 && clock_ms() >= sign_ms && !atomic_load(&probe->stop)) {
            log_warn("waiting for Kafka at %s: %s", probe->servers, err.text);
            sign_ms = clock_ms() + SIGN_MS;
        }
    }
    cluster_free(&probe->cluster);
    malloc_trim(0);
    if (!atomic_load(&probe->stop))
        probe->posted = rc == 0 && loop_post(probe->loop, deliver, probe) == 0;
    return NULL;
}

/* Signals are the loop's: the thread is born with all of them blocked. */
static int start_thread(struct cluster_probe *probe, struct mr_error *err)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&probe->thread, NULL, run, probe);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errno == 0 ? 0 : err_errno(err, "cannot start the thread that asks Kafka");
}

struct cluster_probe *cluster_probe_start(struct loop *loop, const struct worker_config *config,
                                          cluster_probe_fn fn, void *arg, struct mr_error *err)
{
    struct cluster_probe *probe = calloc(1, sizeof(*probe));
    struct client_conf_layers layers = {.kind = CLIENT_ADMIN, .worker = &config->props};
    struct props java;

    mr_assert(probe != NULL);
    probe->loop = loop;
    probe->fn = fn;
    probe->arg = arg;
    probe->servers = strdup(worker_config_servers(config));
    mr_assert(probe->servers != NULL);
    props_init(&java);
    mr_assert(client_conf_layer(&layers, &java) == 0);
    probe->cluster = cluster_new(&java, err);
    props_deinit(&java);
    if (probe->cluster != NULL && start_thread(probe, err) == 0)
        return probe;
    cluster_free(&probe->cluster);
    probe_free(probe);
    return NULL;
}

void cluster_probe_stop(struct cluster_probe *probe)
{
    if (probe == NULL)
        return;
    loop_assert_owner(probe->loop);
    probe->stopped = true;
    atomic_store(&probe->stop, true);
}

/* false: still at work; it is detached, and posts nothing any more, since it was told to stop long before. */
static bool join(struct cluster_probe *probe)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    if (pthread_timedjoin_np(probe->thread, NULL, &until) == 0)
        return true;
    log_warn("the Kafka client that asks %s does not end: it is left behind", probe->servers);
    pthread_detach(probe->thread);
    return false;
}

void cluster_probe_free(struct cluster_probe **probep)
{
    struct cluster_probe *probe = *probep;

    *probep = NULL;
    if (probe == NULL)
        return;
    cluster_probe_stop(probe);
    if (join(probe) && (!probe->posted || probe->delivered))
        probe_free(probe);
}
