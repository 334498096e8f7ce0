/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's threads wait by C11's conditions until a moment of the wall clock: now by
 * timespec_get, and so many milliseconds. When that clock is set back meanwhile, they wait for as
 * much longer: one that should connect anew, or ask who leads a partition, comes back an hour
 * later, and a leader whose reader it is assigns nothing until then (tried: a broker that restarts,
 * and an hour). pthread conditions could be told another clock; C11's can't.
 *
 * So these two functions of the C library are ours, for everything in the process that calls them
 * (the binary's symbols are found first): both go by the wall clock as it was at the beginning, and
 * CLOCK_MONOTONIC since. In librdkafka they serve nothing but such waits; stamps of records and
 * timers are by other clocks. A plugin that waits by C11 and takes the time by timespec_get, as C11
 * has it, is served alike.
 *
 * In glibc C11's types are the pthread ones by another name. */
#include "kafka/steady_wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's cnd_t is a pthread_cond_t");

#define SHOWN __attribute__((visibility("default")))
#define SECOND_NS 1000000000LL

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t ahead_ns; /* of CLOCK_MONOTONIC; written once */

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

static void begin(void)
{
    ahead_ns = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC);
}

void steady_wait_begin(void)
{
    pthread_once(&once, begin);
}

/* --- in place of the C library's -------------------------------------------------------------- */

SHOWN int timespec_get(struct timespec *out, int base)
{
    if (base != TIME_UTC)
        return 0;
    steady_wait_begin();
    *out = to_timespec(read_ns(CLOCK_MONOTONIC) + ahead_ns);
    return base;
}

/* A moment long ago, or one too far away for 64 bits of nanoseconds, is none that this clock has
 * had: at once, or for ever. */
static int64_t monotonic_ns(const struct timespec *until)
{
    if (until->tv_sec >= INT64_MAX / SECOND_NS)
        return INT64_MAX;
    return until->tv_sec * SECOND_NS + until->tv_nsec - ahead_ns;
}

SHOWN int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
                        const struct timespec *restrict until)
{
    struct timespec end;
    int64_t ns;
    int rc;

    steady_wait_begin();
    ns = monotonic_ns(until);
    end = to_timespec(ns > 0 ? ns : 0);
    rc = pthread_cond_clockwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, CLOCK_MONOTONIC,
                                &end);
    return rc == 0 ? thrd_success : rc == ETIMEDOUT ? thrd_timedout : thrd_error;
}
