/* SPDX-License-Identifier: Apache-2.0 */
/* Batches and their memory: stable addresses, budget, absurd requests, copies of what lies outside,
 * no malloc when warm. */
#include "host/data/record_arena.h"

#include <millrace/schema.h>

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

static const struct mr_host host = {
    .size = sizeof(host),
    .arena_more = record_arena_more,
    .batch_add = record_arena_add,
    .batch_full = record_arena_full,
    .batch_again = record_arena_again,
    .record_key = record_arena_key,
    .record_value = record_arena_value,
    .record_header = record_arena_header,
    .record_offset = record_arena_offset,
    .record_topic = record_arena_topic,
    .record_header_drop = record_arena_header_drop,
};

#define BUDGET ((size_t)8 * 1024 * 1024)

static int setup(void **state)
{
    *state = batch_pool_new(&host, BUDGET, 1000);
    return 0;
}

static int teardown(void **state)
{
    struct batch_pool *pool = *state;

    batch_pool_free(&pool);
    return 0;
}

static void records_and_their_values_keep_their_addresses(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *first = mr_batch_add(&batch->pub, "topic");
    char text[64];

    mr_record_value(first, mr_str("the first"));
    for (int i = 0; i < 20000; i++) {
        struct mr_record *rec = mr_batch_add(&batch->pub, "topic");

        mr_record_value(rec, mr_text(text, (size_t)snprintf(text, sizeof(text), "value %d", i)));
    }
    assert_ptr_equal(first, mr_record_at(&batch->pub, 0));
    assert_memory_equal(first->value.u.p, "the first", 9);
    for (int i = 0; i < 20000; i++) {
        size_t len = (size_t)snprintf(text, sizeof(text), "value %d", i);
        struct mr_record *rec = mr_record_at(&batch->pub, (size_t)i + 1);

        assert_int_equal(rec->value.len, len);
        assert_memory_equal(rec->value.u.p, text, len);
        assert_ptr_equal(rec->topic, first->topic);
    }
    assert_false(batch->over);
    batch_pool_give(pool, batch);
}

static void topics_are_told_apart_by_content(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    char topic[16];
    const char *names[40];

    for (int i = 0; i < 40; i++) {
        snprintf(topic, sizeof(topic), "t%d", i);
        names[i] = mr_batch_add(&batch->pub, topic)->topic;
    }
    for (int i = 0; i < 40; i++) {
        snprintf(topic, sizeof(topic), "t%d", i);
        assert_string_equal(names[i], topic);
    }
    snprintf(topic, sizeof(topic), "t3");
    assert_ptr_equal(mr_batch_add(&batch->pub, topic)->topic, names[3]);
    batch_pool_give(pool, batch);
}

static void a_record_without_topic_is_a_fault_and_usable(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *rec = mr_batch_add(&batch->pub, NULL);

    assert_string_equal(rec->topic, "");
    assert_true(batch->over);
    assert_non_null(strstr(batch->fault, "without a topic"));
    batch_pool_give(pool, batch);
    batch = batch_pool_take(pool);
    assert_false(batch->over);
    assert_null(batch->fault);
    batch_pool_give(pool, batch);
}

static void the_budget_stops_new_batches_until_one_is_given_back(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *held[BATCH_POOL_MAX];
    size_t n = 0;

    for (struct batch *batch; (batch = batch_pool_take(pool)) != NULL; held[n++] = batch)
        memset(mr_alloc(&batch->arena, 1000000), 1, 1000000);
    assert_true(n >= 8 && n <= 9);
    assert_true(batch_pool_bytes(pool) >= BUDGET);
    batch_pool_give(pool, held[--n]);
    held[n] = batch_pool_take(pool);
    assert_non_null(held[n++]);
    while (n > 0)
        batch_pool_give(pool, held[--n]);
    assert_int_equal(batch_pool_bytes(pool), 0);
}

