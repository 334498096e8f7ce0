/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOADed into a worker and what it starts: a wall clock of its own, so that a test can step
 * it while the machine's stays as it is. The file named by CLOCK_SHIM_FILE holds an int64_t, in
 * seconds, that is added to CLOCK_REALTIME wherever it is read.
 *
 * Waits until a moment of that clock are kept as the kernel would keep them if the clock itself
 * were stepped: a thread that waits already wakes early when the clock is set forward, and late
 * when it is set back. They end a slice early as spurious wake-ups, which a condition may always
 * do, and the caller looks at the clock and waits again. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define SLICE_NS 50000000LL
#define SECOND_NS 1000000000LL

static const volatile int64_t *offset;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_cond)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_cnd)(cnd_t *, mtx_t *, const struct timespec *);

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void start(void)
{
    static const int64_t none;
    const char *file = getenv("CLOCK_SHIM_FILE");
    int fd = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    *(void **)&real_gettime = next("clock_gettime");
    *(void **)&real_cond = next("pthread_cond_timedwait");
    *(void **)&real_cnd = next("cnd_timedwait");
    offset = map == MAP_FAILED ? &none : map;
}

static int64_t offset_s(void)
{
    return offset == NULL ? 0 : *offset;
}

static void read_wall(struct timespec *now)
{
    if (real_gettime == NULL)
        start();
    real_gettime(CLOCK_REALTIME, now);
    now->tv_sec += (time_t)offset_s();
}

/* --- reading ---------------------------------------------------------------------------------- */

SHOWN int clock_gettime(clockid_t id, struct timespec *now)
{
    int rc;

    if (real_gettime == NULL)
        start();
    rc = real_gettime(id, now);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += (time_t)offset_s();
    return rc;
}

SHOWN int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec wall;

    (void)zone;
    read_wall(&wall);
    now->tv_sec = wall.tv_sec;
    now->tv_usec = (suseconds_t)(wall.tv_nsec / 1000);
    return 0;
}

SHOWN time_t time(time_t *out)
{
    struct timespec wall;

    read_wall(&wall);
    if (out != NULL)
        *out = wall.tv_sec;
    return wall.tv_sec;
}

SHOWN int timespec_get(struct timespec *out, int base)
{
    if (base != TIME_UTC)
        return 0;
    read_wall(out);
    return base;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* The end of the next slice by the machine's clock. false: the moment has come. */
static int slice(const struct timespec *until, struct timespec *end)
{
    struct timespec now;
    int64_t left_ns, sum;

    read_wall(&now);
    left_ns = (until->tv_sec - now.tv_sec) * SECOND_NS + until->tv_nsec - now.tv_nsec;
    real_gettime(CLOCK_REALTIME, &now);
    if (left_ns > SLICE_NS)
        left_ns = SLICE_NS;
    sum = now.tv_nsec + (left_ns > 0 ? left_ns : 0);
    end->tv_sec = now.tv_sec + (time_t)(sum / SECOND_NS);
    end->tv_nsec = (long)(sum % SECOND_NS);
    return left_ns < SLICE_NS;
}

/* glibc keeps the clock of a condition in the second bit of this word. */
static int is_monotonic(const pthread_cond_t *cond)
{
    return (cond->__data.__wrefs & 2) != 0;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict until)
{
    struct timespec end;
    int last, rc;

    if (is_monotonic(cond))
        return real_cond(cond, mutex, until);
    last = slice(until, &end);
    rc = real_cond(cond, mutex, &end);
    return rc == 0 || last ? rc : 0;
}

SHOWN int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
                        const struct timespec *restrict until)
{
    struct timespec end;
    int last = slice(until, &end), rc = real_cnd(cond, mutex, &end);

    return rc == thrd_success || last ? rc : thrd_success;
}
