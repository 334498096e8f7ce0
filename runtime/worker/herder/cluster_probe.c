/* SPDX-License-Identifier: Apache-2.0 */
/* Connect asks for the cluster's id before anything else and gives up after a minute. Here
 * everything starts at once, and this thread asks until it is answered: the connectors' own clients
 * wait for the broker just as patiently. Afterwards it goes on to look every few seconds, so that
 * the log says for the whole worker when Kafka was lost and when it was back; each task tells of
 * its own client only. Started by the herder; ends within SLICE_MS when it is stopped.
 *
 *   learn ─► deliver (on the loop) ─► look ─┬─ answers ──► wait LOOK_MS ─► look
 *                                           └─ silent for LOST_MS: WARN ─► look ─► answers: INFO */
#define LOGGER "worker.kafka"
#include "worker/herder/cluster_probe.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "kafka/cluster.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SLICE_MS 500 /* how late a stop is noticed */
#define END_MS 1000  /* how long the end of its client is waited for */
#define LOOK_MS 5000 /* between two looks */
#define LOST_MS 2000 /* silence that counts */
#define FIRST_SIGN_MS 2000
#define SIGN_MS 5000

struct cluster_probe {
    struct loop *loop;
    cluster_probe_fn fn;
    void *arg;
    struct cluster *cluster; /* the thread's */
    char *servers;
    pthread_mutex_t lock;  /* of these two */
    int64_t since_wall_ms; /* Kafka has not answered, */
    struct mr_error why;   /* code 0: it has */
    pthread_t thread;
    int stop_fd;  /* readable: stop */
    int end_fd;   /* readable: the thread has nothing left to do but to return */
    bool posted;  /* thread until joined, then loop */
    bool stopped; /* loop, like all below */
    bool delivered;
    bool unwanted; /* freed before it was delivered: the delivery frees it */
    char id[256];
};

static void probe_free(struct cluster_probe *probe)
{
    if (probe->stop_fd >= 0)
        close(probe->stop_fd);
    if (probe->end_fd >= 0)
        close(probe->end_fd);
    pthread_mutex_destroy(&probe->lock);
    free(probe->servers);
    free(probe);
}

/* On the loop. */
static void deliver(void *arg)
{
    struct cluster_probe *probe = arg;

    probe->delivered = true;
    if (probe->unwanted)
        probe_free(probe);
    else if (!probe->stopped)
        probe->fn(probe->arg, probe->id);
}

static bool readable_within(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) > 0;
}

/* Wait for so long, or until it is told to stop: true. */
static bool stopped_within(const struct cluster_probe *probe, int ms)
{
    return readable_within(probe->stop_fd, ms);
}

/* err NULL: it answers. */
static void set_trouble(struct cluster_probe *probe, int64_t since_wall_ms,
                        const struct mr_error *err)
{
    pthread_mutex_lock(&probe->lock);
    probe->since_wall_ms = since_wall_ms;
    probe->why = err != NULL ? *err : (struct mr_error){0};
    pthread_mutex_unlock(&probe->lock);
}

static int learn(struct cluster_probe *probe)
{
    int64_t sign_ms = clock_ms() + FIRST_SIGN_MS, since_wall_ms = clock_wall_ms();
    int rc = MR_ERR_TIMEOUT;

    while (rc != 0 && !stopped_within(probe, 0)) {
        struct mr_error err = {0};

        rc = cluster_id(probe->cluster, SLICE_MS, probe->id, sizeof(probe->id), &err);
        set_trouble(probe, since_wall_ms, rc != 0 ? &err : NULL);
        if (rc != 0 && clock_ms() >= sign_ms && !stopped_within(probe, 0)) {
            log_warn("waiting for Kafka at %s: %s", probe->servers, err.text);
            sign_ms = clock_ms() + SIGN_MS;
        }
    }
    return rc;
}

/* Kafka did not answer: ask until it does. false: told to stop. */
static bool wait_for_answer(struct cluster_probe *probe)
{
    int64_t since_ms = clock_ms(), since_wall_ms = clock_wall_ms();
    struct mr_error err = {0};
    bool told = false;

    while (cluster_answers(probe->cluster, SLICE_MS, &err) != 0) {
        set_trouble(probe, since_wall_ms, &err);
        if (!told && clock_ms() - since_ms >= LOST_MS) {
            log_warn("Kafka at %s does not answer: %s; connectors wait, and go on by themselves",
                     probe->servers, err.text);
            told = true;
        }
        err_clear(&err);
        if (stopped_within(probe, SLICE_MS))
            return false;
    }
    set_trouble(probe, 0, NULL);
    if (told)
        log_info("Kafka at %s answers again, after %lld s", probe->servers,
                 (long long)(clock_ms() - since_ms) / 1000);
    return true;
}

static void *run(void *arg)
{
    struct cluster_probe *probe = arg;

    pthread_setname_np(pthread_self(), "cluster-probe");
    if (learn(probe) == 0 && !stopped_within(probe, 0)) {
        malloc_trim(0);
        probe->posted = loop_post(probe->loop, deliver, probe) == 0;
        while (!stopped_within(probe, LOOK_MS) && wait_for_answer(probe))
            ;
    }
    cluster_free(&probe->cluster);
    mr_assert(eventfd_write(probe->end_fd, 1) == 0);
    return NULL;
}

static int start_thread(struct cluster_probe *probe, struct mr_error *err)
{
    errno = thread_start(&probe->thread, run, probe);
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
    pthread_mutex_init(&probe->lock, NULL);
    probe->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    probe->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    probe->servers = text_dup(worker_config_servers(config));
    props_init(&java);
    mr_assert(client_conf_layer(&layers, &java) == 0);
    if (probe->stop_fd < 0 || probe->end_fd < 0)
        err_errno(err, "cannot start the thread that asks Kafka");
    else
        probe->cluster = cluster_new(&java, err);
    props_deinit(&java);
    if (probe->cluster != NULL && start_thread(probe, err) == 0)
        return probe;
    cluster_free(&probe->cluster);
    probe_free(probe);
    return NULL;
}

void cluster_probe_trouble(struct cluster_probe *probe, char *out, size_t size)
{
    char since[32];

    out[0] = '\0';
    pthread_mutex_lock(&probe->lock);
    if (probe->why.code != 0) {
        clock_iso(probe->since_wall_ms, since, sizeof(since));
        snprintf(out, size, "Kafka at %.500s has not answered since %s: %s.", probe->servers, since,
                 probe->why.text);
    }
    pthread_mutex_unlock(&probe->lock);
}

void cluster_probe_stop(struct cluster_probe *probe)
{
    if (probe == NULL)
        return;
    loop_assert_owner(probe->loop);
    probe->stopped = true;
    mr_assert(eventfd_write(probe->stop_fd, 1) == 0);
}

/* false: still at work; it is detached, and posts nothing any more, since it was told to stop long
 * before. Not by pthread_timedjoin_np, which waits by the wall clock. */
static bool join(struct cluster_probe *probe)
{
    if (readable_within(probe->end_fd, END_MS)) {
        pthread_join(probe->thread, NULL);
        return true;
    }
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
    if (!join(probe))
        return;
    probe->unwanted = true;
    if (!probe->posted || probe->delivered)
        probe_free(probe);
}
