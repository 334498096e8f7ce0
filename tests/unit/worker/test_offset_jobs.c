/* SPDX-License-Identifier: Apache-2.0 */
/* offset_jobs: what is done beside the loop comes back to it, in order and once, also when it is
 * called off. */
#include "worker/herder/offsets/offset_jobs.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JOBS 100

struct fixture {
    struct loop *loop;
    struct offset_jobs *jobs;
    pthread_t own; /* the loop's */
    char worked[JOBS], back[JOBS], done[JOBS];
    size_t works, backs;
    sem_t began, go;
};

struct one {
    struct fixture *f;
    int number;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->loop = loop_new(NULL);
    f->jobs = offset_jobs_new(f->loop);
    f->own = pthread_self();
    sem_init(&f->began, 0, 0);
    sem_init(&f->go, 0, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    offset_jobs_free(&f->jobs);
    loop_free(&f->loop);
    sem_destroy(&f->began);
    sem_destroy(&f->go);
    free(f);
    return 0;
}

static void work(void *arg)
{
    struct one *one = arg;

    assert_false(pthread_equal(pthread_self(), one->f->own));
    one->f->worked[one->f->works++] = (char)one->number;
}

static void work_slowly(void *arg)
{
    struct one *one = arg;

    sem_post(&one->f->began);
    sem_wait(&one->f->go);
    work(arg);
}

static void back(void *arg, bool done)
{
    struct one *one = arg;
    struct fixture *f = one->f;

    assert_true(pthread_equal(pthread_self(), f->own));
    f->back[f->backs] = (char)one->number;
    f->done[f->backs++] = done;
    if (f->backs == JOBS)
        loop_stop(f->loop);
}

static void run(struct fixture *f, struct one *one, int number, void (*how)(void *arg))
{
    *one = (struct one){f, number};
    offset_jobs_run(f->jobs, &(struct offset_job){how, back, one});
}

static void jobs_come_back_in_the_order_of_asking(void **state)
{
    struct fixture *f = *state;
    struct one all[JOBS];

    for (int i = 0; i < JOBS; i++)
        run(f, &all[i], i, work);
    assert_int_equal(f->backs, 0);
    loop_run(f->loop);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(f->worked[i], i);
        assert_int_equal(f->back[i], i);
        assert_true(f->done[i]);
    }
}

/* One is at work when the end comes, and the others have not begun. */
static void what_is_left_is_called_off_at_the_end(void **state)
{
    struct fixture *f = *state;
    struct one all[3];

    run(f, &all[0], 0, work_slowly);
    run(f, &all[1], 1, work);
    run(f, &all[2], 2, work);
    sem_wait(&f->began);
    sem_post(&f->go);
    offset_jobs_free(&f->jobs);
    assert_int_equal(f->backs, 3);
    for (size_t i = 0; i < 3; i++) {
        bool worked = memchr(f->worked, f->back[i], f->works) != NULL;

        assert_int_equal(f->done[i], worked);
        assert_true(worked || f->back[i] != 0); /* which had begun */
    }
}

static void without_a_job_there_is_no_thread_and_nothing_to_end(void **state)
{
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_come_back_in_the_order_of_asking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_left_is_called_off_at_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_job_there_is_no_thread_and_nothing_to_end, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