static void the_number_of_batches_is_bounded(void **state)
{
    struct batch_pool *pool = batch_pool_new(&host, 1u << 30, 1000);
    struct batch *held[BATCH_POOL_MAX];

    (void)state;
    for (size_t i = 0; i < BATCH_POOL_MAX; i++)
        assert_non_null(held[i] = batch_pool_take(pool));
    assert_null(batch_pool_take(pool));
    for (size_t i = 0; i < BATCH_POOL_MAX; i++)
        batch_pool_give(pool, held[i]);
    batch_pool_trim(pool);
    batch_pool_free(&pool);
}

static void full_follows_records_and_bytes(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);

    assert_false(mr_batch_full(&batch->pub));
    for (int i = 0; i < 1000; i++)
        mr_batch_add(&batch->pub, "t");
    assert_true(mr_batch_full(&batch->pub));
    batch_pool_give(pool, batch);
    batch = batch_pool_take(pool);
    mr_record_value(mr_batch_add(&batch->pub, "t"),
                    mr_bytes(mr_alloc(&batch->arena, BATCH_FULL_BYTES), 10));
    assert_true(mr_batch_full(&batch->pub));
    batch_pool_give(pool, batch);
}

/* Promised by mr_alloc: never NULL, usable, and the batch is marked. */
static void an_absurd_request_is_usable_and_marks_the_batch(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    char *p = mr_alloc(&batch->arena, (size_t)64 << 30);

    assert_non_null(p);
    assert_true(batch->over);
    assert_non_null(strstr(batch->fault, "more memory"));
    memset(p, 1, 4096);
    p[((size_t)64 << 30) - 1] = 1;
    p = mr_alloc(&batch->arena, 100);
    memset(p, 2, 100);
    batch_pool_give(pool, batch);
}

static void more_records_than_fit_are_a_fault(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);

    while (!batch->over)
        mr_batch_add(&batch->pub, "t");
    for (int i = 0; i < 100; i++)
        mr_batch_add(&batch->pub, "t")->timestamp = 1;
    assert_true(batch->pub.count <= batch->record_max);
    batch_pool_give(pool, batch);
    batch = batch_pool_take(pool); /* the pages of that flood are gone, the batch works */
    assert_true(batch->record_cap * sizeof(struct record) <= 1024 * 1024);
    for (int i = 0; i < 20000; i++)
        mr_batch_add(&batch->pub, "t")->timestamp = 1;
    assert_false(batch->over);
    batch_pool_give(pool, batch);
}

static void values_inside_the_arena_are_not_copied(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *rec = mr_batch_add(&batch->pub, "t");
    char *small = mr_alloc(&batch->arena, 100);
    char *large = mr_alloc(&batch->arena, 1000000);
    char *later;

    memset(mr_alloc(&batch->arena, 60000), 0, 60000);
    later = mr_alloc(&batch->arena, 60000); /* a second block */
    mr_record_value(rec, mr_bytes(small, 100));
    assert_ptr_equal(rec->value.u.p, small);
    mr_record_value(rec, mr_bytes(large, 1000000));
    assert_ptr_equal(rec->value.u.p, large);
    mr_record_value(rec, mr_bytes(later, 60000));
    assert_ptr_equal(rec->value.u.p, later);
    batch_pool_give(pool, batch);
}

