/* SPDX-License-Identifier: Apache-2.0 */
/* Replacement texts of java.util.regex.Matcher: $1, ${name}, \$. */
#ifndef TRANSFORMS_REPLACEMENT_H
#define TRANSFORMS_REPLACEMENT_H

#include <millrace/pattern.h>
#include <millrace/record.h>

/* The replacement with its references filled in, in the arena.
 *
 * text     the replacement, NUL-terminated
 * pattern  what was found; spans: groups 0 to pattern->groups, in subject
 *
 * MR_ERR_DATA with Java's text: a reference to no group, or one that is not well-formed. */
int replacement_expand(const char *text, const struct mr_pattern *pattern,
                       const struct mr_span *spans, const char *subject, struct mr_arena *arena,
                       struct mr_value *out, struct mr_error *err);

#endif
