/* SPDX-License-Identifier: Apache-2.0 */
/* A thread beside the worker's loop, begun with the first job. A job goes to it by a queue and comes
 * back by loop_post; the loop keeps a list of those that have not come back, and answers what is
 * left of it at the end. What was posted finds that it was answered, and frees the job. */
#include "worker/herder/offsets/offset_jobs.h"

#include "base/err.h"
#include "base/queue.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

#define JOBS_MAX 4096 /* more than requests that change or read offsets may wait at a time */

struct listed {
    struct offset_jobs *jobs; /* NULL: it has come back */
    struct listed *next, **prev;
    struct offset_job job;
    bool worked;
};

struct offset_jobs {
    struct loop *loop;
    struct queue *queue; /* NULL: there was no job yet */
    pthread_t thread;
    struct listed *first;
    atomic_bool ending;
};

static void come_back(struct listed *one)
{
    *one->prev = one->next;
    if (one->next != NULL)
        one->next->prev = one->prev;
    one->jobs = NULL;
    one->job.back(one->job.arg, one->worked);
}

static void on_worked(void *arg)
{
    struct listed *one = arg;

    if (one->jobs != NULL)
        come_back(one);
    free(one);
}

static void *run(void *arg)
{
    struct offset_jobs *jobs = arg;
    struct loop *loop = jobs->loop;
    struct listed *one;

    pthread_setname_np(pthread_self(), "offsets");
    while ((one = queue_pop(jobs->queue, -1)) != NULL) {
        if (!atomic_load(&jobs->ending)) {
            one->job.work(one->job.arg);
            one->worked = true;
        }
        mr_assert(loop_post(loop, on_worked, one) == 0); /* the loop outlives it */
    }
    return NULL;
}

static bool begin(struct offset_jobs *jobs)
{
    if (jobs->queue != NULL)
        return true;
    jobs->queue = queue_new(JOBS_MAX);
    if (thread_start(&jobs->thread, run, jobs) == 0)
        return true;
    queue_free(&jobs->queue, NULL);
    return false;
}

void offset_jobs_run(struct offset_jobs *jobs, const struct offset_job *job)
{
    struct listed *one = calloc(1, sizeof(*one));

    mr_assert(one != NULL);
    loop_assert_owner(jobs->loop);
    *one = (struct listed){.jobs = jobs, .next = jobs->first, .prev = &jobs->first, .job = *job};
    if (jobs->first != NULL)
        jobs->first->prev = &one->next;
    jobs->first = one;
    if (begin(jobs) && queue_push(jobs->queue, one) == 0)
        return;
    one->job.work(one->job.arg); /* no thread is to be had: better late than never */
    one->worked = true;
    mr_assert(loop_post(jobs->loop, on_worked, one) == 0);
}

struct offset_jobs *offset_jobs_new(struct loop *loop)
{
    struct offset_jobs *jobs = calloc(1, sizeof(*jobs));

    mr_assert(jobs != NULL);
    jobs->loop = loop;
    return jobs;
}

void offset_jobs_free(struct offset_jobs **jobsp)
{
    struct offset_jobs *jobs = *jobsp;

    *jobsp = NULL;
    if (jobs == NULL)
        return;
    loop_assert_owner(jobs->loop);
    if (jobs->queue != NULL) {
        atomic_store(&jobs->ending, true);
        queue_close(jobs->queue);
        pthread_join(jobs->thread, NULL);
        queue_free(&jobs->queue, NULL);
    }
    while (jobs->first != NULL)
        come_back(jobs->first);
    free(jobs);
}
