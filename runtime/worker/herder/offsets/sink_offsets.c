/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs about the offsets of consumer groups. A job has its own client, with the connector's
 * settings, and its own thread, so that one cluster that does not answer holds up nobody else's
 * question; how many run and wait is bounded.
 *
 *   sink_offsets_ask ─► WAITING ─► RUNNING (its thread: client, requests) ─ loop_post ─► done
 *
 * A thread shares with the loop only `client`, under the lock, by which it is called off.
 * Everything else is the thread's while it runs, and the loop's before and after. */
#include "worker/herder/offsets/sink_offsets.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define RUNNING_MAX 4
#define WAITING_MAX 256

struct job {
    struct sink_offsets *so; /* NULL: it has gone, and the answer with it */
    struct job *next;
    enum sink_offsets_act act;
    char *group;
    struct props client;
    struct providers *providers;
    struct group_offset *changes;
    size_t change_count;
    int64_t until_ms;
    sink_offsets_done done;
    void *arg;
    bool running;
    pthread_t thread;
    struct loop *loop;
    struct group_offset *list;
    size_t list_count;
    struct mr_error err;
    pthread_mutex_t lock;
    struct topic_admin *admin; /* under lock */
    bool called_off;           /* the same */
};

struct sink_offsets {
    struct loop *loop;
    int64_t timeout_ms;
    struct job *jobs; /* in the order of asking */
    size_t running, waiting;
};

static void run_next(struct sink_offsets *so);

/* --- the thread ------------------------------------------------------------------------------- */

/* Nothing to tell: what has no effect was told when the connector was created. */
static void no_remark(void *arg, const char *key, const char *text)
{
    (void)arg;
    (void)key;
    (void)text;
}

static void set_admin(struct job *job, struct topic_admin *admin)
{
    pthread_mutex_lock(&job->lock);
    job->admin = admin;
    if (admin != NULL && job->called_off)
        topic_admin_cancel(admin);
    pthread_mutex_unlock(&job->lock);
}

static void act(struct job *job, struct topic_admin *admin)
{
    int64_t left_ms = job->until_ms - clock_ms();

    if (left_ms <= 0)
        mr_fail(&job->err, MR_ERR_TIMEOUT, "too many requests for offsets wait for Kafka");
    else if (job->act == SINK_OFFSETS_LIST)
        (void)group_offsets_list(admin, job->group, left_ms, &job->list, &job->list_count,
                                 &job->err);
    else if (job->act == SINK_OFFSETS_CHANGE)
        (void)group_offsets_change(admin, job->group, job->changes, job->change_count, left_ms,
                                   &job->err);
    else
        (void)group_offsets_drop(admin, job->group, left_ms, &job->err);
}

static void answer(void *arg);

/* References may lead to files, so they are followed here. */
static struct topic_admin *make_client(struct job *job)
{
    const struct provider_job resolve = {.in = &job->client};
    struct topic_admin *admin;
    struct props client;

    if (providers_resolve(job->providers, &resolve, &client, &job->err) != 0)
        return NULL;
    admin = topic_admin_new(&client, no_remark, NULL, &job->err);
    props_deinit(&client);
    return admin;
}

