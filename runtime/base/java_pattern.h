/* SPDX-License-Identifier: Apache-2.0 */
/* Java's regular expressions on UTF-8 text. */
#ifndef BASE_JAVA_PATTERN_H
#define BASE_JAVA_PATTERN_H

#include "base/err.h"

struct java_pattern;

/* Compile regex (NUL-terminated UTF-8). NULL with MR_ERR_CONFIG: Java's text for a mistake, "… is
 * not supported here" for what can't be translated, or what the compiler said. Owner: the caller,
 * java_pattern_free. */
struct java_pattern *java_pattern_make(const char *regex, struct mr_error *err);
void java_pattern_free(struct java_pattern **pattern);

/* Search text from byte offset from; whole: the rest must match from its first byte to its last, as
 * Matcher.matches does. text: len bytes of UTF-8; from: 0 to len, at the start of a character.
 * Returns 1 when found, 0 when not; MR_ERR_DATA when the text is not UTF-8 or takes too many steps,
 * MR_ERR_NOMEM.
 * Thread: one at a time; the pattern holds what was found. */
int java_pattern_find(struct java_pattern *pattern, const char *text, size_t len, size_t from,
                      bool whole, struct mr_error *err);

/* After java_pattern_find gave 1: the bytes of a group (0: all of it); false when it took no
 * part. */
bool java_pattern_span(const struct java_pattern *pattern, uint32_t group, size_t *start,
                       size_t *end);

uint32_t java_pattern_groups(const struct java_pattern *pattern);             /* without group 0 */
int java_pattern_group(const struct java_pattern *pattern, const char *name); /* number, or -1 */

/* Does the whole of a NUL-terminated text match? 1, 0 or an error as above. */
int java_pattern_matches(struct java_pattern *pattern, const char *text, struct mr_error *err);

/* The same of a regex that is used once, and cheap: at most some milliseconds, whatever the regex
 * and the text are. What takes more steps is MR_ERR_DATA. */
int java_pattern_matches_once(const char *regex, const char *text, struct mr_error *err);

#endif
