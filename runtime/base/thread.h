/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, as this runtime starts them. Both give 0 or an errno value. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Born with all signals blocked: they are the loop's. Joined or detached by its maker. */
int thread_start(pthread_t *out, void *(*fn)(void *), void *arg);

/* One that nobody waits for, with the signals of its maker: a plugin's crash in it must be seen. */
int thread_start_aside(void *(*fn)(void *), void *arg);

#endif
