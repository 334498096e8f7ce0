/* SPDX-License-Identifier: Apache-2.0 */
/* Filter: leaves out every record that it is applied to; which ones, a predicate says. On the
 * task's thread. */
#include "half.h"
#include "transforms.h"

static const char *const aliases[] = {"Filter", NULL};

static int apply(void *self, struct mr_arena *arena, struct mr_record *rec, struct mr_error *err)
{
    return MR_DROP;
}

const struct mr_transform filter_plugin =
    MR_DESCRIPTOR(mr_transform, MR_PLUGIN_TRANSFORM, HALF_CLASS("Filter"), HALF_RELEASE,
                  .aliases = aliases, .doc = "Leaves records out", .apply = apply);