static void *run(void *arg)
{
    struct job *job = arg;
    struct topic_admin *admin = make_client(job);

    pthread_setname_np(pthread_self(), "sink-offsets");
    if (admin != NULL) {
        set_admin(job, admin);
        act(job, admin);
        set_admin(job, NULL);
        topic_admin_free(&admin);
    }
    mr_assert(loop_post(job->loop, answer, job) == 0); /* the loop outlives it: see the end */
    return NULL;
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void job_free(struct job *job)
{
    group_offsets_free(job->changes, job->change_count);
    group_offsets_free(job->list, job->list_count);
    props_deinit(&job->client);
    providers_free(&job->providers);
    pthread_mutex_destroy(&job->lock);
    free(job->group);
    free(job);
}

static void unlink_job(struct job *job)
{
    struct job **at = &job->so->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    if (job->running)
        job->so->running--;
    else
        job->so->waiting--;
}

static void tell(struct job *job)
{
    struct group_offset *list = job->err.code == 0 ? job->list : NULL;
    size_t count = list != NULL ? job->list_count : 0;

    if (list != NULL) {
        job->list = NULL;
        job->list_count = 0;
    }
    job->done(job->arg, list, count, job->err.code != 0 ? &job->err : NULL);
}

/* Posted by the thread, as its last act. */
static void answer(void *arg)
{
    struct job *job = arg;
    struct sink_offsets *so = job->so;

    if (so != NULL) {
        pthread_join(job->thread, NULL);
        unlink_job(job);
        tell(job);
        run_next(so);
    }
    job_free(job);
}

/* Born with all signals blocked: they are the loop's. */
static int start(struct job *job)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&job->thread, NULL, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void run_job(struct job *job)
{
    job->so->waiting--;
    job->so->running++;
    job->running = true;
    errno = start(job);
    if (errno == 0)
        return;
    err_errno(&job->err, "no thread for the question");
    unlink_job(job);
    tell(job);
    job_free(job);
}

static void run_next(struct sink_offsets *so)
{
    while (so->waiting > 0 && so->running < RUNNING_MAX) {
        struct job *job = so->jobs;

        while (job->running)
            job = job->next;
        run_job(job);
    }
}

static struct job *job_new(struct sink_offsets *so, const struct sink_offsets_job *from)
{
    struct job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    job->so = so;
    job->loop = so->loop;
    job->act = from->act;
    job->until_ms = clock_ms() + so->timeout_ms;
    job->group = text_dup(from->group);
    job->providers = providers_ref(from->providers);
    mr_assert(props_copy(&job->client, from->client) == 0);
    job->changes = calloc(from->count + 1, sizeof(*job->changes));
    mr_assert(job->changes != NULL);
    for (size_t i = 0; i < from->count; i++) {
        job->changes[i] = from->changes[i];
        job->changes[i].topic = text_dup(from->changes[i].topic);
    }
    job->change_count = from->count;
    pthread_mutex_init(&job->lock, NULL);
    return job;
}

void sink_offsets_ask(struct sink_offsets *so, const struct sink_offsets_job *from,
                      sink_offsets_done done, void *arg)
{
    struct mr_error full = {0};
    struct job *job, **at = &so->jobs;

    loop_assert_owner(so->loop);
    if (so->waiting >= WAITING_MAX) {
        mr_fail(&full, MR_ERR_FULL, "more than %d requests for offsets wait for Kafka",
                WAITING_MAX);
        done(arg, NULL, 0, &full);
        return;
    }
    job = job_new(so, from);
    job->done = done;
    job->arg = arg;
    while (*at != NULL)
        at = &(*at)->next;
    *at = job;
    so->waiting++;
    run_next(so);
}

/* --- life ------------------------------------------------------------------------------------- */

struct sink_offsets *sink_offsets_new(struct loop *loop, int64_t timeout_ms)
{
    struct sink_offsets *so = calloc(1, sizeof(*so));

    mr_assert(so != NULL);
    so->loop = loop;
    so->timeout_ms = timeout_ms;
    return so;
}

static void call_off(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    job->called_off = true;
    if (job->admin != NULL)
        topic_admin_cancel(job->admin);
    pthread_mutex_unlock(&job->lock);
}

/* The loop runs what threads have posted, also when it is freed: that frees their jobs. */
void sink_offsets_free(struct sink_offsets **sop)
{
    struct sink_offsets *so = *sop;

    *sop = NULL;
    for (struct job *job = so != NULL ? so->jobs : NULL; job != NULL; job = job->next)
        if (job->running)
            call_off(job);
    while (so != NULL && so->jobs != NULL) {
        struct job *job = so->jobs;
        bool running = job->running;

        if (running)
            pthread_join(job->thread, NULL);
        unlink_job(job);
        job->so = NULL;
        err_clear(&job->err);
        mr_fail(&job->err, MR_ERR_CLOSED, "Worker is shutting down");
        tell(job);
        if (!running)
            job_free(job);
    }
    free(so);
}
