/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that JsonConverter writes: a buffer kept between records, and Jackson's spelling of
 * strings and integers. The buffer's owner checks `failed` once, at the end of a record. */
#include "json_private.h"

#include <stdlib.h>

#define OUT_FIRST ((size_t)1024)
#define OUT_KEEP ((size_t)1024 * 1024)

void json_out_reset(struct json_out *out)
{
    out->len = 0;
    out->failed = false;
    if (out->cap > OUT_KEEP)
        json_out_free(out);
}

void json_out_free(struct json_out *out)
{
    free(out->p);
    memset(out, 0, sizeof(*out));
}

char *json_out_grow(struct json_out *out, size_t len)
{
    size_t cap = out->cap == 0 ? OUT_FIRST : out->cap;
    char *p;

    if (out->failed || len > JSON_OUT_MAX || out->len > JSON_OUT_MAX - len) {
        out->failed = true;
        return NULL;
    }
    while (cap < out->len + len)
        cap *= 2;
    p = realloc(out->p, cap);
    if (p == NULL) {
        out->failed = true;
        return NULL;
    }
    out->p = p;
    out->cap = cap;
    return p + out->len;
}

void json_out_puts(struct json_out *out, const char *z)
{
    json_out_add(out, z, strlen(z));
}

void json_out_long(struct json_out *out, int64_t i)
{
    static const char pairs[] = "000102030405060708091011121314151617181920212223242526272829303132"
                                "3334353637383940414243444546474849"
                                "505152535455565758596061626364656667686970717273747576777879808182"
                                "8384858687888990919293949596979899";
    uint64_t rest = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    char text[24], *p = text + sizeof(text);

    while (rest >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (rest % 100), 2);
        rest /= 100;
    }
    if (rest >= 10) {
        p -= 2;
        memcpy(p, pairs + 2 * rest, 2);
    } else {
        *--p = (char)('0' + rest);
    }
    if (i < 0)
        *--p = '-';
    json_out_add(out, p, (size_t)(text + sizeof(text) - p));
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Bytes that stand for themselves from p on: all but controls, quotes, backslashes and whatever is
 * not ASCII. */
static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Copies them too; to has room for len and 8 more bytes, which may be written over. */
static inline size_t copy_plain(char *to, const char *p, size_t len)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = UINT64_C(0x8080808080808080);
    size_t i = 0;
    uint64_t word, marks;

    for (; i + 8 <= len; i += 8) {
        memcpy(&word, p + i, sizeof(word));
        memcpy(to + i, &word, sizeof(word));
        marks =
            (((word - ones * 0x20) | ((word ^ ones * '"') - ones) | ((word ^ ones * '\\') - ones)) &
             ~word & highs) |
            (word & highs); /* the lowest mark is never a false one */
        if (marks != 0)
            return i + (size_t)(__builtin_ctzll(marks) >> 3);
    }
    for (; i < len && is_plain((unsigned char)p[i]); i++)
        to[i] = p[i];
    return i;
}

static size_t put_unit(char *to, unsigned unit)
{
    static const char hex[] = "0123456789ABCDEF";

    to[0] = '\\';
    to[1] = 'u';
    for (int i = 0; i < 4; i++)
        to[2 + i] = hex[unit >> (12 - 4 * i) & 15];
    return 6;
}

static size_t put_ascii(char *to, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    const char *found = c == 0 ? NULL : strchr(from, c);

    if (found == NULL)
        return put_unit(to, c);
    to[0] = '\\';
    to[1] = into[found - from];
    return 2;
}

/* One sequence that is not ASCII: *used bytes of it, what it becomes at to (12 bytes at most). */
static size_t put_sequence(char *to, const unsigned char *p, size_t len, size_t *used)
{
    size_t need = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = p[0] == 0xf4 ? 0x8f : 0xbf, code;

    *used = 1;
    if (p[0] >= 0xc2 && p[0] <= 0xf4 && len > 1 && p[1] >= low && p[1] <= high)
        for (*used = 2; *used < need && *used < len && (p[*used] & 0xc0) == 0x80; ++*used)
            ;
    if (*used < need) {
        memcpy(to, "\xef\xbf\xbd", 3);
        return 3;
    }
    if (need == 3 && p[0] == 0xed && p[1] >= 0xa0)
        return put_unit(to, 0xd000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
    if (need == 4) {
        code = ((p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu)) -
               0x10000u;
        put_unit(to, 0xd800u | code >> 10);
        return 6 + put_unit(to + 6, 0xdc00u | (code & 0x3ffu));
    }
    memcpy(to, p, need);
    return need;
}

/* From the first byte on that doesn't stand for itself. */
static void string_rest(struct json_out *out, const char *p, size_t len)
{
    while (len > 0 && !out->failed) {
        char *to = json_out_room(out, len + 16);
        size_t used = 1, run;

        if (to == NULL)
            return;
        if ((unsigned char)*p < 0x80)
            out->len += put_ascii(to, (unsigned char)*p);
        else
            out->len += put_sequence(to, (const unsigned char *)p, len, &used);
        p += used;
        len -= used;
        to = json_out_room(out, len + 8);
        if (to == NULL)
            return;
        run = copy_plain(to, p, len);
        out->len += run;
        p += run;
        len -= run;
    }
}

void json_out_string(struct json_out *out, const char *p, size_t len)
{
    char *to = json_out_room(out, len + 10);
    size_t run;

    if (to == NULL)
        return;
    *to = '"';
    run = copy_plain(to + 1, p, len);
    out->len += run + 1;
    if (run < len)
        string_rest(out, p + run, len - run);
    json_out_putc(out, '"');
}

void json_out_base64(struct json_out *out, const unsigned char *p, size_t len)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = (len + 2) / 3 * 4 + 2;
    char *to = json_out_room(out, size);

    if (to == NULL)
        return;
    out->len += size;
    *to++ = '"';
    for (; len > 0; p += 3, to += 4) {
        unsigned bits =
            (unsigned)p[0] << 16 | (len > 1 ? (unsigned)p[1] << 8 : 0) | (len > 2 ? p[2] : 0u);

        to[0] = abc[bits >> 18];
        to[1] = abc[bits >> 12 & 63];
        to[2] = len > 1 ? abc[bits >> 6 & 63] : '=';
        to[3] = len > 2 ? abc[bits & 63] : '=';
        len -= len > 3 ? 3 : len;
    }
    *to = '"';
}
