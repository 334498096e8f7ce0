/* SPDX-License-Identifier: Apache-2.0 */
/* Java's order of names. The list of what a Java worker is assigned comes in the order of a hash
 * set of connector names, and the assignor takes the first of such a list away: to balance as Java
 * does, our members list theirs in that order too. A set of buckets: index by the spread hash,
 * insertion order within one (the tree form that a bucket of eight gets keeps that order in all
 * that we rely on). Spec: String.hashCode, HashSet(Collection): a table for n / 0.75 + 1, at least
 * 16. */
#include "base/java_order.h"

#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* UTF-16 compares a surrogate (D800 to DFFF, from four bytes) below U+E000 to U+FFFF (three bytes,
 * 0xee and 0xef). */
static int weight(unsigned char c)
{
    return c == 0xee || c == 0xef ? c + 0x10 : c;
}

int java_order_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return weight((unsigned char)*a) - weight((unsigned char)*b);
}

/* The character of n bytes at p as one or two UTF-16 units, mixed into h. */
static uint32_t mix(uint32_t h, const char *p, int n)
{
    uint32_t c = (unsigned char)p[0];

    if (n < 0)
        return h * 31 + 0xfffd;
    if (n > 1)
        c &= 0x7fu >> n;
    for (int i = 1; i < n; i++)
        c = (c << 6) | ((unsigned char)p[i] & 0x3f);
    if (c < 0x10000)
        return h * 31 + c;
    c -= 0x10000;
    return (h * 31 + 0xd800 + (c >> 10)) * 31 + 0xdc00 + (c & 0x3ff);
}

int32_t java_order_hash(const char *text)
{
    size_t left = strlen(text);
    uint32_t h = 0;

    while (left > 0) {
        int n = utf8_char(text, left);
        size_t step = (size_t)(n < 0 ? -n : n);

        h = mix(h, text, n);
        text += step;
        left -= step;
    }
    return (int32_t)h;
}

struct placed {
    uint32_t bucket;
    size_t index;
};

static int by_bucket(const void *pa, const void *pb)
{
    const struct placed *a = pa;
    const struct placed *b = pb;

    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

int java_order_of_set(const char *const *names, size_t count, size_t *places)
{
    struct placed *placed = calloc(count + 1, sizeof(*placed));
    uint32_t table = 16;

    if (placed == NULL)
        return MR_ERR_NOMEM;
    while (count * 4 / 3 + 1 > table)
        table *= 2;
    for (size_t i = 0; i < count; i++) {
        uint32_t h = (uint32_t)java_order_hash(names[i]);

        placed[i] = (struct placed){.bucket = (h ^ (h >> 16)) & (table - 1), .index = i};
    }
    qsort(placed, count, sizeof(*placed), by_bucket);
    for (size_t i = 0; i < count; i++)
        places[i] = placed[i].index;
    free(placed);
    return 0;
}
