/* SPDX-License-Identifier: Apache-2.0 */
/* Java's regular expressions: up to the first NUL an expression, behind it a text. Whatever they
 * are, the answer is one of those that are promised, and comes in time. */
#include "base/java_pattern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_spans(struct java_pattern *p, size_t from, size_t len, bool whole)
{
    size_t start, end;

    for (uint32_t g = 0; g <= java_pattern_groups(p) + 1; g++) {
        if (!java_pattern_span(p, g, &start, &end)) {
            if (g == 0)
                abort();
            continue;
        }
        if (g > java_pattern_groups(p) || start > end || end > len)
            abort();
        if (g == 0 && (start < from || (whole && (start != from || end != len))))
            abort();
    }
}

static void try(struct java_pattern *p, const char *text, size_t len, bool whole)
{
    struct mr_error err = {0};
    int rc = java_pattern_find(p, text, len, 0, whole, &err);

    if (rc == 1)
        check_spans(p, 0, len, whole);
    else if (rc != 0 && (rc != err.code || err.text[0] == '\0'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, 0, size);
    size_t len = nul != NULL ? (size_t)(nul - data) : size;
    const char *text = nul != NULL ? (const char *)nul + 1 : "";
    struct mr_error err = {0};
    char *regex = calloc(1, len + 1);
    struct java_pattern *p;

    memcpy(regex, data, len);
    p = java_pattern_make(regex, &err);
    if (p == NULL && err.code != MR_ERR_CONFIG)
        abort();
    if (p != NULL) {
        try(p, text, nul != NULL ? size - len - 1 : 0, true);
        try(p, text, nul != NULL ? size - len - 1 : 0, false);
    }
    java_pattern_free(&p);
    free(regex);
    return 0;
}
