/* SPDX-License-Identifier: Apache-2.0 */
/* The discarding sink: takes everything, keeps nothing. */
#include <millrace/plugin.h>

static int discard_put(void *self, struct mr_batch *in, struct mr_error *err)
{
    return MR_OK;
}

MR_SINK(Discard, "1", .put = discard_put)
