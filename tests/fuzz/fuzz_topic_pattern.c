/* SPDX-License-Identifier: Apache-2.0 */
/* Topic patterns: any text gives an anchored expression that the library's compiler takes, or an
 * error. */
#include "kafka/topic_pattern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out;
    struct mr_error err = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    buf_init(&out, 8192);
    if (topic_pattern_translate(text, &out, &err) != 0) {
        if (err.code != MR_ERR_CONFIG)
            abort();
    } else if (strncmp(out.data, "^(", 2) != 0 || strcmp(out.data + out.len - 2, ")$") != 0) {
        abort();
    }
    buf_deinit(&out);
    free(text);
    return 0;
}
