/* SPDX-License-Identifier: Apache-2.0 */
/* Which encoding a document is in: JSON begins with an ASCII character, so zero bytes among the
 * first four tell, and a byte order mark says. UTF-8, by far the usual case, costs two comparisons;
 * the others are rewritten as UTF-8 in the arena.
 *
 * The order of the tests is Jackson's (ByteSourceJsonBootstrapper), quirks included: "5" and a zero
 * byte is UTF-16, a UTF-8 mark counts only in front of something. UTF-16 goes through Java's
 * decoder, which replaces what is malformed. */
#include "json_private.h"

enum encoding { UTF8, UTF16_BE, UTF16_LE, UTF32_BE, UTF32_LE, UNKNOWN };

struct found {
    enum encoding encoding;
    size_t skip; /* of a mark */
};

static enum encoding from_zeros16(uint32_t two)
{
    return (two & 0xff00) == 0 ? UTF16_BE : (two & 0x00ff) == 0 ? UTF16_LE : UTF8;
}

static enum encoding from_zeros(uint32_t four)
{
    if (four >> 8 == 0)
        return UTF32_BE;
    if ((four & 0x00ffffffu) == 0)
        return UTF32_LE;
    if ((four & 0xff00ffffu) == 0 || (four & 0xffff00ffu) == 0)
        return UNKNOWN;
    return from_zeros16(four >> 16);
}

static struct found find(const unsigned char *p, size_t len)
{
    uint32_t four;

    if (len < 4)
        return (struct found){len < 2 ? UTF8 : from_zeros16((uint32_t)p[0] << 8 | p[1]), 0};
    four = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    switch (four) {
    case 0x0000feffu:
        return (struct found){UTF32_BE, 4};
    case 0xfffe0000u:
        return (struct found){UTF32_LE, 4};
    case 0x0000fffeu:
    case 0xfeff0000u:
        return (struct found){UNKNOWN, 0};
    default:
        break;
    }
    if (four >> 16 == 0xfeff)
        return (struct found){UTF16_BE, 2};
    if (four >> 16 == 0xfffe)
        return (struct found){UTF16_LE, 2};
    if (four >> 8 == 0xefbbbf)
        return (struct found){UTF8, 3};
    return (struct found){from_zeros(four), 0};
}

static size_t put_code(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static uint32_t unit16(const unsigned char *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

/* One character of UTF-16 at p; *used bytes. As Java: a high half without its low half takes the
 * next unit with it. */
static uint32_t next16(const unsigned char *p, size_t len, bool big, size_t *used)
{
    uint32_t high, low;

    *used = len < 2 ? len : 2;
    if (len < 2)
        return 0xfffd;
    high = unit16(p, big);
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high >= 0xdc00)
        return 0xfffd;
    *used = len < 4 ? len : 4;
    low = len < 4 ? 0 : unit16(p + 2, big);
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00))
                                          : 0xfffd;
}

static int rewrite16(struct mr_arena *arena, const unsigned char *p, size_t len, bool big,
                     const char **data, size_t *out)
{
    char *copy = (char *)mr_alloc(arena, len / 2 * 3 + 8), *to = copy;
    size_t used;

    for (; len > 0; p += used, len -= used)
        to += put_code(to, next16(p, len, big, &used));
    *data = copy;
    *out = (size_t)(to - copy);
    return MR_OK;
}

static int rewrite32(struct mr_arena *arena, const unsigned char *p, size_t len, bool big,
                     const char **data, size_t *out, struct mr_error *err)
{
    char *copy = (char *)mr_alloc(arena, len + 8), *to = copy;

    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint32_t a = unit16(p + i, big), b = unit16(p + i + 2, big);
        uint32_t code = big ? a << 16 | b : b << 16 | a;

        if (code > 0x10ffff)
            return mr_fail(err, MR_ERR_DATA, "invalid UTF-32 at byte %zu", i);
        to += put_code(to, code);
    }
    if (len % 4 != 0)
        return mr_fail(err, MR_ERR_DATA, "the document ends in the middle of a UTF-32 character");
    *data = copy;
    *out = (size_t)(to - copy);
    return MR_OK;
}

int json_encoding_detect(struct mr_arena *arena, const char **data, size_t *len, bool *wide,
                         struct mr_error *err)
{
    const unsigned char *p = (const unsigned char *)*data;
    struct found found;
    size_t left;

    *wide = false;
    if (*len < 2 || (p[0] != 0 && p[1] != 0 && p[0] < 0x80))
        return MR_OK;
    found = find(p, *len);
    p += found.skip;
    left = *len - found.skip;
    *wide = found.encoding != UTF8;
    switch (found.encoding) {
    case UTF8:
        *data = (const char *)p;
        *len = left;
        return MR_OK;
    case UTF16_BE:
    case UTF16_LE:
        return rewrite16(arena, p, left, found.encoding == UTF16_BE, data, len);
    case UTF32_BE:
    case UTF32_LE:
        return rewrite32(arena, p, left, found.encoding == UTF32_BE, data, len, err);
    default:
        return mr_fail(
            err, MR_ERR_DATA,
            "the document is in an encoding that JSON does not have (2143 or 3412 order)");
    }
}
