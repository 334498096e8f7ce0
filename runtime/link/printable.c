/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made fit to be shown. The black box, a plugin's output and its error texts all pass
 * here before they reach a log line, a status trace or jansson, which takes valid UTF-8 only.
 * Pure. */
#include "link/printable.h"

#include "base/utf8.h"

void printable_clean(char *text, size_t len)
{
    unsigned char *p = (unsigned char *)text;

    for (size_t i = 0; i < len;) {
        int n = utf8_char(text + i, len - i);
        /* C1 controls are the two bytes c2 80 to c2 9f. */
        bool control = n == 1 ? (p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f
                              : n == 2 && p[i] == 0xc2 && p[i + 1] < 0xa0;

        if (n > 0 && !control) {
            i += (size_t)n;
            continue;
        }
        for (size_t last = i + (size_t)(n > 0 ? n : 1); i < last; i++)
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
