/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as Java has them.
 * Spec: java.util.regex.Pattern and Matcher of JDK 17. */
#ifndef MILLRACE_PATTERN_H
#define MILLRACE_PATTERN_H

#include <millrace/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Made by mr_pattern_make only. Thread: one at a time uses it, since it keeps what it found
 * last. */
struct mr_pattern {
    const struct mr_host *host;
    uint32_t groups; /* without group 0, which is the whole match */
};

/* Bytes start to end of a text; both MR_NO_SPAN for a group that took no part in the match. */
struct mr_span {
    size_t start;
    size_t end;
};
#define MR_NO_SPAN SIZE_MAX

/* The arguments of mr_pattern_find, which says what they are; frozen for ever. */
struct mr_pattern_search {
    const char *text;
    size_t len;
    size_t from;
    struct mr_span *spans;
    size_t count;
    bool whole;
};

/* Compile a regular expression.
 *
 * host    of any handle: task->host
 * regex   NUL-terminated UTF-8, Java's syntax
 * err     filled on failure; may be NULL
 *
 * Returns the pattern, the caller's (mr_pattern_free); or NULL with MR_ERR_CONFIG and the text of
 * Java's PatternSyntaxException, or one that says what Java has and this doesn't: look-behind of
 * varying length, the flags U and c, \b{g}, \N{name}, possibly others. In matching, what differs is
 * beyond ASCII: (?i) references to groups ignore case there too, and \b counts no combining mark as
 * part of a word. */
static inline struct mr_pattern *mr_pattern_make(const struct mr_host *host, const char *regex,
                                                 struct mr_error *err)
{
    return host->pattern_make(host, regex, err);
}

/* pattern may be NULL. */
static inline void mr_pattern_free(struct mr_pattern *pattern)
{
    if (pattern != NULL)
        pattern->host->pattern_free(pattern);
}

/* Search a text.
 *
 * text    len bytes of UTF-8, need not end with a NUL
 * from    byte to begin at, 0 to len, where a character begins; anchors and look-behind still see
 *         the whole text
 * whole   what is left from there must match from first byte to last (Matcher.matches), else the
 *         first place that does (find)
 * spans   filled with groups 0 to count - 1 when found; may be NULL with count 0
 *
 * Returns 1 when found, 0 when not, or MR_ERR_DATA: the text is not UTF-8, or takes too many steps,
 * where Java would go on for hours or end with a StackOverflowError. */
static inline int mr_pattern_find(struct mr_pattern *pattern, const char *text, size_t len,
                                  size_t from, bool whole, struct mr_span *spans, size_t count,
                                  struct mr_error *err)
{
    struct mr_pattern_search search;

    search.text = text;
    search.len = len;
    search.from = from;
    search.whole = whole;
    search.spans = spans;
    search.count = count;
    return pattern->host->pattern_find(pattern, &search, err);
}

/* Number of the group with that name, or -1. */
static inline int mr_pattern_group(const struct mr_pattern *pattern, const char *name)
{
    return pattern->host->pattern_group(pattern, name);
}

#ifdef __cplusplus
}
#endif

#endif
