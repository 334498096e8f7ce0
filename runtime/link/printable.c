/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made fit to be shown. The black box, a plugin's output and its error texts all pass here before they reach
 * a log line, a status trace or jansson, which takes valid UTF-8 only. Pure. */
#include "link/printable.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the character that begins at p, or 0 when it is none that UTF-8 allows (RFC 3629). */
static size_t sequence(const unsigned char *p, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = p[0];
    size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;

    if (n == 0 || n > len || c > 0xf4)
        return 0;
    if (n == 1)
        return 1;
    c &= 0xffu >> (n + 1);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    return n;
}

void printable_clean(char *text, size_t len)
{
    unsigned char *p = (unsigned char *)text;

    for (size_t i = 0; i < len;) {
        size_t n = sequence(p + i, len - i);
        /* C1 controls are the two bytes c2 80 to c2 9f. */
        bool control = n == 1 ? (p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f
                              : n == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0;

        if (n > 0 && !control) {
            i += n;
            continue;
        }
        for (size_t last = i + (n > 0 ? n : 1); i < last; i++)
            p[i] = '?';
    }
}

size_t printable_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (size_t back = 0; back < 4 && back <= max; back++)
        if (((unsigned char)text[max - back] & 0xc0) != 0x80)
            return max - back;
    return max;
}
