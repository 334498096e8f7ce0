/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a reference names may lie on a file system that hangs, so each configuration is
 * resolved on a thread of its own.
 *
 * Loop and thread share a job with two references; the thread writes its result and rings the job's
 * eventfd, and knows nothing of the loop: whoever waits may go away, and the last of both frees the
 * job. A job that hangs costs its asker the request's deadline, and one of JOBS_MAX places. */
#include "worker/herder/validate/resolver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

#define JOBS_MAX 64

struct job {
    atomic_int refs;
    struct providers *providers; /* its own share */
    int ring;
    struct props config;
    struct props resolved;
    bool done; /* resolved is there, or err */
    struct mr_error err;
    struct secrets *secrets;
    struct map *why; /* references stay as they are */
};

/* The loop's side. */
struct asked {
    struct resolver *resolver;
    struct job *job; /* NULL: no memory for it */
    struct loop_fd *watch;
    struct loop_timer failed; /* a job that could not begin is answered from here */
    struct mr_error err;      /* likewise */
    resolver_fn fn;
    void *arg;
    struct asked *next;
    struct asked **prev;
};

struct resolver {
    struct loop *loop;
    const struct providers *providers;
    struct asked *first;
    size_t count;
};

/* --- the job ---------------------------------------------------------------------------------- */

static void job_unref(struct job *job)
{
    if (job == NULL || atomic_fetch_sub(&job->refs, 1) > 1)
        return;
    props_deinit(&job->config);
    props_deinit(&job->resolved);
    secrets_free(&job->secrets);
    map_free(&job->why, free);
    providers_free(&job->providers);
    if (job->ring >= 0)
        close(job->ring);
    free(job);
}

static void *run(void *arg)
{
    struct job *job = arg;
    struct provider_job what = {.in = &job->config, .secrets = job->secrets, .why = job->why};
    uint64_t one = 1;

    (void)providers_resolve(job->providers, &what, &job->resolved, &job->err);
    mr_assert(write(job->ring, &one, sizeof(one)) == (ssize_t)sizeof(one));
    job_unref(job);
    return NULL;
}

static struct job *job_new(const struct providers *providers, const struct props *config)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL)
        return NULL;
    atomic_store(&job->refs, 1);
    job->ring = -1;
    if (props_copy(&job->config, config) != 0) {
        job_unref(job);
        return NULL;
    }
    job->providers = providers_ref(providers);
    job->secrets = secrets_new();
    job->why = map_new();
    props_init(&job->resolved);
    job->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return job;
}

static int job_start(struct job *job, struct mr_error *err)
{
    atomic_fetch_add(&job->refs, 1);
    errno = thread_start_aside(run, job);
    if (errno == 0)
        return 0;
    job_unref(job);
    return err_errno(err, "no thread to ask config providers on");
}

/* --- on the loop ------------------------------------------------------------------------------ */

static void answer(struct asked *asked, const struct mr_error *err)
{
    struct props empty;

    props_init(&empty);
    if (asked->watch != NULL)
        loop_fd_remove(&asked->watch);
    loop_timer_cancel(&asked->failed);
    *asked->prev = asked->next;
    if (asked->next != NULL)
        asked->next->prev = asked->prev;
    asked->resolver->count--;
    asked->fn(asked->arg, err == NULL ? &asked->job->resolved : &empty,
              err == NULL ? &asked->job->secrets : NULL, err == NULL ? &asked->job->why : NULL,
              err);
    job_unref(asked->job);
    free(asked);
}

static void on_rung(void *arg, uint32_t events)
{
    struct asked *asked = arg;
    struct mr_error err = asked->job->err;
    uint64_t count;

    (void)events;
    if (read(asked->job->ring, &count, sizeof(count)) == (ssize_t)sizeof(count))
        answer(asked, err.code != 0 ? &err : NULL);
}

static void on_failed(void *arg)
{
    struct asked *asked = arg;
    struct mr_error err = asked->err;

    answer(asked, &err);
}

static int begin(struct resolver *resolver, struct asked *asked)
{
    struct mr_error *err = &asked->err;

    if (asked->job == NULL)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory");
    if (resolver->count > JOBS_MAX)
        return mr_fail(err, MR_ERR_FULL,
                       "%d configurations wait for config providers already; try again later",
                       JOBS_MAX);
    if (asked->job->ring < 0)
        return err_errno(err, "no descriptor to ask config providers with");
    asked->watch = loop_fd_add(resolver->loop, asked->job->ring, EPOLLIN, on_rung, asked, err);
    return asked->watch != NULL ? job_start(asked->job, err) : MR_ERR_IO;
}

void resolver_ask(struct resolver *resolver, const struct props *config, resolver_fn fn, void *arg)
{
    struct asked *asked = calloc(1, sizeof(*asked));

    mr_assert(asked != NULL);
    *asked = (struct asked){.resolver = resolver,
                            .job = job_new(resolver->providers, config),
                            .fn = fn,
                            .arg = arg,
                            .next = resolver->first,
                            .prev = &resolver->first};
    if (resolver->first != NULL)
        resolver->first->prev = &asked->next;
    resolver->first = asked;
    resolver->count++;
    if (begin(resolver, asked) != 0)
        loop_timer_start(resolver->loop, &asked->failed, 0, on_failed, asked);
}

struct resolver *resolver_new(struct loop *loop, const struct providers *providers)
{
    struct resolver *resolver = calloc(1, sizeof(*resolver));

    mr_assert(resolver != NULL);
    *resolver = (struct resolver){.loop = loop, .providers = providers};
    return resolver;
}

void resolver_free(struct resolver **resolverp)
{
    struct resolver *resolver = *resolverp;
    struct mr_error err = {0};

    *resolverp = NULL;
    if (resolver == NULL)
        return;
    mr_fail(&err, MR_ERR_CLOSED, "the worker is shutting down");
    while (resolver->first != NULL)
        answer(resolver->first, &err);
    free(resolver);
}
