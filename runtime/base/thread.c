/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/thread.h"

#include "base/err.h"

#include <locale.h>
#include <signal.h>

int thread_start(pthread_t *out, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(out, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int thread_start_aside(void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return rc;
}

void thread_c_locale(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", NULL); /* one for all, never freed */

    mr_assert(c != NULL);
    uselocale(c);
}
