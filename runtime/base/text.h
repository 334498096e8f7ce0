/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of text where there is no going on without: out of memory is mr_assert's end. Any
 * thread. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

char *text_dup(const char *text);                 /* of NULL: NULL */
char *text_dup_len(const char *text, size_t len); /* at most len bytes of it, as strndup */
/* *text becomes a copy of `with`, which may be NULL, or part of *text; what stood there is
 * freed. */
void text_replace(char **text, const char *with);

#endif
