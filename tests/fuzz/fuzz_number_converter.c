/* SPDX-License-Identifier: Apache-2.0 */
/* The converters of plugins/basic on any bytes: a well-formed value or an error with a text, and
 * what is written of that value reads back as the same. The first byte chooses the converter. */
#include "host/data/values.h"
#include "host/descriptor.h"
#include "host/host_api.h"
#include "host/data/record_arena.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct mr_module *millrace_module(void);

static struct {
    struct descriptor_set set;
    struct instance *converters;
    struct batch_pool *pool;
} fuzz;

static void require(bool good)
{
    if (!good)
        abort();
}

static void start(void)
{
    struct mr_error err = {0};
    struct props props;

    require(descriptor_read(millrace_module(), "fuzz", &fuzz.set, &err) == 0);
    fuzz.pool = batch_pool_new(&host_api_table, (size_t)64 << 20, 1000);
    fuzz.converters = calloc(fuzz.set.count, sizeof(*fuzz.converters));
    props_init(&props);
    props_set(&props, "converter.type", "header");
    for (size_t i = 0; i < fuzz.set.count; i++) {
        const struct plugin *plugin = &fuzz.set.plugins[i];

        require(instance_init(&fuzz.converters[i], plugin, &props, &err) == 0);
        require(plugin->converter.start(fuzz.converters[i].self, &fuzz.converters[i].pub, &err) ==
                0);
    }
    props_deinit(&props);
}

static void try(struct mr_arena *arena, const struct plugin *plugin, void *self,
                const uint8_t *data, size_t size)
{
    const struct mr_schema *schema = NULL, *again_schema = NULL;
    struct mr_value v = mr_null(), again = mr_null();
    struct mr_error err = {0};
    const void *out = NULL;
    size_t len = 0;

    if (plugin->converter.to_connect(self, arena, "t", data, size, &schema, &v, &err) != 0) {
        require(err.code < 0 && err.text[0] != '\0');
        return;
    }
    require(values_check(v, &err) == 0);
    require(plugin->converter.from_connect(self, arena, "t", schema, v, &out, &len, &err) == 0);
    if (plugin->kind == MR_PLUGIN_HEADER_CONVERTER) /* its text loses types */
        return;
    require(plugin->converter.to_connect(self, arena, "t", out, len, &again_schema, &again, &err) ==
            0);
    require(schema == again_schema && values_equal(v, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch *batch;
    size_t which;

    if (fuzz.pool == NULL)
        start();
    if (size == 0)
        return 0;
    which = data[0] % fuzz.set.count;
    batch = batch_pool_take(fuzz.pool);
    try(&batch->arena, &fuzz.set.plugins[which], fuzz.converters[which].self, data + 1, size - 1);
    require(!batch->over);
    batch_pool_give(fuzz.pool, batch);
    return 0;
}
