/* SPDX-License-Identifier: Apache-2.0 */
/* The sink's ledger: nothing is committable that put did not accept, nothing is delivered twice or
 * from lost partitions. */
#include "host/task/sink/ledger.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int setup(void **state)
{
    *state = ledger_new();
    return 0;
}

static int teardown(void **state)
{
    struct ledger *l = *state;

    ledger_free(&l);
    return 0;
}

static void assign(struct ledger *l, const char *topic, int32_t partition, int64_t offset)
{
    struct mr_error err = {0};

    assert_int_equal(
        ledger_assign(l, &(struct consumer_partition){topic, partition, offset}, 1, &err), MR_OK);
}

static bool stage(struct ledger *l, const char *topic, int32_t partition, int64_t offset)
{
    struct consumer_msg msg = {.topic = topic, .partition = partition, .offset = offset};

    return ledger_stage(l, &msg, 1) == 1;
}

static int64_t uncommitted(struct ledger *l, const char *topic, int32_t partition)
{
    struct consumer_partition out[16];
    size_t n = ledger_uncommitted(l, NULL, 0, out);

    for (size_t i = 0; i < n; i++)
        if (strcmp(out[i].topic, topic) == 0 && out[i].partition == partition)
            return out[i].offset;
    return -7;
}

static void what_is_staged_is_committable_only_after_put_accepted_it(void **state)
{
    struct ledger *l = *state;

    assign(l, "t", 0, 5);
    assert_int_equal(uncommitted(l, "t", 0), -7);
    assert_true(stage(l, "t", 0, 5));
    assert_true(stage(l, "t", 0, 8)); /* a gap: compacted away */
    assert_int_equal(uncommitted(l, "t", 0), -7);
    ledger_accept(l);
    assert_int_equal(uncommitted(l, "t", 0), 9);
    ledger_committed(l, &(struct consumer_partition){"t", 0, 9}, 1);
    assert_int_equal(uncommitted(l, "t", 0), -7);
}

static void a_rejected_batch_leaves_the_position(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];

    assign(l, "t", 0, 5);
    assert_true(stage(l, "t", 0, 5));
    ledger_reject(l);
    assert_int_equal(ledger_positions(l, out), 1);
    assert_int_equal(out[0].offset, 5);
    assert_true(stage(l, "t", 0, 5));
}

static void messages_below_the_position_are_refused(void **state)
{
    struct ledger *l = *state;

    assign(l, "t", 0, 5);
    assert_false(stage(l, "t", 0, 4));
    assert_true(stage(l, "t", 0, 5));
    assert_false(stage(l, "t", 0, 5)); /* twice in one batch */
    assert_true(stage(l, "t", 0, 6));
    ledger_accept(l);
    assert_false(stage(l, "t", 0, 6));
    assert_true(stage(l, "t", 0, 7));
}

static void what_must_not_be_delivered_goes_out_of_a_batch(void **state)
{
    struct ledger *l = *state;
    struct consumer_msg msgs[] = {
        {.topic = "t", .partition = 0, .offset = 4}, {.topic = "t", .partition = 0, .offset = 5},
        {.topic = "u", .partition = 0, .offset = 0}, {.topic = "t", .partition = 1, .offset = 8},
        {.topic = "t", .partition = 1, .offset = 7}, {.topic = "t", .partition = 0, .offset = 9},
    };

    assign(l, "t", 0, 5);
    assign(l, "t", 1, 7);
    assert_int_equal(ledger_stage(l, msgs, 6), 3);
    assert_int_equal(msgs[0].offset, 5);
    assert_int_equal(msgs[1].offset, 8);
    assert_int_equal(msgs[2].offset, 9);
    ledger_accept(l);
    assert_int_equal(uncommitted(l, "t", 0), 10);
    assert_int_equal(uncommitted(l, "t", 1), 9);
}

static void partitions_that_went_take_their_stage_with_them(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];

    assign(l, "t", 0, 0);
    assign(l, "t", 1, 0);
    assert_true(stage(l, "t", 0, 0));
    assert_true(stage(l, "t", 1, 0));
    ledger_revoke(l, &(struct consumer_partition){"t", 1, -1}, 1);
    ledger_accept(l);
    assert_int_equal(ledger_count(l), 1);
    assert_int_equal(ledger_uncommitted(l, NULL, 0, out), 1);
    assert_int_equal(out[0].partition, 0);
    assert_false(stage(l, "t", 1, 1));
    assign(l, "t", 1, 0); /* back again: from the committed offset */
    assert_true(stage(l, "t", 1, 0));
}

