/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of the host's table for regular expressions. */
#ifndef HOST_HOST_PATTERN_H
#define HOST_HOST_PATTERN_H

#include <millrace/pattern.h>

struct mr_pattern *host_pattern_make(const struct mr_host *host, const char *regex,
                                     struct mr_error *err);
void host_pattern_free(struct mr_pattern *pattern);
int host_pattern_find(struct mr_pattern *pattern, const struct mr_pattern_search *search,
                      struct mr_error *err);
int host_pattern_group(const struct mr_pattern *pattern, const char *name);

#endif
