/* SPDX-License-Identifier: Apache-2.0 */
/* The ack window: offsets only of the settled prefix, whatever the order of reports. */
#include "host/task/send/ack_window.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct mr_host host = {.size = sizeof(host)};

struct fixture {
    struct batch_pool *pool;
    struct ack_window *w;
    const struct mr_source_partition *parts[5];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char name[16];

    f->pool = batch_pool_new(&host, 64 * 1024 * 1024, 1000);
    f->w = ack_window_new();
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "part-%zu", i);
        f->parts[i] = source_partition_intern("name", name);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    ack_window_free(&f->w);
    batch_pool_free(&f->pool);
    free(f);
    return 0;
}

static struct batch *batch_of_n(struct fixture *f, size_t n, size_t part, int64_t first)
{
    struct batch *batch = batch_pool_take(f->pool);

    assert_non_null(batch);
    for (size_t i = 0; i < n; i++)
        record_arena_offset(&batch_add(batch, "t")->pub, f->parts[part], "next",
                            first + (int64_t)i);
    return batch;
}

static void advance(struct fixture *f)
{
    struct mr_error err = {0};

    assert_int_equal(ack_window_advance(f->w, &err), MR_OK);
}

static void nothing_is_committable_before_the_first_record_is_settled(void **state)
{
    struct fixture *f = *state;
    struct batch *batch = batch_of_n(f, 3, 0, 1);
    struct ack_offset out[2];

    ack_window_push(f->w, batch);
    ack_window_settle(batch_at(batch, 1));
    ack_window_settle(batch_at(batch, 2));
    advance(f);
    assert_int_equal(ack_window_take(f->w, out, 2), 0);
    assert_int_equal(ack_window_unsettled(f->w), 1);
    ack_window_settle(batch_at(batch, 0));
    advance(f);
    assert_int_equal(ack_window_take(f->w, out, 2), 1);
    assert_ptr_equal(out[0].partition, f->parts[0]);
    assert_string_equal(out[0].key, "next");
    assert_int_equal(out[0].next, 3);
    assert_true(ack_window_empty(f->w));
    assert_int_equal(batch_pool_bytes(f->pool), 0);
}

static void a_failed_record_stops_everything_behind_it(void **state)
{
    struct fixture *f = *state;
    struct batch *a = batch_of_n(f, 3, 0, 1);
    struct batch *b = batch_of_n(f, 3, 1, 1);
    struct ack_offset out[4];

    ack_window_push(f->w, a);
    ack_window_push(f->w, b);
    ack_window_settle(batch_at(a, 0));
    ack_window_settle(batch_at(a, 2));
    for (size_t i = 0; i < 3; i++)
        ack_window_settle(batch_at(b, i));
    advance(f);
    assert_int_equal(ack_window_take(f->w, out, 4), 1);
    assert_int_equal(out[0].next, 1);
    assert_ptr_equal(ack_cursor_record(&(struct ack_cursor){ack_window_first(f->w).batch,
                                                            ack_window_first(f->w).i}),
                     batch_at(a, 1));
}

static void an_offset_that_was_not_stored_comes_back_unless_a_newer_one_is_there(void **state)
{
    struct fixture *f = *state;
    struct batch *a = batch_of_n(f, 1, 0, 1);
    struct ack_offset out[2];
    struct ack_offset old;

    ack_window_push(f->w, a);
    ack_window_settle(batch_at(a, 0));
    advance(f);
    assert_int_equal(ack_window_take(f->w, &old, 1), 1);
    ack_window_put_back(f->w, &old);
    assert_int_equal(ack_window_committable(f->w), 1);
    assert_int_equal(ack_window_take(f->w, out, 2), 1);
    assert_int_equal(out[0].next, 1);

    a = batch_of_n(f, 1, 0, 2);
    ack_window_push(f->w, a);
    ack_window_settle(batch_at(a, 0));
    advance(f);
    ack_window_put_back(f->w, &old);
    assert_int_equal(ack_window_take(f->w, out, 2), 1);
    assert_int_equal(out[0].next, 2);
}

static void take_gives_at_most_max_and_the_rest_later(void **state)
{
    struct fixture *f = *state;
    struct ack_offset out[5];

    for (size_t i = 0; i < 5; i++) {
        struct batch *batch = batch_of_n(f, 2, i, 10);

        ack_window_push(f->w, batch);
        ack_window_settle(batch_at(batch, 0));
        ack_window_settle(batch_at(batch, 1));
    }
    advance(f);
    assert_int_equal(ack_window_take(f->w, out, 2), 2);
    assert_int_equal(ack_window_committable(f->w), 3);
    assert_int_equal(ack_window_take(f->w, out, 5), 3);
    assert_int_equal(ack_window_take(f->w, out, 5), 0);
}