static void unknown_offsets_start_anywhere(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];

    assign(l, "t", 0, LEDGER_UNKNOWN);
    assert_int_equal(ledger_positions(l, out), 1);
    assert_int_equal(out[0].offset, LEDGER_UNKNOWN);
    assert_int_equal(ledger_uncommitted(l, NULL, 0, out), 0);
    assert_true(stage(l, "t", 0, 1000));
    ledger_accept(l);
    assert_int_equal(uncommitted(l, "t", 0), 1001);
}

static void messages_seen_but_not_delivered_are_read_again_without_an_offset(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];

    assign(l, "t", 0, LEDGER_UNKNOWN);
    assert_true(stage(l, "t", 0, 1000));
    assert_true(stage(l, "t", 0, 1001));
    ledger_reject(l);
    assert_int_equal(ledger_positions(l, out), 1);
    assert_int_equal(out[0].offset, 1000);
    assert_int_equal(ledger_uncommitted(l, NULL, 0, out), 0);
    assert_true(stage(l, "t", 0, 1000));
    ledger_accept(l);
    ledger_positions(l, out);
    assert_int_equal(out[0].offset, 1001);
}

static void a_late_answer_to_a_commit_never_moves_back(void **state)
{
    struct ledger *l = *state;

    assign(l, "t", 0, 0);
    assert_true(stage(l, "t", 0, 9));
    ledger_accept(l);
    ledger_committed(l, &(struct consumer_partition){"t", 0, 10}, 1);
    ledger_committed(l, &(struct consumer_partition){"t", 0, 4}, 1);
    assert_int_equal(uncommitted(l, "t", 0), -7);
    ledger_committed(l, &(struct consumer_partition){"gone", 3, 4}, 1);
}

static void a_log_that_was_truncated_is_followed_down(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];

    assign(l, "t", 0, 1000);
    assert_false(stage(l, "t", 0, 3));
    ledger_move(l, "t", 0, 3);
    ledger_move(l, "gone", 0, 3);
    assert_int_equal(ledger_uncommitted(l, NULL, 0, out), 0);
    assert_true(stage(l, "t", 0, 3));
    ledger_accept(l);
    assert_int_equal(uncommitted(l, "t", 0), 4);
    ledger_positions(l, out);
    assert_int_equal(out[0].offset, 4);
}

static int64_t position(struct ledger *l)
{
    return ledger_position(l, "t", 0);
}

static void a_seek_is_committed_with_what_was_put_before_it(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition back = {"t", 0, 2};

    assign(l, "t", 0, 5);
    stage(l, "t", 0, 5);
    ledger_accept(l);
    ledger_seek(l, "t", 0, 2);
    ledger_seek(l, "gone", 0, 2);
    assert_int_equal(uncommitted(l, "t", 0), 2);
    ledger_committed(l, &back, 1);
    assert_int_equal(uncommitted(l, "t", 0), -7);
    ledger_rewind(l);
    assert_int_equal(position(l), 2);
}

static void a_seek_goes_with_what_was_put_before_it(void **state)
{
    struct ledger *l = *state;

    assign(l, "t", 0, 5);
    stage(l, "t", 0, 5);
    ledger_accept(l);
    ledger_seek(l, "t", 0, 9);
    assert_int_equal(position(l), 9);
    ledger_rewind(l);
    assert_int_equal(position(l), 5);
    assert_int_equal(uncommitted(l, "t", 0), -7);
}

static void a_seek_before_anything_was_put_stays(void **state)
{
    struct ledger *l = *state;

    assign(l, "t", 0, 5);
    ledger_seek(l, "t", 0, 9);
    assert_int_equal(uncommitted(l, "t", 0), -7);
    ledger_rewind(l);
    assert_int_equal(position(l), 9);
}

static void a_subset_can_be_asked_for(void **state)
{
    struct ledger *l = *state;
    struct consumer_partition out[4];
    const struct consumer_partition only[] = {{"u", 7, -1}, {"x", 0, -1}};

    assign(l, "t", 0, 0);
    assign(l, "u", 7, 0);
    stage(l, "t", 0, 0);
    stage(l, "u", 7, 0);
    ledger_accept(l);
    assert_int_equal(ledger_uncommitted(l, only, 2, out), 1);
    assert_string_equal(out[0].topic, "u");
    assert_int_equal(out[0].partition, 7);
    assert_int_equal(out[0].offset, 1);
}

