/* SPDX-License-Identifier: Apache-2.0 */
/* Properties files: any bytes give a map or an error, and what was read survives being copied. */
#include "base/props.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct props p;
    struct props copy;
    struct mr_error err = {0};

    props_init(&p);
    if (props_parse(&p, (const char *)data, size, "fuzz", &err) == 0) {
        if (props_copy(&copy, &p) != 0 || !props_equal(&copy, &p))
            abort();
        props_deinit(&copy);
    } else if (err.code == 0) {
        abort();
    }
    props_deinit(&p);
    return 0;
}
