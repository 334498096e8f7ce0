/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made fit to be shown: in logs, traces and JSON. Pure. */
#ifndef LINK_PRINTABLE_H
#define LINK_PRINTABLE_H

#include <stddef.h>

/* Replace, in place and length kept, what is not valid UTF-8 and every control character but
 * newline and tab by '?'. len bytes; NUL bytes count as control characters. */
void printable_clean(char *text, size_t len);

/* Length at which to cut text so that at most max bytes are kept and no UTF-8 character is torn. */
size_t printable_cut(const char *text, size_t len, size_t max);

#endif
