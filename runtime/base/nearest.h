/* SPDX-License-Identifier: Apache-2.0 */
/* Which name was meant? Pure. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* The name in `known` (ended by NULL) nearest to `name`, or NULL when none is near: for warnings
 * about unknown keys. */
const char *nearest_name(const char *name, const char *const *known);

#endif
