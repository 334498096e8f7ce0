/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration key whose value is a regular expression of Java's. */
#ifndef TRANSFORMS_PATTERN_KEY_H
#define TRANSFORMS_PATTERN_KEY_H

#include <millrace/plugin.h>

/* The pattern that stands in key. shown: as the user calls that key. NULL with err: there is none,
 * or it is no pattern (MR_ERR_CONFIG); MR_ERR_NOMEM. The caller's: mr_pattern_free. */
struct mr_pattern *pattern_key_make(const struct mr_task *task, const char *key, const char *shown,
                                    struct mr_error *err);
/* MR_OK, or err->code as above. */
int pattern_key_check(const struct mr_task *task, const char *key, const char *shown,
                      struct mr_error *err);

#endif