static void what_points_outside_is_copied_deeply(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *rec = mr_batch_add(&batch->pub, "t");
    char text[] = "inner";
    struct mr_value items[2] = {mr_text(text, 5), mr_long(7)};
    struct mr_pair pairs[1] = {{mr_str("k"), mr_ptr_of(MR_KIND_LIST, items, 2)}};
    static const struct mr_schema_field fields[] = {{"a", NULL}, {"b", NULL}};
    static const struct mr_schema schema = {
        .kind = MR_KIND_STRUCT, .field_count = 2, .fields = fields};
    struct {
        struct mr_struct head;
        struct mr_value more;
    } s = {{&schema, {mr_ptr_of(MR_KIND_MAP, pairs, 1)}}, mr_null()};
    struct {
        int32_t scale;
        uint32_t len;
        uint8_t bytes[8];
    } decimal = {2, 2, {1, 2}};
    struct mr_value got;
    const char *p;
    size_t len;

    s.more = mr_ptr_of(MR_KIND_DECIMAL, &decimal, 0);
    mr_record_key(rec, mr_ptr_of(MR_KIND_STRUCT, &s, 2));
    memset(items, 0xee, sizeof(items));
    memset(pairs, 0xee, sizeof(pairs));
    memset(text, 'x', sizeof(text));
    memset(&s, 0xee, sizeof(s));
    memset(&decimal, 0xee, sizeof(decimal));
    got = mr_item(mr_field(mr_field(rec->key, "a"), "k"), 0);
    assert_true(mr_as_text(got, &p, &len));
    assert_int_equal(len, 5);
    assert_memory_equal(p, "inner", 5);
    got = mr_field(rec->key, "b");
    assert_int_equal(got.kind, MR_KIND_DECIMAL);
    assert_int_equal(((const struct mr_decimal *)got.u.p)->bytes[1], 2);
    assert_false(batch->over);
    batch_pool_give(pool, batch);
}

static void malformed_values_are_faults_and_become_null(void **state)
{
    struct batch_pool *pool = *state;
    static const struct mr_schema schema = {.kind = MR_KIND_STRUCT, .field_count = 3};
    const struct mr_struct empty = {&schema, {{0}}};
    const struct mr_decimal no_digits = {0};
    struct mr_value loop[1];
    const struct mr_value bad[] = {
        mr_ptr_of(99, "x", 1),
        mr_ptr_of(MR_KIND_STRING, NULL, 5),
        mr_ptr_of(MR_KIND_STRUCT, NULL, 1),
        mr_ptr_of(MR_KIND_STRUCT, &empty, 1),
        mr_ptr_of(MR_KIND_DECIMAL, NULL, 0),
        mr_ptr_of(MR_KIND_DECIMAL, &no_digits, 0),
        mr_ptr_of(MR_KIND_LIST, "x", UINT32_MAX), /* 64 GiB of items */
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct batch *batch = batch_pool_take(pool);

        assert_int_equal(batch_own(batch, bad[i]).kind, MR_KIND_NULL);
        assert_true(batch->over);
        batch_pool_give(pool, batch);
    }
    {
        struct batch *batch = batch_pool_take(pool);

        loop[0] = mr_ptr_of(MR_KIND_LIST, loop, 1);
        batch_own(batch, loop[0]);
        assert_true(batch->over);
        assert_non_null(strstr(batch->fault, "nested"));
        batch_pool_give(pool, batch);
    }
}

static void headers_keep_order_and_content(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *rec = mr_batch_add(&batch->pub, "t");
    char name[16];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "h%d", i / 2);
        mr_record_header(rec, name, NULL, mr_text(name, strlen(name)));
    }
    assert_int_equal(rec->header_count, 100);
    for (uint32_t i = 0; i < 100; i++) {
        const struct mr_header *header = mr_header_at(rec, i);

        snprintf(name, sizeof(name), "h%u", i / 2);
        assert_string_equal(header->name, name);
        assert_int_equal(header->name_len, strlen(name));
        assert_memory_equal(header->value.u.p, name, strlen(name));
    }
    mr_record_header(rec, NULL, NULL, mr_null());
    assert_true(batch->over);
    batch_pool_give(pool, batch);
}

/* A transform may fail after it changed something: the host keeps a plain copy of the record from
 * before. */
