/* SPDX-License-Identifier: Apache-2.0 */
/* chan: frames arrive whole and in order, a peer that breaks a rule is cut off with the reason, one
 * that floods gets its share and no more, one that doesn't read can't make us grow. The worker's
 * end is under test, the host's is a bare socket or a second channel. */
#include "base/clock.h"
#include "link/chan.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct loop *loop;
    struct chan *ch;
    int peer; /* the host's end */
    struct loop_timer guard;
    size_t frames;
    size_t wanted_frames; /* the loop stops at this many */
    enum msg_kind last_kind;
    json_t *last_body;
    int closed;
    struct mr_error error; /* of the close */
    bool free_in_frame;
    size_t ticks;
};

static void on_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct fixture *f = arg;

    assert_int_equal(f->closed, 0);
    f->frames++;
    f->last_kind = kind;
    json_decref(f->last_body);
    f->last_body = json_incref((json_t *)(uintptr_t)body);
    if (f->free_in_frame) {
        chan_free(&f->ch);
        loop_stop(f->loop);
    }
    if (f->frames == f->wanted_frames)
        loop_stop(f->loop);
}

static void on_closed(void *arg, const struct mr_error *err)
{
    struct fixture *f = arg;

    f->closed++;
    if (err != NULL)
        f->error = *err;
    loop_stop(f->loop);
}

static const struct chan_events events = {.frame = on_frame, .closed = on_closed};

static void stop(void *arg)
{
    loop_stop(arg);
}

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("nothing happened within a minute");
}

