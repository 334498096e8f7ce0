/* SPDX-License-Identifier: Apache-2.0 */
/* Java's regular expressions, written as PCRE2's. */
#ifndef BASE_JAVA_SYNTAX_H
#define BASE_JAVA_SYNTAX_H

#include "base/buf.h"

#define JAVA_SYNTAX_NAMES_MAX 200
#define JAVA_SYNTAX_LENGTH_MAX 16384 /* bytes */

/* names[i]: of group numbers[i]; owned. groups: without group 0. */
struct java_syntax {
    char *names[JAVA_SYNTAX_NAMES_MAX];
    uint32_t numbers[JAVA_SYNTAX_NAMES_MAX];
    uint32_t name_count;
    uint32_t groups;
};

/* Write what regex means in Java to out, for PCRE2 with PCRE2_UTF and PCRE2_DOTALL and nothing else
 * set.
 *
 * regex   NUL-terminated UTF-8
 * result  filled; java_syntax_deinit also after a failure
 *
 * Returns 0, or MR_ERR_CONFIG: with Java's own text ("Unclosed group near index 1\n(") for what is
 * wrong there too, or "… is not supported" for what Java takes and we can't translate. Pure. Spec:
 * java.util.regex.Pattern of JDK 17. */
int java_syntax_translate(const char *regex, struct buf *out, struct java_syntax *result,
                          struct mr_error *err);
void java_syntax_deinit(struct java_syntax *result);

/* Number of the group with that name, or -1. */
int java_syntax_group(const struct java_syntax *syntax, const char *name);

#endif
