/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into the SAN=thread variant only. Debian's librdkafka locks by C11's threads, which
 * ThreadSanitizer does not know, so everything that librdkafka orders would look like a race. Here
 * they are by pthread, which it knows. In glibc the C11 types are the pthread ones by another
 * name. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's cnd_t is a pthread_cond_t");

#define SHIM __attribute__((visibility("default")))

static int result(int rc)
{
    switch (rc) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    default:
        return thrd_error;
    }
}

SHIM int mtx_init(mtx_t *m, int type)
{
    pthread_mutexattr_t attr;
    int rc;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE
                                                                 : PTHREAD_MUTEX_NORMAL);
    rc = pthread_mutex_init((pthread_mutex_t *)m, &attr);
    pthread_mutexattr_destroy(&attr);
    return result(rc);
}

SHIM void mtx_destroy(mtx_t *m)
{
    pthread_mutex_destroy((pthread_mutex_t *)m);
}

SHIM int mtx_lock(mtx_t *m)
{
    return result(pthread_mutex_lock((pthread_mutex_t *)m));
}

SHIM int mtx_trylock(mtx_t *m)
{
    return result(pthread_mutex_trylock((pthread_mutex_t *)m));
}

SHIM int mtx_unlock(mtx_t *m)
{
    return result(pthread_mutex_unlock((pthread_mutex_t *)m));
}

SHIM int cnd_init(cnd_t *c)
{
    return result(pthread_cond_init((pthread_cond_t *)c, NULL));
}

SHIM void cnd_destroy(cnd_t *c)
{
    pthread_cond_destroy((pthread_cond_t *)c);
}

SHIM int cnd_signal(cnd_t *c)
{
    return result(pthread_cond_signal((pthread_cond_t *)c));
}

SHIM int cnd_broadcast(cnd_t *c)
{
    return result(pthread_cond_broadcast((pthread_cond_t *)c));
}

SHIM int cnd_wait(cnd_t *c, mtx_t *m)
{
    return result(pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m));
}

/* Where the room kafka is linked, its own does (runtime/kafka/steady_wait.c). */
SHIM __attribute__((weak)) int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m,
                                             const struct timespec *restrict until)
{
    return result(pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, until));
}

struct start {
    thrd_start_t fn;
    void *arg;
};

static void *run(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    return (void *)(long)start.fn(start.arg);
}

SHIM int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
    struct start *start = malloc(sizeof(*start));
    int rc;

    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){fn, arg};
    rc = pthread_create((pthread_t *)thread, NULL, run, start);
    if (rc != 0)
        free(start);
    return rc == EAGAIN ? thrd_nomem : result(rc);
}

SHIM int thrd_join(thrd_t thread, int *code)
{
    void *value = NULL;
    int rc = pthread_join(thread, &value);

    if (rc == 0 && code != NULL)
        *code = (int)(long)value;
    return result(rc);
}

SHIM void call_once(once_flag *flag, void (*fn)(void))
{
    pthread_once((pthread_once_t *)flag, fn);
}
