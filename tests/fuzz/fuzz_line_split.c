/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of any bytes, which come in pieces as long as the first byte says: the same as of the whole,
 * split a byte at a time. */
#include "file/line_split.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

/* The line that begins at from, and behind its end: *next; false: it has none yet. */
static bool plain_line(const char *text, size_t size, size_t from, size_t *len, size_t *next)
{
    size_t at = from;

    while (at < size && text[at] != '\n' && text[at] != '\r')
        at++;
    if (at == size || (text[at] == '\r' && at + 1 == size))
        return false;
    *len = at - from;
    *next = at + 1 + (text[at] == '\r' && text[at + 1] == '\n');
    return true;
}

/* What this much of it holds; gives where the rest begins. */
static size_t take_lines(const char *text, size_t from, size_t to)
{
    struct line_split split;
    const char *line = NULL;
    size_t len = 0, want = 0, next = from;

    line_split_init(&split, text + from, to - from);
    while (line_split_next(&split, &line, &len)) {
        require(plain_line(text, to, from, &want, &next));
        require(line == text + from && len == want);
        from = next;
    }
    require(split.p == text + from && !plain_line(text, to, from, &want, &next));
    require(line_split_seen(text + from, to - from) <= to - from);
    return from;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t step = size > 0 ? data[0] % 64 + 1u : 1, from = 0;
    const char *text = (const char *)data + 1;

    if (size < 2)
        return 0;
    size--;
    for (size_t to = 0; to < size;) {
        to = to + step < size ? to + step : size;
        from = take_lines(text, from, to);
    }
    return 0;
}
