/* SPDX-License-Identifier: Apache-2.0 */
/* codec, wire_arena: each type to bytes and back, and everything that bytes may claim and not
 * hold. */
#include "wire/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wire_arena arena;

static struct codec_reader reader(const void *bytes, size_t len)
{
    struct codec_reader r;

    wire_arena_deinit(&arena);
    wire_arena_init(&arena, 4096);
    codec_reader_init(&r, bytes, len, &arena);
    return r;
}

static void assert_fault(struct codec_reader *r, const char *why)
{
    struct mr_error err = {0};

    assert_int_equal(codec_reader_end(r, &err), MR_ERR_PROTOCOL);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" is not in: %s", why, err.text);
}

static void what_is_written_is_read(void **state)
{
    struct codec_reader r;
    struct codec_bytes bytes;
    struct buf out;

    buf_init(&out, 1000);
    codec_put_bool(&out, true);
    codec_put_i8(&out, -2);
    codec_put_i16(&out, INT16_MIN);
    codec_put_i32(&out, -5);
    codec_put_i64(&out, INT64_MIN + 1);
    codec_put_text(&out, "Grüße");
    codec_put_text(&out, NULL);
    codec_put_text(&out, "");
    codec_put_bytes(&out, (struct codec_bytes){(const uint8_t *)"a\0b", 3});
    codec_put_bytes(&out, (struct codec_bytes){0});
    codec_put_count(&out, 1);
    assert_false(out.failed);
    r = reader(out.data, out.len);
    assert_true(codec_get_bool(&r));
    assert_int_equal(codec_get_i8(&r), -2);
    assert_int_equal(codec_get_i16(&r), INT16_MIN);
    assert_int_equal(codec_get_i32(&r), -5);
    assert_int_equal(codec_get_i64(&r), INT64_MIN + 1);
    assert_string_equal(codec_get_text(&r), "Grüße");
    assert_null(codec_get_null_text(&r));
    assert_string_equal(codec_get_text(&r), "");
    bytes = codec_get_bytes(&r);
    assert_int_equal(bytes.len, 3);
    assert_memory_equal(bytes.data, "a\0b", 3);
    assert_int_equal(codec_get_bytes(&r).len, 0);
    assert_fault(&(struct codec_reader){.at = r.at, .end = r.end}, "4 bytes are left over");
    codec_get_i32(&r);
    assert_int_equal(codec_reader_end(&r, NULL), 0);
    buf_deinit(&out);
}

static void numbers_are_big_endian(void **state)
{
    struct buf out;

    buf_init(&out, 100);
    codec_put_i32(&out, 0x01020304);
    codec_put_text(&out, "c");
    codec_put_text(&out, NULL);
    assert_int_equal(out.len, 9);
    assert_memory_equal(out.data, "\1\2\3\4\0\1c\xff\xff", 9);
    buf_deinit(&out);
}

static void lengths_that_lie_are_faults(void **state)
{
    struct codec_reader r = reader("\x00\x05"
                                   "abcd",
                                   6);

    assert_string_equal(codec_get_text(&r), "");
    assert_fault(&r, "goes beyond its end");
    assert_string_equal(codec_get_null_text(&r), ""); /* after a fault never NULL */
    r = reader("\xff\xfe", 2);
    codec_get_text(&r);
    assert_fault(&r, "negative");
    r = reader("\xff\xff", 2);
    assert_string_equal(codec_get_text(&r), "");
    assert_fault(&r, "null");
    r = reader("\x80\x00\x00\x00", 4);
    assert_int_equal(codec_get_bytes(&r).len, 0);
    assert_fault(&r, "negative");
    r = reader("\x7f\xff\xff\xff", 4);
    codec_get_bytes(&r);
    assert_fault(&r, "goes beyond its end");
    r = reader("\0", 1);
    assert_int_equal(codec_get_i64(&r), 0);
    assert_fault(&r, "ends too early");
}

static void texts_are_utf_8_without_nul(void **state)
{
    struct codec_reader r = reader("\0\2\xc3\x28", 4);

    codec_get_text(&r);
    assert_fault(&r, "UTF-8");
    r = reader("\0\3a\0b", 5);
    codec_get_text(&r);
    assert_fault(&r, "UTF-8");
    r = reader("\0\3a\0b", 5);
    codec_skip_text(&r);
    assert_int_equal(codec_reader_end(&r, NULL), 0);
}

static void a_count_is_checked_before_memory_is_taken(void **state)
{
    struct codec_reader r = reader("\0\0\0\3\0\0\0\0\0\0\0\0", 12);
    size_t count = 99;

    assert_null(codec_get_array(&r, 3, 1u << 20, &count));
    assert_int_equal(count, 0);
    assert_fault(&r, "goes beyond its end");
    assert_int_equal(arena.used, 0);
    r = reader("\x7f\xff\xff\xff\0\0", 6);
    assert_int_equal(codec_get_count(&r, 1), 0);
    r = reader("\xff\xff\xff\xff", 4);
    assert_int_equal(codec_get_count(&r, 1), 0);
    assert_int_equal(codec_reader_end(&r, NULL), 0);
    r = reader("\xff\xff\xff\xfe", 4);
    codec_get_count(&r, 1);
    assert_fault(&r, "negative");
    r = reader("\0\0\0\2\0\0", 6);
    assert_null(codec_get_array(&r, 1, 3000, &count)); /* more than the arena may hold */
    assert_fault(&r, "too large");
}

static void a_text_that_is_too_long_fails_the_writer(void **state)
{
    char *text = malloc(40000);
    struct buf out;

    memset(text, 'x', 39999);
    text[39999] = '\0';
    buf_init(&out, 100000);
    codec_put_text(&out, text);
    assert_true(out.failed);
    buf_deinit(&out);
    free(text);
}

static void an_arena_keeps_to_its_cap_and_alignment(void **state)
{
    char *odd;
    uint64_t *number;

    wire_arena_deinit(&arena);
    wire_arena_init(&arena, 10000);
    odd = wire_arena_get(&arena, 3, 1);
    number = wire_arena_get(&arena, 1, 8);
    assert_non_null(odd);
    assert_int_equal((uintptr_t)number % 8, 0);
    assert_int_equal(*number, 0);
    assert_non_null(wire_arena_get(&arena, 1, 9000));
    assert_null(wire_arena_get(&arena, 1, 1000));
    assert_null(wire_arena_get(&arena, SIZE_MAX / 2, 16));
    assert_null(wire_arena_get(&arena, SIZE_MAX, 1));
    assert_non_null(wire_arena_get(&arena, 1, 900));
}

static int forget(void **state)
{
    wire_arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(numbers_are_big_endian),
        cmocka_unit_test(lengths_that_lie_are_faults),
        cmocka_unit_test(texts_are_utf_8_without_nul),
        cmocka_unit_test(a_count_is_checked_before_memory_is_taken),
        cmocka_unit_test(a_text_that_is_too_long_fails_the_writer),
        cmocka_unit_test(an_arena_keeps_to_its_cap_and_alignment),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
