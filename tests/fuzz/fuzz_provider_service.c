/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a config provider's process: any bytes give values of keys that were asked, whole
 * and without NULs, or an error. */
#include "base/provider_service.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *keys = json_pack("[s, s]", "a", "b");
    struct mr_error err = {0};
    struct props values;
    int64_t ttl_ms = 0;
    int rc;

    mr_assert(keys != NULL);
    props_init(&values);
    rc = provider_service_read((const char *)data, size, keys, &values, &ttl_ms, &err);
    mr_assert(rc == 0 ? ttl_ms > 0 && values.count <= 2 : err.text[0] != '\0' || err.code == rc);
    for (size_t i = 0; rc == 0 && i < values.count; i++)
        mr_assert(strcmp(values.entries[i].key, "a") == 0 ||
                  strcmp(values.entries[i].key, "b") == 0);
    props_deinit(&values);
    json_decref(keys);
    return 0;
}
