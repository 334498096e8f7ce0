/* SPDX-License-Identifier: Apache-2.0 */
/* What is UTF-8 and what is not, for text of every making: a client's JSON and paths, a plugin's
 * strings, the bytes of a file. Called from every room, on any thread, also for each value of a
 * record: text that is ASCII is passed eight bytes at a time.
 *
 * How long a malformed part is shows in the number of U+FFFD that it becomes, so it is Java's: the
 * longest prefix of a well-formed sequence, with one exception: a surrogate written in three bytes
 * (ED A0..BF xx) is one part, not three. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* What may follow a lead byte: how many bytes in all, and the range of the second. len 0: no lead
 * byte. */
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

int utf8_char(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
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

size_t utf8_prefix(const char *p, size_t len)
{
    size_t at = 0;

    while (at < len) {
        int n;

        at += ascii_prefix(p + at, len - at);
        if (at == len)
            break;
        n = utf8_char(p + at, len - at);
        if (n < 0)
            return at;
        at += (size_t)n;
    }
    return at;
}

bool utf8_valid(const char *p, size_t len)
{
    return utf8_prefix(p, len) == len;
}

size_t utf8_encode(char *text, size_t len)
{
    size_t at = utf8_prefix(text, len), made = at;

    while (at < len) {
        bool zero = len - at > 1 && memcmp(text + at, "\xc0\x80", 2) == 0;
        size_t good, bad = zero ? 2 : (size_t)-utf8_char(text + at, len - at);

        text[made++] = zero ? '\0' : '?';
        at += bad;
        good = utf8_prefix(text + at, len - at);
        memmove(text + made, text + at, good);
        made += good;
        at += good;
    }
    return made;
}

size_t utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
        max--;
    return max;
}
