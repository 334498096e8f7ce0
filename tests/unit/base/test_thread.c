/* SPDX-License-Identifier: Apache-2.0 */
/* thread: which signals a thread is born with, and who waits for it. */
#include "base/thread.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

struct birth {
    sem_t seen;
    bool deaf; /* to SIGTERM */
};

static void *look(void *arg)
{
    struct birth *birth = arg;
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    birth->deaf = sigismember(&mask, SIGTERM) == 1;
    sem_post(&birth->seen);
    return birth;
}

static int set_up(void **state)
{
    static struct birth birth;

    birth = (struct birth){.deaf = false};
    *state = &birth;
    return sem_init(&birth.seen, 0, 0);
}

static bool hears(void)
{
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGTERM) == 0;
}

static void a_thread_is_deaf_and_joined_and_its_maker_hears_as_before(void **state)
{
    struct birth *birth = *state;
    pthread_t thread;
    void *gave = NULL;

    assert_int_equal(thread_start(&thread, look, birth), 0);
    assert_int_equal(pthread_join(thread, &gave), 0);
    assert_ptr_equal(gave, birth);
    assert_true(birth->deaf);
    assert_true(hears());
}

static void one_aside_hears_what_its_maker_hears(void **state)
{
    struct birth *birth = *state;

    assert_int_equal(thread_start_aside(look, birth), 0);
    assert_int_equal(sem_wait(&birth->seen), 0);
    assert_false(birth->deaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_thread_is_deaf_and_joined_and_its_maker_hears_as_before, set_up),
        cmocka_unit_test_setup(one_aside_hears_what_its_maker_hears, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
