/* SPDX-License-Identifier: Apache-2.0 */
/* What takes its time with very many offsets, and waits for nothing: done on a thread of its own,
 * one job after another, so that the loop answers others meanwhile. Owner: the worker's loop. */
#ifndef WORKER_OFFSET_JOBS_H
#define WORKER_OFFSET_JOBS_H

#include "base/loop.h"

struct offset_jobs;

/* work: on the thread; arg, and whatever hangs on it, is the thread's alone until then. back: on the
 * loop, exactly once; done: false: it was called off, and work did not run. */
struct offset_job {
    void (*work)(void *arg);
    void (*back)(void *arg, bool done);
    void *arg;
};

struct offset_jobs *offset_jobs_new(struct loop *loop);
/* All that are left come back now; the one that runs is waited for. */
void offset_jobs_free(struct offset_jobs **jobs);

/* Never comes back inside this call. */
void offset_jobs_run(struct offset_jobs *jobs, const struct offset_job *job);

#endif