static void run(struct fixture *f)
{
    loop_timer_start(f->loop, &f->guard, 60000, too_long, f);
    loop_run(f->loop);
    loop_timer_cancel(&f->guard);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int pair[2];

    f->loop = loop_new(NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    f->peer = pair[1];
    f->ch = chan_new(f->loop, pair[0], true, &events, f, NULL);
    assert_non_null(f->ch);
    chan_set_state(f->ch, MSG_STATE_OPEN);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    chan_free(&f->ch);
    if (f->peer >= 0)
        close(f->peer);
    loop_free(&f->loop);
    json_decref(f->last_body);
    free(f);
    return 0;
}

static void put(struct fixture *f, enum msg_kind kind, const char *body)
{
    struct buf out;

    buf_init(&out, 8 * 1024 * 1024);
    assert_int_equal(frame_encode(&out, kind, body, strlen(body)), 0);
    assert_int_equal(send(f->peer, out.data, out.len, MSG_NOSIGNAL), out.len);
    buf_deinit(&out);
}

static void expect_broken(struct fixture *f, const char *text)
{
    run(f);
    assert_int_equal(f->closed, 1);
    assert_int_equal(f->error.code, MR_ERR_PROTOCOL);
    if (strstr(f->error.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, f->error.text);
    assert_int_equal(chan_send_take(f->ch, MSG_PING, json_object()), MR_ERR_CLOSED);
}

static void a_frame_in_single_bytes_arrives(void **state)
{
    struct fixture *f = *state;
    struct buf out;

    buf_init(&out, 4096);
    frame_encode(&out, MSG_TASK_STATUS, "{\"task\":7}", 10);
    for (size_t i = 0; i < out.len; i++) {
        send(f->peer, out.data + i, 1, MSG_NOSIGNAL);
        f->wanted_frames = 1;
        if (i + 1 < out.len)
            loop_timer_start(f->loop, &f->guard, 0, stop, f->loop);
        else
            loop_timer_start(f->loop, &f->guard, 60000, too_long, f);
        loop_run(f->loop);
        assert_int_equal(f->frames, i + 1 == out.len);
    }
    loop_timer_cancel(&f->guard);
    assert_int_equal(f->last_kind, MSG_TASK_STATUS);
    assert_int_equal(json_integer_value(json_object_get(f->last_body, "task")), 7);
    buf_deinit(&out);
}

static void an_empty_body_is_an_empty_object(void **state)
{
    struct fixture *f = *state;

    put(f, MSG_PONG, "");
    f->wanted_frames = 1;
    run(f);
    assert_true(json_is_object(f->last_body));
}

static void rubbish_closes_with_the_reason(void **state)
{
    struct fixture *f = *state;

    send(f->peer, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    expect_broken(f, "damaged");
}

static void a_wrong_state_closes(void **state)
{
    struct fixture *f = *state;

    chan_set_state(f->ch, MSG_STATE_HELLO);
    put(f, MSG_TASK_STATUS, "{}");
    expect_broken(f, "TASK_STATUS is not allowed before the greeting");
    assert_int_equal(f->frames, 0);
}

static void an_oversized_frame_closes_at_its_head(void **state)
{
    struct fixture *f = *state;

    send(f->peer, "\xff\xff\xff\x7f\x04\0\0\0", 8, MSG_NOSIGNAL);
    expect_broken(f, "above its cap");
}

static void a_body_that_is_no_object_closes(void **state)
{
    struct fixture *f = *state;

    put(f, MSG_PONG, "[1]");
    expect_broken(f, "not a JSON object");
}

static void a_body_that_is_no_json_closes(void **state)
{
    struct fixture *f = *state;

    put(f, MSG_PONG, "{\"id\":}");
    expect_broken(f, "frame PONG");
}

static void a_body_of_a_million_values_is_not_parsed(void **state)
{
    struct fixture *f = *state;
    size_t len = 1200000;
    char *body = malloc(len + 1);
    struct buf out;
    size_t at = 0;

    memset(body, ',', len);
    for (size_t i = 0; i < len; i += 2)
        body[i] = '1';
    memcpy(body, "{\"entries\":[", 12);
    body[len - 2] = ']';
    body[len - 1] = '}';
    body[len] = '\0';
    buf_init(&out, 2 * len);
    frame_encode(&out, MSG_OFFSETS_PUT, body, len);
    free(body);
    while (at < out.len && f->closed == 0) {
        ssize_t n = send(f->peer, out.data + at, out.len - at, MSG_NOSIGNAL);

        if (n > 0)
            at += (size_t)n;
        else
            assert_int_equal(errno, EAGAIN);
        loop_timer_start(f->loop, &f->guard, 1, stop, f->loop);
        loop_run(f->loop);
    }
    buf_deinit(&out);
    if (f->closed == 0)
        run(f);
    assert_int_equal(f->closed, 1);
    assert_non_null(strstr(f->error.text, "values"));
}

static void what_came_before_the_end_is_delivered_first(void **state)
{
    struct fixture *f = *state;
    struct buf out;

    buf_init(&out, 65536);
    for (int i = 0; i < 500; i++)
        frame_encode(&out, MSG_PONG, "{\"id\":1}", 8);
    assert_int_equal(send(f->peer, out.data, out.len, MSG_NOSIGNAL), out.len);
    buf_deinit(&out);
    /* What we wrote and the peer never read must not turn the end into an error. */
    assert_int_equal(chan_send_take(f->ch, MSG_PING, json_object()), 0);
    close(f->peer);
    f->peer = -1;
    run(f);
    assert_int_equal(f->frames, 500);
    assert_int_equal(f->closed, 1);
    assert_int_equal(f->error.code, 0);
}

static void half_a_frame_at_the_end_is_just_the_end(void **state)
{
    struct fixture *f = *state;

    send(f->peer, "\x05\0\0\0\x09", 5, MSG_NOSIGNAL);
    close(f->peer);
    f->peer = -1;
    run(f);
    assert_int_equal(f->closed, 1);
    assert_int_equal(f->error.code, 0);
}

static void freeing_inside_a_callback_is_safe(void **state)
{
    struct fixture *f = *state;

    f->free_in_frame = true;
    put(f, MSG_PONG, "{}");
    put(f, MSG_PONG, "{}");
    run(f);
    assert_int_equal(f->frames, 1);
    assert_null(f->ch);
    assert_int_equal(f->closed, 0);
}

static void a_peer_that_does_not_read_fills_up(void **state)
{
    struct fixture *f = *state;
    char *text = malloc(1000001);
    size_t sent = 0;
    int rc = 0;

    memset(text, 'x', 1000000);
    text[1000000] = '\0';
    while (rc == 0 && sent < 1000) {
        rc = chan_send_take(f->ch, MSG_OFFSETS, json_pack("{s:s}", "error", text));
        sent += rc == 0;
    }
    assert_int_equal(rc, MR_ERR_FULL);
    assert_in_range(sent, 31, 33);
    assert_false(chan_idle(f->ch));
    /* Small ones are still taken where they fit, and nothing was torn. */
    assert_int_equal(chan_send_take(f->ch, MSG_PING, NULL), 0);
    free(text);
}

static void a_frame_too_large_is_not_sent(void **state)
{
    struct fixture *f = *state;
    char *text = calloc(1, 100001);

    memset(text, 'x', 100000);
    assert_int_equal(chan_send_take(f->ch, MSG_PING, json_pack("{s:s}", "id", text)),
                     MR_ERR_TOO_LARGE);
    assert_true(chan_idle(f->ch));
    free(text);
}

/* The other end of the pair as a host's channel: megabytes both ways. */
struct far {
    size_t frames;
    struct chan *ch;
};

static void far_frame(void *arg, enum msg_kind kind, const json_t *body)
{
    struct far *far = arg;

    far->frames++;
    assert_int_equal(kind, MSG_OFFSETS);
    assert_int_equal(
        chan_send_take(far->ch, MSG_PONG, json_pack("{s:O}", "id", json_object_get(body, "id"))),
        0);
}

static void far_closed(void *arg, const struct mr_error *err)
{
    (void)arg;
    fail_msg("closed: %s", err == NULL ? "end of file" : err->text);
}

static void many_megabytes_go_through_in_order(void **state)
{
    static const struct chan_events far_events = {.frame = far_frame, .closed = far_closed};
    struct fixture *f = *state;
    struct far far = {0};
    char *text = malloc(3000001);

    memset(text, 'y', 3000000);
    text[3000000] = '\0';
    far.ch = chan_new(f->loop, f->peer, false, &far_events, &far, NULL);
    f->peer = -1;
    chan_set_state(far.ch, MSG_STATE_OPEN);
    for (int i = 1; i <= 5; i++)
        assert_int_equal(
            chan_send_take(f->ch, MSG_OFFSETS, json_pack("{s:i, s:s}", "id", i, "error", text)), 0);
    f->wanted_frames = 5;
    run(f);
    assert_int_equal(json_integer_value(json_object_get(f->last_body, "id")), 5);
    assert_true(chan_idle(f->ch));
    chan_free(&far.ch);
    free(text);
}

/* --- a flood ---------------------------------------------------------------------------------- */

static void *flood(void *arg)
{
    struct fixture *f = arg;
    struct buf out;

    buf_init(&out, 1 << 20);
    for (int i = 0; i < 2000; i++)
        frame_encode(&out, MSG_PONG, "{\"id\":1}", 8);
    while (send(f->peer, out.data, out.len, MSG_NOSIGNAL) > 0 || errno == EAGAIN)
        continue;
    buf_deinit(&out);
    return NULL;
}

static struct loop_timer tick_timer;

static void tick(void *arg)
{
    struct fixture *f = arg;

    if (++f->ticks == 200)
        loop_stop(f->loop);
    else
        loop_timer_start(f->loop, &tick_timer, 5, tick, f);
}

/* While a host sends as fast as it can, a timer of 5 ms goes on ticking, and no more is read than
 * the budget allows. */
static void a_flood_does_not_starve_the_loop(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    int64_t begin_ms;
    size_t windows;

    begin_ms = clock_ms();
    pthread_create(&thread, NULL, flood, f);
    tick(f);
    run(f);
    windows = (size_t)(clock_ms() - begin_ms) / 50 + 2;
    assert_int_equal(f->ticks, 200);
    assert_in_range(f->frames, 500, windows * (512 + 64));
    chan_free(&f->ch);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_frame_in_single_bytes_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_body_is_an_empty_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rubbish_closes_with_the_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_state_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_oversized_frame_closes_at_its_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_that_is_no_object_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_that_is_no_json_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_of_a_million_values_is_not_parsed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_came_before_the_end_is_delivered_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(half_a_frame_at_the_end_is_just_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(freeing_inside_a_callback_is_safe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_does_not_read_fills_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_frame_too_large_is_not_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_megabytes_go_through_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_does_not_starve_the_loop, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
