/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a REST filter's process: any bytes admit by one answer alone, or refuse with a
 * status of an error and a text, or are called nonsense. */
#include "worker/rest/rest_filter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    char *text = NULL;
    int rc = rest_filter_read((const char *)data, size, &text, &err);

    mr_assert(rc > 0 ? rc >= 400 && rc <= 599 && text != NULL : text == NULL);
    mr_assert(rc >= 0 || err.code != 0);
    mr_assert(rc != 0 || memmem(data, size, "admit", 5) != NULL ||
              memmem(data, size, "\\u", 2) != NULL);
    free(text);
    return 0;
}
