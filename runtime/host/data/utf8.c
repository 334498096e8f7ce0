/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 at the edges of the data path: file sources and StringConverter take bytes of unknown making, the rest of the
 * runtime relies on text being UTF-8. On the task's thread; no state.
 *
 * How many U+FFFD a malformed run becomes is visible to users, so it is Java's count: one for each longest prefix of a
 * well-formed sequence, with one exception: a surrogate written in three bytes (ED A0..BF xx) is one, not three. */
#include "host/data/utf8.h"

/* What may follow a lead byte: how many bytes in all, and the range of the second. len 0: no lead byte. */
struct lead {
    uint8_t len;
    uint8_t low;
    uint8_t high;
};

static struct lead lead_of(unsigned char c)
{
    if (c < 0x80)
        return (struct lead){1, 0, 0};
    if (c < 0xc2 || c > 0xf4)
        return (struct lead){0, 0, 0};
    if (c < 0xe0)
        return (struct lead){2, 0x80, 0xbf};
    if (c < 0xf0)
        return (struct lead){3, c == 0xe0 ? 0xa0 : 0x80, 0xbf};
    return (struct lead){4, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf};
}

static bool is_surrogate(const unsigned char *p)
{
    return p[0] == 0xed && p[1] >= 0xa0;
}

/* Length of the sequence at p; negative: that many bytes are one malformed part. */
static int sequence(const unsigned char *p, size_t len)
{
    struct lead lead = lead_of(p[0]);

    if (lead.len <= 1)
        return lead.len == 1 ? 1 : -1;
    if (len < 2 || p[1] < lead.low || p[1] > lead.high)
        return -1;
    for (int i = 2; i < lead.len; i++)
        if ((size_t)i >= len || (p[i] & 0xc0) != 0x80)
            return -i;
    return is_surrogate(p) ? -3 : lead.len;
}

static size_t ascii_prefix(const char *p, size_t len)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof(word) <= len; i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    while (i < len && (unsigned char)p[i] < 0x80)
        i++;
    return i;
}

size_t utf8_valid(const char *p, size_t len)
{
    size_t at = 0;

    while (at < len) {
        int n;

        at += ascii_prefix(p + at, len - at);
        if (at == len)
            break;
        n = sequence((const unsigned char *)p + at, len - at);
        if (n < 0)
            return at;
        at += (size_t)n;
    }
    return at;
}

/* One pass: copies to `to` unless it is NULL, and gives the length that the copy has. */
static size_t replace(char *to, const char *p, size_t len)
{
    size_t at = 0, made = 0;

    while (at < len) {
        size_t good = utf8_valid(p + at, len - at);

        if (to != NULL && good > 0)
            memcpy(to + made, p + at, good);
        made += good;
        at += good;
        if (at == len)
            break;
        if (to != NULL)
            memcpy(to + made, "\xef\xbf\xbd", 3);
        made += 3;
        at += (size_t)-sequence((const unsigned char *)p + at, len - at);
    }
    return made;
}

struct mr_value utf8_text(struct mr_arena *arena, const void *bytes, size_t len)
{
    char *copy;
    size_t made;

    if (utf8_valid(bytes, len) == len)
        return mr_text(bytes, len);
    made = replace(NULL, bytes, len);
    copy = mr_alloc(arena, made);
    replace(copy, bytes, len);
    return mr_text(copy, made);
}
