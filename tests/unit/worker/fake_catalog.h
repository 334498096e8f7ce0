/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog that a test of validate plays: its plugins stand in a table of the test's own. */
#ifndef TEST_FAKE_CATALOG_H
#define TEST_FAKE_CATALOG_H

#include "worker/supervisor/catalog.h"

#include <string.h>

static bool fake_catalog_fits(uint32_t kind, uint32_t wanted)
{
    if (wanted == 0)
        return kind <= MR_PLUGIN_SINK;
    return kind == wanted || (wanted == MR_PLUGIN_HEADER_CONVERTER && kind == MR_PLUGIN_CONVERTER);
}

static const struct catalog_plugin *fake_catalog_find(const struct catalog_plugin *plugins,
                                                      size_t count, uint32_t kind, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if ((strcmp(plugins[i].name, name) == 0 || strcmp(plugins[i].java_class, name) == 0) &&
            fake_catalog_fits(plugins[i].kind, kind))
            return &plugins[i];
    return NULL;
}

#endif
