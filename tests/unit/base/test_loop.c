/* SPDX-License-Identifier: Apache-2.0 */
/* loop: order of timers, descriptors that are removed while served, messages from other threads. */
#include "base/clock.h"
#include "base/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct loop *loop;
    char seen[64];
    struct loop_timer timers[8];
    struct loop_fd *watch[2];
    int pipes[2][2];
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.loop = loop_new(NULL);
    *state = &f;
    return f.loop == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_free(&f->loop);
    return 0;
}

static void note(struct fixture *f, char c)
{
    size_t n = strlen(f->seen);

    if (n + 1 < sizeof(f->seen))
        f->seen[n] = c;
}

static void note_a(void *arg)
{
    note(arg, 'a');
}
static void note_b(void *arg)
{
    note(arg, 'b');
}
static void note_c(void *arg)
{
    note(arg, 'c');
}

static void stop(void *arg)
{
    struct fixture *f = arg;

    loop_stop(f->loop);
}

static void timers_run_in_order_and_once(void **state)
{
    struct fixture *f = *state;
    int64_t start = clock_ms();

    loop_timer_start(f->loop, &f->timers[0], 40, note_c, f);
    loop_timer_start(f->loop, &f->timers[1], 5, note_a, f);
    loop_timer_start(f->loop, &f->timers[2], 20, note_b, f);
    loop_timer_start(f->loop, &f->timers[3], 10, note_c, f);
    loop_timer_start(f->loop, &f->timers[4], 60, stop, f);
    loop_timer_cancel(&f->timers[3]);
    loop_timer_start(f->loop, &f->timers[0], 50, note_c, f);
    loop_run(f->loop);
    assert_string_equal(f->seen, "abc");
    assert_true(clock_ms() - start >= 59);
}

static void rearm_now(void *arg)
{
    struct fixture *f = arg;

    note(f, 'r');
    if (strlen(f->seen) < 40)
        loop_timer_start(f->loop, &f->timers[0], 0, rearm_now, f);
}

static void a_timer_that_rearms_itself_does_not_starve_the_rest(void **state)
{
    struct fixture *f = *state;

    loop_timer_start(f->loop, &f->timers[0], 0, rearm_now, f);
    assert_int_equal(loop_post(f->loop, note_a, f), 0);
    loop_timer_start(f->loop, &f->timers[1], 30, stop, f);
    loop_run(f->loop);
    assert_in_range(strchr(f->seen, 'a') - f->seen, 0, 2);
}

static void remove_both(void *arg, uint32_t events)
{
    struct fixture *f = arg;

    (void)events;
    note(f, 'x');
    loop_fd_remove(&f->watch[0]);
    loop_fd_remove(&f->watch[1]);
    loop_stop(f->loop);
}

static void a_watch_removed_in_its_round_is_not_called(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(f->pipes[i]), 0);
        f->watch[i] = loop_fd_add(f->loop, f->pipes[i][0], EPOLLIN, remove_both, f, NULL);
        assert_non_null(f->watch[i]);
        assert_int_equal(write(f->pipes[i][1], "x", 1), 1);
    }
    loop_run(f->loop);
    assert_string_equal(f->seen, "x");
    for (int i = 0; i < 2; i++)
        close(f->pipes[i][0]), close(f->pipes[i][1]);
}

static void no_interest_means_no_calls_even_after_a_hang_up(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pipe(f->pipes[0]), 0);
    f->watch[0] = loop_fd_add(f->loop, f->pipes[0][0], EPOLLIN, remove_both, f, NULL);
    loop_fd_events(f->watch[0], 0);
    close(f->pipes[0][1]);
    loop_timer_start(f->loop, &f->timers[0], 20, stop, f);
    loop_run(f->loop);
    assert_string_equal(f->seen, "");
    loop_fd_events(f->watch[0], EPOLLIN);
    loop_run(f->loop);
    assert_string_equal(f->seen, "x");
    close(f->pipes[0][0]);
}

static void *post_many(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 1000; i++)
        assert_int_equal(loop_post(f->loop, note_b, f), 0);
    loop_post(f->loop, stop, f);
    return NULL;
}

static void posts_of_another_thread_all_run_on_the_loop(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    pthread_create(&thread, NULL, post_many, f);
    loop_run(f->loop);
    pthread_join(thread, NULL);
    assert_int_equal(strlen(f->seen), sizeof(f->seen) - 1);
}

static void what_was_posted_before_free_still_runs(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(loop_post(f->loop, note_a, f), 0);
    loop_free(&f->loop);
    assert_string_equal(f->seen, "a");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(timers_run_in_order_and_once),
        T(a_timer_that_rearms_itself_does_not_starve_the_rest),
        T(a_watch_removed_in_its_round_is_not_called),
        T(no_interest_means_no_calls_even_after_a_hang_up),
        T(posts_of_another_thread_all_run_on_the_loop),
        T(what_was_posted_before_free_still_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
