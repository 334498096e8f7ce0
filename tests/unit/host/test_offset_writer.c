/* SPDX-License-Identifier: Apache-2.0 */
/* Storing source offsets: one request at a time, portions, nothing lost when the worker refuses. */
#include "host/task/send/offset_writer.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct mr_host host = {.size = sizeof(host)};

struct fixture {
    struct batch_pool *pool;
    struct ack_window *window;
    struct offset_writer w;
    json_t *sent[8];
    size_t sent_count;
    int64_t next_id; /* negative: the link refuses */
};

static int64_t put(void *arg, json_t *entries)
{
    struct fixture *f = arg;

    f->sent[f->sent_count++] = entries;
    return f->next_id < 0 ? f->next_id : f->next_id++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->pool = batch_pool_new(&host, 1 << 24, 1000);
    f->window = ack_window_new();
    f->next_id = 100;
    offset_writer_init(&f->w, f->window, put, f, 1000, 300, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    offset_writer_deinit(&f->w);
    ack_window_free(&f->window);
    batch_pool_free(&f->pool);
    for (size_t i = 0; i < f->sent_count; i++)
        json_decref(f->sent[i]);
    free(f);
    return 0;
}

static void deliver(struct fixture *f, const char *name, int64_t next)
{
    struct batch *batch = batch_pool_take(f->pool);

    record_arena_offset(&batch_add(batch, "t")->pub, source_partition_intern("filename", name),
                        "position", next);
    ack_window_push(f->window, batch);
    ack_window_settle(batch_at(batch, 0));
    assert_int_equal(ack_window_advance(f->window, NULL), 0);
}

static void check_sent(struct fixture *f, size_t i, const char *expected)
{
    char *text = json_dumps(f->sent[i], JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
}

static void a_flush_sends_partition_and_offset_as_connect_does(void **state)
{
    struct fixture *f = *state;

    deliver(f, "/tmp/a", 12);
    deliver(f, NULL, 7);
    offset_writer_flush(&f->w, 10);
    check_sent(
        f, 0,
        "[[{\"filename\":\"/tmp/a\"},{\"position\":12}],[{\"filename\":null},{\"position\":7}]]");
    assert_true(offset_writer_busy(&f->w));
    assert_false(offset_writer_answer(&f->w, 99, "", 20));
    assert_true(offset_writer_answer(&f->w, 100, "", 20));
    assert_false(offset_writer_busy(&f->w));
}

static void a_flush_comes_when_due_and_only_with_something_to_store(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(offset_writer_due_ms(&f->w), INT64_MAX);
    offset_writer_tick(&f->w, 1000);
    assert_int_equal(f->sent_count, 0);
    deliver(f, "a", 1);
    assert_int_equal(offset_writer_due_ms(&f->w), 2000);
    offset_writer_tick(&f->w, 1999);
    assert_int_equal(f->sent_count, 0);
    offset_writer_tick(&f->w, 2000);
    assert_int_equal(f->sent_count, 1);
}

static void while_one_request_is_out_no_other_is_sent(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    offset_writer_flush(&f->w, 0);
    deliver(f, "a", 2);
    deliver(f, "a", 3);
    offset_writer_flush(&f->w, 10);
    assert_int_equal(f->sent_count, 1);
    assert_false(offset_writer_answer(&f->w, 100, "", 20));
    assert_int_equal(f->sent_count, 2);
    check_sent(f, 1, "[[{\"filename\":\"a\"},{\"position\":3}]]");
    assert_true(offset_writer_answer(&f->w, 101, "", 30));
}

/* A busy source: something is always committable when an answer comes. */
static void offsets_that_come_during_a_flush_wait_for_the_next(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    offset_writer_tick(&f->w, 1000);
    for (int64_t i = 0; i < 5; i++) {
        deliver(f, "a", 2 + i);
        deliver(f, "b", 2 + i);
        assert_true(offset_writer_answer(&f->w, 100 + i, "", 1010 + i * 1000));
        assert_false(offset_writer_busy(&f->w));
        offset_writer_tick(&f->w, 1999 + i * 1000);
        assert_int_equal(f->sent_count, 1 + i);
        offset_writer_tick(&f->w, 2000 + i * 1000);
        assert_int_equal(f->sent_count, 2 + i);
    }
}

static void answers_slower_than_the_interval_still_end_a_flush(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    offset_writer_tick(&f->w, 1000);
    deliver(f, "a", 2);
    offset_writer_tick(&f->w, 2000);
    assert_int_equal(f->sent_count, 1);
    assert_true(offset_writer_answer(&f->w, 100, "", 2500));
    assert_int_equal(offset_writer_due_ms(&f->w), 3000);
}

static void refused_offsets_come_again_unless_newer_ones_did(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    deliver(f, "b", 1);
    offset_writer_flush(&f->w, 0);
    deliver(f, "a", 2);
    assert_false(offset_writer_answer(&f->w, 100, "disk full", 10));
    assert_false(offset_writer_busy(&f->w));
    assert_int_equal(f->sent_count, 1);
    offset_writer_flush(&f->w, 20);
    check_sent(f, 1,
               "[[{\"filename\":\"a\"},{\"position\":2}],[{\"filename\":\"b\"},{\"position\":1}]]");
}

static void a_link_that_closes_between_portions_is_no_success(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    offset_writer_flush(&f->w, 0);
    deliver(f, "a", 2);
    offset_writer_flush(&f->w, 10);
    f->next_id = -1;
    assert_false(offset_writer_answer(&f->w, 100, "", 20));
    assert_false(offset_writer_busy(&f->w));
    assert_int_equal(ack_window_committable(f->window), 1);
}

static void a_closed_link_loses_nothing(void **state)
{
    struct fixture *f = *state;

    f->next_id = -1;
    deliver(f, "a", 1);
    offset_writer_flush(&f->w, 0);
    assert_false(offset_writer_busy(&f->w));
    assert_int_equal(ack_window_committable(f->window), 1);
}

static void many_partitions_go_in_portions(void **state)
{
    struct fixture *f = *state;
    char name[16];

    for (int i = 0; i < OFFSET_WRITER_PORTION * 2 + 1; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        deliver(f, name, 1);
    }
    offset_writer_flush(&f->w, 0);
    assert_int_equal(json_array_size(f->sent[0]), OFFSET_WRITER_PORTION);
    assert_false(offset_writer_answer(&f->w, 100, "", 0));
    assert_int_equal(json_array_size(f->sent[1]), OFFSET_WRITER_PORTION);
    assert_false(offset_writer_answer(&f->w, 101, "", 0));
    assert_int_equal(json_array_size(f->sent[2]), 1);
    assert_true(offset_writer_answer(&f->w, 102, "", 0));
}

/* Names of files may be long: no request may outgrow the link's frame. */
static void partitions_with_long_names_go_in_smaller_portions(void **state)
{
    struct fixture *f = *state;
    char name[30000];
    size_t sent = 0;

    memset(name, '\1', sizeof(name));
    for (int i = 0; i < 30; i++) {
        snprintf(name + sizeof(name) - 4, 4, "%d", i);
        deliver(f, name, 1);
    }
    offset_writer_flush(&f->w, 0);
    for (int64_t id = 100; offset_writer_busy(&f->w); id++) {
        char *text = json_dumps(f->sent[f->sent_count - 1], JSON_COMPACT);

        assert_in_range(strlen(text), 1, 2 << 20);
        free(text);
        sent += json_array_size(f->sent[f->sent_count - 1]);
        assert_int_equal(offset_writer_answer(&f->w, id, "", 0), sent == 30);
    }
    assert_int_equal(sent, 30);
}

static void a_late_answer_is_waited_for_and_counts(void **state)
{
    struct fixture *f = *state;

    deliver(f, "a", 1);
    offset_writer_flush(&f->w, 0);
    assert_int_equal(offset_writer_due_ms(&f->w), 300);
    offset_writer_tick(&f->w, 300);
    assert_true(offset_writer_busy(&f->w));
    assert_int_equal(offset_writer_due_ms(&f->w), 1000);
    assert_true(offset_writer_answer(&f->w, 100, "", 5000));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_flush_sends_partition_and_offset_as_connect_does),
        T(a_flush_comes_when_due_and_only_with_something_to_store),
        T(while_one_request_is_out_no_other_is_sent),
        T(offsets_that_come_during_a_flush_wait_for_the_next),
        T(answers_slower_than_the_interval_still_end_a_flush),
        T(refused_offsets_come_again_unless_newer_ones_did),
        T(a_link_that_closes_between_portions_is_no_success),
        T(a_closed_link_loses_nothing),
        T(many_partitions_go_in_portions),
        T(partitions_with_long_names_go_in_smaller_portions),
        T(a_late_answer_is_waited_for_and_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
