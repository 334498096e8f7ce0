/* SPDX-License-Identifier: Apache-2.0 */
/* Values as bytes: there and back, always the same bytes, and no bytes that crash the reader. */
#include "host/data/value_bytes.h"

#include "host/data/record_arena.h"
#include "host/host_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct batch_pool *pool;
static struct batch *batch;

static int open_arena(void **state)
{
    (void)state;
    pool = batch_pool_new(&host_api_table, 1024 * 1024, 10);
    batch = batch_pool_take(pool);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    batch_pool_give(pool, batch);
    batch_pool_free(&pool);
    return 0;
}

static struct mr_value rich(struct mr_arena *arena)
{
    struct mr_value map = mr_map(arena, 3), list = mr_list(arena, 5);
    struct mr_decimal *d = mr_alloc(arena, sizeof(*d) + 2);

    *d = (struct mr_decimal){.scale = -3, .len = 2, .bytes = {0xff}};
    d->bytes[1] = 0x01;
    mr_items(list)[0] = mr_long(INT64_MIN);
    mr_items(list)[1] = mr_double(-0.5);
    mr_items(list)[2] = mr_float(3.25f);
    mr_items(list)[3] = mr_ptr_of(MR_KIND_DECIMAL, d, 0);
    mr_items(list)[4] = mr_timestamp(1700000000000);
    mr_pairs(map)[0] = (struct mr_pair){mr_str("list"), list};
    mr_pairs(map)[1] = (struct mr_pair){mr_int8(-1), mr_bool(true)};
    mr_pairs(map)[2] = (struct mr_pair){mr_bytes("\0\1", 2), mr_null()};
    return map;
}

static void values_come_back_as_they_were(void **state)
{
    struct mr_arena *arena = batch->pub.arena;
    struct buf first, second;
    struct mr_value back;

    (void)state;
    buf_init(&first, 10000);
    buf_init(&second, 10000);
    assert_int_equal(value_bytes_write(&first, rich(arena), NULL), 0);
    assert_int_equal(value_bytes_read(arena, first.data, first.len, &back, NULL), 0);
    assert_int_equal(back.kind, MR_KIND_MAP);
    assert_int_equal(mr_item(mr_pairs(back)[0].value, 0).u.i, INT64_MIN);
    assert_true(mr_item(mr_pairs(back)[0].value, 2).u.f == 3.25f);
    assert_int_equal(mr_pairs(back)[1].key.kind, MR_KIND_INT8);
    assert_int_equal(value_bytes_write(&second, back, NULL), 0);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    buf_deinit(&first);
    buf_deinit(&second);
}

/* They are read by later releases. */
static void the_format_stays(void **state)
{
    static const unsigned char want[] = {MR_KIND_LIST,   3, MR_KIND_INT64, 0xd0, 0x0f,
                                         MR_KIND_STRING, 2, 'o',           'k',  MR_KIND_NULL};
    struct mr_value list = mr_list(batch->pub.arena, 3);
    struct buf out;

    (void)state;
    mr_items(list)[0] = mr_long(1000);
    mr_items(list)[1] = mr_str("ok");
    buf_init(&out, 100);
    assert_int_equal(value_bytes_write(&out, list, NULL), 0);
    assert_int_equal(out.len, sizeof(want));
    assert_memory_equal(out.data, want, sizeof(want));
    buf_deinit(&out);
}

static void no_bytes_lead_astray(void **state)
{
    struct mr_arena *arena = batch->pub.arena;
    struct mr_value back;
    struct buf out;
    unsigned seed = 3;

    (void)state;
    buf_init(&out, 10000);
    assert_int_equal(value_bytes_write(&out, rich(arena), NULL), 0);
    for (size_t len = 0; len < out.len; len++)
        assert_int_equal(value_bytes_read(arena, out.data, len, &back, NULL), MR_ERR_PROTOCOL);
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)rand_r(&seed) % out.len;
        char was = out.data[at];
        char *copy = malloc(out.len);

        out.data[at] = (char)rand_r(&seed);
        memcpy(copy, out.data, out.len);
        value_bytes_read(arena, copy, out.len, &back, NULL);
        free(copy);
        out.data[at] = was;
        if (i % 100 == 0) {
            batch_pool_give(pool, batch);
            batch = batch_pool_take(pool);
            arena = batch->pub.arena;
        }
    }
    buf_deinit(&out);
}

static void what_is_nested_too_deep_or_too_large_is_refused(void **state)
{
    struct mr_value v = mr_null();
    struct mr_error err = {0};
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    for (int i = 0; i < 200; i++) {
        struct mr_value list = mr_list(batch->pub.arena, 1);

        mr_items(list)[0] = v;
        v = list;
    }
    assert_int_equal(value_bytes_write(&out, v, &err), MR_ERR_DATA);
    err = (struct mr_error){0};
    buf_reset(&out);
    assert_int_equal(
        value_bytes_write(&out, mr_bytes(mr_alloc(batch->pub.arena, 2000), 2000), &err),
        MR_ERR_TOO_LARGE);
    buf_deinit(&out);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, open_arena, close_arena)
    const struct CMUnitTest tests[] = {
        T(values_come_back_as_they_were),
        T(the_format_stays),
        T(no_bytes_lead_astray),
        T(what_is_nested_too_deep_or_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