/* The consumer was closed, and the next one has its names elsewhere: where one name stood, another
 * may. */
static void names_of_another_consumer_are_told_apart(void **state)
{
    struct ledger *l = *state;
    char first[] = "a", second[] = "b";

    assign(l, first, 0, 5);
    assign(l, second, 0, 50);
    assert_true(stage(l, first, 0, 5));
    assert_true(stage(l, second, 0, 50));
    ledger_accept(l);
    ledger_revoke(l, (struct consumer_partition[]){{first, 0, 0}, {second, 0, 0}}, 2);
    first[0] = 'b';
    second[0] = 'a';
    assign(l, first, 0, 51);
    assign(l, second, 0, 6);
    assert_int_equal(ledger_count(l), 2);
    assert_true(stage(l, second, 0, 6));
    assert_true(stage(l, first, 0, 51));
    ledger_accept(l);
    assert_int_equal(uncommitted(l, "a", 0), 7);
    assert_int_equal(uncommitted(l, "b", 0), 52);
}

static void partition_numbers_from_outside_are_checked(void **state)
{
    struct ledger *l = *state;
    struct mr_error err = {0};

    assert_int_equal(ledger_assign(l, &(struct consumer_partition){"t", -1, 0}, 1, &err),
                     MR_ERR_PROTOCOL);
    err.code = 0;
    assert_int_equal(ledger_assign(l, &(struct consumer_partition){"t", INT32_MAX, 0}, 1, &err),
                     MR_ERR_PROTOCOL);
    assert_false(stage(l, "nowhere", 0, 0));
}

static size_t unstored(struct ledger *l, struct mr_partition *out)
{
    size_t n = ledger_unstored(l, out);

    assert_true(n <= 4);
    return n;
}

static void what_a_plugin_has_stored_is_the_condition_of_what_it_stores_next(void **state)
{
    struct ledger *l = *state;
    const struct consumer_partition t = {"t", 0, 5};
    struct mr_partition out[4];

    assign(l, "t", 0, 5);
    ledger_place(l, &t, 9, 9);
    assert_int_equal(uncommitted(l, "t", 0), 9); /* the group follows */
    assert_int_equal(unstored(l, out), 0);
    assert_false(stage(l, "t", 0, 8));
    assert_true(stage(l, "t", 0, 11));
    assert_int_equal(unstored(l, out), 1);
    assert_int_equal(out[0].stored, 9);
    assert_int_equal(out[0].offset, 12);
    out[0].offset = 10; /* a part of the batch */
    ledger_store(l, out, 1);
    ledger_reject(l); /* the rest fails: the part is not read again */
    assert_int_equal(ledger_position(l, "t", 0), 10);
    assert_int_equal(ledger_stored(l, "t", 0), 10);
}

static void a_group_that_is_ahead_of_the_plugin_is_taken_back(void **state)
{
    struct ledger *l = *state;
    const struct consumer_partition t = {"t", 0, 50};
    struct mr_partition out[4];

    assign(l, "t", 0, 50);
    ledger_place(l, &t, 20, 20);
    assert_int_equal(uncommitted(l, "t", 0), 20);
    ledger_place(l, &t, 20, LEDGER_UNKNOWN);
    assert_int_equal(unstored(l, out), 1); /* where it begins is stored, too */
    assert_int_equal(out[0].stored, LEDGER_UNKNOWN);
    assert_int_equal(out[0].offset, 20);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_staged_is_committable_only_after_put_accepted_it),
        T(a_rejected_batch_leaves_the_position),
        T(messages_below_the_position_are_refused),
        T(what_must_not_be_delivered_goes_out_of_a_batch),
        T(partitions_that_went_take_their_stage_with_them),
        T(unknown_offsets_start_anywhere),
        T(messages_seen_but_not_delivered_are_read_again_without_an_offset),
        T(a_late_answer_to_a_commit_never_moves_back),
        T(a_log_that_was_truncated_is_followed_down),
        T(a_seek_is_committed_with_what_was_put_before_it),
        T(a_seek_goes_with_what_was_put_before_it),
        T(a_seek_before_anything_was_put_stays),
        T(a_subset_can_be_asked_for),
        T(names_of_another_consumer_are_told_apart),
        T(what_a_plugin_has_stored_is_the_condition_of_what_it_stores_next),
        T(a_group_that_is_ahead_of_the_plugin_is_taken_back),
        T(partition_numbers_from_outside_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
