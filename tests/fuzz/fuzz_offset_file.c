/* SPDX-License-Identifier: Apache-2.0 */
/* The offset file of a standalone worker: any bytes are refused with a text or read; what was read
 * is written and read again to the same. */
#include "worker/store/local_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    json_t *offsets = local_store_parse((const char *)data, size, "offsets", &err), *again;
    struct buf out;

    if (offsets == NULL) {
        mr_assert(err.code != 0 && err.text[0] != '\0');
        return 0;
    }
    buf_init(&out, (size_t)64 << 20);
    mr_assert(local_store_render(offsets, &out) == 0);
    again = local_store_parse(out.data, out.len, "offsets", &err);
    mr_assert(json_equal(offsets, again));
    json_decref(again);
    json_decref(offsets);
    buf_deinit(&out);
    return 0;
}
