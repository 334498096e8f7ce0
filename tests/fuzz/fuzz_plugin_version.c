/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and ranges of versions as users write them: two texts, apart by a newline. What must
 * hold whatever comes: the order is the same from both sides; a range that is told of is a range
 * again, and holds the same. */
#include "model/plugin_version.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds)
        abort();
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static void check_range(const char *spec, const char *version)
{
    struct plugin_version_range *range = NULL, *again = NULL;
    struct mr_error err = {0};
    struct buf told;

    if (plugin_version_range_parse(spec, &range, &err) != 0) {
        must(err.text[0] != '\0');
        return;
    }
    buf_init(&told, (size_t)8 * TEXT_MAX);
    if (range != NULL)
        plugin_version_range_write(range, &told);
    if (range != NULL && strstr(told.data, "[,]") == NULL) { /* which is the empty version too */
        must(plugin_version_range_parse(told.data, &again, &err) == 0);
        must(plugin_version_range_holds(range, version) ==
             plugin_version_range_holds(again, version));
    }
    plugin_version_range_free(&range);
    plugin_version_range_free(&again);
    buf_deinit(&told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX + 1], *second;

    if (size > TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    second = strchr(text, '\n');
    if (second == NULL)
        return 0;
    *second++ = '\0';
    must(sign(plugin_version_compare(text, second)) == -sign(plugin_version_compare(second, text)));
    must(plugin_version_compare(text, text) == 0);
    check_range(text, second);
    return 0;
}
