/* SPDX-License-Identifier: Apache-2.0 */
/* conn_watch: who is shut when there are too many, and who has been what it is for too long. */
#include "base/clock.h"
#include "worker/rest/conn_watch.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 4

struct fixture {
    struct conn_watch *watch;
    struct conn_watched *conn[COUNT];
    int ours[COUNT];
    int theirs[COUNT];
};

static void add(struct fixture *f, int i)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    f->ours[i] = pair[0];
    f->theirs[i] = pair[1];
    f->conn[i] = conn_watch_add(f->watch, pair[0]);
    assert_non_null(f->conn[i]);
}

static bool is_shut(const struct fixture *f, int i)
{
    struct pollfd p = {.fd = f->theirs[i], .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void open_three(struct fixture *f, size_t max)
{
    f->watch = conn_watch_new(&(struct conn_watch_limits){
        .connections_max = max,
        .ms = {[CONN_IDLE] = 1000, [CONN_READING] = 2000, [CONN_WRITING] = 3000},
    });
    for (int i = 0; i < 3; i++)
        add(f, i);
}

static void close_all(struct fixture *f, int count)
{
    assert_int_equal(conn_watch_count(f->watch), count);
    for (int i = 0; i < count; i++) {
        conn_watch_remove(&f->conn[i]);
        assert_null(f->conn[i]);
        close(f->ours[i]);
        close(f->theirs[i]);
    }
    conn_watch_free(&f->watch);
}

static void one_too_many_shuts_an_idle_connection(void **state)
{
    struct fixture f;

    open_three(&f, 3);
    conn_watch_phase(f.conn[0], CONN_READING);
    conn_watch_phase(f.conn[1], CONN_WAITING);
    add(&f, 3);
    assert_false(is_shut(&f, 0));
    assert_false(is_shut(&f, 1));
    assert_true(is_shut(&f, 2));
    assert_false(is_shut(&f, 3));
    close_all(&f, 4);
}

static void without_an_idle_one_a_reader_goes(void **state)
{
    struct fixture f;

    open_three(&f, 3);
    conn_watch_phase(f.conn[0], CONN_WRITING);
    conn_watch_phase(f.conn[1], CONN_READING);
    conn_watch_phase(f.conn[2], CONN_WAITING);
    add(&f, 3);
    assert_true(is_shut(&f, 1));
    assert_false(is_shut(&f, 0) || is_shut(&f, 2) || is_shut(&f, 3));
    close_all(&f, 4);
}

static void requests_that_wait_or_are_answered_are_never_evicted(void **state)
{
    struct fixture f;

    open_three(&f, 3);
    conn_watch_phase(f.conn[0], CONN_WRITING);
    conn_watch_phase(f.conn[1], CONN_WAITING);
    conn_watch_phase(f.conn[2], CONN_WAITING);
    add(&f, 3);
    for (int i = 0; i < 4; i++)
        assert_false(is_shut(&f, i));
    close_all(&f, 4);
}

static void a_sweep_shuts_each_phase_after_its_time(void **state)
{
    struct fixture f;
    int64_t now_ms;

    open_three(&f, 10);
    conn_watch_phase(f.conn[1], CONN_READING);
    conn_watch_phase(f.conn[2], CONN_WAITING);
    now_ms = clock_ms();
    assert_int_equal(conn_watch_sweep(f.watch, now_ms + 900), 0);
    assert_int_equal(conn_watch_sweep(f.watch, now_ms + 1500), 1);
    assert_true(is_shut(&f, 0));
    assert_int_equal(conn_watch_sweep(f.watch, now_ms + 2500), 1);
    assert_true(is_shut(&f, 1));
    assert_int_equal(conn_watch_sweep(f.watch, now_ms + 1000000), 0);
    assert_false(is_shut(&f, 2));
    close_all(&f, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_too_many_shuts_an_idle_connection),
        cmocka_unit_test(without_an_idle_one_a_reader_goes),
        cmocka_unit_test(requests_that_wait_or_are_answered_are_never_evicted),
        cmocka_unit_test(a_sweep_shuts_each_phase_after_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
