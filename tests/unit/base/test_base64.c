/* SPDX-License-Identifier: Apache-2.0 */
/* base64: the vectors of RFC 4648, and what java.util.Base64's basic decoder takes and refuses. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void vectors_of_the_rfc_both_ways(void **state)
{
    static const char *const vectors[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xfe\xfd", "//79"},
        {"\xfb\xff", "+/8="},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        unsigned char bytes[16];
        size_t len = 99;
        struct buf out;

        buf_init(&out, 100);
        assert_int_equal(base64_encode(&out, vectors[i][0], strlen(vectors[i][0])), 0);
        assert_string_equal(out.len > 0 ? out.data : "", vectors[i][1]);
        buf_deinit(&out);
        assert_true(
            base64_decode(vectors[i][1], strlen(vectors[i][1]), bytes, sizeof(bytes), &len));
        assert_int_equal(len, strlen(vectors[i][0]));
        assert_memory_equal(bytes, vectors[i][0], len);
    }
}

static bool takes(const char *text)
{
    unsigned char bytes[16];
    size_t len;

    return base64_decode(text, strlen(text), bytes, sizeof(bytes), &len);
}

static void padding_may_be_left_out_but_not_be_wrong(void **state)
{
    (void)state;
    assert_true(takes("Zg"));
    assert_true(takes("Zm8"));
    assert_false(takes("Zg="));
    assert_false(takes("Z"));
    assert_false(takes("Zm9v="));
    assert_false(takes("Zm9v===="));
    assert_false(takes("===="));
    assert_false(takes("Zg==Zg=="));
    assert_false(takes("***"));
    assert_false(takes("Zm9v\n"));
    assert_false(takes("Zm-_"));
}

static void the_callers_room_is_kept(void **state)
{
    unsigned char bytes[2];
    size_t len;

    (void)state;
    assert_true(base64_decode("Zm8=", 4, bytes, 2, &len));
    assert_false(base64_decode("Zm9v", 4, bytes, 2, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_rfc_both_ways),
        cmocka_unit_test(padding_may_be_left_out_but_not_be_wrong),
        cmocka_unit_test(the_callers_room_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