static void records_without_offset_and_empty_batches_are_passed(void **state)
{
    struct fixture *f = *state;
    struct batch *empty = batch_pool_take(f->pool);
    struct batch *plain = batch_pool_take(f->pool);
    struct ack_offset out[1];
    struct ack_cursor at;

    batch_add(plain, "t");
    ack_window_push(f->w, empty);
    ack_window_push(f->w, plain);
    at = ack_window_first(f->w);
    assert_ptr_equal(ack_cursor_record(&at), batch_at(plain, 0));
    ack_cursor_next(&at);
    assert_null(at.batch);
    ack_window_settle(batch_at(plain, 0));
    ack_window_settle(batch_at(plain, 0));
    advance(f);
    assert_true(ack_window_empty(f->w));
    assert_int_equal(ack_window_take(f->w, out, 1), 0);
}

/* Random batches, random order of settling, random takes and put-backs, against a plain list. */
#define MODEL_MAX 4000

struct model {
    struct record *recs[MODEL_MAX]; /* valid until passed */
    size_t part[MODEL_MAX];
    int64_t next[MODEL_MAX];
    bool settled[MODEL_MAX];
    size_t count;
    size_t frontier;
};

static void model_settle_some(struct model *m, unsigned *seed)
{
    for (int tries = 0; tries < 20; tries++) {
        size_t span = m->count - m->frontier;
        size_t i;

        if (span == 0)
            return;
        i = m->frontier + (size_t)rand_r(seed) % (span < 60 ? span : 60);
        if (!m->settled[i]) {
            ack_window_settle(m->recs[i]);
            m->settled[i] = true;
        }
    }
}

static void random_orders_agree_with_the_model(void **state)
{
    struct fixture *f = *state;
    unsigned seed = 20261129;
    static struct model m;
    int64_t last_taken[5];

    for (int round = 0; round < 30; round++) {
        memset(&m, 0, sizeof(m));
        memset(last_taken, 0, sizeof(last_taken));
        while (m.count < MODEL_MAX - 50 || m.frontier < m.count) {
            int64_t expected[5] = {0};
            struct ack_offset out[5];
            size_t n;

            if (m.count < MODEL_MAX - 50) {
                size_t add = (size_t)rand_r(&seed) % 12;
                struct batch *batch = batch_pool_take(f->pool);

                for (size_t i = 0; i < add; i++, m.count++) {
                    struct record *rec = batch_add(batch, "t");

                    m.recs[m.count] = rec;
                    m.part[m.count] = (size_t)rand_r(&seed) % 5;
                    m.next[m.count] = (int64_t)m.count + 1;
                    record_arena_offset(&rec->pub, f->parts[m.part[m.count]], "n", m.next[m.count]);
                }
                ack_window_push(f->w, batch);
            }
            model_settle_some(&m, &seed);
            advance(f);
            while (m.frontier < m.count && m.settled[m.frontier])
                m.frontier++;
            for (size_t i = 0; i < m.frontier; i++)
                expected[m.part[i]] = m.next[i];
            n = ack_window_take(f->w, out, (size_t)rand_r(&seed) % 6);
            for (size_t i = 0; i < n; i++) {
                size_t p = 0;

                while (f->parts[p] != out[i].partition)
                    p++;
                assert_int_equal(out[i].next, expected[p]);
                assert_true(out[i].next > last_taken[p]);
                if (rand_r(&seed) % 4 == 0)
                    ack_window_put_back(f->w, &out[i]);
                else
                    last_taken[p] = out[i].next;
            }
        }
        assert_true(ack_window_empty(f->w));
        assert_int_equal(batch_pool_bytes(f->pool), 0);
        for (struct ack_offset out[5]; ack_window_take(f->w, out, 5) > 0;)
            ;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_committable_before_the_first_record_is_settled,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_record_stops_everything_behind_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_offset_that_was_not_stored_comes_back_unless_a_newer_one_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(take_gives_at_most_max_and_the_rest_later, setup, teardown),
        cmocka_unit_test_setup_teardown(records_without_offset_and_empty_batches_are_passed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(random_orders_agree_with_the_model, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
