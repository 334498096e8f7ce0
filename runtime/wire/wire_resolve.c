/* SPDX-License-Identifier: Apache-2.0 */
/* getaddrinfo may block for as long as the system's resolver likes, so it runs on a thread of its
 * own.
 *
 * Loop and thread share one job with two references. The thread writes the result and rings the
 * job's eventfd; it knows nothing of the loop, so whoever waits may go away at any time, and the
 * last of both frees the job. One job lives as long as one connection is being made: that bounds
 * the threads, besides those that the resolver holds in its own time-outs. */
#include "wire/wire_resolve.h"

#include "base/text.h"
#include "base/thread.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job {
    atomic_int refs;
    int ring;
    char *host;
    char port[6];
    int flags;
    int rc; /* of getaddrinfo */
    struct addrinfo *addresses;
};

struct wire_resolve {
    struct job *job;
    struct loop_fd *watch;
    wire_resolve_fn fn;
    void *arg;
};

static void job_unref(struct job *job)
{
    if (atomic_fetch_sub(&job->refs, 1) > 1)
        return;
    if (job->addresses != NULL)
        freeaddrinfo(job->addresses);
    if (job->ring >= 0)
        close(job->ring);
    free(job->host);
    free(job);
}

static void look_up(struct job *job)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | job->flags};
    uint64_t one = 1;

    job->rc = getaddrinfo(job->host, job->port, &hints, &job->addresses);
    if (write(job->ring, &one, sizeof(one)) < 0)
        mr_assert(false);
}

static void *run(void *arg)
{
    struct job *job = arg;

    look_up(job);
    job_unref(job);
    return NULL;
}

static void rung(void *arg, uint32_t events)
{
    struct wire_resolve *r = arg;
    struct job *job = r->job;
    struct mr_error err = {0};
    uint64_t count;

    (void)events;
    if (read(job->ring, &count, sizeof(count)) < 0)
        return;
    loop_fd_events(r->watch, 0);
    if (job->rc != 0)
        mr_fail(&err, MR_ERR_IO, "the host name %s can't be resolved: %s", job->host,
                job->rc == EAI_SYSTEM ? "system error" : gai_strerror(job->rc));
    r->fn(r->arg, job->rc == 0 ? job->addresses : NULL, job->rc == 0 ? NULL : &err);
}

static bool is_number(const char *host)
{
    return strchr(host, ':') != NULL || host[strspn(host, "0123456789.")] == '\0';
}

/* Runs it here when nothing is to be asked; else on a detached thread, with the signals left to
 * others. */
static int start(struct job *job, struct mr_error *err)
{
    int rc;

    if (is_number(job->host)) {
        job->flags = AI_NUMERICHOST;
        look_up(job);
        return 0;
    }
    atomic_store(&job->refs, 2);
    rc = thread_start_aside(run, job);
    if (rc == 0)
        return 0;
    atomic_store(&job->refs, 1);
    return mr_fail(err, MR_ERR_IO, "no thread to resolve the host name %s: %s", job->host,
                   strerror(rc));
}

static struct job *job_new(const char *host, uint16_t port, struct mr_error *err)
{
    struct job *job = calloc(1, sizeof(*job));

    mr_assert(job != NULL);
    atomic_store(&job->refs, 1);
    job->host = text_dup(host);
    snprintf(job->port, sizeof(job->port), "%u", port);
    job->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->ring >= 0)
        return job;
    err_errno(err, "no descriptor to resolve a host name with");
    job_unref(job);
    return NULL;
}

struct wire_resolve *wire_resolve_new(struct loop *loop, const char *host, uint16_t port,
                                      wire_resolve_fn fn, void *arg, struct mr_error *err)
{
    struct wire_resolve *r;
    struct job *job = job_new(host, port, err);

    if (job == NULL)
        return NULL;
    r = calloc(1, sizeof(*r));
    mr_assert(r != NULL);
    *r = (struct wire_resolve){.job = job, .fn = fn, .arg = arg};
    r->watch = loop_fd_add(loop, job->ring, EPOLLIN, rung, r, err);
    if (r->watch == NULL || start(job, err) != 0)
        wire_resolve_free(&r);
    return r;
}

void wire_resolve_free(struct wire_resolve **rp)
{
    struct wire_resolve *r = *rp;

    *rp = NULL;
    if (r == NULL)
        return;
    loop_fd_remove(&r->watch);
    job_unref(r->job);
    free(r);
}
