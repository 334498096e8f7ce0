/* SPDX-License-Identifier: Apache-2.0 */
/* Text out of bytes, at the edge of the data path: file sources and StringConverter take bytes of
 * unknown making, the rest of the runtime relies on text being UTF-8. On the task's thread; no
 * state. */
#include "host/data/utf8_text.h"

#include "base/utf8.h"

#include <string.h>

/* One pass: copies to `to` unless it is NULL, and gives the length that the copy has. */
static size_t replace(char *to, const char *p, size_t len)
{
    size_t at = 0, made = 0;

    while (at < len) {
        size_t good = utf8_prefix(p + at, len - at);

        if (to != NULL && good > 0)
            memcpy(to + made, p + at, good);
        made += good;
        at += good;
        if (at == len)
            break;
        if (to != NULL)
            memcpy(to + made, "\xef\xbf\xbd", 3);
        made += 3;
        at += (size_t)-utf8_char(p + at, len - at);
    }
    return made;
}

struct mr_value utf8_text(struct mr_arena *arena, const void *bytes, size_t len)
{
    char *copy;
    size_t made;

    if (utf8_valid(bytes, len))
        return mr_text(bytes, len);
    made = replace(NULL, bytes, len);
    copy = mr_alloc(arena, made);
    replace(copy, bytes, len);
    return mr_text(copy, made);
}
