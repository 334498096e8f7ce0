/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, as this runtime starts them. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Born with all signals blocked: they are the loop's. Joined or detached by its maker. 0 or an
 * errno value, as below. */
int thread_start(pthread_t *out, void *(*fn)(void *), void *arg);

/* One that nobody waits for, with the signals of its maker: a plugin's crash in it must be seen. */
int thread_start_aside(void *(*fn)(void *), void *arg);

/* The calling thread keeps to the C locale, whatever locale a plugin or a library sets for the
 * process: numbers that it reads and writes have a point. For main and threads that run plugins. */
void thread_c_locale(void);

#endif
