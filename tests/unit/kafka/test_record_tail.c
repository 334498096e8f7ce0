/* SPDX-License-Identifier: Apache-2.0 */
/* What is read off the bytes around a record's value, for values of all kinds of lengths in all
 * formats that a log may hold. */
#include "kafka/kafka_private.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

/* At, below and above each length whose varint is a byte longer, and where bytes of it repeat. */
static const size_t lengths[] = {1,     2,     62,    63,      64,      65,      100,     127,
                                 128,   129,   200,   255,     256,     257,     8190,    8191,
                                 8192,  8193,  16383, 16384,   32767,   32768,   33023,   65535,
                                 65536, 98432, 98433, 1048575, 1048576, 1048577, 8388608, 8421505};

struct lie {
    unsigned char *bytes;
    unsigned char *value;
};

static size_t put_varint(unsigned char *out, size_t len)
{
    size_t n = len << 1, size = 0;

    do {
        out[size++] = (unsigned char)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
        n >>= 7;
    } while (n > 0);
    return size;
}

/* format 0: 4 bytes of length; 2: a varint and, behind the value, tail. */
static struct lie lie_behind(size_t pad, int format, size_t len, unsigned char tail)
{
    unsigned char head[24];
    size_t size = 0;
    struct lie out;

    memset(head, 0x80, sizeof(head)); /* a key, say */
    size = 12 + pad;
    if (format == 2) {
        size += put_varint(head + size, len);
    } else {
        for (int shift = 24; shift >= 0; shift -= 8)
            head[size++] = (unsigned char)(len >> shift);
    }
    out.bytes = malloc(size + len + 1);
    assert_non_null(out.bytes);
    memcpy(out.bytes, head, size);
    out.value = out.bytes + size;
    memset(out.value, 'v', len);
    out.value[len] = tail;
    return out;
}

/* Not one that ends with its page, which is another matter. */
static struct lie lie(int format, size_t len, unsigned char tail)
{
    struct lie out = lie_behind(0, format, len, tail);

    for (size_t pad = 1; (uintptr_t)(out.value + len) % 4096 == 0 && pad < 8; pad++) {
        free(out.bytes);
        out = lie_behind(pad, format, len, tail);
    }
    return out;
}

static bool is_bare(int format, size_t len, unsigned char tail)
{
    struct lie l = lie(format, len, tail);
    bool bare = record_tail_is_bare(l.value, len);

    free(l.bytes);
    return bare;
}

static void a_record_without_headers_is_bare(void **state)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        assert_true(is_bare(2, lengths[i], 0));
}

static void a_record_with_headers_is_not(void **state)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        assert_false(is_bare(2, lengths[i], 2));
        assert_false(is_bare(2, lengths[i], 0x80));
    }
}

/* Its next byte belongs to another message, or to nobody. */
static void a_record_of_an_older_format_never_is(void **state)
{
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        assert_false(is_bare(0, lengths[i], 0));
    for (size_t len = 1; len < 40000; len++)
        if (is_bare(0, len, 0))
            fail_msg("%zu", len);
}

/* What lies behind a value that ends with its page may not be there at all. */
static void nothing_behind_the_last_page_is_read(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 100;
    unsigned char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *value = pages + page - len;

    (void)state;
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    put_varint(value - 2, len);
    assert_false(record_tail_is_bare(value, len));
    munmap(pages, 2 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_without_headers_is_bare),
        cmocka_unit_test(a_record_with_headers_is_not),
        cmocka_unit_test(a_record_of_an_older_format_never_is),
        cmocka_unit_test(nothing_behind_the_last_page_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
