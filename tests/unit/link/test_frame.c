/* SPDX-License-Identifier: Apache-2.0 */
/* frame, msg: a head alone decides whether a peer keeps the rules; what is encoded decodes to
 * itself. */
#include "link/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A head with any values, right or wrong. */
static void put_head(unsigned char out[FRAME_HEAD], uint32_t len, uint32_t kind, uint32_t zero)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(len >> (8 * i));
    out[4] = (unsigned char)kind;
    out[5] = (unsigned char)(kind >> 8);
    out[6] = (unsigned char)zero;
    out[7] = (unsigned char)(zero >> 8);
}

static void expect_refused(uint32_t len, uint32_t kind, uint32_t zero, uint32_t state,
                           const char *text)
{
    unsigned char head[FRAME_HEAD];
    struct frame frame;
    struct mr_error err = {0};

    put_head(head, len, kind, zero);
    assert_int_equal(frame_decode((char *)head, sizeof(head), true, state, &frame, &err),
                     MR_ERR_PROTOCOL);
    if (strstr(err.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, err.text);
}

static void every_kind_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    for (uint32_t kind = 1; kind < MSG_KIND_END; kind++) {
        const struct msg_rule *rule = msg_rule(kind);
        struct frame frame;
        struct buf out;

        buf_init(&out, 1024);
        assert_int_equal(frame_encode(&out, (enum msg_kind)kind, "{\"a\":1}", 7), 0);
        for (size_t len = 0; len < out.len; len++)
            assert_int_equal(
                frame_decode(out.data, len, rule->from_host, rule->states, &frame, NULL), 0);
        assert_int_equal(
            frame_decode(out.data, out.len, rule->from_host, rule->states, &frame, NULL), 1);
        assert_int_equal(frame.kind, kind);
        assert_int_equal(frame.body_len, 7);
        assert_int_equal(frame.size, out.len);
        assert_memory_equal(frame.body, "{\"a\":1}", 7);
        buf_deinit(&out);
    }
}

static void what_the_table_does_not_hold_is_refused(void **state)
{
    (void)state;
    expect_refused(0, 0, 0, MSG_STATE_OPEN, "unknown kind of frame 0");
    expect_refused(0, MSG_KIND_END, 0, MSG_STATE_OPEN, "unknown kind of frame");
    expect_refused(0, 0xffff, 0, MSG_STATE_OPEN, "unknown kind of frame 65535");
    expect_refused(0, MSG_PONG, 1, MSG_STATE_OPEN, "damaged");
    expect_refused(0, MSG_PING, 0, MSG_STATE_OPEN, "frame PING came from the wrong side");
}

static void a_body_above_its_cap_is_refused_before_it_arrives(void **state)
{
    (void)state;
    expect_refused(msg_rule(MSG_PONG)->max_body + 1, MSG_PONG, 0, MSG_STATE_OPEN, "above its cap");
    expect_refused(UINT32_MAX, MSG_OFFSETS_PUT, 0, MSG_STATE_OPEN, "above its cap");
}

static void a_kind_is_allowed_in_its_states_only(void **state)
{
    (void)state;
    expect_refused(0, MSG_TASK_STATUS, 0, MSG_STATE_HELLO,
                   "frame TASK_STATUS is not allowed before the greeting");
    expect_refused(0, MSG_HELLO, 0, MSG_STATE_OPEN,
                   "frame HELLO is not allowed after the greeting");
    expect_refused(0, MSG_DRAINED, 0, MSG_STATE_OPEN,
                   "frame DRAINED is not allowed after the greeting");
    expect_refused(0, MSG_HELLO, 0, MSG_STATE_DRAINING,
                   "frame HELLO is not allowed while draining");
}

static void a_draining_host_is_given_no_new_work(void **state)
{
    (void)state;
    assert_int_equal(msg_rule(MSG_TASK_START)->states & MSG_STATE_DRAINING, 0);
    assert_int_equal(msg_rule(MSG_CONNECTOR_START)->states & MSG_STATE_DRAINING, 0);
    assert_int_not_equal(msg_rule(MSG_OFFSETS_STORED)->states & MSG_STATE_DRAINING, 0);
}

static void a_body_too_large_is_not_encoded(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 20);
    assert_int_equal(frame_encode(&out, MSG_PING, "", msg_rule(MSG_PING)->max_body + 1),
                     MR_ERR_TOO_LARGE);
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was_sent),
        cmocka_unit_test(what_the_table_does_not_hold_is_refused),
        cmocka_unit_test(a_body_above_its_cap_is_refused_before_it_arrives),
        cmocka_unit_test(a_kind_is_allowed_in_its_states_only),
        cmocka_unit_test(a_draining_host_is_given_no_new_work),
        cmocka_unit_test(a_body_too_large_is_not_encoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