static void headers_of_a_copy_stay_as_they_were(void **state)
{
    struct mr_header wire[] = {{.name = "a", .name_len = 1, .value = mr_long(1)},
                               {.name = "b", .name_len = 1, .value = mr_long(2)},
                               {.name = "a", .name_len = 1, .value = mr_long(3)}};
    struct batch *batch = batch_pool_take(*state);
    struct record *rec = batch_add_borrowed(batch, "t");
    struct record before;

    rec->pub.headers = wire;
    rec->pub.header_count = 3;
    mr_record_header(&rec->pub, "c", NULL, mr_long(4));
    assert_int_equal(rec->pub.header_count, 4);
    assert_int_equal(mr_header_at(&rec->pub, 3)->value.u.i, 4);
    assert_ptr_not_equal(rec->pub.headers, wire);
    before = *rec;
    assert_int_equal(mr_record_header_drop(&rec->pub, "a"), 2);
    assert_int_equal(mr_record_header_drop(&rec->pub, "zz"), 0);
    for (int i = 5; i < 40; i++)
        mr_record_header(&rec->pub, "d", NULL, mr_long(i));
    assert_int_equal(rec->pub.header_count, 37);
    assert_string_equal(mr_header_at(&rec->pub, 0)->name, "b");
    assert_int_equal(mr_header_at(&rec->pub, 1)->value.u.i, 4);
    assert_int_equal(mr_header_at(&rec->pub, 36)->value.u.i, 39);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mr_header_at(&before.pub, i)->value.u.i, i + 1);
    batch_pool_give(*state, batch);
}

static void a_record_goes_to_another_topic(void **state)
{
    struct batch *batch = batch_pool_take(*state);
    struct record *a = batch_add(batch, "t"), *b = batch_add(batch, "t");
    char text[] = "else and more";

    mr_record_topic(&a->pub, text, 4);
    mr_record_topic(&b->pub, text, 4);
    text[0] = 'x';
    assert_string_equal(a->pub.topic, "else");
    assert_ptr_equal(a->pub.topic, b->pub.topic);
    mr_record_topic(&b->pub, "t", 1);
    assert_string_equal(b->pub.topic, "t");
    mr_record_topic(&b->pub, "", 0);
    assert_string_equal(b->pub.topic, ""); /* Kafka refuses it, as in Java */
    assert_false(batch->over);
    mr_record_topic(&b->pub, "a\0b", 3);
    assert_true(batch->over);
    batch_pool_give(*state, batch);
}

static void again_asks_for_a_wait(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);

    assert_false(batch->again);
    assert_int_equal(mr_again_in(&batch->pub, 500), MR_AGAIN);
    assert_true(batch->again);
    assert_int_equal(batch->again_ms, 500);
    assert_int_equal(batch->again_fd, -1);
    assert_int_equal(mr_again_on_fd(&batch->pub, 7, -1), MR_AGAIN);
    assert_int_equal(batch->again_ms, -1);
    assert_int_equal(batch->again_fd, 7);
    mr_again_in(&batch->pub, -5); /* would wait for nothing for ever */
    assert_int_equal(batch->again_ms, 0);
    batch_pool_give(pool, batch);
}

static void offset_keys_are_told_apart_by_content(void **state)
{
    const struct mr_source_partition *part = source_partition_intern("filename", "/tmp/in");
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    const char *const names[] = {"position", "position", "line", "position"};
    char key[16];

    for (size_t i = 0; i < 4; i++) {
        snprintf(key, sizeof(key), "%s", names[i]);
        mr_record_offset_in(mr_batch_add(&batch->pub, "t"), part, key, (int64_t)i);
    }
    memset(key, 0, sizeof(key));
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(batch_at(batch, i)->offset_key, source_partition_key(names[i]));
    assert_false(batch->over);
    batch_pool_give(pool, batch);
}

static void offsets_need_partition_and_key(void **state)
{
    struct batch_pool *pool = *state;
    struct batch *batch = batch_pool_take(pool);
    struct mr_record *rec = mr_batch_add(&batch->pub, "t");
    const struct mr_source_partition *part = source_partition_intern("filename", NULL);

    mr_record_offset_in(rec, part, "position", 12);
    assert_ptr_equal(batch_at(batch, 0)->partition, part);
    assert_string_equal(batch_at(batch, 0)->offset_key, "position");
    assert_int_equal(batch_at(batch, 0)->offset_next, 12);
    assert_false(batch->over);
    mr_record_offset_in(rec, NULL, "position", 12);
    assert_true(batch->over);
    assert_null(batch_at(batch, 0)->partition);
    batch_pool_give(pool, batch);
}

