/* SPDX-License-Identifier: Apache-2.0 */
/* steady_wait: waits of librdkafka's end when they should, whatever the wall clock does meanwhile.
 * That clock is the test's here (--wrap=clock_gettime). */
#include "kafka/steady_wait.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 100
#define BOUND_MS 60000 /* far below an hour */
#define HOUR_S 3600

static int64_t step_s;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = __real_clock_gettime(clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += step_s;
    return rc;
}

static struct timespec in_ms(int ms)
{
    struct timespec until;

    assert_int_equal(timespec_get(&until, TIME_UTC), TIME_UTC);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return until;
}

struct waiter {
    cnd_t cond;
    mtx_t mutex;
};

static void waiter_init(struct waiter *w)
{
    assert_int_equal(cnd_init(&w->cond), thrd_success);
    assert_int_equal(mtx_init(&w->mutex, mtx_plain), thrd_success);
}

static void waiter_deinit(struct waiter *w)
{
    cnd_destroy(&w->cond);
    mtx_destroy(&w->mutex);
}

static int wait_until(struct waiter *w, const struct timespec *until)
{
    int rc;

    assert_int_equal(mtx_lock(&w->mutex), thrd_success);
    do
        rc = cnd_timedwait(&w->cond, &w->mutex, until);
    while (rc == thrd_success); /* nobody signals */
    assert_int_equal(mtx_unlock(&w->mutex), thrd_success);
    return rc;
}

static void a_wait_ends_in_time_whichever_way_the_clock_is_set(void **state)
{
    static const int64_t steps[] = {-HOUR_S, HOUR_S, 0};
    struct waiter w;

    (void)state;
    steady_wait_begin();
    waiter_init(&w);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct timespec until = in_ms(WAIT_MS);
        int64_t from_ms = clock_ms();

        step_s = steps[i];
        assert_int_equal(wait_until(&w, &until), thrd_timedout);
        assert_in_range(clock_ms() - from_ms, WAIT_MS - 2, BOUND_MS);
    }
    waiter_deinit(&w);
}

static void moments_that_never_were_are_over(void **state)
{
    struct waiter w;

    (void)state;
    waiter_init(&w);
    assert_int_equal(wait_until(&w, &(struct timespec){0}), thrd_timedout);
    waiter_deinit(&w);
}

static int signaller(void *arg)
{
    struct waiter *w = arg;

    mtx_lock(&w->mutex);
    cnd_signal(&w->cond);
    mtx_unlock(&w->mutex);
    return 0;
}

static void a_signal_ends_a_wait_that_has_no_end(void **state)
{
    struct timespec never = {.tv_sec = (time_t)(INT64_MAX / 1000)};
    struct waiter w;
    thrd_t thread;

    (void)state;
    waiter_init(&w);
    mtx_lock(&w.mutex);
    assert_int_equal(thrd_create(&thread, signaller, &w), thrd_success);
    assert_int_equal(cnd_timedwait(&w.cond, &w.mutex, &never), thrd_success);
    mtx_unlock(&w.mutex);
    thrd_join(thread, NULL);
    waiter_deinit(&w);
}

/* Whatever it is linked with. */
static void assert_ours(const char *name)
{
    Dl_info found, own;
    void *at = dlsym(RTLD_DEFAULT, name);

    assert_non_null(at);
    assert_int_not_equal(dladdr(at, &found), 0);
    assert_int_not_equal(dladdr((void *)(uintptr_t)&steady_wait_begin, &own), 0);
    assert_ptr_equal(found.dli_fbase, own.dli_fbase);
}

static void librdkafka_finds_ours_before_the_c_library_s(void **state)
{
    (void)state;
    assert_ours("cnd_timedwait");
    assert_ours("timespec_get");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_in_time_whichever_way_the_clock_is_set),
        cmocka_unit_test(moments_that_never_were_are_over),
        cmocka_unit_test(a_signal_ends_a_wait_that_has_no_end),
        cmocka_unit_test(librdkafka_finds_ours_before_the_c_library_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
