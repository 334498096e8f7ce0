/* SPDX-License-Identifier: Apache-2.0 */
/* For typing errors in files: which known name was meant? Called where unknown keys are warned
 * about. Pure; any thread. */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

#define NEAREST_MAX 128

/* Edit distance with transpositions, given up above `limit`. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len, size_t limit)
{
    unsigned char before[NEAREST_MAX + 1], last[NEAREST_MAX + 1], row[NEAREST_MAX + 1];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = (unsigned char)j;
    memcpy(before, last, sizeof(before));
    for (size_t i = 1; i <= a_len; i++) {
        size_t best = row[0] = (unsigned char)i;

        for (size_t j = 1; j <= b_len; j++) {
            size_t d = (size_t)last[j - 1] + (a[i - 1] != b[j - 1]);

            if (d > (size_t)last[j] + 1)
                d = (size_t)last[j] + 1;
            if (d > (size_t)row[j - 1] + 1)
                d = (size_t)row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d > (size_t)before[j - 2] + 1)
                d = (size_t)before[j - 2] + 1;
            row[j] = (unsigned char)d;
            best = d < best ? d : best;
        }
        if (best > limit)
            return limit + 1;
        memcpy(before, last, sizeof(before));
        memcpy(last, row, sizeof(last));
    }
    return last[b_len];
}

const char *nearest_name(const char *name, const char *const *known)
{
    size_t len = strlen(name), best = len / 4 + 1;
    const char *found = NULL;

    if (len > NEAREST_MAX)
        return NULL;
    best = best > 4 ? 4 : best;
    for (; *known != NULL; known++) {
        size_t known_len = strlen(*known), d;

        if (known_len > NEAREST_MAX || known_len > len + best || len > known_len + best)
            continue;
        d = distance(name, len, *known, known_len, best);
        if (d <= best && (found == NULL || d < best)) {
            best = d;
            found = *known;
        }
    }
    return found;
}
