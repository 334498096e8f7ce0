/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `millrace scan`: any bytes give an error or plugins that hold what the format promises. */
#include "link/scan_format.h"
#include "worker/supervisor/catalog.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct catalog *cat, const struct catalog_plugin *plugin)
{
    const struct catalog_plugin *found = catalog_find(cat, plugin->kind, plugin->java_class);

    mr_assert(plugin->name[0] != '\0' && strlen(plugin->name) <= SCAN_FORMAT_NAME_MAX);
    mr_assert(plugin->kind >= MR_PLUGIN_SOURCE && plugin->kind <= MR_PLUGIN_CONVERTER);
    mr_assert(found != NULL && catalog_compare_versions(found->version, found->version) == 0);
    for (size_t i = 0; plugin->keys[i].name != NULL; i++)
        mr_assert(i < SCAN_FORMAT_KEYS_MAX && plugin->keys[i].type <= MR_CFG_PASSWORD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct catalog *cat = catalog_new();

    if (catalog_read_scan(cat, (const char *)data, size, &err) != 0)
        mr_assert(err.code != 0 && err.text[0] != '\0');
    for (size_t i = 0; i < catalog_count(cat); i++)
        check(cat, catalog_at(cat, i));
    catalog_free(&cat);
    return 0;
}
