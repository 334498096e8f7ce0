/* SPDX-License-Identifier: Apache-2.0 */
/* Finds references in the text of configurations, where Java's pattern finds them: a reference is
 * what stands between "${" and the next "}", if there is a colon in it. A provider is all before
 * the first colon; a path all before the second, if there is one; the key is the rest, colons and
 * all. Nothing nests. Called by provider.c and by whoever asks whether a value is written out.
 * Pure. */
#include "base/config_ref.h"

#include <string.h>

static struct config_ref_part trimmed(const char *from, const char *to)
{
    while (from < to && (unsigned char)*from <= ' ')
        from++;
    while (to > from && (unsigned char)to[-1] <= ' ')
        to--;
    return (struct config_ref_part){from, (size_t)(to - from)};
}

/* Not strstr: a sanitizer's measures the whole text at each call, and there may be a million. */
static const char *next_start(const char *text)
{
    while ((text = strchr(text, '$')) != NULL && text[1] != '{')
        text++;
    return text;
}

bool config_ref_next(const char *text, struct config_ref *out)
{
    const char *start, *inside, *end, *colon, *second;

    for (start = next_start(text); start != NULL; start = next_start(end)) {
        inside = start + 2;
        end = strchr(inside, '}');
        if (end == NULL)
            return false;
        colon = memchr(inside, ':', (size_t)(end - inside));
        if (colon == NULL) /* so there is none for whatever begins before end, either */
            continue;
        second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
        out->whole = (struct config_ref_part){start, (size_t)(end + 1 - start)};
        out->provider = (struct config_ref_part){inside, (size_t)(colon - inside)};
        out->path =
            second != NULL ? trimmed(colon + 1, second) : (struct config_ref_part){colon, 0};
        out->key = trimmed(second != NULL ? second + 1 : colon + 1, end);
        return true;
    }
    return false;
}

bool config_ref_any(const char *text)
{
    struct config_ref ref;

    return text != NULL && config_ref_next(text, &ref);
}
