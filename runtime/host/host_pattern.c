/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions for plugins: base/java_pattern behind the host's table. Runs on the plugin's
 * threads; a pattern is used by one of them at a time. What a plugin gives is checked as far as
 * that is possible. */
#include "host/host_pattern.h"

#include "base/java_pattern.h"

#include <stdlib.h>

struct host_pattern {
    struct mr_pattern pub; /* first */
    struct java_pattern *java;
};

static struct host_pattern *own(const struct mr_pattern *pattern)
{
    return (struct host_pattern *)(uintptr_t)pattern;
}

struct mr_pattern *host_pattern_make(const struct mr_host *host, const char *regex,
                                     struct mr_error *err)
{
    struct host_pattern *p;

    if (regex == NULL) {
        mr_fail(err, MR_ERR_FATAL, "mr_pattern_make was called without a regular expression");
        return NULL;
    }
    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a regular expression");
        return NULL;
    }
    p->java = java_pattern_make(regex, err);
    if (p->java == NULL) {
        free(p);
        return NULL;
    }
    p->pub.host = host;
    p->pub.groups = java_pattern_groups(p->java);
    return &p->pub;
}

void host_pattern_free(struct mr_pattern *pattern)
{
    struct host_pattern *p = own(pattern);

    if (p == NULL)
        return;
    java_pattern_free(&p->java);
    free(p);
}

int host_pattern_find(struct mr_pattern *pattern, const struct mr_pattern_search *search,
                      struct mr_error *err)
{
    struct java_pattern *java = own(pattern)->java;
    int rc;

    if (search->from > search->len || (search->text == NULL && search->len > 0))
        return mr_fail(err, MR_ERR_FATAL,
                       "mr_pattern_find was called with a text of %zu bytes to begin at %zu",
                       search->len, search->from);
    rc = java_pattern_find(java, search->text, search->len, search->from, search->whole, err);
    for (size_t i = 0; rc == 1 && i < search->count; i++) {
        struct mr_span *span = &search->spans[i];

        if (i > UINT32_MAX || !java_pattern_span(java, (uint32_t)i, &span->start, &span->end))
            span->start = span->end = MR_NO_SPAN;
    }
    return rc;
}

int host_pattern_group(const struct mr_pattern *pattern, const char *name)
{
    return name == NULL ? -1 : java_pattern_group(own(pattern)->java, name);
}
