/* SPDX-License-Identifier: Apache-2.0 */
/* Java's replacement texts: a backslash takes the next character as it is; a dollar is followed by
 * digits, as many as still name a group, or by a name in braces. On the task's thread, for each
 * record whose topic matches. */
#include "replacement.h"

#define NAME_MAX_BYTES 100
#define ILLEGAL "java.lang.IllegalArgumentException: "

struct expansion {
    const char *at;
    const struct mr_pattern *pattern;
    const struct mr_span *spans;
    const char *subject;
    char *to;
    size_t len; /* so far; the first of two passes only counts: to is NULL then */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void add(struct expansion *e, const char *p, size_t len)
{
    if (e->to != NULL)
        memcpy(e->to + e->len, p, len);
    e->len += len;
}

static void add_group(struct expansion *e, uint32_t group)
{
    const struct mr_span *span = &e->spans[group];

    if (span->start != MR_NO_SPAN)
        add(e, e->subject + span->start, span->end - span->start);
}

static int named_group(struct expansion *e, struct mr_error *err)
{
    char name[NAME_MAX_BYTES + 1];
    size_t len = 0;
    int group;

    for (; is_alpha(*e->at) || is_digit(*e->at); e->at++, len++)
        if (len < NAME_MAX_BYTES)
            name[len] = *e->at;
    name[len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES] = '\0';
    if (len == 0)
        return mr_fail(err, MR_ERR_DATA, ILLEGAL "named capturing group has 0 length name");
    if (*e->at != '}')
        return mr_fail(err, MR_ERR_DATA, ILLEGAL "named capturing group is missing trailing '}'");
    if (is_digit(name[0]))
        return mr_fail(err, MR_ERR_DATA,
                       ILLEGAL "capturing group name {%s} starts with digit character", name);
    group = len > NAME_MAX_BYTES ? -1 : mr_pattern_group(e->pattern, name);
    if (group < 0)
        return mr_fail(err, MR_ERR_DATA, ILLEGAL "No group with name {%s}", name);
    e->at++;
    add_group(e, (uint32_t)group);
    return MR_OK;
}

static int reference(struct expansion *e, struct mr_error *err)
{
    uint32_t group;

    if (*e->at == '\0')
        return mr_fail(err, MR_ERR_DATA, ILLEGAL "Illegal group reference: group index is missing");
    if (*e->at == '{') {
        e->at++;
        return named_group(e, err);
    }
    if (!is_digit(*e->at))
        return mr_fail(err, MR_ERR_DATA, ILLEGAL "Illegal group reference");
    group = (uint32_t)(*e->at++ - '0');
    while (is_digit(*e->at)) {
        uint32_t longer = group * 10 + (uint32_t)(*e->at - '0');

        if (longer > e->pattern->groups)
            break;
        group = longer;
        e->at++;
    }
    if (group > e->pattern->groups)
        return mr_fail(err, MR_ERR_DATA, "java.lang.IndexOutOfBoundsException: No group %u", group);
    add_group(e, group);
    return MR_OK;
}

static int pass(struct expansion *e, const char *text, struct mr_error *err)
{
    int rc = MR_OK;

    e->at = text;
    e->len = 0;
    while (*e->at != '\0' && rc == MR_OK) {
        char c = *e->at++;

        if (c == '$') {
            rc = reference(e, err);
        } else if (c == '\\' && *e->at == '\0') {
            rc = mr_fail(err, MR_ERR_DATA, ILLEGAL "character to be escaped is missing");
        } else if (c == '\\') {
            add(e, e->at++, 1);
        } else {
            add(e, e->at - 1, 1);
        }
    }
    return rc;
}

int replacement_expand(const char *text, const struct mr_pattern *pattern,
                       const struct mr_span *spans, const char *subject, struct mr_arena *arena,
                       struct mr_value *out, struct mr_error *err)
{
    struct expansion e = {.pattern = pattern, .spans = spans, .subject = subject};
    int rc = pass(&e, text, err);

    if (rc != MR_OK)
        return rc;
    e.to = (char *)mr_alloc(arena, e.len + 1);
    rc = pass(&e, text, err);
    e.to[e.len] = '\0';
    *out = mr_text(e.to, e.len);
    return rc;
}
