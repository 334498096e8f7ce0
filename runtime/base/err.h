/* SPDX-License-Identifier: Apache-2.0 */
/* Errors inside the runtime: the plugin's struct mr_error with a few more verbs. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <millrace/error.h>
#include <stdbool.h>

/* Put words before an error that is already there: "words: text". Does nothing to NULL or an empty
 * error. */
MR_PRINTF(2, 3)
void err_prefix(struct mr_error *err, const char *fmt, ...);

/* As mr_fail with code MR_ERR_IO and ": <strerror(errno)>" appended. errno is kept. */
MR_PRINTF(2, 3)
int err_errno(struct mr_error *err, const char *fmt, ...);

void err_clear(struct mr_error *err);

/* A plugin's call gave the negative code rc: the error always has a text then. what: "poll", "it".
 * Returns rc; does nothing else where the plugin has set the text. */
int err_without_text(struct mr_error *err, int rc, const char *what);
const char *err_code_name(int code); /* "RETRY", "DATA", …; "FATAL" for unknown negative codes */

/* Our own bugs: stays on in release, logs what was broken and aborts. Never for bytes from
 * outside. */
#define mr_assert(expr) ((expr) ? (void)0 : err_assert_failed(#expr, __FILE__, __LINE__))
void err_assert_failed(const char *expr, const char *file, int line) __attribute__((noreturn));

#endif
