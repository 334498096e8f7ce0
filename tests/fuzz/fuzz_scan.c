/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `millrace scan`: any bytes give an error or plugins that hold what the format
 * promises. */
#include "link/scan_format.h"
#include "model/plugin_version.h"
#include "worker/supervisor/catalog.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct catalog *cat, const struct catalog_plugin *plugin)
{
    const struct catalog_plugin *found = catalog_find(cat, plugin->kind, plugin->java_class);

    mr_assert(plugin->name[0] != '\0' && strlen(plugin->name) <= SCAN_FORMAT_NAME_MAX);
    mr_assert(plugin->kind >= MR_PLUGIN_SOURCE && plugin->kind <= MR_PLUGIN_HEADER_CONVERTER);
    mr_assert(found != NULL && plugin_version_compare(found->version, found->version) == 0);
    for (size_t i = 0; plugin->keys[i].name != NULL; i++)
        mr_assert(i < SCAN_FORMAT_KEYS_MAX && plugin->keys[i].type <= MR_CFG_PASSWORD);
}

/* Line by line, up to the first that is wrong. */
static void read_lines(struct catalog *cat, const char *data, size_t size)
{
    static struct catalog_line line;
    struct mr_error err = {0};

    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t len = end == NULL ? size : (size_t)(end - data);

        if (catalog_read_line(cat, data, len, &line, &err) != 0) {
            mr_assert(err.code != 0 && err.text[0] != '\0');
            return;
        }
        len += end != NULL;
        data += len;
        size -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct catalog *cat = catalog_new();

    read_lines(cat, (const char *)data, size);
    for (size_t i = 0; i < catalog_count(cat); i++)
        check(cat, catalog_at(cat, i));
    catalog_free(&cat);
    return 0;
}