static void *intern_many(void *arg)
{
    const struct mr_source_partition **out = arg;
    char value[16];

    for (int i = 0; i < 2000; i++) {
        snprintf(value, sizeof(value), "p%d", i);
        out[i] = source_partition_intern("k", value);
    }
    return NULL;
}

static void the_same_partition_is_one_pointer_in_every_thread(void **state)
{
    static const struct mr_source_partition *out[4][2000];
    pthread_t threads[4];
    char text[64];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, intern_many, out[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2000; i++) {
        char value[16];

        snprintf(value, sizeof(value), "p%d", i);
        for (int t = 0; t < 4; t++)
            assert_ptr_equal(out[t][i], out[0][i]);
        assert_string_equal(out[0][i]->key, "k");
        assert_string_equal(out[0][i]->value, value);
    }
    assert_ptr_not_equal(source_partition_intern("a", NULL), source_partition_intern("a", ""));
    assert_null(source_partition_intern(NULL, "x"));
    assert_true(source_partition_intern("k", "caf\xc3\xa9")->storable);
    assert_false(source_partition_intern("k", "caf\xe9")->storable);
    assert_false(source_partition_intern("caf\xe9", NULL)->storable);
    assert_string_equal(source_partition_show(source_partition_intern("k\xff", NULL), text, 64),
                        "{k\\xff: null}");
    memset(text, '#', sizeof(text));
    source_partition_show(source_partition_intern("0123456789", "0123456789\xff"), text, 20);
    assert_true(strlen(text) < 20 && text[20] == '#');
}

/* What the plugin's side costs once the pool is warm: no malloc at all, whatever the number of
 * records. */
static void a_warm_pool_does_not_allocate(void **state)
{
    struct batch_pool *pool = *state;
    struct mallinfo2 before = {0};

    for (int round = 0; round < 50; round++) {
        struct batch *a = batch_pool_take(pool);
        struct batch *b = batch_pool_take(pool);

        if (round == 2)
            before = mallinfo2();
        for (int i = 0; i < 3000; i++) {
            struct mr_record *rec = mr_batch_add(i % 2 ? &a->pub : &b->pub, "topic");
            char outside[100] = "a value on the plugin's stack";

            mr_record_value(rec, mr_text(outside, sizeof(outside)));
            mr_record_offset_in(rec, source_partition_intern("k", "v"), "next", i);
            mr_record_header(rec, "h", NULL, mr_long(i));
        }
        batch_pool_give(pool, a);
        batch_pool_give(pool, b);
    }
    assert_int_equal(mallinfo2().uordblks, before.uordblks);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(records_and_their_values_keep_their_addresses),
        T(topics_are_told_apart_by_content),
        T(a_record_without_topic_is_a_fault_and_usable),
        T(the_budget_stops_new_batches_until_one_is_given_back),
        T(the_number_of_batches_is_bounded),
        T(full_follows_records_and_bytes),
        T(an_absurd_request_is_usable_and_marks_the_batch),
        T(more_records_than_fit_are_a_fault),
        T(values_inside_the_arena_are_not_copied),
        T(what_points_outside_is_copied_deeply),
        T(malformed_values_are_faults_and_become_null),
        T(headers_keep_order_and_content),
        T(headers_of_a_copy_stay_as_they_were),
        T(a_record_goes_to_another_topic),
        T(again_asks_for_a_wait),
        T(offset_keys_are_told_apart_by_content),
        T(offsets_need_partition_and_key),
        T(the_same_partition_is_one_pointer_in_every_thread),
        T(a_warm_pool_does_not_allocate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
