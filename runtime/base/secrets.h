/* SPDX-License-Identifier: Apache-2.0 */
/* Values that config providers gave, each with the reference that stands for it, so that texts
 * which were made with the value can be shown with the reference. One owner, one thread; log_hide.h
 * has one for the whole process. */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#define SECRETS_MAX 8192                     /* pairs */
#define SECRETS_BYTES_MAX ((size_t)32 << 20) /* of all values */
#define SECRETS_SHORTEST 4 /* bytes: what is shorter stands in too many texts by chance */

struct secrets;

struct secrets *secrets_new(void); /* aborts out of memory */
void secrets_free(struct secrets **secrets);

/* Both copied. Nothing is noted of values that tell nothing (short ones, true, false, none, null)
 * and of what is noted already. false: there is no room, the value would be shown. */
bool secrets_add(struct secrets *secrets, const char *reference, const char *value);

/* The same where values come for as long as the process lives: those that came longest ago, and not
 * again, make room. */
void secrets_keep(struct secrets *secrets, const char *reference, const char *value);

/* The i-th pair, borrowed until the next is added; false: there are no more. */
bool secrets_at(const struct secrets *secrets, size_t i, const char **reference,
                const char **value);

/* The text with each value in it replaced by its reference, malloc'ed; NULL: it holds none. What
 * would become larger than 16 MiB is stars. A value that is cut off by the text's end counts too.
 */
char *secrets_hide(const struct secrets *secrets, const char *text);

#endif
