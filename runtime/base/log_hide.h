/* SPDX-License-Identifier: Apache-2.0 */
/* What this process must not show: values that config providers gave. Every line of the log goes
 * through here, and so does what a host tells its worker in words. Any thread; a lock of its own.
 */
#ifndef BASE_LOG_HIDE_H
#define BASE_LOG_HIDE_H

#include "base/secrets.h"

void log_hide(const struct secrets *secrets); /* all of its pairs, from now on; copied */

/* The text as it may be shown, malloc'ed; NULL: as it is. */
char *log_hidden(const char *text);

#endif
