/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles what java_syntax.c wrote, and matches with it; the only user of pcre2.h.
 *
 * Each expression is compiled twice, since the compiled machine code must know whether the whole
 * text has to match. Where an expression takes too many steps on a text (nested repetitions do),
 * the match ends with an error instead of hanging: ten million tries, a megabyte of stack. Machine
 * code does not count all tries, so a process that may not hang asks java_pattern_matches_once.
 * Used for topic names by worker, host and consumer, and by plugins through the host's table; one
 * thread at a time for each pattern. */
#include "base/java_pattern.h"

#include "base/java_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 10000000
#define ONCE_STEPS_MAX 100000
#define ONCE_DEPTH_MAX 10000
#define HEAP_MAX_KIB 20000
#define STACK_MIN ((size_t)32 * 1024)
#define STACK_MAX ((size_t)1024 * 1024)
#define OUT_MAX ((size_t)1024 * 1024)

struct java_pattern {
    pcre2_code *find;
    pcre2_code *whole;
    pcre2_match_data *found;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    struct java_syntax syntax;
};

static int compile_error(const char *regex, int code, struct mr_error *err)
{
    PCRE2_UCHAR why[200] = "";

    if (code == PCRE2_ERROR_UNKNOWN_UNICODE_PROPERTY)
        return mr_fail(err, MR_ERR_CONFIG, "Unknown character property name\n%.800s", regex);
    if (code == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH)
        return mr_fail(
            err, MR_ERR_CONFIG,
            "a look-behind of varying length is not supported here; write each length as "
            "an alternative, (?<=a|aa) for (?<=a{1,2}): %.700s",
            regex);
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for a regular expression");
    pcre2_get_error_message(code, why, sizeof(why));
    return mr_fail(err, MR_ERR_CONFIG, "the regular expression is not supported here (%s): %.700s",
                   (const char *)why, regex);
}

static int compile(const char *regex, const struct buf *text, uint32_t options, pcre2_code **code,
                   struct mr_error *err)
{
    PCRE2_SIZE where;
    int why;

    *code = pcre2_compile((PCRE2_SPTR)text->data, text->len,
                          options | PCRE2_UTF | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C, &why,
                          &where, NULL);
    if (*code == NULL)
        return compile_error(regex, why, err);
    return 0;
}

static int build(struct java_pattern *p, const char *regex, struct mr_error *err)
{
    struct buf text;
    int rc;

    buf_init(&text, OUT_MAX);
    rc = java_syntax_translate(regex, &text, &p->syntax, err);
    if (rc == 0)
        rc = compile(regex, &text, 0, &p->find, err);
    if (rc == 0)
        rc = compile(regex, &text, PCRE2_ANCHORED | PCRE2_ENDANCHORED, &p->whole, err);
    buf_deinit(&text);
    if (rc != 0)
        return rc;
    /* On a platform that has no such compiler the library interprets. */
    pcre2_jit_compile(p->find, PCRE2_JIT_COMPLETE);
    pcre2_jit_compile(p->whole, PCRE2_JIT_COMPLETE);
    return 0;
}

static bool prepare(struct java_pattern *p)
{
    p->found = pcre2_match_data_create_from_pattern(p->find, NULL);
    p->limits = pcre2_match_context_create(NULL);
    p->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
    if (p->found == NULL || p->limits == NULL)
        return false;
    pcre2_set_match_limit(p->limits, STEPS_MAX);
    pcre2_set_heap_limit(p->limits, HEAP_MAX_KIB);
    if (p->stack != NULL)
        pcre2_jit_stack_assign(p->limits, NULL, p->stack);
    return true;
}

struct java_pattern *java_pattern_make(const char *regex, struct mr_error *err)
{
    struct java_pattern *p = calloc(1, sizeof(*p));

    if (p == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a regular expression");
        return NULL;
    }
    if (build(p, regex, err) != 0) {
        java_pattern_free(&p);
    } else if (!prepare(p)) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory for a regular expression");
        java_pattern_free(&p);
    }
    return p;
}

static void deinit(struct java_pattern *p)
{
    pcre2_code_free(p->find);
    pcre2_code_free(p->whole);
    pcre2_match_data_free(p->found);
    pcre2_match_context_free(p->limits);
    pcre2_jit_stack_free(p->stack);
    java_syntax_deinit(&p->syntax);
}

void java_pattern_free(struct java_pattern **pattern)
{
    if (*pattern == NULL)
        return;
    deinit(*pattern);
    free(*pattern);
    *pattern = NULL;
}

static int match_error(int code, struct mr_error *err)
{
    PCRE2_UCHAR why[200] = "";

    switch (code) {
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
    case PCRE2_ERROR_JIT_STACKLIMIT:
        return mr_fail(err, MR_ERR_DATA,
                       "a regular expression takes too many steps on a text; nested repetitions "
                       "such as (a+)+ do that");
    case PCRE2_ERROR_NOMEMORY:
        return mr_fail(err, MR_ERR_NOMEM, "out of memory for matching a regular expression");
    default:
        pcre2_get_error_message(code, why, sizeof(why));
        return mr_fail(err, MR_ERR_DATA, "a regular expression can't be matched with a text: %s",
                       (const char *)why);
    }
}

int java_pattern_find(struct java_pattern *pattern, const char *text, size_t len, size_t from,
                      bool whole, struct mr_error *err)
{
    int rc = pcre2_match(whole ? pattern->whole : pattern->find, (PCRE2_SPTR)text, len, from, 0,
                         pattern->found, pattern->limits);

    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    return rc >= 0 ? 1 : match_error(rc, err);
}

bool java_pattern_span(const struct java_pattern *pattern, uint32_t group, size_t *start,
                       size_t *end)
{
    const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(pattern->found);

    if (group > pattern->syntax.groups || spans[2 * group] == PCRE2_UNSET)
        return false;
    *start = spans[2 * group];
    *end = spans[2 * group + 1];
    return true;
}

uint32_t java_pattern_groups(const struct java_pattern *pattern)
{
    return pattern->syntax.groups;
}

int java_pattern_group(const struct java_pattern *pattern, const char *name)
{
    return java_syntax_group(&pattern->syntax, name);
}

int java_pattern_matches(struct java_pattern *pattern, const char *text, struct mr_error *err)
{
    return java_pattern_find(pattern, text, strlen(text), 0, true, err);
}

/* Not compiled to machine code, which takes longer than one match. */
int java_pattern_matches_once(const char *regex, const char *text, struct mr_error *err)
{
    struct java_pattern p = {0}, *pattern = &p;
    struct buf out;
    int rc;

    buf_init(&out, OUT_MAX);
    rc = java_syntax_translate(regex, &out, &p.syntax, err);
    if (rc == 0)
        rc = compile(regex, &out, PCRE2_ANCHORED | PCRE2_ENDANCHORED, &p.whole, err);
    buf_deinit(&out);
    if (rc == 0) {
        p.found = pcre2_match_data_create_from_pattern(p.whole, NULL);
        p.limits = pcre2_match_context_create(NULL);
        rc = p.found != NULL && p.limits != NULL
                 ? 0
                 : mr_fail(err, MR_ERR_NOMEM, "out of memory for a regular expression");
    }
    if (rc == 0) {
        pcre2_set_match_limit(p.limits, ONCE_STEPS_MAX);
        pcre2_set_depth_limit(p.limits, ONCE_DEPTH_MAX);
        rc = java_pattern_matches(pattern, text, err);
    }
    deinit(pattern);
    return rc;
}
