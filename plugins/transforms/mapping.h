/* SPDX-License-Identifier: Apache-2.0 */
/* Items "left:right" of a list option, split as Java's String.split(":") does. */
#ifndef TRANSFORMS_MAPPING_H
#define TRANSFORMS_MAPPING_H

#include <millrace/plugin.h>

struct mapping {
    const char *left; /* in the item; not NUL-terminated */
    size_t left_len;
    const char *right;
    size_t right_len;
};

/* How many parts the item has: empty ones at its end don't count, so "a:" has one and ":" none. The
 * first two are given. */
size_t mapping_split(const char *item, struct mapping *out);

/* MR_ERR_CONFIG: "Invalid value [a:b:c] for configuration renames: …", whatever the option's name:
 * Cast says it too. */
int mapping_fail(const struct mr_task *task, const char *option, const char *item,
                 struct mr_error *err);

#endif
